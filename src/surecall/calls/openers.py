"""Everything at which a reader of text stops, found in one search; most texts need a cheaper one.

Most of what begins a call is a sign that prose has seldom, such as `<` or `[`. The rest begins with
a letter or a space, which no search passes over quickly. So it is looked for by its rarest
character, and only where it is in a text is the text searched for all openers.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Final

from surecall.base.records import ToolSpec

from .formats import CallFormat
from .leftovers import RESIDUE
from .names import ToolNames
from .thinking import REASONING, REASONING_CLOSERS

FENCES: Final = ("```", "~~~")
ANSWER_TAGS: Final = {"<answer>": "</answer>", "<response>": "</response>"}

_WEAK: Final = ("{", "[", "`", "~~~")
"""Signs of code and data, behind which only the name of a tool makes a call."""
_CONTENT_NAMES: Final = (b"finalanswer", b"parallel", b"multitooluse")
"""Names that are no tools, and that JSON for a person may have."""
_COMMON: Final = " etaoinsrhldcumfpgwybvk.,-_xjqz'\n"
"""Characters of prose, the most frequent first; all others are rare."""
_MAX_NAMES: Final = 24


_MAX_HEAD: Final = 8
"""How much of a literal the first look at a text compares."""


class OpenerIndex:
    """Finds the leftmost, longest of many literals, and what of the end may become one."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._known = sorted(set(literals))
        self._longest = max(map(len, self._known), default=1) - 1

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds the leftmost, longest literal."""
        return re.compile(pattern_of(self._known))

    @cached_property
    def _head(self) -> re.Pattern[str]:
        heads = sorted({literal[:_MAX_HEAD] for literal in self._known})
        return re.compile(pattern_of(heads, is_cut=True) if heads else r"(?!)")

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(
            literal[:length] for literal in self._known for length in range(1, len(literal))
        )

    @cached_property
    def _lengths(self) -> dict[str, list[int]]:
        """How long a beginning of a literal may be, longest first, by its last two characters."""
        found: dict[str, set[int]] = {}
        for prefix in self._prefixes:
            found.setdefault(prefix[-2:], set()).add(len(prefix))
        return {end: sorted(lengths, reverse=True) for end, lengths in found.items()}

    def may_begin(self, text: str) -> bool:
        """Tell whether a literal may begin in the text; one search says so for most text.

        It may be where `pattern` finds none and `held_from` nothing, never the other way round.
        """
        return self._head.search(text) is not None

    def may_grow(self, text: str, at: int) -> bool:
        """Tell whether the text from here to its end is the beginning of a longer literal."""
        return len(text) - at <= self._longest and text[at:] in self._prefixes

    def held_from(self, text: str, at: int) -> int:
        """Return from where on the end of the text may be the beginning of a literal."""
        end = len(text)
        for tail in (text[-2:], text[-1:]):
            for length in self._lengths.get(tail, ()):
                if end - length >= at and text[end - length :] in self._prefixes:
                    return end - length
        return end


def pattern_of(words: list[str], *, is_cut: bool = False, depth: int = 0) -> str:
    """Return a pattern that shares what words have in common, so that none is tried twice.

    Args:
        words: What it matches.
        is_cut: Whether it matches the beginning of a word, too, at the end of the text.
        depth: How much of the words came before.
    """
    branches: list[str] = []
    ends_here = "" in words
    for first, group in groupby((word for word in words if word), key=lambda word: word[0]):
        rest = [word[1:] for word in group]
        branches.append(re.escape(first) + pattern_of(rest, is_cut=is_cut, depth=depth + 1))
    if not branches:
        return ""
    if is_cut and depth and not ends_here:
        branches.append(r"\Z")
    joined = branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
    return f"(?:{joined})?" if ends_here else joined


class _Words:
    """Literals of which a text has most probably none."""

    def __init__(self, literals: Iterable[str]) -> None:
        known = {literal.lstrip() for literal in literals}
        self._by_rarest: dict[str, list[str]] = {}
        for word in sorted(known):
            if not any(other in word for other in known if other != word):
                self._by_rarest.setdefault(max(word, key=_rarity), []).append(word)

    def are_in(self, text: str) -> bool:
        """Tell whether one of them is in the text."""
        for char, words in self._by_rarest.items():
            if char in text:
                for word in words:
                    if word in text:
                        return True
        return False


def _rarity(char: str) -> int:
    place = _COMMON.find(char)
    return len(_COMMON) if place < 0 else place


class _Common:
    """The openers of some formats, whatever tools there are."""

    def __init__(self, formats: tuple[CallFormat, ...]) -> None:
        no_tools = ToolNames()
        literals = {*REASONING, *REASONING_CLOSERS, *RESIDUE, *FENCES, "`"}
        literals.update(*(thinking.closers for thinking in REASONING.values()))
        literals.update(*ANSWER_TAGS.items())
        literals.update(literal for form in formats for literal in form.openers(no_tools))
        self.literals = frozenset(literals)
        words = {literal for literal in literals if literal[0].isalnum() or literal[0] == " "}
        self.words = _Words(words)
        self._signs = sorted(literals - words)

    @cached_property
    def signs(self) -> re.Pattern[str]:
        """Finds the leftmost, longest opener that does not begin like a word."""
        return re.compile(pattern_of(self._signs))

    @cached_property
    def _strong_signs(self) -> list[tuple[str, re.Pattern[str]]]:
        """What finds openers that are more than a sign of code or data, by their first character.

        Most characters are not in a text at all, and a pattern that begins with one is quick.
        """
        weak = (*_WEAK, *FENCES)
        strong = (sign for sign in self._signs if sign not in weak)
        groups = groupby(strong, key=lambda sign: sign[0])
        return [(first, re.compile(pattern_of(list(group)))) for first, group in groups]

    def has_strong_sign(self, text: str) -> bool:
        """Tell whether a text has such an opener that does not begin like a word."""
        return any(first in text and found.search(text) for first, found in self._strong_signs)


@lru_cache(maxsize=8)
def _common_of(formats: tuple[CallFormat, ...]) -> _Common:
    return _Common(formats)


class Openers:
    """The openers of some formats, for some tools."""

    def __init__(self, names: tuple[str, ...], formats: tuple[CallFormat, ...]) -> None:
        tools = ToolNames(ToolSpec(name=name) for name in names)
        self._names = names
        self._openers = [(form, tuple(form.openers(tools))) for form in formats]
        self._common = _common_of(formats)
        own = {literal for _, openers in self._openers for literal in openers}
        self._own = own - self._common.literals
        self._own_words = _Words(self._own)

    @cached_property
    def formats(self) -> Mapping[str, tuple[CallFormat, ...]]:
        """The formats that may begin with a literal, strongest first."""
        places: dict[str, list[int]] = {}
        for place, (_, openers) in enumerate(self._openers):
            for opener in openers:
                places.setdefault(opener, []).append(place)
        table: dict[str, tuple[CallFormat, ...]] = {}
        for literal in self._common.literals | self._own:
            starts = (literal[:end] for end in range(1, len(literal) + 1))
            readers = {place for start in starts for place in places.get(start, ())}
            if readers:
                table[literal] = tuple(self._openers[place][0] for place in sorted(readers))
        return table

    @cached_property
    def index(self) -> OpenerIndex:
        """All openers."""
        return OpenerIndex(self._common.literals | self._own)

    @cached_property
    def pattern_in_thought(self) -> re.Pattern[str]:
        """Finds the leftmost, longest opener that may matter inside reasoning.

        A single character that begins no call within a line matters there as little as it hides
        another opener.
        """
        literals = self._common.literals | self._own
        kept = (literal for literal in literals if len(literal) > 1 or self.may_begin_call(literal))
        return re.compile(pattern_of(sorted(kept)))

    def may_begin_call(self, literal: str) -> bool:
        """Tell whether a call may begin with the literal anywhere in a line."""
        return any(not form.line_start for form in self.formats.get(literal, ()))

    def pattern_for(self, text: str, *, is_whole: bool) -> re.Pattern[str]:
        """Return what finds the leftmost, longest opener in this text.

        Only for a whole text it is worth while to look for the cheaper one.
        """
        needs_all = not is_whole or self._has_words(text)
        return self.index.pattern if needs_all else self._common.signs

    def are_in(self, text: str) -> bool:
        """Tell whether a text has an opener."""
        return self._common.signs.search(text) is not None or self._has_words(text)

    def may_matter(self, text: str, tools: ToolNames) -> bool:
        """Tell whether a text has an opener behind which there may be a call or reasoning.

        Code and data that do not name a tool hold no call.
        """
        if self._common.has_strong_sign(text) or self._has_words(text):
            return True
        return any(sign in text for sign in _WEAK) and _may_name_a_tool(text, tools)

    def _has_words(self, text: str) -> bool:
        if self._common.words.are_in(text):
            return True
        return self._has_name(text) and self._own_words.are_in(text)

    def _has_name(self, text: str) -> bool:
        if len(self._names) > _MAX_NAMES:
            return self._any_name.search(text) is not None
        return any(map(text.__contains__, self._names))

    @cached_property
    def _any_name(self) -> re.Pattern[str]:
        return re.compile(pattern_of(sorted(self._names)))


def _may_name_a_tool(text: str, tools: ToolNames) -> bool:
    """Tell whether a text may name a tool, or what else its JSON may hold for a person.

    A name in JSON may be escaped.
    """
    return "\\" in text or "&#" in text or tools.may_be_named_in(text, _CONTENT_NAMES)


@lru_cache(maxsize=64)
def _openers_of(names: tuple[str, ...], formats: tuple[CallFormat, ...]) -> Openers:
    return Openers(names, formats)


def find_openers(tools: ToolNames, formats: Sequence[CallFormat]) -> Openers:
    """Return the openers of some formats, for the tools that may be called."""
    return _openers_of(tools.names, tuple(formats))


def openers_of(tools: ToolNames, formats: Sequence[CallFormat]) -> OpenerIndex:
    """Return the index of everything that a reader of these formats stops at."""
    return find_openers(tools, formats).index


def finds_opener(text: str, tools: ToolNames, formats: Sequence[CallFormat]) -> bool:
    """Tell whether text has a mark with which a call, or reasoning around one, may begin."""
    return find_openers(tools, formats).are_in(text)


def may_hold_call(text: str, tools: ToolNames, formats: Sequence[CallFormat]) -> bool:
    """Tell whether an opener in a text may begin a call or reasoning; for most it is a no."""
    return find_openers(tools, formats).may_matter(text, tools)
