"""Every rule that a receipt can name, from `rules.txt`, for lists, ablations and explanations.

Reading with rules switched off shows what a reply would have been worth without them.
"""

from collections.abc import Iterator
from pkgutil import get_data
from typing import Any, Final, Literal, NamedTuple, cast

from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.base.records import ErrorDetail, Reading, Receipt, Reply, ToolCall
from surecall.calls import ToolNames
from surecall.text import decode

from .truncation import refused
from .wording import MARKED, MISSHAPEN, refuse_bad_json, refuse_json, refuse_kind, say_not_offered

RuleFamily = Literal[
    "structure", "ids", "calls", "json", "schema", "text", "answers", "cut", "exchange", "approval"
]
"""Where a rule is at home: the fields a call came in, its id, its name or place, the JSON of its
arguments, their schema, text formats, an answer that `read_value` reads, a value that was cut off,
an exchange with a client, or a decision of a person."""

ALL_RULES: Final = "*"
"""Means every rule that can be switched off, apart from those about structure and ids."""

READ_FROM_TEXT: Final = "read_call_from_text"
JUDGE_IN_TEXT: Final = "judge_call_in_text"
BLANK_TO_EMPTY_OBJECT: Final = "blank_to_empty_object"
FUNCTION_CALL_TO_CALLS: Final = "assistant_function_call_to_tool_calls"
CALLS_OBJECT_TO_ARRAY: Final = "assistant_tool_calls_object_to_array"
OBJECT_TO_ARGUMENTS: Final = "assistant_tool_calls_arguments_json_string_if_hash"
TAGS_TO_CALLS: Final = "assistant_content_tool_call_tags_to_tool_calls"
BLANK_TRANSFORM: Final = "assistant_tool_calls_arguments_blank_to_empty_object"
BYTE_ORDER_MARK: Final = "\ufeff"
_NAMES: Final = frozenset({"infer_tool_name", "resolve_tool_name", "strip_name"})
_LIMITS: Final = frozenset(
    {Code.ARGUMENTS_HOLD_SECRET, Code.ARGUMENTS_TOO_DEEP, Code.ARGUMENTS_TOO_LARGE}
)
"""Refusals that rest on no rule."""

TRANSFORM_RULES: Final = {
    FUNCTION_CALL_TO_CALLS: FUNCTION_CALL_TO_CALLS,
    CALLS_OBJECT_TO_ARRAY: CALLS_OBJECT_TO_ARRAY,
    OBJECT_TO_ARGUMENTS: OBJECT_TO_ARGUMENTS,
    TAGS_TO_CALLS: READ_FROM_TEXT,
    BLANK_TRANSFORM: BLANK_TO_EMPTY_OBJECT,
}
"""Transforms of replies and calls that reading does, with the rule of their receipts."""


class Rule(NamedTuple):
    """One rule: its name in receipts, and what it does."""

    name: str
    family: RuleFamily
    sentence: str
    lossless: bool = True
    """False when a receipt of it may say that something was lost."""
    switchable: bool = True
    """Whether `disabled_rules` can name it."""


def _read_rules() -> Iterator[Rule]:
    """Read one rule a line: its name, `-` if it may lose something, `!` if it is always on."""
    text = (get_data(__package__ or "", "rules.txt") or b"").decode()
    for section in text.split("\n# ")[1:]:
        family, *lines = section.split("\n")
        for line in filter(None, lines):
            marked, _, sentence = line.partition(" ")
            name = marked.rstrip("-!")
            marks = marked.removeprefix(name)
            yield Rule(
                name,
                cast("RuleFamily", family),
                sentence,
                lossless="-" not in marks,
                switchable="!" not in marks,
            )


_DECLARED: Final = tuple(_read_rules())
RULES: Final = {rule.name: rule for rule in _DECLARED}
"""Every rule, by its name."""

IDENTITY_RULES: Final = frozenset(rule.name for rule in _DECLARED if rule.family == "ids")
"""Rules about ids: they never change what is called, and no result could be sent back without."""
STRUCTURE_RULES: Final = frozenset(rule.name for rule in _DECLARED if rule.family == "structure")
READING_RULES: Final = tuple(
    rule.name
    for rule in _DECLARED
    if rule.switchable and rule.family not in ("structure", "ids", "answers", "cut", "exchange")
)
"""Rules that change what is called or with what; each can be switched off on its own."""
FIXED_RULES: Final = frozenset(rule.name for rule in _DECLARED if not rule.switchable)
"""Rules that change no call that is run: those of a cut value, which is refused, of an answer, of a
reply that came inside an error, of a call in a field that another replaces, and of text that is
not shown; and what a person changed. They cannot be switched off."""
MOVING_RULES: Final = STRUCTURE_RULES | {READ_FROM_TEXT}
"""Rules that find a call, or move it, without touching its name or arguments."""
_NOT_OF_ALL: Final = IDENTITY_RULES | STRUCTURE_RULES


def without_rules(
    reading: Reading, reply: Reply, disabled: frozenset[str], names: ToolNames
) -> Reading:
    """Undo a reading as far as it rests on rules that are switched off.

    A call that needed such a rule has its arguments and its name as the model wrote them, and the
    errors that JSON and the schema have for these; one that was only found by a rule is text again.
    Rules about ids and structure stay on unless they are named. Without any rule, a call is what a
    plain client makes of it: sound JSON is taken, whatever else is known of the reply.
    """
    if not disabled or not reading.calls:
        return reading
    disabled |= {TRANSFORM_RULES[name] for name in disabled & TRANSFORM_RULES.keys()}
    if is_off(READ_FROM_TEXT, disabled) and any(map(was_text, reading.calls)):
        return replace(reading, calls=(), content=reply.content or "")
    return replace(reading, calls=tuple(_undo(call, disabled, names) for call in reading.calls))


def _undo(call: ToolCall, disabled: frozenset[str], names: ToolNames) -> ToolCall:
    kept: list[Receipt] = []
    name, is_plain = call.name, ALL_RULES in disabled and not was_text(call)
    for receipt in call.receipts:
        if not is_off(receipt.rule, disabled):
            kept.append(receipt)
        elif receipt.rule in _NAMES:
            name = str(receipt.before)
        elif receipt.rule in STRUCTURE_RULES:
            return refused(call, "unreadable", refuse_json(MISSHAPEN))
        else:
            is_plain = is_plain or call.arguments is not None
    if len(kept) == len(call.receipts) and not is_plain:
        return call
    call = replace(call, name=name, receipts=tuple(kept))
    return _take_as_sent(call, names) if is_plain else call


def _take_as_sent(call: ToolCall, names: ToolNames) -> ToolCall:
    """Return a call with the arguments that its text is as JSON, and what the schema says."""
    value: Any = call.raw
    errors: tuple[ErrorDetail, ...] = ()
    if any(error.code in _LIMITS for error in call.errors):
        return call
    if isinstance(value, str) and value.startswith(BYTE_ORDER_MARK):
        return refused(call, "unreadable", refuse_json(MARKED))  # decoding would leave it out
    if value is None or isinstance(value, str):
        try:
            value = decode(value or "")
        except JSONTextError as error:
            return refused(call, "unreadable", refuse_bad_json(error))
    if not isinstance(value, dict):
        return refused(call, "unreadable", refuse_kind(value))
    if call.name in names:
        checker = names.checker_of(call.name)
        errors = () if checker is None else checker.check(value)
    elif names.names:  # a plain client looks for exactly this name
        errors = (ErrorDetail(Code.TOOL_NOT_ALLOWED, say_not_offered(call.name)),)
    return replace(
        call,
        arguments=value,
        state="whole",
        errors=errors,
        certainty="certain",
        doubt="",
    )


def was_text(call: ToolCall) -> bool:
    """Tell whether a call was written as text."""
    return any(receipt.rule == READ_FROM_TEXT for receipt in call.receipts)


def was_judged(call: ToolCall) -> bool:
    """Tell whether it took a judgement to say that a text is this call."""
    return any(receipt.rule == JUDGE_IN_TEXT for receipt in call.receipts)


def is_off(rule: str, disabled: frozenset[str]) -> bool:
    """Tell whether a rule is among those that are switched off."""
    return rule in disabled or (ALL_RULES in disabled and rule not in _NOT_OF_ALL)
