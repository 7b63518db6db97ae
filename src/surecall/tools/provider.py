"""Tools that somebody else has: opened when a run begins, closed with its session."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from .define import Tool


@runtime_checkable
class ToolProvider(Protocol):
    """Where tools come from that are known only after a connection was made."""

    @property
    def is_open(self) -> bool:
        """Whether somebody has opened it and not closed it yet."""
        ...

    async def open(self) -> Sequence[Tool[..., Any]]:
        """Connect and return the tools there are; they work until `aclose`."""
        ...

    async def aclose(self) -> None:
        """End the connection."""
        ...
