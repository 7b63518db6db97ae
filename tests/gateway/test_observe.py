"""Observing: every byte passes as the upstream sent it, and the record says what was spared."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from surecall.base.errors import ProviderError
from surecall.exchange.request import ClientRequest, decode_members
from surecall.faults import FAULTS, FaultServer, FaultyProvider
from surecall.gateway.prompts import Prefixes, Prompt, read_prompt
from surecall.gateway.report import describe, summarize
from surecall.gateway.telemetry import RequestSpans
from surecall.models.client import ClientLimits, Origin
from surecall.models.transport import Deadlines
from surecall.store.records.sqlite import SqliteRecords
from surecall.store.records.store import Counts, ModelCount, count_by_model
from surecall.store.records.tables import RecordFilter
from surecall.wire import PROTOCOLS, find_protocol

from .harness import (
    CALL,
    SAY,
    ask,
    chat,
    completion,
    make_settings,
    reply,
    serve_faults,
    serve_gateway,
    serve_stubbed,
)

OBSERVE = {"x-surecall": "observe"}
_SLOW = (
    *("bytes_forever", "slow_bytes", "stall", "stall_in_body", "stream_slow", "stream_stall"),
    *("gzip_bomb", "gzip_bomb_stream", "stream_comments_forever", "stream_flood"),
)
_WAIT = Deadlines(first_byte_s=1, idle_s=1, total_s=3)


def render(protocol: str, model: str, text: str, *, stream: bool) -> tuple[str, bytes]:
    """Return the path, below the prefix of a format, and the body of a request."""
    body = json.dumps(chat(model, text, stream=stream)).encode()
    wire = find_protocol(protocol)
    asked = wire.render_request(ClientRequest.parse("chat_completions", body).ask())
    return wire.path_of(model, stream=stream), json.dumps(asked.body).encode()


async def fetch(origin: Origin, path: str, body: bytes, *more: tuple[str, str]) -> Any:
    """Return status, bytes, and whether all of them came."""
    got, status = bytearray(), 0
    try:
        head = [("content-type", "application/json"), *more]
        answer = await origin.send("POST", path, head, body, deadlines=_WAIT)
        status = answer.status
        await answer.pipe(got.extend)
    except ProviderError:
        return status, bytes(got), "cut"
    return status, bytes(got), "whole"


async def find_differences(
    folder: Path, protocol: str, trials: list[tuple[str, bytes]], observed: set[str]
) -> list[Any]:
    """Send requests with and without a gateway; return those with other replies."""
    prefix = find_protocol(protocol).default_prefix.strip("/")
    folder.mkdir(exist_ok=True)
    async with (
        serve_faults(folder, protocol=protocol) as (served, provider),
        FaultServer(twin := FaultyProvider()) as same,
    ):
        direct = Origin(same.url.removesuffix("/v1"), limits=ClientLimits(max_connections=4))
        through = Origin(served.url, limits=ClientLimits(max_connections=4))
        differ: list[Any] = []
        for number, (path, body) in enumerate(trials):
            provider.requests = twin.requests = number  # from which the ids of replies are made
            expected, found = await asyncio.gather(
                fetch(direct, f"/{prefix}{path}", body),
                fetch(through, f"/{prefix}{path}", body, ("x-surecall", "observe")),
            )
            if expected[2] == "cut":  # how much had come by then differs from time to time
                is_same = found[2] == "cut" and expected[1].startswith(found[1][:1000])
                is_same = is_same or found[0] >= 500  # nothing had come by then
            else:
                is_same = found == expected
            if not is_same:
                differ.append((path, body[:60], expected, found))
        await direct.close()
        await through.close()
        observed |= {record.observed for record in served.store.records}
    return differ


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_every_byte_passes_as_it_came(tmp_path: Path, protocol: str) -> None:
    """Of every fault in every format, whole and streamed, with and without a call."""
    texts = (CALL, SAY) if protocol == "chat_completions" else (CALL,)
    trials = [
        render(protocol, f"faults:{fault.name}", text, stream=stream)
        for fault in FAULTS
        if fault.name not in _SLOW
        for text in texts
        for stream in (False, True)
    ]
    assert len(trials) >= 348
    observed: set[str] = set()
    assert not await find_differences(tmp_path, protocol, trials, observed)
    assert observed >= {"clean", "repaired", "reasked"}


async def test_what_comes_slowly_or_never_ends_passes_as_it_came(tmp_path: Path) -> None:
    """Each has a gateway of its own, so that all are waited for at once."""
    observed: set[str] = set()
    trials = [
        render("responses", f"faults:{name}", CALL, stream=stream)
        for name in _SLOW
        for stream in (False, True)
    ]
    found = await asyncio.gather(
        *(
            find_differences(tmp_path / str(number), "responses", [trial], observed)
            for number, trial in enumerate(trials)
        )
    )
    assert not any(found)
    assert observed


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_what_would_have_been_done_is_recorded(tmp_path: Path, *, stream: bool) -> None:
    """A broken call passes as it is; the record has its receipts and what they would have made."""
    async with serve_faults(tmp_path) as (served, _provider):
        for fault, expected in (
            ("clean", "clean"),
            ("arguments_python", "repaired"),
            ("name_unknown", "reasked"),
        ):
            body = chat(f"faults:{fault}", stream=stream)
            await ask(served, "POST", "/v1/chat/completions", body, OBSERVE)
            assert (served.last.outcome, served.last.observed) == ("relayed", expected), fault
            assert served.last.tools == 1
            assert served.last.upstream_requests == 1
            assert (fault == "clean") == (not served.last.receipts and not served.last.defects)


async def test_settings_observe_everything_and_say_so(tmp_path: Path) -> None:
    """`policy.observe` needs no header; nothing is asked again and no probe is sent."""
    async with FaultServer(FaultyProvider()) as upstream:
        head = f'[upstreams.a]\nurl = "{upstream.url}"\nkey = "none"\n[policy]\nobserve = true\n'
        settings = make_settings(tmp_path, head)
        async with serve_gateway(settings, facts=tmp_path / "facts.db") as served:
            body = chat("faults:arguments_python")
            got = await ask(served, "POST", "/v1/chat/completions", body)
            assert got.headers["x-surecall-outcome"] == "relayed"
            assert served.last.observed == "repaired"
            assert not served.gateway.state.strategies._probes  # pyright: ignore[reportPrivateUsage]


async def test_a_reply_without_tools_is_not_looked_at(tmp_path: Path) -> None:
    """There is nothing that could be broken."""
    async with serve_faults(tmp_path) as (served, _provider):
        body = chat("faults:clean", SAY)
        del body["tools"]
        await ask(served, "POST", "/v1/chat/completions", body, OBSERVE)
        assert (served.last.observed, served.last.tools) == ("", 0)


async def test_a_cut_body_stays_cut(tmp_path: Path) -> None:
    """The client sees what the upstream sent, and that it ended too early."""
    whole = reply({"id": "a" * 100})
    async with serve_stubbed(tmp_path, [whole[:-20], None]) as (served, _stub):
        through = Origin(served.url)
        body = json.dumps(chat("m")).encode()
        found = await fetch(through, "/v1/chat/completions", body, ("x-surecall", "observe"))
        await through.close()
    assert found == (200, whole.partition(b"\r\n\r\n")[2][:-20], "cut")
    assert served.last.error_code


# Prompts


def hash_prompt(body: Any) -> Prompt:
    """Return what the gateway notes of the prompt of a request."""
    return read_prompt(decode_members(json.dumps(body).encode()))


def test_a_prompt_is_known_by_its_system_text_and_tools() -> None:
    """What users say does not change the name of a prompt; its text and its tools do."""
    plain = chat(messages=[{"role": "system", "content": "Be brief."}, {"role": "user"}])
    other = {**plain, "messages": [{"role": "system", "content": "Be long."}]}
    longer = {**plain, "messages": [*plain["messages"], {"role": "user", "content": "More."}]}
    names = [hash_prompt(body).name for body in (plain, longer, other)]
    assert names[0] == names[1] != names[2]
    assert len(names[0]) == 8
    for broken in ({"messages": [1]}, {"messages": [{"role": ["user"]}]}, {"contents": 1}):
        assert hash_prompt(broken).name == ""


async def test_a_client_may_name_its_prompt(tmp_path: Path) -> None:
    """The header wins over the hash, and is made harmless."""
    async with serve_faults(tmp_path) as (served, _provider):
        path = "/v1/chat/completions"
        await ask(served, "POST", path, chat(), {"x-surecall-prompt": "support/v 2"})
        named = served.last.prompt
        await ask(served, "POST", path, chat())
    assert named == "support/v_2"
    assert served.last.prompt == hash_prompt(chat()).name


def note_all(*bodies: Any) -> list[float | None]:
    """Return what is noted of these requests of one client."""
    prefixes = Prefixes()
    return [prefixes.note("a", hash_prompt(body)) for body in bodies]


TURNS = [
    {"role": "user" if at % 2 == 0 else "assistant", "content": str(at) * 50} for at in range(9)
]


@given(st.data())
@pytest.mark.parametrize("name", ["messages", "input", "contents"])
def test_the_share_ends_where_a_conversation_was_changed(name: str, data: st.DataObject) -> None:
    """All of the last request if only new turns come; what lies before a changed turn otherwise."""
    size = data.draw(st.integers(2, 8))
    changed = data.draw(st.integers(1, size - 1))
    stable, edited = TURNS[: size + 1], [*TURNS[: size + 1]]
    edited[changed] = {"role": "user", "content": "other"}
    tools = {"tools": [{"name": "a"}]}
    assert note_all({name: TURNS[:size], **tools}, {name: stable, **tools}) == [None, 1.0]
    first, share = note_all({name: TURNS[:size], **tools}, {name: edited, **tools})
    assert first is None
    assert share is not None
    assert abs(share - changed / size) < 0.25
    assert note_all({name: TURNS[:size], **tools}, {name: stable, "tools": []}) == [None, 0.0]


def test_another_conversation_is_no_change() -> None:
    """Neither one with another beginning, nor one that begins again."""
    other = [{"role": "user", "content": "other"}, *TURNS[1:4]]
    bodies = [{"messages": turns} for turns in (TURNS[:3], other, TURNS[:1], TURNS[:1])]
    assert note_all(*bodies) == [None] * 4


async def test_prefixes_are_a_metric(tmp_path: Path) -> None:
    """By upstream and model; the requests are those of one client."""
    async with serve_faults(tmp_path) as (served, _):
        for size in (1, 3):
            body = {"model": "faults:clean", "messages": TURNS[:size]}
            assert (await ask(served, "POST", "/v1/chat/completions", body)).status == 200
        text = served.gateway.render_metrics(()).decode()
        assert 'surecall_prefix_share_sum{upstream="faults",model="faults:clean"} 1' in text


PARENTS = [f"00-{digit * 32}-{digit * 16}-01" for digit in "ab"]


@pytest.mark.parametrize("path", ["chat/completions", "embeddings"])
async def test_spans_join_client_and_upstream(path: str, tmp_path: Path) -> None:
    """A span is the child of its client's and the parent of the upstream's, request by request."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    answers = [[reply(completion())]] * 3
    async with serve_stubbed(tmp_path, *answers) as (served, stub):
        served.gateway._spans = RequestSpans(provider)
        for parent in (*PARENTS, ""):
            headers = {"traceparent": parent, "tracestate": "x=1"} if parent else {}
            answer = await ask(served, "POST", f"/v1/{path}", chat(), headers)
            assert answer.status == 200
    sent = [re.search(r"traceparent: 00-(\w+)-(\w+)-0[13]", head) for head in stub.heads]
    for span, found in zip(kept.get_finished_spans(), sent, strict=True):
        assert found is not None
        assert span.context is not None
        assert found[1] == f"{span.context.trace_id:032x}"
        assert found[2] == f"{span.context.span_id:016x}"
    parents = [span.parent for span in kept.get_finished_spans()]
    ids = ["-".join((f"{one.trace_id:032x}", f"{one.span_id:016x}")) for one in parents if one]
    assert ids == [parent[3:-3] for parent in PARENTS]
    assert ["tracestate: x=1" in head for head in stub.heads] == [True, True, False]


# The report


def count(outcome: str, requests: int, observed: str = "", **more: Any) -> ModelCount:
    """Return so many requests of one kind."""
    counts = Counts(requests=requests, upstream_requests=requests)
    names = {"model": "m", "upstream": "u", "strategy": "native", "prompt": "p"} | more
    return ModelCount(
        **names,
        outcome=outcome,
        observed=observed,
        with_tools=True,
        counts=counts,
    )


def test_the_report_answers_what_would_have_been_right() -> None:
    """Observed replies and others are told apart, and those that nobody looked at left out."""
    seen = [
        count("relayed", 350, "clean"),
        count("relayed", 41, "repaired"),
        count("relayed", 12, "reasked"),
        count("relayed", 4, "refused"),
        count("relayed", 99),
        count("clean", 60, upstream="v"),
        count("repaired", 3, upstream="v"),
    ]
    rows = summarize(seen, by=("model", "upstream"))
    said = describe(rows)
    assert said[0] == (
        "Of 407 observed replies with tools, 57 were broken (14.0 %, 11.0 % to 17.7 %): 41 would "
        "have been right after a repair, 12 would have been asked for again, 4 refused."
    )
    assert said[1] == (
        "Of 63 replies with tools, 3 were broken (4.8 %, 1.6 % to 13.1 %): 3 repaired, "
        "0 asked for again, 0 not made right."
    )
    assert said[2:] == ["m via u: end observing with all steps; 16 have to be asked for again."]
    assert summarize(seen, by=("prompt",))[0].names == ("p",)


@pytest.mark.parametrize(
    ("seen", "advice"),
    [
        ([count("relayed", 40, "clean")], "observe longer"),
        ([count("relayed", 500, "clean")], "leave it as it is"),
        ([count("relayed", 80, "clean"), count("relayed", 20, "repaired")], "that is enough"),
        ([count("relayed", 9, "repaired")], "Of 9"),
    ],
)
def test_the_report_says_what_to_switch_on(seen: list[ModelCount], advice: str) -> None:
    """Only where there are enough replies, and only what they call for."""
    assert advice in describe(summarize(seen, by=("model", "upstream")))[-1]


async def test_figures_are_counted_in_the_store(tmp_path: Path) -> None:
    """A store counts observed replies by model, upstream and prompt."""
    store = SqliteRecords(tmp_path / "requests.db")
    async with serve_faults(tmp_path) as (served, _provider):
        for fault in ("clean", "arguments_python", "arguments_python"):
            head = {**OBSERVE, "x-surecall-prompt": "a"}
            await ask(served, "POST", "/v1/chat/completions", chat(f"faults:{fault}"), head)
    for record in served.store.records:
        await store.add(record)
    rows = summarize(await count_by_model(store, RecordFilter()), by=("upstream", "prompt"))
    await store.close()
    assert [(row.names, row.replies, row.repaired) for row in rows] == [(("faults", "a"), 3, 2)]
