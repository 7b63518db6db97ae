"""Ids of calls: each used once, the same for the same input, and of the shape a provider takes."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from math import prod
from string import ascii_letters, digits, punctuation
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, JSONTextError, RequestError
from surecall.base.records import Message, RawCall
from surecall.text import canonical_hash

_DIGEST_CHARS: Final = 24


class CallIds:
    """Gives calls ids that differ, in order: more calls change none of them.

    Args:
        fit: Turns an id into one that the format takes.
        prefix: How ids begin that are made here, for calls that came without one.
        seed: What else such ids depend on, such as the id of the reply.
        max_ids: How many different ids `fit` can make.
    """

    def __init__(
        self,
        fit: Callable[[str], str] = str,
        *,
        prefix: str = "call_",
        seed: str = "",
        max_ids: int | None = None,
    ) -> None:
        self._fit = fit
        self._max_ids = max_ids
        self._prefix = prefix
        self._seed = seed
        self._used: set[str] = set()
        self._suffixes: dict[str, int] = {}

    def assign(self, call_id: str) -> str:
        """Return an id for the next call, which may have the id of an earlier one."""
        wanted = given = self._fit(call_id)
        number = self._suffixes.get(wanted, 1)
        if given in self._used and self._max_ids is not None and len(self._used) >= self._max_ids:
            raise RequestError(
                Code.CAPABILITY_UNSUPPORTED,
                f"the history has more calls than there are ids for: {self._max_ids}.",
                hint="Declare a tool_id_pattern with room for more, or shorten the history.",
            )
        while given in self._used:
            number += 1
            given = self._fit(f"{wanted}__{number}")
        self._suffixes[wanted] = number
        self._used.add(given)
        return given

    def assign_to(self, call: RawCall) -> str:
        """Return an id for the next call of a reply, also where the model gave none."""
        return self.assign(_text_of_id(call.id) or self._make_for(call))

    def _make_for(self, call: RawCall) -> str:
        try:
            digest = canonical_hash([self._seed, call.name, call.arguments])
        except JSONTextError:
            digest = canonical_hash([self._seed, str(call.name)])
        return self._prefix + digest[:_DIGEST_CHARS]


def pair_calls(messages: Iterable[Message], ids: CallIds | None = None) -> tuple[Message, ...]:
    """Return a history in which no two calls share an id, and each result has that of its call."""
    ids = ids or CallIds()
    waiting: dict[str, list[str]] = {}
    paired: list[Message] = []
    for message in messages:
        if message.tool_calls:
            given = [ids.assign(call.id) for call in message.tool_calls]
            waiting = {}
            for call, call_id in zip(message.tool_calls, given, strict=True):
                waiting.setdefault(call.id, []).append(call_id)
            if given != [call.id for call in message.tool_calls]:
                calls = zip(message.tool_calls, given, strict=True)
                message = replace(
                    message, tool_calls=tuple(replace(call, id=call_id) for call, call_id in calls)
                )
        elif message.role == "tool" and waiting.get(message.tool_call_id or ""):
            call_id = waiting[message.tool_call_id or ""].pop(0)
            if call_id != message.tool_call_id:
                message = replace(message, tool_call_id=call_id)
        paired.append(message)
    return tuple(paired)


def _text_of_id(call_id: Any) -> str:
    """Return what was sent as an id, as text; empty when it is none."""
    if isinstance(call_id, str):
        return call_id if call_id.strip() else ""
    return str(call_id) if type(call_id) is int and call_id.bit_length() <= 128 else ""


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
