"""Python values as the JSON that stands for them in a schema."""

import math
from pathlib import PurePath
from typing import Any, cast

import msgspec
from msgspec import Struct

__all__ = ["Rendered", "render_default"]


class Rendered(Struct, frozen=True):
    """A value that has a JSON form."""

    value: Any


def render_default(value: Any) -> Rendered | None:
    """Return the JSON form of a value, or None when it has none."""
    try:
        built = msgspec.to_builtins(value, order="deterministic", enc_hook=_render_other)
    except (TypeError, ValueError, RecursionError):
        return None
    return Rendered(_with_lists(built)) if _is_json(built) else None


def _with_lists(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_with_lists(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _with_lists(item) for key, item in cast(dict[str, Any], value).items()}
    return value


def _render_other(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError


def _is_json(root: Any) -> bool:
    stack = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):  # pyright: ignore[reportUnknownVariableType] - checked here
                return False
            stack.extend(value.values())  # pyright: ignore[reportUnknownArgumentType] - checked next
        elif isinstance(value, list | tuple):
            stack.extend(value)  # pyright: ignore[reportUnknownArgumentType] - checked next
        elif isinstance(value, float):
            if not math.isfinite(value):
                return False
        elif not isinstance(value, str | int | None):
            return False
    return True
