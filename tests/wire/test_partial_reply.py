"""A stream without end is refused in time, and holds little until then, in every wire format."""

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from support.streams import chunk, event
from surecall.base.errors import Code, ProviderError
from surecall.wire import find_protocol, partial_reply

MB = 1_000_000
TEXT = "x" * 2_000


def call(**fields: Any) -> bytes:
    """Return a chat event with one piece of a call."""
    return chunk({"tool_calls": [fields]})


def block(index: int, **fields: Any) -> bytes:
    """Return the event that begins a content block."""
    return event({"type": "content_block_start", "index": index, "content_block": fields})


def piece(kind: str, **fields: Any) -> bytes:
    """Return the event that continues a content block."""
    delta = {"type": f"{kind}_delta", **fields}
    return event({"type": "content_block_delta", "index": 0, "delta": delta})


def ending(**fields: Any) -> bytes:
    """Return the event that says how a message ends."""
    return event({"type": "message_delta", **fields})


def output(kind: str, **fields: Any) -> bytes:
    """Return an event of the Responses format."""
    return event({"type": f"response.{kind}", "output_index": 0, **fields})


def parts(*items: Any) -> bytes:
    """Return a Gemini chunk with these parts."""
    return event({"candidates": [{"index": 0, "content": {"parts": list(items)}}]})


@dataclass(frozen=True)
class Endless:
    """Events without end: each is made from its number."""

    id: str
    make: Callable[[int], bytes]
    protocol: str = "chat_completions"


ENDLESS = [
    Endless("text", lambda n: chunk({"content": TEXT})),
    Endless("text in parts", lambda n: chunk({"content": [{"type": "text", "text": TEXT}]})),
    Endless("wide text", lambda n: chunk({"content": "a" * 100 + "\U0001f600"})),
    Endless("reasoning", lambda n: chunk({"reasoning_content": TEXT})),
    Endless("refusal", lambda n: chunk({"refusal": TEXT})),
    Endless("thoughts", lambda n: chunk({"reasoning_details": [{"type": "x", "data": TEXT}]})),
    Endless("arguments", lambda n: call(index=0, function={"name": "t", "arguments": TEXT})),
    Endless("objects", lambda n: call(index=0, function={"name": "t", "arguments": {"n": n}})),
    Endless("calls", lambda n: call(index=n, id=f"c{n}", function={"name": "t"})),
    Endless("unnumbered calls", lambda n: call(id=f"c{n}", function={"name": "t"})),
    Endless("a name", lambda n: call(index=0, function={"name": "ab"[n % 2] * 50})),
    Endless("fields of a call", lambda n: call(index=0, **{f"k{n}": [n]})),
    Endless("fields", lambda n: chunk({f"k{n}": {"n": [n]}})),
    Endless("a list", lambda n: chunk({"annotations": [{"n": n}]})),
    Endless("legacy call", lambda n: chunk({"function_call": {"name": "t", "arguments": TEXT}})),
    Endless("choices", lambda n: event({"choices": [{"index": n, "delta": {"content": "a"}}]})),
    Endless("text", lambda n: piece("text", text=TEXT), "messages"),
    Endless("thinking", lambda n: piece("thinking", thinking=TEXT), "messages"),
    Endless("input", lambda n: piece("input_json", partial_json=TEXT), "messages"),
    Endless("blocks", lambda n: block(n, type="tool_use", id=f"t{n}", input={}), "messages"),
    Endless("same blocks", lambda n: block(0, type="text", text=""), "messages"),
    Endless("fields", lambda n: ending(delta={f"k{n}": n}), "messages"),
    Endless("text", lambda n: output("output_text.delta", delta=TEXT), "responses"),
    Endless("reasoning", lambda n: output("reasoning_text.delta", delta=TEXT), "responses"),
    Endless(
        "arguments", lambda n: output("function_call_arguments.delta", delta=TEXT), "responses"
    ),
    Endless(
        "items",
        lambda n: output("output_item.added", item={"type": "message", "id": f"m{n}"}),
        "responses",
    ),
    Endless(
        "contents",
        lambda n: output("output_text.delta", content_index=n, delta="a"),
        "responses",
    ),
    Endless("text", lambda n: parts({"text": TEXT}), "gemini"),
    Endless("thoughts", lambda n: parts({"text": TEXT, "thought": True}), "gemini"),
    Endless("signed thoughts", lambda n: parts({"text": "", "thoughtSignature": "s"}), "gemini"),
    Endless("empty parts", lambda n: parts({}), "gemini"),
    Endless("calls", lambda n: parts({"functionCall": {"name": "t", "args": {"n": n}}}), "gemini"),
    Endless("candidates", lambda n: event({"candidates": [{"index": n}]}), "gemini"),
]


def tried(cases: list[Endless]) -> Any:
    """Run a test once for each case."""
    return pytest.mark.parametrize("case", cases, ids=lambda case: f"{case.protocol} {case.id}")


def grown_bytes(case: Endless, wire: Iterator[bytes]) -> tuple[int, str]:
    """Return how much memory folding took at most, and the code it ended with."""
    folder = find_protocol(case.protocol).open_stream()
    tracemalloc.start()
    try:
        for data in wire:
            folder.feed(data)
    except ProviderError as error:
        return tracemalloc.get_traced_memory()[1], error.code
    else:
        return tracemalloc.get_traced_memory()[1], ""
    finally:
        tracemalloc.stop()


@tried(ENDLESS)
def test_a_reply_without_end_is_refused_before_it_is_large(
    case: Endless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever of a reply does not end: with a tenth of the limits, less than 2 MB are held."""
    monkeypatch.setattr(partial_reply, "_MAX_BYTES", partial_reply._MAX_BYTES // 10)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(partial_reply, "_MAX_PARTS", partial_reply._MAX_PARTS // 10)  # pyright: ignore[reportPrivateUsage]
    held, code = grown_bytes(case, map(case.make, range(20_000)))
    assert code == Code.STREAM_TOO_LARGE
    assert held < 2 * MB


@tried(
    [
        Endless("a plain body", lambda n: b'{"a": "' + b"x" * 50_000),
        Endless("one event", lambda n: b"data: " + b"x" * 10_000 + b"\n"),
        Endless("one line", lambda n: b"data: " + b"x" * 50_000),
    ]
)
def test_an_event_or_body_without_end_is_refused_before_it_is_large(case: Endless) -> None:
    """What cannot be understood before it is whole may take 16 MiB, and no copy of that."""
    held, code = grown_bytes(case, map(case.make, range(5_000)))
    assert code == Code.STREAM_TOO_LARGE
    assert held < 20 * MB


HARMLESS = [
    Endless("blank lines", lambda n: b"\n\n\n\n"),
    Endless("lines of space", lambda n: b"    \n"),
    Endless("comments", lambda n: b": ping\n\n"),
    Endless("empty events", lambda n: b"data:\n\n"),
    Endless("names and ids", lambda n: f"event: e\nid: {n}\n\n".encode()),
    Endless("empty deltas", lambda n: chunk({"content": "", "role": "assistant"})),
    Endless("no choices", lambda n: event({"choices": []})),
    Endless("usage", lambda n: event({"choices": [], "usage": {"completion_tokens": n}})),
    Endless("empty arguments", lambda n: call(index=0, function={"name": "t", "arguments": ""})),
    Endless("the same field", lambda n: chunk({"token": n})),
    Endless("pings", lambda n: event({"type": "ping"}), "messages"),
    Endless("empty pieces", lambda n: piece("text", text=""), "messages"),
    Endless("usage", lambda n: ending(usage={"output_tokens": n}), "messages"),
    Endless("unknown events", lambda n: output("unknown"), "responses"),
    Endless("beginnings", lambda n: output("in_progress", response={"id": f"r{n}"}), "responses"),
    Endless("empty text", lambda n: parts({"text": ""}), "gemini"),
    Endless("usage", lambda n: event({"usageMetadata": {"totalTokenCount": n}}), "gemini"),
]


@tried(HARMLESS)
def test_events_that_bring_nothing_are_not_kept(case: Endless) -> None:
    """They may go on until the stream is too large, and hold nothing."""
    held, code = grown_bytes(case, map(case.make, range(3_000)))
    assert code == ""
    assert held < 100_000


@pytest.mark.parametrize("protocol", ["chat_completions", "messages", "responses", "gemini"])
@pytest.mark.parametrize(("value", "times"), [("[]", 250_000), ("{}", 250_000), ("1", 2_500_000)])
def test_an_event_of_very_many_values_is_refused_unread(
    protocol: str, value: str, times: int
) -> None:
    """A few megabytes of empty lists would take hundreds when they are decoded."""
    wire = b'data: {"x": [' + ",".join([value] * times).encode() + b"]}\n\n"
    folder = find_protocol(protocol).open_stream()
    with pytest.raises(ProviderError) as caught:
        folder.feed(wire)
    assert caught.value.code == Code.STREAM_TOO_LARGE


def test_twenty_thousand_calls_are_folded() -> None:
    """The limit of parts is above what a careless server may send; of the calls few will run."""
    entries = [{"id": f"c{n}", "function": {"name": "t", "arguments": "{}"}} for n in range(20_000)]
    folder = find_protocol("chat_completions").open_stream()
    folder.feed(chunk({"tool_calls": entries}))
    folder.feed(chunk({}, "tool_calls"))
    assert [entry["id"] for entry in folder.close().message["tool_calls"]] == [
        entry["id"] for entry in entries
    ]


def test_text_in_halves_of_characters_is_joined_as_it_was() -> None:
    """Pieces are kept as bytes; a character cut in two between events is whole in the end."""
    folder = find_protocol("chat_completions").open_stream()
    for half in ("\\ud83d", "\\ude00"):
        folder.feed(b'data: {"choices":[{"delta":{"content":"' + half.encode() + b'"}}]}\n\n')
    folder.feed(chunk({}, "stop"))
    assert folder.close().message["content"] == "\U0001f600"
