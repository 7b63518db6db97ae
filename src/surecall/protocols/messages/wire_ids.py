"""Ids of calls as the format takes them: letters, digits, `_` and `-`, and each used once."""

import re
from hashlib import sha256
from typing import Final

__all__ = ["WireIds", "wire_id"]

_VALID: Final = re.compile(r"[A-Za-z0-9_-]+")
_NOT_VALID: Final = re.compile(r"[^A-Za-z0-9_-]")
_MAX_SHOWN: Final = 40


def wire_id(call_id: str) -> str:
    """Return the id itself when the format takes it, else one that is always the same for it."""
    if _VALID.fullmatch(call_id):
        return call_id
    digest = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_NOT_VALID.sub('_', call_id[:_MAX_SHOWN]) or 'call'}_{digest}"


class WireIds:
    """Gives the calls of one history ids that differ, in order: more calls change none of them."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._suffixes: dict[str, int] = {}

    def assign(self, call_id: str) -> str:
        """Return an id for the next call, which may have the id of an earlier one."""
        wanted = given = wire_id(call_id)
        number = self._suffixes.get(wanted, 1)
        while given in self._used:
            number += 1
            given = f"{wanted}__{number}"
        self._suffixes[wanted] = number
        self._used.add(given)
        return given
