"""One call, from what a protocol or a text format found to what can be checked and run."""

from collections.abc import Collection, Iterable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import Code
from surecall.formats import CallPiece, ToolNames
from surecall.jsontext import decode_plain
from surecall.records import (
    CallState,
    Defect,
    ErrorDetail,
    RawCall,
    Receipt,
    ToolCall,
    ToolSpec,
    clip,
)

from .arguments import (
    MAX_ARGUMENTS_BYTES,
    ArgumentsReading,
    is_stand_in,
    read_arguments,
    text_bytes,
)
from .ids import CallIds, read_name
from .truncation import doubt_closers, truncated

__all__ = ["MAX_TOTAL_ARGUMENTS_BYTES", "CallReader", "ReadingLimits", "read_clean_calls"]

MAX_TOTAL_ARGUMENTS_BYTES: Final = 1024 * 1024
_ENDED: Final = Receipt(
    "missing_closer",
    "text",
    "",
    "the end of the call",
    why="the arguments are complete, and the model came to its own end",
)
_TWO_READINGS: Final = ErrorDetail(
    Code.ARGUMENTS_JSON_PARSE_ERROR,
    "The arguments can be read in more than one way, because a tag of the call is missing or "
    "stands inside a value.",
    "Make the call again, with every tag closed.",
)


class ReadingLimits(Struct, frozen=True, kw_only=True):
    """How large the arguments of one call, and of all calls of a reply, may be."""

    max_arguments_bytes: int = MAX_ARGUMENTS_BYTES
    max_total_arguments_bytes: int = MAX_TOTAL_ARGUMENTS_BYTES


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
        if value is None or is_stand_in(value) or (names and not _fits(names, name, value)):
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
        return True
    checker = None if spec.coerce == "off" else names.checker(spec)
    return spec.name == name and (checker is None or checker.is_valid(value))


class CallReader:
    """Reads the calls of one reply, in order."""

    __slots__ = (
        "_count",
        "_doubt",
        "_ended",
        "_ids",
        "_limits",
        "_names",
        "_total_bytes",
        "defects",
    )

    def __init__(
        self,
        names: ToolNames,
        *,
        used_ids: Collection[str] = (),
        limits: ReadingLimits = ReadingLimits(),  # noqa: B008 - frozen
        ended: bool = False,
        doubt: str = "",
    ) -> None:
        self._names = names
        self._ended = ended
        self._doubt = doubt
        self._ids = CallIds(used_ids)
        self._limits = limits
        self._total_bytes = 0
        self._count = 0
        self.defects: list[Defect] = []

    def read(self, call: RawCall, refusal: ErrorDetail | None = None) -> ToolCall:
        """Read a call that a protocol found; with a refusal it is only named and measured."""
        return self._read(call, call.receipts, refusal, self._doubt)

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
                receipts=(*written.receipts, replace(_ENDED, lossless=not doubt)),
            )
        receipt = Receipt(
            "read_call_from_text",
            "content",
            clip(piece.written),
            piece.resolved or written.name,
            why=f"written in the {piece.format} format",
        )
        raw = RawCall(written.id, written.name, written.arguments, piece.format)
        refusal = None
        if written.state == "cut":
            cut = cut or "the text stops in the middle of the call"
        if written.state == "unreadable":
            refusal = _TWO_READINGS
        if cut is not None:
            refusal = truncated(cut)
        doubt = doubt or doubt_closers(written.receipts)
        return self._read(raw, (receipt, *written.receipts), refusal, doubt)

    def _read(
        self, call: RawCall, known: tuple[Receipt, ...], refusal: ErrorDetail | None, doubt: str
    ) -> ToolCall:
        position = self._count
        self._count += 1
        receipts: list[Receipt] = list(known)
        call_id = self._ids.read(call, position, receipts, self.defects)
        name = read_name(call, position, receipts, self.defects)
        spec = self._names.spec(name) if self._names else None
        if spec is not None and spec.name != name:
            renamed = self._names.receipt(name, f"/tool_calls/{position}/name")
            receipts += () if renamed is None else (renamed,)
            name = spec.name
        reading = self._read_arguments(call, spec)
        self._total_bytes += reading.bytes
        if refusal is None and self._total_bytes > self._limits.max_total_arguments_bytes:
            refusal = self._over_budget()
        if refusal is not None:
            state: CallState = "cut" if refusal.code == Code.ARGUMENTS_TRUNCATED else "unreadable"
            reading = ArgumentsReading(state=state, errors=(refusal,), bytes=reading.bytes)
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

    def _read_arguments(self, call: RawCall, spec: ToolSpec | None) -> ArgumentsReading:
        limit = self._limits.max_arguments_bytes
        checker = None if spec is None or spec.coerce == "off" else self._names.checker(spec)
        if spec is None or checker is None:
            return read_arguments(call.arguments, max_bytes=limit, ended=self._ended)
        return read_arguments(
            call.arguments,
            spec.parameters,
            max_bytes=limit,
            ended=self._ended,
            checker=checker,
            tool_name=spec.name,
        )

    def _over_budget(self) -> ErrorDetail:
        limit = self._limits.max_total_arguments_bytes
        return ErrorDetail(
            Code.ARGUMENTS_TOO_LARGE,
            f"The calls up to this one have {self._total_bytes:,} bytes of arguments; "
            f"the limit for one reply is {limit:,} bytes.",
            "Make this call again, in a reply with fewer or smaller calls.",
        )
