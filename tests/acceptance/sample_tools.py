"""Small tools that write down what they were called with."""

from typing import Any

from surecall.models.transport import assistant, tool_call
from surecall.tools import Tool, tool

__all__ = ["Ledger", "call_add", "calls_add"]


class Ledger:
    """Tools and an account of the calls that really ran."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []

        @tool(effect="read")
        def add(a: int, b: int) -> dict[str, int]:
            """Add two numbers.

            Args:
                a: The first number.
                b: The second number.
            """
            self.ran.append(("add", {"a": a, "b": b}))
            return {"sum": a + b}

        @tool(effect="read")
        def note(text: str = "") -> dict[str, str]:
            """Keep a text."""
            self.ran.append(("note", {"text": text}))
            return {"text": text}

        @tool
        def fail(reason: str = "it is broken") -> None:
            """Fail, always."""
            self.ran.append(("fail", {"reason": reason}))
            raise RuntimeError(reason)

        self.add: Tool[..., Any] = add
        self.note: Tool[..., Any] = note
        self.fail: Tool[..., Any] = fail

    @property
    def tools(self) -> list[Tool[..., Any]]:
        """All of them."""
        return [self.add, self.note, self.fail]

    @property
    def names_ran(self) -> list[str]:
        """The names of the tools that ran, in order."""
        return [name for name, _ in self.ran]


def call_add(a: int = 2, b: int = 3, *, id: str = "call_1") -> dict[str, Any]:  # noqa: A002
    """Return one call of `add`."""
    return tool_call("add", {"a": a, "b": b}, id)


def calls_add(text: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return an assistant message that calls `add(2, 3)`."""
    return assistant(text, call_add(), **fields)
