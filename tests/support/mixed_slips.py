"""Broken JSON with several slips at once, as replies of language models have them.

A document is written in a notation, gets up to two slips, may end too soon, and may be wrapped.
The shares of the kinds are about those of replies: most have a wrapping or another notation, fewer
a single wrong mark. What the text was made of is its kind.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from math import inf, nan
from typing import Any, Final, TypeVar, cast

from support.model_slips import Slip, change_outside, change_strings, find_marks, is_valid

_Kind = TypeVar("_Kind")

_SENTENCES: Final = (
    "Restart the worker, then watch the queue for ten minutes.", "We can't ship on Friday.",
    "SELECT count(*) FROM orders WHERE state = 'open' AND total > 12.5;", "München – Köln: 5 h",
    "# Summary\n\n- first point\n- second point\n", "if (a && b) { return a[0]; }",
    "{name}, hello!",
    "The customer's order (no. 4711) was refunded; see the thread.", "https://shop.example/p/9#top",
    "line one\nline two\tand a tab", "日本語のテキスト、です。", "Цена: 1 200 ₽",
    "naïve café 🙂", "N/A",
    "C:/data/in.csv", "true", "42", "null", "[draft]", "key: value, other: thing", "a\\b", "",
)  # fmt: skip
_SHORT: Final = ("open", "EUR", "b-17", "Ana María", "p95", "two parts", "x/y", "v2.0-rc1", "06:45")
_KEYS: Final = (
    "id", "status", "amount", "currency", "assignee", "labels", "created_at", "steps", "summary",
    "customer", "address", "zip-code", "lineItems", "quantity", "is_gift", "score", "metadata",
    "path", "sql", "language", "0", "from", "type", "class", "data", "next",
)  # fmt: skip
_QUOTED: Final = (
    'she wrote "thanks" and left', '"Done" was all', 'the key is called "id"', 'a 27" screen',
    '<td class="wide">x</td>', 'echo "$HOME" && exit', 'both "one" and "two" are fine.',
)  # fmt: skip
_LEADS: Final = (
    "Here is the object you asked for:\n\n", "Result: ", "Okay, I have all details now.\n", "",
    "<answer>\n", "Based on the message, the fields are as follows.\n\n",
)  # fmt: skip
_TAILS: Final = (
    "", "\n\nTell me if a field should change.", "\n</answer>", " That's all.", "\n\n(2 of 2)",
)  # fmt: skip


def make_mixed_slips(seed: int, count: int) -> Iterator[Slip]:
    """Yield broken texts, the same for the same seed."""
    chance = random.Random(seed)
    made = 0
    while made < count:
        slip = _make_slip(chance)
        if slip is not None and not is_valid(slip.text):
            made += 1
            yield slip


def _choose(chance: random.Random, kinds: dict[_Kind, int]) -> _Kind:
    return chance.choices(list(kinds), list(kinds.values()))[0]


def _make_slip(chance: random.Random) -> Slip | None:
    value = _make_record(chance, 0)
    if chance.random() < 0.12:
        value = [value, *(_make_record(chance, 1) for _ in range(chance.randrange(3)))]
    names: list[str] = []
    notation = _choose(chance, _NOTATIONS)
    slips = dict.fromkeys(_choose(chance, _SLIPS) for _ in range(chance.choice([0, 1, 1, 1, 2])))
    if notation is not None:
        slips = {slip: None for slip in slips if slip in _WITH_NOTATION}
    for slip in slips:
        value = _BEFORE.get(slip, _same)(chance, value)
    text = json.dumps(value, indent=chance.choice([None, None, 2, 4]), ensure_ascii=False)
    if notation is None and not slips and chance.random() < 0.4:
        return _cut(chance, text)
    if notation is not None:
        text = notation(chance, text)
        names.append(notation.__name__.strip("_"))
    for slip in slips:
        changed = slip(chance, text)
        if changed is None:
            return None
        text = changed
        names.append(slip.__name__.strip("_"))
    wrap = _choose(chance, _WRAPS)
    if wrap is not None:
        wrapped = wrap(chance, text)
        if wrapped is None:
            return None
        text = wrapped
        names.append(wrap.__name__.strip("_"))
    return Slip(" + ".join(names), text, value)


def _cut(chance: random.Random, text: str) -> Slip | None:
    """End a text inside a string or behind an entry; the rest of the value is what was meant."""
    lead = chance.choice(["", "", "", "```json\n", "Here it is:\n"])
    at = chance.randrange(1, len(text))
    if re.search(r"[-0-9.eE]\Z|[:,\s]\Z", text[:at]) or text[at - 1] == "\\":
        return None
    closers = ""
    for mark in find_marks(text[:at]):
        if text[mark] in "{[":
            closers = ("}" if text[mark] == "{" else "]") + closers
        elif text[mark] in "}]":
            closers = closers[1:]
    for end in ("", '"'):
        try:
            value = json.loads(text[:at] + end + closers)
        except ValueError:
            continue
        return Slip("cut", lead + text[:at], value) if closers else None
    return None


def _same(_: random.Random, value: Any) -> Any:
    return value


def _make_value(chance: random.Random, depth: int) -> Any:
    roll = chance.random()
    if depth < 3 and roll < 0.15:
        return _make_record(chance, depth + 1)
    if depth < 3 and roll < 0.27:
        kinds: list[Callable[[], Any]] = [
            lambda: chance.choice(_SHORT),
            lambda: chance.randrange(-5, 5000),
            lambda: _make_record(chance, depth + 2),
        ]
        make = chance.choice(kinds)
        return [make() for _ in range(chance.randrange(5))]
    if roll < 0.5:
        return chance.choice(_SENTENCES)
    if roll < 0.75:
        return chance.choice(_SHORT)
    return chance.choice([0, 3, 17, 250_000, -1, 0.5, 1e-7, 129.95, True, False, None])


def _make_record(chance: random.Random, depth: int) -> dict[str, Any]:
    keys = chance.sample(_KEYS, chance.randrange(1 if depth else 2, 7 - depth))
    return {key: _make_value(chance, depth) for key in keys}


def _put(chance: random.Random, value: Any, item: Any) -> Any:
    """Put a value into a document."""
    if isinstance(value, list):
        *others, last = cast("list[Any]", value)
        return [*others, _put(chance, last, item)]
    key = chance.choice(list(value))
    return {**value, key: item}


# Notations


def _python_repr(_: random.Random, text: str) -> str:
    return repr(json.loads(text))


def _single_quotes(_: random.Random, text: str) -> str:
    return change_strings(text, lambda one, _: "'" + one[1:-1].replace('\\"', '"') + "'")


def _bare_keys(_: random.Random, text: str) -> str:
    return change_strings(
        text, lambda one, is_key: one[1:-1] if is_key and one[1:-1].isidentifier() else one
    )


def _python_words(_: random.Random, text: str) -> str:
    words = {"true": "True", "false": "False", "null": "None"}
    return change_outside(
        text, lambda part: re.sub("true|false|null", lambda found: words[found[0]], part)
    )


def _smart_quotes(_: random.Random, text: str) -> str:
    return change_strings(text, lambda one, _: f"“{one[1:-1]}”")


# Slips


def _trailing_commas(_: random.Random, text: str) -> str:
    return re.sub(r"(?<=[^{\[\s,])(\s*[}\]]\s*)\Z", r",\1", text)


def _missing_comma(chance: random.Random, text: str) -> str | None:
    marks = [at for at in find_marks(text) if text[at] == ","]
    at = chance.choice(marks) if marks else 0
    is_number = text[at - 1].isdigit() and text[at + 1 :].lstrip()[:1] in "-0123456789"
    return None if at == 0 or is_number else text[:at] + text[at + 1 :]


def _raw_breaks(_: random.Random, text: str) -> str:
    return change_strings(text, lambda one, _: one.replace("\\n", "\n").replace("\\t", "\t"))


def _inner_quotes(_: random.Random, text: str) -> str:
    return text.replace('\\"', '"')


def _comments(chance: random.Random, text: str) -> str | None:
    lines = text.split("\n")
    if len(lines) < 2:
        return None
    ends = [at for at, line in enumerate(lines[:-1]) if re.search(r'[{\[,\w"\]}]\Z', line)]
    at = chance.choice(ends or [0])
    if "\n".join(lines[: at + 1]).count('"') % 2:
        return None  # inside a string
    notes = [" // as given", " # optional", " /* from the form */", " // TODO: check, maybe"]
    lines[at] += chance.choice(notes)
    return "\n".join(lines)


def _missing_closers(chance: random.Random, text: str) -> str | None:
    bare = text.rstrip("}] \n")
    closers = text[len(bare) :]
    count = len(closers.split()) if "\n" in closers else len(closers)
    if count < 2:
        return None
    for _ in range(chance.randrange(1, count)):
        closers = closers.rstrip()[:-1]
    return (bare + closers).rstrip()


def _extra_closer(chance: random.Random, text: str) -> str:
    return text + chance.choice(["}", "\n}", "]", "}}"])


def _missing_closing_quote(_: random.Random, text: str) -> str | None:
    found = re.search(r'": "[\w ]+(")(?=\s*[,}])', text)
    return text[: found.start(1)] + text[found.end(1) :] if found else None


def _missing_key_quote(chance: random.Random, text: str) -> str:
    keys = list(re.finditer(r'"(\w+)":', text))
    if not keys:
        return text
    start, end = chance.choice(keys).span(1)
    at = chance.choice([start - 1, end])
    return text[:at] + text[at + 1 :]


def _odd_escapes(_: random.Random, text: str) -> str:
    return text.replace("'", "\\'")


def _ellipsis(_: random.Random, text: str) -> str | None:
    at = next((at for at in find_marks(text) if text[at] == "]"), 0)
    bare = text[:at].rstrip()
    return f"{bare}, ...{text[len(bare) :]}" if bare[-1:] not in ("", "[") else None


def _grouped_number(_: random.Random, text: str) -> str:
    return change_outside(text, lambda part: re.sub(r"\b250000\b", "250,000", part))


def _not_a_number(_: random.Random, text: str) -> str:
    return text


_BEFORE: Final[dict[Callable[..., Any], Callable[[random.Random, Any], Any]]] = {
    _inner_quotes: lambda chance, value: _put(chance, value, chance.choice(_QUOTED)),
    _raw_breaks: lambda chance, value: _put(
        chance, value, "first line\nsecond, longer line\n\nend"
    ),
    _odd_escapes: lambda chance, value: _put(chance, value, "it's Ana's"),
    _grouped_number: lambda chance, value: _put(chance, value, 250_000),
    _not_a_number: lambda chance, value: _put(chance, value, chance.choice([nan, inf, -inf])),
}
"""How a document is made fit for a slip."""


# Wrappings


def _fence(chance: random.Random, text: str) -> str:
    tag = chance.choice(["json", "json", "", "JSON", "json5", "javascript"])
    end = chance.choice(["\n```", "\n```", "\n```\n", ""])
    return f"```{tag}\n{text}{end}"


def _prose(chance: random.Random, text: str) -> str:
    return chance.choice(_LEADS) + text + chance.choice(_TAILS)


def _fence_in_prose(chance: random.Random, text: str) -> str:
    lead = chance.choice(_LEADS[:3])
    return f"{lead}```json\n{text}\n```{chance.choice(_TAILS[:2])}"


def _encoded_twice(_: random.Random, text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _escaped(_: random.Random, text: str) -> str | None:
    if '"' not in text and "\n" not in text:
        return None  # nothing shows that it was escaped
    return json.dumps(text, ensure_ascii=False)[1:-1]


_NOTATIONS: Final[dict[Callable[[random.Random, str], str] | None, int]] = {
    None: 62,
    _python_repr: 10,
    _single_quotes: 8,
    _bare_keys: 9,
    _python_words: 7,
    _smart_quotes: 4,
}
_SLIPS: Final[dict[Callable[[random.Random, str], str | None], int]] = {
    _trailing_commas: 18,
    _inner_quotes: 14,
    _raw_breaks: 10,
    _missing_closers: 12,
    _missing_comma: 9,
    _comments: 8,
    _extra_closer: 6,
    _missing_key_quote: 4,
    _missing_closing_quote: 4,
    _odd_escapes: 5,
    _grouped_number: 3,
    _ellipsis: 2,
    _not_a_number: 4,
}
_WRAPS: Final[dict[Callable[[random.Random, str], str | None] | None, int]] = {
    None: 55,
    _fence: 18,
    _prose: 12,
    _fence_in_prose: 10,
    _encoded_twice: 3,
    _escaped: 2,
}
_WITH_NOTATION: Final = frozenset({_trailing_commas, _missing_closers, _extra_closer})
