"""Reading with rules switched off: what a reply would have been worth without them."""

from typing import Final

from msgspec.structs import replace

from surecall.errors import Code
from surecall.records import ErrorDetail, Reading, Receipt, Reply, ToolCall

from .rules import IDENTITY_RULES

__all__ = ["ALL_RULES", "without_rules"]

ALL_RULES: Final = "*"
"""Stands for every rule."""

_TEXT: Final = "read_call_from_text"
_NAME: Final = "resolve_tool_name"


def without_rules(reading: Reading, reply: Reply, disabled: frozenset[str]) -> Reading:
    """Undo a reading as far as it rests on rules that are switched off.

    A call that needed such a rule is refused, one that was only found by it is text again, and a
    name that it corrected is as the model wrote it. Rules about ids stay on unless named.
    """
    if not disabled or not reading.calls:
        return reading
    if any(_rests_on(call, _TEXT, disabled) for call in reading.calls):
        return replace(reading, calls=(), content=reply.content or "")
    calls = tuple(_without(call, disabled) for call in reading.calls)
    return replace(reading, calls=calls)


def _without(call: ToolCall, disabled: frozenset[str]) -> ToolCall:
    kept: list[Receipt] = []
    name, broken = call.name, ""
    for receipt in call.receipts:
        if not _is_off(receipt.rule, disabled):
            kept.append(receipt)
        elif receipt.rule == _NAME:
            name = str(receipt.before)
        else:
            broken = broken or receipt.rule
    if len(kept) == len(call.receipts):
        return call
    call = replace(call, name=name, receipts=tuple(kept))
    if not broken or call.arguments is None:
        return call
    error = ErrorDetail(
        Code.ARGUMENTS_JSON_PARSE_ERROR,
        f"The arguments can only be used after {broken}, which is switched off.",
        "Send the arguments as one JSON object that fits the tool's schema.",
    )
    return replace(call, arguments=None, state="unreadable", errors=(error,))


def _rests_on(call: ToolCall, rule: str, disabled: frozenset[str]) -> bool:
    return _is_off(rule, disabled) and any(receipt.rule == rule for receipt in call.receipts)


def _is_off(rule: str, disabled: frozenset[str]) -> bool:
    return rule in disabled or (ALL_RULES in disabled and rule not in IDENTITY_RULES)
