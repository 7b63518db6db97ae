"""The calls that reached the tools of a workspace, as an evaluation looks at them."""

from typing import Any

from msgspec import Struct

from .patch import copy_value


class LoggedCall(Struct, frozen=True, kw_only=True):
    """One call that reached a tool of the workspace."""

    tool: str
    arguments: dict[str, Any]
    ok: bool
    code: str | None = None
    """Why it was refused."""
    read: tuple[str, ...] = ()
    """Pointers it read; `/` is the whole workspace."""
    written: tuple[str, ...] = ()
    """Paths it set, deleted or added to, or proposes to set."""
    etag: str | None = None
    """The version that its change led to."""


class CallLog:
    """The calls in the order in which they were made."""

    def __init__(self) -> None:
        self._calls: list[LoggedCall] = []

    @property
    def calls(self) -> tuple[LoggedCall, ...]:
        """Every call so far, also those that were refused."""
        return tuple(self._calls)

    def add(self, tool: str, arguments: dict[str, Any], **fields: Any) -> None:
        """Note one call."""
        self._calls.append(LoggedCall(tool=tool, arguments=copy_value(arguments), **fields))
