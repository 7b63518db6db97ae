"""Whether a repaired value may have been another one: then its text means two things.

`{"a: 1, b": 2}` is valid, but behind another slip of quotes it is rather two members than one with
an odd key. `: {"a": 1}}` is rather the end of a larger object than a value with a colon before it.
Such texts are refused.

What is left is certain only if every change writes another notation as JSON. Where a mark was
missing, wrong or left over, a part of the value may have been lost with it: `"amount"1264` may have
been `"amount": 601264`. Then the value is likely.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import ErrorDetail

from .outcome import Changes, Edit, Repaired, refuse

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
DOUBTS: Final = {
    "keep_cut_value": "The last value may have been longer than what is there of it.",
    "complete_cut_literal": "The last word ends too soon and was completed.",
    "drop_cut_member": "The text ends inside its last member, which was left out.",
    "close_cut_string": "The text ends inside a string, which was ended there.",
    "values_to_array": "The text has several values, which were put into a list.",
    "take_last_of_key": "A key is given more than once, and its last value was taken.",
    "key_without_value": "A key has no value, and was left out.",
    "drop_stray_text": "Text that belongs to no value was left out.",
    "fill_missing_value": "A key has no value, and was given null.",
    "drop_ellipsis": "An ellipsis is in the place of something, and was left out.",
    "fix_mismatched_closer": "A bracket is missing or wrong, and it is not certain where.",
    "close_missing_brackets": "A bracket is missing: more may have been meant.",
    "drop_stray_closer": "A bracket closes nothing that is open: one before it may be wrong.",
    "add_missing_comma": "A comma is missing, and perhaps a part of the values around it.",
    "add_missing_colon": "A colon is missing, and perhaps a part of the value behind it.",
    "drop_extra_comma": "A comma is left over: what was next to it may be lost.",
    "drop_trailing_comma": "A comma is left over at the end: what was behind it may be lost.",
    "drop_extra_colon": "A colon is left over: what was before it may be lost.",
    "replace_comma": "Another sign is in the place of a comma.",
    "replace_colon": "Another sign is in the place of a colon.",
    "add_missing_closing_quote": "The closing quote of a string is missing.",
    "add_missing_opening_quote": "The opening quote of a string is missing.",
    "drop_stray_quote": "A quote is left over: what was next to it may be lost.",
    "escape_inner_quotes": "Quotes inside a string are not escaped, so its end is not certain.",
    "fix_escapes": "A backslash begins no escape: a part of the text may be lost.",
    "drop_string_prefix": "A letter is before a string: it may belong to it.",
    "join_strings": "Strings next to one another were joined.",
    "rewrite_number": "A number is not written as in JSON: a part of it may be lost.",
    "collapse_doubled_braces": "Braces are doubled: what was between them may be lost.",
    "set_to_array": "Braces without any key were read as a list.",
    "unwrap_call_value": "What looks like the call of a function was read as its argument.",
    "add_outer_brackets": "The brackets around the value are missing.",
    "quote_bare_text": "Text has no quotes, so its end is not certain.",
    "close_cut_brackets": "The text ends before all brackets are closed.",
    "strip_prose": "Other text is around the value.",
    "drop_comment": "A comment has quotes in it, and may be a part of a text.",
    "escape_control_characters": "A line break is inside a text, where it may not belong.",
}
"""Why a value is in doubt, by the rules of its changes; the first that applies is said."""
_RANKS: Final = {rule: rank for rank, rule in enumerate(DOUBTS)}
_LOSING: Final = frozenset(
    {"drop_ellipsis", "key_without_value", "take_last_of_key", "unwrap_call_value"}
)
_DAMAGED: Final = "The text is damaged in more than one way."

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
_SHOWN_RULES: Final = frozenset({_CONTROL, "drop_comment", "quote_bare_text", "drop_string_prefix"})
"""Changes whose text shows whether it is what it seems."""
_BRACKETS: Final = frozenset({"close_missing_brackets", "fix_mismatched_closer"})
_STRING_RULES: Final = _QUOTE_RULES | _BRACKETS | {_CONTROL}
_OTHER_STRING_RULES: Final = _STRING_RULES - {"replace_quotes"}
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
_FEW_LETTERS: Final = 3
_MARKS: Final = "`~:=(>"
_LOOK_BACK: Final = 400
_PLAIN_PREFIX: Final = re.compile(r"[a-zA-Z]++\"[^'\\\\]*+")
_LAST_LINE: Final = re.compile(r"(?:\A|\n)([ \t]*+)[^\n]*+\Z")


def refuse_doubtful(text: str, found: Repaired, *, ended: bool) -> Repaired:
    """Return a repaired value, or a refusal when its text may have meant another.

    Of a text that is known to have ended, a bracket that may be missing in several places is taken
    to be missing at the end.
    """
    if found.state != "whole":
        return found
    edits = found.changes.edits
    rules = {edit[3] for edit in edits}
    if not rules.isdisjoint(_PART_RULES) and _may_be_part(text, found):
        return _PART
    if rules >= _PART_RULES and any(_is_lone_key(text, edit) for edit in edits):
        return _PART
    if not (rules.isdisjoint(_MORE_IS_WRONG) or rules.isdisjoint(_MISSING_QUOTES)):
        return _BRACKET
    if not rules.isdisjoint(_SHOWN_RULES):
        is_double = "replace_quotes" not in rules
        if any(_is_odd(text, edit, is_double=is_double) for edit in edits):
            return _STRING
    # Strings in other quotes have nothing to swallow where no double quote is.
    is_looked_at = not rules.isdisjoint(_STRING_RULES) and (
        '"' in text or not rules.isdisjoint(_OTHER_STRING_RULES)
    )
    if is_looked_at and _has_swallowed(found.value, rules):
        return _STRING
    if "add_missing_comma" in rules and any(_is_comment_with_comma(text, edit) for edit in edits):
        return _STRING
    if not ended and not rules.isdisjoint(_BRACKETS) and _may_be_elsewhere(text, found, rules):
        return _BRACKET
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


def _is_comment_with_comma(text: str, edit: Edit) -> bool:
    """Tell whether a comment ends with a comma, which is rather text that lost its quotes."""
    return edit[3] == "drop_comment" and text[edit[0] : edit[1]].rstrip().endswith(",")


def _may_be_part(text: str, found: Repaired) -> bool:
    """Tell whether what is around a value is rather the rest of a larger one."""
    for start, end, _, rule, _ in found.changes.edits:
        if rule == "drop_stray_closer":
            if _closes_more(text, found.value, start):
                return True
        elif rule == "strip_prose" and end < len(text):
            before = text[start:end].strip()
            if _REMAINS_BEFORE.search(before) or before.count('"') % 2 or _opens_more(before):
                return True
            if len(before) < _FEW_LETTERS and before[-1] not in _MARKS and text[end - 1] > " ":
                return True
    return False


def _is_odd(text: str, edit: Edit, *, is_double: bool) -> bool:
    """Tell whether a comment may be text, or letters before a quote belong behind it."""
    rule = edit[3]
    if rule not in _SHOWN_RULES:
        return False
    before = text[edit[0] : edit[1]]
    if rule == _CONTROL:
        return _LINE_AT_END.fullmatch(before) is not None
    if rule == "drop_comment":
        return before.count('"') % 2 == 1 or before.startswith(('#"', '//"'))
    if rule == "quote_bare_text":
        return _TWO_VALUES.search(before) is not None
    return is_double and _PLAIN_PREFIX.fullmatch(before) is not None


def _is_lone_key(text: str, edit: Edit) -> bool:
    return edit[3] == "strip_prose" and bool(_LONE_KEY.fullmatch(text[edit[0] : edit[1]].strip()))


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
    for start, _, after, rule, _ in found.changes.edits:
        if rule not in _BRACKETS:
            continue
        if len(after) > 1:
            return True
        if rule == "close_missing_brackets":
            if _has_like_last(found.value):
                return True
        elif text[:start].rstrip()[-1:] == after:
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
_PART: Final = _refusal(
    "The value looks like a part of a larger one whose start is missing or damaged.",
    "Send the whole value, with nothing before it.",
)
_BRACKET: Final = _refusal(
    "A bracket is missing or too many, and it is not clear where.",
    "Send valid JSON, with every bracket closed.",
)
