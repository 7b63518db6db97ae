"""Choosing from a list with an expression such as `stable,qwen*,!qwen/qwen3-30b*`.

Tokens are separated by commas and compared, in lower case, with an item's id, its id before the
first colon, its provider (the part before the first slash) and its tags. `*` stands for any
characters, slashes included; `!` excludes. With excludes alone everything else is chosen. Nothing,
`all`, `full` and `*` choose everything. What is chosen keeps the order of the list.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from surecall.errors import Code, ConfigError

_EVERYTHING: Final = frozenset({"*", "all", "full"})
_HINT: Final = "Write tokens such as 'stable', 'qwen*' or '!openai', separated by commas."


class Selectable(Protocol):
    """Anything with an id and tags."""

    @property
    def id(self) -> str:
        """What the item is called."""
        ...

    @property
    def tags(self) -> tuple[str, ...]:
        """Words it can be found by."""
        ...


class _Filter(NamedTuple):
    includes: tuple[str, ...]
    excludes: tuple[str, ...]

    def accepts(self, item: Selectable) -> bool:
        keys = _keys_of(item)
        if self.includes and not any(_token_matches(token, keys) for token in self.includes):
            return False
        return not any(_token_matches(token, keys) for token in self.excludes)


Item = TypeVar("Item", bound=Selectable)


def select(items: Sequence[Item], expression: str) -> tuple[Item, ...]:
    """Return the items the expression chooses, in their own order; at least one."""
    filter_ = _parse_filter(expression)
    chosen = tuple(item for item in items if filter_.accepts(item))
    if not chosen:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"nothing matches {expression!r}.",
            hint="Known: " + ", ".join(item.id for item in items) + ".",
        )
    return chosen


def matches_glob(pattern: str, text: str) -> bool:
    """Return whether the whole text fits the pattern, where `*` stands for any characters."""
    first, *middle = pattern.split("*")
    if not middle:
        return pattern == text
    last = middle.pop()
    if len(text) < len(first) + len(last) or not text.startswith(first):
        return False
    if not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for part in middle:
        # The leftmost place leaves the most room for what follows, so no other need be tried.
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True


def _parse_filter(expression: str) -> _Filter:
    includes: list[str] = []
    excludes: list[str] = []
    for raw in expression.split(","):
        token = raw.strip().lower()
        if not token:
            continue
        excluded = token.startswith("!")
        name = token[1:].lstrip() if excluded else token
        if not name or "!" in name or len(name.split()) > 1:
            raise ConfigError(
                Code.INVALID_FILTER, f"{raw.strip()!r} is not a token of a filter.", hint=_HINT
            )
        (excludes if excluded else includes).append(name)
    return _Filter(tuple(includes), tuple(excludes))


def _keys_of(item: Selectable) -> frozenset[str]:
    name = item.id.lower()
    keys = {name, name.partition(":")[0], *(tag.lower() for tag in item.tags)}
    if "/" in name:
        keys.add(name.partition("/")[0])
    return frozenset(keys)


def _token_matches(token: str, keys: frozenset[str]) -> bool:
    if token in _EVERYTHING or token in keys:
        return True
    return "*" in token and any(matches_glob(token, key) for key in keys)
