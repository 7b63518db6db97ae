"""Broken JSON as language models write it, in the proportion of replies, with what was meant.

Documents are arguments of calls and structured answers. The share of each kind follows what the
replies of small and large models break most: ends that a token limit cut, fences and prose, quotes
inside text, another notation, and last single marks.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

_TEXTS: Final = (
    "Oslo, Norway", "Please call back before noon.", "blue", "2026-03-14", "alice@example.org",
    "https://example.org/a?b=1&c=2", "The page returns 504, and nobody knows why.", "it's late",
    "Note: bring water", "Zürich", "東京", "SELECT id, name FROM users WHERE age > 30", "a-17",
    "Don't panic", "14:30", "high", "two words", "50 %", "Dear Bob,\n\nthank you.\n\nAlice",
    "def f(x):\n    return x + 1", "Ready? Yes.", "C3PO", "x", "report (final).pdf", "1.2.3", "",
)  # fmt: skip
_KEYS: Final = (
    "city", "title", "body", "user_id", "count", "tags", "items", "due_date", "isActive", "price",
    "email", "location", "notes", "query", "options", "unit", "start", "end", "x-rate", "name",
)  # fmt: skip
_WORDS: Final = (
    "alpha",
    "blue sky",
    "north",
    "user",
    "draft",
    "Berlin",
    "weekly report",
    "ok then",
)


class Slip(NamedTuple):
    """One broken text and the value that was meant."""

    kind: str
    text: str
    value: Any


def make_slips(seed: int, count: int) -> Iterator[Slip]:
    """Yield broken texts, the same for the same seed."""
    chance = random.Random(seed)
    kinds = [kind for kind, (share, _) in _KINDS.items() for _ in range(share)]
    made = 0
    while made < count:
        kind = chance.choice(kinds)
        found = _KINDS[kind][1](chance)
        if found is None or is_valid(found[0]):
            continue
        made += 1
        yield Slip(kind, *found)


def is_valid(text: str) -> bool:
    """Tell whether a text is JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


_Made = tuple[str, Any] | None


def _scalar(chance: random.Random) -> Any:
    if chance.random() < 0.6:
        return chance.choice(_TEXTS)
    return chance.choice([0, 1, 7, 42, -3, 3.5, 19.99, 1200, True, False, None])


def _value(chance: random.Random, depth: int) -> Any:
    roll = chance.random()
    if depth < 2 and roll < 0.16:
        return _record(chance, depth + 1)
    if depth < 2 and roll < 0.3:
        size = chance.randrange(1, 4)
        kind = chance.randrange(3)
        if kind == 0:
            return [chance.choice(_TEXTS[:-1]) for _ in range(size)]
        if kind == 1:
            return [chance.randrange(100) for _ in range(size)]
        return [_record(chance, depth + 1) for _ in range(size)]
    return _scalar(chance)


def _record(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    keys = chance.sample(_KEYS, chance.randrange(2 if depth == 0 else 1, 5))
    return {key: _value(chance, depth) for key in keys}


def _document(chance: random.Random) -> Any:
    if chance.random() < 0.88:
        return _record(chance)
    return [_record(chance, 1) for _ in range(chance.randrange(1, 4))]


def _write(chance: random.Random, value: Any) -> str:
    return json.dumps(value, indent=chance.choice([None, None, 2]), ensure_ascii=False)


def find_marks(text: str) -> list[int]:
    """Return where marks are that are outside strings, with the quotes of strings."""
    marks: list[int] = []
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]', text):
        marks.append(match.start())
        if match[0][0] == '"':
            marks.append(match.end() - 1)
    return marks


def change_outside(text: str, change: Callable[[str], str]) -> str:
    """Change what is outside strings."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(part if part[:1] == '"' else change(part) for part in parts)


def change_strings(text: str, change: Callable[[str, bool], str]) -> str:
    """Change strings; the change is told whether it is a key."""
    return re.sub(r'"((?:[^"\\]|\\.)*)"(?=(\s*:)?)', lambda m: change(m[0], m[2] is not None), text)


# Kinds


def _cut_in_text(chance: random.Random) -> _Made:
    value = _record(chance)
    body = chance.choice([one for one in _TEXTS if len(one) > 12 and "\n" not in one])
    shown = body[: chance.randrange(3, len(body))].rstrip()
    text = json.dumps({**value, "summary": body}, ensure_ascii=False)
    return text[: text.rindex(json.dumps(body, ensure_ascii=False)) + 1 + len(shown)], {
        **value,
        "summary": shown,
    }


def _cut_between(chance: random.Random) -> _Made:
    """Cut behind a whole member or item: nothing of the next is there."""
    value = _document(chance)
    text = _write(chance, value)
    marks = [at for at in find_marks(text) if text[at] == ","]
    if not marks:
        return None
    at = chance.choice(marks)
    closers = ""
    for mark in find_marks(text[:at]):
        if text[mark] in "{[":
            closers = ("}" if text[mark] == "{" else "]") + closers
        elif text[mark] in "}]":
            closers = closers[1:]
    return text[: at + chance.choice([0, 1])], json.loads(text[:at] + closers)


def _lost_end(chance: random.Random) -> _Made:
    value = _document(chance)
    text = _write(chance, value).rstrip()
    bare = text.rstrip("}] \n")
    closers = "".join(text[len(bare) :].split())
    if len(closers) < 2:
        return None
    return bare + closers[: -chance.randrange(1, len(closers))], value


def _fence(chance: random.Random) -> _Made:
    value = _document(chance)
    lead = chance.choice(["", "Here is the JSON:\n", "Sure! Here you go:\n\n", "**Result**\n"])
    tail = chance.choice(["", "\n", "\nLet me know if you need more.", "\n\nNote: a draft."])
    tag = chance.choice(["json", "", "JSON", "python"])
    end = chance.choice(["\n```", "\n```", "```", ""])
    return f"{lead}```{tag}\n{_write(chance, value)}{end}{tail if end else ''}", value


def _prose(chance: random.Random) -> _Made:
    value = _document(chance)
    lead = chance.choice(["The answer is: ", "Sure! ", "I will call it with\n", "Output:\n", ""])
    tail = chance.choice(["", " Is that fine?", "\nDone.", "\n\nI chose these for you."])
    return lead + _write(chance, value) + tail, value


def _fence_inside(chance: random.Random) -> _Made:
    value = _record(chance)
    text = json.dumps(value, indent=2, ensure_ascii=False)
    opener, closer = chance.choice([("{\n```json\n", "\n```\n}"), ("[\n```json\n", "\n```\n]")])
    if opener[0] == "[":
        return opener + text + closer, [value]
    return opener + text[1:-1].strip("\n") + closer, value


def _trailing_comma(chance: random.Random) -> _Made:
    value = _document(chance)
    text = change_outside(
        _write(chance, value), lambda part: re.sub(r"(?<=[^{\[\s])(\s*[}\]])", r",\1", part)
    )
    return re.sub(r'"(\s*[}\]])', r'",\1', text) if chance.random() < 0.5 else text, value


def _python(chance: random.Random) -> _Made:
    value = _document(chance)
    return repr(value), value


def _single_quotes(chance: random.Random) -> _Made:
    """Single quotes around everything, apostrophes in text as they are."""
    value = _document(chance)
    return change_strings(_write(chance, value), lambda s, _: f"'{s[1:-1]}'"), value


def _literals(chance: random.Random) -> _Made:
    value = {**_record(chance), "flag": chance.choice([True, False, None])}
    names = chance.choice(
        [
            {"true": "True", "false": "False", "null": "None"},
            {"true": "TRUE", "false": "FALSE", "null": "undefined"},
        ]
    )
    return change_outside(
        _write(chance, value),
        lambda part: re.sub(r"true|false|null", lambda m: names[m[0]], part),
    ), value


def _bare_keys(chance: random.Random) -> _Made:
    value = _document(chance)
    share = chance.choice([1.0, 0.4])
    return change_strings(
        _write(chance, value),
        lambda s, is_key: s[1:-1] if is_key and chance.random() < share else s,
    ), value


def _inner_quotes(chance: random.Random) -> _Made:
    inner = chance.choice(
        [
            'he said "hi" to her',
            'the "best" one, and the "worst"',
            'call it "x"',
            '"Later" is fine',
            'print("done")',
            'a 5" disk',
            'use "a", "b" or "c"',
            '<a href="x.html">here</a>',
        ]
    )
    value = _record(chance)
    keys = list(value)
    value[chance.choice(keys)] = inner
    text = _write(chance, value)
    return text.replace('\\"', '"'), value


def _raw_breaks(chance: random.Random) -> _Made:
    value = {**_record(chance), "message": chance.choice([t for t in _TEXTS if "\n" in t])}
    text = _write(chance, value)
    return text.replace("\\n", "\n"), value


def _missing_comma(chance: random.Random) -> _Made:
    value = _document(chance)
    text = json.dumps(value, indent=chance.choice([None, 2, 2]), ensure_ascii=False)
    marks = [at for at in find_marks(text) if text[at] == ","]
    if not marks:
        return None
    at = chance.choice(marks)
    if text[at - 1].isdigit() and text[at + 1 :].lstrip()[:1].isdigit():
        return None
    return text[:at] + text[at + 1 :], value


def _missing_colon(chance: random.Random) -> _Made:
    value = _record(chance)
    text = _write(chance, value)
    at = chance.choice([at for at in find_marks(text) if text[at] == ":"])
    return text[:at] + chance.choice(["", " =", " =>", " :"]) + text[at + 1 :], value


def _missing_closer(chance: random.Random) -> _Made:
    """A closing bracket inside is missing, and more members follow."""
    inner = chance.choice([[1, 2, 3], ["a", "b"], [{"id": 1}, {"id": 2}]])
    value = {"name": chance.choice(_WORDS), "items": inner, "total": chance.randrange(100)}
    text = json.dumps(value)
    at = text.index("]")
    return text[:at] + text[at + 1 :], value


def _extra_closer(chance: random.Random) -> _Made:
    value = _document(chance)
    return _write(chance, value).rstrip() + chance.choice(["}", "]", "}}", "\n}", "]}"]), value


def _early_closer(chance: random.Random) -> _Made:
    """A bracket is closed too early, and more members or items follow."""
    if chance.random() < 0.7:
        first, second = _record(chance, 1), _record(chance, 1)
        value = {**first, **second}
        if len(value) != len(first) + len(second):
            return None
        one = json.dumps(first, ensure_ascii=False)
        two = json.dumps(second, ensure_ascii=False)
        return one + ", " + two[1:], value
    rows = [[chance.randrange(9) for _ in range(2)] for _ in range(3)]
    key = chance.choice(_KEYS)
    items = json.dumps(rows)[1:-1]
    first, _, rest = items.partition("], ")
    return f'{{"{key}": [{first}]], {rest}]}}', {key: rows}


def _missing_closing_quote(chance: random.Random) -> _Made:
    value = {**_record(chance, 1), "place": chance.choice(_WORDS), "size": _scalar(chance)}
    text = _write(chance, value)
    spot = f'"{value["place"]}"'
    at = text.index(spot) + len(spot) - 1
    return text[:at] + text[at + 1 :], value


def _missing_key_quote(chance: random.Random) -> _Made:
    value = _record(chance)
    text = _write(chance, value)
    keys = [m.span(1) for m in re.finditer(r'("[\w\-]+")\s*:', text)]
    start, end = chance.choice(keys)
    at = chance.choice([start, end - 1])
    return text[:at] + text[at + 1 :], value


def _missing_opening_quote(chance: random.Random) -> _Made:
    value = {**_record(chance, 1), "place": chance.choice(_WORDS), "size": _scalar(chance)}
    text = _write(chance, value)
    at = text.index(f'"{value["place"]}"')
    return text[:at] + text[at + 1 :], value


def _bare_text(chance: random.Random) -> _Made:
    bare = chance.choice(
        [*_WORDS, "user@example.org", "v1.2.3", "10 kg", "/tmp/a.txt", "hello {name} there",
         "see {x}", "57eeeeb1-450b-482c", "1/3", "10-20", "3pm"]
    )  # fmt: skip
    value = {**_record(chance, 1), "place": bare, "size": _scalar(chance)}
    text = _write(chance, value)
    return text.replace(f'"{bare}"', bare), value


def _comments(chance: random.Random) -> _Made:
    value = _document(chance)
    text = json.dumps(value, indent=2, ensure_ascii=False)
    lines = text.split("\n")
    at = chance.randrange(len(lines) - 1)
    note = chance.choice([" // the first one", " # required", " /* see above */", " // e.g. Oslo"])
    lines[at] += note
    return "\n".join(lines), value


def _ellipsis(chance: random.Random) -> _Made:
    value = {**_record(chance, 1), "ids": [1, 2, 3]}
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("3]", chance.choice(["3, ...]", "3, …]", "3, ... ]"])), value


def _smart_quotes(chance: random.Random) -> _Made:
    value = _document(chance)
    return change_strings(_write(chance, value), lambda s, _: f"“{s[1:-1]}”"), value


def _escapes(chance: random.Random) -> _Made:
    odd, meant = chance.choice(
        [
            (r"it\'s fine", "it's fine"),
            (r"\d{3}-\d{4}", r"\d{3}-\d{4}"),
            (r"C:\Users\me\file.txt", r"C:\Users\me\file.txt"),
            (r"50\% off", r"50\% off"),
            (r"snake\_case", r"snake\_case"),
        ]
    )
    value = {**_record(chance, 1), "pattern": meant}
    text = json.dumps({**value, "pattern": "@@"}, ensure_ascii=False)
    return text.replace("@@", odd), value


def _numbers(chance: random.Random) -> _Made:
    odd, meant = chance.choice(
        [
            ("1,200", 1200), ("12,345,678", 12345678), ("-2,000.00", -2000.0), ("+5", 5),
            (".5", 0.5), ("5.", 5.0), ("007", 7), ("1_000", 1000), ("0x1F", 31),
            ("1,234.50", 1234.5),
        ]
    )  # fmt: skip
    value = {"title": chance.choice(_TEXTS), "amount": meant, "unit": chance.choice(_WORDS)}
    text = json.dumps({**value, "amount": "@@"}, ensure_ascii=False)
    return text.replace('"@@"', odd), value


def _escaped_whole(chance: random.Random) -> _Made:
    value = _document(chance)
    text = json.dumps(value, indent=chance.choice([None, 2]))
    inner = json.dumps(text)
    return (inner[1:-1] if chance.random() < 0.6 else inner), value


def _in_a_row(chance: random.Random) -> _Made:
    values = [_record(chance, 1) for _ in range(chance.randrange(2, 4))]
    if values[0] == values[1]:
        return None
    glue = chance.choice(["\n", ", ", "", ",\n", "\n\n"])
    return glue.join(json.dumps(one, ensure_ascii=False) for one in values), values


def _object_in_text(chance: random.Random) -> _Made:
    inner = json.dumps(_record(chance, 2))
    value = {"name": chance.choice(_WORDS), "payload": inner, "unit": chance.choice(_WORDS)}
    if chance.random() < 0.4:
        value = {"name": value["name"], "payload": inner}
    text = json.dumps({**value, "payload": "@@"})
    return text.replace("@@", inner), value


def _doubled(chance: random.Random) -> _Made:
    value = {"city": chance.choice(_WORDS), "ids": [1, 2], "ok": True}
    text = json.dumps(value)
    if chance.random() < 0.5:
        return f"{{{text}}}", value
    return text.replace('"', '""'), value


def _no_brackets(chance: random.Random) -> _Made:
    value = _record(chance, 1)
    text = json.dumps(value, ensure_ascii=False)
    if chance.random() < 0.5:
        return text[1:], value
    return text[1:-1], value


def _extra_comma(chance: random.Random) -> _Made:
    value = _document(chance)
    text = _write(chance, value)
    marks = [at for at in find_marks(text) if text[at] == ","]
    if not marks:
        return None
    at = chance.choice(marks)
    return text[:at] + chance.choice([",", ", "]) + text[at:], value


def _wrong_closer(chance: random.Random) -> _Made:
    value = {"name": chance.choice(_WORDS), "ids": [1, 2, 3], "size": 4}
    text = json.dumps(value)
    if chance.random() < 0.5:
        return text.replace("]", "}"), value
    return text[:-1] + "]", value


def _mixed(chance: random.Random) -> _Made:
    """The usual mixture: bare keys, literals of Python, trailing commas, in a fence."""
    value = {**_record(chance), "flag": True}
    text = change_strings(_write(chance, value), lambda s, is_key: s[1:-1] if is_key else s)
    text = change_outside(text, lambda part: part.replace("true", "True").replace("null", "None"))
    text = text[:-1].rstrip() + ",\n}"
    return (f"```json\n{text}\n```" if chance.random() < 0.5 else text), value


_KINDS: Final[dict[str, tuple[int, Callable[[random.Random], _Made]]]] = {
    "cut in a text": (7, _cut_in_text),
    "cut between members": (6, _cut_between),
    "end is missing": (5, _lost_end),
    "fence": (9, _fence),
    "prose": (5, _prose),
    "fence inside brackets": (1, _fence_inside),
    "trailing commas": (6, _trailing_comma),
    "python": (5, _python),
    "single quotes": (3, _single_quotes),
    "literals": (3, _literals),
    "bare keys": (5, _bare_keys),
    "quotes in a text": (8, _inner_quotes),
    "raw line breaks": (4, _raw_breaks),
    "missing comma": (4, _missing_comma),
    "missing colon": (1, _missing_colon),
    "missing closer": (2, _missing_closer),
    "closer too many": (3, _extra_closer),
    "closer too early": (2, _early_closer),
    "wrong closer": (1, _wrong_closer),
    "missing closing quote": (3, _missing_closing_quote),
    "missing quote of a key": (2, _missing_key_quote),
    "missing opening quote": (1, _missing_opening_quote),
    "text without quotes": (3, _bare_text),
    "comments": (2, _comments),
    "ellipsis": (1, _ellipsis),
    "smart quotes": (1, _smart_quotes),
    "odd escapes": (2, _escapes),
    "odd numbers": (2, _numbers),
    "escaped as a whole": (2, _escaped_whole),
    "several in a row": (2, _in_a_row),
    "object in a text": (2, _object_in_text),
    "doubled marks": (1, _doubled),
    "outer brackets are missing": (1, _no_brackets),
    "comma too many": (1, _extra_comma),
    "mixture": (3, _mixed),
}
