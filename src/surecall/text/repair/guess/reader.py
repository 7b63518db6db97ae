"""Reads one value from text that may be damaged in any way, by the likeliest meaning of each part.

Unlike the reader of the certain tier it refuses nothing but what the limits forbid. The text is
walked once, without recursion; the value is built as it goes, and every change is noted.
"""

import re
from typing import Any, Final

from surecall.base.errors import JSONTextError
from surecall.text.codec import decode_noting
from surecall.text.repair import patterns
from surecall.text.repair.scalars import DIGITS

from .cursor import CLOSER_OF, Frame, LooseCursor
from .ends import COLON, KEY_AHEAD, WS
from .scalars import add_bare, make_scalar, read_bare, read_number, read_string, take_content

_CLOSERS: Final = frozenset("}])")
_GAP_ONLY: Final = re.compile(WS)
_DOTS: Final = re.compile(r"\.{3,}+|…")
_BARE_KEY: Final = re.compile(r"[^\s\"'`“”‘’:=,;{}\[\]]++(?:[ \t]++[^\s\"'`“”:=,;{}\[\]]++)*+")
_QUOTE_COLON: Final = re.compile(rf"[\"'”’`]{WS}(?::|=)")
_CALL: Final = re.compile(
    r"(?:new[ \t]++)?+[a-zA-Z_$][\w$.]*+\((?=\s*+(?:[\"'{\[(]|-?+[0-9]|true|false|null|[a-z]++=))"
)
_STRING_PREFIX: Final = re.compile(rf"[bBrRuU]{{1,2}}+(?=[\"'](?!{WS}[,:}}\]]))")
_ESCAPED_STRING: Final = re.compile(r"\\\"((?:[^\"\\\n]++|\\(?!\"))*+)\\?+\"")
_REGEX: Final = re.compile(rf"/(?:[^/\\\n]++|\\.)++/[a-z]*+(?={WS}[,}}\]])")


def read(cursor: LooseCursor, start: int, implied: str = "") -> int:
    """Read the value at a place and return where it ends.

    Args:
        cursor: Moves over the text; it was not used before.
        start: Where it begins.
        implied: The closing bracket of a container whose brackets are both missing.
    """
    cursor.pos = start
    if implied:
        cursor.frames.append(Frame(implied, start, is_implied=True))
        cursor.note(start, start, "{" if implied == "}" else "[", "add_outer_brackets")
    else:
        _read_value(cursor)
    while cursor.frames:
        cursor.steps.take(1, cursor.pos)
        if cursor.skip_gap():
            _read_entry(cursor)
        else:
            cursor.end_early()
    return cursor.pos


def _read_entry(cursor: LooseCursor) -> None:
    mark = cursor.text[cursor.pos]
    frame = cursor.frames[-1]
    if mark in _CLOSERS:
        cursor.close(mark)
    elif mark == "," or mark == ";":
        _read_comma(cursor, mark)
    elif _read_strictly(cursor, frame):
        return
    elif frame.members is not None and frame.key is None:
        _read_key(cursor, frame, mark)
    else:
        _read_value(cursor)


def _read_strictly(cursor: LooseCursor, frame: Frame) -> bool:
    """Pass over entries that are strict JSON, many at once."""
    is_object = frame.members is not None
    if frame.key is not None:
        return False
    match = (patterns.MEMBERS if is_object else patterns.ITEMS).match(cursor.text, cursor.pos)
    if match is None:
        return False
    body = f"{{{match[0]}}}" if is_object else f"[{match[0]}]"
    found: Any
    try:
        found, repeated = decode_noting(body)
    except JSONTextError:
        return False
    cursor.begin_entry(frame)
    for pointer in repeated:
        cursor.note_repeated(*match.span(), pointer)
    if frame.members is None:
        frame.items += found
    else:
        for key in frame.members.keys() & found.keys():
            cursor.note_repeated(*match.span(), key)
        frame.members |= found
    frame.after = cursor.has_evidence = True
    cursor.pos = match.end()
    return True


def _read_comma(cursor: LooseCursor, mark: str) -> None:
    frame = cursor.frames[-1]
    pos = cursor.pos
    cursor.pos = pos + 1
    if frame.key is not None:
        cursor.fill_value(frame, pos)
    if not frame.after:
        cursor.note(pos, pos + 1, "", "drop_extra_comma")
        return
    if mark == ";":
        cursor.note(pos, pos + 1, ",", "replace_comma")
    frame.after = False
    frame.has_comma = True
    frame.comma = pos


def _read_key(cursor: LooseCursor, frame: Frame, mark: str) -> None:
    text = cursor.text
    pos = cursor.pos
    if match := _DOTS.match(text, pos):
        _drop_dots(cursor, frame, match)
    elif mark == "{":
        _read_brace_for_key(cursor, frame)
    elif mark in "[(:=":
        cursor.pos = pos + 1
        cursor.note(pos, pos + 1, "", "drop_stray_text", lossless=False)
    else:
        cursor.begin_entry(frame)
        frame.key_start = pos
        prefix = _STRING_PREFIX.match(text, pos)
        if mark == "\\" and (match := _ESCAPED_STRING.match(text, pos)):
            cursor.pos = match.end()
            key = take_content(cursor, pos, match.start(1), match.end(1), "replace_quotes")
            _end_key(cursor, frame, key, is_quoted=True)
        elif mark in patterns.QUOTES or prefix:
            key = read_string(cursor, "key", prefix[0] if prefix else "")
            _end_key(cursor, frame, key, is_quoted=True)
        else:
            _read_bare_key(cursor, frame)


def _drop_dots(cursor: LooseCursor, frame: Frame, match: re.Match[str]) -> None:
    cursor.note(*match.span(), "", "drop_ellipsis", lossless=False)
    cursor.pos = match.end()
    comma = _GAP_ONLY.match(cursor.text, cursor.pos)
    if not frame.after and comma and cursor.text.startswith(",", comma.end()):
        cursor.pos = comma.end() + 1


def _read_brace_for_key(cursor: LooseCursor, frame: Frame) -> None:
    """Read a brace where a key should be: a doubled one, or one before it is missing."""
    parent = cursor.frames[-2] if len(cursor.frames) > 1 else None
    if frame.members and parent is not None and parent.members is None:
        cursor.note(cursor.pos, cursor.pos, "}", "fix_mismatched_closer", lossless=False)
        cursor.pop()
        return
    frame.extra += 1
    cursor.note(cursor.pos, cursor.pos + 1, "", "collapse_doubled_braces")
    cursor.pos += 1


def _read_bare_key(cursor: LooseCursor, frame: Frame) -> None:
    text = cursor.text
    pos = cursor.pos
    match = _BARE_KEY.match(text, pos)
    if match is None:
        cursor.note(pos, pos + 1, "", "drop_stray_text", lossless=False)
        cursor.pos = pos + 1
        return
    end = match.end()
    key = match[0]
    if _QUOTE_COLON.match(text, end):
        cursor.note(pos, end + 1, f'"{key}"', "add_missing_opening_quote")
        cursor.pos = end + 1
        _end_key(cursor, frame, key, is_quoted=True)
        return
    cursor.pos = end
    if COLON.match(text, end):
        cursor.note(pos, end, f'"{key}"', "quote_key")
    _end_key(cursor, frame, key, is_quoted=False)


def _end_key(cursor: LooseCursor, frame: Frame, key: str, *, is_quoted: bool) -> None:
    """Read what is between a key and its value."""
    text = cursor.text
    end = cursor.pos
    match = COLON.match(text, end)
    if match is None and cursor.skip_gap():
        match = COLON.match(text, cursor.pos)
    if match:
        if match[0].strip() != ":":
            cursor.note(*match.span(), ":", "replace_colon")
        frame.key = key
        cursor.has_evidence = True
        cursor.pos = match.end()
        return
    is_next = cursor.skip_gap() and text[cursor.pos] not in ",;}])"
    is_value = is_next and (is_quoted or text[cursor.pos] in "\"'{[" or text[cursor.pos] in DIGITS)
    if is_next and KEY_AHEAD.match(text, cursor.pos):
        is_value = False
    if is_value:
        cursor.note(end, cursor.pos, ":", "add_missing_colon")
        frame.key = key
        return
    if is_next and not is_quoted:
        cursor.note(frame.key_start, end, "", "drop_stray_text", lossless=False)
        return
    value: Any = key if is_quoted else make_scalar(cursor, key)
    frame.loose.append((frame.key_start, end, value))
    frame.after = True


def _read_value(cursor: LooseCursor) -> None:
    text = cursor.text
    pos = cursor.pos
    frame = cursor.frames[-1] if cursor.frames else None
    if frame is not None and frame.key is None:
        cursor.begin_entry(frame)
    mark = text[pos]
    if mark in CLOSER_OF:
        cursor.open(mark)
    elif mark == "\\" and (match := _ESCAPED_STRING.match(text, pos)):
        cursor.pos = match.end()
        cursor.add(take_content(cursor, pos, match.start(1), match.end(1), "replace_quotes"))
    elif mark in patterns.QUOTES:
        _add_string(cursor, "")
    elif prefix := _STRING_PREFIX.match(text, pos):
        _add_string(cursor, prefix[0])
    elif frame is not None and frame.members is None and (dots := _DOTS.match(text, pos)):
        _drop_dots(cursor, frame, dots)
    elif match := _CALL.match(text, pos):
        cursor.note(*match.span(), "(", "unwrap_call_value", lossless=False)
        cursor.pos = match.end() - 1
        cursor.open("(")
    elif mark == "/" and (match := _REGEX.match(text, pos)):
        cursor.pos = match.end()
        add_bare(cursor, match[0], pos, is_quote=False)
    elif (mark in DIGITS or mark in "+-.") and read_number(cursor, frame):
        return
    else:
        read_bare(cursor, frame)


def _add_string(cursor: LooseCursor, prefix: str) -> None:
    start = cursor.pos
    value = read_string(cursor, cursor.find_role(), prefix)
    frame = cursor.frames[-1] if cursor.frames else None
    if frame is not None and frame.closer == "]" and not cursor.plain:
        colon = COLON.match(cursor.text, cursor.pos)
        if colon and colon[1] == ":":
            _read_key_in_array(cursor, frame, start, value, colon.end())
            return
    cursor.add(value)


def _read_key_in_array(cursor: LooseCursor, frame: Frame, start: int, key: str, end: int) -> None:
    """Read a key where an item should be: a bracket is missing before it, or is another."""
    parent = cursor.frames[-2] if len(cursor.frames) > 1 else None
    if not frame.items and not frame.loose:
        frame.members = {}
        cursor.note(frame.start, frame.start + 1, "{", "fix_mismatched_closer", lossless=False)
    elif parent is not None and parent.members is not None and cursor.next_closer(end) != "]":
        cursor.note(start, start, "]", "fix_mismatched_closer", lossless=False)
        frame.after = True
        cursor.pop()
        frame = parent
    else:
        cursor.note(start, start, "{", "fix_mismatched_closer", lossless=False)
        frame = Frame("}", start, is_implied=True)
        cursor.frames.append(frame)
    frame.key, frame.key_start = key, start
    frame.after = False
    cursor.pos = end
