"""Patterns that are compiled when they are first used: many are needed seldom, and start waits."""

import re
from typing import Any, Final, cast

__all__ = ["lazy_pattern"]

_METHODS: Final = ("finditer", "findall", "fullmatch", "match", "search", "split", "sub", "subn")


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that costs nothing until it is used, and then as much as any other."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
