"""What is said about a reading, and what is left out of one, before it is judged."""

from typing import Final

from msgspec.structs import replace

from surecall.narrow import as_fields, as_list
from surecall.protocols import RawReply
from surecall.records import ErrorDetail, Reading, Receipt, Reply, clip

from .documents import is_from_text, is_function
from .policy import ParseError
from .prepare import Asked

SNIPPET: Final = 200
"""How many characters of a reply are shown to say why it cannot be used."""


def describe_error(asked: Asked, first: ErrorDetail, reply: Reply, reading: Reading) -> ParseError:
    """Return why calls could not be used, with what the model wrote."""
    shown = reading.calls[0].raw
    if is_from_text(reading) and reply.content != reading.content:
        shown = reply.content  # with the call in it, as whole replies have it
    text = shown if isinstance(shown, str) else str(shown)
    return ParseError(asked.mode, first.code, clip(text, SNIPPET))


def is_likely_text(reading: Reading, reply: Reply) -> bool:
    """Tell whether a reply is text that only may be a call: it may as well be an answer."""
    has_text = bool((reply.content or "").strip()) or is_from_text(reading)
    return (
        has_text
        and not (reply.calls or reply.malformed)
        and all(call.certainty == "likely" and call.arguments is not None for call in reading.calls)
    )


def without_others(raw: RawReply) -> tuple[RawReply, bool]:
    """Leave calls of tools that are not functions out of what is read; they stay as they are."""
    entries = raw.message.get("tool_calls")
    if not isinstance(entries, list):
        return raw, False
    own = [entry for entry in as_list(entries) if is_function(as_fields(entry))]
    if len(own) == len(as_list(entries)):
        return raw, False
    return replace(raw, message={**raw.message, "tool_calls": own}), True


def without_notes(reading: Reading, names: tuple[str, ...]) -> Reading:
    """Return a reading without receipts of some rules and defects of some codes."""
    calls = tuple(
        replace(call, receipts=tuple(item for item in call.receipts if item.rule not in names))
        for call in reading.calls
    )
    defects = tuple(item for item in reading.defects if item.code not in names)
    return replace(reading, calls=calls, defects=defects)


def with_receipts(reading: Reading, receipts: tuple[Receipt, ...]) -> Reading:
    """Return a reading with more receipts: of its first call, or of its own without one."""
    if not reading.calls:
        return replace(reading, receipts=receipts + reading.receipts)
    call, *rest = reading.calls
    return replace(reading, calls=(replace(call, receipts=receipts + call.receipts), *rest))
