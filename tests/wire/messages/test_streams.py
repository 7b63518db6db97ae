"""Streamed replies."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import ProviderError
from surecall.base.records import Reply, Usage
from surecall.reading import read_reply
from surecall.wire.messages import Messages

from .wire import USAGE, body, event, events, fold, message, stream

PROTOCOL = Messages()
TEXT = {"type": "text", "text": "Grüße 😀"}
USE = {"type": "tool_use", "id": "a", "name": "f", "input": {"q": "é😀", "n": [1, {"x": None}]}}
BARE = {"type": "tool_use", "id": "b", "name": "g", "input": {}}
THOUGHT = {"type": "thinking", "thinking": "Hm, so.", "signature": "sig"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}

CONTENTS: dict[str, list[dict[str, Any]]] = {
    "text": [TEXT],
    "calls": [USE, BARE],
    "all": [THOUGHT, HIDDEN, SEARCH, FOUND, TEXT, USE],
    "nothing": [],
}

START = {"type": "message_start", "message": {**message([], None), "usage": USAGE}}
STOP = {"type": "message_stop"}


def _begin(index: Any, block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _piece(index: Any, kind: str, text: Any) -> dict[str, Any]:
    key = {"input_json": "partial_json"}.get(kind, kind)
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": f"{kind}_delta", key: text},
    }


def _end(reason: str | None = "tool_use", **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def _bytes(values: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(event(value) for value in values)


def _reply(*values: dict[str, Any]) -> Reply:
    return PROTOCOL.parse_message(fold(_bytes((START, *values, _end(), STOP)))[0])


def _codes(reply: Reply) -> list[str]:
    return [defect.code for defect in reply.defects]


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("step", [1, 4])
def test_a_folded_stream_is_the_whole_reply(name: str, step: int) -> None:
    """The same message, usage, names and defects, and all text was shown."""
    content = CONTENTS[name]
    whole = PROTOCOL.parse_body(body(content, "tool_use"))
    folded, text, reasoning = fold(stream(content, "tool_use", step))
    assert folded == whole
    assert folded.defects == ()
    reply = PROTOCOL.parse_message(folded)
    assert (text, reasoning) == (reply.content or "", reply.reasoning or "")


@pytest.mark.parametrize("name", CONTENTS)
def test_a_stream_cut_at_any_byte_is_truncated_or_the_same(name: str) -> None:
    """No cut before the end of the last event gives a reply."""
    data = stream(CONTENTS[name], "tool_use", step=4)
    expected = fold(data)[0]
    ends_at = len(data.rstrip())
    for end in range(len(data)):
        folder = PROTOCOL.open_stream()
        folder.feed(data[:end])
        if end >= ends_at:
            assert folder.close() == expected
            continue
        with pytest.raises(ProviderError) as caught:
            folder.close()
        assert caught.value.code == ("STREAM_TRUNCATED" if end else "UPSTREAM_EMPTY"), end


def test_a_cut_stream_says_what_was_there() -> None:
    """The text so far is in the error, which may be tried again."""
    data = _bytes((START, _begin(0, {"type": "text", "text": ""}), _piece(0, "text", "So far")))
    with pytest.raises(ProviderError) as caught:
        fold(data)
    assert caught.value.body == "So far"
    assert caught.value.retryable
    assert "3 events and 0 begun calls" in caught.value.message


def test_a_finish_without_the_end_is_not_enough() -> None:
    """The format has an end event of its own."""
    data = stream([TEXT]).replace(event(STOP), b"")
    with pytest.raises(ProviderError) as caught:
        fold(data)
    assert caught.value.code == "STREAM_TRUNCATED"


def test_an_end_without_a_finish_gives_none() -> None:
    """A finish is never invented."""
    block = {"type": "content_block_start", "index": 0, "content_block": TEXT}
    assert fold(_bytes((START, block, STOP)))[0].finish_reason is None


def test_nothing_counts_behind_the_end() -> None:
    """What a server writes after it is left alone."""
    folder = PROTOCOL.open_stream()
    folder.feed(stream([TEXT]))
    assert folder.done
    assert folder.feed(event(_piece(0, "text", "more"))) == []
    assert folder.close() == PROTOCOL.parse_body(body([TEXT]))


def test_interleaved_blocks_are_told_apart_by_index() -> None:
    """Each piece goes where it belongs, and blocks have the order of their indexes."""
    reply = _reply(
        _begin(1, {**BARE, "id": "two"}),
        _begin(0, {**BARE, "id": "one"}),
        _piece(0, "input_json", '{"a":'),
        _piece(1, "input_json", '{"b":2'),
        _piece(0, "input_json", "1}"),
        _piece(1, "input_json", "}"),
    )
    assert [(call.id, call.arguments) for call in reply.calls] == [
        ("one", {"a": 1}),
        ("two", {"b": 2}),
    ]
    assert reply.defects == ()


@dataclass(frozen=True)
class Input:
    id: str
    start: Any
    pieces: tuple[str, ...]
    arguments: Any
    codes: tuple[str, ...] = ()


INPUTS = (
    Input("no pieces", {}, (), {}),
    Input("empty pieces", {}, ("", ""), {}),
    Input("whole", {}, ('{"a"', ": 1}"), {"a": 1}),
    Input("all in the start", {"a": 1}, (), {"a": 1}),
    Input("all in the start and again", {"a": 1}, ('{"a":1}',), {"a": 1}),
    Input("text in the start", '{"a"', (":1}",), '{"a":1}', ("ARGUMENTS_AS_TEXT",)),
    Input("two things", {"a": 1}, ('{"a":2}',), '{"a":1}{"a":2}', ("ARGUMENTS_AS_TEXT",)),
    Input("cut", {}, ('{"a": "b',), '{"a": "b', ("ARGUMENTS_AS_TEXT",)),
    Input("no object", {}, ("[1]",), "[1]", ("ARGUMENTS_AS_TEXT",)),
    Input("key twice", {}, ('{"a":1,"a":2}',), '{"a":1,"a":2}', ("ARGUMENTS_AS_TEXT",)),
    Input("blank", {}, (" ",), " ", ("ARGUMENTS_BLANK",)),
    Input("nothing at all", None, (), None, ("ARGUMENTS_BLANK",)),
    Input("empty pieces without a start", None, ("", ""), "", ("ARGUMENTS_BLANK",)),
    Input("a piece without a start", None, ('{"a":1}',), {"a": 1}),
)


@pytest.mark.parametrize("case", INPUTS, ids=lambda case: case.id)
def test_arguments_in_pieces_become_an_object_or_stay_text(case: Input) -> None:
    """What is not exactly one object is left for reading to judge."""
    pieces = [_piece(0, "input_json", piece) for piece in case.pieces]
    reply = _reply(_begin(0, {**BARE, "input": case.start}), *pieces)
    assert reply.calls[0].arguments == case.arguments
    assert _codes(reply) == list(case.codes)


@pytest.mark.parametrize(
    "pieces", [['{"a": "b'], ['{"a":1,"a":2}'], ['{"a":1}', '{"a":2}'], ["[1]"]]
)
def test_arguments_that_are_not_one_object_never_run(pieces: list[str]) -> None:
    """Reading refuses them."""
    reply = _reply(_begin(0, BARE), *[_piece(0, "input_json", piece) for piece in pieces])
    (call,) = read_reply(reply).calls
    assert call.arguments is None
    assert call.errors


def test_a_key_given_twice_in_the_start_is_refused() -> None:
    """An object hides what was written twice, so it is looked for."""
    data = _bytes((START, _begin(0, {**BARE, "input": {"q": 1}}), _end(), STOP))
    data = data.replace(b'{"q": 1}', b'{"q": 1, "q": 2}')
    reply = PROTOCOL.parse_message(fold(data)[0])
    assert _codes(reply) == ["DUPLICATE_KEY"]
    assert read_reply(reply).calls[0].arguments is None


@dataclass(frozen=True)
class Stray:
    id: str
    values: tuple[dict[str, Any], ...]
    text: str | None
    calls: list[Any]
    codes: list[str]


STRAYS = (
    Stray("piece without a block", (_piece(3, "text", "A"),), "A", [], ["INDEX_NOT_USABLE"]),
    Stray(
        "arguments without a block",
        (_piece(0, "input_json", "{}"),),
        None,
        [(None, {})],
        ["INDEX_NOT_USABLE"],
    ),
    Stray(
        "one index for two blocks",
        (
            _begin(0, {"type": "text", "text": "A"}),
            _begin(0, BARE),
            _piece(0, "input_json", '{"a":1}'),
        ),
        "A",
        [("b", {"a": 1})],
        ["INDEX_NOT_USABLE"],
    ),
    Stray(
        "no index",
        (_begin(None, {"type": "text", "text": ""}), _piece(None, "text", "A")),
        "A",
        [],
        ["INDEX_NOT_USABLE"],
    ),
    Stray(
        "piece of another kind",
        (_begin(0, {"type": "text", "text": ""}), _piece(0, "input_json", "{}")),
        "",
        [(None, {})],
        ["INDEX_NOT_USABLE"],
    ),
    Stray(
        "piece of an unknown kind",
        (_begin(0, {"type": "text", "text": "A"}), _piece(0, "hologram", "x")),
        "A",
        [],
        ["PART_NOT_KNOWN"],
    ),
    Stray(
        "piece that is no text",
        (_begin(0, {"type": "text", "text": "A"}), _piece(0, "text", None)),
        "A",
        [],
        [],
    ),
    Stray("unknown event", ({"type": "weather", "sun": True},), None, [], []),
)


@pytest.mark.parametrize("case", STRAYS, ids=lambda case: case.id)
def test_pieces_out_of_place_are_kept_and_noted(case: Stray) -> None:
    """No piece is dropped, and none is added to what it does not fit."""
    reply = _reply(*case.values)
    assert reply.content == case.text
    assert [(call.id, call.arguments) for call in reply.calls] == case.calls
    assert _codes(reply) == case.codes


def test_content_in_the_first_event_counts() -> None:
    """Some servers send a short reply there."""
    start = {"type": "message_start", "message": message([TEXT], None)}
    raw, text, _ = fold(_bytes((start, _end("end_turn"), STOP)))
    assert (PROTOCOL.parse_message(raw).content, text) == ("Grüße 😀", "Grüße 😀")


def test_citations_are_collected() -> None:
    """They stay in the message."""
    cited = {"type": "char_location", "cited_text": "x"}
    delta = {"type": "citations_delta", "citation": cited}
    piece = {"type": "content_block_delta", "index": 0, "delta": delta}
    data = _bytes((START, _begin(0, {"type": "text", "text": ""}), piece, piece, _end(), STOP))
    assert fold(data)[0].message["content"] == [
        {"type": "text", "text": "", "citations": [cited, cited]}
    ]


def test_counts_at_the_end_replace_those_at_the_start() -> None:
    """A count that is not said again still holds."""
    data = _bytes((START, _end("end_turn", output_tokens=9, cache_read_input_tokens=1), STOP))
    assert fold(data)[0].usage == Usage(11, 9, 20, 0, 1)


def test_a_character_cut_between_events_is_joined() -> None:
    """Its first half is held back until the second comes."""
    data = _bytes(
        (
            START,
            _begin(0, {"type": "text", "text": ""}),
            _piece(0, "text", "a\ud83d"),
            _piece(0, "text", "\ude00b"),
            _piece(0, "text", "\ud83d"),
            _end("end_turn"),
            STOP,
        )
    )
    raw, text, _ = fold(data)
    assert raw.message["content"] == [{"type": "text", "text": "a😀b\ufffd"}]
    assert text == "a😀b\ufffd"


def test_half_a_character_elsewhere_is_replaced() -> None:
    """Names and ids can be written down again."""
    reply = _reply(_begin(0, {**BARE, "name": "f\ud83d"}))
    assert reply.calls[0].name == "f\ufffd"


def test_the_end_of_another_format_says_nothing() -> None:
    """It neither ends the stream nor breaks it."""
    done = b"data: [DONE]\n\n"
    data = stream([TEXT]).replace(event(STOP), done + event(STOP) + done)
    assert fold(data)[0] == PROTOCOL.parse_body(body([TEXT]))


def test_event_names_alone_tell_the_kind() -> None:
    """Some servers leave the type out of the data."""
    values = [dict(value) for value in events([TEXT, USE], "tool_use")]
    data = b"".join(event(value, value.pop("type")) for value in values)
    assert fold(data)[0] == PROTOCOL.parse_body(body([TEXT, USE], "tool_use"))


ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize(
    ("written", "code"),
    [
        pytest.param(event(ERROR), "OVERLOADED", id="event"),
        pytest.param(event(ERROR, "message"), "OVERLOADED", id="data only"),
        pytest.param(b'event: error\ndata: {"error": "bad"}\n\n', "STREAM_ERROR", id="other shape"),
        pytest.param(b"event: error\ndata: out of memory\n\n", "STREAM_ERROR", id="plain text"),
        pytest.param(b'event: error\ndata: ["x"]\n\n', "STREAM_ERROR", id="array"),
    ],
)
def test_an_error_in_the_stream_is_raised(written: bytes, code: str) -> None:
    """With the text that came before it."""
    data = _bytes((START, _begin(0, {"type": "text", "text": "So far"}))) + written
    with pytest.raises(ProviderError) as caught:
        fold(data)
    assert (caught.value.code, caught.value.body) == (code, "So far")


BAD_EVENTS = (
    b"data: {oops\n\n",
    b"data: 3\n\n",
    event({"type": "message_start", "message": 3}),
    event(_begin(0, "x")),
    event({"type": "content_block_delta", "index": 0, "delta": None}),
)


@pytest.mark.parametrize("bad", BAD_EVENTS)
def test_a_bad_event_is_refused_or_passed_over(bad: bytes) -> None:
    """Passing over is asked for, noted, and makes the calls of the reply untrusted."""
    data = stream([TEXT, USE], "tool_use").replace(event({"type": "ping"}), bad)
    with pytest.raises(ProviderError) as caught:
        fold(data)
    assert caught.value.code == "UPSTREAM_BAD_EVENT"
    raw, text, _ = fold(data, skip_bad_events=True)
    assert text == "Grüße 😀"
    assert [defect.code for defect in raw.defects] == ["UPSTREAM_BAD_EVENT"]
    assert read_reply(PROTOCOL.parse_message(raw)).calls[0].state == "cut"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\n\n"])
def test_a_plain_body_in_place_of_a_stream_is_read(mark: bytes) -> None:
    """Some servers do not stream what they should."""
    data = mark + body([TEXT, USE], "tool_use")
    assert fold(data, sizes=[1, 2])[0] == PROTOCOL.parse_body(body([TEXT, USE], "tool_use"))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "UPSTREAM_EMPTY"),
        (b" \n", "UPSTREAM_EMPTY"),
        (b"<html></html>", "UPSTREAM_HTML"),
        (json.dumps(ERROR).encode(), "OVERLOADED"),
        (b"retry: 5\n\n", "STREAM_TRUNCATED"),
    ],
)
def test_what_is_no_stream_is_refused_with_a_code(data: bytes, code: str) -> None:
    """As a whole body would be."""
    with pytest.raises(ProviderError) as caught:
        fold(data)
    assert caught.value.code == code
