"""Damaged calls of every text format, and what a reader makes of them."""

import ast
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, cast

from surecall.base.records import ToolCall
from surecall.calls import ToolNames
from surecall.reading import read_reply
from surecall.reading.arguments import read_arguments

from .cut_calls import RENDERERS, TARGET
from .damage import damage

__all__ = ["OUTCOMES", "RENDERERS", "DamagedCall", "damaged_calls", "judge"]

OUTCOMES: Final = ("right", "likely", "refused", "silent", "WRONG")
"""Certain and as written; likely; refused or noted as a defect; nothing; certain and another."""

_NAMES: Final = ToolNames([TARGET])
_WORDS: Final = (
    "/tmp/a", "Oslo, Norway", "two words", "it's", 'say "hi" now', "line\nbreak", "x = 1", "{x}",
    "a: b", "12", "true", "naïve 日本", "f(1)", "[1, 2]", "50 %", "a}", "don't, won't",
)  # fmt: skip
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NUMBER: Final = re.compile(r"(?<![\\\w\"])\d{2,}")
_MARKUP: Final = re.compile(
    r"</?[^<>\n]{1,80}>|\[/?[A-Z_]{2,30}\]|```\w*|✿\w+✿:?|>>>|\]<\]minimax\[>\["
    r"|^Action(?: Input)?:|^Call:|functools|call:",
    re.MULTILINE,
)
_TRAILING: Final = re.compile(r",\s*([}\]])")
_DECODER: Final = json.JSONDecoder()
_PYTHON: Final = re.compile(r"\bclean(?:\.call)?\(")


class DamagedCall(NamedTuple):
    """A text that was the call of a tool with effects, until something happened to it."""

    family: str
    kind: str
    text: str
    meant: tuple[dict[str, Any], ...]
    payload: str
    """What the damage was done to, afterwards."""


def _make_arguments(chance: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {
        "path": chance.choice(_WORDS),
        "count": chance.choice([5, 12, 601264, -3, 1.25]),
        "keep": chance.choice([["/a"], ["/a", "/b"], [1, [2, 3], 4], [{"b": 22}, "c"]]),
        "options": chance.choice([{"deep": True}, {"n": {"m": 10}, "k": "v"}]),
        "note": chance.choice(_WORDS),
        "dry_run": chance.random() < 0.7,
    }
    keys = chance.sample(list(values), chance.randrange(2, 5))
    return {key: values[key] for key in keys}


def damaged_calls(family: str, seed: int, count: int) -> Iterator[DamagedCall]:
    """Yield damaged texts of a family, the same for the same seed."""
    chance = random.Random(f"{family} {seed}")
    made = 0
    for _ in range(count + 1):  # some families cannot write some arguments
        for call in _damage_once(family, chance):
            yield call
            made += 1
            if made == count:
                return


def _damage_once(family: str, chance: random.Random) -> Iterator[DamagedCall]:
    meant = [_make_arguments(chance) for _ in range(chance.choice([1, 1, 2]))]
    before = chance.choice(["", "", "I'll do it now.\n"])
    after = chance.choice(["", "", "\nThen we see."])
    try:
        text = RENDERERS[family]([("clean", arguments) for arguments in meant], before, after)
    except KeyError:  # a type that the family has no word for
        return
    if not _is_read(text, meant[:1]):  # the family writes fewer calls than there are, or other text
        return
    if not _is_read(text, meant):
        meant = meant[:1]
    for kind, broken, payload in _damage_text(chance, text, meant):
        if broken != text:
            yield DamagedCall(family, kind, broken, tuple(meant), payload)


def _is_read(text: str, meant: list[dict[str, Any]]) -> bool:
    read = read_reply(text, tools=_NAMES, finish_reason="stop", accept="likely").calls
    return [call.arguments for call in read][: len(meant)] == meant


def _damage_text(
    chance: random.Random, text: str, meant: list[dict[str, Any]]
) -> Iterator[tuple[str, str, str]]:
    if spans := list(_payloads(text)):
        start, end = chance.choice(spans)
        slips = list(_damage_notation(chance, text[start:end]))
        if text[start:end].startswith('{"') and list(_strictly_read(text[start:end])):
            slips += damage(chance, text[start:end])
        for kind, payload in slips:
            yield kind, text[:start] + payload + text[end:], payload
    leaves = {leaf for arguments in meant for leaf in _leaves(arguments) if len(leaf) > 1}
    is_value = re.compile("|".join(map(re.escape, leaves)) or r"(?!)")
    for kind, broken in _damage_markup(chance, text, is_value):
        yield kind, broken, ""
    for kind, broken in _move_members(chance, text, meant[0]):
        yield kind, broken, broken[text.find("{") : broken.rfind("}") + 1]


def _payloads(text: str) -> Iterator[tuple[int, int]]:
    """Yield where JSON stands, or what stands between the brackets of another notation."""
    here, found = 0, False
    while (match := re.compile(r"[{\[]").search(text, here)) is not None:
        here = match.end()
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except json.JSONDecodeError:
            continue
        if value:
            found, here = True, end
            yield match.start(), end
    if call := _PYTHON.search(text):
        yield call.end(), _end_of_call(text, call.end())
    elif not found and "{" in text:
        yield text.index("{"), text.rindex("}") + 1


def _end_of_call(text: str, at: int) -> int:
    """Return where the parenthesis stands that ends a call in Python."""
    for end in range(at, len(text)):
        if text[end] == ")":
            try:
                ast.parse(f"f({text[at:end]})")
            except SyntaxError:
                continue
            return end
    return len(text)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value
        yield json.dumps(value, ensure_ascii=False)[1:-1]
    else:
        yield json.dumps(value)


def judge(case: DamagedCall) -> str:
    """Return what becomes of a damaged text, as one of `OUTCOMES`."""
    reading = read_reply(case.text, tools=_NAMES, finish_reason="stop")
    meant = [_canonical(arguments) for arguments in case.meant]
    certain = [call for call in reading.calls if _runs(call)]
    for call in certain:
        said = _canonical(call.arguments)
        if said in meant:
            meant.remove(said)
        elif not _is_strict(case, call):
            return "WRONG"
    others = len(reading.calls) - len(certain) + len(reading.seen)
    if len(certain) >= len(case.meant) and not others:
        return "right"
    if any(call.state == "whole" and not call.errors for call in reading.calls if not _runs(call)):
        return "likely"
    if others or reading.defects or "clean" not in case.text:
        return "refused"
    return "silent"


def _runs(call: ToolCall) -> bool:
    is_sure = call.state == "whole" and call.certainty == "certain"
    return is_sure and not call.errors and call.name == TARGET.name


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _is_strict(case: DamagedCall, call: ToolCall) -> bool:
    """Tell whether a strict reader of the damaged text would run the same call."""
    arguments: Any = call.arguments
    try:
        written = RENDERERS[case.family]([("clean", arguments)], "", "")
        if written in case.text or written in _TRAILING.sub(r"\1", case.text):
            return True
    except KeyError:
        pass
    said = _canonical(arguments)
    read = [case.payload, *_strictly_read(case.payload)]
    if any(_holds(value, said) for value in read):
        return True
    changed = [_find_changed(meant, arguments) for meant in case.meant]
    return any(value in read for values in changed for value in values)


def _find_changed(meant: Any, read: Any) -> Iterator[Any]:
    """Yield the one value that is another than was meant, and the one in it that is."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(meant, dict) and isinstance(read, dict) and meant.keys() == read.keys():
        pairs = [(meant[key], read[key]) for key in meant]
    elif isinstance(meant, list) and isinstance(read, list) and len(meant) == len(read):
        pairs = list(zip(meant, read, strict=True))
    others = [pair for pair in pairs if pair[0] != pair[1]]
    if len(others) == 1:
        yield others[0][1]
        yield from _find_changed(*others[0])


def _strictly_read(payload: str) -> Iterator[Any]:
    try:
        yield json.loads(payload)
        return
    except ValueError:
        pass
    try:
        yield json.loads(_TRAILING.sub(r"\1", payload))  # a comma too many says nothing
    except ValueError:
        try:
            for node in ast.walk(ast.parse(f"[clean({payload})]")):
                if isinstance(node, ast.Call):
                    yield {word.arg: ast.literal_eval(word.value) for word in node.keywords}
        except (ValueError, SyntaxError):
            return


def _holds(value: Any, said: str) -> bool:
    if _canonical(value) == said:
        return True
    if isinstance(value, dict):  # the arguments, perhaps beside the name, and fitted to the schema
        record = cast("dict[str, Any]", value)
        is_beside = record.get("name") == TARGET.name
        given = {key: item for key, item in record.items() if key != "name" or not is_beside}
        if said in (_canonical(given), _canonical(read_arguments(given, TARGET.parameters).value)):
            return True
    if isinstance(value, str) and value[:1] == "{":
        return any(_holds(inner, said) for inner in _strictly_read(value))
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_holds(item, said) for item in items)


def _damage_notation(chance: random.Random, text: str) -> Iterator[tuple[str, str]]:
    """Yield JSON, or a notation like it, with one slip of every kind in it."""
    marks = _find_marks(text)
    for kind, chars in (
        ("lost comma", ","),
        ("lost colon", ":="),
        ("lost bracket", "{}[]()"),
        ("lost quote", "\"'"),
    ):
        if places := [at for at in marks if text[at] in chars]:
            at = chance.choice(places)
            yield kind, text[:at] + text[at + 1 :]
    if commas := [at for at in marks if text[at] == ","]:
        at, closer = chance.choice(commas), chance.choice("}}])")
        yield "early bracket", text[:at] + closer + text[at:]
        if text.endswith(closer):
            yield "bracket moved up", text[:at] + closer + text[at:-1]
    if closers := [at for at in marks if text[at] in "}])"]:
        at = chance.choice(closers)
        yield "doubled bracket", text[:at] + text[at] + text[at:]
    at = chance.randrange(len(text))
    yield "stray bracket", text[:at] + chance.choice("}}]{[") + text[at:]
    if numbers := list(_NUMBER.finditer(text)):
        number = chance.choice(numbers)
        at = chance.randrange(*number.span())
        yield "lost digit", text[:at] + text[at + 1 :]
    yield (
        "text behind",
        text
        + chance.choice(
            [
                ', "note": "hello", "dry_run": false}',
                ' "dry_run": false}',
                "}",
                ", dry_run=False)",
                "x",
            ]
        ),
    )
    yield from _replace_quotes(chance, text)


def _replace_quotes(chance: random.Random, text: str) -> Iterator[tuple[str, str]]:
    if strings := list(_STRING.finditer(text)):
        found = chance.choice(strings)
        inner = found.group()[1:-1]
        kind, put = chance.choice(
            [
                ("other quotes", f"“{inner}”"),
                ("no quotes", inner),
                ("quote inside", f'"{inner}" x"'),
            ]
        )
        yield kind, text[: found.start()] + put + text[found.end() :]


def _find_marks(text: str) -> list[int]:
    """Return where syntax stands outside of strings in double quotes, with their quotes."""
    marks: list[int] = []
    here = 0
    for string in _STRING.finditer(text):
        marks += [at for at in range(here, string.start()) if text[at] in "{}[]():=,'"]
        marks += [string.start(), string.end() - 1]
        here = string.end()
    return marks + [at for at in range(here, len(text)) if text[at] in "{}[]():=,'"]


def _damage_markup(
    chance: random.Random, text: str, is_value: re.Pattern[str]
) -> Iterator[tuple[str, str]]:
    """Yield the text of a call with one slip of every kind in its tags and tokens.

    Args:
        chance: What decides where.
        text: The text.
        is_value: Finds what is no markup, whatever it looks like.
    """
    held = [found.span() for found in is_value.finditer(text)]
    tags = [
        found.span()
        for found in _MARKUP.finditer(text)
        if not any(start < found.end() and found.start() < end for start, end in held)
    ]
    if not tags:
        return
    for kind, change in _SLIPS.items():
        start, end = chance.choice(tags)
        yield kind, text[:start] + change(chance, text[start:end]) + text[end:]
    closers = [span for span in tags if text[span[0] : span[1]].startswith(("</", "[/", "<|/"))]
    if closers:
        start, end = chance.choice(closers)
        yield "stray closer", text + text[start:end]
        yield "stray closer, and more", f"{text}{text[start:end]} and more"
        yield "closer moved up", _moved(text, start, end, chance.choice(tags)[0])
        at = text.find(">", start, end)
        yield "damaged closer", text[: chance.randrange(start + 2, max(at, start + 3))] + text[end:]
    start, end = chance.choice(tags)
    if not any(
        value[0] in (end, end + 1, end + 9) for value in held
    ):  # else it is text of the value
        yield "text between", text[:end] + chance.choice(["x", " note ", '"', "}"]) + text[end:]


def _moved(text: str, start: int, end: int, to: int) -> str:
    rest = text[:start] + text[end:]
    to = min(to, len(rest))
    return rest[:to] + text[start:end] + rest[to:]


def _lose(chance: random.Random, tag: str) -> str:
    at = chance.randrange(len(tag))
    return tag[:at] + tag[at + 1 :]


def _double(chance: random.Random, tag: str) -> str:
    at = chance.randrange(len(tag))
    return tag[:at] + tag[at] + tag[at:]


def _swap(chance: random.Random, tag: str) -> str:
    at = chance.randrange(max(1, len(tag) - 1))
    return tag[:at] + tag[at + 1 : at + 2] + tag[at] + tag[at + 2 :]


def _replace(chance: random.Random, tag: str) -> str:
    at = chance.randrange(len(tag))
    return tag[:at] + chance.choice("x /<>=_") + tag[at + 1 :]


_SLIPS: Final[dict[str, Callable[[random.Random, str], str]]] = {
    "lost character of a tag": _lose,
    "doubled character of a tag": _double,
    "swapped characters of a tag": _swap,
    "wrong character in a tag": _replace,
    "lost tag": lambda _chance, _tag: "",
    "doubled tag": lambda _chance, tag: tag + tag,
}


def _move_members(
    chance: random.Random, text: str, arguments: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield a text whose JSON has some of the arguments beside them, or behind the whole object."""
    written = json.dumps(arguments, ensure_ascii=False)
    if len(arguments) < 2 or written not in text:
        return
    moved = dict(list(arguments.items())[-chance.randrange(1, len(arguments)) :])
    kept = {key: value for key, value in arguments.items() if key not in moved}
    beside = json.dumps(moved, ensure_ascii=False)[1:-1]
    inside = json.dumps(kept, ensure_ascii=False)
    yield "members beside", text.replace(written, f"{inside}, {beside}", 1)
    yield "members before", text.replace(written, f"{inside[:-1]}}}, {beside}}}", 1)
    yield "members in braces", text.replace(written, f"{inside}, {{{beside}}}", 1)
