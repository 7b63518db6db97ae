"""JSON documents and the slips that writers make in them, for tests and measurements of repair.

Every case is a document, its text and what became of the text. A case whose broken text is valid
JSON again is left out: nobody can tell that it was ever another.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from surecall.base.errors import JSONTextError
from surecall.text import decode

_WORDS: Final = (
    "city", "Oslo, Norway", "x", "a: b", "42", "", "long text with words", "it's", 'say "hi" now',
    "C:\\dir", "line\nbreak", "http://example.org/a?b=1#top", "# not a comment", "[1, 2]", "true",
    "{x}", "naïve 日本", "a,b", "5 // five", "-", "no", "50 %", "(round)", "2024-05-01", "x = 1",
)  # fmt: skip
_KEYS: Final = ("a", "b", "days", "name", "user id", "x-y", "items", "é", "1", "class", "$ref")
_SYNTAX: Final = '"{}[]:,'
_SMART: Final = (("“", "”"), ("„", "“"), ("‘", "’"), ("«", "»"))
_PYTHON: Final = {"true": "True", "false": "False", "null": "None"}
_SCRIPT: Final = {"true": "TRUE", "false": "False", "null": "undefined"}


class BrokenJSON(NamedTuple):
    """One document and the text that was meant to be it."""

    kind: str
    values: tuple[Any, ...]
    """The documents of the text in their order: more than one for joined texts."""
    text: str


def make_document(chance: random.Random, depth: int = 0) -> Any:
    """Return an object or a list, as arguments of calls and small records are."""
    size = chance.randrange(1, 4)
    if depth == 0 or chance.random() < 0.6:
        keys = chance.sample(_KEYS, size)
        return {key: _make_value(chance, depth) for key in keys}
    return [_make_value(chance, depth) for _ in range(size)]


def _make_value(chance: random.Random, depth: int) -> Any:
    if depth < 3 and chance.random() < 0.3:
        if chance.random() < 0.9:
            return make_document(chance, depth + 1)
        empty: tuple[Any, ...] = ([], {})
        return chance.choice(empty)
    if chance.random() < 0.6:
        return chance.choice(_WORDS)
    return chance.choice([0, 1, -7, 42, 3.5, 1e21, True, False, None])


def write_document(chance: random.Random, value: Any) -> str:
    """Return the text of a document in one of the usual layouts."""
    layout = chance.randrange(3)
    if layout == 0:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return json.dumps(value, indent=2 if layout == 1 else None, ensure_ascii=False)


def break_documents(seed: int, count: int) -> Iterator[BrokenJSON]:
    """Yield broken documents, the same for the same seed."""
    chance = random.Random(seed)
    kinds = list(_SLIPS)
    made = 0
    while made < count:
        value = make_document(chance)
        kind = chance.choice(kinds)
        text = write_document(chance, value)
        values: tuple[Any, ...] = (value,)
        if kind == "join":
            other = make_document(chance)
            values = (value, other)
            glue = chance.choice(["", "\n", ", ", " ", "; ", " and "])
            broken = text + glue + write_document(chance, other)
        else:
            broken = _SLIPS[kind](chance, text)
        if broken is None or _is_valid(broken):
            continue
        made += 1
        yield BrokenJSON(kind, values, broken)


def _is_valid(text: str) -> bool:
    try:
        decode(text)
    except JSONTextError:
        return False
    return True


def _find_marks(text: str) -> list[int]:
    """Return where syntax characters are outside strings, with the quotes of strings."""
    marks: list[int] = []
    is_inside = is_escaped = False
    for at, char in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif is_inside and char == "\\":
            is_escaped = True
        elif char == '"':
            is_inside = not is_inside
            marks.append(at)
        elif not is_inside and char in _SYNTAX:
            marks.append(at)
    return marks


def _slip(change: Callable[[random.Random, str, int], str]) -> Callable[[random.Random, str], str]:
    """Return a slip that happens to one to three syntax characters of a text."""

    def make(chance: random.Random, text: str) -> str:
        marks = _find_marks(text)
        chosen = chance.sample(marks, min(len(marks), chance.choice([1, 1, 2, 3])))
        for at in sorted(chosen, reverse=True):
            text = change(chance, text, at)
        return text

    return make


def _swap(chance: random.Random, text: str, at: int) -> str:
    return text[:at] + text[at + 1 : at + 2] + text[at] + text[at + 2 :]


def _replace(chance: random.Random, text: str, at: int) -> str:
    return text[:at] + chance.choice(_SYNTAX + ";=()'`") + text[at + 1 :]


def _insert_comment(chance: random.Random, text: str) -> str:
    gaps = [at for at in _find_marks(text) if text[at] in "{[,:"]
    at = chance.choice(gaps) + 1
    note = chance.choice(["// a, b: c", '/* see "x" */', "# it's {here}", "// TODO ]"])
    end = "" if note.startswith("/*") else "\n"
    return f"{text[:at]} {note}{end}{text[at:]}"


def _replace_quotes(chance: random.Random, text: str) -> str:
    quotes = [at for at in _find_marks(text) if text[at] == '"']
    start, end = chance.choice(_SMART)
    share = chance.choice([1.0, 1.0, 0.3])
    for index in range(len(quotes) - 2, -1, -2):
        if chance.random() < share:
            first, last = quotes[index], quotes[index + 1]
            text = text[:first] + start + text[first + 1 : last] + end + text[last + 1 :]
    return text


def _write_python(chance: random.Random, text: str) -> str:
    return repr(json.loads(text))


def _write_words(chance: random.Random, text: str) -> str | None:
    names = chance.choice([_PYTHON, _SCRIPT])
    pieces = text.split('"')
    if "\\" in text or not any(name in piece for name in names for piece in pieces[::2]):
        return None
    for index in range(0, len(pieces), 2):
        for name, other in names.items():
            pieces[index] = pieces[index].replace(name, other)
    return '"'.join(pieces)


def _surround(chance: random.Random, text: str) -> str:
    before = chance.choice(
        ["", "Here it is: ", "Sure!\n", "```json\n", "result = ", "The list [a] is "]
    )
    after = chance.choice(["", "\n```", " Done.", "\nLet me know.", ";", " (see {x})"])
    return before + text + after


_drop: Final = _slip(lambda chance, text, at: text[:at] + text[at + 1 :])
_SLIPS: Final[dict[str, Callable[[random.Random, str], str | None]]] = {
    "drop": _drop,
    "double": _slip(lambda chance, text, at: text[:at] + text[at] + text[at:]),
    "swap": _slip(_swap),
    "replace": _slip(_replace),
    "cut": lambda chance, text: text[: chance.randrange(1, len(text))],
    "cut at the front": lambda chance, text: text[chance.randrange(1, len(text)) :],
    "join": lambda chance, text: None,
    "comment": _insert_comment,
    "smart quotes": _replace_quotes,
    "python": _write_python,
    "other words": _write_words,
    "surrounded": _surround,
    "surrounded and dropped": lambda chance, text: _surround(chance, _drop(chance, text)),
}


def is_nearer(case: BrokenJSON, value: Any) -> bool:
    """Tell whether fewer slips lead from another value to the text than from the one it was."""
    mine, other = (
        _count_changes(case.text, json.dumps(one, ensure_ascii=False))
        for one in (case.values[0], value)
    )
    return other < mine


def _count_changes(one: str, other: str) -> int:
    """Return how many characters differ, in number or kind; blanks count for nothing."""
    first, second = ("".join(text.split()) for text in (one, other))
    row = list(range(len(second) + 1))
    for index, char in enumerate(first, 1):
        before, row[0] = row[0], index
        for place, mark in enumerate(second, 1):
            change = before + (char != mark)
            before = row[place]
            row[place] = min(change, row[place] + 1, row[place - 1] + 1)
    return row[-1]
