"""Whether a repaired value may have been another one: then its text means two things.

`{"a: 1, b": 2}` is valid, but behind another slip of quotes it is rather two members than one with
an odd key. `: {"a": 1}}` is rather the end of a larger object than a value with a colon before it.
"""

import re
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.errors import Code
from surecall.records import ErrorDetail, Receipt

from .outcome import Repaired, refuse

_QUOTE_RULES: Final = frozenset(
    {
        "add_missing_closing_quote",
        "add_missing_opening_quote",
        "add_missing_colon",
        "add_missing_comma",
        "drop_extra_colon",
        "drop_string_prefix",
        "drop_extra_comma",
        "escape_inner_quotes",
        "replace_quotes",
    }
)
"""Repairs behind which the limits of a string are in doubt."""
_BEHIND_PROSE: Final = frozenset({"strip_prose", "fix_mismatched_closer"})
_MISSING_QUOTES: Final = frozenset({"add_missing_closing_quote", "add_missing_opening_quote"})
_MORE_IS_WRONG: Final = frozenset({"drop_stray_closer", "extra_values"})
_OTHER_SLIPS: Final = _MISSING_QUOTES | {"drop_stray_closer"}
_PART_RULES: Final = frozenset({"strip_prose", "drop_stray_closer"})
_EDGE_RULES: Final = _QUOTE_RULES - {"replace_quotes"}
_CONTROL: Final = "escape_control_characters"
_BRACKETS: Final = frozenset({"close_missing_brackets", "fix_mismatched_closer"})
_STRING_RULES: Final = _QUOTE_RULES | _BRACKETS | {_CONTROL}
_MISPLACED: Final = _EDGE_RULES - {"drop_string_prefix"}
"""Slips that, besides a missing bracket, leave open where that belongs."""
_KEY_WITH_SYNTAX: Final = re.compile(r"[\"{}\[\]]|\A\s*+[:,]|[:,]\s*+\Z|\s\Z")
_KEY_BEHIND_PREFIX: Final = re.compile(rf"\A(?:\d|\Z)|{_KEY_WITH_SYNTAX.pattern}")
"""Behind `b`, a key that begins with a digit is rather `b0` with its quote in the wrong place."""
_MEMBER_INSIDE: Final = re.compile(
    r",\s*+\"[^\"]{0,80}+(?:\"\s*+,|\"?\s*+:)|\"\s*+[\":=]|,\s*+\"[^\":]{1,80}+:|\A[^\"]*+\"\s*+,"
    r"|,\"[^\"]{0,80}+\"|\A[^\"]*+\"\s[^\":=]*+[:=]\s*+\"|\"[^\w\",]{1,4}+\""
    r"|\"\s*+(?:[-+.\de]++|true|false|null)\s*+(?:,\s*+\"|[\]}])|,[^\S\n]*+\n\s*+\""
)
_AT_EDGE_OR_MEMBER: Final = re.compile(rf"\A\"|\"\Z|{_MEMBER_INSIDE.pattern}")
_MEMBER_AT_START: Final = re.compile(r"\s*+\"[^\"]{0,80}+\"\s*+:")
_VALUE_INSIDE: Final = re.compile(r"[:=]\s*+\"")
_EDGE: Final = re.compile(r"\A\s*+[:,]|[^,],\s*+\Z")
_TWO_VALUES: Final = re.compile(
    r"[:=]\s*+\Z|[0-9](?:true|false|null)\Z|\A(?:true|false|null)(?:[^\w\s]|\w\Z)"
)
_LONE_KEY: Final = re.compile(r"\s*+[\w$-]++[\"']?+\s*+[:=]\s*+")
"""Before a value with a bracket too many, rather its key than prose."""
_COMMA_AT_START: Final = re.compile(r"\s*+,")
_OPEN_END: Final = re.compile(r"[:;=({\[`]\s*+\Z")
_LINE_AT_END: Final = re.compile(r"[^\n\r]*+[\n\r]\s*+\"")
"""A quote and the line break behind it may have changed places."""
_REMAINS_BEFORE: Final = re.compile(r"\A\s*+[:,}\]\"']|[\"'\]}]\s*+[:,]|\"\Z")
"""Text before a value that is rather the rest of a larger one."""
_CLOSERS_INSIDE: Final = re.compile(r"[}\]]\s*+[}\]]\s*+,")
"""Where a bracket may have been doubled, instead of one too many at the end."""
_LEADING_ZERO: Final = re.compile(r"[-+]?+0[0-9xXoObB][0-9a-fA-F_]*+")
_FEW_LETTERS: Final = 3
_MARKS: Final = "`~:=(>"
_LOOK_BACK: Final = 400
_PLACE: Final = re.compile(r"([0-9]++):([0-9]++)")
_PLAIN_PREFIX: Final = re.compile(r"[a-zA-Z]++\"[^'\\\\]*+")
_LAST_LINE: Final = re.compile(r"(?:\A|\n)([ \t]*+)[^\n]*+\Z")


def refuse_doubtful(text: str, found: Repaired, *, ended: bool) -> Repaired:
    """Return a repaired value, or a refusal when its text may have meant another.

    Of a text that is known to have ended, a bracket that may be missing in several places is taken
    to be missing at the end.
    """
    if found.state != "whole":
        return found
    rules = {receipt.rule for receipt in found.receipts}
    if not rules.isdisjoint(_PART_RULES) and _may_be_part(text, found):
        return _PART
    if rules >= _PART_RULES and any(map(_is_lone_key, found.receipts)):
        return _PART
    if not (rules.isdisjoint(_MORE_IS_WRONG) or rules.isdisjoint(_MISSING_QUOTES)):
        return _BRACKET
    is_double = "replace_quotes" not in rules
    if any(_is_odd(receipt, is_double=is_double) for receipt in found.receipts):
        return _STRING
    if not rules.isdisjoint(_STRING_RULES) and _has_swallowed(found.value, rules):
        return _STRING
    if "add_missing_comma" in rules and any(map(_is_comment_with_comma, found.receipts)):
        return _STRING
    if rules.isdisjoint(_BRACKETS):
        if any(map(_has_leading_zero, found.receipts)):
            return replace(found, certainty="likely", doubt=_ZERO)
        if "drop_stray_closer" in rules and _CLOSERS_INSIDE.search(text):
            return replace(found, certainty="likely", doubt=_CLOSER)
        return found
    if not ended and _may_be_elsewhere(text, found, rules):
        return _BRACKET
    return replace(found, certainty="likely", doubt=_MORE)


def _is_comment_with_comma(receipt: Receipt) -> bool:
    """Tell whether a comment ends with a comma, which is rather text that lost its quotes."""
    return receipt.rule == "drop_comment" and str(receipt.before).rstrip().endswith(",")


def _has_leading_zero(receipt: Receipt) -> bool:
    """Tell whether a number began with a zero: of another base, two numbers, or a text."""
    return receipt.rule == "rewrite_number" and bool(_LEADING_ZERO.fullmatch(str(receipt.before)))


def _may_be_part(text: str, found: Repaired) -> bool:
    """Tell whether what is around a value is rather the rest of a larger one."""
    for receipt in found.receipts:
        place = _PLACE.fullmatch(receipt.place)
        if place is None:
            continue
        start, end = int(place[1]), int(place[2])
        if receipt.rule == "drop_stray_closer":
            if _closes_more(text, found.value, start):
                return True
        elif receipt.rule == "strip_prose" and end < len(text):
            before = str(receipt.before)
            if _REMAINS_BEFORE.search(before) or before.count('"') % 2 or _opens_more(before):
                return True
            if len(before) < _FEW_LETTERS and before[-1] not in _MARKS and text[end - 1] > " ":
                return True
    return False


def _is_odd(receipt: Receipt, *, is_double: bool) -> bool:
    """Tell whether a comment may be text, or letters before a quote belong behind it."""
    before = str(receipt.before)
    if receipt.rule == _CONTROL:
        return _LINE_AT_END.fullmatch(before) is not None
    if receipt.rule == "drop_comment":
        return before.count('"') % 2 == 1 or before.startswith(('#"', '//"'))
    if receipt.rule == "quote_bare_text":
        return _TWO_VALUES.search(before) is not None
    is_prefix = is_double and receipt.rule == "drop_string_prefix"
    return is_prefix and _PLAIN_PREFIX.fullmatch(before) is not None


def _is_lone_key(receipt: Receipt) -> bool:
    return receipt.rule == "strip_prose" and bool(_LONE_KEY.fullmatch(str(receipt.before)))


def _closes_more(text: str, value: Any, start: int) -> bool:
    """Tell whether brackets behind a value close something that began before it."""
    if text.startswith("}" if isinstance(value, list) else "]", start):
        return True
    ends = _LAST_LINE.search(text, max(0, start - _LOOK_BACK), start)
    own = _LAST_LINE.search(text[max(0, start - _LOOK_BACK) : start].rstrip())
    return bool(ends and own and ends[1] != own[1] and len(own[1]) > len(ends[1]))


def _opens_more(before: str) -> bool:
    return before.count("{") > before.count("}") or before.count("[") > before.count("]")


def _may_be_elsewhere(text: str, found: Repaired, rules: set[str]) -> bool:
    """Tell whether a bracket that was added may be missing in another place, or one be too many."""
    if not rules.isdisjoint(_MISPLACED) or rules >= _BEHIND_PROSE:
        return True
    for receipt in found.receipts:
        place = _PLACE.fullmatch(receipt.place)
        if receipt.rule not in _BRACKETS or place is None:
            continue
        if len(receipt.after) > 1:
            return True
        if receipt.rule == "close_missing_brackets":
            if _has_like_last(found.value):
                return True
        elif text[: int(place[1])].rstrip()[-1:] == receipt.after:
            return True
    return False


def _has_like_last(value: Any) -> bool:
    """Tell whether a value ends in one of its kind that has several entries, or all is brackets.

    Then the bracket that is missing may be missing after any of these entries.
    """
    kind: type[Any] = value.__class__
    if kind is list and len(value) == 1 and value[0].__class__ is list:
        return True
    while value:
        value = value[-1] if kind is list else next(reversed(value.values()))
        if value.__class__ is not kind:
            return False
        if len(value) > 1:
            return True
    return False


def _has_swallowed(value: Any, rules: set[str]) -> bool:
    odd = _KEY_BEHIND_PREFIX if "drop_string_prefix" in rules else _KEY_WITH_SYNTAX
    has_controls = _CONTROL in rules
    is_about_keys = not rules.isdisjoint(_EDGE_RULES)
    if isinstance(value, str) and _MEMBER_INSIDE.search(value):
        return True
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            record = cast("dict[str, Any]", item)
            for key in record:
                if is_about_keys and (odd.search(key) or (":" in key and "," in key)):
                    return True
                if has_controls and "\n" in key:
                    return True
            waiting.extend(record.values())
        elif isinstance(item, list):
            waiting.extend(cast("list[Any]", item))
        elif isinstance(item, str) and _is_doubtful(item, rules):
            return True
    return False


def _is_doubtful(text: str, rules: set[str]) -> bool:
    if not rules.isdisjoint(_BRACKETS) and _is_unpaired(text):
        return True
    if '"' in text and _COMMA_AT_START.match(text):
        return True
    if "replace_quotes" in rules:
        is_unpaired = text.count('"') % 2 == 1
        if _MEMBER_AT_START.match(text) or (is_unpaired and _AT_EDGE_OR_MEMBER.search(text)):
            return True
    if rules.isdisjoint(_EDGE_RULES):
        return False
    if _EDGE.search(text):
        return True
    if "add_missing_closing_quote" in rules:
        is_odd = text[-1:] in "'\"" and text.count(text[-1:]) % 2
        if is_odd or text[:1].isspace() or _OPEN_END.search(text) or _is_unpaired(text):
            return True
    if "escape_inner_quotes" not in rules or '"' not in text:
        return False
    bare = text.strip()
    is_odd = text.count('"') % 2 == 1
    if is_odd and not rules.isdisjoint(_OTHER_SLIPS):
        return True
    is_at_edge = (bare[:1] == '"') + (bare[-1:] == '"')
    if is_at_edge > (not is_odd) or (is_odd and _VALUE_INSIDE.search(text)):
        return True
    return _MEMBER_INSIDE.search(text) is not None


def _is_unpaired(text: str) -> bool:
    """Tell whether a text begins or ends with a bracket that has no other in it."""
    return (text[-1:] in _OPENERS and text.count(text[-1]) != text.count(_OPENERS[text[-1]])) or (
        text[:1] in _CLOSERS and text.count(text[0]) != text.count(_CLOSERS[text[0]])
    )


_OPENERS: Final = {"]": "[", "}": "{", ")": "("}
_CLOSERS: Final = {"[": "]", "{": "}", "(": ")"}


def _refusal(message: str, hint: str) -> Repaired:
    return refuse(ErrorDetail(Code.INVALID_JSON, message, hint))


_STRING: Final = _refusal(
    "A string in it holds what may be another member: quotes are missing or doubled.",
    "Send valid JSON, with every quote inside a string escaped.",
)
_MORE: Final = "A bracket is missing: more may have been meant."
_ZERO: Final = "A number begins with a zero: it may have been another, or text."
_CLOSER: Final = "A bracket is too many, and it may be another than the last."
_PART: Final = _refusal(
    "The value looks like a part of a larger one whose start is missing or damaged.",
    "Send the whole value, with nothing before it.",
)
_BRACKET: Final = _refusal(
    "A bracket is missing or too many, and it is not clear where.",
    "Send valid JSON, with every bracket closed.",
)
