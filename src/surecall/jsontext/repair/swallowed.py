"""Whether a repaired value holds what was syntax: then a lost quote may have been elsewhere.

`{"a: 1, b": 2}` is valid, but behind another slip of quotes it is rather two members than one with
an odd key. Such a text could mean two things, so it is refused.
"""

import re
from typing import Any, Final, cast

from surecall.errors import Code
from surecall.records import ErrorDetail

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
_EDGE_RULES: Final = _QUOTE_RULES - {"replace_quotes"}
_INNER: Final = frozenset({"escape_inner_quotes"})
_KEY_WITH_SYNTAX: Final = re.compile(r"[\"{}\[\]]|\A\s*+[:,]|[:,]\s*+\Z")
_KEY_BEHIND_PREFIX: Final = re.compile(rf"\A(?:\d|\Z)|{_KEY_WITH_SYNTAX.pattern}")
"""Behind `b`, a key that begins with a digit is rather `b0` with its quote in the wrong place."""
_MEMBER_INSIDE: Final = re.compile(r",\s*+\"[^\"]{0,80}+(?:\"\s*+,|\"?\s*+:)|\"\"|\"\s*+:")
_MEMBER_AFTER_KEY: Final = re.compile(r",\s*+\"[^\":]{1,80}+:")
_KEY_BEFORE: Final = re.compile(r"[\"'\]]\s*+:\s*+\Z")
"""The end of prose that is rather a damaged key."""
_EDGE: Final = re.compile(r"\A\s*+[:,]|[^,],\s*+\Z")


def refuse_swallowed(found: Repaired) -> Repaired:
    """Return a repaired value, or a refusal when a string in it may have swallowed syntax."""
    if found.state != "whole":
        return found
    rules = {receipt.rule for receipt in found.receipts}
    for receipt in found.receipts:
        if receipt.rule == "strip_prose" and _KEY_BEFORE.search(str(receipt.before)):
            return _REFUSED
    if rules.isdisjoint(_QUOTE_RULES):
        return found
    waiting: list[Any] = [found.value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            record = cast("dict[str, Any]", item)
            odd = _KEY_BEHIND_PREFIX if "drop_string_prefix" in rules else _KEY_WITH_SYNTAX
            if any(odd.search(key) or (":" in key and "," in key) for key in record):
                return _REFUSED
            waiting.extend(record.values())
        elif isinstance(item, list):
            waiting.extend(cast("list[Any]", item))
        elif isinstance(item, str) and _is_doubtful(item, rules):
            return _REFUSED
    return found


def _is_doubtful(text: str, rules: set[str]) -> bool:
    if rules.isdisjoint(_EDGE_RULES):
        return False
    if _EDGE.search(text):
        return True
    if "add_missing_closing_quote" in rules and text[-1:] in "'\"" and text.count(text[-1:]) % 2:
        return True
    if rules.isdisjoint(_INNER):
        return False
    is_odd = text.count('"') % 2 == 1 and (text[:1] == '"' or text[-1:] == '"')
    return is_odd or any(p.search(text) for p in (_MEMBER_INSIDE, _MEMBER_AFTER_KEY))


_REFUSED: Final = refuse(
    ErrorDetail(
        Code.INVALID_JSON,
        "A string in it holds what may be another member: quotes are missing or doubled.",
        "Send valid JSON, with every quote inside a string escaped.",
    )
)
