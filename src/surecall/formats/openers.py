"""One linear scan for everything that may begin something, however many formats there are."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

__all__ = ["OpenerIndex"]


class OpenerIndex:
    """Finds the leftmost, longest of many literals, and what of the end may become one."""

    def __init__(self, literals: Iterable[str]) -> None:
        known = sorted(set(literals))
        self._pattern = re.compile(_pattern_of(known))
        self._prefixes = frozenset(
            literal[:length] for literal in known for length in range(1, len(literal))
        )
        self._longest = max(map(len, known), default=1) - 1

    def search(self, text: str, at: int) -> re.Match[str] | None:
        """Return the next literal, the longest one where several begin."""
        return self._pattern.search(text, at)

    def find_all(self, text: str, at: int) -> Iterator[re.Match[str]]:
        """Yield the literals from here on, none inside another."""
        return self._pattern.finditer(text, at)

    def may_grow(self, text: str, at: int) -> bool:
        """Tell whether the text from here to its end is the beginning of a longer literal."""
        return len(text) - at <= self._longest and text[at:] in self._prefixes

    def held_from(self, text: str, at: int) -> int:
        """Return from where on the end of the text may be the beginning of a literal."""
        for start in range(max(at, len(text) - self._longest), len(text)):
            if text[start:] in self._prefixes:
                return start
        return len(text)


def _pattern_of(words: list[str]) -> str:
    """Return a pattern that shares what words have in common, so that none is tried twice."""
    branches: list[str] = []
    ends_here = "" in words
    for first, group in groupby((word for word in words if word), key=lambda word: word[0]):
        branches.append(re.escape(first) + _pattern_of([word[1:] for word in group]))
    if not branches:
        return ""
    joined = branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
    return f"(?:{joined})?" if ends_here else joined
