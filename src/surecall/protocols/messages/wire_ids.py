"""Ids of calls as the format takes them: letters, digits, `_` and `-`."""

import re
from hashlib import sha256
from typing import Final

__all__ = ["wire_id"]

_VALID: Final = re.compile(r"[A-Za-z0-9_-]+")
_NOT_VALID: Final = re.compile(r"[^A-Za-z0-9_-]")
_MAX_SHOWN: Final = 40


def wire_id(call_id: str) -> str:
    """Return the id itself when the format takes it, else one that is always the same for it."""
    if _VALID.fullmatch(call_id):
        return call_id
    digest = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_NOT_VALID.sub('_', call_id[:_MAX_SHOWN]) or 'call'}_{digest}"
