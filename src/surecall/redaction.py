"""Secrets that cannot be printed, and text with secrets taken out.

Exact values are removed first: a known key is found wherever it hides, also URL- or
base64-encoded. Patterns of well-known key shapes are the second net.
"""

import base64
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, quote_plus

__all__ = ["MASK", "Secret", "redact"]

MASK: Final = "[redacted]"

_MIN_SECRET_LENGTH = 6

# Bounded repetitions over one character class each: these cannot backtrack.
_KEY_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|glpat|key)[-_][A-Za-z0-9_-]{12,200}"
    r"|\bAIza[A-Za-z0-9_-]{30,60}"
    r"|\bAKIA[A-Z0-9]{16}\b"
    r"|(?i:\bbearer )[A-Za-z0-9._~+/=-]{8,4000}"
)


_PREFIXES: Final = ("sk", "pk", "rk", "gsk", "xai", "hf", "ghp", "glpat", "key")
_SIGNS: Final = (*(prefix + sign for prefix in _PREFIXES for sign in "-_"), "AIza", "AKIA")
"""Text without any of these, and without `bearer `, holds nothing that the shapes describe."""


class Secret:
    """A value that never shows itself; call `reveal()` at the one place that sends it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __reduce__(self) -> Any:
        raise TypeError("a Secret is never pickled")


def redact(text: str, secrets: Iterable[Secret] = ()) -> str:
    """Return the text without the given secrets and without anything shaped like a key."""
    for secret in secrets:
        value = secret.reveal()
        if len(value) < _MIN_SECRET_LENGTH:
            continue
        for form in _encodings(value):
            if form in text:
                text = text.replace(form, MASK)
    # Most texts hold no key at all, and looking for its beginnings is several times as fast.
    if any(sign in text for sign in _SIGNS) or "bearer " in text.lower():
        return _KEY_SHAPES.sub(MASK, text)
    return text


def _encodings(value: str) -> tuple[str, ...]:
    raw = value.encode("utf-8", "surrogatepass")
    encoded = base64.b64encode(raw).decode("ascii").rstrip("=")
    urlsafe = base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")
    return tuple(dict.fromkeys((value, quote(value, safe=""), quote_plus(value), encoded, urlsafe)))
