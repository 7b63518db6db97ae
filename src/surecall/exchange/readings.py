"""What is said about a reading, and what is left out of one, before it is checked."""

from typing import Any, Final

from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Defect, ErrorDetail, Reading, Receipt, Reply
from surecall.base.redaction import excerpt
from surecall.text import decode
from surecall.wire import RawReply
from surecall.wire.bodies import is_from_text
from surecall.wire.chat_completions.replies import is_function

from .policy import ParseError
from .prepare import Asked
from .request import CompiledTools

DROP_RULE: Final = "drop_parallel_calls"
SNIPPET: Final = 200
"""How many characters of a reply are shown to say why it cannot be used."""


def describe_error(asked: Asked, first: ErrorDetail, reply: Reply, reading: Reading) -> ParseError:
    """Return why calls could not be used, with what the model wrote."""
    shown = reading.calls[0].raw
    if is_from_text(reading) and reply.content != reading.content:
        shown = reply.content  # with the call in it, as whole replies have it
    text = shown if isinstance(shown, str) else str(shown)
    return ParseError(asked.mode, first.code, excerpt(text, SNIPPET))


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


def leave_others(reply: Reply, tools: CompiledTools) -> tuple[Reply, bool]:
    """Do the same where such calls look like those of functions."""
    own = tuple(call for call in reply.calls if not tools.is_other(call.name, call.extra))
    if len(own) == len(reply.calls):
        return reply, False
    return replace(reply, calls=own), True


def without_notes(reading: Reading, names: tuple[str, ...]) -> Reading:
    """Return a reading without receipts of some rules and defects of some codes."""
    calls = tuple(
        replace(call, receipts=tuple(item for item in call.receipts if item.rule not in names))
        for call in reading.calls
    )
    defects = tuple(item for item in reading.defects if item.code not in names)
    return replace(reading, calls=calls, defects=defects)


def take_one(reading: Reading) -> tuple[Reading, tuple[Receipt, ...]]:
    """Keep the first call, where only one is taken; the model can make others later."""
    if len(reading.calls) < 2:
        return reading, ()
    why = "one call is taken in a reply"
    names = [call.name for call in reading.calls[1:]]
    receipt = Receipt(DROP_RULE, "/tool_calls", names, None, lossless=False, why=why)
    note = f"One call is taken in a reply; these were made as well: {', '.join(names)}."
    defects = (*reading.defects, Defect(Code.CALLS_IGNORED, note, "/tool_calls"))
    return replace(reading, calls=reading.calls[:1], defects=defects), (receipt,)


def decode_or_none(body: bytes) -> dict[str, Any] | None:
    """Return the object of a body, when it is one; reading it says what else it is."""
    try:
        value = decode(body, surrogates="replace")
    except JSONTextError:
        return None
    return as_fields(value) if isinstance(value, dict) else None
