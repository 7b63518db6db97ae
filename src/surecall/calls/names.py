"""The names of the tools, and which misspelt name is taken for which of them."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

from surecall.base.errors import SurecallError
from surecall.base.records import Receipt, ToolSpec
from surecall.schema import SchemaChecker

PLACEHOLDERS: Final = frozenset(
    {"no_function", "directly-answer", "directly_answer", "final answer", "none"}
)
"""Names by which models say that they call nothing."""

_PREFIXES: Final = ("functions.", "function.", "tools.", "tool.", "default_api.", "functions/")
_MAX_NAME_CHARS: Final = 256
_MAX_SOUGHT_NAMES: Final = 100
_COUNTER: Final = re.compile(r"[:!#]\d++\Z")
_SMALL_LETTERS: Final = bytes(range(256)).lower()
_SEPARATORS: Final = b"-_. "
_SEPARATOR: Final = re.compile(r"[-_. ]++")
_GLUED: Final = re.compile(r"(?:<\|[a-z_]++\|>.*+|[ ]?json)\Z", re.DOTALL)


class ToolNames:
    """Finds the one tool a written name can mean; never guesses between two."""

    def __init__(
        self,
        tools: Iterable[ToolSpec] = (),
        checkers: Mapping[str, SchemaChecker] | None = None,
        *,
        is_unknown: bool = False,
    ) -> None:
        self.is_unknown = is_unknown
        """Whether nobody knows which tools were offered: then only markup shows a call."""
        self._tools = {tool.name: tool for tool in tools}
        self.names = tuple(self._tools)
        """All names, in order."""
        self._checkers: dict[str, SchemaChecker | None] = dict(checkers or {})
        self._plain: dict[str, list[str]] = {}
        self._sought: tuple[bytes, ...] | None = None
        self._parameter_names: frozenset[str] | None = None
        for name in self._tools:
            self._plain.setdefault(_plain(name), []).append(name)

    def __bool__(self) -> bool:
        return bool(self._tools)

    def spec(self, name: str) -> ToolSpec | None:
        """Return the tool that a written name means."""
        resolved = self.resolve(name)
        return None if resolved is None else self._tools[resolved]

    def parameters(self, name: str) -> dict[str, Any] | None:
        """Return the schema of the tool that a written name means."""
        spec = self.spec(name)
        return None if spec is None else spec.parameters

    @property
    def parameter_names(self) -> frozenset[str]:
        """All names that any tool has for a parameter."""
        if self._parameter_names is None:
            self._parameter_names = frozenset(
                name for tool in self._tools.values() for name in parameter_names(tool.parameters)
            )
        return self._parameter_names

    def __contains__(self, name: str) -> bool:
        """Tell whether a tool has this very name."""
        return name in self._tools

    def checker(self, spec: ToolSpec) -> SchemaChecker | None:
        """Return the compiled schema of a tool; `None` when it cannot be used."""
        if spec.name not in self._checkers:
            try:
                checker = SchemaChecker(spec.parameters)
                checker.compile()
            except SurecallError:
                checker = None
            self._checkers[spec.name] = checker
        return self._checkers[spec.name]

    def checker_of(self, name: str) -> SchemaChecker | None:
        """Return the same for a tool of this very name."""
        found = self._checkers.get(name)
        return self.checker(self._tools[name]) if found is None else found

    def begin_with(self, text: str) -> bool:
        """Tell whether the name of a tool may be what a text, cut off here, begins."""
        return any(name.startswith(text) for name in self.names)

    def resolve(self, name: str) -> str | None:
        """Return the registered name, or `None` when no tool, or more than one, is meant."""
        if name in self._tools:
            return name
        if len(name) > _MAX_NAME_CHARS:
            return None
        spellings = _spellings(name)
        for candidate in spellings:
            if candidate in self._tools:
                return candidate
        found: set[str] = set()
        for candidate in spellings:
            found.update(self._plain.get(_plain(candidate), ()))
        return found.pop() if len(found) == 1 else None

    def resolve_closely(self, name: str) -> str | None:
        """Return the registered name for a name in text that nothing else marks as a call's.

        Other separators and capitals are the same name; separators in other places are not.
        """
        resolved = self.resolve(name)
        if resolved is None or resolved == name or not _SEPARATOR.search(name):
            return resolved
        spellings = {_SEPARATOR.sub(" ", spelling).lower() for spelling in _spellings(name)}
        return resolved if _SEPARATOR.sub(" ", resolved).lower() in spellings else None

    def may_be_named_in(self, text: str, others: Iterable[bytes] = ()) -> bool:
        """Tell whether a text may have a name in it that means a tool, in whatever spelling.

        Args:
            text: The text.
            others: More names, in small letters and without separators.
        """
        if len(self._plain) > _MAX_SOUGHT_NAMES:
            return True
        if self._sought is None:
            self._sought = tuple(name.encode("utf-8", "surrogatepass") for name in self._plain)
        text = text if all(map(bytes.isascii, self._sought)) else text.lower()
        said = text.encode("utf-8", "surrogatepass").translate(_SMALL_LETTERS, _SEPARATORS)
        return any(name in said for name in (*self._sought, *others))

    def receipt(self, name: str, place: str) -> Receipt | None:
        """Return the receipt of reading a written name as a registered one, if it differs."""
        resolved = self.resolve(name)
        if resolved is None or resolved == name:
            return None
        return Receipt("resolve_tool_name", place, name, resolved, why="one tool matches")


def parameter_names(parameters: dict[str, Any] | None) -> tuple[str, ...]:
    """Return the names of the parameters, in the order of the schema."""
    properties = (parameters or {}).get("properties")
    return tuple(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else ()


def _spellings(name: str) -> list[str]:
    """Return what is left of a name when decorations are taken off, one after the other."""
    spellings: list[str] = []
    current = name.strip().strip("\"'`").removesuffix("()").strip().rstrip(": ")
    for _ in range(4):
        spellings.append(current)
        shorter = _GLUED.sub("", current).strip()
        shorter = _COUNTER.sub("", shorter)
        for prefix in _PREFIXES:
            if shorter.startswith(prefix):
                shorter = shorter.removeprefix(prefix)
                break
        head, _, tail = shorter.partition(".")
        if head == tail:
            shorter = head
        if shorter == current:
            break
        current = shorter
    return spellings


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").replace(".", "").replace(" ", "").lower()


# where a text names them

MAX_NAME_DISTANCE: Final = 160
MAX_NAMES: Final = 2_000
"""Names of tools that are looked at in one text."""
_MAX_HEADS: Final = 12
_BETWEEN_PARTS: Final = r"(?:\\?[-_. ]){0,3}+"
_GLUED_WORD: Final = r"(?=(?:json|args)[^\w\s])"
"""A word of a format, when the mark between it and the name is lost."""
_NAME_PARTS: Final = re.compile(r"[^\W_]++")


class Name(NamedTuple):
    """The name of a tool in a text, and the tool it means."""

    start: int
    end: int
    tool: str


@lru_cache(maxsize=64)
def _name_pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return a pattern that finds the names of tools in small letters, with any separators."""
    alternatives = [
        _BETWEEN_PARTS.join(map(re.escape, parts))
        for name in sorted(names, key=len, reverse=True)
        if (parts := _NAME_PARTS.findall(name.lower()))
    ]
    return (
        re.compile(f"(?:{'|'.join(alternatives)})(?:(?!\\w)|{_GLUED_WORD})")
        if alternatives
        else None
    )


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
        is_part = start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_")
        if is_part and not text.endswith("\\n", 0, start):  # an escaped end of a line
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
