"""The seam between an experiment and what is tried in it."""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from surecall.loop import RunResult
from surecall.records import Message, ModelRequest
from surecall.tools import ToolRegistry

from .records import Reason, Verdict

__all__ = ["Attempt", "Case", "Grades", "Ideal", "IdealCall", "Prepared", "Suite", "failed"]


class IdealCall(Struct, frozen=True):
    """A call that a good model would make."""

    name: str
    arguments: dict[str, Any]


class Ideal(Struct, frozen=True):
    """What a good model would do next: make calls, or answer."""

    calls: tuple[IdealCall, ...] = ()
    text: str = ""


class Prepared(Struct, kw_only=True):
    """One trial, ready to run: fresh tools on fresh state."""

    tools: ToolRegistry
    system: str | None = None
    messages: tuple[Message, ...]
    options: dict[str, Any] = {}
    """Options that the scenario itself needs, such as a limit; they win over everything."""
    state: Any = None
    """What the tools work on; `grade` looks at it."""


class Attempt(Struct, frozen=True, kw_only=True):
    """What became of a prepared trial."""

    prepared: Prepared
    result: RunResult | None
    error: Exception | None
    trace: Any = None
    """The trace, also of a run that failed; None when the run never began."""
    text: str = ""
    history: tuple[Message, ...] = ()


class Grades(Struct, frozen=True, kw_only=True):
    """The two verdicts of one trial, and what its calls should have been."""

    original: Verdict
    strict: Verdict
    exact: tuple[bool | None, ...] = ()
    """Per call, in order, whether its arguments are what was expected."""
    state: dict[str, Any] = {}
    """What is kept of the state the run left behind."""


class Case(Protocol):
    """One thing to try."""

    @property
    def scenario(self) -> str:
        """The scenario it belongs to."""
        ...

    @property
    def id(self) -> str:
        """Its name within the scenario; empty when it is the only one."""
        ...

    @property
    def control(self) -> bool:
        """Whether it is a control without tools."""
        ...

    def prepare(self, seed: int) -> Prepared:
        """Set up one trial with state of its own."""
        ...

    def grade(self, attempt: Attempt) -> Grades:
        """Judge what happened; nothing is raised."""
        ...

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Say what a good model would do with this request, for simulated models."""
        ...


class Suite(Protocol):
    """A family of scenarios."""

    @property
    def name(self) -> str:
        """Its name in filters and reports."""
        ...

    @property
    def version(self) -> str:
        """Changes when its cases change; part of what makes two experiments comparable."""
        ...

    def scenarios(self) -> Sequence[str]:
        """Name the scenarios, in order."""
        ...

    def cases(self, scenario: str) -> Sequence[Case]:
        """Return the cases of a scenario, in order."""
        ...


def failed(code: str, message: str = "") -> Verdict:
    """Return a verdict of no for one reason."""
    return Verdict(ok=False, reasons=(Reason(code, message),))
