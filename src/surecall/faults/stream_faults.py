"""Faults of streams: events that are odd, missing, broken or cut."""

import re
from collections.abc import Callable
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.errors import Code
from surecall.jsontext import encode, render_comment, render_event

from .answers import Answer, Flood, Pause
from .drafts import Occasion
from .errors import error_event
from .records import CHAT_ONLY, Fault
from .rendering import CHAT, render_body

__all__ = ["STREAM_FAULTS"]

_NUMBER: Final = re.compile(rb'"sequence_number":\d+')
_DONE: Final = b"data: [DONE]\n\n"
_MARK: Final = b"\xef\xbb\xbf"
_ODDITIES: Final = "event streams as their rules allow them; naive parsers break"
_PIECES: Final = "OpenAI-compatible servers; SDKs pass it on as it is"

Chunks = list[Any]
ChunkEdit = Callable[[Chunks, Occasion], Chunks]
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


def _two_dones(answer: Answer, _: Occasion) -> Answer:
    return replace(answer, pieces=(*answer.pieces, _DONE))


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
        event = error_event(occasion.protocol, occasion.request.model, status, message)
        broken = _after(0.5, event)(answer, occasion)
        return _renumbered(broken) if occasion.protocol.name == "responses" else broken

    return apply


def _renumbered(answer: Answer) -> Answer:
    """Go on with the numbers of the events before, where events have numbers."""
    last = b"".join(piece for piece in answer.pieces if isinstance(piece, bytes))
    pieces = [event + b"\n\n" for event in last.split(b"\n\n") if event]
    return replace(
        answer,
        pieces=tuple(
            _NUMBER.sub(b'"sequence_number":%d' % number, piece, count=1)
            for number, piece in enumerate(pieces)
        ),
    )


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


def _without_finish(chunks: Chunks, _: Occasion) -> Chunks:
    kept: Chunks = []
    for chunk in chunks:
        if chunk == "[DONE]":
            continue
        if isinstance(chunk, dict) and _finish_of(cast("dict[str, Any]", chunk)) is not None:
            break
        kept.append(chunk)
    return kept


def _finish_of(chunk: dict[str, Any]) -> Any:
    choices = chunk.get("choices")
    return choices[0].get("finish_reason") if choices else None


def _null_finish(chunks: Chunks, _: Occasion) -> Chunks:
    return [*_without_finish(chunks, _), "[DONE]"]


def _on_call_deltas(edit: Callable[[dict[str, Any], dict[int, str]], dict[str, Any]]) -> ChunkEdit:
    """Return an edit of every piece of a call; it is told the names seen so far, by index."""

    def apply(chunks: Chunks, _: Occasion) -> Chunks:
        names: dict[int, str] = {}
        edited: Chunks = []
        for chunk in chunks:
            calls = _call_deltas(chunk)
            if not calls:
                edited.append(chunk)
                continue
            for call in calls:
                name = call.get("function", {}).get("name")
                if name:
                    names[call.get("index", 0)] = name
            choice = chunk["choices"][0]
            delta = {**choice["delta"], "tool_calls": [edit(call, names) for call in calls]}
            edited.append({**chunk, "choices": [{**choice, "delta": delta}]})
        return edited

    return apply


def _call_deltas(chunk: Any) -> list[dict[str, Any]]:
    fields = cast("dict[str, Any]", chunk) if isinstance(chunk, dict) else {}
    if not fields.get("choices"):
        return []
    calls = fields["choices"][0].get("delta", {}).get("tool_calls")
    return cast("list[dict[str, Any]]", calls) if isinstance(calls, list) else []


def _named_again(call: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    name = names.get(call.get("index", 0), "")
    return {**call, "function": {**call.get("function", {}), "name": name}}


def _without_index(call: dict[str, Any], _: dict[int, str]) -> dict[str, Any]:
    return {key: value for key, value in call.items() if key != "index"}


def _null_beside(call: dict[str, Any], _: dict[int, str]) -> dict[str, Any]:
    function = {"name": None, **call.get("function", {})}
    return {"id": None, "type": None, **call, "function": function}


def _finish_with_delta(chunks: Chunks, _: Occasion) -> Chunks:
    """Say the finish in the last chunk that carries something."""
    finishes = [index for index, chunk in enumerate(chunks) if _is_finish(chunk)]
    if not finishes or finishes[0] == 0 or not chunks[finishes[0] - 1].get("choices"):
        return chunks
    at = finishes[0]
    before, finish = chunks[at - 1], chunks[at]
    choice = {**before["choices"][0], "finish_reason": _finish_of(finish)}
    return [*chunks[: at - 1], {**before, "choices": [choice]}, *chunks[at + 1 :]]


def _is_finish(chunk: Any) -> bool:
    return isinstance(chunk, dict) and _finish_of(cast("dict[str, Any]", chunk)) is not None


def _late_text(chunks: Chunks, _: Occasion) -> Chunks:
    """Send a delta without anything in it after the finish."""
    at = next((index for index, chunk in enumerate(chunks) if _is_finish(chunk)), -1)
    if at < 0:
        return chunks
    empty = {"index": 0, "delta": {"content": ""}, "finish_reason": None}
    return [*chunks[: at + 1], {**chunks[at], "choices": [empty]}, *chunks[at + 1 :]]


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
    _stream_fault("stream_two_dones", "Says `[DONE]` twice.", protocols=CHAT_ONLY, wire=_two_dones),
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
        chunks=_finish_with_delta,
    ),
    _stream_fault(
        "stream_after_finish",
        "Sends an empty piece after the finish.",
        _PIECES,
        protocols=CHAT_ONLY,
        chunks=_late_text,
    ),
    _stream_fault(
        "stream_name_repeated",
        "Says the name of the tool in every piece.",
        _PIECES,
        protocols=CHAT_ONLY,
        chunks=_on_call_deltas(_named_again),
    ),
    _stream_fault(
        "stream_index_missing",
        "Leaves the index out of the pieces of a call.",
        _PIECES,
        protocols=CHAT_ONLY,
        chunks=_on_call_deltas(_without_index),
    ),
    _stream_fault(
        "stream_nulls",
        "Fills the pieces of a call with nulls.",
        _PIECES,
        protocols=CHAT_ONLY,
        chunks=_on_call_deltas(_null_beside),
    ),
    _stream_fault(
        "stream_no_finish",
        "Ends cleanly without a finish reason and without the event that ends a stream.",
        "servers that crash or are stopped; most clients take it for the end",
        repairable=False,
        code=Code.STREAM_TRUNCATED,
        chunks=_without_finish,
        wire=_without_end,
    ),
    _stream_fault(
        "stream_done_without_finish",
        "Says `[DONE]` without a finish reason.",
        "servers that crash or are stopped; most clients take it for the end",
        repairable=False,
        code=Code.STREAM_TRUNCATED,
        protocols=CHAT_ONLY,
        chunks=_null_finish,
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
