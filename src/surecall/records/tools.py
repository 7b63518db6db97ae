"""A tool as a model sees it, and what the loop must know to run it safely."""

from typing import Any, Literal

from msgspec import Struct

__all__ = ["CoerceMode", "Effect", "ToolSpec"]

Effect = Literal["read", "write", "external"]
CoerceMode = Literal["on", "off"]


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool as data: what is sent to the model, and how its calls may be run."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """JSON Schema of the arguments."""
    effect: Effect = "write"
    """`read` runs beside other reads; `write` and `external` run alone, in order."""
    exposed: bool = True
    """Whether a model may see and call it."""
    idempotent: bool = False
    """Whether running the same call twice does no more than running it once."""
    polling: bool = False
    """Whether repeating the same call is expected (exempt from the repeated-call limit)."""
    timeout_s: float | None = None
    coerce: CoerceMode = "on"
    """Whether arguments may be adapted to the schema; `off` takes them as they are."""
    extra: dict[str, Any] = {}
    """Fields to send along with the tool, such as `cache_control`, where the format knows them."""
