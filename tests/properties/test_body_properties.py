"""Replies whose parts are deleted, retyped, doubled or moved: a reply or a coded error."""

import json
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import ProviderError
from surecall.base.records import Reply
from surecall.reading import read_reply
from surecall.wire import PROTOCOLS, find_protocol

RECORDED = Path(__file__).parents[1] / "wire" / "recorded"
OTHERS: tuple[Any, ...] = (None, 5, True, "x", "", [], [5], {}, {"a": 1}, "user", "stop")
ENDS = ("response.completed", "response.incomplete", "message_stop")
FINISH_KEYS = frozenset({"finish_reason", "finishReason", "stop_reason"})


def _recorded(name: str, kind: str) -> list[Any]:
    found = [json.loads(path.read_text("utf-8")) for path in sorted((RECORDED / name).glob("*"))]
    return [case[kind] for case in found if kind in case]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """List every place inside a JSON value: what holds it, and the key or index."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    found: list[tuple[Any, Any]] = []
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            found += _places(value[key])
    return found


def mutate(document: Any, random: Random) -> None:
    """Delete, retype, double or move one part of a document."""
    places = _places(document)
    if not places:
        return
    holder, key = random.choice(places)
    kind = random.choice(("delete", "retype", "retype", "double", "move"))
    if kind == "delete":
        del holder[key]
    elif kind == "double" and isinstance(holder, list):
        holder.insert(random.randrange(len(holder) + 1), deepcopy(holder[key]))
    elif kind == "move" and isinstance(holder, list):
        holder.insert(random.randrange(len(holder)), holder.pop(key))
    else:
        holder[key] = deepcopy(random.choice(OTHERS))


def _render(event: Any) -> bytes:
    if isinstance(event, dict):
        name = f"event: {event['event']}\n" if isinstance(event.get("event"), str) else ""
        return f"{name}data: {json.dumps(event.get('data'))}\n\n".encode()
    return f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()


def _find(value: Any, key: str) -> list[Any]:
    """Find all values of a key, wherever it is."""
    if isinstance(value, list):
        return [item for part in value for item in _find(part, key)]
    if not isinstance(value, dict):
        return []
    here = [value[key]] if key in value else []
    return here + [item for part in value.values() for item in _find(part, key)]


def check_outcome(reply: Reply, sent: Any) -> None:
    """Check that a reply says something, or that what was sent has the marks of an empty one."""
    if reply.content or reply.reasoning or reply.calls:
        return
    finishes = [item for key in FINISH_KEYS for item in _find(sent, key)]
    finishes += _find(sent, "status") + _find(sent, "type")
    assert any(isinstance(item, str) and item for item in finishes)
    marks = {*map(str, _find(sent, "role")), *map(str, _find(sent, "object"))}
    named = _find(sent, "modelVersion") + _find(sent, "responseId") + _find(sent, "usageMetadata")
    is_explained = any(item not in ("STOP", None) for item in _find(sent, "finishReason"))
    assert marks & {"assistant", "model", "response"} or named or is_explained
    assert not {"user", "system", "tool"} & marks


def _ids_behind(events: list[Any]) -> set[str]:
    """Return the ids that only events behind the one with the finish have."""
    for place, event in enumerate(events):
        data = event.get("data") if isinstance(event, dict) else None
        if not isinstance(data, dict) or data.get("type") == "message_start":
            continue
        said = [item for key in FINISH_KEYS for item in _find(data, key)]
        if any(isinstance(item, str) and item for item in said) or data.get("type") in ENDS:
            before, behind = (
                {
                    item
                    for key in ("id", "call_id")
                    for item in _find(part, key)
                    if item.__class__ is str
                }
                for part in (events[: place + 1], events[place + 1 :])
            )
            return behind - before
    return set()


each_name = pytest.mark.parametrize("name", sorted(PROTOCOLS))
many = settings(max_examples=150, deadline=None)


@each_name
@many
@given(seed=st.integers(0, 10**9), count=st.integers(1, 3))
def test_a_changed_body_is_a_reply_or_a_coded_error(name: str, seed: int, count: int) -> None:
    """It is never an empty answer unless it has every mark of one."""
    random, family = Random(seed), find_protocol(name)
    document = deepcopy(random.choice(_recorded(name, "body")))
    for _ in range(count):
        mutate(document, random)
    for open_body in (False, True):
        data = json.dumps(document).encode()
        try:
            if open_body:
                folder = family.open_stream()
                folder.feed(data)
                raw = folder.close()
            else:
                raw = family.parse_body(data)
        except ProviderError:
            continue
        reply = family.parse_message(raw)
        check_outcome(reply, document)
        read_reply(reply)


@each_name
@many
@given(seed=st.integers(0, 10**9), count=st.integers(1, 3), step=st.integers(1, 400))
def test_changed_events_are_a_reply_or_a_coded_error(
    name: str, seed: int, count: int, step: int
) -> None:
    """Wherever the bytes are cut, the outcome is the same, and no call comes from behind."""
    random, family = Random(seed), find_protocol(name)
    events = deepcopy(random.choice(_recorded(name, "events")))
    for _ in range(count):
        mutate(events, random)
    data = b"".join(_render(event) for event in events)
    outcomes: list[Any] = []
    for size in (len(data) + 1, step):
        folder = family.open_stream()
        try:
            for start in range(0, len(data), size):
                folder.feed(data[start : start + size])
            raw = folder.close()
        except ProviderError as error:
            outcomes.append(error.code)
            continue
        reply = family.parse_message(raw)
        check_outcome(reply, events)
        assert not _ids_behind(events) & {
            call.id for call in reply.calls if call.id.__class__ is str
        }
        read_reply(reply)
        outcomes.append(reply)
    assert outcomes[0] == outcomes[1]
