"""A tool that does not exist, and the one that does."""

from collections.abc import Iterable
from typing import Any, ClassVar

from surecall.errors import Code
from surecall.evals.records import Reason
from surecall.records import ErrorDetail, Message, ToolCall

from .base import TOLERATED, Scenario, reason
from .earlier import earlier_turn
from .evidence import Evidence
from .reasons import ReasonCode
from .scene import Scene
from .texts import (
    ANSWER,
    ARGUMENTS,
    INTRO,
    NO_COMMIT,
    ON_ERROR,
    ONE_BY_ONE,
    PATCH,
    READ_FIRST,
    instructions,
)

__all__ = ["UnknownToolRecovery"]

_UNKNOWN = "draft_write"
_REFUSAL = ErrorDetail(
    Code.TOOL_NOT_ALLOWED,
    f"'{_UNKNOWN}' is not an available tool.",
    "Call one of these, spelled exactly: state_patch, state_get.",
)


class UnknownToolRecovery(Scenario):
    """The conversation begins after a call of a tool that does not exist."""

    name: ClassVar[str] = "unknown_tool_recovery"
    asks: ClassVar[str] = (
        f"Go on after `{_UNKNOWN}`, which does not exist, was refused: do the work with the tools "
        "that are offered."
    )
    strict: ClassVar[str] = "No tool that is not offered was called again."
    options: ClassVar[dict[str, Any]] = TOLERATED
    system: ClassVar[str] = instructions(
        INTRO, READ_FIRST, PATCH, ONE_BY_ONE, ON_ERROR, NO_COMMIT, ANSWER, ARGUMENTS
    )

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Begin with a call of the tool that does not exist."""
        wrong = ToolCall(
            id="call_wrong", name=_UNKNOWN, arguments={"path": "/draft/foo", "value": "bar"}
        )
        return (*super().messages(scene), *earlier_turn(wrong, errors=(_REFUSAL,)))

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Look for names that are no tools."""
        known = {tool.name for tool in seen.scene.tools}
        for made in seen.calls:
            if Code.TOOL_NOT_ALLOWED in made.codes and made.name not in known:
                yield reason(ReasonCode.UNKNOWN_TOOL_CALLED, made.name)
        if seen.calls and not any(made.ok for made in seen.calls_of("state_patch")):
            yield reason(ReasonCode.NOT_RECOVERED)
