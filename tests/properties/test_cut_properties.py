"""Whatever is cut from a call, a tool with effects never runs with less than was meant."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cut_calls import FINISHES, RENDERERS, Recorder, cut_on_wire, parse, wires
from surecall.base.records import Reply
from surecall.reading import read_reply
from surecall.wire import PROTOCOLS, find_protocol

RECORDER = Recorder()
CALLS: tuple[dict[str, Any], ...] = (
    {"keep": ["/a", [{"b": 22}]], "dry_run": True},
    {"path": 'a "é😀\n', "count": 12},
)
NESTED: dict[str, Any] = {"keep": [{"path": "/a"}, {"path": "/b"}], "options": {"n": {"m": 10}}}
FIRST = {"messages": 1}
"""No text at all is how this format streams a call without arguments, so it is one."""
OTHER_WORDS = ("abort", "insufficient_system_resource", "MAX_TOKENS", "tool_calls")

texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6) | st.sampled_from(
    ["", '"', "\\", "it's", "a, b", "}]", "</tool_call>", "\n", "12"]
)
values = st.recursive(
    texts | st.integers(-999, 999) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "keep": st.lists(values, max_size=3),
        "path": texts,
        "count": st.integers(-9999, 9999) | st.sampled_from([1.25, -0.5, 1e30]),
        "options": st.dictionaries(texts, values, max_size=2),
        "dry_run": st.booleans(),
        "note": texts,
    },
)


def _check(reply: Reply | None, meant: list[dict[str, Any]], shown: object) -> int:
    """Check that the tool is given nothing but what was meant; return how often it ran."""
    given = [] if reply is None else RECORDER.run(reply)
    assert given == meant[: len(given)], shown
    return len(given)


def _written(family: str, call: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return a call as a family writes it, and what is read of it; families differ in values."""
    try:
        text = RENDERERS[family]([("clean", call)], "", "")
    except KeyError:  # a type that the family has no word for
        return "", []
    return text, RECORDER.run(Reply(content=text, finish_reason="stop"))


@pytest.mark.parametrize("family", sorted(RENDERERS))
def test_text_cut_anywhere_never_runs_with_less(family: str) -> None:
    """In every family, at every character, for words of every kind."""
    for call in CALLS:
        text, meant = _written(family, call)
        for end in range(1, len(text)):
            finish = FINISHES[end % 4]
            for word in {"stop", finish} if call is CALLS[0] else {finish}:
                _check(Reply(content=text[:end], finish_reason=word), meant, (word, text[:end]))


@settings(max_examples=80, deadline=None)
@given(family=st.sampled_from(sorted(RENDERERS)), call=arguments, data=st.data())
def test_any_call_as_text_never_runs_with_less(
    family: str, call: dict[str, Any], data: st.DataObject
) -> None:
    """Whatever the call holds."""
    text, meant = _written(family, call)
    for finish in FINISHES:
        end = data.draw(st.integers(0, len(text)))
        _check(Reply(content=text[:end], finish_reason=finish), meant, (finish, text[:end]))


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_arguments_cut_on_the_wire_never_run_with_less(name: str) -> None:
    """In every wire format, whole and streamed, at every character of the arguments."""
    protocol = find_protocol(name)
    for call in (*CALLS, NESTED):
        size = len(json.dumps(call, ensure_ascii=False))
        for finish in ("tool_calls", "length", "never_heard_of", None):
            for kind, data in wires(protocol, call, finish):
                for end in range(FIRST.get(name, 0), size):
                    cut = cut_on_wire(data, call, end)
                    if cut is not None:
                        _check(parse(protocol, kind, cut), [call], (kind, finish, end))


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_bytes_cut_on_the_wire_never_run_with_less(name: str) -> None:
    """In every wire format, whole and streamed, wherever the connection ends."""
    protocol = find_protocol(name)
    for kind, data in wires(protocol, NESTED, "tool_calls"):
        assert _check(parse(protocol, kind, data), [NESTED], kind) == 1
        for end in range(0, len(data), 3):
            _check(parse(protocol, kind, data[:end]), [NESTED], (kind, data[:end]))


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(PROTOCOLS)),
    call=arguments,
    finish=st.sampled_from([*FINISHES, *OTHER_WORDS]),
    data=st.data(),
)
def test_any_arguments_on_the_wire_never_run_with_less(
    name: str, call: dict[str, Any], finish: str | None, data: st.DataObject
) -> None:
    """Whatever the call holds, and whatever word the provider says."""
    protocol = find_protocol(name)
    for kind, sent in wires(protocol, call, finish):
        end = data.draw(st.integers(FIRST.get(name, 0), len(json.dumps(call, ensure_ascii=False))))
        cut = cut_on_wire(sent, call, end)
        if cut is not None:
            _check(parse(protocol, kind, cut), [call], (kind, finish, end))


AROUND = (
    ("Let me do that.\n", "\nDone."),
    ("```\n", "\n```\nAs you asked."),
    ("result = ", ""),
    ("I am on it: ", ""),
)
"""Words around a call that make it only likely."""


def _run_cut(text: str, end: int, finish: str | None, meant: list[dict[str, Any]]) -> int:
    given = RECORDER.run_in_loop(text[:end], finish, likely_calls="by_effect")
    assert given == meant[: len(given)], (finish, text[:end])
    return len(given)


@pytest.mark.parametrize("family", sorted(RENDERERS))
def test_a_run_that_takes_likely_calls_never_runs_with_less(family: str) -> None:
    """In whole runs, with and without words around the call."""
    text, meant = _written(family, CALLS[0])
    for number, (before, after) in enumerate((("", ""), *AROUND)):
        wrapped = before + text + after
        for end in range(len(before) + 1 + number, len(wrapped) + 1, 13):
            _run_cut(wrapped, end, FINISHES[end % 4], meant)


@pytest.mark.parametrize("family", sorted(RENDERERS)[::14])
def test_a_likely_call_cut_at_any_character_never_runs_with_less(family: str) -> None:
    """At every place of some families, with other words around each."""
    text, meant = _written(family, CALLS[0])
    before, after = AROUND[len(family) % len(AROUND)]
    wrapped = before + text + after
    for end in range(1, len(wrapped) + 1):
        _run_cut(wrapped, end, FINISHES[end % len(FINISHES)], meant)


@settings(max_examples=60, deadline=None)
@given(
    family=st.sampled_from(sorted(RENDERERS)),
    call=arguments,
    around=st.sampled_from(AROUND),
    data=st.data(),
)
def test_any_likely_call_of_a_run_never_runs_with_less(
    family: str, call: dict[str, Any], around: tuple[str, str], data: st.DataObject
) -> None:
    """Whatever the call holds, and whatever is around it."""
    text, meant = _written(family, call)
    wrapped = around[0] + text + around[1]
    end = data.draw(st.integers(1, len(wrapped)))
    _run_cut(wrapped, end, data.draw(st.sampled_from(FINISHES)), meant)


def test_a_stream_of_messages_without_its_stop_reason_runs_nothing() -> None:
    """The event that carries it was lost, and perhaps more with it."""
    protocol = find_protocol("messages")
    _, (kind, data) = wires(protocol, NESTED, "tool_calls")
    events = data.decode().split("\n\n")
    kept = "\n\n".join(event for event in events if '"message_delta"' not in event)
    reply = parse(protocol, kind, kept.encode())
    assert reply is not None
    assert [call.state for call in read_reply(reply).calls] == ["cut"]


@pytest.mark.parametrize("status", ["cancelled", "failed", "in_progress", "queued", "incomplete"])
def test_a_response_that_is_not_completed_runs_nothing(status: str) -> None:
    """Whatever its calls look like."""
    protocol = find_protocol("responses")
    (kind, data), _ = wires(protocol, NESTED, "tool_calls")
    body = {**json.loads(data), "status": status}
    reply = parse(protocol, kind, json.dumps(body).encode())
    assert reply is None or [call.state for call in read_reply(reply).calls] == ["cut"]


def test_the_uncut_calls_run() -> None:
    """What is checked above is not that nothing ever runs."""
    ran = {family for family in RENDERERS if _written(family, CALLS[0])[1] == [CALLS[0]]}
    assert len(ran) >= len(RENDERERS) - 3
