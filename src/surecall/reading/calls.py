"""One call, from what a protocol or a text format found to what can be checked and run."""

from collections.abc import Collection, Iterable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.json_values import as_fields
from surecall.base.limits import MAX_ARGUMENTS_BYTES, MAX_TURN_ARGUMENTS_BYTES
from surecall.base.records import (
    CallState,
    Defect,
    ErrorDetail,
    RawCall,
    Receipt,
    ToolCall,
    ToolSpec,
    clip,
)
from surecall.calls import CallPiece, TextCall, ToolNames
from surecall.text import decode_plain

from .arguments import (
    ArgumentsReading,
    is_stand_in,
    read_arguments,
    text_bytes,
)
from .rules import (
    BLANK_TO_EMPTY_OBJECT,
    CALLS_OBJECT_TO_ARRAY,
    FUNCTION_CALL_TO_CALLS,
    OBJECT_TO_ARGUMENTS,
)
from .truncation import (
    doubt_blank,
    doubt_receipts,
    holds_markup,
    is_complete,
    lacks_only_end,
    refused,
    vouch_for_members,
)
from .wording import (
    BESIDE,
    TWO_READINGS,
    note_leftovers,
    note_not_offered,
    refuse_cut,
    refuse_total,
)

OWN_ID_PREFIX: Final = "tc_"
_MAX_ID_BITS: Final = 128
_STRUCTURED: Final = "tool_calls"
_LEGACY: Final = "function_call"


class CallIds:
    """Gives the calls of one reply their ids."""

    __slots__ = ("_prefix", "_suffixes", "_used")

    def __init__(self, used_ids: Collection[str] = (), prefix: str = OWN_ID_PREFIX) -> None:
        self._used = set(used_ids)
        self._prefix = prefix
        self._suffixes: dict[str, int] = {}

    def read(
        self, call: RawCall, position: int, receipts: list[Receipt], defects: list[Defect]
    ) -> str:
        """Return the id of the call at a position; a change leaves a receipt."""
        said = _said(call.id)
        wanted = said or f"{self._prefix}{position + 1}"
        given = wanted if wanted not in self._used else self._renamed(wanted)
        self._used.add(given)
        if given == call.id:
            return given
        place = f"/tool_calls/{position}/id"
        before = clip(call.id) if isinstance(call.id, str) else said
        if not said:
            why = "The call came without a usable id."
            if call.format == _STRUCTURED:  # others carry none: there is nothing that was changed
                receipts.append(Receipt("assign_call_id", place, before or None, given, why=why))
                defects.append(Defect(Code.ID_NOT_USABLE, why, place))
        elif given != said:
            why = "The id is taken by another call."
            receipts.append(Receipt("rename_repeated_id", place, before, given, why=why))
            defects.append(Defect(Code.ID_REPEATED, why, place))
        else:
            why = "The id was not plain text."
            receipts.append(Receipt("clean_call_id", place, before, given, why=why))
        return given

    def _renamed(self, wanted: str) -> str:
        number = self._suffixes.get(wanted, 1)
        while True:
            number += 1
            candidate = f"{wanted}__{number}"
            if candidate not in self._used:
                self._suffixes[wanted] = number
                return candidate


def read_name(call: RawCall, position: int, receipts: list[Receipt], defects: list[Defect]) -> str:
    """Return the name of the tool, without the space around it; empty when it is not usable."""
    name = call.name.strip() if isinstance(call.name, str) else ""
    if name and name == call.name:
        return name
    place = f"/tool_calls/{position}/name"
    if not name:
        why = "The call names no tool."
        defects.append(Defect(Code.NAME_NOT_USABLE, why, place))
    if isinstance(call.name, str) and call.name != name:
        receipts.append(Receipt("strip_name", place, clip(call.name), clip(name)))
    return name


def _said(value: Any) -> str:
    """Return what was sent as an id, as text; empty when it is none."""
    if isinstance(value, str):
        return value.strip()
    if type(value) is int and value.bit_length() <= _MAX_ID_BITS:
        return str(value)
    return ""


_ENDED: Final = Receipt(
    "missing_closer",
    "text",
    "",
    "the end of the call",
    lossless=False,
    why="the arguments are complete, and the model came to its own end",
)


class ReplyShape(Struct, frozen=True, kw_only=True):
    """What is known of a whole reply that its calls are read with."""

    ended: bool = False
    """Whether the model is known to have come to its own end."""
    doubt: str = ""
    """Why its calls may not be whole."""
    id_prefix: str = OWN_ID_PREFIX
    """What the ids begin with that are given to calls without one."""
    lone_call: bool = False
    """Whether one call came without its list."""
    objects_are_odd: bool = False
    """Whether arguments should be text, and some are not."""
    blank_is_empty: bool = False
    """Whether blank arguments mean none, also for a tool that has some."""

    @property
    def renames(self) -> bool:
        """Whether calls in text get ids of ours, whatever ids they have."""
        return self.id_prefix != OWN_ID_PREFIX


class ReadingLimits(Struct, frozen=True, kw_only=True):
    """How large the arguments of one call, and of all calls of a reply, may be."""

    max_arguments_bytes: int = MAX_ARGUMENTS_BYTES
    max_total_arguments_bytes: int = MAX_TURN_ARGUMENTS_BYTES


def read_clean_calls(
    calls: Iterable[RawCall], names: ToolNames, used_ids: Collection[str], limits: ReadingLimits
) -> tuple[ToolCall, ...] | None:
    """Read the calls of a reply that is whole and has nothing odd, as almost all have; or None.

    What this reads, `CallReader` reads in the same way.
    """
    read: list[ToolCall] = []
    used = set(used_ids)
    room_bytes = limits.max_total_arguments_bytes
    for call in calls:
        given, name, written = call.id, call.name, call.arguments
        if given.__class__ is not str or not given or given.strip() != given or given in used:
            return None
        if name.__class__ is not str or not name or name.strip() != name:
            return None
        if written.__class__ is not str or written[:1] != "{":
            return None
        size = len(written) if written.isascii() else text_bytes(written)
        room_bytes -= size
        if room_bytes < 0 or size > limits.max_arguments_bytes:
            return None
        value = decode_plain(written)
        if value is None or is_stand_in(value):
            return None
        if call.beside or call.extra or not (names.is_unknown or _fits(names, name, value)):
            return None
        used.add(given)
        read.append(
            ToolCall(
                id=given,
                name=name,
                arguments=value,
                raw=written,
                receipts=call.receipts,
                format=call.format,
                extra=call.extra,
                arguments_bytes=size,
            )
        )
    return tuple(read)


def _fits(names: ToolNames, name: str, value: dict[str, Any]) -> bool:
    """Tell whether neither the name nor the arguments have to change for the tools there are."""
    spec = names.spec(name)
    if spec is None:
        return False
    checker = None if spec.coerce == "off" else names.checker(spec)
    return spec.name == name and (checker is None or checker.is_exact(value))


def _has_beside(call: RawCall, spec: ToolSpec) -> bool:
    """Tell whether a field next to the arguments has the name of a parameter."""
    properties = as_fields(spec.parameters.get("properties"))
    return any(name in properties for name in (*call.beside, *call.extra))


class CallReader:
    """Reads the calls of one reply, in order."""

    __slots__ = (
        "_count",
        "_ids",
        "_limits",
        "_names",
        "_shape",
        "_total_bytes",
        "defects",
    )

    def __init__(
        self,
        names: ToolNames,
        *,
        used_ids: Collection[str] = (),
        limits: ReadingLimits = ReadingLimits(),  # noqa: B008 - frozen
        shape: ReplyShape = ReplyShape(),  # noqa: B008 - frozen
    ) -> None:
        self._names = names
        self._shape = shape
        self._ids = CallIds(used_ids, shape.id_prefix)
        self._limits = limits
        self._total_bytes = 0
        self._count = 0
        self.defects: list[Defect] = []

    def read(self, call: RawCall, refusal: ErrorDetail | None = None) -> ToolCall:
        """Read a call that a protocol found; with a refusal it is only named and measured."""
        return self._read(call, call.receipts, refusal, self._shape.doubt)

    def read_text(
        self, piece: CallPiece, cut: str | None = None, *, ended: bool = False, doubt: str = ""
    ) -> ToolCall:
        """Read a call that was found in text.

        Args:
            piece: The call, as a reader of text found it.
            cut: Why it cannot be whole, if it cannot.
            ended: Whether the model is known to have come to its own end with it.
            doubt: Why it may not be whole, if nothing shows that it is.
        """
        written = piece.call
        if ended and written.state == "cut" and written.unclosed is not None:
            written = replace(
                written,
                state="whole",
                arguments=written.unclosed,
                receipts=(*written.receipts, _ENDED),
            )
        receipt = Receipt(
            "read_call_from_text",
            "content",
            clip(piece.written),
            piece.resolved or written.name,
            why=f"written in the {piece.format} format",
        )
        call_id = None if self._shape.renames else written.id
        raw = RawCall(call_id, written.name, written.arguments, piece.format)
        refusal = None
        if written.state == "cut":
            cut = cut or "the text stops in the middle of the call"
        if written.state == "unreadable":
            refusal = TWO_READINGS
        if cut is not None:
            refusal = refuse_cut(cut)
        receipts = written.receipts
        doubt = doubt or written.doubt
        if receipts:
            if not doubt and lacks_only_end(receipts) and self._has_all(written):
                receipts = vouch_for_members(receipts)
            doubt = doubt or doubt_receipts(receipts)
            self.defects += note_leftovers(written.name, receipts)
        call = self._read(raw, (receipt, *receipts), refusal, doubt)
        is_damaged = any(not one.lossless for one in receipts)
        if is_damaged and call.arguments and holds_markup(call.arguments, piece.written):
            return refused(call, "unreadable", TWO_READINGS)
        return call

    def _has_all(self, written: TextCall) -> bool:
        """Tell whether nothing can be missing, because every declared property is there.

        Behind an object or array at the end, it may be that which lost its end, and more.
        """
        spec = self._names.spec(written.name)
        arguments: Any = written.arguments
        if isinstance(arguments, str):
            arguments = decode_plain(arguments)
        if spec is None or not is_complete(arguments, spec.parameters):
            return False
        return not arguments or not isinstance(list(arguments.values())[-1], dict | list)

    def _read(
        self, call: RawCall, known: tuple[Receipt, ...], refusal: ErrorDetail | None, doubt: str
    ) -> ToolCall:
        position = self._count
        self._count += 1
        receipts: list[Receipt] = list(known)
        call_id = self._ids.read(call, position, receipts, self.defects)
        name = read_name(call, position, receipts, self.defects)
        self._note_shape(call, position, call_id, receipts)
        spec = self._names.spec(name) if self._names else None
        if spec is not None and spec.name != name:
            renamed = self._names.receipt(name, f"/tool_calls/{position}/name")
            receipts += () if renamed is None else (renamed,)
            name = spec.name
        elif spec is None and name and not self._names.is_unknown:
            self.defects.append(note_not_offered(name, f"/tool_calls/{position}/name"))
        reading = self._read_arguments(call, spec)
        self._total_bytes += reading.bytes
        if refusal is None and self._total_bytes > self._limits.max_total_arguments_bytes:
            refusal = refuse_total(self._total_bytes, self._limits.max_total_arguments_bytes)
        if refusal is not None:
            state: CallState = "cut" if refusal.code == Code.ARGUMENTS_TRUNCATED else "unreadable"
            reading = ArgumentsReading(state=state, errors=(refusal,), bytes=reading.bytes)
        if reading.doubt and self._shape.blank_is_empty and _was_blank(reading):
            reading = replace(reading, doubt="")
        if spec is not None and (call.beside or call.extra) and _has_beside(call, spec):
            reading = replace(reading, doubt=BESIDE)
        if reading.doubt:
            place = f"/tool_calls/{position}/arguments"
            self.defects.append(Defect(Code.CALL_NOT_CERTAIN, reading.doubt, place))
        doubt = "" if reading.value is None else doubt or reading.doubt
        return ToolCall(
            id=call_id,
            name=name,
            arguments=reading.value,
            raw=call.arguments,
            state=reading.state,
            receipts=(*receipts, *reading.receipts),
            errors=reading.errors,
            format=call.format,
            extra=call.extra,
            arguments_bytes=reading.bytes,
            certainty="likely" if doubt else "certain",
            doubt=doubt,
        )

    def _note_shape(
        self, call: RawCall, position: int, call_id: str, receipts: list[Receipt]
    ) -> None:
        """Leave a receipt for each field of the reply that was not as it should be."""
        if call.format == _LEGACY:
            why = "the call came in the older field"
            receipts.append(
                Receipt(FUNCTION_CALL_TO_CALLS, "/function_call", call.name, call_id, why=why)
            )
        if self._shape.lone_call:
            why = "one call came without its list"
            receipts.append(
                Receipt(CALLS_OBJECT_TO_ARRAY, "/tool_calls", "object", "array", why=why)
            )
        if self._shape.objects_are_odd and isinstance(call.arguments, dict):
            place = f"/tool_calls/{position}/arguments"
            why = "the arguments came as an object instead of its text"
            receipts.append(Receipt(OBJECT_TO_ARGUMENTS, place, "object", "text", why=why))

    def _read_arguments(self, call: RawCall, spec: ToolSpec | None) -> ArgumentsReading:
        limit = self._limits.max_arguments_bytes
        checker = None if spec is None or spec.coerce == "off" else self._names.checker(spec)
        if spec is None or checker is None:
            reading = read_arguments(call.arguments, max_bytes=limit, ended=self._shape.ended)
            if spec is not None and _was_blank(reading):
                reading = replace(reading, doubt=doubt_blank(spec.parameters))
            return reading
        return read_arguments(
            call.arguments,
            spec.parameters,
            max_bytes=limit,
            ended=self._shape.ended,
            checker=checker,
            tool_name=spec.name,
        )


def _was_blank(reading: ArgumentsReading) -> bool:
    return any(receipt.rule == BLANK_TO_EMPTY_OBJECT for receipt in reading.receipts)
