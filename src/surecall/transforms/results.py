"""Transforms of a result's envelope, before it becomes the text the model reads."""

from typing import Any, Final

from msgspec import Struct

__all__ = ["ResultContext", "tool_result_compact_envelope"]

_DROPPED_WHEN_EMPTY: Final = ("warnings", "errors", "data")


class ResultContext(Struct, frozen=True):
    """Which call an envelope answers."""

    tool_name: str
    call_id: str


def tool_result_compact_envelope(
    envelope: dict[str, Any],
    context: ResultContext,
) -> dict[str, Any]:
    """Drop `warnings`, `errors` and `data` where they are empty."""
    empty = [name for name in _DROPPED_WHEN_EMPTY if name in envelope and _is_empty(envelope[name])]
    if not empty:
        return envelope
    return {key: value for key, value in envelope.items() if key not in empty}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple | dict | str) and not value)
