"""Values that are not containers, as models write them: strings, numbers, words, bare text."""

import re
from typing import Final

from surecall.base.errors import Code

from . import syntax
from .cursor import Cursor
from .escapes import write_content
from .repaired import CutShortError, RefusedError
from .strings import Role, read_string

LITERALS: Final = {
    "true": "true",
    "false": "false",
    "null": "null",
    "none": "null",
    "nil": "null",
    "undefined": "null",
}
"""Words that stand for a JSON literal, in lower case."""

NON_FINITE_WORDS: Final = {
    "nan": "NaN",
    "+nan": "NaN",
    "-nan": "NaN",
    "infinity": "Infinity",
    "+infinity": "Infinity",
    "-infinity": "-Infinity",
    "inf": "Infinity",
    "+inf": "Infinity",
    "-inf": "-Infinity",
}

_MAX_CHARACTERS: Final = 4400
_TOO_LONG: Final = "a number has too many digits"
_DIGITS: Final = r"[0-9]++(?:_[0-9]++)*+"
_DECIMAL: Final = re.compile(
    rf"(?P<sign>[+-]?+)(?P<whole>(?:{_DIGITS})?+)(?P<dot>\.?+)(?P<part>(?:{_DIGITS})?+)"
    r"(?P<exponent>(?:[eE][+-]?+[0-9]++)?+)"
)
_BASED: Final = re.compile(
    r"[+-]?+0(?:[xX][0-9a-fA-F]++(?:_[0-9a-fA-F]++)*+|[oO][0-7]++(?:_[0-7]++)*+"
    r"|[bB][01]++(?:_[01]++)*+)"
)
_TEXT_IN_DIGITS: Final = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[T ][0-9:.]++(?:Z|[+-][0-9:]++)?+)?+"
    r"|[0-9]++(?:\.[0-9]++){2,}+|[0-9]++[a-zA-Z%][\w%\-]*+"
)
_OTHER_NUMBER: Final = re.compile(r"0[xXoObB].*+|[0-9_.]++(?:[eE][+-]?+[0-9]*+|[nNlLfFdDjJ])")

DIGITS: Final = frozenset("0123456789")
_ELLIPSES: Final = ("...", "…")
_LITERAL_CHARACTERS: Final = 16
_MAX_BRACES: Final = 200
"""How much may be between braces in text without quotes."""
_GROUPED: Final = re.compile(
    r"[+-]?+[0-9]{1,3}(?:,[0-9]{3})++(?:\.[0-9]++)?+(?=\s*+(?:[}\n]|,[\s}]|/[/*]|\Z)|\s++\")"
)
"""A number with commas between its thousands."""
_NUMBER_AND_REST: Final = re.compile(
    r"([+-]?+[0-9][0-9_]*+(?:\.[0-9]++)?+)(?:\.?+[eE][+-]?+|\.|\{|\[)(?=\s*+[,}\]\n])"
)
"""A number, and half of an exponent or a bracket behind it."""
_BARE_STOP: Final = re.compile(r"[^,;{}\]\n\r\"/#]*+")
_AFTER_QUOTE: Final = re.compile(r"\s*+(?:[,;}\]]|\Z|[\n\r])")
_AFTER_COMMA: Final = re.compile(
    rf"\s*+(?:[}}\],;]|\Z|/[/*]|\#|\.\.\.|…|{{|{syntax.LIKELY_KEY.pattern}|[\w$]++\Z"
    r"|\"[^\"\n]*+\"?+\s*+(?:\Z|[,}]))"
)


def _find_role(cursor: Cursor) -> Role:
    if not cursor.stack:
        return "top"
    return "object" if cursor.stack[-1].is_object else "array"


def read_quoted(cursor: Cursor, start: int, role: Role | None = None) -> None:
    """Read the string that begins at `start`."""
    read = read_string(cursor, start, role or _find_role(cursor))
    cursor.pos = read.end
    if read.written is None:
        return
    for rule in read.rules:
        cursor.note(start, read.end, read.written, rule)


def read_number(cursor: Cursor, pos: int) -> None:
    """Read a number, or text that begins like one."""
    text = cursor.text
    match = syntax.STRICT_NUMBER.match(text, pos) or syntax.NUMBER.match(text, pos)
    if text.startswith(_ELLIPSES, pos):
        cursor.doubt("an ellipsis is in the place of something that was left out", pos)
    is_open = bool(cursor.stack) and not cursor.stack[0].is_implied
    if (is_open or match is None) and syntax.NUMBER_TO_END.match(text, pos):
        raise CutShortError("member", pos, "inside a number")
    if cursor.guesses and (found := _read_likely_number(cursor, pos)):
        _take_number(cursor, pos, *found)
        return
    if match is None:
        read_word(cursor, pos)
        return
    literal = match[0]
    end = match.end()
    number = literal if match.re is syntax.STRICT_NUMBER else rewrite_number(literal, pos)
    if number is None or not _has_end(cursor, end):
        _read_bare_text(cursor, pos)
    else:
        _take_number(cursor, pos, end, literal, number)


def _read_likely_number(cursor: Cursor, pos: int) -> tuple[int, str, str] | None:
    """Return a number with commas in it, or with half a sign behind it."""
    grouped = _GROUPED.match(cursor.text, pos)
    if grouped and (not cursor.stack or cursor.stack[-1].is_object):
        number = rewrite_number(grouped[0].replace(",", ""), pos)
        return (grouped.end(), grouped[0], number) if number else None
    half = _NUMBER_AND_REST.match(cursor.text, pos)
    number = rewrite_number(half[1], pos) if half else None
    return (half.end(), half[0], number) if half and number else None


def _has_end(cursor: Cursor, end: int) -> bool:
    """Tell whether a number or literal may end here; blanks and an entry follow a missing comma."""
    text = cursor.text
    if syntax.LITERAL_END.match(text, end):
        return True
    match = syntax.BLANKS.match(text, end)
    in_object = cursor.is_in_object()
    if match is None:
        if not cursor.guesses or not cursor.stack or text[end : end + 1] != '"':
            return False
        ahead = syntax.QUOTED_KEY if in_object else syntax.QUOTED_ITEM
        return ahead.match(text, end) is not None
    ahead = syntax.KEY_AHEAD if in_object else syntax.VALUE_AHEAD
    return bool(ahead.match(text, match.end()))


def _take_number(cursor: Cursor, pos: int, end: int, literal: str, number: str) -> None:
    cursor.has_evidence = True
    if number != literal:
        is_grouped = cursor.comma == pos - 1 and cursor.text[pos - 2] in DIGITS
        if is_grouped and literal[0] == "0" and len(literal) == 3:
            cursor.doubt("a comma between digits: one number, or two?", pos)
        cursor.note(pos, end, number, "rewrite_number")
    if len(number) > 300 or "e" in number or "E" in number:
        _refuse_overflow(cursor, pos, end, number)
    cursor.end_entry(end)


def _refuse_overflow(cursor: Cursor, pos: int, end: int, number: str) -> None:
    if number.lstrip("-").isdigit():
        return
    value = float(number)
    if value - value != 0:
        name = "-Infinity" if value < 0 else "Infinity"
        if cursor.edits and cursor.edits[-1][0] == pos:
            cursor.edits.pop()
        _take_non_finite(cursor, pos, end, name)


def _take_non_finite(cursor: Cursor, pos: int, end: int, name: str) -> None:
    if cursor.non_finite == "refuse":
        shown = cursor.text[pos : min(end, pos + 24)]
        raise RefusedError(f"the number {shown} is not finite", pos, Code.NON_FINITE_NUMBER)
    is_text = cursor.non_finite == "text"
    after = f'"{name}"' if is_text else "null"
    cursor.note(pos, end, after, "replace_non_finite", lossless=is_text)
    cursor.has_evidence = True


def read_word(cursor: Cursor, pos: int) -> None:
    """Read a literal, or text without quotes."""
    text = cursor.text
    match = syntax.WORD.match(text, pos)
    if match is None:
        cursor.doubt("something else where a value should be", pos)
        read_phrase(cursor, pos)
        return
    word = match[0]
    end = match.end()
    lowered = word.lower()
    literal = LITERALS.get(lowered)
    name = None if literal else NON_FINITE_WORDS.get(lowered)
    if (literal or name) and _has_end(cursor, end):
        if end >= len(text) and cursor.stack:
            raise CutShortError("word", pos, "after a literal")
        if name:
            _take_non_finite(cursor, pos, end, name)
        elif literal and literal != word:
            cursor.note(pos, end, literal, "replace_literal")
        cursor.has_evidence = True
        cursor.end_entry(end)
    elif end >= len(text) and not (cursor.guesses and not cursor.stack):
        raise CutShortError("word", pos, "inside a word")
    else:
        _read_bare_text(cursor, pos)


def _read_bare_text(cursor: Cursor, pos: int) -> None:
    """Take a plain word or phrase without quotes for text, if it is clear where it ends."""
    text = cursor.text
    match = syntax.BARE_TEXT.match(text, pos)
    if match and cursor.stack and match.end() >= len(text):
        raise CutShortError("member", pos, "inside text without quotes")
    reason = _find_bare_doubt(cursor, pos, match)
    if reason or match is None:
        cursor.doubt(reason, pos)
        read_phrase(cursor, pos)
        return
    end = match.end()
    phrase = match[0].rstrip(" \t")
    after = f'"{phrase}"'
    if text[end] in "\"'":
        cursor.note(pos, end + 1, after, "add_missing_opening_quote")
        cursor.end_entry(end + 1)
    else:
        end = pos + len(phrase)
        cursor.note(pos, end, after, "quote_bare_text")
        cursor.end_entry(end)


def _find_bare_doubt(cursor: Cursor, pos: int, match: re.Match[str] | None) -> str:
    """Return what is not clear about text without quotes, or nothing."""
    text = cursor.text
    if match is None or not cursor.stack:
        return "something else where a value should be"
    end = match.end()
    phrase = match[0].rstrip(" \t")
    in_object = cursor.stack[-1].is_object
    follows = syntax.BARE_TEXT_END[in_object].match(text, end)
    if follows is None or "..." in phrase:
        return "text without quotes that does not end clearly"
    if phrase[0] in DIGITS and not _is_text_in_digits(phrase):
        return "neither a number nor text"
    if text[end] in "\"'" and not in_object:
        return "it is not clear where this string begins"
    return ""


def read_phrase(cursor: Cursor, pos: int) -> None:
    """Take what is written at a place, up to what most likely ends it, for text."""
    text = cursor.text
    end, is_quote = _find_phrase_end(cursor, pos)
    phrase = text[pos:end].rstrip()
    lowered = phrase.lower()
    if not phrase:
        cursor.pos = pos
        cursor.drop(max(end + is_quote, pos + 1), "drop_stray_text")
        return
    if end >= len(text) and cursor.stack and not cursor.stack[0].is_implied:
        raise CutShortError("word" if lowered.isalpha() else "member", pos, "inside a word")
    after = pos + len(phrase)
    if lowered in NON_FINITE_WORDS:
        _take_non_finite(cursor, pos, after, NON_FINITE_WORDS[lowered])
    elif lowered in LITERALS or (is_quote and syntax.STRICT_NUMBER.fullmatch(phrase)):
        written = LITERALS.get(lowered, phrase)
        if written != phrase:
            cursor.note(pos, after, written, "replace_literal")
        cursor.has_evidence = True
    elif not is_quote and phrase[0] in "0123456789+-." and (number := rewrite_number(phrase, pos)):
        if number != phrase:
            cursor.note(pos, after, number, "rewrite_number")
    else:
        written, _ = write_content(phrase, cursor.steps, is_raw=False, is_cut=True)
        rule = "add_missing_opening_quote" if is_quote else "quote_bare_text"
        after = end + is_quote if is_quote else after
        cursor.note(pos, after, written, rule)
        is_quote = False
    if is_quote:
        cursor.note(end, end + 1, "", "drop_stray_quote")
        after = end + 1
    cursor.end_entry(after)


def _find_phrase_end(cursor: Cursor, start: int) -> tuple[int, bool]:
    """Return where text without quotes ends, and whether a quote is there."""
    text = cursor.text
    at = start
    quotes = depth = 0
    while True:
        cursor.steps.take(1, at)
        match = _BARE_STOP.match(text, at)
        at = match.end() if match else at
        mark = text[at : at + 1]
        if mark == '"':
            if _AFTER_QUOTE.match(text, at + 1):
                return (at + 1, False) if quotes % 2 else (at, True)
            quotes += 1
        if mark == "{" and not _opens_object(text, at):
            depth += 1
        elif mark == "}" and depth:
            depth -= 1
        elif mark == "" or mark in "}]\n\r" or _ends_phrase(cursor, start, at):
            break
        at += 1
    return at, False


def _opens_object(text: str, at: int) -> bool:
    return text[at + 1 : at + 2] in ('"', "'", "}", "") or text.find("}", at, at + _MAX_BRACES) < 0


def _ends_phrase(cursor: Cursor, start: int, at: int) -> bool:
    """Tell whether text without quotes ends before the mark at a place."""
    text = cursor.text
    mark = text[at]
    is_literal = at - start < _LITERAL_CHARACTERS and text[start:at].lower() in LITERALS
    if mark == '"':
        return is_literal or (at > start and syntax.QUOTED_KEY.match(text, at) is not None)
    if mark == "," or mark == ";":
        if not cursor.stack:
            return False
        is_object = cursor.stack[-1].is_object
        return not is_object or is_literal or bool(_AFTER_COMMA.match(text, at + 1))
    if at == start:
        return False
    if mark == "{":
        return True
    return text[at - 1].isspace() and (mark == "#" or text[at : at + 2] in ("//", "/*"))


def rewrite_number(literal: str, position: int) -> str | None:
    """Return the number as JSON writes it, or None when the text is not a number."""
    if len(literal) > _MAX_CHARACTERS:
        raise RefusedError(_TOO_LONG, position, Code.NUMBER_TOO_LONG)
    if _BASED.fullmatch(literal):
        try:
            return str(int(literal, 0))
        except ValueError:
            raise RefusedError(_TOO_LONG, position, Code.NUMBER_TOO_LONG) from None
    found = _DECIMAL.fullmatch(literal)
    if found is None or not (found["whole"] or found["part"]):
        return None
    sign = "-" if found["sign"] == "-" else ""
    whole = found["whole"].replace("_", "").lstrip("0") or "0"
    part = f".{found['part'].replace('_', '') or '0'}" if found["dot"] else ""
    return f"{sign}{whole}{part}{found['exponent']}"


def _is_text_in_digits(text: str) -> bool:
    """Tell whether bare text that begins with a digit cannot be meant as a number."""
    return _TEXT_IN_DIGITS.fullmatch(text) is not None and not _OTHER_NUMBER.fullmatch(text)
