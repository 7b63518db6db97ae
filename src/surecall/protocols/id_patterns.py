"""Call ids for providers that take only those of one shape, such as nine letters or digits."""

import re
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from math import prod
from string import ascii_letters, digits, punctuation
from typing import Final, NamedTuple

from surecall.errors import Code, ConfigError

from .call_ids import CallIds

__all__ = ["IdShape", "find_id_shape"]

_USUAL_CHARS: Final = 24
_SAMPLES: Final = ("", "call_1", "functions.look:0")
_ALPHABETS: Final = (digits + ascii_letters, punctuation)
_ATOM: Final = re.compile(
    r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|\((?:\?(?:P<\w+>|<?[=!]|[A-Za-z-]*:?))?|.", re.DOTALL
)
"""A class, an escaped character, the beginning of a group, or any other character."""
_REPEAT: Final = re.compile(r"(?:([*+?])|\{(\d+)\}|\{(\d*),(\d*)\})[?+]?")
_ANCHORS: Final = frozenset({"^", "$", r"\A", r"\Z", r"\b"})
_LOOKING: Final = frozenset({"(?=", "(?!", "(?<=", "(?<!"})


class IdShape(NamedTuple):
    """Ids that match a pattern, as the characters that may stand in each place."""

    pattern: re.Pattern[str]
    places: tuple[str, ...]

    def fit(self, call_id: str) -> str:
        """Return an id itself when it matches, else one that is always the same for it."""
        return call_id if self.pattern.fullmatch(call_id) else self.make(call_id)

    def open(self) -> CallIds:
        """Begin to give the calls of one history their ids."""
        return CallIds(self.fit, max_ids=prod(map(len, self.places)))

    def make(self, call_id: str) -> str:
        """Return the id that stands for another one."""
        digest = sha256(call_id.encode("utf-8", "surrogatepass")).digest()
        number = int.from_bytes(digest)
        made: list[str] = []
        for chars in self.places:
            number, at = divmod(number, len(chars))
            made.append(chars[at])
        return "".join(made)


@lru_cache(maxsize=64)
def find_id_shape(pattern: str) -> IdShape:
    """Find out how ids that match a pattern can be made.

    Raises:
        ConfigError: It is not a regular expression, or too involved to make ids from.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise _unusable(pattern, f"is not a regular expression: {error}.") from error
    with suppress(re.error):  # a part that means nothing by itself
        # Long ids seldom meet; a pattern may allow only shorter ones in a way not seen here.
        for chars in range(_USUAL_CHARS, 0, -1):
            shape = IdShape(compiled, tuple(_Reader(pattern, chars).read()))
            if all(compiled.fullmatch(shape.make(sample)) for sample in _SAMPLES):
                return shape
    raise _unusable(pattern, "is too involved to make ids that match it.")


def _unusable(pattern: str, problem: str) -> ConfigError:
    return ConfigError(
        Code.INVALID_OPTION,
        f"the capability tool_id_pattern, {pattern!r}, {problem}",
        hint="Write it like ^[a-zA-Z0-9]{9}$.",
    )


class _Reader:
    """Lists the characters that may stand in each place; of alternatives it takes the first.

    What it misunderstands shows when an id made from it does not match the pattern.
    """

    def __init__(self, pattern: str, chars: int) -> None:
        self._pattern = pattern
        self._chars = chars
        self._at = 0

    def read(self) -> list[str]:
        """Read up to the end of a group or of the pattern."""
        places: list[str] = []
        is_first = True
        while found := _ATOM.match(self._pattern, self._at):
            atom, self._at = found.group(), found.end()
            if atom == ")":
                break
            if atom == "|":
                is_first = False
                continue
            part = self.read() if atom[0] == "(" else _places_of(atom)
            count = self._read_count()
            if is_first and atom not in _LOOKING:
                places += part * count
        return places

    def _read_count(self) -> int:
        """Return how often to repeat what was read: often enough for ids that seldom meet."""
        found = _REPEAT.match(self._pattern, self._at)
        if found is None:
            return 1
        self._at = found.end()
        sign, exactly, least, most = found.groups()
        if exactly:
            return int(exactly)
        if sign:
            least, most = ("1" if sign == "+" else "0"), ("1" if sign == "?" else "")
        return max(int(least or 0), min(int(most or self._chars), self._chars))


def _places_of(atom: str) -> list[str]:
    if atom in _ANCHORS:
        return []
    for alphabet in _ALPHABETS:
        if chars := "".join(char for char in alphabet if re.fullmatch(atom, char)):
            return [chars]
    return [atom[-1]]
