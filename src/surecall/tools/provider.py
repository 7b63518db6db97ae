"""Tools that somebody else has: opened when a run begins, closed with its session."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from .define import Tool


@runtime_checkable
class ToolProvider(Protocol):
    """A source of tools that are known only after connecting."""

    @property
    def is_open(self) -> bool:
        """Whether it is connected: opened, not closed by all who opened it, and not lost."""
        ...

    async def open(self) -> Sequence[Tool[..., Any]]:
        """Connect unless it is connected, and return the tools; they work until `aclose`."""
        ...

    async def aclose(self) -> None:
        """Take back one `open`; the connection ends with the last one."""
        ...
