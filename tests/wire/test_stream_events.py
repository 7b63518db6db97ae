"""Streamed replies: texts and reasoning, the events they come in, and how they end or break."""

import json

import pytest

from support.streams import DONE, chunk, event, fold, stream_of
from surecall.base.errors import ProviderReplyError, ProviderStatusError
from surecall.base.records import Usage
from surecall.wire import ChatCompletions, RawReply

PROTOCOL = ChatCompletions()
STOP = chunk({}, "stop")


def test_a_streamed_text_is_shown_as_it_comes_and_folded() -> None:
    """Each piece is shown at once, and the message holds all of them."""
    folder = PROTOCOL.open_stream()
    assert folder.feed(chunk({"role": "assistant", "content": ""})) == []
    (delta,) = folder.feed(chunk({"content": "Hel"}))
    assert (delta.kind, delta.text) == ("text", "Hel")
    assert [delta.text for delta in folder.feed(chunk({"content": "lo"}) + STOP)] == ["lo"]
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert folder.feed(event({"choices": [], "usage": usage})) == []
    assert not folder.done
    assert folder.feed(DONE) == []
    assert folder.done
    assert folder.close() == RawReply(
        message={"role": "assistant", "content": "Hello"},
        finish_reason="stop",
        usage=Usage(1, 2, 3),
        model="m",
        id="r1",
    )


def test_reasoning_is_shown_apart_from_text() -> None:
    """It is folded into the field it came in."""
    data = chunk({"reasoning": "hm"}) + chunk({"content": "Hi"}) + STOP
    reply, text, reasoning = fold(data)
    assert (text, reasoning) == ("Hi", "hm")
    assert reply.message == {"role": "assistant", "content": "Hi", "reasoning": "hm"}


def test_reasoning_sent_in_two_fields_is_shown_once() -> None:
    """Both fields are kept."""
    reply, _, reasoning = fold(chunk({"reasoning": "a", "reasoning_content": "a"}) + STOP)
    assert reasoning == "a"
    assert (reply.message["reasoning"], reply.message["reasoning_content"]) == ("a", "a")


def test_details_of_reasoning_are_joined_for_the_echo() -> None:
    """Pieces of one thought become one, with its signature; others stay as they are."""
    pieces = [
        {"type": "reasoning.text", "index": 0, "text": "a", "signature": None},
        {"type": "reasoning.text", "index": 0, "text": "b", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "x"},
        {"type": "reasoning.text", "index": 2, "text": "c"},
    ]
    data = b"".join(chunk({"role": "assistant", "reasoning_details": [piece]}) for piece in pieces)
    reply, _, _ = fold(data + STOP)
    assert reply.message["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"},
        pieces[2],
        pieces[3],
    ]


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        pytest.param(("\ud83d", "\ude00"), "😀", id="pair over two events"),
        pytest.param(("a\ud83d", "\ude00b"), "a😀b", id="pair with text around"),
        pytest.param(("\ud83d", "b"), "\ufffdb", id="half before text"),
        pytest.param(("a", "\ude00"), "a\ufffd", id="second half alone"),
        pytest.param(("a", "\ud83d"), "a\ufffd", id="half at the end"),
        pytest.param(("é", "\ud83d", "", "\ude00"), "é😀", id="pair over an empty piece"),
    ],
)
def test_a_character_cut_between_events_is_mended(pieces: tuple[str, ...], text: str) -> None:
    """What is shown and what is folded agree, and neither holds half a character."""
    for key in ("content", "reasoning_content"):
        data = b"".join(chunk({key: piece}) for piece in pieces) + STOP
        reply, *shown = fold(data)
        assert reply.message[key] == text
        assert "".join(shown) == text


def test_content_in_parts_is_folded_to_text() -> None:
    """With a finding, once."""
    data = (
        chunk({"content": [{"type": "thinking", "thinking": "hm"}]})
        + chunk({"content": [{"type": "text", "text": "Hi"}]})
        + chunk({"content": 3})
        + STOP
    )
    reply, text, reasoning = fold(data)
    assert (text, reasoning) == ("Hi", "hm")
    assert reply.message["content"] == "Hi"
    assert [defect.code for defect in reply.defects] == ["CONTENT_AS_PARTS", "CONTENT_NOT_USABLE"]


def test_a_refusal_is_shown_and_becomes_the_content() -> None:
    """As in a whole reply."""
    reply, text, _ = fold(chunk({"refusal": "No"}) + chunk({"refusal": "."}) + STOP)
    assert text == "No."
    assert PROTOCOL.parse_message(reply).content == "No."


def test_unknown_fields_are_kept_for_the_echo() -> None:
    """Lists grow, other values are the last that came."""
    data = (
        chunk({"content": "x", "images": [1], "tag": "a", "none": None})
        + chunk({"images": [2], "tag": "b"})
        + STOP
    )
    assert PROTOCOL.parse_message(fold(data)[0]).extra == {"images": [1, 2], "tag": "b"}


def test_messages_in_place_of_deltas_are_taken() -> None:
    """Some providers name the field so."""
    first = event({"choices": [{"index": 0, "message": {"role": "assistant", "content": "He"}}]})
    last = event({"choices": [{"message": {"content": "y"}, "finish_reason": "stop"}]})
    reply, text, _ = fold(first + last)
    assert text == "Hey"
    assert reply.message["content"] == "Hey"


def test_a_message_after_deltas_is_the_same_said_again() -> None:
    """It is not taken twice."""
    last = event({"choices": [{"message": {"content": "Hey"}, "finish_reason": "stop"}]})
    reply, text, _ = fold(chunk({"content": "He"}) + chunk({"content": "y"}) + last)
    assert (text, reply.message["content"]) == ("Hey", "Hey")


def test_other_choices_are_left_alone_and_noted() -> None:
    """The choice that came first is folded."""
    other = event({"choices": [{"index": 1, "delta": {"content": "x"}, "finish_reason": "stop"}]})
    reply, text, _ = fold(chunk({"content": "a"}) + other + chunk({"content": "b"}) + STOP)
    assert text == "ab"
    assert [defect.code for defect in reply.defects] == ["CHOICES_IGNORED"]


def test_the_finish_of_another_choice_is_no_finish() -> None:
    """Only the choice that is folded can end the reply."""
    other = event({"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]})
    with pytest.raises(ProviderReplyError) as caught:
        fold(chunk({"content": "a"}) + other + DONE)
    assert caught.value.code == "STREAM_TRUNCATED"


MESSAGE = {
    "role": "assistant",
    "content": "Só – 😀",
    "tool_calls": [
        {"id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": "é"}'}},
        {"id": "y", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ],
}
CLEAN = stream_of(MESSAGE, "tool_calls")
USAGE = event({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(CLEAN.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(CLEAN.replace(b"\n", b"\r"), id="CR"),
        pytest.param(b"\xef\xbb\xbf" + CLEAN, id="byte order mark"),
        pytest.param(b": hello\n\n" + CLEAN.replace(b"data", b": ping\n\ndata"), id="comments"),
        pytest.param(CLEAN.replace(b"data: ", b"event: chunk\ndata: "), id="event names"),
        pytest.param(CLEAN.replace(b"data: ", b"data:"), id="no space after the colon"),
        pytest.param(CLEAN.replace(b'{"id"', b'{\ndata: "id"'), id="several lines of data"),
        pytest.param(CLEAN.replace(b"data: ", b"id: 7\nretry: 10\ndata: "), id="ids and retry"),
        pytest.param(CLEAN + DONE, id="two ends"),
        pytest.param(CLEAN.removesuffix(DONE), id="no end"),
        pytest.param(CLEAN.removesuffix(DONE).rstrip(), id="last event without a blank line"),
        pytest.param(CLEAN.removesuffix(b"\n\n"), id="end without a blank line"),
        pytest.param(CLEAN + b"data: garbage\n\n" + chunk({"content": "x"}), id="after the end"),
        pytest.param(b"\n\n" + CLEAN, id="empty lines first"),
        pytest.param(b"data:\n\n" + CLEAN, id="empty event"),
        pytest.param(event({"type": "ping"}) + CLEAN, id="unknown event"),
        pytest.param(event({"choices": None}) + CLEAN, id="null choices"),
    ],
)
def test_oddities_of_event_streams_change_nothing(data: bytes) -> None:
    """The reply is the same, fed whole or byte by byte."""
    expected, text, _ = fold(CLEAN)
    assert expected.message == MESSAGE
    for sizes in ((), (1,) * len(data)):
        reply, shown, _ = fold(data, sizes)
        assert reply == expected
        assert shown == text == MESSAGE["content"]


@pytest.mark.parametrize("data", [CLEAN.replace(DONE, USAGE + DONE), USAGE + CLEAN])
def test_usage_is_taken_wherever_it_comes(data: bytes) -> None:
    """Its chunk has no choices."""
    assert fold(data)[0].usage == Usage(1, 1, 2)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(chunk({"content": "par"}) + chunk({"content": "tial"}), id="clean end"),
        pytest.param(chunk({"content": "partial"}) + DONE, id="end without a finish"),
        pytest.param(chunk({"content": "partial"}) + STOP[:-8], id="finish cut"),
        pytest.param(chunk({"content": "partial"}) + chunk({}, ""), id="empty finish"),
        pytest.param(chunk({"content": "partial"}) + USAGE, id="usage is no finish"),
    ],
)
def test_a_stream_without_a_finish_is_truncated(data: bytes) -> None:
    """A finish is never invented, and the text so far is kept."""
    with pytest.raises(ProviderReplyError) as caught:
        fold(data)
    assert caught.value.code == "STREAM_TRUNCATED"
    assert caught.value.body == "partial"
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"", "UPSTREAM_EMPTY", id="nothing"),
        pytest.param(b"\n\n", "UPSTREAM_EMPTY", id="space"),
        pytest.param(b": ping\n\n", "STREAM_TRUNCATED", id="only a comment"),
        pytest.param(b"upstream timed out", "STREAM_TRUNCATED", id="text"),
        pytest.param(b"<html><title>Bad</title></html>", "UPSTREAM_HTML", id="page"),
        pytest.param(b"[]", "UPSTREAM_NOT_A_REPLY", id="array"),
        pytest.param(b'{"choices": [{"mes', "UPSTREAM_INVALID_JSON", id="cut body"),
        pytest.param(b'{"error": {"message": "x"}}', "UPSTREAM_ERROR_BODY", id="error body"),
    ],
)
def test_what_is_no_stream_is_refused(data: bytes, code: str) -> None:
    """With the code a whole reply would have."""
    for sizes in ((), (1,) * len(data)):
        with pytest.raises((ProviderReplyError, ProviderStatusError)) as caught:
            fold(data, sizes)
        assert caught.value.code == code


def test_a_text_in_place_of_a_stream_is_shown_in_the_error() -> None:
    """Someone has to find out what answered."""
    with pytest.raises(ProviderReplyError) as caught:
        fold(b"upstream timed out")
    assert caught.value.body == "upstream timed out"


@pytest.mark.parametrize("start", [b"", b" \n", b"\xef\xbb\xbf"])
def test_a_whole_body_in_place_of_a_stream_is_parsed(start: bytes) -> None:
    """A provider may ignore that a stream was asked for."""
    choice = {"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}
    body = start + json.dumps({"id": "r1", "model": "m", "choices": [choice]}).encode()
    assert fold(body, (1, 1, 1, 1, 1))[0] == fold(CLEAN)[0]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        pytest.param(b"data: {oops\n\n", "Event 2 of the stream", id="not JSON"),
        pytest.param(b"data: [1]\n\n", "not a JSON object", id="not an object"),
        pytest.param(event({"choices": "x"}), "choices are not a list", id="odd choices"),
        pytest.param(event({"choices": [3]}), "a choice is not an object", id="odd choice"),
    ],
)
def test_a_malformed_event_stops_the_stream(bad: bytes, words: str) -> None:
    """With its position and a bounded snippet."""
    with pytest.raises(ProviderReplyError) as caught:
        fold(chunk({"content": "x"}) + bad + STOP)
    assert caught.value.code == "UPSTREAM_BAD_EVENT"
    assert words in caught.value.message
    assert caught.value.body is not None
    assert bad[6:16].decode().strip() in caught.value.body


def test_the_snippet_of_a_malformed_event_is_bounded() -> None:
    """However long the event is."""
    with pytest.raises(ProviderReplyError) as caught:
        fold(b"data: {" + b"x" * 100_000 + b"\n\n")
    assert caught.value.body is not None
    assert len(caught.value.body) < 260


def test_malformed_events_can_be_passed_over_and_are_counted() -> None:
    """The reply says that something is missing."""
    data = chunk({"content": "a"}) + b"data: {oops\n\n" * 2 + chunk({"content": "b"}) + STOP
    folder = PROTOCOL.open_stream(skip_bad_events=True)
    folder.feed(data)
    reply = folder.close()
    assert reply.message["content"] == "ab"
    assert [(defect.code, defect.message) for defect in reply.defects] == [
        ("UPSTREAM_BAD_EVENT", "2 events were passed over.")
    ]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(event({"error": {"message": "boom"}}), "STREAM_ERROR", id="error object"),
        pytest.param(
            event({"error": {"message": "slow down", "code": 429}}), "RATE_LIMIT", id="known kind"
        ),
        pytest.param(b'event: error\ndata: {"message": "boom"}\n\n', "STREAM_ERROR", id="event"),
        pytest.param(b"event: error\ndata: boom\n\n", "STREAM_ERROR", id="event with text"),
        pytest.param(b'event: error\ndata: "boom"\n\n', "STREAM_ERROR", id="event with a string"),
        pytest.param(
            event({"choices": [{"index": 0, "delta": {}, "error": {"message": "boom"}}]}),
            "STREAM_ERROR",
            id="inside the choice",
        ),
    ],
)
def test_an_error_event_ends_the_stream_with_its_meaning(data: bytes, code: str) -> None:
    """The provider's words are kept, and the text so far."""
    with pytest.raises(ProviderStatusError) as caught:
        fold(chunk({"content": "par"}) + data)
    assert caught.value.code == code
    assert caught.value.provider_message in {"boom", "slow down"}
    assert caught.value.body == "par"


def test_an_error_after_the_finish_is_still_an_error() -> None:
    """What the provider calls an error is never taken for success."""
    with pytest.raises(ProviderStatusError):
        fold(chunk({"content": "x"}) + STOP + event({"error": {"message": "boom"}}))


def test_the_last_finish_reason_counts() -> None:
    """Some providers say it more than once."""
    data = chunk({"content": "x"}, "stop") + chunk({}, "length")
    assert fold(data)[0].finish_reason == "length"
