"""A reply, whole or as it arrives, becomes calls, with a receipt for every change."""

import re
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import Defect, ErrorDetail, RawCall, Reading, Reply, ToolCall
from surecall.calls import (
    FORMATS,
    TAUGHT_FORMATS,
    CallFormat,
    CallPiece,
    Piece,
    TextReader,
    ToolNames,
    may_hold_call,
)
from surecall.calls.finder import find_likely_calls
from surecall.calls.names import names_a_tool
from surecall.calls.written_json import repair_call
from surecall.text import TextBuffer, repair_surrogates

from .calls import OWN_ID_PREFIX, CallReader, ReadingLimits, ReplyShape, read_clean_calls
from .inputs import parse_input, tell_input
from .rules import BLANK_TRANSFORM, FUNCTION_CALL_TO_CALLS, TAGS_TO_CALLS
from .tools import ToolsLike, name_tools
from .transforms import TAG_FORMATS, TAG_OPENER
from .truncation import came_to_its_end, cut_cause, doubt_finish, refused, says_malformed
from .wording import (
    HALF_IN_ARGUMENTS,
    HALVES,
    MALFORMED,
    MAY_GO_ON,
    MENDED,
    REPEATED_KEY,
    doubt_judgement,
    note_lost,
    note_malformed,
    note_unread,
    note_unreadable,
    refuse_cut,
)

_LEGACY_ID_PREFIX: Final = "call_"
_TAG_ID_PREFIX: Final = "tag_call_"
_MIN_BLANK_TAIL: Final = 16
"""White space that is no layout any more but a model that repeats itself."""
_GAVE_UP: Final = Defect(
    Code.READING_BUDGET_EXCEEDED,
    "The text has more in it that may be a call than is looked at in one reply;"
    " the rest was taken as plain text.",
)


class TextRead(Struct, frozen=True):
    """Text to show now."""

    text: str


class ReasoningRead(Struct, frozen=True):
    """Reasoning text."""

    text: str


class TextWasReasoning(Struct, frozen=True):
    """All text shown so far turned out to be reasoning."""

    dropped_chars: int = 0
    """White space at its beginning, which is no part of the reasoning."""


class CallRead(Struct, frozen=True):
    """A call that is certain."""

    call: ToolCall


Accept = Literal["certain", "likely"]
"""Which calls to take from text: only those that nobody could doubt, or probable ones, too."""

ReadEvent = TextRead | ReasoningRead | TextWasReasoning | CallRead
"""What became certain while a reply was read."""


def _doubted(call: ToolCall, doubt: str) -> ToolCall:
    return call if call.arguments is None else replace(call, certainty="likely", doubt=doubt)


def _ends_blank(written: str) -> bool:
    return written[-_MIN_BLANK_TAIL:].isspace() and len(written) > _MIN_BLANK_TAIL


class ReplyReader:
    """Reads the text of one reply as it arrives.

    Args:
        tools: OpenAI tool objects, tool specs, a registry, or names that were prepared.
        generation_prompt: What the template had already opened, such as `<think>`.
        used_ids: Ids of earlier calls in the conversation, which are not given again.
        limits: How large arguments may be.
        taught: Whether the model was told to write its calls in fenced blocks, so that any such
            block may be one.
        formats: The formats to look for; by default all that are known.
        shape: How ids are given.
        accept: Whether to take calls that the text only probably makes; otherwise they are listed.
    """

    def __init__(
        self,
        tools: ToolsLike | ToolNames = None,
        generation_prompt: str | None = None,
        *,
        used_ids: Collection[str] = (),
        limits: ReadingLimits = ReadingLimits(),  # noqa: B008 - frozen
        taught: bool = False,
        formats: tuple[CallFormat, ...] | None = None,
        shape: ReplyShape = ReplyShape(),  # noqa: B008 - frozen
        accept: Accept = "certain",
    ) -> None:
        if formats is None:
            formats = TAUGHT_FORMATS if taught else FORMATS
        names = _tool_names(tools)
        is_read = bool(names) or names.is_unknown
        self._formats = formats if is_read else ()
        self._text = TextReader(names, self._formats, generation_prompt)
        self._names = names
        self._accept: Accept = accept
        self._calls = CallReader(names, used_ids=used_ids, limits=limits, shape=shape)
        self._content = TextBuffer()
        self._reasoning = TextBuffer()
        self._read: list[ToolCall] = []
        self._waiting: CallPiece | None = None
        self._cause: str | None = None
        self._came_to_end = False
        self._half = ""
        self._damage = ""
        self.last_retraction: TextWasReasoning | None = None
        """The last of these events, also of those that only the end of the text brought."""

    @property
    def held_characters(self) -> int:
        """How much text is held back, because it may be part of a call."""
        return self._text.held_characters

    @property
    def has_calls(self) -> bool:
        """Whether a call was found, also one that the rest of the text may still change."""
        return self._waiting is not None or bool(self._read)

    def feed(self, chunk: str) -> list[ReadEvent]:
        """Take the next text and return what is certain now."""
        return self._take(self._text.feed(self._repair_halves(chunk, is_last=False)))

    def close(self, finish_reason: str | None = None) -> Reading:
        """Return the reading of the whole reply; nothing more will come.

        Text that was told is the beginning of its content, unless it turns out only now that it
        was reasoning.
        """
        return self.read_whole("", finish_reason)

    def read_whole(self, text: str, finish_reason: str | None = None) -> Reading:
        """Return the reading of the reply, of which this is the rest, in one pass."""
        self._cause = cut_cause(finish_reason)
        self._came_to_end = came_to_its_end(finish_reason)
        self._take(self._text.read_whole(self._repair_halves(text, is_last=True)))
        if self._waiting is not None:
            # Only the last call can be hurt by the end of the text, unless its own end is there.
            in_payload = self._text.ends_in_payload and not _ends_blank(self._waiting.written)
            in_payload = in_payload or self._waiting.call.may_go_on
            hurt = self._cause if in_payload else self._doubt(self._waiting)
            doubt = MAY_GO_ON if self._waiting.call.may_go_on else ""
            self._read.append(self._read_call(self._waiting, hurt, doubt))
            self._waiting = None
        content, seen, unread, is_over_limit = self._read_likely(str(self._content))
        if doubt := doubt_finish(finish_reason):
            self._read = [_doubted(call, doubt) for call in self._read]
        dropped = self._text.dropped.receipts
        defects = tuple(self._calls.defects)
        gave_up = self._text.gave_up and may_hold_call(content, self._names, self._formats)
        if gave_up or is_over_limit:
            defects = (*defects, _GAVE_UP)
        return Reading(
            calls=tuple(self._read),
            content=content,
            reasoning=str(self._reasoning) or None,
            defects=(*defects, *note_lost(dropped), *map(note_unread, seen), *unread),
            receipts=dropped,
            seen=seen,
            finish_reason=finish_reason,
        )

    def _repair_halves(self, text: str, *, is_last: bool) -> str:
        """Return text without halves of characters, which make what is read from it doubtful."""
        if not self._half and text.isascii():
            return text
        text, self._half = self._half + text, ""
        if not is_last and _FIRST_HALF.match(text, len(text) - 1):
            text, self._half = text[:-1], text[-1]
        mended = repair_surrogates(text)
        if mended.count(_MARK) > text.count(_MARK):
            self._damage = HALVES
        return mended

    def _read_likely(
        self, content: str
    ) -> tuple[str, tuple[ToolCall, ...], Iterable[Defect], bool]:
        """Take the calls that the text probably makes, and return the rest; or list them.

        The last of what is returned tells whether there was more than is looked at.
        """
        found = find_likely_calls(content, self._names, is_beside=bool(self._read))
        if found is None:
            return content, (), (), False
        unread = map(note_unreadable, dict.fromkeys(found.unread))
        known = {_identity(call) for call in self._read}
        reader = self._calls if self._accept == "likely" else CallReader(self._names)
        likely: list[ToolCall] = []
        for one in found.calls:
            resolved = self._names.resolve(one.call.name)
            piece = CallPiece(one.call, one.format, resolved, one.written)
            call = _doubted(reader.read_text(piece, self._cause), doubt_judgement(one.why))
            if _identity(call) not in known:
                likely.append(call)
        if self._accept == "likely" and likely:
            self._read += likely
            return found.content, (), unread, found.is_over_limit
        return content, tuple(likely), unread, found.is_over_limit

    def _take(self, pieces: list[Piece]) -> list[ReadEvent]:
        events: list[ReadEvent] = []
        for piece in pieces:
            self._finish_call(events)
            if isinstance(piece, CallPiece):
                self._waiting = piece
            elif piece.kind == "content":
                self._content.append(piece.text)
                events.append(TextRead(piece.text))
            elif piece.kind == "reasoning":
                self._reasoning.append(piece.text)
                events.append(ReasoningRead(piece.text))
            else:
                events.append(self._retract())
        return events

    def _retract(self) -> TextWasReasoning:
        text = str(self._reasoning) + str(self._content)
        self._content.clear()
        self._reasoning.clear()
        self._reasoning.append(text.strip())
        self.last_retraction = TextWasReasoning(len(text) - len(text.lstrip()))
        return self.last_retraction

    def _read_call(self, piece: CallPiece, cut: str | None, doubt: str = "") -> ToolCall:
        ended = self._came_to_end and piece.ends_text
        written = piece.call
        doubt = doubt or self._damage
        if ended and cut is None and written.state == "cut" and written.unclosed is None:
            mended = repair_call(piece.written, self._names, written.name)
            if mended is not None:
                piece, doubt = replace(piece, call=mended), doubt or MENDED
        return self._calls.read_text(piece, cut, ended=ended, doubt=doubt)

    def _doubt(self, piece: CallPiece) -> str | None:
        """A call that only the end of the message makes one is doubtful when that was cut off.

        In reasoning that did not close it may only have been thought about, and more text behind
        bare calls would make them part of that. A model that writes nothing but blank lines up to
        its limit has no more to say.
        """
        doubtful = piece.in_open_reasoning or (piece.is_bare and not _ends_blank(piece.written))
        return self._cause if doubtful else None

    def _finish_call(self, events: list[Any]) -> None:
        """A call that something follows is certain."""
        if self._waiting is not None:
            call = self._read_call(self._waiting, self._doubt(self._waiting))
            self._read.append(call)
            events.append(CallRead(call))
            self._waiting = None


_UNKNOWN_TOOLS: Final = ToolNames(is_unknown=True)
_MARK: Final = "\ufffd"
_FIRST_HALF: Final = re.compile("[\ud800-\udbff]")
_CLEAN_ENDS: Final = frozenset({"stop", "tool_calls", None})


def read_reply(
    message: Any,
    *,
    tools: ToolsLike | ToolNames = None,
    accept: Accept = "certain",
    protocol: str | None = None,
    choice: int | None = None,
    finish_reason: str | None = None,
    generation_prompt: str | None = None,
    text_formats: bool = True,
    used_ids: Collection[str] = (),
    limits: ReadingLimits = ReadingLimits(),  # noqa: B008 - frozen
    taught: bool = False,
    transforms: Collection[str] = (),
) -> Reading:
    """Read what a model answered.

        reply = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
        surecall.read_reply(reply).calls[0].name  # 'ping'

    Args:
        message: The model's text; a message, a choice or a whole body of any wire format, as an
            object, as an object of an SDK, or as JSON text; a recorded stream, as text or as a list
            of events; or a parsed reply. Text that is none of these is what the model wrote.
        tools: The tools that were offered: functions, tools, specs, a registry, or tool objects of
            any wire format. With tools, arguments are fitted to their schemas, and calls written as
            text are found. None means that they are not known: then calls in markup are found. An
            empty list means that none were offered: then no text is a call.
        accept: `likely` also takes calls that the text only probably makes. By default they stay in
            the content and are listed as `seen`.
        protocol: The wire format, where the shape of what is given does not tell it.
        choice: Which of several choices, counted from 0; by default the first.
        finish_reason: Why the model stopped; by default the reason in the reply.
        generation_prompt: What the template had already opened, such as `<think>`.
        text_formats: Whether to look for calls written as text when there are no others.
        used_ids: Ids of earlier calls in the conversation, which are not given again.
        limits: How large arguments may be.
        taught: Whether the model was told to write its calls in fenced blocks.
        transforms: Built-in transforms of replies and calls that are on. The one for tags has
            `<tool_call>` tags read where text formats are off.

    Raises:
        ConfigError: What is given is not a reply, or an option cannot be used.
        ProviderError: It is a body or a stream without a whole reply.
        ToolDefinitionError: One of the tools is not a tool.
    """
    names = _tool_names(tools)
    if isinstance(message, Reply):
        reply = message
    else:
        reply = parse_input(tell_input(message, protocol), choice)
    if finish_reason is not None:
        reply = replace(reply, finish_reason=finish_reason)
    if says_malformed(reply.finish_reason):
        reply = _as_malformed(reply)
    open_reader = partial(ReplyReader, names, used_ids=used_ids, limits=limits)
    may_call = bool(names) or names.is_unknown
    if may_call and reply.content and not (reply.calls or reply.malformed):
        if TAGS_TO_CALLS in transforms and TAG_OPENER in reply.content:
            shape = ReplyShape(id_prefix=_TAG_ID_PREFIX)
            reading = _read_text(reply, open_reader(formats=TAG_FORMATS, shape=shape))
            if reading.calls:
                return reading
        if text_formats:
            formats = TAUGHT_FORMATS if taught else FORMATS
            if generation_prompt is None and _is_plain(reply.content, names, formats):
                return _as_reading(reply)
            reader = open_reader(generation_prompt, taught=taught, accept=accept)
            return _read_text(reply, reader)
    reading = _read_fields(reply, names, used_ids, limits, transforms)
    if reply.malformed and text_formats:
        ids = {*used_ids, *(call.id for call in reading.calls)}
        return _read_malformed(reply, reading, open_reader(used_ids=ids, accept="likely"), accept)
    if text_formats and reply.content and names and reading.calls:
        return _note_other_calls(reading, names)
    return reading


def _is_plain(text: str, names: ToolNames, formats: tuple[CallFormat, ...]) -> bool:
    """Tell by a few searches whether nothing in a text can be a call or reasoning: most texts."""
    return not may_hold_call(text, names, formats) and find_likely_calls(text, names) is None


def _as_reading(
    reply: Reply, calls: tuple[ToolCall, ...] = (), defects: Iterable[Defect] = ()
) -> Reading:
    return Reading(
        calls=calls,
        content=reply.content or "",
        reasoning=reply.reasoning,
        defects=(*reply.defects, *defects),
        receipts=reply.receipts,
        finish_reason=reply.finish_reason,
    )


def _read_fields(
    reply: Reply,
    names: ToolNames,
    used_ids: Collection[str],
    limits: ReadingLimits,
    transforms: Collection[str],
) -> Reading:
    """Read the calls that came in the fields made for them."""
    if reply.finish_reason in _CLEAN_ENDS and not reply.defects:
        clean = read_clean_calls(reply.calls, names, used_ids, limits)
        if clean is not None:
            return _as_reading(reply, clean)
    shape = _shape_of(reply, transforms)
    reader = CallReader(names, used_ids=used_ids, limits=limits, shape=shape)
    refusal = _refusal(reply)
    has_halves = any(defect.code == Code.LONE_SURROGATE for defect in reply.defects)
    calls = [
        reader.read(call, HALF_IN_ARGUMENTS if has_halves and _is_marked(call) else refusal)
        for call in reply.calls
    ]
    return _as_reading(reply, tuple(calls), reader.defects)


def _is_marked(call: RawCall) -> bool:
    written = call.arguments
    return _MARK in (written if isinstance(written, str) else repr(written))


def _note_other_calls(reading: Reading, names: ToolNames) -> Reading:
    """List calls that the text next to calls in fields makes, and that are not among these."""
    if not names_a_tool(reading.content, names):
        return reading
    in_text = ReplyReader(names, accept="likely").read_whole(reading.content)
    known = {_identity(call) for call in reading.calls}
    seen = tuple(call for call in in_text.calls if _identity(call) not in known)
    if not seen:
        return reading
    return replace(reading, seen=seen, defects=(*reading.defects, *map(note_unread, seen)))


def _as_malformed(reply: Reply) -> Reply:
    """Take the text of a reply for the call that its provider says it could not read."""
    if not reply.content or reply.calls or reply.malformed:
        return reply
    note = Defect(Code.MALFORMED_FUNCTION_CALL, note_malformed(reply.content))
    defects = (*reply.defects, note)
    return replace(reply, content=None, malformed=reply.content, defects=defects)


def _read_malformed(reply: Reply, reading: Reading, reader: ReplyReader, accept: Accept) -> Reading:
    """Add what the provider could not read: calls in it are likely at most, and none is text."""
    found = reader.read_whole(reply.malformed).calls
    calls = tuple(_doubted(call, MALFORMED) for call in found)
    if accept == "likely":
        return replace(reading, calls=(*reading.calls, *calls))
    return replace(reading, seen=calls, defects=(*reading.defects, *map(note_unread, calls)))


def _identity(call: ToolCall) -> tuple[str, str]:
    return call.name, repr(call.arguments)


def _shape_of(reply: Reply, transforms: Collection[str]) -> ReplyShape:
    """Return what the calls of a reply are read with."""
    codes = {defect.code for defect in reply.defects}
    is_legacy = Code.LEGACY_FUNCTION_CALL in codes and FUNCTION_CALL_TO_CALLS in transforms
    return ReplyShape(
        ended=came_to_its_end(reply.finish_reason),
        doubt=doubt_finish(reply.finish_reason),
        id_prefix=_LEGACY_ID_PREFIX if is_legacy else OWN_ID_PREFIX,
        lone_call=Code.CALLS_AS_OBJECT in codes,
        objects_are_odd=Code.ARGUMENTS_AS_OBJECT in codes,
        blank_is_empty=BLANK_TRANSFORM in transforms,
    )


def _read_text(reply: Reply, reader: ReplyReader) -> Reading:
    text = reply.content or ""
    reading = reader.read_whole(text, reply.finish_reason)
    if not reading.calls and reading.content == repair_surrogates(text):
        reading = replace(reading, content=text)
    parts = [part for part in (reply.reasoning, reading.reasoning) if part]
    calls = reading.calls
    if lost := cut_cause(None, reply.defects):
        calls = tuple(refused(call, "cut", refuse_cut(lost)) for call in calls)
    return replace(
        reading,
        calls=calls,
        reasoning="\n".join(parts) or None,
        defects=(*reply.defects, *reading.defects),
        receipts=(*reply.receipts, *reading.receipts),
    )


def _tool_names(tools: ToolsLike | ToolNames) -> ToolNames:
    if tools is None:
        return _UNKNOWN_TOOLS
    return tools if isinstance(tools, ToolNames) else name_tools(tools)


def _refusal(reply: Reply) -> ErrorDetail | None:
    """Return why every call is refused for what its reply is, whatever its own arguments say.

    Arguments that are text now may have been the object with the repeated key: a transform can
    have written it out.
    """
    cause = cut_cause(reply.finish_reason, reply.defects)
    if cause is not None:
        return refuse_cut(cause)
    if reply.defects and any(defect.code == Code.DUPLICATE_KEY for defect in reply.defects):
        return REPEATED_KEY
    return None
