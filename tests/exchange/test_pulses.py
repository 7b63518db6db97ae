"""Events that say nothing: a client hears something while a call is held back for it."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.records import RawCall
from surecall.exchange import Policy
from surecall.exchange.streams import StreamRelay
from surecall.text import SSEReader

from .streaming import (
    ARGUMENTS,
    FORMATS,
    calls_in,
    fold,
    recorded,
    request_for,
    route_to,
    slow_stream,
    stream_of,
    text_call,
)

PAIRS = [(client, upstream) for client in FORMATS for upstream in FORMATS]
WRITTEN = json.dumps(ARGUMENTS, ensure_ascii=False)


class Heard:
    """What a client gets of a stream, when it is looked after behind every event or some."""

    def __init__(self, client: str, upstream: str) -> None:
        self.client = client
        self.relay = StreamRelay(request_for(client), route_to(upstream), Policy())
        self.pulses: list[bytes] = []
        self.data = b""

    def feed(self, chunk: bytes, *, looks: bool = True) -> None:
        """Pass bytes on, and look after the client."""
        self.data += self.relay.feed(chunk)
        if looks and (pulse := self.relay.pulse()):
            self.pulses.append(pulse)
            self.data += pulse

    def finish(self) -> bytes | None:
        """End the stream, or return what is asked again."""
        ending = self.relay.finish()
        self.data += ending.data
        return ending.ask

    def documents(self) -> list[dict[str, Any]]:
        """Return the data of all events."""
        reader = SSEReader()
        events = reader.feed(self.data) + reader.close()
        found = [json.loads(event.data) for event in events if event.data != "[DONE]"]
        return cast("list[dict[str, Any]]", found)


def without(client: str, upstream: str, chunks: list[bytes]) -> Heard:
    """Return what a client gets that nobody looks after."""
    heard = Heard(client, upstream)
    for chunk in chunks:
        heard.feed(chunk, looks=False)
    heard.finish()
    return heard


def assert_same(heard: Heard, plain: Heard) -> None:
    """The reply is the same with and without, and so are its numbers."""
    reply, other = fold(heard.client, heard.data), fold(plain.client, plain.data)
    assert calls_in(reply) == calls_in(other)
    assert (reply.content or "", reply.reasoning) == (other.content or "", other.reasoning)
    assert (reply.finish_reason, reply.usage) == (other.finish_reason, other.usage)
    assert reply.defects == other.defects
    if heard.client == "responses":
        numbers = [item["sequence_number"] for item in heard.documents()]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert_snapshots(heard.documents())
    if heard.client == "messages":
        assert_in_blocks(heard.documents())


def assert_snapshots(events: list[dict[str, Any]]) -> None:
    """Every event that has the response has all items so far: some clients go on from there."""
    items: dict[int, Any] = {}
    for event in events:
        if event["type"] in ("response.output_item.added", "response.output_item.done"):
            items[event["output_index"]] = event["item"]
        elif event["type"] == "response.in_progress":
            assert event["response"].get("output", []) == [items[at] for at in sorted(items)]


def assert_in_blocks(events: list[dict[str, Any]]) -> None:
    """Every piece of a message is in a block that has begun and has not ended."""
    is_open: set[int] = set()
    for event in events:
        if event["type"] == "content_block_start":
            is_open.add(event["index"])
        elif event["type"] == "content_block_delta":
            assert event["index"] in is_open
        elif event["type"] == "content_block_stop":
            is_open.remove(event["index"])
    assert not is_open
    assert events[0]["type"] == "message_start"


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
@pytest.mark.parametrize("text", ["", "I save it."])
def test_a_client_hears_something_while_a_call_comes(text: str, client: str, upstream: str) -> None:
    """Behind every piece of a call at most one look passes in silence; the reply is the same."""
    chunks = slow_stream(upstream, WRITTEN, text=text)
    heard = Heard(client, upstream)
    for chunk in chunks:
        heard.feed(chunk)
    assert heard.finish() is None
    least = len(chunks) // 2 if upstream != "gemini" else 1
    assert len(heard.pulses) >= least
    assert not any(pulse.startswith(b":") or b"ping" in pulse for pulse in heard.pulses)
    assert_same(heard, without(client, upstream, chunks))


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_client_hears_something_while_the_model_is_asked_again(
    client: str, upstream: str
) -> None:
    """Also before the second reply brings anything."""
    wrong = RawCall("c1", "save", '{"text": "a"}')
    right = RawCall("c2", "save", WRITTEN)
    heard, plain = Heard(client, upstream), Heard(client, upstream)
    for one, looks in ((heard, True), (plain, False)):
        for event in stream_of(upstream, wrong, text="I save it."):
            one.feed(event, looks=looks)
        assert one.finish() is not None
        before = len(one.pulses)
        for _ in range(3):
            one.feed(b"", looks=looks)
        assert (len(one.pulses) - before >= 2) is looks
        for event in stream_of(upstream, right):
            one.feed(event, looks=looks)
        assert one.finish() is None
    assert_same(heard, plain)


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
@pytest.mark.parametrize("text", ["", "I do.\n"])
def test_a_client_hears_something_while_a_call_is_written_as_text(
    text: str, client: str, upstream: str
) -> None:
    """Text that is held because it makes a call is a silence as well."""
    call = {"name": "save", "arguments": ARGUMENTS}
    chunks = text_call(upstream, f"{text}<tool_call>{json.dumps(call)}</tool_call>")
    heard = Heard(client, upstream)
    for chunk in chunks:
        heard.feed(chunk)
    heard.finish()
    assert len(heard.pulses) > len(chunks) // 2
    assert_same(heard, without(client, upstream, chunks))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", ["text", "parallel"])
def test_recorded_streams_stay_as_they_are(name: str, kind: str) -> None:
    """A stream that is looked after brings the same reply, and text that flows has no additions."""
    try:
        chunks = recorded(name, kind)
    except FileNotFoundError:
        chunks = recorded(name, "text")
    heard = Heard(name, name)
    for chunk in chunks:
        heard.feed(chunk)
    heard.finish()
    assert_same(heard, without(name, name, chunks))


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_said_before_the_endpoint_says_anything(name: str) -> None:
    """As long as only comments came, another endpoint may still answer."""
    for upstream in FORMATS:
        heard = Heard(name, upstream)
        for _ in range(3):
            heard.feed(b": waiting\n\n")
        assert heard.pulses == []


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_said_behind_the_end(name: str) -> None:
    """A stream that has its end is left alone."""
    heard = Heard(name, name)
    for chunk in stream_of(name, RawCall("c1", "save", WRITTEN)):
        heard.feed(chunk)
    heard.finish()
    assert heard.relay.pulse() == b""


@given(
    client=st.sampled_from(FORMATS),
    upstream=st.sampled_from(FORMATS),
    size=st.integers(1, 400),
    looks=st.lists(st.booleans(), min_size=1, max_size=9),
    text=st.sampled_from(["", "I save it.", "See {this} or [that]."]),
)
def test_the_reply_is_the_same_wherever_it_is_looked_after(
    client: str, upstream: str, size: int, looks: list[bool], text: str
) -> None:
    """Whatever the chunks are, and whenever somebody looks."""
    joined = b"".join(slow_stream(upstream, WRITTEN, text=text))
    chunks = [joined[at : at + size] for at in range(0, len(joined), size)]
    heard = Heard(client, upstream)
    for number, chunk in enumerate(chunks):
        heard.feed(chunk, looks=looks[number % len(looks)])
    heard.finish()
    assert_same(heard, without(client, upstream, chunks))
