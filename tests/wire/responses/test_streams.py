"""Streamed replies."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import ProviderError, ProviderReplyError, ProviderStatusError
from surecall.base.records import Usage
from surecall.wire import RawReply, Responses

from .builders import call_item, ended, event, fold, response, text_item, thought_item

RESPONSES = Responses()
CREATED = event("response.created", response=response(status="in_progress"), sequence_number=0)


def added(item: dict[str, Any], index: int = 0) -> bytes:
    """Return the event that begins an item."""
    return event("response.output_item.added", output_index=index, item=item)


def done(item: dict[str, Any], index: int = 0) -> bytes:
    """Return the event that ends an item."""
    return event("response.output_item.done", output_index=index, item=item)


def text(piece: str, index: int = 0, part: int = 0) -> bytes:
    """Return a piece of text."""
    return event("response.output_text.delta", output_index=index, content_index=part, delta=piece)


def arguments(piece: str, index: int = 0, **fields: Any) -> bytes:
    """Return a piece of arguments."""
    fields = {"output_index": index, "delta": piece, **fields}
    return event("response.function_call_arguments.delta", **fields)


def summary(piece: str, part: int = 0, index: int = 0) -> bytes:
    """Return a piece of a summary."""
    fields = {"output_index": index, "summary_index": part, "delta": piece}
    return event("response.reasoning_summary_text.delta", **fields)


def codes(raw: RawReply) -> list[str]:
    """Return the codes of what was odd."""
    return [defect.code for defect in RESPONSES.parse_message(raw).defects]


def calls(raw: RawReply) -> list[Any]:
    """Return the calls of a reply."""
    return [(c.id, c.name, c.arguments) for c in RESPONSES.parse_message(raw).calls]


EMPTY_TEXT = text_item("", content=[], status="in_progress")
EMPTY_CALL = call_item(arguments="", status="in_progress")


def test_a_streamed_text_is_shown_as_it_comes_and_folded() -> None:
    """Each piece is shown at once, and the reply is the one that ends the stream."""
    folder = RESPONSES.open_stream()
    assert folder.feed(CREATED + added(EMPTY_TEXT)) == []
    (delta,) = folder.feed(text("Hel"))
    assert (delta.kind, delta.text) == ("text", "Hel")
    assert [delta.text for delta in folder.feed(text("lo"))] == ["lo"]
    assert not folder.done
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    assert folder.feed(done(text_item("Hello")) + ended(text_item("Hello"), usage=usage)) == []
    assert folder.done
    assert folder.feed(text("more")) == []
    assert folder.close() == RawReply(
        message={"output": [text_item("Hello")], "status": "completed"},
        finish_reason="stop",
        usage=Usage(1, 2, 3),
        model="m",
        id="resp_1",
    )


def test_reasoning_is_shown_apart_from_text_in_paragraphs() -> None:
    """A new part or item of reasoning begins a new paragraph."""
    thoughts = [thought_item("rs_1", "one", "two"), thought_item("rs_2", "three")]
    data = (
        CREATED
        + (added(thought_item("rs_1")) + summary("o") + summary("ne") + summary("two", 1))
        + (done(thoughts[0]) + added(thought_item("rs_2"), 1) + summary("three", 0, 1))
        + (added(EMPTY_TEXT, 2) + text("Hi", 2))
        + ended(*thoughts, text_item("Hi"))
    )
    raw, shown, reasoning = fold(data)
    reply = RESPONSES.parse_message(raw)
    assert (shown, reasoning) == ("Hi", "one\n\ntwo\n\nthree")
    assert (reply.content, reply.reasoning, reply.defects) == ("Hi", reasoning, ())


def test_reasoning_itself_is_shown_too() -> None:
    """Open models send it instead of a summary."""
    item = thought_item("rs_1", content=[{"type": "reasoning_text", "text": "Hm."}])
    piece = event("response.reasoning_text.delta", output_index=0, content_index=0, delta="Hm.")
    raw, _, reasoning = fold(added(thought_item()) + piece + ended(item))
    assert (reasoning, codes(raw)) == ("Hm.", [])


def test_a_refusal_is_shown_as_text() -> None:
    """It stands where the text would."""
    item = text_item("", content=[{"type": "refusal", "refusal": "No."}])
    place = {"output_index": 0, "content_index": 0}
    folder = RESPONSES.open_stream()
    data = added(EMPTY_TEXT)
    data += event("response.refusal.delta", **place, delta="N")
    data += event("response.refusal.delta", **place, delta="o.")
    assert [delta.text for delta in folder.feed(data)] == ["N", "o."]
    assert folder.feed(event("response.refusal.done", **place, refusal="No.")) == []
    assert folder.feed(ended(item)) == []
    reply = RESPONSES.parse_message(folder.close())
    assert (reply.content, reply.defects) == ("No.", ())


def test_what_an_item_brings_along_when_it_begins_counts() -> None:
    """Some servers send the first words, or all of them, with it."""
    raw, shown, _ = fold(added(text_item("He")) + text("llo") + BARE_END)
    assert (shown, RESPONSES.parse_message(raw).content, codes(raw)) == ("Hello", "Hello", [])


@dataclass(frozen=True)
class CallCase:
    id: str
    events: tuple[bytes, ...]
    calls: tuple[tuple[Any, Any, Any], ...]
    codes: tuple[str, ...] = ()


A, B = '{"a":1}', '{"b":2}'
# Ends of streams that say nothing of the output, so that the pieces must do.
BARE_END = event("response.completed", response={"id": "resp_1", "status": "completed"})
CALLS = (
    CallCase(
        "pieces",
        (added(EMPTY_CALL), arguments('{"a"'), arguments(":1}"), BARE_END),
        (("c1", "look", A),),
    ),
    CallCase(
        "interleaved",
        (
            added(EMPTY_CALL),
            added(call_item("c2", ""), 1),
            arguments('{"b"', 1),
            arguments('{"a"'),
            arguments(":2}", 1),
            arguments(":1}"),
            BARE_END,
        ),
        (("c1", "look", A), ("c2", "look", B)),
    ),
    CallCase(
        "out of order",
        (added(call_item("c2", B), 1), added(call_item("c1", A), 0), BARE_END),
        (("c1", "look", A), ("c2", "look", B)),
    ),
    CallCase("whole item only", (done(call_item()), BARE_END), (("c1", "look", A),)),
    CallCase(
        "whole arguments only",
        (
            added(EMPTY_CALL),
            event("response.function_call_arguments.done", output_index=0, arguments=A),
            BARE_END,
        ),
        (("c1", "look", A),),
    ),
    CallCase("in the end only", (ended(call_item()),), (("c1", "look", A),)),
    CallCase(
        "told by the id of the item",
        (
            event("response.output_item.added", item=EMPTY_CALL),
            event("response.output_item.added", item=call_item("c2", "")),
            event("response.function_call_arguments.delta", item_id="fc_c1", delta=A),
            event("response.function_call_arguments.delta", item_id="fc_c2", delta=B),
            BARE_END,
        ),
        (("c1", "look", A), ("c2", "look", B)),
    ),
    CallCase(
        "told by nothing",
        (
            added(EMPTY_CALL),
            event("response.function_call_arguments.delta", delta=A),
            BARE_END,
        ),
        (("c1", "look", A),),
        ("INDEX_NOT_USABLE",),
    ),
    CallCase(
        "one number for all items",
        (
            added(EMPTY_CALL),
            arguments(A),
            added(call_item("c2", "")),
            arguments(B),
            done(call_item()),
            done(call_item("c2", B)),
            BARE_END,
        ),
        (("c1", "look", A), ("c2", "look", B)),
        ("INDEX_NOT_USABLE",),
    ),
    CallCase(
        "whole items without any number",
        (
            event("response.output_item.done", item=call_item(id=None)),
            event("response.output_item.done", item=call_item("c2", B, id=None)),
            BARE_END,
        ),
        (("c1", "look", A), ("c2", "look", B)),
        ("INDEX_NOT_USABLE",),
    ),
    CallCase(
        "begun twice",
        (added(EMPTY_CALL), arguments('{"a"'), added(EMPTY_CALL), arguments(A), BARE_END),
        (("c1", "look", A),),
        ("INDEX_NOT_USABLE",),
    ),
    CallCase(
        "another id at the end of the item",
        (added(EMPTY_CALL), arguments(A), done(call_item(id="fc_9")), BARE_END),
        (("c1", "look", A),),
    ),
    CallCase(
        "one id for all calls",
        (done(call_item("c")), done(call_item("c", B), 1), BARE_END),
        (("c", "look", A), ("c", "look", B)),
    ),
    CallCase("never begun", (arguments(A), BARE_END), ((None, None, A),)),
    CallCase(
        "pieces wrong, item right",
        (added(EMPTY_CALL), arguments('{"a":'), done(call_item()), BARE_END),
        (("c1", "look", A),),
        ("DELTAS_DIFFER",),
    ),
    CallCase(
        "item wrong, end right",
        (done(call_item(arguments=B)), ended(call_item())),
        (("c1", "look", A),),
        ("DELTAS_DIFFER",),
    ),
    CallCase(
        "a call that only the end has",
        (done(call_item()), ended(call_item(), call_item("c2", B))),
        (("c1", "look", A), ("c2", "look", B)),
        ("DELTAS_DIFFER",),
    ),
    CallCase(
        "an end that lost its output",
        (done(call_item()), ended()),
        (("c1", "look", A),),
        ("DELTAS_DIFFER",),
    ),
    CallCase(
        "an end without a response",
        (done(call_item()), event("response.completed")),
        (("c1", "look", A),),
    ),
)


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case.id)
def test_calls_are_folded(case: CallCase) -> None:
    """What is said last and whole wins; what differs is noted once."""
    raw, _, _ = fold(b"".join(case.events))
    assert tuple(calls(raw)) == case.calls
    assert tuple(codes(raw)) == case.codes
    assert raw.finish_reason == "tool_calls"


@dataclass(frozen=True)
class TextCase:
    id: str
    events: tuple[bytes, ...]
    shown: str
    content: str
    codes: tuple[str, ...] = ()


def text_done(words: str) -> bytes:
    """Return the event with a part of text as a whole."""
    return event("response.output_text.done", output_index=0, content_index=0, text=words)


TEXTS = (
    TextCase("no pieces", (added(EMPTY_TEXT), text_done("Hi"), BARE_END), "Hi", "Hi"),
    TextCase("no pieces and no part", (done(text_item("Hi")), BARE_END), "Hi", "Hi"),
    TextCase("in the end only", (CREATED, ended(text_item("Hi"))), "Hi", "Hi"),
    TextCase(
        "the last piece lost",
        (text("Hel"), text_done("Hello"), ended(text_item("Hello"))),
        "Hello",
        "Hello",
        ("DELTAS_DIFFER",),
    ),
    TextCase(
        "a piece twice",
        (text("Hi"), text("Hi"), ended(text_item("Hi"))),
        "HiHi",
        "Hi",
        ("DELTAS_DIFFER",),
    ),
    TextCase(
        "a text that only the end has",
        (done(call_item()), ended(call_item(), text_item("Hi"))),
        "Hi",
        "Hi",
        ("DELTAS_DIFFER",),
    ),
    TextCase("two parts", (text("a", 0, 0), text("b", 0, 1), BARE_END), "ab", "ab"),
    TextCase(
        "other events",
        (
            event("response.in_progress", response=response(status="in_progress")),
            event("response.content_part.added", output_index=0, content_index=0, part={}),
            text("Hi"),
            event("response.output_text.annotation.added", annotation={}),
            event("response.web_search_call.searching", output_index=1),
            b": keep-alive\n\n",
            event("made.up"),
            BARE_END,
        ),
        "Hi",
        "Hi",
    ),
)


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.id)
def test_texts_are_folded(case: TextCase) -> None:
    """Text is shown once, as early as it comes."""
    raw, shown, _ = fold(b"".join(case.events))
    assert shown == case.shown
    assert RESPONSES.parse_message(raw).content == case.content
    assert tuple(codes(raw)) == case.codes


def test_other_calls_are_kept_and_noted() -> None:
    """They stay in the raw message."""
    item = {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "x"}
    begun = added({**item, "input": ""})
    piece = event("response.custom_tool_call_input.delta", output_index=0, delta="x")
    raw, _, _ = fold(begun + piece + done(item) + BARE_END)
    assert raw.message["output"] == [item]
    assert codes(raw) == ["PART_NOT_KNOWN"]


@pytest.mark.parametrize(
    ("end", "finish"),
    [
        pytest.param(
            event(
                "response.incomplete",
                response=response(
                    call_item(),
                    status="incomplete",
                    incomplete_details={"reason": "max_output_tokens"},
                ),
            ),
            "length",
            id="limit",
        ),
        pytest.param(
            event("response.incomplete", response=response(call_item(), status="completed")),
            "length",
            id="event says less",
        ),
        pytest.param(ended(call_item(), status="incomplete"), "length", id="response says less"),
        pytest.param(ended(call_item(), status="in_progress"), "tool_calls", id="stale status"),
    ],
)
def test_the_end_says_whether_the_reply_is_complete(end: bytes, finish: str) -> None:
    """When event and response disagree, the one that promises less is believed."""
    assert fold(CREATED + end)[0].finish_reason == finish


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(CREATED, id="only begun"),
        pytest.param(CREATED + added(EMPTY_TEXT) + text("Hel"), id="in a text"),
        pytest.param(CREATED + done(call_item()), id="after a whole call"),
        pytest.param(CREATED + done(call_item()) + b"data: [DONE]\n\n", id="only marked as done"),
        pytest.param(CREATED + ended(call_item())[:-9], id="in the last event"),
    ],
)
def test_a_stream_without_its_end_is_truncated(data: bytes) -> None:
    """A finish is never invented, however whole the calls look."""
    with pytest.raises(ProviderReplyError) as caught:
        fold(data)
    assert caught.value.code == "STREAM_TRUNCATED"
    assert caught.value.retryable


def test_a_truncated_stream_shows_the_text_so_far() -> None:
    """Bounded, and without anything shaped like a key."""
    with pytest.raises(ProviderReplyError) as caught:
        fold(CREATED + text("Hel") + text("lo"))
    assert caught.value.body == "Hello"
    assert "2 events" not in caught.value.message
    assert "3 events and 0 begun calls" in caught.value.message


@pytest.mark.parametrize(
    ("data", "code", "retryable"),
    [
        pytest.param(
            event("error", code="rate_limit_exceeded", message="Slow.", param=None),
            "RATE_LIMIT",
            True,
            id="flat event",
        ),
        pytest.param(
            event("error", error={"type": "invalid_request_error", "message": "No."}),
            "BAD_REQUEST",
            False,
            id="nested event",
        ),
        pytest.param(b"event: error\ndata: oops\n\n", "STREAM_ERROR", False, id="plain text"),
        pytest.param(b'data: {"error": {"message": "x"}}\n\n', "STREAM_ERROR", False, id="bare"),
        pytest.param(
            event(
                "response.failed",
                response=response(
                    status="failed", error={"code": "server_error", "message": "Oops."}
                ),
            ),
            "STREAM_ERROR",
            True,
            id="failed",
        ),
        pytest.param(event("response.failed"), "STREAM_ERROR", False, id="failed silently"),
        pytest.param(
            ended(call_item(), status="failed", error={"message": "Oops."}),
            "STREAM_ERROR",
            False,
            id="failed though completed",
        ),
    ],
)
def test_an_error_in_a_stream_ends_it(data: bytes, code: str, retryable: bool) -> None:
    """The text so far is kept with the error."""
    with pytest.raises(ProviderStatusError) as caught:
        fold(CREATED + text("Hel") + data)
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert caught.value.body == "Hel"


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"data: {oops\n\n", id="not JSON"),
        pytest.param(b"data: [1]\n\n", id="not an object"),
        pytest.param(event("response.output_text.delta", delta=5), id="a piece that is no text"),
    ],
)
def test_an_event_that_cannot_be_read_stops_the_stream_unless_skipped(bad: bytes) -> None:
    """A skipped one is noted, and makes every call of the reply count as cut."""
    data = CREATED + bad + ended(call_item())
    with pytest.raises(ProviderReplyError) as caught:
        fold(data)
    assert (caught.value.code, caught.value.retryable) == ("UPSTREAM_BAD_EVENT", True)
    raw, _, _ = fold(data, skip_bad_events=True)
    assert codes(raw) == ["UPSTREAM_BAD_EVENT"]


def numbered(number: int, data: bytes) -> bytes:
    """Return an event with a number."""
    return data.replace(b'"type":', b'"sequence_number": %d, "type":' % number)


@pytest.mark.parametrize(
    ("numbers", "end", "found"),
    [
        pytest.param((1, 2, 3), BARE_END, [], id="in order"),
        pytest.param((1, 2, 9), BARE_END, ["UPSTREAM_BAD_EVENT"], id="a gap"),
        pytest.param((0, 0, 0), BARE_END, [], id="no counting"),
        pytest.param((1, 2, 9), ended(call_item()), [], id="a gap that the end fills"),
    ],
)
def test_lost_events_are_noticed_by_their_numbers(
    numbers: tuple[int, ...], end: bytes, found: list[str]
) -> None:
    """A call made of pieces with a gap between them counts as cut."""
    events = [added(EMPTY_CALL), arguments('{"a"'), arguments(":1}")]
    data = b"".join(numbered(*pair) for pair in zip(numbers, events, strict=True))
    assert codes(fold(data + end)[0]) == found


def test_halves_of_a_pair_in_two_events_become_one_character() -> None:
    """In what is shown and in what is folded."""
    data = added(EMPTY_TEXT) + text("a\ud83d") + text("\ude00b") + text("\ud83d")
    raw, shown, _ = fold(data + BARE_END)
    assert shown == "a😀b\ufffd"
    assert RESPONSES.parse_message(raw).content == "a😀b\ufffd"
    assert codes(fold(data + ended(text_item("a😀b\ufffd")))[0]) == []


def test_a_plain_body_is_read_as_one() -> None:
    """Some servers ignore that a stream was asked for."""
    body = json.dumps(response(call_item())).encode()
    raw, shown, _ = fold(body, [1, 2, 3])
    assert (calls(raw), shown) == ([("c1", "look", A)], "")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "UPSTREAM_EMPTY"),
        (b"  \n", "UPSTREAM_EMPTY"),
        (b"<html>", "UPSTREAM_HTML"),
        (b"hello", "STREAM_TRUNCATED"),
        (event("response.completed", response={}), "UPSTREAM_NOT_A_REPLY"),
    ],
)
def test_what_is_no_stream_is_refused(data: bytes, code: str) -> None:
    """The code says in which way."""
    with pytest.raises(ProviderError) as caught:
        fold(data)
    assert caught.value.code == code


def test_the_last_event_may_lack_its_blank_line() -> None:
    """Providers leave it out; a mark at the start is no harm either."""
    data = b"\xef\xbb\xbf" + CREATED + ended(call_item()).rstrip()
    assert calls(fold(data, [1, 1, 1])[0]) == [("c1", "look", A)]


def test_a_type_may_stand_in_the_name_of_the_event_alone() -> None:
    """The name says the same."""
    data = (
        CREATED
        + b"event: response.completed\ndata: "
        + json.dumps({"response": response(text_item("Hi"))}).encode()
    )
    assert RESPONSES.parse_message(fold(data + b"\n\n")[0]).content == "Hi"


def test_a_repeated_key_in_arguments_that_are_an_object_is_noted() -> None:
    """Also when only a streamed item had them."""
    item = done(call_item(arguments={"a": 1})).replace(b'{"a": 1}', b'{"a": 1, "a": 2}')
    assert codes(fold(item + BARE_END)[0]) == ["DUPLICATE_KEY", "ARGUMENTS_AS_OBJECT"]
