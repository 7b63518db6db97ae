"""One value inside words: the option, boolean, date or token that a sentence names.

Each finder returns what the text says once, or all that it could say: nothing is taken where two
values are named alike. What stands out counts before what is only mentioned: the first word of
"Yes, because…", what is emphasized, what follows "the answer is".
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from surecall.base.patterns import lazy_pattern

MAX_WORDS_CHARS: Final = 20_000
"""Longer text is not searched for words."""
MAX_MENTIONS: Final = 200
"""How many values one text may name."""
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
_CUE: Final = lazy_pattern(
    r"(?:\b(?:answer|result|conclusion|verdict|decision|category|label|class|classification|choice"
    r"|output|value|total|therefore|thus|hence|final|choose|pick|select|go with|equals)\b"
    r"[\s\w]{0,16}?(?:\bis\b|\bbe\b|\bas\b)?\s?:?|=|\u2192|->|=>)[\s*_`\"'(:$\u20ac\u00a3]{0,8}$",
    re.IGNORECASE,
)
_CUE_AFTER: Final = lazy_pattern(
    r"[\s*_`\"')]{1,4}(?:is|was|would be|seems) (?:\w{1,12} ){0,2}"
    r"(?:answer|result|choice|total|one)\b"
    r"|[^.\d\n]{0,24}\b(?:in total|altogether|overall)\b",
    re.IGNORECASE,
)
_NEGATION: Final = lazy_pattern(
    r"(?:\b(?:not|never|neither|nor|without|than|instead of|rather than)|n['\u2019]t)"
    r"(?: (?:be|a|an|the|really|quite))?[\s*_`\"']{1,4}$",
    re.IGNORECASE,
)
_POLITE: Final = lazy_pattern(r" to (?:assist|help)\b")
_AFTER_FIRST: Final = lazy_pattern(r"[\s*_`\"']{0,4}(?:[:.,;!()\n\u2013\u2014]|- |$)")


def settle(mentions: Sequence[Mention], text: str, *, by_first: bool = True) -> Named | None:
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
    cued = [item for item in mentions if _CUE.search(_before(text, item.start))]
    yield cued
    yield [item for item in mentions if _CUE_AFTER.match(text, item.end)]
    yield cued[-1:] if cued and "final" in _before(text, cued[-1].start).lower() else []
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
    return settle(meant, text)


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

_BOOLEANS: Final = (
    (True, ("true", "yes", "yep", "yeah", "correct", "affirmative")),
    (
        False,
        (
            "false",
            "no",
            "nope",
            "incorrect",
            "negative",
            "absolutely not",
            "certainly not",
            "definitely not",
            "of course not",
        ),
    ),
)
_WHOLE_ANSWERS: Final = {
    **dict.fromkeys(("t", "y", "absolutely", "certainly", "definitely", "of course", "sure"), True),
    **dict.fromkeys(("f", "n", "not at all", "i don't think so", "i don’t think so"), False),
}
"""What means yes or no where nothing else is said."""
_FLIPPED: Final = frozenset({"true", "correct"})


def find_boolean(text: str) -> Named | None:
    """Return what a sentence says: `true`, `yes`, `not true` and the like."""
    if len(text) > MAX_WORDS_CHARS:
        return None
    whole = _WHOLE_ANSWERS.get(text.strip(" \t\r\n.!").lower())
    if whole is not None:
        return Named((whole,))
    mentions: list[Mention] = []
    for item in find_options(text, _BOOLEANS):
        word = text[item.start : item.end].lower()
        is_denied = _NEGATION.search(_before(text, item.start)) is not None
        if word == "no" and not _AFTER_FIRST.match(text, item.end):
            continue  # "no problem" and "there are no errors" do not answer the question
        flips = is_denied and word in _FLIPPED
        mentions.append(item._replace(value=not item.value) if flips else item)
    strict = [item for item in mentions if text[item.start : item.end].lower() in {"true", "false"}]
    found = settle(mentions, text)
    if found and len(found.values) > 1 and strict:
        return settle(strict, text)
    return found


# Tokens and dates

_TOKEN: Final = lazy_pattern(r"[^\s<>()\[\]{}|]++")
_EDGES: Final = "\"'`*_.,;:!?\u201c\u201d\u2018\u2019"
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_MONTH: Final = r"(?P<month>[A-Za-z]{3,9})\.?"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_ISO_DATE: Final = lazy_pattern(r"(?<![\d-])\d{4}-\d{2}-\d{2}(?![\d-])")
_NAMED_DATES: Final = (
    lazy_pattern(rf"\b{_MONTH} {_DAY},? (?P<year>\d{{4}})\b"),
    lazy_pattern(rf"\b{_DAY}(?: of)?[ -]{_MONTH},?[ -](?P<year>\d{{4}})\b"),
)


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
    return settle(mentions, text, by_first=False)


def find_date(text: str) -> Named | None:
    """Return the day that a text names, as `2026-03-31`; a month in numbers alone is not clear."""
    text = text[:MAX_WORDS_CHARS]
    mentions = [
        Mention(found.start(), found.end(), found.group()) for found in _ISO_DATE.finditer(text)
    ]
    for pattern in _NAMED_DATES:
        for found in pattern.finditer(text):
            word = found["month"].lower()
            month = [at for at, name in enumerate(_MONTHS, 1) if name.startswith(word[:3])]
            is_month = month and (_MONTHS[month[0] - 1].startswith(word) or word == "sept")
            if is_month and 1 <= int(found["day"]) <= 31:
                day = f"{found['year']}-{month[0]:02d}-{int(found['day']):02d}"
                mentions.append(Mention(found.start(), found.end(), day))
    return settle(mentions, text, by_first=False)
