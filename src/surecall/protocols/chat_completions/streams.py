"""Streamed replies: bytes cut anywhere fold into the message a whole reply would carry.

A stream is complete when a finish reason has been seen for its choice; `[DONE]` alone is no proof,
and its absence is no fault. Anything less is `STREAM_TRUNCATED`: a finish is never invented.
Nothing may follow the finish but usage and the finish said again; servers that state it in every
chunk may go on with text.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from surecall.jsontext import SSEEvent
from surecall.protocols.base import RawReply, StreamDelta
from surecall.protocols.event_folder import EventFolder
from surecall.protocols.refusals import check_role, finish_word, text_or_none
from surecall.records import Usage

from .content import REASONING_KEYS
from .message_draft import MessageDraft
from .replies import check_reply, choices_ignored, parse_body, parse_usage, repeated_keys

__all__ = ["ChatStreamFolder"]

_CALL_KEYS: Final = ("tool_calls", "function_call")
_TEXT_KEYS: Final = ("content", "refusal", *REASONING_KEYS)
_PLAIN_ENDS: Final = frozenset({None, "stop", "tool_calls", "function_call"})


class ChatStreamFolder(EventFolder):
    """Folds one streamed reply; feed it every chunk, then close it."""

    def __init__(
        self, headers: Mapping[str, str] | None = None, *, skip_bad_events: bool = False
    ) -> None:
        super().__init__(headers, skip_bad_events=skip_bad_events)
        self._draft = MessageDraft(self._kept)
        self._choice: int | None = None
        self._other_choices: set[int] = set()
        self._has_delta = False
        self._has_role = False
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._model: str | None = None
        self._id: str | None = None

    def _take_fields(
        self, fields: dict[str, Any], event: SSEEvent, shown: list[StreamDelta]
    ) -> None:
        data = event.data
        if "\\ud" in data or "\\uD" in data:
            self._draft.has_halves = True
        self._take_chunk(fields, data, shown)
        if self._draft.calls.has_objects and not self._repeated:
            self._repeated = repeated_keys(data)

    def _take_done(self, shown: list[StreamDelta]) -> None:
        self._done = True
        self._draft.flush(shown)

    def _has_ended(self) -> bool:
        return self._finish is not None

    def _parse_body(self, body: bytes) -> RawReply:
        return parse_body(body, self._headers)

    def _so_far(self) -> tuple[str, int]:
        return self._draft.text, self._draft.calls_count

    def _render(self) -> RawReply:
        raw = RawReply(
            message=self._draft.render(),
            finish_reason=self._finish,
            usage=self._usage,
            model=self._model,
            id=self._id,
            defects=(
                *choices_ignored(len(self._other_choices)),
                *self._draft.defects,
                *self._repeated,
                *self._skipped_defects(),
            ),
        )
        check_reply(raw, has_role=self._has_role)
        return raw

    def _take_chunk(self, chunk: dict[str, Any], data: str, shown: list[StreamDelta]) -> None:
        if chunk.get("error") or chunk.get("object") == "error":
            raise self._reported(chunk)
        if self._id is None:
            self._id = text_or_none(chunk.get("id"))
        if self._model is None:
            self._model = text_or_none(chunk.get("model"))
        if chunk.get("usage"):
            self._usage = parse_usage(chunk["usage"]) or self._usage
        choices: Any = chunk.get("choices") or ()
        if not isinstance(choices, list | tuple):
            self._refuse_event(data, "its choices are not a list.")
            return
        for choice in cast("list[Any]", choices):
            if not isinstance(choice, dict):
                self._refuse_event(data, "a choice is not an object.")
                return
            self._take_choice(cast("dict[str, Any]", choice), data, shown)

    def _take_choice(self, choice: dict[str, Any], data: str, shown: list[StreamDelta]) -> None:
        index = choice.get("index")
        if type(index) is int:
            if self._choice is None:
                self._choice = index
            elif index != self._choice:
                if index not in self._other_choices:
                    self._kept.add_part()
                    self._other_choices.add(index)
                return
        if choice.get("error"):
            raise self._reported(choice)
        finish = finish_word(choice.get("finish_reason"))
        piece: Any = choice.get("delta")
        if piece:
            self._has_delta = True
        elif not (self._has_delta and self._draft):
            # After deltas, a message is the whole said once more.
            piece = choice.get("message")
        if piece:
            if not isinstance(piece, dict):
                self._refuse_event(data, "its delta is not an object.")
                return
            self._take_piece(cast("dict[str, Any]", piece), finish, shown)
        if finish is not None:
            # A plain end does not take back what was said about the end before.
            if self._finish in _PLAIN_ENDS:
                self._finish = finish
            self._draft.flush(shown)

    def _take_piece(
        self, piece: dict[str, Any], finish: str | None, shown: list[StreamDelta]
    ) -> None:
        role = piece.get("role")
        if role:
            check_role(role)
            self._has_role = True
        if self._finish is not None:
            if any(piece.get(key) for key in _CALL_KEYS):
                raise self._refuse_order("brings a call behind the finish")
            if finish is None and any(piece.get(key) for key in _TEXT_KEYS):
                raise self._refuse_order("brings text behind the finish")
        self._draft.take(piece, shown)
