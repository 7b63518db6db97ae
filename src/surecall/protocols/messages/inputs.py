"""Arguments of calls, which are objects in this format."""

from typing import Any, cast

from surecall.errors import JSONTextError
from surecall.jsontext import decode_noting

__all__ = ["parse_object"]


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the object that JSON text holds; None unless it is one and says each thing once."""
    try:
        value, repeated = decode_noting(text)
    except JSONTextError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) and not repeated else None
