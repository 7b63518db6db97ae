"""What keys may use: counted by one process, by several workers, and by several machines."""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.request_records import run_postgres
from surecall.base.errors import Code, ProviderStatusError, StoreError
from surecall.base.records import Usage
from surecall.gateway.budgets import Budgets, SteadyClock, share_of
from surecall.gateway.jobs.client import count_tokens, price
from surecall.gateway.keys import Caller
from surecall.gateway.settings.tables import KeySettings, PriceSettings
from surecall.store.records.ledger import (
    DAY_S,
    MINUTE_S,
    MONTH_S,
    Ledger,
    MemoryLedger,
    SqliteLedger,
    Window,
    open_ledger,
)

from .harness import (
    STREAM_END,
    STREAM_HEAD,
    Served,
    Stub,
    ask,
    chat,
    chunk,
    completion,
    piece,
    reply,
    serve_stubbed,
)
from .test_serve_command import run_command

NOW = 1_800_000_030.0
TODAY = Window("a", "requests", DAY_S, int(time.time() // DAY_S))


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """The one server of this file."""
    with run_postgres() as started:
        yield started


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ledger]:
    """An empty ledger of each kind."""
    made: Ledger = MemoryLedger()
    if request.param != "memory":
        place = request.param
        if place == "postgres":
            place = request.getfixturevalue("server").get_uri()
        made = open_ledger(place, tmp_path / "budgets.db")
    yield made
    await made.close()


async def test_a_ledger_never_gives_more_than_the_limit(ledger: Ledger) -> None:
    """Debts count, what is given back can be taken again, and windows are apart."""
    window = TODAY._replace(key=f"key {time.time()}")
    taken = await asyncio.gather(*(ledger.take(window, 10, 3) for _ in range(5)))
    assert sorted(taken) == [0, 1, 3, 3, 3]
    assert await ledger.take(window, 10, 0, -4) == 0
    assert await ledger.take(window, 10, 5, 1) == 3
    assert await ledger.take(window, 10, 1, 7) == 0
    assert await ledger.take(window, 20, 9) == 3
    assert await ledger.take(window._replace(resource="tokens"), 10, 3) == 3


async def test_windows_begin_anew() -> None:
    """A minute later a key may ask again; a day's budget is still spent."""
    settings = KeySettings(id="a", requests_per_minute=2, tokens_per_day=100)
    caller = Caller(settings, Budgets())
    assert await caller.begin(NOW) is None
    assert await caller.begin(NOW) is None
    refusal = await caller.begin(NOW)
    assert refusal is not None
    assert refusal.code == "RATE_LIMIT"
    assert refusal.retry_after_s is not None
    assert 0 < refusal.retry_after_s <= MINUTE_S
    assert await caller.begin(NOW + MINUTE_S) is None
    caller.charge(NOW, 100)
    refusal = await caller.begin(NOW + 2 * MINUTE_S)
    assert refusal is not None
    assert refusal.code == "QUOTA_EXCEEDED"
    assert await caller.begin(NOW + DAY_S) is None


async def test_what_is_given_back_is_less_than_nothing_for_nobody() -> None:
    """No count of tokens makes a budget larger."""
    caller = Caller(KeySettings(id="a", tokens_per_day=10), Budgets())
    assert await caller.begin(NOW) is None
    caller.charge(NOW, 10)
    for tokens in (-1, -(10**9), 0):
        caller.charge(NOW, tokens)
        assert await caller.begin(NOW) is not None


@pytest.mark.parametrize("days", [1, 2, 10, 1000])
async def test_a_day_that_comes_back_is_still_spent(ledger: Ledger, days: int) -> None:
    """However far the clock was ahead, and after a restart; each day is had once."""
    settings = KeySettings(id=f"a{time.time()}", requests_per_day=2)

    async def ask(now: float) -> int:
        caller = Caller(settings, Budgets(ledger))  # as after a restart
        return [await caller.begin(now) for _ in range(4)].count(None)

    ahead = NOW + days * DAY_S
    assert [await ask(now) for now in (NOW, ahead, NOW, ahead, NOW)] == [2, 2, 0, 0, 0]


async def test_only_the_newest_windows_are_remembered(ledger: Ledger) -> None:
    """A ledger does not grow for ever, and the order in which windows came does not matter."""
    window = TODAY._replace(key=f"key {time.time()}", number=10_000)
    assert await ledger.take(window, 5, 5) == 5
    for number in range(10_500, 10_000, -1):
        await ledger.take(window._replace(number=number), 5, 1)
    assert await ledger.take(window._replace(number=10_500), 5, 5) == 4
    assert await ledger.take(window, 5, 5) == 5  # so old that nobody asks for it again


class Hands:
    """The hands of a clock that somebody sets, and the seconds that go by."""

    def __init__(self) -> None:
        self.wall = NOW
        self.ticks = 50.0

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.ticks += seconds


def make_clock() -> tuple[SteadyClock, Hands]:
    """Return a clock and its hands."""
    hands = Hands()
    return SteadyClock(lambda: hands.wall, lambda: hands.ticks), hands


@given(
    moves=st.lists(
        st.tuples(st.floats(-(10**9), 10**9), st.floats(0, 500)),
        max_size=20,
    )
)
def test_a_clock_that_is_set_and_set_back_goes_on_evenly(
    moves: list[tuple[float, float]],
) -> None:
    """Whatever it showed in between, for less than ten minutes at a time."""
    clock, hands = make_clock()
    passed = 0.0
    for jump, seconds in moves:
        hands.wall += jump
        clock.now()
        hands.wait(seconds)
        passed += seconds
        assert abs(clock.now() - (NOW + passed)) < 21
        hands.wall -= jump
        clock.now()


def test_a_clock_that_is_put_right_is_believed_in_the_end() -> None:
    """A machine that learns the time after it was started counts by it ten minutes later."""
    clock, hands = make_clock()
    hands.wall += DAY_S
    assert clock.now() == NOW
    hands.wait(300)
    assert clock.now() == NOW + 300
    hands.wait(301)
    assert clock.now() == NOW + DAY_S + 601
    hands.wall += 0.5
    assert clock.now() == NOW + DAY_S + 601.5


async def test_a_key_has_one_budget_while_its_clock_is_set() -> None:
    """A day ahead for a moment is not another day, for days and minutes alike."""
    clock, hands = make_clock()
    settings = KeySettings(id="a", requests_per_minute=3, requests_per_day=5)
    caller = Caller(settings, Budgets(clock=clock))
    begun = 0
    for jump in (0, DAY_S, -DAY_S, MINUTE_S, -3 * DAY_S, 3 * DAY_S, -MINUTE_S):
        hands.wall += jump
        begun += [await caller.begin(caller.now()) for _ in range(4)].count(None)
    assert begun == 3
    hands.wait(MINUTE_S)
    begun += [await caller.begin(caller.now()) for _ in range(4)].count(None)
    assert begun == 5


async def test_processes_never_use_more_than_the_limit_together(tmp_path: Path) -> None:
    """However many ask at once; what one does not use, another can have."""
    path = tmp_path / "budgets.db"
    settings = KeySettings(id="a", requests_per_day=200)
    ledgers = [SqliteLedger(path) for _ in range(3)]
    all_budgets = [Budgets(ledger) for ledger in ledgers]
    callers = [Caller(settings, budgets) for budgets in all_budgets]
    now = time.time()
    assert await callers[0].begin(now) is None  # and three more are taken
    rest = await asyncio.gather(*(callers[1].begin(now) for _ in range(250)))
    assert rest.count(None) == 200 - share_of(TODAY, 200)
    await all_budgets[0].flush(idle_s=0.0)
    more = await asyncio.gather(*(callers[2].begin(now) for _ in range(10)))
    assert more.count(None) == share_of(TODAY, 200) - 1
    for budgets in all_budgets:
        await budgets.close()
    again = Caller(settings, Budgets(SqliteLedger(path)))
    assert await again.begin(now) is not None  # a restart forgets nothing


async def test_tokens_beyond_a_share_become_a_debt_that_all_see(tmp_path: Path) -> None:
    """What a request turns out to cost is settled soon after."""
    settings = KeySettings(id="a", tokens_per_day=1000)
    first, second = (Budgets(SqliteLedger(tmp_path / "budgets.db")) for _ in range(2))
    now = time.time()
    assert await Caller(settings, first).begin(now) is None
    Caller(settings, first).charge(now, 1500)
    await first.flush()
    refusal = await Caller(settings, second).begin(now)
    assert refusal is not None
    assert "1000 tokens" in refusal.message


class AwayLedger(MemoryLedger):
    """A ledger that cannot be reached."""

    async def take(self, window: Window, limit: int, amount: int, debt: int = 0) -> int:
        raise StoreError(Code.STORE_WRITE_FAILED, "The server is away.")


async def test_nothing_is_spent_while_nobody_can_count() -> None:
    """The client is told to come back; keys without limits are not touched."""
    budgets = Budgets(AwayLedger())
    with pytest.raises(ProviderStatusError) as raised:
        await Caller(KeySettings(id="a", requests_per_day=5), budgets).begin(NOW)
    assert (raised.value.status, raised.value.code) == (503, "OVERLOADED")
    assert await Caller(KeySettings(id="b"), budgets).begin(NOW) is None


KEY = "gateway-key-0123456789abcdef"
LIMIT = 20


def ask_status(url: str) -> int:
    """Return the status of one request with the key."""
    body = {"model": "faults:clean", "messages": [{"role": "user", "content": "say Hello."}]}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {KEY}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=100) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def end(process: "subprocess.Popen[str]") -> None:
    """End a gateway with all its workers."""
    process.terminate()
    process.wait(20)


@pytest.mark.skipif(sys.platform == "win32", reason="it needs signals")
@pytest.mark.parametrize("kind", ["workers", "machines", "money"])
def test_gateways_share_one_budget(kind: str, tmp_path: Path, server: Any) -> None:
    """Two processes with one file, or two gateways with one server, stop at the same limit."""
    names = {"GATEWAY_KEY": KEY, "UPSTREAM_KEY": "k", "STORE_URL": server.get_uri()}
    with ExitStack() as stack, patch.dict(os.environ, names):
        _, upstream = stack.enter_context(run_command("faults", "serve", cwd=tmp_path))
        text = (
            f'[upstreams.a]\nurl = "{upstream}"\nprobe = "off"\napi_key_env = "UPSTREAM_KEY"\n'
            f'[[keys]]\nid = "team"\nkey_env = "GATEWAY_KEY"\nrequests_per_day = {LIMIT}\n'
        )
        if kind == "money":  # a request costs more than a month may
            text = text.replace(f"requests_per_day = {LIMIT}", "cost_per_month = 0.001")
            text += '[models."faults:clean".prices]\ninput = 1000\noutput = 1000\n'
        if kind != "workers":
            text += '[store]\nurl_env = "STORE_URL"\n'
        (tmp_path / "gateway.toml").write_text(text)
        words = ["serve", "--config", "gateway.toml", "--port", "0"]
        folders = [tmp_path / "one", tmp_path / "two"]
        if kind == "workers":
            words += ["--workers", "2", "--store", "kept/requests.db"]
            folders = [tmp_path]
        urls: list[str] = []
        for folder in folders:
            folder.mkdir(exist_ok=True)
            given = [str(tmp_path / word) if word.endswith(".toml") else word for word in words]
            process, url = stack.enter_context(run_command(*given, cwd=folder))
            stack.callback(end, process)
            urls.append(url)
        if kind == "money":
            assert ask_status(urls[0]) == 200
            found = (ask_status(url) for url in urls for _ in range(LIMIT) if url)
            assert 429 in {*found}
            assert [ask_status(url) for url in urls] == [429, 429]
            return
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(ask_status, [urls[n % len(urls)] for n in range(LIMIT + 10)]))
    assert (statuses.count(200), statuses.count(429)) == (LIMIT, 10)


# money

PRICES = "[models.m.prices]\ninput = 1e6\noutput = 2e6\n"
"""One for a token of a prompt, and two for one of a reply: a request costs 9."""


def money_table(limit: float) -> str:
    """Return the table of a key that may spend so much in a month."""
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    return f'[[keys]]\nid = "team"\nkey_sha256 = "{digest}"\ncost_per_month = {limit}\n'


async def test_a_key_spends_money_until_its_month_is_full(tmp_path: Path) -> None:
    """Then it is told when to come back, after a restart as well; every record has its cost."""
    answers = [[reply(completion())]] * 3
    text, shared = money_table(18) + PRICES, tmp_path / "shared"
    async with serve_stubbed(tmp_path, *answers, text=text, shared=shared) as (served, _):
        for _ in range(2):
            answer = await ask(served, "POST", "/v1/chat/completions", chat("m"), CALL_HEADER)
            assert (answer.status, served.last.cost) == (200, 9.0)
        answer = await ask(served, "POST", "/v1/chat/completions", chat("m"), CALL_HEADER)
        assert (answer.status, served.last.error_code) == (429, "QUOTA_EXCEEDED")
        assert b"may spend 18 a month" in answer.body
        assert served.last.cost == 0
        assert 1 <= int(answer.headers["retry-after"]) <= MONTH_S
        metrics = served.gateway.render_metrics(())
        assert b'surecall_cost_total{upstream="stub",model="m"} 18' in metrics
    async with serve_stubbed(tmp_path, *answers, text=text, shared=shared) as (served, stub):
        answer = await ask(served, "POST", "/v1/chat/completions", chat("m"), CALL_HEADER)
        assert (answer.status, len(stub.heads)) == (429, 0)


@pytest.mark.parametrize("path", ["chat/completions", "embeddings", "batches"])
async def test_a_key_for_money_asks_models_with_prices_only(path: str, tmp_path: Path) -> None:
    """Nobody could say what else it has spent."""
    async with serve_stubbed(tmp_path, text=money_table(5) + PRICES) as (served, stub):
        answer = await ask(served, "POST", f"/v1/{path}", chat("other"), CALL_HEADER)
        assert (answer.status, len(stub.heads)) == (403, 0)


async def test_what_fails_costs_nothing(tmp_path: Path) -> None:
    """An upstream that refuses a request reports no tokens and bills none."""
    refused = reply({"error": {"message": "no"}}, status=400)
    async with serve_stubbed(tmp_path, [refused], text=money_table(5) + PRICES) as (served, _):
        await ask(served, "POST", "/v1/chat/completions", chat("m"), CALL_HEADER)
        assert (served.last.status, served.last.cost) == (400, 0.0)


@given(
    counts=st.tuples(*[st.integers(0, 10**6)] * 4),
    prices=st.tuples(*[st.floats(0, 1000)] * 4),
    more=st.integers(0, 10**6),
)
def test_a_cost_lies_between_the_lowest_and_the_highest_price(
    counts: tuple[int, ...], prices: tuple[float, ...], more: int
) -> None:
    """Whatever is reported: every token has one price."""
    asked, given_, cached, written = counts
    usage = Usage(asked, given_, asked + given_, 0, cached, written)
    tokens = asked + given_ + more
    settings = PriceSettings(
        input=prices[0], output=prices[1], cached_input=prices[2], cache_write=prices[3]
    )
    cost = price(settings, usage, tokens, asked) * 1e6
    assert tokens * min(prices) - 1e-3 <= cost * (1 + 1e-9) + 1e-9
    assert cost <= tokens * max(prices) * (1 + 1e-9) + 1e-3


def test_tokens_from_a_cache_have_their_own_price() -> None:
    """The others cost what input costs."""
    prices = PriceSettings(input=2.0, output=10.0, cached_input=0.5)
    usage = Usage(input_tokens=1000, output_tokens=100, total_tokens=1100, cached_tokens=800)
    assert price(prices, usage, 1100, 0) == pytest.approx((200 * 2 + 800 * 0.5 + 100 * 10) / 1e6)


@pytest.mark.parametrize(
    ("day", "end"),
    [((2027, 1, 31), (2027, 2, 1)), ((2028, 2, 29), (2028, 3, 1)), ((2027, 12, 1), (2028, 1, 1))],
)
def test_months_are_those_of_the_calendar(
    day: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    """Also the short ones, and the last of a year."""
    now = datetime(*day, 23, 59, tzinfo=UTC).timestamp()
    window = Window.at("a", "cost", MONTH_S, now)
    assert window.end == datetime(*end, tzinfo=UTC).timestamp()
    assert Window.at("a", "cost", MONTH_S, window.end).number == window.number + 1


# what a request is charged

USAGES: list[Any] = [
    {"prompt_tokens": -(10**9), "completion_tokens": 2, "total_tokens": 2 - 10**9},
    {"prompt_tokens": -(10**9), "completion_tokens": -(10**9), "total_tokens": -2 * 10**9},
    {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    {"prompt_tokens": 5, "completion_tokens": -(10**9), "total_tokens": 5},
    {"prompt_tokens": 10**30, "completion_tokens": 10**30, "total_tokens": 10**30},
    {"prompt_tokens": -(2**63) - 1, "completion_tokens": 2, "total_tokens": 2},
    {"prompt_tokens": True, "completion_tokens": False, "total_tokens": True},
    {"prompt_tokens": "5", "completion_tokens": "2", "total_tokens": "-7"},
    {"prompt_tokens": 1e30, "completion_tokens": -1.5, "total_tokens": -1e300},
    {"prompt_tokens": None, "completion_tokens": [], "total_tokens": {}},
    {"prompt_tokens": 500, "completion_tokens": 500, "total_tokens": 1},
    {},
    None,
    [],
    -5,
    "none",
]
CALL_HEADER = {"authorization": f"Bearer {KEY}"}


def key_table(limit: int) -> str:
    """Return the table of a key with a budget of tokens for a day."""
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    return f'[[keys]]\nid = "team"\nkey_sha256 = "{digest}"\ntokens_per_day = {limit}\n'


def streamed(usage: Any) -> bytes:
    """Return a stream of a few words that names these tokens at its end."""
    last: dict[str, Any] = {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "choices": [],
        "usage": usage,
    }
    event = chunk(b"data: " + json.dumps(last).encode() + b"\n\n")
    words = b"".join(piece("word ") for _ in range(20))
    return STREAM_HEAD + words + piece("", "stop") + event + STREAM_END


@pytest.mark.parametrize("wish", ["", "off"], ids=["read", "relayed"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("usage", USAGES, ids=repr)
async def test_no_report_makes_a_budget_larger(
    usage: Any, stream: bool, wish: str, tmp_path: Path
) -> None:
    """Where a count cannot be used, bytes are; after two requests the budget is spent."""
    whole = reply({**completion("word " * 20), "usage": usage})
    text = key_table(50)
    async with serve_stubbed(tmp_path, [streamed(usage) if stream else whole], text=text) as (
        served,
        stub,
    ):
        headers = {**CALL_HEADER, "x-surecall": wish}
        body = chat("m", stream=stream)
        statuses = [
            (await ask(served, "POST", "/v1/chat/completions", body, headers)).status
            for _ in range(6)
        ]
        assert statuses[2:] == [429] * 4
        assert len(stub.heads) <= 2
        record = served.store.records[0]
        assert 0 <= record.prompt_tokens <= 10**8
        assert 0 <= record.completion_tokens <= 10**8


async def test_what_a_provider_reports_is_charged_as_it_is(tmp_path: Path) -> None:
    """A sound report needs no estimate: 7 tokens each, and 8 of an embedding, whatever its size."""
    embedding = {
        "data": [{"embedding": [0.123456] * 2000}],
        "usage": {"prompt_tokens": 8, "total_tokens": 8},
    }
    answers = [[reply(completion())]] * 2 + [[reply(embedding)]]
    async with serve_stubbed(tmp_path, *answers, text=key_table(22)) as (served, stub):
        for path in ("chat/completions", "chat/completions", "embeddings"):
            answer = await ask(served, "POST", f"/v1/{path}", chat("m"), CALL_HEADER)
            assert answer.status == 200
        answer = await ask(served, "POST", "/v1/chat/completions", chat("m"), CALL_HEADER)
        assert answer.status == 429
        assert len(stub.heads) == 3


async def ask_and_leave(served: Served, stub: Stub, body: Any, after: bytes, wish: str) -> None:
    """Ask, read until something has come, and leave."""
    data = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\n"
        f"authorization: Bearer {KEY}\r\nx-surecall: {wish}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    writer.write(head.encode() + data)
    await asyncio.wait_for(stub.asked.wait(), 60)
    if after:
        await asyncio.wait_for(reader.readuntil(after), 60)
    else:
        await asyncio.sleep(0.05)
    writer.transport.abort()
    await asyncio.wait_for(stub.gone.wait(), 60)
    for _ in range(6000):
        if served.store.records:
            break
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("wish", ["", "off"], ids=["read", "relayed"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_client_that_leaves_is_charged(stream: bool, wish: str, tmp_path: Path) -> None:
    """What was sent, and what had come; nothing twice."""
    begun = [STREAM_HEAD + b"".join(piece("a lot of words " * 20) for _ in range(30)), 60.0]
    waiting: list[Any] = [reply(completion())[:40], 60.0]
    async with serve_stubbed(tmp_path, begun if stream else waiting, text=key_table(100_000)) as (
        served,
        stub,
    ):
        charged: list[int] = []
        caller = served.gateway.state.keyring.find(KEY)
        assert caller is not None
        with patch.object(type(caller), "charge", lambda *given: charged.append(given[2])):
            body = chat("m", text="say something " * 500, stream=stream)
            await ask_and_leave(served, stub, body, b"a lot of words a" if stream else b"", wish)
        assert served.last.client_closed
        sent = len(stub.bodies[0]) // 4
        assert len(charged) == 1
        if stream:
            assert sent + 30 * 20 <= charged[0] <= sent + 30 * 20 * 5
        else:
            assert sent <= charged[0] <= sent + 10


@given(
    given_tokens=st.integers(0, 10**8),
    made=st.integers(0, 10**8),
    total=st.integers(0, 10**8),
    sizes=st.tuples(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**5)),
    makes_text=st.booleans(),
    is_whole=st.booleans(),
)
def test_a_charge_is_never_less_than_the_report(
    given_tokens: int,
    made: int,
    total: int,
    sizes: tuple[int, int, int],
    makes_text: bool,
    is_whole: bool,
) -> None:
    """Nor less than nothing; and a report that has both sides is the charge."""
    usage = Usage(given_tokens, made, total)
    tokens = count_tokens(
        usage,
        sent_bytes=sizes[0],
        received_bytes=sizes[1],
        events=sizes[2],
        makes_text=makes_text,
        is_whole=is_whole,
    )
    assert tokens >= max(total, given_tokens + made)
    if is_whole and given_tokens and made:
        assert tokens == max(total, given_tokens + made)


def test_an_estimate_looks_at_bytes_and_events() -> None:
    """Four bytes are a token, an event is one at least, and what is around its text is none."""
    assert count_tokens(None, sent_bytes=400, received_bytes=80) == 120
    assert count_tokens(None, sent_bytes=0, received_bytes=250 * 50, events=50) == 50
    assert count_tokens(None, sent_bytes=0, received_bytes=2300 * 5, events=5) == 2500
    assert count_tokens(None, sent_bytes=0, received_bytes=0) == 0
    odd = Usage(0, 5, 10)
    assert count_tokens(odd, sent_bytes=400, received_bytes=4000) == 1100
    assert count_tokens(odd, sent_bytes=4, received_bytes=4, makes_text=False) == 10
    assert count_tokens(Usage(2, 5, 7), sent_bytes=400, received_bytes=4000) == 7
