"""Calls that a model writes into its text, whether anybody reads them there or not."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from unicodedata import normalize

from surecall.base.errors import SurecallError
from surecall.base.records import Reading, ToolCall, ToolSpec
from surecall.calls import ToolNames
from surecall.reading import read_reply

from .names import LOOKALIKES

_MARKS: Final = frozenset("({[<:")
"""Without one of them no text calls anything."""
_LABELS: Final = "(?:name|tool|function|action|tool_name|function_name)"


def read_text(text: str, names: ToolNames) -> Reading | None:
    """Return the calls that a text makes, also those that take a judgement; None without any."""
    if not _MARKS.intersection(text):
        return None
    if not text.isascii():
        text = normalize("NFKC", text).translate(LOOKALIKES)
    text = _spell_out(text, names.names)
    try:
        return read_reply({"role": "assistant", "content": text}, tools=names, accept="likely")
    except SurecallError:
        return None


def find_text_calls(text: str, tools: Iterable[ToolSpec]) -> tuple[ToolCall, ...]:
    """Return the calls that a text makes."""
    reading = read_text(text, ToolNames(tools))
    return () if reading is None else reading.calls


@lru_cache(maxsize=256)
def _find_habits(names: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return ways to write a call of these tools that readers do not know, each with one they do.

    A call behind a sentence gets a line of its own; a name before an object, on a line of a list
    or in a tag is put as an action.
    """
    name = rf"(?:\w{{1,40}}[.:])?({'|'.join(map(re.escape, names))})"
    action = r"\nAction: \1\nAction Input: "
    ways = (
        (rf"(?<=[.!?:>-])[ \t]+(?={name}\s{{0,4}}[({{])", "\n"),
        (rf"(?m)^[-*`\s]{{0,8}}{name}\s{{0,4}}:?\s{{0,4}}(?={{)", action),
        (rf"(?m)^[-*\s]{{0,8}}{_LABELS}\s?:\s?[\"'`]?{name}[\"'`]?[ \t]*$", f"{action}{{}}"),
        (rf"<{_LABELS}>\s{{0,4}}{name}\s{{0,4}}</", f"{action}{{}}"),
        (rf"<\w{{1,30}} name=[\"']{name}[\"']/?>(?!\s*<)", f"{action}{{}}"),
    )
    return tuple((re.compile(way), known) for way, known in ways)


def _spell_out(text: str, names: tuple[str, ...]) -> str:
    """Return a text in which calls are written as readers know them."""
    if not any(name in text for name in names):
        return text
    for habit, known in _find_habits(names):
        text = habit.sub(known, text)
    return text
