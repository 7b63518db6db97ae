"""Canonical bytes and hash of a JSON value, for approval, idempotency and fingerprints.

Keys are sorted by code point, nothing is written that need not be, floats have their shortest
text. An integer and a float stay apart as they were decoded: `1` and `1.0` hash differently,
and so do `0.0` and `-0.0`. Keys must be text.
"""

from hashlib import sha256
from typing import Any

from .codec import encode_sorted

__all__ = ["canonical_bytes", "canonical_hash"]


def canonical_bytes(value: Any) -> bytes:
    """Return the same bytes for the same value, however its keys are ordered."""
    return encode_sorted(value)


def canonical_hash(value: Any, *, finite: bool = False) -> str:
    """Return the SHA-256 of the canonical bytes, in hexadecimal.

    `finite` says that the value is known to hold no NaN and no infinity, which saves a walk.
    """
    return sha256(encode_sorted(value, finite=finite)).hexdigest()
