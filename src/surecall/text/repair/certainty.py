"""Whether a repaired value may have been another one: then its text means two things.

`{"a: 1, b": 2}` is valid, but behind another slip of quotes it is rather two members than one with
an odd key. Such texts are refused.

What is left is certain only if every change writes another notation as JSON. Where a mark was
missing, wrong or left over, a part of the value may have been lost with it: `"amount"1264` may have
been `"amount": 601264`. Then the value is likely.
"""

import re
from collections.abc import Iterable
from pkgutil import get_data
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import ErrorDetail

from .repaired import Changes, Edit, Repaired, refuse

NOTATIONS: Final = frozenset(
    {
        "decode_nested_text",
        "drop_comment",
        "drop_parentheses",
        "escape_control_characters",
        "extra_values",
        "quote_key",
        "replace_literal",
        "replace_non_finite",
        "replace_quotes",
        "strip_code_fence",
        "strip_invisible",
        "tuple_to_array",
        "unescape_entities",
    }
)
"""The rules that write another notation as JSON. Behind any other, something may be lost."""
_PLAIN_NOTATIONS: Final = NOTATIONS - {"drop_comment", "escape_control_characters"}
_NO_PROSE: Final = re.compile(r"[\"'`\\{}\[\]]")
_WORD: Final = re.compile(r"[^\W\d_]{3}")
_CONTROLS: Final = re.compile(r"[\x00-\x1f]")
DOUBTS: Final = dict(
    line.split(" ", 1)
    for line in (get_data(__package__ or "", "doubts.txt") or b"").decode().splitlines()
)
"""Why a value is in doubt, by the rules of its changes; the first that applies is said."""
_RANKS: Final = {rule: rank for rank, rule in enumerate(DOUBTS)}
_LOSING: Final = frozenset({"drop_ellipsis", "key_without_value", "take_last_of_key"})
_DAMAGED: Final = "The text is damaged in more than one way."

_EDGE_RULES: Final = frozenset(
    {
        "add_missing_closing_quote",
        "add_missing_opening_quote",
        "add_missing_colon",
        "add_missing_comma",
        "drop_extra_colon",
        "drop_extra_comma",
        "escape_inner_quotes",
    }
)
"""Repairs behind which the limits of a string are in doubt."""
_MISSING_QUOTES: Final = frozenset({"add_missing_closing_quote", "add_missing_opening_quote"})
_MORE_IS_WRONG: Final = frozenset({"drop_stray_closer", "extra_values"})
_CONTROL: Final = "escape_control_characters"
_STRING_RULES: Final = _EDGE_RULES | {"replace_quotes", _CONTROL}
_KEY_WITH_SYNTAX: Final = re.compile(r"[\"{}\[\]]|\A\s*+[:,]|[:,]\s*+\Z|\s\Z")
_MEMBER_INSIDE: Final = re.compile(
    r",\s*+\"[^\"]{0,80}+(?:\"\s*+,|\"?\s*+:)|\"\s*+[\":=]|,\s*+\"[^\":]{1,80}+:|\A[^\"]*+\"\s*+,"
    r"|,\"[^\"]{0,80}+\"|\A[^\"]*+\"\s[^\":=]*+[:=]\s*+\"|\"[^\w\",]{1,4}+\""
    r"|\"\s*+(?:[-+.\de]++|true|false|null)\s*+(?:,\s*+\"|[\]}])|,[^\S\n]*+\n\s*+\""
)
_AT_EDGE_OR_MEMBER: Final = re.compile(rf"\A\"|\"\Z|{_MEMBER_INSIDE.pattern}")
_MEMBER_AT_START: Final = re.compile(r"\s*+\"[^\"]{0,80}+\"\s*+:")
_EDGE: Final = re.compile(r"\A\s*+[:,]|[^,],\s*+\Z")


def grade(text: str, found: Repaired) -> Repaired:
    """Return a repaired value, or a refusal when its text may have meant another."""
    if found.state != "whole":
        return found
    edits = found.changes.edits
    rules = {edit[3] for edit in edits}
    if not (rules.isdisjoint(_MORE_IS_WRONG) or rules.isdisjoint(_MISSING_QUOTES)):
        return _BRACKET
    # Strings in other quotes have nothing to swallow where no double quote is.
    is_looked_at = not rules.isdisjoint(_STRING_RULES) and (
        '"' in text or rules & _STRING_RULES != {"replace_quotes"}
    )
    if is_looked_at and _has_swallowed(found.value, rules):
        return _STRING
    if rules <= _PLAIN_NOTATIONS:
        return found
    is_fenced = "strip_code_fence" in rules
    doubtful = {
        edit
        for edit in edits
        if edit[3] not in _PLAIN_NOTATIONS and _loses(text, edit, is_fenced=is_fenced)
    }
    if not doubtful:
        return found
    graded = [(*edit[:4], False) if edit in doubtful else edit for edit in edits]
    changes = Changes(text, graded, found.changes.why)
    return replace(found, changes=changes, certainty="likely", doubt=find_doubt(rules))


def _loses(text: str, edit: Edit, *, is_fenced: bool) -> bool:
    """Tell whether a part of the value may be lost with what a change was about."""
    start, end, _, rule, _ = edit
    if rule in NOTATIONS:
        if rule == "drop_comment":
            return '"' in text[start:end]
        # One line break among others may have been between members, and not inside a text.
        is_single = rule == _CONTROL and len(_CONTROLS.findall(text[start:end])) == 1
        return is_single and len(_CONTROLS.findall(text)) > 1
    if rule == "strip_prose":
        return not (is_fenced or _is_announced(text, start, end))
    return True


def _is_announced(text: str, start: int, end: int) -> bool:
    """Tell whether words between two places announce the value that follows them."""
    before = text[start:end].rstrip()
    is_end = end < len(text) and before.endswith(":")
    return is_end and bool(_WORD.search(before)) and not _NO_PROSE.search(before)


def throws_away(text: str, edits: Iterable[Edit]) -> bool:
    """Tell whether changes leave out what may be a part of the value."""
    for start, end, _, rule, _ in edits:
        if rule in _LOSING:
            return True
        if rule in ("drop_stray_text", "strip_code_fence", "strip_prose"):
            dropped = text[start:end]
            if '"' in dropped or (rule == "drop_stray_text" and any(map(str.isalnum, dropped))):
                return True
    return False


def find_doubt(rules: Iterable[str]) -> str:
    """Return why a value is in doubt that took changes by these rules."""
    first = min(rules, key=lambda rule: _RANKS.get(rule, len(_RANKS)), default="")
    return DOUBTS.get(first, _DAMAGED)


def _has_swallowed(value: Any, rules: set[str]) -> bool:
    has_controls = _CONTROL in rules
    is_about_keys = not rules.isdisjoint(_EDGE_RULES)
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            record = cast("dict[str, Any]", item)
            for key in record:
                if is_about_keys and (_KEY_WITH_SYNTAX.search(key) or (":" in key and "," in key)):
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
    if "replace_quotes" in rules:
        is_odd = text.count('"') % 2 == 1
        if _MEMBER_AT_START.match(text) or (is_odd and _AT_EDGE_OR_MEMBER.search(text)):
            return True
    if rules.isdisjoint(_EDGE_RULES):
        return False
    is_inside = "escape_inner_quotes" in rules and _MEMBER_INSIDE.search(text)
    return bool(is_inside or _EDGE.search(text))


def _refusal(message: str, hint: str) -> Repaired:
    return refuse(ErrorDetail(Code.INVALID_JSON, message, hint))


_STRING: Final = _refusal(
    "A string in it holds what may be another member: quotes are missing or doubled.",
    "Send valid JSON, with every quote inside a string escaped.",
)
_BRACKET: Final = _refusal(
    "A bracket is missing or too many, and it is not clear where.",
    "Send valid JSON, with every bracket closed.",
)
