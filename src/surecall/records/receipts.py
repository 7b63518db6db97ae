"""A receipt: one change made to what the model said."""

from typing import Any

from msgspec import Struct

from surecall.redaction import redact_start

__all__ = ["Receipt", "clip"]


class Receipt(Struct, frozen=True):
    """One change made to what the model said, and whether it could lose meaning."""

    rule: str
    """Name of the rule that made the change, such as `strip_code_fence`."""
    place: str
    """Where: a JSON pointer into the reply or the arguments, or a span `start:end`."""
    before: Any
    after: Any
    lossless: bool = True
    why: str = ""


def clip(text: str, limit: int = 200) -> str:
    """Return the text, cut to `limit` characters with a note of how many were left out.

    What is cut is redacted before: half a key at the edge would be found by nobody.
    """
    if len(text) <= limit:
        return text
    return f"{redact_start(text, limit)}… (+{len(text) - limit} characters)"
