"""JSON values of an unknown shape, and how to speak of them."""

from typing import Any, cast

from surecall.errors import Code, RequestError
from surecall.records import clip

__all__ = ["as_fields", "as_list", "invalid", "show"]


def as_fields(value: Any) -> dict[str, Any]:
    """Return the value when it is an object, an empty one otherwise."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return the value when it is a list, an empty one otherwise."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def show(value: Any) -> str:
    """Show a value without walking through it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, str):
        return repr(clip(value, 80))
    if value in ([], {}):
        return f"an empty {'list' if isinstance(value, list) else 'object'}"
    return f"a value of type {type(value).__name__}"


def invalid(message: str, hint: str | None, code: Code = Code.INVALID_REQUEST) -> RequestError:
    """Return the refusal of a request that a client sent."""
    return RequestError(code, message, hint=hint)
