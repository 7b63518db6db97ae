"""What a tool answers: the envelope, and the errors inside it."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

__all__ = ["Envelope", "ErrorDetail", "ToolResult"]


class ErrorDetail(Struct, frozen=True, omit_defaults=True):
    """One error: a stable code, what was wrong, and what to do next."""

    code: str
    message: str
    hint: str | None = None
    path: str | None = None
    """JSON pointer of the offending argument, when there is one."""


class Envelope(Struct, frozen=True):
    """The one shape in which every tool answers."""

    ok: bool
    tool_name: str
    data: dict[str, Any] = {}
    warnings: tuple[Any, ...] = ()
    errors: tuple[ErrorDetail, ...] = ()

    @classmethod
    def failure(
        cls,
        tool_name: str,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> "Envelope":
        """Build the envelope of a call that failed for one reason."""
        error = ErrorDetail(str(code), message, hint)
        return cls(ok=False, tool_name=tool_name, data=dict(data or {}), errors=(error,))

    @property
    def error_codes(self) -> tuple[str, ...]:
        """The codes of all errors, in order."""
        return tuple(error.code for error in self.errors)


class ToolResult(Struct, frozen=True, kw_only=True):
    """What became of one call: the envelope, and the text the model is shown."""

    call_id: str
    name: str
    envelope: Envelope
    text: str
    """The envelope as JSON text, after transforms and limits."""
    elapsed_ms: float = 0.0
    executed: bool = False
    """Whether the tool's own code was started."""
    replaced: bool = False
    """Whether the tool's own answer was replaced because of a limit."""

    @property
    def ok(self) -> bool:
        """Whether the tool succeeded."""
        return self.envelope.ok
