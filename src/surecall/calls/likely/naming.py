"""Where a text names tools, and what may be calls of them there."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct

from surecall.calls.formats import TextCall
from surecall.calls.names import ToolNames, parameter_names

MAX_NAME_DISTANCE: Final = 160
MAX_NAMES: Final = 2_000
"""Names of tools that are looked at in one text."""
MAX_CANDIDATES: Final = 256
"""Places in one text that are read as calls."""
_MAX_HEADS: Final = 12
_SEPARATORS: Final = r"(?:\\?[-_. ])?"
_NAME_PARTS: Final = re.compile(r"[^\W_]++")


class Candidate(Struct, frozen=True, kw_only=True):
    """Calls that a piece of text may stand for."""

    start: int
    end: int
    calls: tuple[TextCall, ...]
    format: str
    names: frozenset[str] = frozenset()
    """Words in it that may be the names of variables."""


class Budget:
    """How much of a text may still be looked at in vain."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is looked at."""
        return self._left <= 0

    def spend(self, characters: int) -> None:
        """Note what was looked at."""
        self._left -= characters


class Name(NamedTuple):
    """The name of a tool in a text, and the tool it means."""

    start: int
    end: int
    tool: str


@lru_cache(maxsize=64)
def _name_pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return a pattern that finds the names of tools in small letters, with any separators."""
    alternatives = [
        _SEPARATORS.join(map(re.escape, parts))
        for name in sorted(names, key=len, reverse=True)
        if (parts := _NAME_PARTS.findall(name.lower()))
    ]
    return re.compile(f"(?:{'|'.join(alternatives)})(?!\\w)") if alternatives else None


@lru_cache(maxsize=64)
def _heads(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return a few texts of which one stands in every text with a name; `""` for many names."""
    parts = [_NAME_PARTS.findall(name.lower()) for name in names]
    heads = {max(words, key=len) for words in parts if words}
    return tuple(heads) if len(heads) <= _MAX_HEADS else ("",)


def find_names(text: str, tools: ToolNames, limit: int = MAX_NAMES) -> list[Name]:
    """Return where names of tools begin and end, in any of their usual spellings."""
    pattern = _name_pattern(tools.names)
    lowered = text.lower()
    if pattern is None or len(lowered) != len(text):  # a few letters become two
        lowered = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    found: list[Name] = []
    if not any(head in lowered for head in _heads(tools.names)):
        return []
    for match in pattern.finditer(lowered) if pattern else ():
        start, end = match.span()
        if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            continue
        if name := tools.resolve_closely(text[start:end]):
            found.append(Name(start, end, name))
            if len(found) == limit:
                break
    return found


def names_a_tool(text: str, tools: ToolNames) -> bool:
    """Tell whether a text names one of the tools, in any of its usual spellings."""
    return bool(find_names(text, tools, 1))


def begin_of_name(text: str, start: int) -> int:
    """Return where a dotted name begins whose last part is the tool's."""
    least = max(0, start - MAX_NAME_DISTANCE)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in "_."):
        start -= 1
    return start


def is_tool(name: Any, tools: ToolNames) -> bool:
    """Tell whether a value names a tool."""
    return isinstance(name, str) and tools.resolve(name) is not None


def fits_exactly(value: Mapping[str, Any], parameters: dict[str, Any] | None) -> bool:
    """Tell whether arguments are all declared, and all that are required are there."""
    required = (parameters or {}).get("required")
    wanted = set(cast("list[str]", required)) if isinstance(required, list) else set[str]()
    return value.keys() <= set(parameter_names(parameters)) and wanted <= value.keys()
