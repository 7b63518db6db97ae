"""The texts and replies of the golden corpus, and everything that a reading of one says."""

import importlib
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from support import damaged_arguments, damaged_calls, negatives, positives, read_text
from support.cut_calls import RENDERERS, TARGET
from support.fresh_negatives import fresh_negatives
from support.third_negatives import third_negatives
from surecall import read_reply
from surecall.base.errors import SurecallError
from surecall.base.records import Reading, ToolCall, ToolSpec
from surecall.calls import ToolNames
from surecall.reading import ReplyReader
from surecall.text import encode_text

__all__ = ["CORPUS", "TOOLS", "Entry", "collect", "read_split", "read_whole"]

CORPUS = Path(__file__).with_name("reading.jsonl")
TOOLS = {
    "lamps": ToolNames(read_text.TOOLS),
    "clean": ToolNames([TARGET]),
    "offered": ToolNames(negatives.OFFERED),
}
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"path": "/tmp/a", "count": 5, "dry_run": False},
    {"note": 'say "hi" now', "keep": ["/a", "/b"]},
    {},
)
_CASES = (
    ("calls", "test_*.py"),
    ("calls/likely", "test_*.py"),
    *(("reading", f"test_{name}.py") for name in ("damaged_families", "stream", "transforms")),
)
"""Rooms of tests with tables of replies."""
_NO_REPLIES = frozenset({"HOSTILE", "MARKERS", "NOTE", "OPENERS", "REPEATED"})
_FEW = 8
_MARK = re.compile(r"[<{\[(`|]")
_SHORT = 400
"""Texts up to this length arrive character by character, which hits every split."""
_EVERY = 23


class Entry(NamedTuple):
    """A text or a body that a model sent, and the tools it was offered."""

    id: str
    tools: Any
    """The name of a set of tools, or the schema of the only one, `act`."""
    reply: str


def collect() -> Iterator[Entry]:
    """Yield every entry once, from the fixtures and generators of the tests."""
    seen: set[tuple[str, str]] = set()
    for entry in _every():
        key = (encode_text(entry.tools), entry.reply)
        if key not in seen:
            seen.add(key)
            yield entry


def _every() -> Iterator[Entry]:
    for family, written in RENDERERS.items():
        for number, arguments in enumerate(ARGUMENTS):
            text = written([("clean", arguments)], "", "")
            yield Entry(f"{family} {number}", "clean", text)
            yield Entry(f"{family} {number} in prose", "clean", f"I will clean up.\n\n{text}\n")
    for family in sorted(damaged_calls.RENDERERS):
        for number, call in enumerate(damaged_calls.damaged_calls(family, 7, _FEW)):
            yield Entry(f"{family} damaged {number}", "clean", call.text)
    for form in sorted(damaged_arguments.FORMS):
        for number, case in enumerate(damaged_arguments.damaged_arguments(form, 7, _FEW)):
            reply = case.data.decode("utf-8", "replace")
            yield Entry(f"{form} native {number}", case.schema, reply)
    for number, positive in enumerate(positives.positives(positives.SHAPES)):
        yield from _sometimes(number, f"positive {number}", positive.text)
    texts = (*negatives.negatives(), *fresh_negatives(held_out=False), *third_negatives())
    for number, negative in enumerate(texts):
        yield from _sometimes(number, f"negative {number} {negative.kind}", negative.text)
    yield from _cases()


def _sometimes(number: int, name: str, text: str) -> Iterator[Entry]:
    if number % _EVERY == 0:
        yield Entry(name, "offered", text)


def _cases() -> Iterator[Entry]:
    tests = Path(__file__).parents[1]
    for room, pattern in _CASES:
        for file in sorted((tests / room).glob(pattern)):
            module = importlib.import_module(f"{room.replace('/', '.')}.{file.stem}")
            for name, found in sorted(vars(module).items()):
                if name in _NO_REPLIES:
                    continue
                if name.isupper() and isinstance(found, (tuple, list, dict)):
                    for number, text in enumerate(_texts(found)):
                        yield Entry(f"{file.stem} {name} {number}", "lamps", text)


def _texts(cases: Any) -> Iterator[str]:
    """Yield the texts of replies in a table of a test."""
    for case in cases.values() if isinstance(cases, dict) else cases:
        text = case if isinstance(case, str) else getattr(case, "text", None)
        if isinstance(text, str) and _MARK.search(text):
            yield text


def _tools(entry: Entry) -> ToolNames:
    if isinstance(entry.tools, str):
        return TOOLS[entry.tools]
    return ToolNames([ToolSpec(name="act", parameters=entry.tools)])


def read_whole(entry: Entry) -> dict[str, Any]:
    """Return what is read in an entry that is there to its end, likely calls included."""
    try:
        return _render(read_reply(entry.reply, tools=_tools(entry), accept="likely"))
    except SurecallError as error:
        return {"refused": str(error.code)}


def read_split(entry: Entry) -> dict[str, Any]:
    """Return what is read in a text that arrives by character, or in pieces of a few."""
    chance = random.Random(entry.id)
    reader = ReplyReader(_tools(entry), accept="likely")
    at, longest = 0, 1 if len(entry.reply) <= _SHORT else 12
    while at < len(entry.reply):
        end = at + chance.randint(1, longest)
        reader.feed(entry.reply[at:end])
        at = end
    return _render(reader.close())


def _render(reading: Reading) -> dict[str, Any]:
    rendered = {
        "calls": [_render_call(call) for call in reading.calls],
        "seen": [_render_call(call) for call in reading.seen],
        "content": reading.content,
        "reasoning": reading.reasoning or "",
        "defects": [str(defect.code) for defect in reading.defects],
        "rules": [receipt.rule for receipt in reading.receipts],
    }
    kept = {key: value for key, value in rendered.items() if value}
    return json.loads(encode_text(kept))


def _render_call(call: ToolCall) -> list[Any]:
    errors = [error.code for error in call.errors]
    lossy = [receipt.rule for receipt in call.receipts if not receipt.lossless]
    rules = [receipt.rule for receipt in call.receipts if receipt.lossless]
    return [call.name, call.arguments, call.state, call.certainty, rules, lossy, errors]
