"""Faults of streams: events that are odd, missing, broken or cut."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.json_values import as_fields, as_list
from surecall.faults.answers import Answer, Flood, Pause, Piece
from surecall.faults.rendering import CHAT, render_body, render_failure
from surecall.faults.replies import Occasion
from surecall.text import encode, render_comment, render_event

from .fault import CHAT_ONLY, FaultTable, WireEdit

Chunks = list[Any]
DeltaEdit = Callable[[dict[str, Any], dict[int, str]], dict[str, Any]]

_INDEX: Final = re.compile(rb'"(?:output_)?index":\d+,')
_DONE: Final = "[DONE]"
_WITH_END: Final = ("chat_completions", "messages", "responses")
_MARK: Final = b"\xef\xbb\xbf"
_BROKEN: Final = b'data: {"type": "delta", "delta": {"conte\n\n'
_OVERLOADED: Final = render_event(
    '{"error": {"type": "overloaded_error", "message": "Overloaded"}}', event="error"
)
_ENDINGS: Final = {
    "gemini": (b'"finishReason":',),
    "messages": (b"event: message_delta\n", b"event: message_stop\n"),
    "responses": (b"event: response.completed\n", b"event: response.incomplete\n"),
}
_FLOODS: Final = {
    "chat_completions": render_event('{"choices": []}'),
    "gemini": render_event('{"responseId": "' + "x" * 256 + '"}'),
    "messages": render_event('{"type": "ping"}', event="ping"),
    "responses": render_event('{"type": "keepalive"}', event="keepalive"),
}

_PIECES: Final = "OpenAI-compatible servers; SDKs pass it on as it is"
_CRASHES: Final = "servers that crash or are stopped; most clients take it for the end"
_AFTER_200: Final = "OpenRouter and Anthropic, after a 200"
_MIXED_UP: Final = "proxies that mix up what they relay"
_UNDER_LOAD: Final = "servers under load, and hostile ones"

STREAM: Final = FaultTable(
    "stream", reach="stream", seen="event streams as their rules allow them; naive parsers break"
)


def _edit_events(edit: Callable[[bytes], bytes]) -> WireEdit:
    return lambda answer, _: _with_pieces(
        answer, (edit(piece) if isinstance(piece, bytes) else piece for piece in answer.pieces)
    )


def _replace_bytes(old: bytes, new: bytes) -> WireEdit:
    return _edit_events(lambda event: event.replace(old, new))


def _split(size: int) -> WireEdit:
    def apply(answer: Answer, _: Occasion) -> Answer:
        body = answer.body
        return _with_pieces(answer, (body[at : at + size] for at in range(0, len(body), size)))

    return apply


def _put_before_each(piece: Piece) -> WireEdit:
    return lambda answer, _: _with_pieces(
        answer, (part for event in answer.pieces for part in (piece, event))
    )


def _with_pieces(answer: Answer, pieces: Iterable[Piece]) -> Answer:
    return replace(answer, pieces=tuple(pieces))


STREAM.add("stream_crlf", "Ends lines with CR LF.", wire=_replace_bytes(b"\n", b"\r\n"))
STREAM.add("stream_cr", "Ends lines with CR alone.", wire=_replace_bytes(b"\n", b"\r"))


@STREAM.on_wire()
def stream_bom(answer: Answer, _: Occasion) -> Answer:
    """Begins with a byte order mark."""
    return _with_pieces(answer, (_MARK, *answer.pieces))


STREAM.add(
    "stream_comments",
    "Sends a comment before every event.",
    seen="OpenRouter keep-alive comments",
    wire=_put_before_each(render_comment("OPENROUTER PROCESSING")),
)
STREAM.add(
    "stream_no_space", "Writes no space after `data:`.", wire=_replace_bytes(b"data: ", b"data:")
)
STREAM.add(
    "stream_event_fields",
    "Gives every event a name, an id and a retry time.",
    wire=_edit_events(lambda event: b"event: message\nid: 7\nretry: 1000\n" + event),
)
STREAM.add("stream_one_byte", "Sends one byte at a time, even inside characters.", wire=_split(1))
STREAM.add("stream_split", "Cuts the stream anywhere, even inside characters.", wire=_split(7))
STREAM.add("stream_slow", "Pauses before every event.", wire=_put_before_each(Pause(0.002)))


@STREAM.on_wire(protocols=CHAT_ONLY)
def stream_without_done(answer: Answer, _: Occasion) -> Answer:
    """Leaves `[DONE]` out."""
    done = render_event(_DONE)
    return _with_pieces(answer, (piece for piece in answer.pieces if piece != done))


@STREAM.on_wire(protocols=_WITH_END)
def stream_two_dones(answer: Answer, _: Occasion) -> Answer:
    """Sends the event that ends the stream twice, such as `[DONE]`."""
    return _with_pieces(answer, (*answer.pieces, *answer.pieces[-1:]))


@STREAM.on_wire(seen="servers that do not stream calls")
def stream_as_body(answer: Answer, occasion: Occasion) -> Answer:
    """Answers with a whole body though a stream was asked for."""
    body = encode(render_body(occasion.reply, occasion))
    headers = {**answer.headers, "content-type": "application/json"}
    return replace(answer, pieces=(body,), headers=headers, framing="length")


@STREAM.on_chunks(seen=_PIECES, protocols=CHAT_ONLY)
def stream_finish_with_delta(chunks: Chunks, _: Occasion) -> Chunks:
    """Says the finish together with the last piece."""
    at = _find_finish(chunks)
    if at is None or at == 0 or not chunks[at - 1].get("choices"):
        return chunks
    before = chunks[at - 1]
    choice = {**before["choices"][0], "finish_reason": _finish_of(chunks[at])}
    return [*chunks[: at - 1], {**before, "choices": [choice]}, *chunks[at + 1 :]]


@STREAM.on_chunks(seen=_PIECES, protocols=CHAT_ONLY)
def stream_after_finish(chunks: Chunks, _: Occasion) -> Chunks:
    """Sends an empty piece after the finish."""
    at = _find_finish(chunks)
    if at is None:
        return chunks
    empty = {"index": 0, "delta": {"content": ""}, "finish_reason": None}
    return [*chunks[: at + 1], {**chunks[at], "choices": [empty]}, *chunks[at + 1 :]]


@STREAM.on_chunks(seen=_PIECES, protocols=CHAT_ONLY)
def stream_name_repeated(chunks: Chunks, _: Occasion) -> Chunks:
    """Says the name of the tool in every piece."""

    def repeat(call: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
        name = names.get(call.get("index", 0), "")
        return {**call, "function": {**call.get("function", {}), "name": name}}

    return _edit_call_deltas(chunks, repeat)


def _drop_index(answer: Answer, occasion: Occasion) -> Answer:
    """Leave out where each event belongs; chunks of chat completions are edited before."""
    if occasion.protocol.name == CHAT:
        return answer
    return _edit_events(lambda event: _INDEX.sub(b"", event))(answer, occasion)


@STREAM.on_chunks(seen=_PIECES, protocols=_WITH_END, wire=_drop_index)
def stream_index_missing(chunks: Chunks, _: Occasion) -> Chunks:
    """Leaves the index out of the pieces of a call."""
    return _edit_call_deltas(
        chunks, lambda call, _: {key: value for key, value in call.items() if key != "index"}
    )


@STREAM.on_chunks(seen=_PIECES, protocols=CHAT_ONLY)
def stream_nulls(chunks: Chunks, _: Occasion) -> Chunks:
    """Fills the pieces of a call with nulls."""

    def fill(call: dict[str, Any], _: dict[int, str]) -> dict[str, Any]:
        function = {"name": None, **call.get("function", {})}
        return {"id": None, "type": None, **call, "function": function}

    return _edit_call_deltas(chunks, fill)


def _drop_end(answer: Answer, occasion: Occasion) -> Answer:
    """Leave out the events that end a reply; chunks of chat completions are edited before."""
    marks = _ENDINGS.get(occasion.protocol.name, ())
    return _with_pieces(
        answer,
        (
            piece
            for piece in answer.pieces
            if not (isinstance(piece, bytes) and any(mark in piece for mark in marks))
        ),
    )


@STREAM.on_chunks(seen=_CRASHES, code=Code.STREAM_TRUNCATED, wire=_drop_end)
def stream_no_finish(chunks: Chunks, _: Occasion) -> Chunks:
    """Ends cleanly without a finish reason and without the event that ends a stream."""
    return [chunk for chunk in chunks[: _find_finish(chunks)] if chunk != _DONE]


@STREAM.on_chunks(seen=_CRASHES, code=Code.STREAM_TRUNCATED, protocols=CHAT_ONLY)
def stream_done_without_finish(chunks: Chunks, _: Occasion) -> Chunks:
    """Says `[DONE]` without a finish reason."""
    return [*(chunk for chunk in chunks[: _find_finish(chunks)] if chunk != _DONE), _DONE]


@STREAM.on_wire(seen=_CRASHES, code=Code.STREAM_TRUNCATED)
def stream_cut(answer: Answer, _: Occasion) -> Answer:
    """Ends cleanly in the middle of the arguments."""
    return _put_at_half(answer)


@STREAM.on_wire(
    seen=_AFTER_200,
    code=Code.UPSTREAM_5XX,
    codes={"messages": Code.STREAM_ERROR, "responses": Code.STREAM_ERROR},
)
def stream_error(answer: Answer, occasion: Occasion) -> Answer:
    """Sends an error in the middle of the stream."""
    return _fail_at_half(answer, occasion, 502, "Provider disconnected")


@STREAM.on_wire(seen=_AFTER_200, code=Code.OVERLOADED)
def stream_error_event(answer: Answer, occasion: Occasion) -> Answer:
    """Sends an error that says it is overloaded in the middle."""
    if occasion.protocol.name == CHAT:  # as an event that has a name; others have their own way
        return _put_at_half(answer, _OVERLOADED)
    return _fail_at_half(answer, occasion, 529, "Overloaded")


@STREAM.on_wire(seen=_MIXED_UP, code=Code.UPSTREAM_BAD_EVENT)
def stream_bad_event(answer: Answer, _: Occasion) -> Answer:
    """Sends one event that is not JSON, and continues."""
    return _put_at_half(answer, _BROKEN, ends=False)


@STREAM.on_wire(
    seen=_MIXED_UP,
    refusal=Code.ARGUMENTS_TRUNCATED,
    needs="skip_bad_events = true",
    options={"skip_bad_events": True},
)
def stream_bad_event_skipped(answer: Answer, _: Occasion) -> Answer:
    """Sends one event that is not JSON, to a run that skips it."""
    return _put_at_half(answer, _BROKEN, ends=False)


@STREAM.on_wire(seen=_UNDER_LOAD, code=Code.IDLE_TIMEOUT)
def stream_stall(answer: Answer, _: Occasion) -> Answer:
    """Stops sending after the first events and keeps the connection."""
    return replace(answer, pieces=answer.pieces[:2], ending="stall")


@STREAM.on_wire(seen=_UNDER_LOAD, code=Code.TOTAL_TIMEOUT)
def stream_comments_forever(answer: Answer, _: Occasion) -> Answer:
    """Sends nothing but comments after the first events."""
    comments = Flood(render_comment("still working"), pause_s=0.02)
    return _with_pieces(answer, (*answer.pieces[:2], comments))


@STREAM.on_wire(seen="hostile or looping servers", code=Code.STREAM_TOO_LARGE)
def stream_flood(answer: Answer, occasion: Occasion) -> Answer:
    """Sends events without end."""
    events = Flood(_FLOODS[occasion.protocol.name] * 2000)
    return _with_pieces(answer, (*answer.pieces[:1], events))


def _put_at_half(answer: Answer, *events: bytes, ends: bool = True) -> Answer:
    """Put events where half of the stream has passed; what follows is left out, or not."""
    at = max(1, len(answer.pieces) // 2)
    rest = () if ends else answer.pieces[at:]
    return _with_pieces(answer, (*answer.pieces[:at], *events, *rest))


def _fail_at_half(answer: Answer, occasion: Occasion, status: int, message: str) -> Answer:
    """Break the stream off in the middle, as a server of the format does."""
    at = max(1, len(answer.pieces) // 2)
    return _put_at_half(answer, *render_failure(occasion, status, message, number=at))


def _finish_of(chunk: Any) -> Any:
    choices = as_fields(chunk).get("choices")
    return choices[0].get("finish_reason") if choices else None


def _find_finish(chunks: Chunks) -> int | None:
    """Return where the finish reason is."""
    finishes = (at for at, chunk in enumerate(chunks) if _finish_of(chunk) is not None)
    return next(finishes, None)


def _edit_call_deltas(chunks: Chunks, edit: DeltaEdit) -> Chunks:
    """Edit every piece of a call; the edit gets the names seen so far, by index."""
    names: dict[int, str] = {}
    edited: Chunks = []
    for chunk in chunks:
        choices = as_list(as_fields(chunk).get("choices"))
        choice = as_fields(choices[0]) if choices else {}
        calls = as_list(choice.get("delta", {}).get("tool_calls"))
        if not calls:
            edited.append(chunk)
            continue
        for call in calls:
            name = call.get("function", {}).get("name")
            if name:
                names[call.get("index", 0)] = name
        delta = {**choice["delta"], "tool_calls": [edit(call, names) for call in calls]}
        edited.append({**chunk, "choices": [{**choice, "delta": delta}]})
    return edited
