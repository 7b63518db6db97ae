"""Where a string or bare text ends, for the reading that guesses: by what follows a quote.

The reading that is certain refuses when two ends are possible; here the likelier one is taken.
"""

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from surecall.text.repair.outcome import Steps
from surecall.text.repair.patterns import QUOTES

Role: TypeAlias = Literal["key", "object", "array", "top"]
"""Where a string is; that decides what may follow it."""

WS: Final = r"[\s\ufeff\u200b\u2060]*+"
_OPEN: Final = r"[\"'`“„‘«]"
_QUOTED: Final = (
    r"(?:\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'|`[^`\n]*+`|[“„‘«][^“”„‘’«»\n]*+[”’»“])"
)
_BARE: Final = r"[\w$][\w$.\-]*+"
_COLON: Final = r"(?::|=>?+(?!=))"
_KEY: Final = rf"(?:{_QUOTED}|{_BARE}[\"']?+|\"{_BARE}){WS}{_COLON}"
_COMMENT: Final = r"/[/*]|\#"
_WORDS: Final = r"(?:[tT]rue|[fF]alse|[nN]ull|None|TRUE|FALSE|NULL|undefined)\b"
_VALUE: Final = rf"(?:{_OPEN}|[{{\[(]|[+-]?+\.?+[0-9]|{_WORDS})"
_DOTS: Final = r"\.\.\.|…"
_STOP: Final = rf"[}}\]]|\Z|{_COMMENT}|`{{3}}|\+{WS}[\"'`]"

KEY_AHEAD: Final = re.compile(_KEY)
QUOTED_KEY: Final = re.compile(rf"{_QUOTED}{WS}{_COLON}")
QUOTED_ITEM: Final = re.compile(rf"{_QUOTED}{WS}[,\]]")
COLON: Final = re.compile(rf"{WS}(:=?+|=>|=(?!=)|->)(?:{WS}[:=])*+")
VALUE_AHEAD: Final = re.compile(_VALUE)
REOPENED: Final = re.compile(rf"{WS},{WS}{_QUOTED}{WS}:")
"""What follows a bracket that closed an object too early."""

_LINE_KEY: Final = rf"[ \t]*+[\n\r]{WS}{_KEY}"
_AFTER_FIRST: Final = {
    "key": re.compile(rf"{WS}(?:{_COLON}|->|[,}}]|\Z|{_OPEN}|[{{\[]|-?+[0-9]|{_WORDS})"),
    "object": re.compile(
        rf"{_LINE_KEY}|[ \t]++{_QUOTED}{WS}[,}}]|{WS}(?:{_STOP}|{_QUOTED}{WS}{_COLON}|:"
        rf"|[,;]{WS}(?:{_OPEN}|[}}\],;{{]|\Z|{_COMMENT}|{_DOTS}|{_KEY}"
        rf"|{_BARE}(?:[ ]{_BARE}){{1,3}}+:|[\w$]++(?:\Z|{WS}[,}}])))"
    ),
    "array": re.compile(
        rf"[ \t]*+[\n\r]{WS}{_VALUE}|{WS}(?:{_STOP}|[{{\[]|:)|[ \t]++{_OPEN}"
        rf"|{WS}[,;]{WS}(?:{_VALUE}|[}}\],;]|\Z|{_COMMENT}|{_DOTS}|[\w$<][^,\"'\n\]]*+[\"']?+[,\]\n]"
        rf"|[\w$]++\Z)|[\"'](?=\w)"
    ),
    "top": re.compile(rf"{WS}(?:{_STOP}|[,;:)])|[ \t]*+[\n\r]"),
}
_AFTER_LATER: Final = {
    "key": re.compile(rf"{WS}(?:{_COLON}|->)"),
    "object": re.compile(
        rf"{_LINE_KEY}|{WS}(?:{_STOP}|{_QUOTED}{WS}{_COLON}"
        rf"|[,;]{WS}(?:[}}\]]|\Z|{_COMMENT}|{_DOTS}|{_KEY}|\"[^\"\n]*+\Z))"
    ),
    "array": re.compile(rf"{WS}(?:{_STOP}|[,;]{WS}(?:{_VALUE}|[}}\]]|\Z|{_COMMENT}|{_DOTS}))"),
    "top": re.compile(rf"{WS}(?:\Z|[,;]{WS}(?:{_OPEN}|\Z)|`{{3}}|\))"),
}
_COLON_NEXT: Final = re.compile(rf"{WS}:")
_KEY_WITHOUT_END: Final = re.compile(r"[\"'“]([^\s\"'“”:,{}\[\]]++)(?=\s*+:)")

_CLOSING: Final = {"“": '”“"', "”": '”"', "„": "“”", "‘": "’‘'", "’": "’'", "«": "»", "»": "«»"}
_TO_QUOTE: Final = {
    quote: re.compile(rf"(?:[^\\{closing}]++|\\.)*+[{closing}]", re.DOTALL)
    for quote, closing in ((one, _CLOSING.get(one, one)) for one in QUOTES)
}
_KEY_WITH_OTHER_QUOTE: Final = re.compile(
    r"\"[\w$ .\-]*+(?=(?:['“”]|\\\")\s*+:)|'[\w$ .\-]*+(?=[\"’]\s*+:)"
)
_OTHER_QUOTE: Final = re.compile(r"[^\"\n]*+\"")
_BRACKETS: Final = re.compile(r"[{}\[\]]")
_MAX_NESTED: Final = 20_000
_MAX_TAIL: Final = 4096
_CHARACTERS_PER_STEP: Final = 256
_ENDS_LIKE_MEMBER: Final = frozenset(",{\n[")


class End(NamedTuple):
    """Where a string ends."""

    content: int
    """The end of its text."""
    after: int
    """Where what follows begins."""
    rule: str = ""
    """What is unusual about its end, if anything."""


def find_end(text: str, start: int, role: Role, steps: Steps, closers: str, *, plain: bool) -> End:
    """Find the end of the string whose quote is at `start`.

    Args:
        text: All of the text.
        start: Where the quote is.
        role: Where the string is.
        steps: Counts the quotes that are looked at.
        closers: The brackets that are open, as they would be closed.
        plain: Whether the first quote always ends the string.
    """
    if role == "key" and (other := _KEY_WITH_OTHER_QUOTE.match(text, start)):
        width = 2 if text[other.end()] == "\\" else 1
        return End(other.end(), other.end() + width, "replace_quotes")
    to_quote = _TO_QUOTE[text[start]]
    quotes: list[int] = []
    at = start + 1
    while match := to_quote.match(text, at):
        steps.take(1, at)
        at = match.end()
        quotes.append(at - 1)
        if len(quotes) == 1:
            end = _end_first(text, start, at, role, steps, plain=plain)
            if end is not None:
                return end
        elif _AFTER_LATER[role].match(text, at):
            return _end_later(text, start, role, quotes)
        elif role != "key" and _COLON_NEXT.match(text, at):
            end = _end_before_key(text, start, quotes[-2], closers)
            if end is not None:
                return end
        if role == "key" and (len(quotes) > 8 or at - start > 400):
            break
    steps.take((at - start) // _CHARACTERS_PER_STEP, start)
    return _end_without_quote(text, start, role, quotes, closers)


def _end_first(
    text: str, start: int, at: int, role: Role, steps: Steps, *, plain: bool
) -> End | None:
    """Return the end of a string at or behind its first quote, if that may end it."""
    is_key = role == "key"
    if is_key and _is_doubled(text, start, at, role):
        return End(at - 1, at + 1, "drop_stray_quote")
    if plain or _AFTER_FIRST[role].match(text, at):
        return _check_key(text, start, at) if is_key else End(at - 1, at)
    if is_key:
        return None
    if _is_doubled(text, start, at, role):
        return End(at - 1, at + 1, "drop_stray_quote")
    return _find_nested_end(text, start, role, steps)


def _is_doubled(text: str, start: int, at: int, role: Role) -> bool:
    """Tell whether the quote before a place was written twice; behind a digit it may be inches."""
    if at - start < 3 or text[at : at + 1] != '"' or text[at - 2].isdigit():
        return False
    after = _AFTER_LATER if role == "key" else _AFTER_FIRST
    return after[role].match(text, at + 1) is not None


def _find_nested_end(text: str, start: int, role: Role, steps: Steps) -> End | None:
    """Return the end of a string that holds JSON whose quotes are not escaped."""
    if text[start + 1 : start + 2] not in ("{", "["):
        return None
    depth = 0
    for match in _BRACKETS.finditer(text, start + 1, start + _MAX_NESTED):
        steps.take(1, start)
        depth += 1 if match[0] in "{[" else -1
        if depth == 0:
            at = match.end()
            if text.startswith(text[start], at) and _AFTER_FIRST[role].match(text, at + 1):
                return End(at, at + 1, "escape_inner_quotes")
            return None
    return None


def _check_key(text: str, start: int, at: int) -> End:
    """End a key at its quote, unless that is the quote of the next string: `"a: "x"`."""
    missing = _KEY_WITHOUT_END.match(text, start)
    if missing and not QUOTED_KEY.match(text, start):
        return End(missing.end(), missing.end(), "add_missing_closing_quote")
    return End(at - 1, at)


def _end_later(text: str, start: int, role: Role, quotes: list[int]) -> End:
    if role == "key" and (missing := _KEY_WITHOUT_END.match(text, start)):
        return End(missing.end(), missing.end(), "add_missing_closing_quote")
    if len(quotes) == 2 and role == "array":
        before = text[start + 1 : quotes[0]].rstrip()
        if before.endswith(","):
            return End(start + len(before), start + len(before), "add_missing_closing_quote")
    return End(quotes[-1], quotes[-1] + 1, "escape_inner_quotes")


def _end_before_key(text: str, start: int, quote: int, closers: str) -> End | None:
    """Return the end of a string that lacks its quote and ran into the key at `quote`."""
    before = text[start + 1 : quote]
    bare = before.rstrip()
    is_line = "\n" in before[len(bare) :]
    if not is_line and bare[-1:] not in _ENDS_LIKE_MEMBER:
        return None
    end = len(bare)
    while end and (bare[end - 1] in ",{[ \n\r\t" or bare[end - 1] == closers[:1]):
        end -= 1
        if bare[end] == closers[:1]:
            break
    content = start + 1 + len(bare[:end].rstrip())
    return End(content, content, "add_missing_closing_quote")


def _end_without_quote(text: str, start: int, role: Role, quotes: list[int], closers: str) -> End:
    """Return the end of a string none of whose quotes can be the one that ends it."""
    if role == "key":
        missing = _KEY_WITHOUT_END.match(text, start)
        if missing:
            return End(missing.end(), missing.end(), "add_missing_closing_quote")
    if len(quotes) % 2:
        return End(quotes[0], quotes[0] + 1)
    other = _OTHER_QUOTE.match(text, start) if text[start] == "'" else None
    if other and _AFTER_LATER[role].match(text, other.end()):
        return End(other.end(), other.end(), "add_missing_closing_quote")
    tail = len(text)
    first = max(start + 1, tail - _MAX_TAIL)
    while tail > first and (text[tail - 1].isspace() or text[tail - 1] in "}])`"):
        tail -= 1
    found = "".join(text[tail:].replace("`", "").split())
    # As many closers as are open, at most: the others belong to the text.
    if found and closers and found.endswith(closers):
        tail = len(text) - _count_back(text, len(closers))
        return End(tail, tail, "add_missing_closing_quote")
    return End(len(text), len(text), "close_cut_string")


def _count_back(text: str, closers: int) -> int:
    """Return how many characters the last closers take, with the blanks around them."""
    at = len(text)
    while closers:
        at -= 1
        closers -= text[at] in "}])"
    while at and text[at - 1].isspace():
        at -= 1
    return len(text) - at
