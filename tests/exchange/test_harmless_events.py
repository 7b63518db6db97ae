"""A streamed reply without calls reaches the client byte for byte, however odd its events are."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Reply, Usage
from surecall.exchange import Policy
from surecall.exchange.streams import StreamRelay
from surecall.wire import find_protocol

from .streaming import FORMATS, request_for, route_to

ROLES = ("tool", "user", "system", "ASSISTANT", 5, ["assistant"], {"a": 1}, "", None)
BESIDE = (
    b'data: {"type": "later.event", "more": [1]}\n\n',
    b'data: {"usage": {"prompt_tokens": 1}}\n\n',
    b'data: {"usageMetadata": {"promptTokenCount": 1}}\n\n',
    b'data: {"choices": []}\n\n',
    b'data: {"candidates": []}\n\n',
    b'data: {"error": null}\n\n',
    b"data: {}\n\n",
)


def stream(name: str) -> list[bytes]:
    """Return the events of a reply that is text."""
    writer = find_protocol(name).open_writer(model="m", reply_id="r1")
    written = [writer.begin(), *map(writer.text, ("All ", "is ", "saved. ", "5 < 6."))]
    written.append(writer.end(Reply(finish_reason="stop", usage=Usage(3, 4, 7))))
    return [event + b"\n\n" for event in b"".join(written).split(b"\n\n")[:-1]]


def changed(event: bytes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """Return an event, every object of which was changed."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return change({key: walk(item) for key, item in as_fields(value).items()})
        return [walk(item) for item in as_list(value)] if isinstance(value, list) else value

    head, mark, data = event.rpartition(b"data: ")
    if not data.startswith(b"{"):
        return event
    return head + mark + json.dumps(walk(json.loads(data))).encode() + b"\n\n"


def check(name: str, events: list[bytes]) -> None:
    """Check that the events pass as they are, however they are split."""
    data = b"".join(events)
    small = [data[at : at + 13] for at in range(0, len(data), 13)]
    for reads in ([data], events, small):
        relay = StreamRelay(request_for(name), route_to(name), Policy(), request_id="r-1")
        passed = b"".join([relay.feed(read) for read in reads])
        ending = relay.finish()
        assert (ending.outcome, ending.error) == ("clean", None)
        if name == "messages":  # clients look for the name of every event
            data = b"".join(map(named, events))
        assert (passed + ending.data).split(b": surecall")[0] == data


def named(event: bytes) -> bytes:
    """Return an event with its name."""
    kind = json.loads(event.rpartition(b"data: ")[2]).get("type")
    return (
        event
        if event.startswith(b"event: ") or not kind
        else b"event: %b\n" % kind.encode() + event
    )


@pytest.mark.parametrize("role", ROLES, ids=repr)
@pytest.mark.parametrize("name", FORMATS)
def test_role(name: str, role: Any) -> None:
    """Whoever is said to have written the message, the client decides."""

    def put(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "role": role} if "role" in value else value

    check(name, [changed(event, put) for event in stream(name)])


@pytest.mark.parametrize("name", FORMATS)
def test_begins_twice(name: str) -> None:
    """A reply may begin twice."""
    events = stream(name)
    check(name, [events[0], *events])


@pytest.mark.parametrize("name", FORMATS)
def test_more_members(name: str) -> None:
    """Any object may have members that are not known."""
    events = stream(name)
    check(name, [changed(event, lambda value: {**value, "more": [None]}) for event in events])


@pytest.mark.parametrize("beside", BESIDE, ids=repr)
@pytest.mark.parametrize("name", FORMATS)
def test_events_beside_the_text(name: str, beside: bytes) -> None:
    """Between pieces of text may be events that say nothing."""
    events = stream(name)
    beside = named(beside) if name in ("messages", "responses") else beside
    for at in range(1, len(events) - 1):
        check(name, [*events[:at], beside, *events[at:]])
