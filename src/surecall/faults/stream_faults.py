"""Faults of streams: events that are odd, missing, broken or cut."""

import re
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import Code
from surecall.jsontext import encode, render_comment, render_event

from .answers import Answer, Flood, Pause
from .chunk_edits import (
    add_late_piece,
    add_nulls,
    done_without_finish,
    drop_index,
    edit_call_deltas,
    finish_with_delta,
    repeat_name,
    without_finish,
)
from .drafts import Occasion
from .records import CHAT_ONLY, Fault
from .rendering import CHAT, render_body, render_failure

__all__ = ["STREAM_FAULTS"]

_INDEX: Final = re.compile(rb'"(?:output_)?index":\d+,')
_DONE: Final = b"data: [DONE]\n\n"
_WITH_END: Final = ("chat_completions", "messages", "responses")
_MARK: Final = b"\xef\xbb\xbf"
_ODDITIES: Final = "event streams as their rules allow them; naive parsers break"
_PIECES: Final = "OpenAI-compatible servers; SDKs pass it on as it is"

WireEdit = Callable[[Answer, Occasion], Answer]


def _on_events(edit: Callable[[bytes], bytes]) -> WireEdit:
    def apply(answer: Answer, _: Occasion) -> Answer:
        pieces = tuple(
            edit(piece) if isinstance(piece, bytes) else piece for piece in answer.pieces
        )
        return replace(answer, pieces=pieces)

    return apply


def _split(size: int) -> WireEdit:
    def apply(answer: Answer, _: Occasion) -> Answer:
        body = answer.body
        pieces = tuple(body[start : start + size] for start in range(0, len(body), size))
        return replace(answer, pieces=pieces)

    return apply


def _commented(answer: Answer, _: Occasion) -> Answer:
    comment = render_comment("OPENROUTER PROCESSING")
    return replace(
        answer, pieces=tuple(part for piece in answer.pieces for part in (comment, piece))
    )


def _without_done(answer: Answer, _: Occasion) -> Answer:
    return replace(answer, pieces=tuple(piece for piece in answer.pieces if piece != _DONE))


def _two_ends(answer: Answer, _: Occasion) -> Answer:
    return replace(answer, pieces=(*answer.pieces, *answer.pieces[-1:]))


def _without_index(answer: Answer, occasion: Occasion) -> Answer:
    """Leave out where each event belongs; chunks of chat completions are edited before."""
    if occasion.protocol.name == CHAT:
        return answer
    return _on_events(lambda event: _INDEX.sub(b"", event))(answer, occasion)


def _marked(answer: Answer, _: Occasion) -> Answer:
    return replace(answer, pieces=(_MARK, *answer.pieces))


def _whole(answer: Answer, occasion: Occasion) -> Answer:
    body = encode(render_body(occasion.draft, occasion))
    headers = {**answer.headers, "content-type": "application/json"}
    return replace(answer, pieces=(body,), headers=headers, framing="length")


def _after(share: float, *events: bytes, ends: bool = True) -> WireEdit:
    """Put events where a share of the stream has passed; what follows is left out, or not."""

    def apply(answer: Answer, _: Occasion) -> Answer:
        at = max(1, int(len(answer.pieces) * share))
        rest = () if ends else answer.pieces[at:]
        return replace(answer, pieces=(*answer.pieces[:at], *events, *rest))

    return apply


def _cut_at(answer: Answer, occasion: Occasion) -> Answer:
    """End the stream in the middle of a call, or of the text when there is no call."""
    del occasion
    return replace(answer, pieces=answer.pieces[: max(1, len(answer.pieces) // 2)])


def _error_at_half(status: int, message: str) -> WireEdit:
    """Break the stream off in the middle, as a server of the format does."""

    def apply(answer: Answer, occasion: Occasion) -> Answer:
        at = max(1, len(answer.pieces) // 2)
        return _after(0.5, *render_failure(occasion, status, message, number=at))(answer, occasion)

    return apply


def _overloaded(answer: Answer, occasion: Occasion) -> Answer:
    """Break a chat stream off with an event that has a name; other formats have their own way."""
    if occasion.protocol.name == CHAT:
        return _after(0.5, _OVERLOADED)(answer, occasion)
    return _error_at_half(529, "Overloaded")(answer, occasion)


def _without_end(answer: Answer, occasion: Occasion) -> Answer:
    """Leave out the events that end a reply; chunks of chat completions are edited before."""
    marks = _ENDINGS.get(occasion.protocol.name, ())
    return replace(
        answer,
        pieces=tuple(
            piece
            for piece in answer.pieces
            if not (isinstance(piece, bytes) and any(mark in piece for mark in marks))
        ),
    )


def _stalled(answer: Answer, _: Occasion) -> Answer:
    return replace(answer, pieces=answer.pieces[:2], ending="stall")


def _endless(answer: Answer, _: Occasion) -> Answer:
    comment = render_comment("still working")
    return replace(answer, pieces=(*answer.pieces[:2], Flood(comment, pause_s=0.02)))


def _flooded(answer: Answer, occasion: Occasion) -> Answer:
    event = _FLOODS[occasion.protocol.name] * 2000
    return replace(answer, pieces=(*answer.pieces[:1], Flood(event)))


def _slow(answer: Answer, _: Occasion) -> Answer:
    pieces = (part for piece in answer.pieces for part in (Pause(0.002), piece))
    return replace(answer, pieces=tuple(pieces))


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
_OVERLOADED: Final = render_event(
    '{"error": {"type": "overloaded_error", "message": "Overloaded"}}', event="error"
)
_BROKEN: Final = b'data: {"type": "delta", "delta": {"conte\n\n'


def _stream_fault(name: str, does: str, seen: str = _ODDITIES, **fields: Any) -> Fault:
    return Fault(name=name, group="stream", does=does, seen=seen, reach="stream", **fields)


STREAM_FAULTS: Final = (
    _stream_fault(
        "stream_crlf",
        "Ends lines with CR LF.",
        wire=_on_events(lambda event: event.replace(b"\n", b"\r\n")),
    ),
    _stream_fault(
        "stream_cr",
        "Ends lines with CR alone.",
        wire=_on_events(lambda event: event.replace(b"\n", b"\r")),
    ),
    _stream_fault("stream_bom", "Begins with a byte order mark.", wire=_marked),
    _stream_fault(
        "stream_comments",
        "Sends a comment before every event.",
        "OpenRouter keep-alive comments",
        wire=_commented,
    ),
    _stream_fault(
        "stream_no_space",
        "Writes no space after `data:`.",
        wire=_on_events(lambda event: event.replace(b"data: ", b"data:")),
    ),
    _stream_fault(
        "stream_event_fields",
        "Gives every event a name, an id and a retry time.",
        wire=_on_events(lambda event: b"event: message\nid: 7\nretry: 1000\n" + event),
    ),
    _stream_fault(
        "stream_one_byte", "Sends one byte at a time, also inside characters.", wire=_split(1)
    ),
    _stream_fault(
        "stream_split", "Cuts the stream anywhere, also inside characters.", wire=_split(7)
    ),
    _stream_fault("stream_slow", "Pauses before every event.", wire=_slow),
    _stream_fault(
        "stream_without_done", "Leaves `[DONE]` out.", protocols=CHAT_ONLY, wire=_without_done
    ),
    _stream_fault(
        "stream_two_dones",
        "Sends the event that ends the stream twice, such as `[DONE]`.",
        protocols=_WITH_END,
        wire=_two_ends,
    ),
    _stream_fault(
        "stream_as_body",
        "Answers with a whole body though a stream was asked for.",
        "servers that do not stream calls",
        wire=_whole,
    ),
    _stream_fault(
        "stream_finish_with_delta",
        "Says the finish together with the last piece.",
        _PIECES,
        protocols=CHAT_ONLY,
        chunks=finish_with_delta,
    ),
    _stream_fault(
        "stream_after_finish",
        "Sends an empty piece after the finish.",
        _PIECES,
        protocols=CHAT_ONLY,
        chunks=add_late_piece,
    ),
    _stream_fault(
        "stream_name_repeated",
        "Says the name of the tool in every piece.",
        _PIECES,
        protocols=CHAT_ONLY,
        chunks=edit_call_deltas(repeat_name),
    ),
    _stream_fault(
        "stream_index_missing",
        "Leaves the index out of the pieces of a call.",
        _PIECES,
        protocols=_WITH_END,
        chunks=edit_call_deltas(drop_index),
        wire=_without_index,
    ),
    _stream_fault(
        "stream_nulls",
        "Fills the pieces of a call with nulls.",
        _PIECES,
        protocols=CHAT_ONLY,
        chunks=edit_call_deltas(add_nulls),
    ),
    _stream_fault(
        "stream_no_finish",
        "Ends cleanly without a finish reason and without the event that ends a stream.",
        "servers that crash or are stopped; most clients take it for the end",
        repairable=False,
        code=Code.STREAM_TRUNCATED,
        chunks=without_finish,
        wire=_without_end,
    ),
    _stream_fault(
        "stream_done_without_finish",
        "Says `[DONE]` without a finish reason.",
        "servers that crash or are stopped; most clients take it for the end",
        repairable=False,
        code=Code.STREAM_TRUNCATED,
        protocols=CHAT_ONLY,
        chunks=done_without_finish,
    ),
    _stream_fault(
        "stream_cut",
        "Ends cleanly in the middle of the arguments.",
        "servers that crash or are stopped; most clients take it for the end",
        repairable=False,
        code=Code.STREAM_TRUNCATED,
        wire=_cut_at,
    ),
    _stream_fault(
        "stream_error",
        "Sends an error in the middle of the stream.",
        "OpenRouter and Anthropic, after a 200",
        repairable=False,
        code=Code.UPSTREAM_5XX,
        codes={"messages": Code.STREAM_ERROR, "responses": Code.STREAM_ERROR},
        wire=_error_at_half(502, "Provider disconnected"),
    ),
    _stream_fault(
        "stream_error_event",
        "Sends an error that says it is overloaded in the middle.",
        "OpenRouter and Anthropic, after a 200",
        repairable=False,
        code=Code.OVERLOADED,
        wire=_overloaded,
    ),
    _stream_fault(
        "stream_bad_event",
        "Sends one event that is not JSON, and goes on.",
        "proxies that mix up what they relay",
        repairable=False,
        code=Code.UPSTREAM_BAD_EVENT,
        wire=_after(0.5, _BROKEN, ends=False),
    ),
    _stream_fault(
        "stream_bad_event_skipped",
        "Sends one event that is not JSON, to a run that skips it.",
        "proxies that mix up what they relay",
        repairable=False,
        told=Code.ARGUMENTS_TRUNCATED,
        code=Code.REPEATED_CALL,
        needs="skip_bad_events = true",
        options={"skip_bad_events": True},
        wire=_after(0.5, _BROKEN, ends=False),
    ),
    _stream_fault(
        "stream_stall",
        "Stops sending after the first events and keeps the connection.",
        "servers under load, and hostile ones",
        repairable=False,
        code=Code.IDLE_TIMEOUT,
        wire=_stalled,
    ),
    _stream_fault(
        "stream_comments_forever",
        "Sends nothing but comments after the first events.",
        "servers under load, and hostile ones",
        repairable=False,
        code=Code.TOTAL_TIMEOUT,
        wire=_endless,
    ),
    _stream_fault(
        "stream_flood",
        "Sends events without end.",
        "hostile or looping servers",
        repairable=False,
        code=Code.STREAM_TOO_LARGE,
        wire=_flooded,
    ),
)
