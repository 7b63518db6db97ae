"""Reads one damaged JSON value from text and notes what must change to make it strict JSON.

The text is walked once, without recursion. Whatever is strict JSON already is passed over by one
regular expression; only what is not is looked at piece by piece. The outcome is a list of edits:
the text with its edits applied is strict JSON, and each edit becomes a receipt.
"""

import re
from itertools import islice
from typing import Final

from . import syntax
from .cursor import Cursor, Frame
from .escapes import write_content
from .literals import (
    DIGITS,
    read_number,
    read_quoted,
    read_word,
)
from .repaired import MAX_RECEIPTS_PER_RULE, CutShortError

_CHARACTERS_PER_STEP: Final = 256
_PLAIN_STARTS: Final = frozenset("{[\"'")
_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}
_ELLIPSIS: Final = re.compile(r"(?:\.{3,}+|…)(\s*+,)?+")
_LIKELY_KEY: Final = re.compile(r"[^\s\"'`“”‘’:=,;{}\[\]]++(?:[ \t]++[^\s\"'`“”:=,;{}\[\]]++)*+")
_LIKELY_COLON: Final = re.compile(rf"{syntax.ANY_WS}(:=?+|=>|=(?!=)|->)(?:{syntax.ANY_WS}[:=])*+")
_QUOTE_COLON: Final = re.compile(rf"[\"'”’`]{syntax.ANY_WS}[:=]")
_ESCAPED_QUOTES: Final = re.compile(r"\\\"((?:[^\"\\\n]++|\\(?!\"))*+)\\?+\"")


def read(cursor: Cursor, start: int, implied: str = "") -> int:
    """Read the value that begins at `start` and return where it ends.

    Args:
        cursor: Moves over the text; it was not used before.
        start: Where the value begins.
        implied: The closing bracket of a container whose opening bracket is missing.
    """
    cursor.pos = start
    if implied:
        cursor.push(Frame(implied, start))
        cursor.stack[-1].is_implied = True
        cursor.note(start, start, "{" if implied == "}" else "[", "add_outer_brackets")
        cursor.is_committed = True
    else:
        _read_value(cursor)
    return _read_on(cursor)


def resume(cursor: Cursor, position: int, stack: list[str]) -> int:
    """Do the same from a place on before which all is strict JSON; see `find_resumption`."""
    cursor.stack = [Frame(closer, 0) for closer in stack]
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
        elif stack[-1].is_object:
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
    if mark == "," or mark == ";" or (mark == "，" and cursor.guesses):
        if mark != ",":
            cursor.note(pos, pos + 1, ",", "replace_comma")
        cursor.comma = pos
        cursor.is_after = False
        cursor.pos = pos + 1
        cursor.stack[-1].has_comma = True
    elif mark in "}])":
        cursor.close(mark)
    elif cursor.is_fenced and syntax.FENCE.match(text, pos):
        raise CutShortError("after_entry", pos, "before all brackets are closed")
    else:
        _add_comma(cursor, pos)


def _add_comma(cursor: Cursor, pos: int) -> None:
    text = cursor.text
    frame = cursor.stack[-1]
    if frame.is_object:
        is_next = syntax.KEY_AHEAD.match(text, pos) is not None
    else:
        is_next = syntax.VALUE_AHEAD.match(text, pos) is not None
        if is_next and text[pos] in "0123456789." and _may_be_one_number(cursor, pos):
            cursor.doubt("a blank between digits: one number, or two?", pos)
    is_apart = pos > cursor.done_at or text[pos] in "{["
    if not (is_next and is_apart):
        cursor.doubt("something else where ',' or a closing bracket should be", pos)
        if not frame.is_object and syntax.LIKELY_KEY.match(text, pos):
            _place_key(cursor, pos)
            return
        if not is_next and _drop_stray(cursor, frame, pos):
            return
    cursor.note(pos, pos, ",", "add_missing_comma")
    cursor.is_after = False
    frame.has_comma = True


def _drop_stray(cursor: Cursor, frame: Frame, pos: int) -> bool:
    """Leave out text where a comma should be, unless it is a key or an item."""
    text = cursor.text
    if not frame.is_object:
        return False
    if syntax.LIKELY_KEY.match(text, pos):
        return False
    word = _LIKELY_KEY.match(text, pos)
    end = word.end() if word else pos + 1
    if not word and text[pos] in syntax.QUOTES:
        string = syntax.STRICT_STRING.match(text, pos)
        end = string.end() if string else end
    cursor.pos = pos
    cursor.drop(end, "drop_stray_text")
    return True


def _may_be_one_number(cursor: Cursor, pos: int) -> bool:
    between = cursor.text[cursor.done_at : pos]
    return cursor.text[cursor.done_at - 1] in "0123456789." and "\n" not in between


def _begin_entry(cursor: Cursor) -> str:
    """Return the character that an entry begins with, or nothing if another thing was there."""
    pos = cursor.advance()
    text = cursor.text
    mark = text[pos]
    if mark in "}])":
        cursor.close(mark)
        return ""
    match = syntax.EXTRA_COMMAS.match(text, pos)
    if match:
        if cursor.comma < 0 and not cursor.is_in_object():
            cursor.doubt("a comma where the first item should be", pos)
        cursor.note(pos, match.end(), " ", "drop_extra_comma")
        cursor.pos = match.end()
        return ""
    match = _ELLIPSIS.match(text, pos)
    if match:
        cursor.doubt("an ellipsis is in the place of something that was left out", pos)
        cursor.drop(match.end(), "drop_ellipsis")
        return ""
    cursor.entry = pos
    cursor.stack[-1].size += 1
    return mark


# Entries


def _read_member(cursor: Cursor) -> None:
    text = cursor.text
    match = syntax.MEMBERS.match(text, cursor.pos)
    if match:
        cursor.is_committed = cursor.has_evidence = True
        cursor.stack[-1].size += 1
        if cursor.guesses:
            *_, last = syntax.LAST_MEMBER.finditer(text, match.start(), match.end())
            cursor.value_at = last.start(1)
        cursor.end_entry_and_comma(match.end())
        return
    match = syntax.LOOSE_MEMBER.match(text, cursor.pos)
    if match:
        cursor.stack[-1].size += 1
        _take_loose_member(cursor, match)
        return
    mark = _begin_entry(cursor)
    if not mark:
        return
    is_quoted = _read_key(cursor, cursor.pos, mark)
    if is_quoted is not None and _read_colon(cursor, is_quoted):
        cursor.is_committed = True
        cursor.value_at = cursor.pos
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
        cursor.pos = cursor.value_at = match.end()
        _read_value(cursor)


def _take_loose_value(cursor: Cursor, match: re.Match[str], kind: str) -> None:
    cursor.has_evidence = True
    if kind == "word":
        start, end = match.span(kind)
        cursor.edits.append((start, end, _LITERALS[match[kind]], "replace_literal", True))
    elif kind == "text":
        start, end = match.span(kind)
        cursor.edits.append((start - 1, end + 1, f'"{match[kind]}"', "replace_quotes", True))
    if cursor.stack[-1].closer == ")":
        cursor.end_entry(match.end())
    else:
        cursor.end_entry_and_comma(match.end())


def _read_item(cursor: Cursor) -> None:
    text = cursor.text
    match = syntax.ITEMS.match(text, cursor.pos)
    if match:
        cursor.has_evidence = True
        cursor.end_entry(match.end())
        return
    match = syntax.PLAIN_ITEMS.match(text, cursor.pos) if cursor.stack[-1].closer == "]" else None
    if match:
        _take_plain_items(cursor, match)
        return
    match = syntax.LOOSE_ITEM.match(text, cursor.pos)
    if match:
        _take_loose_value(cursor, match, match.lastgroup or "")
        return
    if not _begin_entry(cursor):
        return
    if cursor.guesses and syntax.ITEM_KEY.match(text, cursor.pos):
        _place_key(cursor, cursor.pos)
        return
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
    first = islice(syntax.PLAIN_ITEM.finditer(text, start, end), MAX_RECEIPTS_PER_RULE)
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


def _place_key(cursor: Cursor, pos: int) -> None:
    """Put the key at a place, where an item should be, into the object that it belongs to."""
    frame = cursor.stack[-1]
    parent = cursor.stack[-2] if len(cursor.stack) > 1 else None
    is_after = cursor.is_after
    if frame.size <= 1 and not is_after and cursor.comma < 0 and not frame.is_implied:
        cursor.note(frame.start, frame.start + 1, "{", "fix_mismatched_closer", lossless=False)
        frame.is_object = True
        frame.closer = "}"
        frame.size = 0
    elif _was_closed_early(cursor, pos):
        frame.size -= 1
        cursor.reopen()
    elif parent is not None and parent.is_object and cursor.next_closer(pos) != "]":
        end = pos if is_after else cursor.comma
        closer = "]," if is_after else "]"
        cursor.note(end, end, closer, "fix_mismatched_closer", lossless=False)
        cursor.stack.pop()
    else:
        comma = "," if is_after else ""
        cursor.note(pos, pos, f"{comma}{{", "fix_mismatched_closer", lossless=False)
        cursor.push(Frame("}", pos))
        cursor.stack[-1].is_implied = True
    cursor.is_after = False
    cursor.comma = -1
    cursor.pos = pos


def _was_closed_early(cursor: Cursor, pos: int) -> bool:
    """Tell whether the object before a key was closed, and is closed once more behind it."""
    is_object = cursor.comma >= 0 and cursor.text[cursor.done_at - 1] == "}"
    return is_object and cursor.count_ahead(pos) > len(cursor.stack)


# Keys


def _read_key(cursor: Cursor, pos: int, mark: str) -> bool | None:
    """Read a key and tell whether it has quotes; None if something else was there."""
    text = cursor.text
    if mark in syntax.QUOTES:
        read_quoted(cursor, pos, "key")
        return True
    match = syntax.BARE_KEY.match(text, pos)
    if match is None:
        cursor.doubt("something else where a key should be", pos)
        return _read_likely_key(cursor, pos, mark)
    end = match.end()
    ahead = syntax.BARE_KEY_AHEAD.match(text, end)
    if ahead is None:
        if syntax.BLANKS_TO_END.match(text, end):
            raise CutShortError("member", pos, "inside a key")
        cursor.doubt("a key without ':'", pos)
        return _read_likely_key(cursor, pos, mark)
    if text[end] in "\"'”’":
        cursor.note(pos, end + 1, f'"{match[0]}"', "add_missing_opening_quote")
        end += 1
    else:
        cursor.note(pos, end, f'"{match[0]}"', "quote_key")
    cursor.pos = end
    return False


def _read_likely_key(cursor: Cursor, pos: int, mark: str) -> bool | None:
    """Read whatever is in the place of a key."""
    text = cursor.text
    if mark == "{":
        _read_brace_for_key(cursor, pos)
        return None
    if mark == "\\" and (match := _ESCAPED_QUOTES.match(text, pos)):
        cursor.note(*match.span(), _write(cursor, match[1]), "replace_quotes")
        cursor.pos = match.end()
        return True
    match = _LIKELY_KEY.match(text, pos)
    if mark in "[(" or match is None:
        cursor.stack[-1].size -= 1
        cursor.drop(pos + 1, "drop_stray_text")
        return None
    cursor.pos = end = match.end()
    if quote := _QUOTE_COLON.match(text, end):
        cursor.note(pos, end + 1, _write(cursor, match[0]), "add_missing_opening_quote")
        cursor.pos = quote.end() - 1
        return True
    if _LIKELY_COLON.match(text, end):
        cursor.note(pos, end, _write(cursor, match[0]), "quote_key")
        return False
    return _read_lone_word(cursor, pos, match[0])


def _write(cursor: Cursor, text: str) -> str:
    return write_content(text, cursor.steps, is_raw=False, is_cut=True)[0]


def _read_lone_word(cursor: Cursor, pos: int, word: str) -> bool | None:
    """Take a word without a colon: a key if a value follows, else an item or stray text."""
    text = cursor.text
    after = cursor.skip_gap(cursor.pos)
    if after >= len(text):
        raise CutShortError("member", pos, "inside a key")
    mark = text[after]
    if syntax.LIKELY_KEY.match(text, after) or not (mark in ",;}])\"'{[" or mark in DIGITS):
        cursor.stack[-1].size -= 1
        cursor.note(pos, cursor.pos, " ", "drop_stray_text", lossless=False)
        return None
    if mark in "\"'{[" or mark in DIGITS:
        cursor.note(pos, pos + len(word), _write(cursor, word), "quote_key")
        return True
    cursor.note(
        pos, pos + len(word), f"{_write(cursor, word)}: null", "key_without_value", lossless=False
    )
    cursor.end_entry(pos + len(word))
    return None


def _read_brace_for_key(cursor: Cursor, pos: int) -> None:
    """Read a brace where a key should be: a doubled one, or one before it is missing."""
    frame = cursor.stack[-1]
    parent = cursor.stack[-2] if len(cursor.stack) > 1 else None
    frame.size -= 1
    if frame.size and parent is not None and not parent.is_object:
        at = cursor.comma if cursor.comma >= 0 else pos
        cursor.note(at, at, "}", "fix_mismatched_closer", lossless=False)
        cursor.stack.pop()
        cursor.comma = -1
        cursor.pos = pos
    else:
        cursor.drop_brace(frame, pos)


def _read_colon(cursor: Cursor, is_quoted: bool) -> bool:
    """Read what is between a key and its value; tell whether a value is to follow."""
    text = cursor.text
    key_end = cursor.pos
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
    elif cursor.guesses and (mark == "：" or text.startswith("->", pos)):
        end = pos + 1 if mark == "：" else pos + 2
        cursor.note(pos, end, ":", "replace_colon")
    elif is_quoted and not (mark in ",;}])" or cursor.guesses):
        end = pos
        cursor.note(pos, pos, ":", "add_missing_colon")
    else:
        cursor.doubt("a key without ':'", pos)
        return _read_lone_string(cursor, key_end, pos)
    match = syntax.EXTRA_COLON.match(text, end)
    while match:
        end = match.end()
        cursor.note(end - 1, end, " ", "drop_extra_colon")
        match = syntax.EXTRA_COLON.match(text, end) if cursor.guesses else None
    cursor.pos = end
    return True


def _read_lone_string(cursor: Cursor, key_end: int, pos: int) -> bool:
    """Take a string without a colon: a key if a value follows, else one more item."""
    text = cursor.text
    frame = cursor.stack[-1]
    if text[pos] not in ",;}])" and not syntax.LIKELY_KEY.match(text, pos):
        cursor.note(pos, pos, ":", "add_missing_colon")
        cursor.pos = pos
        return True
    if cursor.comma >= 0 and text[cursor.done_at - 1] == "]" and text[pos] in ",]":
        frame.size -= 1
        cursor.reopen()
    elif (
        cursor.value_at
        and text[cursor.done_at - 1] == text[key_end - 1] == '"'
        and text[pos] == ","
    ):
        # `"a": "x", "y", "b": 1`: the value has two items.
        frame.size -= 1
        at = cursor.skip_gap(cursor.value_at)
        cursor.note(at, at, "[", "fix_mismatched_closer", lossless=False)
        while text[pos] == "," and (match := _LONE_ITEM.match(text, pos)):
            key_end = pos = match.end(1)
            pos = match.end()
        cursor.note(key_end, key_end, "]", "fix_mismatched_closer", lossless=False)
        cursor.value_at = 0
    else:
        cursor.note(key_end, key_end, ": null", "key_without_value", lossless=False)
    cursor.end_entry(key_end)
    return False


_LONE_ITEM: Final = re.compile(
    rf"\s*+,\s*+({syntax.STRICT_STRING.pattern}|-?[0-9][0-9.]*+)(?=\s*+[,}}])\s*+"
)


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
        if cursor.stack and not cursor.stack[-1].is_object:
            cursor.has_evidence = True
        cursor.open(mark, pos)
    elif mark in syntax.QUOTES:
        cursor.has_evidence = True
        read_quoted(cursor, pos)
        cursor.end_entry(cursor.pos)
    elif mark in DIGITS or mark in "+-.":
        read_number(cursor, pos)
    elif cursor.guesses and _read_likely_value(cursor, pos, mark):
        return
    else:
        read_word(cursor, pos)


def _read_likely_value(cursor: Cursor, pos: int, mark: str) -> bool:
    """Read a value in the notation of a program, or the place of one that is missing."""
    text = cursor.text
    if mark in ",;}]" and cursor.is_in_object():
        cursor.note(pos, pos, "null", "fill_missing_value", lossless=False)
        cursor.end_entry(pos)
    elif mark == "\\" and (match := _ESCAPED_QUOTES.match(text, pos)):
        cursor.note(*match.span(), _write(cursor, match[1]), "replace_quotes")
        cursor.end_entry(match.end())
    else:
        return False
    return True
