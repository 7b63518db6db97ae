"""Where strings end that models write: in any quotes, with quotes inside, or with one missing.

A quote ends a string if what follows it may follow a string there. The certain level refuses a
string that may have two ends; the likely level takes the likelier one.
"""

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from surecall.base.errors import JSONTextError
from surecall.text.codec import decode

from . import syntax
from .cursor import Cursor
from .escapes import write_content
from .repaired import CutShortError, RefusedError

Role: TypeAlias = Literal["key", "object", "array", "top"]
"""Where a string is; that decides what may follow it."""


class StringRead(NamedTuple):
    """A string that was read."""

    end: int
    written: str | None
    """Its JSON; None when it is strict JSON as it is."""
    rules: tuple[str, ...]


class End(NamedTuple):
    """Where a string ends."""

    content: int
    """The end of its text."""
    after: int
    """Where what follows begins."""
    rule: str = ""
    """What is unusual about its end, if anything."""
    start: int = 0
    """Where its text begins, if not behind its quote."""
    is_raw: bool = False
    """Whether its backslashes are its own."""


_TO_QUOTE: Final = {
    opening: re.compile(rf"(?:[^\\{closing}]++|\\.)*+[{closing}]", re.DOTALL)
    for opening, closing in {
        '"': '"',
        "'": "'",
        "`": "`",
        "“": '”“"',
        "”": '”"',
        "„": "“”",
        "‘": "’‘'",
        "’": "’'",
        "«": "»",
        "»": "«»",
    }.items()
}
_SIMPLE: Final = {
    "'": re.compile(r"'[ !#-&(-\[\]-\U0010ffff]*+'"),
    "“": re.compile(r'“[^“”"\\\x00-\x1f]*+”'),
}
_NEIGHBOUR: Final = {
    "object": re.compile(r"\s*+(?:\+\s*+)?+(?:\"[^\"\\\n]*+\"|'[^'\\\n]*+')\s*+[,}\]]"),
    "array": re.compile(r"\s*+'[^'\\\n]*+'\s*+[,\]]"),
}
# A quote that is not escaped, next to a colon or a bracket.
_STRUCTURE: Final = {
    quote: re.compile(
        rf"\A\s*+,|(?<!\\){quote}\s*+(?:[:}}\]{{\[]|[,;]\s*+[{{\[:])|[{{\[]\s*+{quote}|[}}\]]\s*+,\s*+{quote}"
    )
    for quote in "\"'"
}
_BRACKET: Final = re.compile(r"[{}\[\]\"]")
# Quotes inside a string that are neither escaped nor apostrophes: in an array, where nothing but
# commas tells strings apart, they come in pairs or belong to other strings.
_INNER: Final = {
    '"': re.compile(r"\\.|(\")", re.DOTALL),
    "'": re.compile(r"\\.|((?<!\w)'|'(?!\w))", re.DOTALL),
}
_VALUE_AFTER_KEY: Final = re.compile(
    r"\s*+(?:\"(?:[^\"\\]++|\\.)*+\"\s*+[,}]|'(?:[^'\\]++|\\.)*+'\s*+[,}]|[{\[]|-?[0-9]"
    r"|(?:[tT]rue|[fF]alse|null|None)\b)",
    re.DOTALL,
)
_COMMA_AND_LINE: Final = re.compile(r",[ \t]*+[\n\r]")
_DOUBLED: Final = re.compile(r"\"[^\"\\]*+\"?+|[^\"\\]*+\"")
_LOOK_BACK: Final = 64
_NO_CLEAR_END: Final = "it is not clear where this string ends"
_COUNTED_PER_STEP: Final = 8
_IS_CLOSED: Final = re.compile(r"[}\])](?=\s*+\Z)")


def read_string(cursor: Cursor, start: int, role: Role) -> StringRead:
    """Read the string whose quote is at `start`."""
    text = cursor.text
    quote = text[start]
    if (plain := _read_plain(cursor, start, role)) is not None:
        return plain
    rules: list[str] = []
    end = _find_end(cursor, start, role)
    if end.rule == "close_cut_string":
        kind = "member" if role == "key" else "string"
        raise CutShortError(kind, start, "inside a string")
    if end.rule:
        rules.append(end.rule)
    if quote != '"':
        rules.append("replace_quotes")
    content = text[end.start or start + 1 : end.content]
    if not cursor.guesses:
        _refuse_doubtful(cursor, content, start, role, is_open=end.after == end.content)
    has_inner = quote == '"' and not end.start and '"' in content
    if has_inner and (end.is_raw or _count_inner(content, '"')):
        rules.append("escape_inner_quotes")
    written, found = write_content(
        content,
        cursor.steps,
        is_raw=end.is_raw,
        is_cut=cursor.guesses,
        is_other="replace_quotes" in rules,
    )
    rules += found
    if not rules:
        return StringRead(end.after, None, ())
    return StringRead(end.after, written, tuple(dict.fromkeys(rules)))


def _read_plain(cursor: Cursor, start: int, role: Role) -> StringRead | None:
    """Read a string whose first quote is clearly its end."""
    text = cursor.text
    quote = text[start]
    pattern = syntax.STRICT_STRING if quote == '"' else _SIMPLE.get(quote)
    match = pattern.match(text, start) if pattern else None
    if match is None or not _is_end(text, match.end(), role):
        return None
    if cursor.guesses:
        # Quotes may be doubled, and the quote of a key may be the next one.
        is_doubled = match.end() == start + 2 or text.startswith(quote, match.end())
        is_key = role == "key" and syntax.AFTER_FIRST_QUOTE["key"].match(text, match.end())
        if is_doubled or (role == "key" and not is_key):
            return None
    if quote == '"':
        return StringRead(match.end(), None, ())
    return StringRead(match.end(), f'"{match[0][1:-1]}"', ("replace_quotes",))


def _is_end(text: str, end: int, role: Role) -> bool:
    if syntax.AFTER_FIRST_QUOTE[role].match(text, end):
        return not (role == "array" and _NEIGHBOUR["array"].match(text, end))
    return role == "key" and _VALUE_AFTER_KEY.match(text, end) is not None


def _refuse_doubtful(
    cursor: Cursor, content: str, start: int, role: Role, *, is_open: bool
) -> None:
    """Refuse text that may be more than one string: it holds quotes and brackets as JSON would."""
    quote = cursor.text[start]
    cursor.steps.take((content.count("\\") + content.count(quote)) // _COUNTED_PER_STEP, start)
    reason = ""
    if quote == "`" and "${" in content:
        reason = "a template with a placeholder is not a fixed value"
    elif quote not in _STRUCTURE or role in ("top", "key"):
        return
    elif quote == '"' and not is_open and _DOUBLED.fullmatch(content):
        reason = "quotes written twice: do they belong to the text?"
    elif role == "array" and _COMMA_AND_LINE.search(content):
        reason = "a comma and a line break in a string: one item, or two?"
    elif (
        _STRUCTURE[quote].search(content)
        or (is_open and (role == "array" or _BRACKET.search(content)))
        or (role == "array" and quote in content and _count_inner(content, quote) % 2)
    ):
        reason = _NO_CLEAR_END
    if reason:
        raise RefusedError(reason, start)


def _count_inner(content: str, quote: str) -> int:
    return sum(1 for match in _INNER[quote].finditer(content) if match[1])


_COLON_NEXT: Final = re.compile(rf"{syntax.ANY_WS}:")
_KEY_WITHOUT_END: Final = re.compile(r"[\"'“]([^\s\"'“”:,{}\[\]()`;=!?]++)([()`;=!?]?)(?=\s*+:)")
_OTHER_END: Final = {'"': "”“'", "'": '"’', "“": '"'}
_DOUBLED_QUOTE: Final = {
    quote: re.compile(rf"{quote}{quote}(?=[^\s{quote},:}}\]+])") for quote in "\"'"
}
_DOUBLED_END: Final = {
    quote: re.compile(rf"([^{quote}\n]*+){quote}{quote}?+(?=\s*+(?:[,:}}\]]|\Z))")
    for quote in "\"'"
}
_BRACKETS: Final = re.compile(r"[{}\[\]]")
_OPENED: Final = re.compile(r"[{\[]\s*+\Z")
_NEXT_MEMBER: Final = re.compile(
    r"[,\n]\s*+[\"']?+[\w$\-]++[\"']?+\s*+:\s*+(?:[\"'{\[]|-?[0-9.]++\s*+[,}\n]|(?:[tT]rue|[fF]alse|null|None)\b)"
)
"""A comma, a key without quotes, and a value: the string before it lacks its quote."""
_COMMA_BEFORE: Final = re.compile(r",\s*+\Z")
_MAX_NESTED: Final = 20_000
_MAX_TAIL: Final = 4096
_MAX_KEY: Final = 400
_CHARACTERS_PER_STEP: Final = 256
_ENDS_LIKE_MEMBER: Final = frozenset(",{\n[")


def _find_end(cursor: Cursor, start: int, role: Role) -> End:
    """Find the likeliest end of the string whose quote is at `start`."""
    text = cursor.text
    mark = text[start]
    if wrapped := _find_wrapped_end(cursor, start, role):
        return wrapped
    to_quote = _TO_QUOTE[mark]
    quotes: list[int] = []
    at = start + 1
    while match := to_quote.match(text, at):
        cursor.steps.take(1, at)
        at = match.end()
        quotes.append(at - 1)
        if len(quotes) == 1:
            end = _end_first(cursor, start, at, role)
            if end is not None:
                return end
        elif syntax.LATER[role].match(text, at):
            return _end_later(cursor, start, role, quotes)
        elif role != "key" and _COLON_NEXT.match(text, at):
            end = _end_before_key(cursor, start, quotes[-2])
            if end is not None:
                return end
        if role == "key" and (len(quotes) > 8 or at - start > _MAX_KEY):
            break
    cursor.steps.take((at - start) // _CHARACTERS_PER_STEP, start)
    return _end_without_quote(cursor, start, role, quotes)


def _find_wrapped_end(cursor: Cursor, start: int, role: Role) -> End | None:
    """Find the end of a string in several quotes."""
    text = cursor.text
    mark = text[start]
    if mark in "\"'`" and text.startswith(mark * 3, start):
        if mark == "`":
            cursor.doubt("a code fence where text should be", start)
        end = text.find(mark * 3, start + 3)
        if end >= 0 and mark != "`" and (cursor.guesses or _is_end(text, end + 3, role)):
            return End(end, end + 3, "replace_quotes", start + 3)
    if mark in _DOUBLED_QUOTE and _DOUBLED_QUOTE[mark].match(text, start):
        match = _DOUBLED_END[mark].match(text, start + 2)
        if match:
            cursor.doubt("quotes written twice: do they belong to the text?", start)
            return End(match.end(1), match.end(), "replace_quotes", start + 2)
    return None


def _end_first(cursor: Cursor, start: int, at: int, role: Role) -> End | None:
    """Return the end of a string at or behind its first quote, if that may end it."""
    text = cursor.text
    is_doubled = _is_doubled(text, start, at, role)
    if is_doubled:
        cursor.doubt("quotes written twice: do they belong to the text?", start)
    if role == "key":
        if is_doubled:
            return End(at - 1, at + 1, "drop_stray_quote")
        if syntax.BLANKS_TO_END.match(text, at):
            return End(at - 1, at)
        return _check_key(cursor, start, at) if syntax.FIRST["key"].match(text, at) else None
    if role in _NEIGHBOUR and _NEIGHBOUR[role].match(text, at):
        cursor.doubt("two strings side by side: joined, or a comma left out?", at)
    nested = _find_nested_end(cursor, start, at - 1, role)
    if nested is not None:
        return nested
    if syntax.FIRST[role].match(text, at):
        return End(at - 1, at)
    return End(at - 1, at + 1, "drop_stray_quote") if is_doubled else None


def _is_doubled(text: str, start: int, at: int, role: Role) -> bool:
    """Tell whether the quote before a place was written twice; behind a digit it may be inches."""
    if at - start < 3 or text[at : at + 1] != text[start] or text[at - 2].isdigit():
        return False
    after = syntax.LATER if role == "key" else syntax.FIRST
    return after[role].match(text, at + 1) is not None


def _find_nested_end(cursor: Cursor, start: int, quote: int, role: Role) -> End | None:
    """Return the end of a string that holds JSON whose quotes are not escaped."""
    text = cursor.text
    if text[start + 1 : start + 2] not in ("{", "[") and not _OPENED.search(
        text, max(start + 1, quote - 8), quote
    ):
        return None
    depth = 0
    for match in _BRACKETS.finditer(text, start + 1, start + _MAX_NESTED):
        cursor.steps.take(1, start)
        depth += 1 if match[0] in "{[" else -1
        if depth == 0 and match.end() > quote:
            at = match.end()
            end = text.find(text[start], at, at + _MAX_TAIL)
            next_bracket = _BRACKETS.search(text, at)
            if end < 0 or (next_bracket and next_bracket.start() < end):
                return None
            if syntax.FIRST[role].match(text, end + 1):
                return End(
                    end, end + 1, "escape_inner_quotes", is_raw=_is_json(text[start + 1 : end])
                )
            return None
        if depth < 0 or (depth == 0 and match.end() == quote):
            return None
    return None


def _is_json(text: str) -> bool:
    try:
        decode(text)
    except JSONTextError:
        return False
    return True


def _check_key(cursor: Cursor, start: int, at: int) -> End:
    """End a key at its quote, unless that is the quote of the next string: `"a: "x"`."""
    missing = _end_key_without_quote(cursor, start)
    is_quoted = missing is None or syntax.QUOTED_KEY.match(cursor.text, start)
    return End(at - 1, at) if is_quoted or missing is None else missing


def _end_key_without_quote(cursor: Cursor, start: int) -> End | None:
    match = _KEY_WITHOUT_END.match(cursor.text, start)
    if match is None:
        return None
    end = match.end()
    if not match[2]:
        return End(end, end, "add_missing_closing_quote")
    if not cursor.guesses:
        return None
    # Another mark is in the place of the quote: `"name): 1`.
    return End(match.end(1), end, "add_missing_closing_quote")


def _end_later(cursor: Cursor, start: int, role: Role, quotes: list[int]) -> End:
    text = cursor.text
    if role == "key" and (missing := _end_key_without_quote(cursor, start)):
        return missing
    content = text[start + 1 : quotes[0]]
    bare = content.rstrip()
    if role == "array":
        is_line = len(quotes) == 2 and "\n" in content[len(bare) :]
        inner = [text[max(start, one - 8) : one] for one in quotes[:-1]]
        if is_line or all(map(_COMMA_BEFORE.search, inner)):
            cursor.doubt(_NO_CLEAR_END, start)
            end = start + 1 + len(bare.removesuffix(",").rstrip())
            return End(end, end, "add_missing_closing_quote")
    elif len(quotes) % 2 == 0 and role == "object":
        missing = _NEXT_MEMBER.search(text, start, quotes[0] + 1)
        if missing and bare.endswith(":"):
            return End(missing.start(), missing.start(), "add_missing_closing_quote")
    return End(quotes[-1], quotes[-1] + 1, "escape_inner_quotes")


def _end_before_key(cursor: Cursor, start: int, quote: int) -> End | None:
    """Return the end of a string that lacks its quote and ran into the key at `quote`."""
    before = cursor.text[start + 1 : quote]
    bare = before.rstrip()
    is_line = "\n" in before[len(bare) :]
    if not is_line and bare[-1:] not in _ENDS_LIKE_MEMBER:
        return None
    end = len(bare)
    closers: list[int] = []
    while end and bare[end - 1] in ",{[ \n\r\t}]":
        end -= 1
        if bare[end] in "}]":
            closers.append(end)
    end = closers[0] + 1 if closers else end
    opened = [frame.written for frame in reversed(cursor.stack[-len(closers) :])]
    for count in range(min(len(closers), len(opened)), 0, -1):
        ends = closers[:count]
        is_closed = [bare[at] for at in reversed(ends)] == opened[:count]
        # One may stand behind the text; several are each on a line of their own.
        if is_closed and (count == 1 or all(_begins_line(bare, at) for at in ends)):
            end = ends[-1]
            break
    content = start + 1 + len(bare[:end].rstrip())
    text = cursor.text
    mark = text[content - 1]
    if mark in _OTHER_END.get(text[start], "") and text.count(mark, start, content) == 1:
        return End(content - 1, content, "add_missing_closing_quote")
    return End(content, content, "add_missing_closing_quote")


def _begins_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) : at].strip() and "\n" in text[:at]


def _end_without_quote(cursor: Cursor, start: int, role: Role, quotes: list[int]) -> End:
    """Return the end of a string none of whose quotes can be the one that ends it."""
    text = cursor.text
    closers = "".join([one.written for one in reversed(cursor.stack) if not one.is_implied])
    if role == "key" and (missing := _end_key_without_quote(cursor, start)):
        return missing
    if not cursor.guesses:
        if not quotes or not _IS_CLOSED.search(text, len(text) - _LOOK_BACK):
            return End(len(text), len(text), "close_cut_string")
        raise RefusedError(_NO_CLEAR_END, start)
    if len(quotes) % 2:
        return End(quotes[0], quotes[0] + 1)
    for mark in _OTHER_END.get(text[start], ""):
        end = text.find(mark, start + 1, start + _MAX_TAIL)
        if end > 0 and syntax.LATER[role].match(text, end + 1):
            return End(end, end + 1, "replace_quotes")
    if role == "object":
        missing = _NEXT_MEMBER.search(text, start, start + _MAX_TAIL)
        if missing:
            return End(missing.start(), missing.start(), "add_missing_closing_quote")
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
