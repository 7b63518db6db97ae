"""Reads one damaged JSON value from text and notes what must change to make it strict JSON.

The text is walked once, without recursion. Whatever is strict JSON already is passed over by one
regular expression; only what is not is looked at piece by piece. The outcome is a list of edits:
the text with its edits applied is strict JSON, and each edit becomes a receipt.
"""

import re
from itertools import islice
from typing import Final

from . import patterns
from .cursor import MAX_RECEIPTS_PER_RULE, OBJECTS, Cursor
from .outcome import CutShortError, RefusedError
from .scalars import (
    DIGITS,
    STRING_PREFIXES,
    read_number,
    read_quoted,
    read_word,
    refuse_ellipsis,
    refuse_moved_quotes,
)

_CHARACTERS_PER_STEP: Final = 256
_PLAIN_STARTS: Final = frozenset("{[\"'")
_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}


def read(cursor: Cursor, start: int) -> int:
    """Read the value that begins at `start` and return where it ends."""
    cursor.pos = start
    _read_value(cursor)
    return _read_on(cursor)


def resume(cursor: Cursor, position: int, stack: list[str]) -> int:
    """Do the same from a place on before which all is strict JSON; see `find_resumption`."""
    cursor.stack = stack
    cursor.is_committed = cursor.has_evidence = True
    cursor.pos = position
    mark = cursor.text[position]
    if mark == '"':
        raise CutShortError("string", position, "inside a string")
    if mark == ",":
        cursor.comma = position
        cursor.pos += 1
    else:
        _read_value(cursor)
    return _read_on(cursor)


def _read_on(cursor: Cursor) -> int:
    stack = cursor.stack
    steps = cursor.steps
    while stack:
        steps.left -= 1
        if steps.left < 0:
            steps.take(1, cursor.pos)
        if cursor.is_after:
            _read_separator(cursor)
        elif stack[-1] in OBJECTS:
            _read_member(cursor)
        else:
            _read_item(cursor)
    return cursor.pos


def _read_separator(cursor: Cursor) -> None:
    text = cursor.text
    pos = cursor.pos
    mark = text[pos : pos + 1]
    if mark != "," and mark != "}" and mark != "]":
        pos = cursor.advance()
        mark = text[pos]
    if mark == "," or mark == ";":
        if mark == ";":
            cursor.note(pos, pos + 1, ",", "replace_comma")
        cursor.comma = pos
        cursor.is_after = False
        cursor.pos = pos + 1
        cursor.note_group_comma()
    elif mark in "}])":
        cursor.close(mark)
    elif cursor.is_fenced and patterns.FENCE.match(text, pos):
        raise CutShortError("after_entry", pos, "before all brackets are closed")
    else:
        _add_comma(cursor, pos)


def _add_comma(cursor: Cursor, pos: int) -> None:
    text = cursor.text
    if cursor.stack[-1] in OBJECTS:
        is_next = patterns.KEY_AHEAD.match(text, pos) is not None
    else:
        is_next = patterns.VALUE_AHEAD.match(text, pos) is not None
        if is_next and text[pos] in "0123456789." and _may_be_one_number(cursor, pos):
            raise RefusedError("a blank between digits: one number, or two?", pos)
    is_apart = pos > cursor.done_at or text[pos] in "{["
    if not (is_next and is_apart):
        raise RefusedError("something else where ',' or a closing bracket should be", pos)
    cursor.note(pos, pos, ",", "add_missing_comma")
    cursor.is_after = False
    cursor.note_group_comma()


def _may_be_one_number(cursor: Cursor, pos: int) -> bool:
    between = cursor.text[cursor.done_at : pos]
    return cursor.text[cursor.done_at - 1] in "0123456789." and "\n" not in between


def _begin_entry(cursor: Cursor) -> str:
    """Return the character that an entry begins with, or nothing if another thing was there."""
    pos = cursor.advance()
    mark = cursor.text[pos]
    if mark in "}])":
        cursor.close(mark)
        return ""
    match = patterns.EXTRA_COMMAS.match(cursor.text, pos)
    if match:
        if cursor.comma < 0 and not cursor.is_in_object():
            raise RefusedError("a comma where the first item should be", pos)
        cursor.note(pos, match.end(), " ", "drop_extra_comma")
        cursor.pos = match.end()
        return ""
    cursor.entry = pos
    return mark


# Entries


def _read_member(cursor: Cursor) -> None:
    text = cursor.text
    match = patterns.MEMBERS.match(text, cursor.pos)
    if match:
        cursor.is_committed = cursor.has_evidence = True
        cursor.end_entry_and_comma(match.end())
        return
    match = patterns.LOOSE_MEMBER.match(text, cursor.pos)
    if match:
        _take_loose_member(cursor, match)
        return
    mark = _begin_entry(cursor)
    if mark:
        _read_colon(cursor, _read_key(cursor, cursor.pos, mark))
        cursor.is_committed = True
        _read_value(cursor)


def _take_loose_member(cursor: Cursor, match: re.Match[str]) -> None:
    """Take a key and its colon, with the value when that is simple."""
    cursor.is_committed = True
    cursor.entry = cursor.pos
    bare, key = match.group("bare", "key")
    if bare is not None:
        start, end = match.span("bare")
        cursor.edits.append((start, end, f'"{bare}"', "quote_key", True))
    else:
        cursor.has_evidence = True
        if key is not None:
            start, end = match.span("key")
            cursor.edits.append((start - 1, end + 1, f'"{key}"', "replace_quotes", True))
    kind = match.lastgroup
    if kind == "value" or kind == "word" or kind == "text":
        _take_loose_value(cursor, match, kind)
    else:
        cursor.pos = match.end()
        _read_value(cursor)


def _take_loose_value(cursor: Cursor, match: re.Match[str], kind: str) -> None:
    cursor.has_evidence = True
    if kind == "word":
        start, end = match.span(kind)
        cursor.edits.append((start, end, _LITERALS[match[kind]], "replace_literal", True))
    elif kind == "text":
        start, end = match.span(kind)
        cursor.edits.append((start - 1, end + 1, f'"{match[kind]}"', "replace_quotes", True))
    if cursor.stack[-1] == ")":
        cursor.end_entry(match.end())
    else:
        cursor.end_entry_and_comma(match.end())


def _read_item(cursor: Cursor) -> None:
    match = patterns.ITEMS.match(cursor.text, cursor.pos)
    if match:
        cursor.has_evidence = True
        cursor.end_entry(match.end())
        return
    match = patterns.PLAIN_ITEMS.match(cursor.text, cursor.pos) if cursor.stack[-1] == "]" else None
    if match:
        _take_plain_items(cursor, match)
        return
    match = patterns.LOOSE_ITEM.match(cursor.text, cursor.pos)
    if match:
        _take_loose_value(cursor, match, match.lastgroup or "")
        return
    if _begin_entry(cursor):
        _read_value(cursor)
        cursor.is_committed |= cursor.has_evidence


def _take_plain_items(cursor: Cursor, match: re.Match[str]) -> None:
    """Take plain strings in single quotes, and the commas behind them.

    The first are noted one by one, as many as there may be receipts, the others together.
    """
    text = cursor.text
    start, end = match.span()
    cursor.comma = text.rindex(",", start, end)
    cursor.done_at = text.rindex("'", start, cursor.comma) + 1
    first = islice(patterns.PLAIN_ITEM.finditer(text, start, end), MAX_RECEIPTS_PER_RULE)
    for item in first:
        cursor.note(*item.span(), f'"{item[1]}"', "replace_quotes")
    noted = cursor.edits[-1][1]
    if noted < cursor.done_at:
        others = text[noted : cursor.done_at].replace("'", '"')
        cursor.note(noted, cursor.done_at, others, "replace_quotes")
    cursor.steps.take(len(match[0]) // _CHARACTERS_PER_STEP, start)
    cursor.has_evidence = True
    cursor.is_after = False
    cursor.pos = end


def _read_key(cursor: Cursor, pos: int, mark: str) -> bool:
    """Read a key and tell whether it has quotes."""
    text = cursor.text
    if mark in patterns.QUOTES:
        read_quoted(cursor, pos, "key")
        return True
    match = patterns.BARE_KEY.match(text, pos)
    if match is None:
        refuse_ellipsis(cursor, pos)
        raise RefusedError("something else where a key should be", pos)
    end = match.end()
    ahead = patterns.BARE_KEY_AHEAD.match(text, end)
    if ahead is None:
        if patterns.BLANKS_TO_END.match(text, end):
            raise CutShortError("member", pos, "inside a key")
        if text[end] in "\"'" and match[0].lower() in STRING_PREFIXES:
            read_quoted(cursor, pos, "key", match[0])
            return True
        raise RefusedError("a key without ':'", pos)
    if text[end] in "\"'”’":
        cursor.note(pos, end + 1, f'"{match[0]}"', "add_missing_opening_quote")
        refuse_moved_quotes(cursor, pos)
        end += 1
    else:
        cursor.note(pos, end, f'"{match[0]}"', "quote_key")
    cursor.pos = end
    return False


def _read_colon(cursor: Cursor, is_quoted: bool) -> None:
    text = cursor.text
    try:
        pos = cursor.advance()
    except CutShortError as cut:
        raise CutShortError("member", cut.start, "after a key") from None
    mark = text[pos]
    if mark == ":":
        end = pos + 1
        if text.startswith("=", end):
            cursor.note(pos, end + 1, ":", "replace_colon")
            end += 1
    elif mark == "=":
        end = pos + 2 if text.startswith("=>", pos) else pos + 1
        cursor.note(pos, end, ":", "replace_colon")
    elif is_quoted:
        end = pos
        cursor.note(pos, pos, ":", "add_missing_colon")
    else:
        raise RefusedError("a key without ':'", pos)
    match = patterns.EXTRA_COLON.match(text, end)
    if match:
        end = match.end()
        cursor.note(end - 1, end, " ", "drop_extra_colon")
    cursor.pos = end


# Values


def _gap_before_value(cursor: Cursor) -> int:
    try:
        return cursor.advance()
    except CutShortError as cut:
        kind = "member" if cursor.is_in_object() else "entry"
        raise CutShortError(kind, cut.start, "where a value should be") from None


def _read_value(cursor: Cursor) -> None:
    text = cursor.text
    pos = cursor.pos
    if text[pos : pos + 1] not in _PLAIN_STARTS:
        pos = _gap_before_value(cursor)
    mark = text[pos]
    if mark in "{[(":
        if cursor.stack and cursor.stack[-1] not in OBJECTS:
            cursor.has_evidence = True
        cursor.open(mark, pos)
    elif mark in patterns.QUOTES:
        cursor.has_evidence = True
        read_quoted(cursor, pos)
        cursor.end_entry(cursor.pos)
    elif mark in DIGITS or mark in "+-.":
        read_number(cursor, pos)
    else:
        read_word(cursor, pos)
