"""Whether the calls that ran are those that a case expects."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, cast

from msgspec import Struct

from surecall.base.errors import JSONTextError
from surecall.base.records import clip
from surecall.evals.cases import assign_calls
from surecall.evals.final_text import states_number
from surecall.evals.records import Reason
from surecall.schema import SchemaChecker
from surecall.text import decode

from .document import CallDoc, CaseDoc, ChecksDoc


class CustomReason(StrEnum):
    """Every reason for which a case of a user's file is not passed."""

    RUN_FAILED = "RUN_FAILED"
    """The run ended with an error instead of an answer."""
    CALL_MISSING = "CALL_MISSING"
    """An expected call was not made, or not in its place."""
    CALL_UNEXPECTED = "CALL_UNEXPECTED"
    """A call was made that is not among the expected ones."""
    CALL_FORBIDDEN = "CALL_FORBIDDEN"
    """A tool was called that must not be."""
    TEXT_WRONG = "TEXT_WRONG"
    """The final text is not as asked for."""
    STATE_WRONG = "STATE_WRONG"
    """The check in Python says no."""
    CHECK_BROKE = "CHECK_BROKE"
    """The check in Python raised an exception."""


class CalledTool(Struct, frozen=True, kw_only=True):
    """A call that ran."""

    name: str
    arguments: dict[str, Any]
    ok: bool = True
    data: dict[str, Any] = {}
    """What the tool answered."""


def check_calls(case: CaseDoc, ran: Sequence[CalledTool]) -> list[Reason]:
    """Say why the calls that ran are not the expected ones; nothing when they are."""
    wanted = case.calls
    if wanted is None:
        return []
    used = match_places(case, ran)
    missing = [call for place, call in enumerate(wanted) if place not in used]
    reasons = [Reason(CustomReason.CALL_MISSING, _describe_wanted(call)) for call in missing]
    if case.extra_calls == "refuse":
        taken = set(used.values())
        reasons += (
            Reason(CustomReason.CALL_UNEXPECTED, _describe_call(call.name, call.arguments))
            for place, call in enumerate(ran)
            if place not in taken
        )
    return reasons


def match_places(case: CaseDoc, ran: Sequence[CalledTool]) -> dict[int, int]:
    """Return, for each expected call that was made, the place of the call that it is."""
    match = _match_any_order if case.order == "any" else _match_in_order
    return match(case.calls or (), ran)


def is_expected(case: CaseDoc, call: CalledTool) -> bool:
    """Tell whether a call is any of the expected ones."""
    return any(_is_right(wanted, call) for wanted in case.calls or ())


def check_text(checks: ChecksDoc, text: str) -> Iterator[Reason]:
    """Yield what is wrong with the final text; spaces around it do not count."""
    given = text.strip()
    text = _fold(given, checks)
    shown = clip(repr(text), 120)
    accepted = [*checks.text_one_of]
    if checks.text_equals is not None:
        accepted.append(checks.text_equals)
    if accepted and text not in [_fold(each.strip(), checks) for each in accepted]:
        yield Reason(CustomReason.TEXT_WRONG, f"{shown} is not {' or '.join(map(repr, accepted))}")
    for part in checks.text_contains:
        if _fold(part, checks) not in text:
            yield Reason(CustomReason.TEXT_WRONG, f"{part!r} is not in {shown}")
    for part in checks.text_lacks:
        if _fold(part, checks) in text:
            yield Reason(CustomReason.TEXT_WRONG, f"{part!r} is in {shown}")
    if checks.text_number is not None and not states_number(given, checks.text_number):
        yield Reason(CustomReason.TEXT_WRONG, f"{checks.text_number:g} is not in {shown}")
    if checks.text_matches is not None:
        pattern = {"type": "string", "pattern": checks.text_matches}
        if SchemaChecker(pattern).check(given):
            yield Reason(CustomReason.TEXT_WRONG, f"{shown} does not match {checks.text_matches}")
    if checks.text_schema is not None:
        yield from _check_schema(checks.text_schema, given)


def _check_schema(schema: dict[str, Any], text: str) -> Iterator[Reason]:
    try:
        value = decode(text)
    except JSONTextError as error:
        yield Reason(CustomReason.TEXT_WRONG, f"it is not JSON: {clip(str(error), 120)}")
        return
    for wrong in SchemaChecker(schema).check(value)[:1]:
        yield Reason(CustomReason.TEXT_WRONG, clip(wrong.message, 200))


def fits(when: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Tell whether a call has these arguments, whatever others it has."""
    return all(
        key in arguments and same_value(value, arguments[key]) for key, value in when.items()
    )


def same_value(wanted: Any, found: Any) -> bool:
    """Tell whether two JSON values are the same; 1 and 1.0 are, 1 and true are not."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            return False
        mine, theirs = cast("Mapping[str, Any]", wanted), cast("Mapping[str, Any]", found)
        return mine.keys() == theirs.keys() and fits(mine, theirs)
    if isinstance(wanted, list | tuple):
        if not isinstance(found, list | tuple):
            return False
        items, others = cast("Sequence[Any]", wanted), cast("Sequence[Any]", found)
        return len(items) == len(others) and all(map(same_value, items, others))
    return bool(wanted == found)


def _is_right(wanted: CallDoc, call: CalledTool) -> bool:
    if wanted.any_of:
        return any(_is_right(choice, call) for choice in wanted.any_of)
    given = call.arguments
    if call.name != wanted.tool or any(key in given for key in wanted.absent):
        return False
    if not fits(wanted.arguments, given):
        return False
    for key, choices in wanted.one_of.items():
        if key not in given or not any(same_value(choice, given[key]) for choice in choices):
            return False
    return wanted.match == "subset" or given.keys() == wanted.arguments.keys() | wanted.one_of


def _match_in_order(wanted: Sequence[CallDoc], ran: Sequence[CalledTool]) -> dict[int, int]:
    used: dict[int, int] = {}
    start = 0
    for place, call in enumerate(wanted):
        found = next((i for i in range(start, len(ran)) if _is_right(call, ran[i])), None)
        if found is not None:
            used[place], start = found, found + 1
    return used


def _match_any_order(wanted: Sequence[CallDoc], ran: Sequence[CalledTool]) -> dict[int, int]:
    right = [[i for i, made in enumerate(ran) if _is_right(call, made)] for call in wanted]
    return assign_calls(right)


def _describe_wanted(call: CallDoc) -> str:
    if call.any_of:
        return " or ".join(_describe_wanted(choice) for choice in call.any_of)
    arguments: dict[str, Any] = {**call.arguments}
    arguments |= {key: {"one_of": list(values)} for key, values in call.one_of.items()}
    return _describe_call(call.tool, arguments)


def _describe_call(name: str, arguments: Mapping[str, Any]) -> str:
    return clip(f"{name} {dict(arguments)!r}", 200)


def _fold(text: str, checks: ChecksDoc) -> str:
    return text.casefold() if checks.ignore_case else text
