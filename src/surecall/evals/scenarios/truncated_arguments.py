"""A call that was cut off before it was complete."""

from collections.abc import Iterable
from typing import ClassVar

from surecall.errors import Code
from surecall.evals.records import Reason
from surecall.records import ErrorDetail, Message, ToolCall

from .base import Scenario, reason
from .earlier import earlier_turn
from .evidence import Evidence
from .reasons import ReasonCode
from .scene import Scene
from .texts import ANSWER, ARGUMENTS, INTRO, NO_COMMIT, ON_ERROR, ONE_BY_ONE, instructions

__all__ = ["TruncatedArguments"]

_CUT = '{"request_id": "r1", "ops": [{"op": "set", "path": "/draft/foo", "value": "bar bar bar ba'
_REFUSAL = ErrorDetail(
    Code.ARGUMENTS_TRUNCATED,
    "The arguments are incomplete: the reply reached its token limit.",
    "Nothing was run. Make the call again with less: shorter values, or several calls.",
)


class TruncatedArguments(Scenario):
    """The conversation begins after a patch that was cut off and did not run."""

    name: ClassVar[str] = "truncated_arguments"
    asks: ClassVar[str] = (
        "Go on after a patch that was cut off and refused with `ARGUMENTS_TRUNCATED`: patch `bar`."
    )
    strict: ClassVar[str] = "A whole patch that succeeded followed."
    must_read: ClassVar[bool] = False
    system: ClassVar[str] = instructions(
        INTRO,
        "Call state_patch to set /draft/foo to the string bar, once and without anything after "
        "it. Leave everything else as it is.",
        "A call that was cut off has changed nothing: send it again, whole and short.",
        ONE_BY_ONE,
        ON_ERROR,
        NO_COMMIT,
        ANSWER,
        ARGUMENTS,
    )

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Begin with a read that worked and a patch that was cut."""
        read = ToolCall(
            id="call_read", name="state_get", arguments={"workspace_id": scene.before.id}
        )
        cut = ToolCall(
            id="call_cut",
            name="state_patch",
            arguments=None,
            raw=_CUT,
            state="cut",
            errors=(_REFUSAL,),
            arguments_bytes=len(_CUT),
        )
        return (
            *super().messages(scene),
            *earlier_turn(read, data={"snapshot": scene.before.snapshot()}),
            *earlier_turn(cut, errors=(_REFUSAL,)),
        )

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for a patch that succeeded."""
        if not any(made.ok for made in seen.calls_of("state_patch")):
            yield reason(ReasonCode.NOT_RECOVERED)
