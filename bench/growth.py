"""Searches for texts whose reading takes more than linear time, or more than its budget.

    python bench/growth.py [--shapes 20000] [--seed 1] [--sizes 2048,4096] [--only NAME] [--list 12]

A shape is a beginning, a unit that is repeated, and an end, made of everything that the text
formats and the repairer know. Each is read in every way at two sizes. Shapes that cost or grow
most are kept and changed again, so the search moves towards what is slow. What looks too slow is
measured again at growing sizes, up to the full size, best of three. The command exits with 1 when
a shape grows by more than 2.6 for twice the text, or takes longer than its budget: one second for
1 MB of text, 50 ms for 200 KB of arguments, in CPU time.
"""

import argparse
import ast
import gc
import platform
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import surecall.calls
from surecall.base.records import Reply
from surecall.base.redaction import Secret, redact
from surecall.calls import ToolNames
from surecall.calls.families import FORMATS
from surecall.reading import (
    ReplyReader,
    find_broken_attempt,
    parse_object_reply,
    read_arguments,
    read_reply,
)
from surecall.reading.documents import rescue_reply
from surecall.reading.tools import parse_tools
from surecall.schema import SchemaChecker, coerce_arguments, type_text_value
from surecall.text import ValueScanner, repair_json

MAX_GROWTH = 2.6
TEXT_BYTES, TEXT_S = 1_000_000, 1.0
ARGUMENTS_BYTES, ARGUMENTS_S = 200_000, 0.05
NOISE_S, CERTAIN_S = 0.002, 0.02
"""Below the first the clock says nothing about growth, above the second it is believed."""
POOL = 60
FULLY_MEASURED = 30
GROWING_FROM_BYTES = 32_000
DEPTHS = (1, 1, 1, 1, 1, 1, 3, 100)
THEMES = ((1, 0, 0, 0), (3, 1, 0, 0), (1, 1, 0, 0), (2, 0, 1, 0), (1, 1, 1, 1), (1, 0, 1, 1))
"""How much JSON, prose, openers and other markers a shape is made of."""
PIECE_CHARACTERS = 48

FLAT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "ok": {"type": "boolean"},
        "when": {"type": "string", "format": "date"},
    },
    "required": ["city"],
    "additionalProperties": False,
}
NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]},
        "a": {"type": "array", "items": {"type": "integer"}},
        "b": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}},
        "c": {"enum": ["red", "dark_green", 7, None]},
        "d": {"type": "object", "additionalProperties": {"type": "number"}},
        "key": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "q": {"type": ["string", "null"]},
                "key": {"oneOf": [{"$ref": "#/$defs/node"}, {"type": "integer"}]},
                "c": {"enum": ["red", "dark_green"]},
            },
            "required": ["q"],
        }
    },
}
TOOLS = [
    {"type": "function", "function": {"name": "search", "parameters": FLAT}},
    {"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "fit", "parameters": NESTED}},
]

JSON_TOKENS = (
    *"{}[](),:;=+-./\\\"'`|&#%@!?*<>_~$^",
    *"“”„‘’«»",
    "{{",
    "}}",
    '"city": ',
    '"a": ',
    '"key":',
    "city: ",
    "'key': ",
    '{"a": [',
    '{"b":[',
    '{"d":{',
    '{"key":[{',
    '{"city": ',
    '{"city": "',
    "{'city': '",
    '"a"',
    "'a'",
    "“a”",
    '"a",',
    '"1",',
    '"x":1,',
    '"dark green",',
    "a,",
    "a:True,",
    '"a" + ',
    '+"b"',
    "\\u0041",
    "\\ud83d",
    "\\x41",
    "\\n",
    '\\"',
    "\\\\",
    "/*",
    "*/",
    "//",
    "# ",
    "...",
    "…",
    "```",
    "```json\n",
    "~~~",
    "=>",
    ":=",
    "==",
    "&quot;",
    "http://a",
    "C:\\",
)
PLAIN_TOKENS = (
    *" \t\n\r",
    "  ",
    "\r\n",
    "\n\n",
    "\u00a0",
    "\u2028",
    "\u3000",
    "\ufeff",
    "\u200b",
    "\u2060",
    "\x00",
    "\x1f",
    "\ud800",
    "é",
    "漢字",
    "🎉",
    "a",
    "b ",
    "word ",
    "it's ",
    'he said "x" and ',
    "see {x ",
    "User: ",
    "Assistant: ",
    "sk-abcdefghijklmnop",
    "bearer ",
    *("1", "0", "0x1f", "1e5", "1_000", "-", "9" * 40, "1.5", "2024-01-01", "007"),
    *("true", "True", "null", "None", "NaN", "-Infinity", "nil", "undefined", "lambda x"),
    *("<search>", "</search>", "<fit>", "<ping/>", "<city>", "</city>", "<arg_key>", "&lt;"),
    *("search", "ping", "fit", "search(", "search(city=", "ping()", "fit(a=[", "print("),
    *('{"name": "search", "arguments": {', '{"name":"ping","arguments":{}}', '"arguments": '),
    *("<think>", "</think>", "<|", "|>", "</", "/>", "<a>", "</a>", "<!--", "-->", "<?xml"),
    *("Action: search\n", "Action Input: ", "Thought: ", "Observation: ", "name: search\n"),
)


def opener_tokens() -> list[str]:
    """Everything that may begin a call."""
    tools = ToolNames(parse_tools(TOOLS))
    return sorted({opener for form in FORMATS for opener in form.openers(tools)})


def marker_tokens() -> list[str]:
    """Every short text that the readers of formats are written with."""
    found: set[str] = set()
    for path in sorted(Path(surecall.calls.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                is_prose = text.endswith(".") or text.count(" ") > 4 or re.fullmatch(r"\w+", text)
                if 0 < len(text) <= 40 and not is_prose and "(?" not in text and "++" not in text:
                    found.add(text)
    return sorted(found)


class Shape(NamedTuple):
    """A text of any length."""

    prefix: tuple[str, ...]
    unit: tuple[str, ...]
    suffix: tuple[str, ...]
    depth: int = 1
    """How often the beginning and the end are repeated, whatever the size."""

    def text(self, size: int) -> str:
        unit = "".join(self.unit)
        prefix, suffix = "".join(self.prefix) * self.depth, "".join(self.suffix) * self.depth
        count = max(1, (size - len(prefix) - len(suffix)) // len(unit))
        return prefix + unit * count + suffix

    def __str__(self) -> str:
        prefix, unit, suffix = map("".join, self[:3])
        times = f" * {self.depth}" if self.depth > 1 else ""
        return f"{prefix!r}{times} + {unit!r} * n + {suffix!r}{times}"


class Way(NamedTuple):
    """A way of reading."""

    name: str
    read: Callable[[str], object]
    full_bytes: int = TEXT_BYTES
    budget_s: float = TEXT_S


def ways() -> list[list[Way]]:
    """Groups of ways; a shape is read in one way of each group."""
    tools = ToolNames(parse_tools(TOOLS))
    checkers = {"flat": (FLAT, SchemaChecker(FLAT)), "nested": (NESTED, SchemaChecker(NESTED))}
    arguments = partial(Way, full_bytes=ARGUMENTS_BYTES, budget_s=ARGUMENTS_S)

    def streamed(text: str, **options: Any) -> object:
        reader = ReplyReader(tools, **options)
        for start in range(0, len(text), PIECE_CHARACTERS):
            reader.feed(text[start : start + PIECE_CHARACTERS])
        return reader.close("stop")

    def scanned(text: str) -> object:
        scanner = ValueScanner()
        for start in range(0, len(text), PIECE_CHARACTERS):
            scanner.feed(text[start : start + PIECE_CHARACTERS])
        return scanner.close()

    def fitted(name: str, text: str) -> object:
        return read_arguments(text, checkers[name][0], checker=checkers[name][1], ended=True)

    def coerced(text: str) -> object:
        schema, checker = checkers["nested"]
        size = len(text) // 4
        parts = {name: text[: size + at] for at, name in enumerate(("a", "c", "d", "key"))}
        return coerce_arguments(parts, schema, checker)

    def typed(name: str, text: str) -> object:
        return type_text_value(text, NESTED["properties"][name])

    def redacted(text: str) -> object:
        known = Secret("a1b2c3d4e5f6"), Secret("search(")  # as long as they live
        return known, redact(text)

    def replied(text: str, **options: Any) -> object:
        return read_reply(text, tools=tools, **options)

    return [
        [
            Way("repair_json", repair_json),
            Way("repair_json close", partial(repair_json, cut="close")),
            Way("repair_json not ended", partial(repair_json, ended=False, nested="keep")),
            Way("repair_json text", partial(repair_json, cut="close", non_finite="text")),
            Way("repair_json null", partial(repair_json, ended=False, non_finite="null")),
            Way("repair_json guess", partial(repair_json, guess=True, cut="close")),
        ],
        [
            arguments("read_arguments", read_arguments),
            arguments("read_arguments flat", partial(fitted, "flat")),
            arguments("read_arguments nested", partial(fitted, "nested")),
        ],
        [
            Way("read_reply stop", partial(replied, finish_reason="stop")),
            Way("read_reply length", partial(replied, finish_reason="length")),
            Way("read_reply no end", replied),
            Way("read_reply thinking", partial(replied, generation_prompt="<think>")),
            Way("read_reply taught", partial(replied, taught=True, finish_reason="stop")),
        ],
        [
            Way("ReplyReader", streamed),
            Way("ReplyReader thinking", partial(streamed, generation_prompt="<think>\n")),
            Way("ReplyReader taught", partial(streamed, taught=True)),
        ],
        [
            arguments("coerce_arguments", coerced),
            *(arguments(f"type_text_value {name}", partial(typed, name)) for name in "abcd"),
            arguments("type_text_value", partial(type_text_value, schema={})),
            Way("ValueScanner", scanned),
            Way("redact", redacted),
            Way("rescue_reply", partial(rescue_reply, 500)),
            Way(
                "rescue_reply raw",
                lambda text: rescue_reply(500, "error parsing tool call: raw='" + text),
            ),
            Way("find_broken_attempt", partial(find_broken_attempt, names=tools)),
            Way(
                "parse_object_reply",
                lambda text: parse_object_reply(Reply(content=text, finish_reason="stop")),
            ),
        ],
    ]


class Growth(NamedTuple):
    """What one shape costs when it is read in one way."""

    way: Way
    shape: Shape
    ratio: float
    full_s: float

    @property
    def share(self) -> float:
        return self.full_s / self.way.budget_s

    @property
    def is_fine(self) -> bool:
        return self.ratio <= MAX_GROWTH and self.share <= 1

    def __str__(self) -> str:
        figures = f"x{self.ratio:4.2f} {self.full_s * 1e3:8.1f} ms"
        return f"{' ' if self.is_fine else '!'} {figures}  {self.way.name}: {self.shape}"


def taken_s(way: Way, text: str, rounds: int = 1) -> float:
    """The best CPU time of some rounds."""
    best = 1e9
    for _ in range(rounds):
        start = time.process_time()
        way.read(text)
        best = min(best, time.process_time() - start)
    return best


def measured_again(way: Way, shape: Shape, *, from_bytes: int) -> Growth:
    """Measure at doubled sizes up to the full one; stop when it is clearly fine, or clearly not."""
    size = way.full_bytes
    while size > from_bytes:
        size //= 2
    before, now = taken_s(way, shape.text(size)), 0.0
    ratio = 0.0
    while size < way.full_bytes:
        size *= 2
        now = taken_s(way, shape.text(size))
        for _ in range(6):  # in turns: the machine may have been busy with something else
            if before <= CERTAIN_S or now / before <= MAX_GROWTH:
                break
            before = min(before, taken_s(way, shape.text(size // 2)))
            now = min(now, taken_s(way, shape.text(size)))
        if before > CERTAIN_S:
            ratio = max(ratio, now / before)
        scaled = now * way.full_bytes / size
        if now > 4 * way.budget_s or (scaled < way.budget_s / 2 and now < 2.3 * before):
            return Growth(way, shape, ratio, scaled)
        before = now
    if now > way.budget_s:
        now = min(now, taken_s(way, shape.text(size), 5))
    return Growth(way, shape, ratio, now)


class Search:
    """Makes shapes, keeps the slow ones, and makes more like them."""

    def __init__(self, seed: int, small: int, large: int, only: str) -> None:
        self.random = random.Random(seed)
        self.kinds = (JSON_TOKENS, PLAIN_TOKENS, opener_tokens(), marker_tokens())
        self.small, self.large = small, large
        self.groups = [
            chosen for group in ways() if (chosen := [way for way in group if only in way.name])
        ]
        self.pools: list[list[tuple[float, Shape]]] = [[] for _ in self.groups]
        self.found: dict[tuple[str, Shape], Growth] = {}
        self.failed: list[Growth] = []
        # Twice at the full size is enough for one unit: what differs is a few characters around it.
        self.measured_units: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.measured_again: defaultdict[str, list[float]] = defaultdict(list)
        self.measured = 0

    def run(self, shapes: int, max_failures: int) -> None:
        """Try so many shapes, or fewer when enough of them failed."""
        for number in range(shapes):
            if len(self.failed) >= max_failures:
                break
            if number and number % 1000 == 0:
                print(f"{number} shapes, {len(self.found)} again", file=sys.stderr, flush=True)
            pool = self.pools[number % len(self.pools)]
            shape = self.changed(pool) if pool and number % 2 else self.new()
            for index, group in enumerate(self.groups):
                self.try_shape(index, self.random.choice(group), shape)

    def try_shape(self, index: int, way: Way, shape: Shape) -> None:
        """Read a shape at two small sizes, and at larger ones if it looks slow."""
        first = taken_s(way, shape.text(self.small))
        second = taken_s(way, shape.text(self.large))
        self.measured += 1
        score = share = second / self.large * way.full_bytes / way.budget_s
        if second > NOISE_S and second / first > 2.4:
            first = min(first, taken_s(way, shape.text(self.small), 3))
            second = min(second, taken_s(way, shape.text(self.large), 3))
        is_growing = second > NOISE_S and second / first > 2.4
        if is_growing or self.looks_slow(way, shape, share):
            start = GROWING_FROM_BYTES if is_growing else way.full_bytes // 2
            again = measured_again(way, shape, from_bytes=start)
            self.found[way.name, shape] = again
            score = max(again.share, again.ratio / MAX_GROWTH)
            if not again.is_fine:
                self.failed.append(again)
                print(again, flush=True)
        pool = self.pools[index]
        pool.append((score, shape))
        pool.sort(key=lambda entry: entry[0], reverse=True)
        del pool[POOL:]

    def looks_slow(self, way: Way, shape: Shape, share: float) -> bool:
        """Tell whether to measure at the full size: the first of a way, and later the slowest.

        What is slow in a small text may well be fine in a large one, where the budgets end it.
        """
        again = self.measured_again[way.name]
        if share < 0.8 or self.measured_units[way.name, shape.unit] >= 2:
            return False
        if len(again) >= FULLY_MEASURED and share < 0.8 * max(again):
            return False
        again.append(share)
        self.measured_units[way.name, shape.unit] += 1
        return True

    def new(self) -> Shape:
        chance = self.random
        # Few different tokens in one shape: what is repeated then meets itself.
        tokens = self.some(chance.choice((2, 4, 8)), chance.choice(THEMES))
        return Shape(
            tuple(chance.choices(tokens, k=chance.choice((0, 1, 1, 2, 3)))),
            tuple(chance.choices(tokens, k=chance.choice((1, 1, 1, 2, 2, 3, 4)))),
            tuple(chance.choices(tokens, k=chance.choice((0, 0, 1, 1, 2)))),
            chance.choice(DEPTHS),
        )

    def some(self, count: int, weights: tuple[int, ...] = (2, 1, 1, 1)) -> list[str]:
        kinds = self.random.choices(self.kinds, weights, k=count)
        return [self.random.choice(kind) for kind in kinds]

    def changed(self, pool: list[tuple[float, Shape]]) -> Shape:
        """A shape that differs in one or two tokens from one of the slowest."""
        *three, depth = self.random.choice(pool)[1]
        parts = [list(part) for part in three]
        for _ in range(self.random.choice((1, 1, 2))):
            part = self.random.choice(parts)
            way = self.random.choice(("add", "drop", "swap", "other"))
            at = self.random.randrange(len(part) + 1)
            if way == "add" and len(part) < 6:
                part[at:at] = self.some(1)
            elif way == "drop" and part:
                del part[min(at, len(part) - 1)]
            elif way == "swap" and part:
                part[min(at, len(part) - 1)] = self.some(1)[0]
            elif way == "other" and pool:
                part[at:at] = self.random.choice(self.random.choice(pool)[1][:3])[:2]
        prefix, unit, suffix = (tuple(part[:6]) for part in parts)
        depth = self.random.choice((depth, depth, depth, *DEPTHS))
        return Shape(prefix, unit or tuple(self.some(1)), suffix, depth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sizes", default="2048,4096", help="of the first look, smaller first")
    parser.add_argument("--only", default="", help="only ways of reading with this in their name")
    parser.add_argument("--list", type=int, default=12, help="how many of the worst are shown")
    parser.add_argument("--failures", type=int, default=25, help="stop after so many")
    options = parser.parse_args()
    small, large = map(int, options.sizes.split(","))
    search = Search(options.seed, small, large, options.only)
    print(f"{datetime.now(UTC):%Y-%m-%d} Python {platform.python_version()}", flush=True)
    gc.freeze()
    start = time.monotonic()
    search.run(options.shapes, options.failures)
    found = list(search.found.values())
    print(
        f"{options.shapes} shapes, {search.measured} readings at two sizes in "
        f"{time.monotonic() - start:.0f} s; {len(found)} measured again up to the full size"
    )
    show("grow most", sorted(found, key=lambda one: -one.ratio)[: options.list])
    for limit in (TEXT_BYTES, ARGUMENTS_BYTES):
        some = [one for one in found if one.way.full_bytes == limit]
        some.sort(key=lambda one: -one.full_s)
        show(f"slowest at {limit:,} bytes", some[: options.list])
    print(f"\n{len(search.failed)} over the bars")
    sys.exit(1 if search.failed else 0)


def show(title: str, rows: list[Growth]) -> None:
    print(f"\n{title}")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
