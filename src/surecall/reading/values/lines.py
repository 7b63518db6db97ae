"""Objects and lists that were written as lines: `key: value`, bullets, Markdown tables, headings.

Only the outer shape is read here: the value of a key and the items of a list stay text, and the
schema says what becomes of each.
"""

import re
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Final, NamedTuple

from surecall.base.patterns import lazy_pattern

_MAX_LINES: Final = 2_000
_BULLET: Final = lazy_pattern(
    r"(?P<indent>[ \t]*+)(?:[-*+\u2022\u2013]|\(?\d{1,3}[.)])[ \t]++(?=\S)"
)
_KEY: Final = lazy_pattern(
    r"(?P<indent>[ \t]*+)(?:(?:[-*+\u2022]|\d{1,3}[.)])[ \t]++)?+(?P<key>[^:=\uff1a\n|]{1,80}?)"
    r"[ \t]*+(?:[:\uff1a]|=(?!=)|(?<=[ \t])[-\u2013\u2014](?=[ \t]))"
    r"(?P<close>\*\*|__|`)?[ \t]*+(?P<value>.*+)$"
)
_HEADING: Final = lazy_pattern(r"#{1,6}[ \t]++(?P<key>.++)$")
_BLOCK_MARKS: Final = frozenset({"|", "|-", ">", ">-"})
_KEY_EDGES: Final = " \t*_`\"'#>-\u2022"
_RULE: Final = lazy_pattern(r"[ \t]*+\|?[ \t:|-]{3,}+$")
_SIGNS: Final = ",;\n"
_SEPARATOR: Final = lazy_pattern(r"[,;\n]|\"[^\"\n]*+\"")
_CALL: Final = lazy_pattern(r"(?:\w{1,80} ?= ?)?+[\w.]{0,80}\(([^()]*+)\)$")
_TAG: Final = lazy_pattern(r"<([A-Za-z_][\w.:-]{0,79})>")
_COMMA: Final = lazy_pattern(r",(?!\d{3}(?!\d))|;|\n")
_AND: Final = lazy_pattern(r"(?:^|\s)(?:and|or|&)\s", re.IGNORECASE)
_LEAD: Final = lazy_pattern(r"^[^:\n]{0,200}:[ \t]*+(?=\S)")
_MAX_ITEM_WORDS: Final = 5

Knows = Callable[[str], bool]
"""Whether a text is a key that the schema has."""


class _Line(NamedTuple):
    key: str
    value: str
    indent: int


def read_pairs(text: str, knows: Knows) -> dict[str, str] | None:
    """Return what lines of keys and values say, each value as the text it was written as.

    What is before the first key is a preface. A line that begins with no known key goes on with
    the value before it.
    """
    text = text.strip("\n\r")
    if text.lstrip()[:1] == "{":
        text = text.strip().removeprefix("{").removesuffix("}")
    elif text.rstrip()[-2:] == "\n}":
        text = text.rstrip()[:-2]
    lines = text.expandtabs(4).split("\n")
    if len(lines) > _MAX_LINES:
        return None
    if _CALL.match(text.strip()):
        return _read_inline(text, knows)
    heads = {at: head for at, line in enumerate(lines) if (head := _read_key(line, knows))}
    if not heads:
        return _read_inline(text, knows)
    indent = min(head.indent for head in heads.values())
    found: dict[str, str] = {}
    key, value = "", list[str]()
    for at, line in enumerate(lines):
        head = heads.get(at)
        if head is None or head.indent > indent:
            value.append(line)
            continue
        if key:
            found[key] = _join(value)
        if head.key in found:
            return None  # a list of objects, or one key with two values
        key, value = head.key, [head.value] if head.value else []
    found[key] = _join(value)
    if len(found) == 1 and len(lines) == 1:
        found = _read_inline(text, knows) or found
    # A key that nothing is said about says nothing.
    return {key: item for key, item in found.items() if item}


def read_tags(text: str, knows: Knows) -> dict[str, str | list[str]] | None:
    """Return what elements with known names hold; one that is repeated is a list."""
    found: dict[str, list[str]] = {}
    at = 0
    for _ in range(_MAX_LINES):
        tag = _TAG.search(text, at)
        if tag is None:
            break
        at = tag.end()
        if not knows(tag[1]):
            continue
        end = text.find(f"</{tag[1]}>", at)
        if end < 0:
            return None
        found.setdefault(tag[1], []).append(text[at:end].strip())
        at = end
    if not found:
        return None
    return {key: item[0] if len(item) == 1 else item for key, item in found.items()}


def _join(lines: list[str]) -> str:
    block = "\n".join(lines)
    if len(lines) == 1:
        return unmark(block)
    first = lines[0] if lines else ""
    return unmark(
        dedent(block).strip("\n").rstrip()
        if not first.strip() or first[0] in " \t"
        else block.strip()
    )


def _read_key(line: str, knows: Knows) -> _Line | None:
    heading = _HEADING.match(line)
    if heading and knows(heading["key"].strip(_KEY_EDGES + ":")):
        return _Line(heading["key"].strip(_KEY_EDGES + ":"), "", 0)
    found = _KEY.match(line)
    if not found:
        return None
    key = found["key"].strip(_KEY_EDGES)
    if not key or not knows(key):
        return None
    value = found["value"].strip()
    return _Line(key, "" if value in _BLOCK_MARKS else value, len(found["indent"]))


def _read_inline(text: str, knows: Knows) -> dict[str, str] | None:
    """Return pairs that are on one line: `name: Bo, age: 3`."""
    call = _CALL.match(text.strip())
    found: dict[str, str] = {}
    for part in _split(call[1] if call else text):
        pair = _read_key(part, knows)
        if pair is None:
            if not found or not part.strip():
                continue
            last = next(reversed(found))
            found[last] += "," + part
        elif pair.key in found:
            return None
        else:
            found[pair.key] = pair.value
    return {key: unmark(value) for key, value in found.items()} or None


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a text between commas, semicolons and line breaks outside of quotes."""
    start = 0
    for found in _SEPARATOR.finditer(text):
        if found.group()[0] in _SIGNS:
            yield text[start : found.start()]
            start = found.end()
    yield text[start:]


def unmark(text: str) -> str:
    """Return text without the quotes or the emphasis around all of it, or a last comma."""
    text = text.strip()
    if text[-1:] == "," and text[:1] in "\"'":
        text = text[:-1]
    for mark in ("**", "__", "`", '"', "'"):
        inner = text[len(mark) : -len(mark)]
        is_marked = text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark)
        if is_marked and mark not in inner:
            return inner.strip()
    return text


# Lists


def read_items(text: str) -> list[str] | None:
    """Return the items of a list with bullets or numbers; an item keeps the lines below it."""
    lines = text.expandtabs(4).split("\n")
    if len(lines) > _MAX_LINES:
        return None
    starts = [(at, found) for at, line in enumerate(lines) if (found := _BULLET.match(line))]
    if not starts:
        return None
    indent = min(len(found["indent"]) for _, found in starts)
    items: list[list[str]] = []
    is_done = False
    for line in lines:
        found = _BULLET.match(line)
        if found and len(found["indent"]) == indent:
            is_done = False
            items.append([" " * found.end() + line[found.end() :]])
        elif items and not is_done:
            # Text after a blank line that is not indented is no part of the list.
            if line.strip() and not items[-1][-1].strip() and not line.startswith(" "):
                is_done = True
            else:
                items[-1].append(line)
    return [unmark(dedent("\n".join(item)).strip()) for item in items]


def read_lines(text: str) -> list[str]:
    """Return the lines of a text that say something."""
    return [unmark(line) for line in text.split("\n")[:_MAX_LINES] if line.strip()]


def read_listing(text: str, *, short: bool = True) -> list[str] | None:
    """Return items that are separated by commas; None for what may be a sentence."""
    lead = _LEAD.match(text)
    body = text[lead.end() :] if lead else text
    body = body.strip().removesuffix(".")
    if body[:1] + body[-1:] in ("[]", "()") and body.find(body[-1]) == len(body) - 1:
        body = body[1:-1]
    if len(body) > _MAX_LINES * 10:
        return None
    parts = [part.strip() for part in _COMMA.split(body)]
    if len(parts) == 1:
        parts = [part.strip() for part in _AND.split(body)] if len(body.split()) <= 5 else parts
    else:
        last = [part.strip() for part in _AND.split(parts[-1]) if part.strip()]
        parts = [*parts[:-1], *last]
    parts = [unmark(part) for part in parts if part]
    if len(parts) < 2 or (short and any(len(part.split()) > _MAX_ITEM_WORDS for part in parts)):
        return None
    return parts


# Tables


def read_table(text: str) -> list[dict[str, str]] | None:
    """Return the rows of the first Markdown table, by the names in its head."""
    lines = text.split("\n")[:_MAX_LINES]
    for at in range(1, len(lines)):
        if "-" in lines[at] and "|" in lines[at] and _RULE.match(lines[at]):
            names = _cells(lines[at - 1])
            rows = list(_rows(lines[at + 1 :], len(names)))
            if names and rows and len(set(names)) == len(names):
                return [dict(zip(names, row, strict=True)) for row in rows]
    return None


def _rows(lines: list[str], count: int) -> Iterator[list[str]]:
    for line in lines:
        cells = _cells(line)
        if "|" not in line or len(cells) != count:
            return
        yield cells


def _cells(line: str) -> list[str]:
    line = line.strip().removeprefix("|").removesuffix("|")
    return [unmark(cell) for cell in line.split("|")]
