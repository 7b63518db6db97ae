"""Findings about a reply or a call: changes made to it, defects found in it, and errors."""

from typing import Any

from msgspec import Struct

from surecall.base.redaction import redact_start


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


class Defect(Struct, frozen=True):
    """A finding about the shape of a reply; in itself it changes nothing."""

    code: str
    message: str
    place: str = ""


class ErrorDetail(Struct, frozen=True, omit_defaults=True):
    """One error: a stable code, what was wrong, and what to do next."""

    code: str
    message: str
    hint: str | None = None
    path: str | None = None
    """JSON pointer of the offending argument, when there is one."""
