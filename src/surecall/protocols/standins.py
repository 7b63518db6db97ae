"""What stands in a history for parts of a call that no provider would take back."""

import re
from collections.abc import Container
from itertools import islice
from typing import Any, Final, cast

from surecall.errors import JSONTextError
from surecall.jsontext import encode_text

__all__ = ["UNREADABLE_KEY", "stand_in_arguments", "stand_in_name"]

UNREADABLE_KEY: Final = "_unreadable_arguments"
"""The one key of arguments that stand for some that could not be read."""

_MAX_ECHO: Final = 200
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


def stand_in_arguments(raw: Any) -> dict[str, Any]:
    """Return a small valid object that shows the start of arguments that could not be read."""
    return {UNREADABLE_KEY: _echo(raw)}


def stand_in_name(name: str, max_chars: int = 64, offered: Container[str] = ()) -> str:
    """Return a name that providers accept in history, though no such tool may exist.

    Args:
        name: The name that a call has.
        max_chars: How long a name may be.
        offered: Names of the tools of the same request; these stay, so that both agree.
    """
    if name in offered or (len(name) <= max_chars and _NAME.fullmatch(name)):
        return name
    return _NOT_IN_NAMES.sub("_", name[:max_chars]) or "unnamed"


def _echo(raw: Any) -> str:
    if not isinstance(raw, str):
        try:
            raw = encode_text(_preview(raw, 2))
        except JSONTextError:
            raw = f"({type(raw).__name__})"
    return raw[:_MAX_ECHO].encode("utf-8", "replace").decode()


def _preview(value: Any, levels: int) -> Any:
    """Return the first part of a value, at a cost that does not depend on its size."""
    if isinstance(value, str):
        return value[:_MAX_ECHO].encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        items = islice(cast("dict[Any, Any]", value).items(), 8 if levels else 0)
        return {str(key)[:_MAX_ECHO]: _preview(item, levels - 1) for key, item in items}
    if isinstance(value, list):
        head = cast("list[Any]", value)[: 8 if levels else 0]
        return [_preview(item, levels - 1) for item in head]
    return value
