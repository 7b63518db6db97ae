"""Damage to the JSON text of arguments, as a stream, a proxy or a slip of the model does it."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ["damage", "draw_arguments", "split", "write"]

_GRAMMAR: Final = '{}[],:"'
_OTHER_MARKS: Final = "{}[],:\"'; ="
_KEYS: Final = (
    "amount", "body", "code", "count", "dry_run", "files", "keep", "label", "mode", "note",
    "options", "path", "query", "rate", "recipients", "ref", "rows", "tags", "to", "when",
)  # fmt: skip
"""None is a field that a wire format has next to the arguments: nobody could tell it from these."""
_TEXTS: Final = (
    "", " ", "hello", "a, b", "it's here", 'say "hi" now', "x: 1, y: 2", "[1, 2]", "}", "{", '"]}',
    "C:\\temp\\new", "line\nbreak", "\ttab", "请把 foo 设为 bar", "价格：1,264", "日本語", "é😀",
    "true", "null", "12", "-0.5", "601264", "2026-11-18", "10:30", "https://example.com/a?b=c&d=[1]",
    "def f(x):\n    return {'a': x, \"b\": [x]}\n", 'print("a", end="")', "if (a == '}') { b(); }",
    '{"a": 1, "b": [2]}', "SELECT * FROM t WHERE a = 'b', c", "<b>x</b> // no comment", "# heading",
    'a\\"b', "C'est ça", "`code`", "“quoted”", "/* x */", "1,000", "a" * 70,
)  # fmt: skip


def draw_arguments(chance: random.Random) -> dict[str, Any]:
    """Draw the arguments of a call: one to six members of every kind."""
    names = chance.sample(_KEYS, chance.randint(1, 6))
    return {name: _draw_value(chance, 2) for name in names}


def _draw_value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(12 if depth else 8)
    if kind < 3:
        return _draw_number(chance)
    if kind < 7:
        return chance.choice(_TEXTS)
    if kind < 8:
        return chance.choice([True, False, None])
    items = [_draw_value(chance, depth - 1) for _ in range(chance.randrange(5))]
    if kind == 8:
        return items
    if kind == 9:
        return [_draw_number(chance) for _ in range(chance.randint(1, 6))]
    return dict(zip(chance.sample(_KEYS, len(items)), items, strict=True))


def _draw_number(chance: random.Random) -> int | float:
    return chance.choice(
        [
            chance.randrange(10),
            chance.randrange(-1000, 1000),
            chance.randrange(10**6),
            chance.randrange(10**18),
            round(chance.uniform(-1000, 1000), 2),
            chance.random(),
            1e21,
            -2.5e-7,
            12345678901234567890123,
        ]
    )


def split(chance: random.Random, text: str) -> list[str]:
    """Split text into the pieces in which a provider streams it."""
    longest = chance.choice((3, 5, 9, 20))
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = start + chance.randint(1, longest)
        pieces.append(text[start:end])
        start = end
    return pieces


def damage(chance: random.Random, text: str) -> Iterator[tuple[str, str]]:
    """Yield the text damaged once in every way: the kind of the damage, and what is left."""
    for kind, change in _PIECES.items():
        pieces = split(chance, text)
        change(chance, pieces)
        yield kind, "".join(pieces)
    places = _find_grammar(text)
    for kind, replace in _MARKS.items():
        at = chance.choice(places)
        yield kind, replace(chance, text, at)
    closers = [at for at in places if text[at] in "}]"]
    commas = [at for at in places if text[at] == ","]
    at = chance.choice(closers)
    yield "late bracket", _move(text, at, chance.choice([len(text), *places[places.index(at) :]]))
    if commas:
        at = chance.choice(commas)
        yield "early bracket", text[:at] + chance.choice("}]") + text[at:]
        yield "members moved out", text[:at] + "}" + text[at:-1]
        yield "members behind", text[:at] + "} " + text[at + 1 : -1].lstrip()
        end = chance.choice([one for one in [*commas, len(text) - 1] if one > at] or [len(text)])
        yield "member lost", text[:at] + text[end:]
        yield "member lost with both commas", text[: at + 1] + text[end:]
        yield "separator and more lost", text[:at] + text[min(end, at + chance.randint(1, 12)) :]
    at = chance.randrange(len(text))
    yield "character lost", text[:at] + text[at + 1 :]
    at = chance.randrange(1, len(text))
    yield "characters swapped", text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :]


def _drop(chance: random.Random, pieces: list[str]) -> None:
    del pieces[chance.randrange(len(pieces))]


def _cut_head(chance: random.Random, pieces: list[str]) -> None:
    at = chance.randrange(len(pieces))
    pieces[at] = pieces[at][chance.randint(1, len(pieces[at])) :]


def _cut_tail(chance: random.Random, pieces: list[str]) -> None:
    at = chance.randrange(len(pieces))
    pieces[at] = pieces[at][: chance.randrange(len(pieces[at]))]


def _swap(chance: random.Random, pieces: list[str]) -> None:
    at = chance.randrange(len(pieces))
    pieces[at - 1], pieces[at] = pieces[at], pieces[at - 1]


def _double(chance: random.Random, pieces: list[str]) -> None:
    at = chance.randrange(len(pieces))
    pieces.insert(at, pieces[at])


_PIECES: Final[dict[str, Callable[[random.Random, list[str]], None]]] = {
    "piece lost": _drop,
    "head of a piece lost": _cut_head,
    "tail of a piece lost": _cut_tail,
    "pieces swapped": _swap,
    "piece doubled": _double,
}
_MARKS: Final[dict[str, Callable[[random.Random, str, int], str]]] = {
    "mark lost": lambda _, text, at: text[:at] + text[at + 1 :],
    "mark doubled": lambda _, text, at: text[:at] + text[at] + text[at:],
    "mark changed": lambda chance, text, at: (
        text[:at] + chance.choice(_OTHER_MARKS) + text[at + 1 :]
    ),
    "mark put in": lambda chance, text, at: text[:at] + chance.choice(_OTHER_MARKS) + text[at:],
}


def _move(text: str, at: int, to: int) -> str:
    return text[:at] + text[at + 1 : to] + text[at] + text[to:]


def _find_grammar(text: str) -> list[int]:
    """Return where the marks of the grammar are, the quotes of texts among them."""
    places: list[int] = []
    quote = ""
    is_escaped = False
    for at, mark in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif mark == "\\":
            is_escaped = True
        elif mark == quote or (not quote and mark in "\"'"):
            quote = "" if quote else mark
            places.append(at)
        elif not quote and mark in _GRAMMAR:
            places.append(at)
    return places


def write(chance: random.Random, arguments: dict[str, Any]) -> str:
    """Write arguments as one of the models does: tight, with blanks, or over several lines."""
    is_ascii = chance.random() < 0.2
    style: dict[str, Any] = chance.choice(
        [{}, {"separators": (",", ":")}, {"indent": 2}, {"separators": (", ", ":")}]
    )
    return json.dumps(arguments, ensure_ascii=is_ascii, **style)
