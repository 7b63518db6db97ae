"""A key that a provider echoes, wherever it does, is in nothing that surecall shows or keeps."""

import asyncio
import base64
import gzip
import html
import json
import logging
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import pytest
from click.testing import CliRunner

import surecall
from support.family_server import render_stream
from support.upstream import FaultyUpstream, Received, http_response
from surecall.base.errors import SurecallError
from surecall.base.records import RawCall, ReasoningDelta, Reply, TextDelta, Usage
from surecall.cli import cli
from surecall.loop import RunResult, replay_trace, save_trace
from surecall.models.transport import HttpTransport, RetryPolicy
from surecall.text import encode
from surecall.wire import PROTOCOLS, WireProtocol, find_protocol

KEY = "kAnarie/7Qz+9xW2-vT5b_N8mR4"
"""No known shape: it must be found because it is known."""
ESCAPED = "".join(f"\\u{ord(char):04x}" for char in KEY)
ENCODED = base64.b64encode(KEY.encode()).decode()
NAME = KEY.replace("/", "-")
TEXT_CALL = f'<tool_call>{{"name": "save", "arguments": {{"text": "{KEY}"}}}}</tool_call>'
PLAIN = Reply(content="Done.", finish_reason="stop", usage=Usage(1, 1, 2))


class Place(NamedTuple):
    """Where the key stands in an answer."""

    id: str
    answer: Callable[[WireProtocol, bool], bytes]
    streams: bool = False
    """Whether it only exists in a stream."""


def said(**fields: Any) -> Callable[[WireProtocol, bool], bytes]:
    """Answer with a reply that holds the key."""
    return lambda family, stream: answer(
        family, Reply(**{"finish_reason": "stop", **fields}), stream
    )


def answer(family: WireProtocol, reply: Reply, stream: bool) -> bytes:
    """Render a reply as the provider would, whole or streamed."""
    if not stream:
        return http_response(encode(family.render_reply(reply)))
    return events(b"".join(render_stream(family, reply)))


def events(data: bytes) -> bytes:
    """Render an event stream."""
    return http_response(data, headers={"content-type": "text/event-stream"})


def sent(body: str | bytes, status: int = 200, **headers: str) -> Callable[..., bytes]:
    """Answer with a body, as it is."""
    data = body if isinstance(body, bytes) else body.encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _family, _stream: http_response(data, status, named)


def edited(edit: Callable[[bytes], bytes], **fields: Any) -> Callable[[WireProtocol, bool], bytes]:
    """Answer with a reply whose bytes were edited, with its length put right."""

    def render(family: WireProtocol, stream: bool) -> bytes:
        whole = answer(
            family, Reply(**{"content": "MARK", "finish_reason": "stop", **fields}), stream
        )
        head, _, body = whole.partition(b"\r\n\r\n")
        kind = "text/event-stream" if stream else "application/json"
        assert head
        return http_response(edit(body), headers={"content-type": kind})

    return render


def before(text: str) -> Callable[[WireProtocol, bool], bytes]:
    """Answer with a stream in which something stands before its second event."""

    def render(family: WireProtocol, _stream: bool) -> bytes:
        first, *rest = render_stream(family, Reply(content="so far", finish_reason="stop"))
        return events(first + text.encode() + b"".join(rest))

    return render


def error(message: str = "no", **fields: Any) -> str:
    """Render an error body."""
    return json.dumps({"error": {"message": message, **fields}})


def headed(status: int, name: str) -> Callable[[WireProtocol, bool], bytes]:
    """Answer with the key in a header."""
    return lambda family, stream: (
        http_response(error().encode(), status, {name: KEY})
        if status != 200
        else answer(family, PLAIN, stream).replace(b"\r\n", f"\r\n{name}: {KEY}\r\n".encode(), 1)
    )


def raw(text: str) -> Callable[[WireProtocol, bool], bytes]:
    """Answer with bytes that may not even be HTTP."""
    return lambda _family, _stream: text.encode()


def called(name: str, arguments: str, call_id: str = "c") -> Callable[[WireProtocol, bool], bytes]:
    """Answer with a call."""
    return said(calls=(RawCall(call_id, name, arguments),), finish_reason="tool_calls")


def swapped(*texts: str) -> Callable[[bytes], bytes]:
    """Put the key in the place of texts."""
    pattern = "|".join(map(re.escape, texts)).encode()
    return lambda body: re.sub(pattern, json.dumps(KEY).encode(), body)


def cut(family: WireProtocol, _stream: bool) -> bytes:
    """Answer with a stream that ends too early."""
    pieces = render_stream(family, Reply(content=f"a {KEY} b", finish_reason="stop"))
    return events(b"".join(pieces[:3]))


LONG = "x" * 180
PLACES = [
    *(Place(f"{code} message", sent(error(f"bad {KEY}"), code)) for code in (400, 401, 429, 500)),
    Place("200 message", sent(error(f"bad {KEY}"))),
    Place("200 code", sent(error(code=KEY))),
    Place("200 type", sent(error(type=KEY))),
    Place("400 param", sent(error(param=KEY), 400)),
    Place("400 long code", sent(error(code="c" * 70 + KEY), 400)),
    Place("200 request id", sent(json.dumps({"error": {"message": "x"}, "request_id": KEY}))),
    Place("400 metadata", sent(error(metadata={"provider_name": KEY, "raw": KEY}), 400)),
    Place("422 detail", sent(json.dumps({"detail": [{"msg": KEY, "input": KEY}]}), 422)),
    Place("gemini details", sent(error(details=[{"reason": KEY, "retryDelay": KEY}]), 429)),
    Place("edge of the message", sent(error("x" * 390 + KEY), 400)),
    Place("edge of the body", sent(error("x" * 1950 + KEY + "x" * 900), 400)),
    Place("many times", sent(error(KEY * 200), 400)),
    Place("plain text", sent(f"bad key {KEY}", content_type="text/plain")),
    Place("plain text 500", sent(f"bad key {KEY}", 500, content_type="text/plain")),
    Place("plain text, edge", sent(LONG + KEY * 30, content_type="text/plain")),
    Place("page title", sent(f"<html><title>{html.escape(KEY)}</title>", content_type="text/html")),
    Place("page 502", sent(f"<title>{'t' * 110}{KEY}</title>", 502, content_type="text/html")),
    Place("escaped", sent(error("MARK").replace("MARK", ESCAPED), 401)),
    Place("escaped in a broken body", sent(f'{{"choices": {ESCAPED}')),
    Place("URL", sent(error(quote(KEY, safe="")), 400)),
    Place("URL, every character", sent(error("".join(f"%{ord(c):02X}" for c in KEY)), 400)),
    Place("base64", sent(error(f"Basic {ENCODED}"), 401)),
    Place("upper case", sent(error(f"BEARER {KEY.upper()}"), 401)),
    Place("lower case", sent(error(f"bearer {KEY.lower()}"), 401)),
    Place("gzip", sent(gzip.compress(error(KEY).encode()), 400, content_encoding="gzip")),
    Place("unknown encoding", sent("x", content_encoding=KEY)),
    Place("broken JSON", sent(f'{{"choices": [{{"message": "{KEY}')),
    Place("not UTF-8", sent(b'{"choices": "' + KEY.encode() + b'\xff"}')),
    Place("not a reply", sent(json.dumps({KEY: KEY}))),
    Place("a list", sent(json.dumps([KEY]))),
    Place("a string", sent(json.dumps(KEY))),
    Place("redirect", sent("", 307, location=f"https://{NAME}.example/{KEY}?k={KEY}")),
    Place("rescued call", sent(error(failed_generation=TEXT_CALL), 400)),
    *(
        Place(f"{status} {name}", headed(status, name))
        for status in (200, 401)
        for name in ("x-request-id", "request-id", "x-ratelimit-reset", f"x-ratelimit-{NAME}", "x")
    ),
    Place("retry-after", headed(429, "retry-after")),
    Place("reason", raw(f"HTTP/1.1 400 {KEY}\r\ncontent-length: 0\r\n\r\n")),
    Place("broken status line", raw(f"HTTP/1.1 abc {KEY}\r\n\r\n")),
    Place("broken header", raw(f"HTTP/1.1 200 OK\r\n{KEY} {KEY}\r\n\r\n")),
    Place("content", said(content=f"Your key is {KEY}.")),
    Place("content, escaped", edited(lambda body: body.replace(b"MARK", ESCAPED.encode()))),
    Place("content, base64", said(content=f"It is {ENCODED}.")),
    Place("reasoning", said(content="ok", reasoning=f"I think {KEY}")),
    Place("call arguments", called("save", json.dumps({"text": KEY}))),
    Place("call arguments, escaped", called("save", f'{{"text": "{ESCAPED}"}}')),
    Place("call arguments, key", called("save", json.dumps({"text": "a", KEY: 1}))),
    Place("broken call arguments", called("save", f'{{"text": {KEY} oops')),
    Place("call name", called(KEY, "{}")),
    Place("call id", called("save", '{"text": "a"}', call_id=KEY)),
    Place("call as text", said(content=TEXT_CALL)),
    Place("finish reason", edited(swapped('"stop"', '"end_turn"', '"STOP"', '"completed"'))),
    Place("model", edited(swapped('"m"'))),
    Place("types", edited(swapped('"text"', '"output_text"', '"message"'))),
    Place("ids", edited(lambda body: body.replace(b'"id":"', b'"id":"' + KEY.encode()))),
    Place("fields", edited(lambda body: body.replace(b"{", f'{{"{KEY}":"{KEY}",'.encode()))),
    Place("error event", before(f"event: error\ndata: {error(KEY)}\n\n"), streams=True),
    Place("error event, text", before(f"event: error\ndata: {KEY}\n\n"), streams=True),
    Place("error chunk", before(f"data: {error(KEY, code=KEY)}\n\n"), streams=True),
    Place("comment", before(f": {KEY}\n\n"), streams=True),
    Place("event name", before(f"event: {KEY}\ndata: {{}}\n\n"), streams=True),
    Place("unreadable event", before(f"data: {{{KEY}\n\n"), streams=True),
    Place("unreadable event, escaped", before(f'data: {{"a": {ESCAPED}\n\n'), streams=True),
    Place("unreadable event, edge", before(f"data: {LONG}{KEY}{LONG}\n\n"), streams=True),
    Place("cut off", cut, streams=True),
]


def traces_of_key(text: str) -> list[str]:
    """Return the forms in which the key stands in a text."""
    views = {"plain": text, "URL": unquote(text), "HTML": html.unescape(text)}
    views["JSON"] = re.sub(r"\\+u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    found = [view for view, shown in views.items() if KEY.lower() in shown.lower()]
    return found + ["base64"] * (ENCODED[:-3] in text)


def exception_texts(failure: BaseException, seen: set[int] | None = None) -> Iterator[str]:
    """Yield everything an exception shows, with those behind it."""
    seen = set() if seen is None else seen
    if id(failure) in seen:
        return
    seen.add(id(failure))
    yield "".join(traceback.format_exception(failure))
    yield f"{failure} {failure!r} {failure.args!r} {vars(failure)!r}"
    for behind in (failure.__cause__, failure.__context__):
        if behind is not None:
            yield from exception_texts(behind, seen)


saved: list[str] = []


@surecall.tool(effect="write")
def save(text: str) -> str:
    """Save a text."""
    saved.append(text)
    return "saved"


async def artefacts(
    transport: HttpTransport, family: WireProtocol, stream: bool, folder: Path
) -> dict[str, str]:
    """Run once and return everything that it showed or kept."""
    happened: list[Any] = []
    journal, shown = folder / "journal", dict[str, str]()
    try:
        result = await surecall.run(
            "hi",
            model="m",
            preset=(),
            tools=[save],
            transport=transport,
            protocol=family,
            stream=stream,
            text_formats="all",
            journal=str(journal),
            on_event=happened.append,
        )
    except SurecallError as failure:
        shown["exception"] = "\n".join(exception_texts(failure))
        trace = getattr(failure, "trace", None)
    else:
        assert isinstance(result, RunResult)
        trace = result.trace
        shown["result"] = f"{result!r} {result.text} {result.history!r} {result._repr_html_()}"
        assert replay_trace(trace).same
    shown["journal"] = journal.read_text()
    shown["events"] = repr(happened)
    for kind in (TextDelta, ReasoningDelta):
        shown[kind.__name__] = "".join(event.text for event in happened if isinstance(event, kind))
    if trace is not None:
        save_trace(trace, folder / "trace")
        shown["trace"] = (folder / "trace").read_text() + repr(trace)
    return shown


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", PROTOCOLS)
async def test_an_echoed_key_is_in_nothing_that_a_run_shows_or_keeps(
    name: str, stream: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Exceptions, events, deltas, traces, logs and journals, for every place of the table."""
    caplog.set_level(logging.DEBUG)
    family, saved[:] = find_protocol(name), []
    answers: list[bytes] = []

    def script(_request: Received) -> bytes:
        return answers.pop() if answers else answer(family, PLAIN, stream)

    places = [place for place in PLACES if stream or not place.streams]
    found: dict[str, Any] = {}
    async with (
        FaultyUpstream(script) as upstream,
        HttpTransport(
            upstream.url, api_key=KEY, protocol=family, retry=RetryPolicy(max_retries=0)
        ) as transport,
    ):
        for number, place in enumerate(places):
            folder = tmp_path / str(number)
            folder.mkdir()
            answers[:] = [place.answer(family, stream)]
            shown = await artefacts(transport, family, stream, folder)
            assert not answers, f"{place.id} was not sent"
            found |= {f"{place.id}: {kind}": traces_of_key(text) for kind, text in shown.items()}
    found["log"] = traces_of_key(caplog.text)
    assert {where: forms for where, forms in found.items() if forms} == {}
    assert set(saved) == {"a"}, "a call ran with another value than the one that was written"


def test_the_test_finds_a_key() -> None:
    """What looks for the key finds it in every form."""
    for form in (KEY, KEY.upper(), ESCAPED, json.dumps(ESCAPED), quote(KEY, safe=""), ENCODED):
        assert traces_of_key(f"a {form} b")


BROKEN: tuple[Callable[[str], str], ...] = (
    lambda key: f"{key} unknown",
    lambda key: f'"{key}',
    lambda key: f'{{"error": {{"message": "no such key {key}"}}}}',
    lambda key: "x" * 190 + key + "y" * 50,
    lambda key: f'{{"choices": [{{"message": {{"content": "{key}"',
    lambda key: f"<html><title>{key}</title>",
)
BROKEN_STREAMS: tuple[Callable[[str], str], ...] = (
    lambda key: f"data: {{bad {key}\n\n",
    lambda key: f"data: {key}\n\n",
    lambda key: f"event: error\ndata: {key}\n\n",
    lambda key: f": {key}\n\ndata: [1]\n\n",
    lambda key: f"event: {key}\ndata: {{\n\n",
    lambda key: "data: " + "x" * 190 + key + "y" * 30 + "\n\n",
)


def longest_part(key: str, text: str) -> str:
    """Return the longest part of a key that is in a text, of four characters or more."""
    text, key, found = text.lower(), key.lower(), ""
    for start in range(len(key)):
        end = start + max(4, len(found) + 1)
        while end <= len(key) and key[start:end] in text:
            found = key[start:end]
            end += 1
    return found


def cut_answers(family: WireProtocol, key: str, stream: bool) -> Iterator[bytes]:
    """Yield answers that cannot be read and hold a key, whole and cut inside of it."""
    for make in (*BROKEN, *(BROKEN_STREAMS if stream else ())):
        whole = make(key)
        kind = "text/event-stream" if make in BROKEN_STREAMS else "application/json"
        first = whole.index(key) + 4
        for end in (len(whole), *range(first, first + len(key) - 4, 9)):
            yield http_response(whole[:end].encode(), headers={"content-type": kind})
    if stream:
        for size in range(4, len(key), 9):
            said = Reply(content=f"so far {key[:size]}", finish_reason="stop")
            whole = b"".join(render_stream(family, said))
            end = whole.index(b"\n\n", whole.index(key[size - 3 : size].encode())) + 2
            for tail in (b"", b"data: {bad " + key[size:].encode() + b"\n\n"):
                yield events(whole[:end] + tail)


@pytest.mark.parametrize("length", [16, 33, 64])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", PROTOCOLS)
async def test_no_part_of_a_key_is_shown_wherever_an_answer_is_cut(
    name: str, stream: bool, length: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a key in an answer that cannot be read, not four characters in a row are anywhere."""
    caplog.set_level(logging.DEBUG)
    # No letters of hexadecimal numbers, which ids are made of.
    key = "".join(Random(length).choices("ghjkmnpqrstvwxyzGHJKMNPQRSTVWXYZ456789", k=length))
    family = find_protocol(name)
    found: dict[str, str] = {}
    answers: list[bytes] = []
    async with (
        FaultyUpstream(lambda _: answers[-1]) as upstream,
        HttpTransport(
            upstream.url, api_key=key, protocol=family, retry=RetryPolicy(max_retries=0)
        ) as transport,
    ):
        for number, data in enumerate(cut_answers(family, key, stream)):
            answers.append(data)
            folder = tmp_path / str(number)
            folder.mkdir()
            shown = await artefacts(transport, family, stream, folder)
            shown["log"] = caplog.text
            caplog.clear()
            found |= {
                f"{data[-60:]!r}: {kind}": part
                for kind, text in shown.items()
                if (part := longest_part(key, text))
            }
    assert len(answers) > 10
    assert found == {}


# the command line

COMMANDS = {
    "run": (
        "run",
        "hi",
        "--model",
        "m",
        "--trace",
        "trace.json",
        "--journal",
        "journal",
        "--debug",
    ),
    "run as JSON": ("run", "hi", "--model", "m", "--json"),
    "run streamed": ("run", "hi", "--model", "m", "--stream"),
    "probe": ("probe", "m"),
    "probe as JSON": ("probe", "m", "--json"),
    "doctor": ("config", "doctor"),
}
CLI_PLACES = ("200 message", "edge of the body", "call arguments", "unreadable event")


def files_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield every file with its content."""
    for file in folder.rglob("*"):
        if file.is_file():
            yield file.name, file.read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize(
    "place", [place for place in PLACES if place.id in CLI_PLACES], ids=lambda place: place.id
)
async def test_an_echoed_key_is_in_nothing_that_the_command_line_prints_or_writes(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The terminal, traces, journals, the store of evals, its reports, and probed facts."""
    monkeypatch.chdir(tmp_path)
    family = find_protocol("chat_completions")
    shown: dict[str, str] = {}

    def script(request: Received) -> bytes:
        return place.answer(family, place.streams or b'"stream":true' in request.body)

    async with FaultyUpstream(script) as upstream:
        variables = {
            "SURECALL_BASE_URL": upstream.url,
            "SURECALL_API_KEY": KEY,
            "SURECALL_CACHE_DIR": str(tmp_path / "cache"),
            "SURECALL_EVALS_DIR": str(tmp_path / "evals"),
            "SURECALL_RETRY__MAX_RETRIES": "0",
        }

        async def invoke(*words: str) -> str:
            runner = CliRunner()
            result = await asyncio.to_thread(runner.invoke, cli, list(words), env=variables)
            return result.stdout + result.stderr

        for name, words in COMMANDS.items():
            shown[name] = await invoke(*words)
        (tmp_path / "reply").write_bytes(script(Received("", {}, b"", 1)).partition(b"\r\n\r\n")[2])
        shown["read"] = await invoke("read", "reply")
        shown["read as JSON"] = await invoke("read", "reply", "--json")
        shown["replay"] = await invoke("replay", "trace.json")
        model = f"m@{upstream.url}/v1"
        shown["eval"] = await invoke(
            *("eval", "run", "--models", model, "--scenarios", "happy_path", "--store", "runs.db"),
            *("--strategies", "production", "--report", "html,json,csv,jsonl,md,junit"),
            *("-o", "report"),
        )
        shown["runs"] = await invoke("eval", "runs", "--store", "runs.db", "--json")
        assert upstream.calls > 5
    (tmp_path / "reply").unlink()
    shown |= dict(files_in(tmp_path))
    assert {"trace.json", "journal", "runs.db", "report.html"} <= set(shown)
    found = {name: forms for name, text in shown.items() if (forms := traces_of_key(text))}
    assert found == {}
