"""Strings, numbers and text without quotes, by the likeliest of their ends."""

import re
from typing import Any, Final

from surecall.base.errors import Code, JSONTextError
from surecall.text.codec import decode
from surecall.text.repair import patterns
from surecall.text.repair.outcome import RefusedError
from surecall.text.repair.scalars import LITERALS, NON_FINITE_WORDS, rewrite_number
from surecall.text.repair.strings import close_string, write_content

from .cursor import Frame, LooseCursor
from .ends import KEY_AHEAD, QUOTED_ITEM, QUOTED_KEY, VALUE_AHEAD, WS, Role, find_end

_LITERAL_CHARACTERS: Final = 16
_GAP_ONLY: Final = re.compile(WS)
_BARE_STOP: Final = re.compile(r"[^,;}\]\n\r\"/#{]*+")
_AFTER_COMMA: Final = re.compile(
    rf"{WS}(?:[}}\],;]|\Z|/[/*]|\#|\.\.\.|…|{{|{KEY_AHEAD.pattern}|[\w$]++\Z|\"[^\"\n]*+\"?+{WS}(?:\Z|[,}}]))"
)
_AFTER_QUOTE: Final = re.compile(rf"{WS}(?:[,;}}\]]|\Z|[\n\r])")
_NUMBER_END: Final = re.compile(rf"{WS}(?:[,;}}\])]|/[/*]|\#|`{{3}}|\Z)|[ \t]*+[\n\r]")
_HALF_NUMBER: Final = re.compile(r"([+-]?+[0-9][0-9_]*+(?:\.[0-9]++)?+)(?:\.|\.?+[eE][+-]?+)?+\Z")
_GROUPED: Final = re.compile(
    r"([+-]?+[0-9]{1,3}(?:,[0-9]{3})++(?:\.[0-9]++)?+)(?=\s*+(?:[}\n]|,\s|\Z))"
)
_DOUBLED_QUOTE: Final = re.compile(r"\"\"(?=[^\s\",:}\]+])")
_DOUBLED_END: Final = re.compile(rf"([^\"\n]*+)\"\"?+(?={WS}(?:[,:}}\]]|\Z))")
_JOINT: Final = re.compile(rf"{WS}\+{WS}(?=[\"'`}}\],]|\Z)")


def read_string(cursor: LooseCursor, role: Role, prefix: str = "") -> str:
    """Read a string, and those that are joined to it by a plus sign."""
    start = cursor.pos
    text = cursor.text
    quote = start + len(prefix)
    cursor.has_evidence = True
    if prefix:
        cursor.note(start, quote, "", "drop_string_prefix")
    value = _read_wrapped(cursor, quote)
    if value is None:
        value = _read_one_string(cursor, quote, role, is_raw="r" in prefix.lower())
    while role != "key" and (match := _JOINT.match(text, cursor.pos)):
        cursor.note(*match.span(), "", "join_strings")
        if match.end() >= len(text) or text[match.end()] not in patterns.QUOTES:
            cursor.pos = match.end()
            break
        value += _read_one_string(cursor, match.end(), role, is_raw=False)
    return value


def _read_wrapped(cursor: LooseCursor, start: int) -> str | None:
    """Read a string in three quotes, or in two where one is meant."""
    text = cursor.text
    mark = text[start]
    if mark in "\"'" and text.startswith(mark * 3, start):
        end = text.find(mark * 3, start + 3)
        if end >= 0:
            cursor.pos = end + 3
            return take_content(cursor, start, start + 3, end, "replace_quotes")
    elif _DOUBLED_QUOTE.match(text, start):
        match = _DOUBLED_END.match(text, start + 2)
        if match:
            cursor.pos = match.end()
            return take_content(cursor, start, start + 2, match.end(1), "replace_quotes")
    return None


def _read_one_string(cursor: LooseCursor, start: int, role: Role, *, is_raw: bool) -> str:
    text = cursor.text
    closers = "".join([one.closer for one in reversed(cursor.frames) if not one.is_implied])
    end = find_end(text, start, role, cursor.steps, closers, plain=cursor.plain)
    cursor.pos = end.after
    if end.rule == "close_cut_string":
        cursor.cut = "inside a string" if role != "key" else "inside a key"
        written = close_string(text, start, cursor.steps, is_raw=is_raw)
        if role != "key":
            cursor.note(start, len(text), written, "close_cut_string", lossless=False)
        return _decode_string(cursor, written, start)
    rule = end.rule or ("" if text[start] == '"' else "replace_quotes")
    return take_content(cursor, start, start + 1, end.content, rule, is_raw=is_raw)


def take_content(
    cursor: LooseCursor, start: int, begin: int, end: int, rule: str, *, is_raw: bool = False
) -> str:
    """Return the text between two places of a string, and note what was changed in it."""
    written, rules = write_content(cursor.text[begin:end], cursor.steps, is_raw=is_raw, is_cut=True)
    for one in dict.fromkeys([rule, *rules] if rule else rules):
        cursor.note(start, cursor.pos, written, one)
    return _decode_string(cursor, written, start)


def _decode_string(cursor: LooseCursor, written: str, start: int) -> str:
    try:
        return str(decode(written))
    except JSONTextError as error:
        raise RefusedError(error.message, start, Code(error.code)) from None


def read_number(cursor: LooseCursor, frame: Frame | None) -> bool:
    """Read a number, if one is here that ends as numbers do."""
    text = cursor.text
    pos = cursor.pos
    if cursor.is_open() and (half := _HALF_NUMBER.match(text, pos)):
        cursor.cut = "inside a number"
        number = rewrite_number(half[1], pos)
        cursor.note(pos, len(text), number or "", "keep_cut_value", lossless=False)
        cursor.pos = len(text)
        cursor.add(decode(number or "null"))
        return True
    grouped = _GROUPED.match(text, pos)
    if frame is not None and frame.members is not None and grouped:
        end, literal = grouped.end(), grouped[1].replace(",", "")
    else:
        match = patterns.NUMBER.match(text, pos)
        if match is None:
            return False
        end, literal = match.end(), match[0].rstrip("eE")
        if not _has_end(cursor, frame, end):
            return False
    number = rewrite_number(literal, pos)
    if number is None:
        return False
    value = _make_number(cursor, number, pos)
    if number != text[pos:end]:
        cursor.note(pos, end, number, "rewrite_number")
    cursor.pos = end
    cursor.has_evidence = True
    cursor.add(value)
    return True


def _has_end(cursor: LooseCursor, frame: Frame | None, end: int) -> bool:
    text = cursor.text
    if _NUMBER_END.match(text, end):
        return True
    if frame is None:
        return False
    if text[end] == '"':
        ahead = QUOTED_KEY if frame.members is not None else QUOTED_ITEM
        return ahead.match(text, end) is not None
    if not text[end].isspace():
        return False
    match = _GAP_ONLY.match(text, end)
    at = match.end() if match else end
    ahead = KEY_AHEAD if frame.members is not None else VALUE_AHEAD
    return ahead.match(text, at) is not None


def _make_number(cursor: LooseCursor, number: str, pos: int) -> Any:
    try:
        return decode(number)
    except JSONTextError as error:
        if error.code == Code.NON_FINITE_NUMBER:
            return _make_non_finite(cursor, number, pos)
        raise RefusedError(error.message, pos, Code(error.code)) from None


def _make_non_finite(cursor: LooseCursor, name: str, pos: int) -> Any:
    if cursor.non_finite == "refuse":
        raise RefusedError(f"the number {name[:24]} is not finite", pos, Code.NON_FINITE_NUMBER)
    is_text = cursor.non_finite == "text"
    cursor.note(
        pos, cursor.pos, name if is_text else "null", "replace_non_finite", lossless=is_text
    )
    return name if is_text else None


def read_bare(cursor: LooseCursor, frame: Frame | None) -> None:
    """Read text without quotes, or a literal."""
    text = cursor.text
    pos = cursor.pos
    end, is_quote = _find_bare_end(cursor, frame)
    phrase = text[pos:end].rstrip()
    cursor.pos = end + is_quote
    if not phrase:
        cursor.pos = max(cursor.pos, pos + 1)
        cursor.note(pos, cursor.pos, "", "drop_stray_text", lossless=False)
        return
    if end >= len(text) and cursor.is_open():
        _keep_cut(cursor, phrase, pos)
        return
    lowered = phrase.lower()
    if is_quote and (lowered in LITERALS or lowered in NON_FINITE_WORDS):
        cursor.note(end, end + 1, "", "drop_stray_quote")
    if lowered in LITERALS:
        literal = LITERALS[lowered]
        cursor.has_evidence = True
        if literal != phrase:
            cursor.note(pos, end, literal, "replace_literal")
        cursor.add(decode(literal))
    elif lowered in NON_FINITE_WORDS:
        cursor.add(_make_non_finite(cursor, NON_FINITE_WORDS[lowered], pos))
    else:
        add_bare(cursor, phrase, pos, is_quote=is_quote)


def add_bare(cursor: LooseCursor, phrase: str, pos: int, *, is_quote: bool) -> None:
    """Take a phrase as text, or as the number it is with a stray quote behind it."""
    value: Any = phrase
    if is_quote and phrase[0] in "0123456789-" and patterns.STRICT_NUMBER.fullmatch(phrase):
        value = _make_number(cursor, phrase, pos)
        cursor.note(pos + len(phrase), cursor.pos, "", "drop_stray_quote")
    else:
        rule = "add_missing_opening_quote" if is_quote else "quote_bare_text"
        cursor.note(pos, cursor.pos, f'"{phrase}"', rule)
    cursor.add(value)


def _keep_cut(cursor: LooseCursor, phrase: str, pos: int) -> None:
    """Keep a word that the end of the text may have cut."""
    end = len(cursor.text)
    cursor.cut = "inside a word"
    names = {value for name, value in LITERALS.items() if name.startswith(phrase.lower())}
    if len(names) == 1:
        literal = names.pop()
        cursor.note(pos, end, literal, "complete_cut_literal", lossless=False)
        cursor.add(decode(literal))
    elif phrase in ("-", "+", "."):
        cursor.note(pos, end, "", "drop_cut_member", lossless=False)
        cursor.frames[-1].key = None
    else:
        cursor.note(pos, end, f'"{phrase}"', "keep_cut_value", lossless=False)
        cursor.add(phrase)


def _find_bare_end(cursor: LooseCursor, frame: Frame | None) -> tuple[int, bool]:
    """Return where text without quotes ends, and whether a quote is there."""
    text = cursor.text
    start = at = cursor.pos
    quotes = 0
    while True:
        cursor.steps.take(1, at)
        match = _BARE_STOP.match(text, at)
        at = match.end() if match else at
        mark = text[at : at + 1]
        if mark == '"':
            if _AFTER_QUOTE.match(text, at + 1):
                return (at + 1, False) if quotes % 2 else (at, True)
            quotes += 1
        if mark == "" or mark in "}]\n\r" or _ends_bare(text, start, at, frame):
            break
        at += 1
    if frame is not None and frame.closer == ")":
        at = _end_at_parenthesis(cursor, start, at)
    return at, False


def _ends_bare(text: str, start: int, at: int, frame: Frame | None) -> bool:
    """Tell whether text without quotes ends before the mark at a place."""
    mark = text[at]
    is_literal = at - start < _LITERAL_CHARACTERS and text[start:at].lower() in LITERALS
    if mark == '"':
        return is_literal or (at > start and QUOTED_KEY.match(text, at) is not None)
    if mark == "," or mark == ";":
        if frame is None:
            return False
        return frame.members is None or is_literal or bool(_AFTER_COMMA.match(text, at + 1))
    if at == start:
        return False
    if mark == "{":
        return text[at + 1 : at + 2] in ('"', "'", "}")
    return text[at - 1].isspace() and (mark == "#" or text[at : at + 2] in ("//", "/*"))


def _end_at_parenthesis(cursor: LooseCursor, start: int, end: int) -> int:
    found = cursor.text.find(")", start, end)
    return end if found < 0 else found


def make_scalar(cursor: LooseCursor, phrase: str) -> Any:
    """Return what a phrase without quotes means."""
    lowered = phrase.lower()
    if lowered in LITERALS:
        return decode(LITERALS[lowered])
    number = rewrite_number(phrase, cursor.pos) if phrase[0] in "0123456789+-." else None
    return phrase if number is None else _make_number(cursor, number, cursor.pos)
