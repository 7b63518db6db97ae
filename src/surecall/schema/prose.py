"""Values inside words: what a sentence names, and objects and lists that are written as lines.

Each finder returns what the text says once, or all that it could say: nothing is taken where two
values are named alike. What stands out counts before what is only mentioned: the first word of
"Yes, because…", what is emphasized, what follows "the answer is".
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import dedent
from typing import Any, Final, NamedTuple, TypeAlias

from surecall.base.patterns import lazy_pattern

MAX_WORDS_CHARS: Final = 20_000
"""Longer text is not searched for words."""
MAX_MENTIONS: Final = 200
"""How many values one text may name."""
MAX_LABEL_CHARS: Final = 200
"""How long a title or description may be that a value is looked up by."""
_LOOK_BACK: Final = 48


class Mention(NamedTuple):
    """A value that is named in a text."""

    start: int
    end: int
    value: Any


class Named(NamedTuple):
    """What a text names: one value, or several of which none stands out."""

    values: tuple[Any, ...]
    stood_out: bool = False
    """Whether others are named, too, and this one stands out."""


# What stands out

_EMPHASIS: Final = lazy_pattern(
    r"\*\*[^*\n]{1,200}+\*\*|__[^_\n]{1,200}+__|`[^`\n]{1,200}+`|\\boxed\{[^{}\n]{1,200}+\}"
    r"|==[^=\n]{1,200}+=="
)
_CUE: Final = lazy_pattern(r"(?:(?<!\d)[:=\u2192]|->)[\s*_`\"'(:$\u20ac\u00a3]{0,8}$")
_NEGATION: Final = lazy_pattern(
    r"(?:\b(?:not|never|neither|nor|without|than|instead of|rather than)|n['\u2019]t)"
    r"(?: (?:be|a|an|the|really|quite))?[\s*_`\"']{1,4}$",
    re.IGNORECASE,
)
_POLITE: Final = lazy_pattern(r" to (?:assist|help)\b")
_AFTER_FIRST: Final = lazy_pattern(r"[\s*_`\"']{0,4}(?:[:.,;!()\n\u2013\u2014]|- |$)")


def pick_mention(mentions: Sequence[Mention], text: str, *, by_first: bool = True) -> Named | None:
    """Return the one value that is named or stands out, or every value that may be meant."""
    mentions = mentions[:MAX_MENTIONS]
    if not mentions:
        return None
    values = _distinct(mentions)
    if len(values) == 1:
        return Named(values)
    for chosen in _list_standing_out(mentions, text, by_first=by_first):
        found = _distinct(chosen)
        if len(found) == 1:
            return Named(found, stood_out=True)
    return Named(values)


def _list_standing_out(
    mentions: Sequence[Mention], text: str, *, by_first: bool
) -> Iterable[list[Mention]]:
    if by_first:
        first = mentions[0]
        is_first = not text[: first.start].strip(" \t\r\n*_`\"'#>-")
        other = next(item for item in mentions if item.value != first.value)
        between = text[first.end : other.start]
        is_apart = len(between.split()) > 1 or between.lstrip().startswith("(")
        is_first = is_first and is_apart and _AFTER_FIRST.match(text, first.end) is not None
        yield [first] if is_first else []
    spans = [found.span() for found in _EMPHASIS.finditer(text)]
    yield [item for item in mentions if any(a <= item.start < b for a, b in spans)]
    yield [item for item in mentions if _CUE.search(_before(text, item.start))]
    if text.strip():
        last = text.rstrip().rfind("\n") + 1
        alone = [item for item in mentions if item.start >= last]
        yield alone if last and len(text[last:].split()) <= 3 else []


def _before(text: str, at: int) -> str:
    return text[max(0, at - _LOOK_BACK) : at]


def _distinct(mentions: Iterable[Mention]) -> tuple[Any, ...]:
    found: list[Any] = []
    for item in mentions:
        if not any(item.value == other and type(item.value) is type(other) for other in found):
            found.append(item.value)
    return tuple(found)


# Options

_WORD: Final = lazy_pattern(r"[^\W_]++")
_SIGNS: Final = "".join(chr(code) for code in range(33, 127) if not chr(code).isalnum())
_MARKS: Final = frozenset(" \t\r\n.,;:!?\"'`*_()[]{}/\\-\u2019\u2018\u201c\u201d")
_DIGITS: Final = lazy_pattern(r"\d++")
_BREAKS: Final = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")


def fold(text: str) -> str:
    """Return text without case, accents and punctuation, its words joined by single blanks."""
    return " ".join(word for word, _, _ in _list_words(text))


def squash(text: str) -> str:
    """Return the letters and digits of a text, without case and accents."""
    return fold(text).replace(" ", "")


def _list_words(text: str) -> list[tuple[str, int, int]]:
    """Return the words of a text, plain, each with its place; `dueDays` is two words."""
    words: list[tuple[str, int, int]] = []
    for found in _WORD.finditer(text):
        start = found.start()
        for part in _BREAKS.split(found.group()):
            plain = unicodedata.normalize("NFKD", part)
            plain = "".join(sign for sign in plain if not unicodedata.combining(sign))
            words.append((plain.casefold(), start, start + len(part)))
            start += len(part)
    return words


class Option(NamedTuple):
    """A value that is allowed, and the words that say it."""

    value: Any
    spellings: tuple[str, ...]
    labels: tuple[str, ...] = ()
    """What its title and description say: taken only where nothing is said by name."""


def find_option(text: str, options: Sequence[Option]) -> Named | None:
    """Return the option that a text names."""
    if len(text) > MAX_WORDS_CHARS:
        return None
    mentions = find_options(text, [(item.value, item.spellings) for item in options])
    if not mentions:
        mentions = find_options(text, [(item.value, item.labels) for item in options])
    meant = [
        item
        for item in mentions
        if not _NEGATION.search(_before(text, item.start)) and not _POLITE.match(text, item.end)
    ]
    return pick_mention(meant, text)


def find_alike(text: str, options: Sequence[Option]) -> Named | None:
    """Return the option that is all of a text, but for case, accents and punctuation."""
    form = _plain_form(text)
    if form is None:
        return None
    named = [item.value for item in options if form in map(_plain_form, item.spellings)]
    named = named or [item.value for item in options if form in map(_plain_form, item.labels)]
    return Named(tuple(named)) if named else None


def _plain_form(text: str) -> tuple[str, ...] | None:
    """Return what spellings of an option share: its words, digits and signs that are no marks."""
    words = squash(text) if len(text) <= MAX_LABEL_CHARS else ""
    if not any(map(str.isalpha, words)):
        return None
    signs = "".join(sign for sign in text if not sign.isalnum() and sign not in _MARKS)
    return (words, " ".join(_DIGITS.findall(text)), signs)


def find_options(text: str, options: Iterable[tuple[Any, Iterable[str]]]) -> list[Mention]:
    """Return where options are named in a text, in order; a longer name hides one inside it.

    Options that differ in signs alone, such as `C` and `C++`, count where they are to the letter.
    """
    text = text[:MAX_WORDS_CHARS]
    words = _list_words(text)
    starts = _index_options(options, {word for word, _, _ in words})
    mentions: list[Mention] = []
    at = 0
    while at < len(words) and len(mentions) < MAX_MENTIONS:
        known = starts.get(words[at][0], ())
        same = [item for item in known if item[0] == _take_words(words, at, len(item[0]))]
        longest = [item for item in same if len(item[0]) == len(same[0][0])]
        start, end = words[at][1], words[at + len(same[0][0]) - 1][2] if same else 0
        if len({repr(value) for _, value, _ in longest}) > 1 or (same and end - start == 1):
            longest = [item for item in longest if _is_written(text, start, item[2])]
            longest.sort(key=lambda item: -len(item[2]))
        if longest:
            mentions.append(Mention(start, end, longest[0][1]))
            at += len(longest[0][0]) - 1
        at += 1
    return mentions


_Known: TypeAlias = tuple[tuple[str, ...], Any, str]


def _index_options(
    options: Iterable[tuple[Any, Iterable[str]]], joined: set[str]
) -> dict[str, list[_Known]]:
    """Return options by their first word, the longest first."""
    starts: dict[str, list[_Known]] = {}
    for value, spellings in options:
        for spelling in spellings:
            parts = tuple(word for word, _, _ in _list_words(spelling))
            if parts:
                starts.setdefault(parts[0], []).append((parts, value, spelling))
                whole = "".join(parts)
                if len(parts) > 1 and whole in joined:
                    starts.setdefault(whole, []).append(((whole,), value, spelling))
    for known in starts.values():
        known.sort(key=lambda item: -len(item[0]))
    return starts


def _take_words(words: list[tuple[str, int, int]], at: int, count: int) -> tuple[str, ...]:
    return tuple(word for word, _, _ in words[at : at + count])


def _is_written(text: str, at: int, spelling: str) -> bool:
    """Tell whether an option is in a text to the letter; `at` is where its first word begins."""
    lead = len(spelling) - len(spelling.lstrip(_SIGNS))
    return text.startswith(spelling, max(0, at - lead))


# Booleans

_BOOLEANS: Final = ((True, ("true", "yes", "correct")), (False, ("false", "no", "incorrect")))
_LETTERS: Final = {"t": True, "y": True, "f": False, "n": False}
_FLIPPED: Final = frozenset({"true", "correct"})


def find_boolean(text: str) -> Named | None:
    """Return what a sentence says: `true`, `yes`, `not true` and the like."""
    if len(text) > MAX_WORDS_CHARS:
        return None
    letter = _LETTERS.get(text.strip(" \t\r\n.!").lower())
    if letter is not None:
        return Named((letter,))
    mentions: list[Mention] = []
    for item in find_options(text, _BOOLEANS):
        word = text[item.start : item.end].lower()
        is_denied = _NEGATION.search(_before(text, item.start)) is not None
        if word == "no" and not _AFTER_FIRST.match(text, item.end):
            continue  # "no problem" and "there are no errors" do not answer the question
        flips = is_denied and word in _FLIPPED
        mentions.append(item._replace(value=not item.value) if flips else item)
    strict = [item for item in mentions if text[item.start : item.end].lower() in {"true", "false"}]
    found = pick_mention(mentions, text)
    if found and len(found.values) > 1 and strict:
        return pick_mention(strict, text)
    return found


# Tokens

_TOKEN: Final = lazy_pattern(r"[^\s<>()\[\]{}|]++")
_EDGES: Final = "\"'`*_.,;:!?\u201c\u201d\u2018\u2019"
_ISO_DATE: Final = lazy_pattern(r"(?<![\d-])\d{4}-\d{2}-\d{2}(?![\d-])")


def find_date(text: str) -> Named | None:
    """Return the day that a text names as `2026-03-31`, also in front of a time."""
    found = _ISO_DATE.finditer(text[:MAX_WORDS_CHARS])
    mentions = [Mention(item.start(), item.end(), item.group()) for item in found]
    return pick_mention(mentions, text, by_first=False)


def find_token(text: str, fits: Callable[[str], bool]) -> Named | None:
    """Return the one token of a text that fits: an address, a code, a date."""
    if len(text) > MAX_WORDS_CHARS:
        return None
    mentions: list[Mention] = []
    for found in _TOKEN.finditer(text):
        token = found.group().strip(_EDGES)
        if token and fits(token):
            mentions.append(Mention(found.start(), found.end(), token))
            if len(mentions) == MAX_MENTIONS:
                break
    return pick_mention(mentions, text, by_first=False)


# Lines: `key: value`, bullets, Markdown tables, headings. Only the outer shape is read: the value
# of a key and the items of a list stay text, and the schema says what becomes of each.

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
_BREAK_SIGNS: Final = ",;\n"
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
    is_braced = text.lstrip()[:1] == "{"
    if is_braced:
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
    if is_braced:
        found = {key: item.rstrip().removesuffix(",") for key, item in found.items()}
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
        if found.group()[0] in _BREAK_SIGNS:
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


def read_listing(text: str) -> list[str] | None:
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
    if len(parts) < 2 or any(len(part.split()) > _MAX_ITEM_WORDS for part in parts):
        return None
    return parts


# Tables


def read_table(text: str) -> list[dict[str, str]] | None:
    """Return the rows of the first Markdown table, by the names in its head."""
    lines = text.split("\n")[:_MAX_LINES]
    for at in range(1, len(lines)):
        if "-" in lines[at] and "|" in lines[at] and _RULE.match(lines[at]):
            names = _split_row(lines[at - 1])
            rows = list(_rows(lines[at + 1 :], len(names)))
            if names and rows and len(set(names)) == len(names):
                return [dict(zip(names, row, strict=True)) for row in rows]
    return None


def _rows(lines: list[str], count: int) -> Iterator[list[str]]:
    for line in lines:
        cells = _split_row(line)
        if "|" not in line or len(cells) != count:
            return
        yield cells


def _split_row(line: str) -> list[str]:
    line = line.strip().removeprefix("|").removesuffix("|")
    return [unmark(cell) for cell in line.split("|")]
