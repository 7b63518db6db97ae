"""Choosing from a list with an expression such as `stable,qwen*,!qwen/qwen3-30b*`.

Tokens are separated by commas and compared, in lower case, with an item's id, its id before the
first colon, its provider (the part before the first slash) and its tags. `*` stands for any
characters, slashes included; `!` excludes. With excludes alone everything else is chosen. Nothing,
`all`, `full` and `*` choose everything. What is chosen keeps the order of the list.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from surecall.base.errors import Code, ConfigError

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


Item = TypeVar("Item", bound=Selectable)


def select(items: Sequence[Item], expression: str) -> tuple[Item, ...]:
    """Return the items the expression chooses, in their own order; at least one."""
    includes, excludes = _parse_filter(expression)
    chosen = tuple(
        item
        for item in items
        if (not includes or _matches_any(includes, item)) and not _matches_any(excludes, item)
    )
    if not chosen:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"nothing matches {expression!r}.",
            hint="Known: " + ", ".join(item.id for item in items) + ".",
        )
    return chosen


def matches_glob(pattern: str, text: str) -> bool:
    """Return whether the whole text fits the pattern, where `*` stands for any characters."""
    return _compile_glob(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compile_glob(pattern: str) -> re.Pattern[str]:
    first, *middle = map(re.escape, pattern.split("*"))
    if not middle:
        return re.compile(first)
    last = middle.pop()
    # The leftmost place leaves the most room for what follows, so no other need be tried.
    parts = (f"(?>.*?{part})" for part in middle)
    return re.compile(f"{first}{''.join(parts)}.*{last}", re.DOTALL)


def _parse_filter(expression: str) -> tuple[list[str], list[str]]:
    """Return the tokens that include and those that exclude."""
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
    return includes, excludes


def _matches_any(tokens: list[str], item: Selectable) -> bool:
    name = item.id.lower()
    keys = {name, name.partition(":")[0], *(tag.lower() for tag in item.tags)}
    if "/" in name:
        keys.add(name.partition("/")[0])
    return any(
        token in _EVERYTHING or any(matches_glob(token, key) for key in keys) for token in tokens
    )
