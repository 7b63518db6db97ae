"""A recorded reply: which kind of document it is, and what a run would do with its calls."""

import asyncio
import sys
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from surecall.base.errors import Code, ProviderError
from surecall.base.limits import MIB
from surecall.base.records import Reading, Receipt, Reply, ToolCall, ToolResult
from surecall.base.redaction import mask_known
from surecall.models.config import know_keys
from surecall.reading import InputKind, parse_input, tell_input
from surecall.tools import Dispatcher, MaskedRegistry, ToolContext

from .flags import invalid_option
from .progress import count_of

MAX_INPUT_BYTES: Final = 10 * MIB

_MARK: Final = b"\xef\xbb\xbf"


class Arrival(Struct, frozen=True, kw_only=True):
    """Something that was recorded, and the reply in it or why there is none."""

    kind: InputKind
    protocol: str
    data: bytes
    reply: Reply | None = None
    error: ProviderError | None = None


def read_input(place: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`.

    Raises:
        ConfigError: The file cannot be read, is empty, or is too large.
    """
    shown = "Standard input" if place == "-" else f"The file {place}"
    try:
        if place == "-":
            data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        else:
            with Path(place).open("rb") as file:
                data = file.read(MAX_INPUT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        hint = "Name a file that can be read, or `-` for standard input."
        raise invalid_option(f"{shown} cannot be read: {reason}.", hint) from error
    if len(data) > MAX_INPUT_BYTES:
        size = f"{MAX_INPUT_BYTES // MIB} MiB"
        raise invalid_option(
            f"{shown} is larger than {size}.", "Give one reply, not a log of many."
        )
    if not data.removeprefix(_MARK).strip():
        raise invalid_option(f"{shown} is empty.", "Give what a model or provider sent.")
    know_keys()
    return mask_known(data)


def parse_arrival(data: bytes, protocol: str | None = None, choice: int | None = None) -> Arrival:
    """Find out what was recorded, and the reply in it.

    Raises:
        ConfigError: It is text that is not UTF-8, a message that no model wrote, or has no such
            choice.
    """
    found = tell_input(data, protocol)
    try:
        reply, error = parse_input(found, choice), None
    except ProviderError as problem:
        reply, error = None, problem
    return Arrival(kind=found.kind, protocol=found.protocol, data=data, reply=reply, error=error)


_WORDS: Final = {
    "would_run": "would run",
    "not_checked": "readable, not checked against tools",
    "refused": "refused",
}


class Outcome(Struct, frozen=True, kw_only=True):
    """What a run would do with one call."""

    call: ToolCall
    what: Literal["would_run", "refused", "not_checked"]
    codes: tuple[str, ...] = ()
    result: ToolResult | None = None
    """What the model would be told, when the call is refused."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What a run would do with the whole reply."""

    ok: bool
    """Whether nothing is refused."""
    is_checked: bool
    """Whether the tools were there to check against."""
    summary: str
    calls: int = 0
    would_run: int = 0
    refused: int = 0
    not_checked: int = 0
    codes: tuple[str, ...] = ()
    changes: int = 0
    lossy_changes: int = 0
    error: dict[str, Any] | None = None
    """Why there is no reply at all, when that is so."""


def grade_calls(reading: Reading, tools: MaskedRegistry) -> tuple[Outcome, ...]:
    """Send every call through the checks of a run; behind them is nothing that acts."""
    return asyncio.run(_dispatch(reading.calls, tools)) if reading.calls else ()


async def _dispatch(calls: tuple[ToolCall, ...], tools: MaskedRegistry) -> tuple[Outcome, ...]:
    dispatcher = Dispatcher(tools)
    outcomes: list[Outcome] = []
    for call in calls:
        result = await dispatcher.dispatch(call, ToolContext(call_id=call.id))
        codes = result.envelope.error_codes
        if result.executed:
            outcomes.append(Outcome(call=call, what="would_run"))
        elif not len(tools) and codes == (Code.TOOL_NOT_ALLOWED,):
            outcomes.append(Outcome(call=call, what="not_checked"))
        else:
            outcomes.append(Outcome(call=call, what="refused", codes=codes, result=result))
    return tuple(outcomes)


def grade_reading(reading: Reading, outcomes: tuple[Outcome, ...], *, has_tools: bool) -> Verdict:
    """Count what would happen, and say it in one line."""
    counts = {what: sum(outcome.what == what for outcome in outcomes) for what in _WORDS}
    codes = tuple(dict.fromkeys(str(code) for outcome in outcomes for code in outcome.codes))
    receipts = [*reading.receipts, *(item for call in reading.calls for item in call.receipts)]
    parts: list[str] = []
    for what, words in _WORDS.items():
        named = f"{words} ({', '.join(codes)})" if what == "refused" else words
        if counts[what]:
            parts.append(named if len(outcomes) == 1 else f"{counts[what]} {named}")
    calls = f"{count_of(len(outcomes), 'call')}: {', '.join(parts)}" if parts else "no calls"
    if not parts and not has_tools and reading.content:
        calls = "no calls; without tools, only markup was looked at"
    return Verdict(
        ok=not counts["refused"],
        is_checked=has_tools,
        summary=f"{calls}; {_changes_text(receipts)}",
        calls=len(outcomes),
        would_run=counts["would_run"],
        refused=counts["refused"],
        not_checked=counts["not_checked"],
        codes=codes,
        changes=len(receipts),
        lossy_changes=sum(not receipt.lossless for receipt in receipts),
    )


def _changes_text(receipts: list[Receipt]) -> str:
    if not receipts:
        return "no changes"
    lossy = sum(not receipt.lossless for receipt in receipts)
    if len(receipts) == 1:
        return "1 change, lossy" if lossy else "1 change, lossless"
    which = f"{lossy} of them lossy" if lossy else "all lossless"
    return f"{len(receipts)} changes, {which}"
