"""What keys may use: counted by one process, by several workers, and by several machines."""

import asyncio
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
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from support.request_records import run_postgres
from surecall.errors import Code, ProviderStatusError, StoreError
from surecall.gateway.budgets import Budgets, share_of
from surecall.gateway.keys import DAY_S, MINUTE_S, Caller
from surecall.gateway.records import Ledger, MemoryLedger, SqliteLedger, Window, open_ledger
from surecall.gateway.settings import KeySettings

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
    with patch("surecall.gateway.records.ledger.time.time", lambda: NOW):
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
    await all_budgets[0].settle(idle_s=0.0)
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
    await first.settle()
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
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def end(process: "subprocess.Popen[str]") -> None:
    """End a gateway with all its workers."""
    process.terminate()
    process.wait(20)


@pytest.mark.skipif(sys.platform == "win32", reason="it needs signals")
@pytest.mark.parametrize("kind", ["workers", "machines"])
def test_gateways_share_one_budget(kind: str, tmp_path: Path, server: Any) -> None:
    """Two processes with one file, or two gateways with one server, stop at the same limit."""
    names = {"GATEWAY_KEY": KEY, "UPSTREAM_KEY": "k", "STORE_URL": server.get_uri()}
    with ExitStack() as stack, patch.dict(os.environ, names):
        _, upstream = stack.enter_context(run_command("faults", "serve", cwd=tmp_path))
        text = (
            f'[upstreams.a]\nurl = "{upstream}"\nprobe = "off"\napi_key_env = "UPSTREAM_KEY"\n'
            f'[[keys]]\nid = "team"\nkey_env = "GATEWAY_KEY"\nrequests_per_day = {LIMIT}\n'
        )
        if kind == "machines":
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
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(ask_status, [urls[n % len(urls)] for n in range(LIMIT + 10)]))
    assert (statuses.count(200), statuses.count(429)) == (LIMIT, 10)
