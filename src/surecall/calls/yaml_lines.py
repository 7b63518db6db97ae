"""The part of YAML that calls are written in: `key: value`, lists of one level, and blocks."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from surecall.base.errors import JSONTextError
from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt
from surecall.schema import type_text_value
from surecall.text import decode

from .formats import text_receipt

_LINE: Final = lazy_pattern(
    r"(?P<margin>[ \t]*+)(?P<dash>-[ \t]++)?[\"']?+(?P<key>[^\s\"':#][^\"':\n]{0,128}+)[\"']?+"
    r"[ \t]*+:(?:[ \t]++(?P<text>[^\n]*+))?(?:\n|\Z)"
)
_MARK: Final = lazy_pattern(r"([|>])([+-]?)\d?[ \t]*+\Z")
_SPECIAL: Final = frozenset("[]{}\"'“”‘’:#&*!|>%@`")
_JSON_STARTS: Final = ("{", "[", '"')
_NO_VALUE: Final = "whether its value is missing or null cannot be known"


class UnreadableError(ValueError):
    """Not the part of YAML that is read."""


class Entry(NamedTuple):
    """A key of a mapping, the rest of its line, and the lines that belong to it."""

    key: str
    text: str
    below: list[str]
    margin: int
    dashed: bool
    line_end: int
    end: int


def read_entry(text: str, at: int, limit: int) -> Entry | None:
    """Return the entry whose line begins here."""
    line = _LINE.match(text, at, limit)
    if line is None:
        return None
    margin, value = len(line["margin"]), (line["text"] or "").strip()
    below: list[str] = []
    here = line.end()
    while here < limit:
        end = text.find("\n", here, limit)
        end = limit if end < 0 else end
        row = text[here:end]
        is_item = not value and not line["dash"] and _is_item(row) and _indent(row) == margin
        if row.strip() and _indent(row) <= margin and not is_item:
            break
        below.append(row)
        here = min(end + 1, limit)
    is_dashed = line["dash"] is not None
    return Entry(line["key"].strip(), value, below, margin, is_dashed, line.end(), here)


def read_mapping(text: str) -> Iterator[Entry]:
    """Yield all entries of a mapping, or raise `UnreadableError` where a line is none of it."""
    at, margin = 0, -1
    text = text.rstrip().lstrip("\n")
    while at < len(text):
        entry = read_entry(text, at, len(text))
        margin = entry.margin if entry is not None and margin < 0 else margin
        if entry is None or entry.dashed or entry.margin != margin:
            raise UnreadableError(text[at : at + 80])
        yield entry
        at = entry.end


def read_block(entry: Entry) -> str | None:
    """Return the text of a block under `key: |` or `key: >`, with the line breaks it has."""
    mark = _MARK.match(entry.text)
    if mark is None:
        return None
    indent = min((_indent(row) for row in entry.below if row.strip()), default=0)
    rows = [row[indent:] for row in entry.below]
    text = (" " if mark[1] == ">" else "\n").join(rows).rstrip("\n ")
    return text if mark[2] == "-" else text + "\n"


def read_value(entry: Entry, schema: dict[str, Any] | None, receipts: list[Receipt]) -> Any:
    """Return the value of an entry, or raise `UnreadableError`."""
    block = read_block(entry)
    if block is not None:
        return block
    below = [row for row in entry.below if row.strip()]
    if entry.text:
        if below:
            raise UnreadableError(below[0])
        return _scalar(entry.text, schema)
    if not below:
        if not _takes_null(schema or {}):
            note = text_receipt("key_without_value", entry.key, "", _NO_VALUE, lossless=False)
            receipts.append(note)
        return None
    if not all(map(_is_item, below)):
        if any(map(_is_item, below)) or (schema or {}).get("type") != "object":
            raise UnreadableError(below[0])
        entries = read_mapping("\n".join(entry.below))
        return {each.key: read_value(each, None, receipts) for each in entries}
    return [_scalar(row.strip()[1:].strip(), None) for row in below]


def _takes_null(schema: dict[str, Any]) -> bool:
    choices: list[Any] = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    for choice in choices:
        stated: Any = cast("dict[str, Any]", choice).get("type") if isinstance(choice, dict) else ""
        if stated == "null" or (isinstance(stated, list) and "null" in stated):
            return True
    return False


def _scalar(text: str, schema: dict[str, Any] | None) -> Any:
    if text.startswith(_JSON_STARTS):
        try:
            return decode(text)
        except JSONTextError:
            entries = text[1:-1].split(",")
            if text[0] == "[" and text[-1] == "]" and all(map(_is_plain, entries)):
                return [_scalar(entry.strip(), None) for entry in entries]
            raise UnreadableError(text) from None
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if not text or text[0] in "&*!>%@`'|}],":
        raise UnreadableError(text)
    return type_text_value(text, schema)


def _is_plain(text: str) -> bool:
    """Tell whether an entry of a list on one line needs no quotes and has none."""
    return bool(text.strip()) and _SPECIAL.isdisjoint(text)


def _is_item(line: str) -> bool:
    return line.lstrip().startswith("- ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
