"""An argument of the wrong type, and its correction."""

from collections.abc import Iterable
from typing import ClassVar

from surecall.errors import Code
from surecall.evals.cases import Ideal
from surecall.evals.records import Reason

from .base import Scenario, check_recovery
from .conversation import Conversation
from .evidence import Evidence, MadeCall
from .flow import call, patch_with, read_call, read_patch_answer
from .scene import Scene
from .texts import (
    ANSWER,
    ARGUMENTS,
    INTRO,
    NO_COMMIT,
    ON_ERROR,
    ONE_BY_ONE,
    READ_FIRST,
    instructions,
)

__all__ = ["TypeErrorRecovery"]

_WRONG_OPS = 7
_REFUSALS = (Code.ARGUMENTS_INVALID, Code.ARGUMENT_ERROR)
_MAX_TRIES = 2


class TypeErrorRecovery(Scenario):
    """A patch whose operations are a number, then one that is right."""

    name: ClassVar[str] = "type_error_recovery"
    asks: ClassVar[str] = "Read, send one patch whose `ops` is the number 7, then patch rightly."
    strict: ClassVar[str] = (
        "A patch was refused for its arguments, and a patch that succeeded followed."
    )
    system: ClassVar[str] = instructions(
        INTRO,
        "This is an exercise in handling errors.",
        READ_FIRST,
        f"Step 2: call state_patch with the number {_WRONG_OPS} as ops. ops has to be an array, "
        "so this call is refused because of the wrong type.",
        "Step 3: call state_patch again, now rightly, to set /draft/foo to the string bar. "
        "Leave everything else as it is.",
        ONE_BY_ONE,
        ON_ERROR,
        NO_COMMIT,
        ANSWER,
        ARGUMENTS,
    )

    def next_step(self, seen: Conversation) -> Ideal:
        """Send the wrong type until it is refused for it, then the right one."""
        patches = seen.calls_of("state_patch")
        was_refused = any(made.codes.intersection(_REFUSALS) for made in patches)
        if not seen.has_read:
            return call(read_call(seen))
        if not was_refused and len(patches) < _MAX_TRIES and not seen.has_set("bar"):
            return call(patch_with(seen, _WRONG_OPS))
        return read_patch_answer(seen)

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for the refusal and the recovery."""
        return check_recovery(seen, "state_patch", *_REFUSALS)

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
        """Judge no call that is wrong on purpose."""
        is_wrong = made.name == "state_patch" and not isinstance(made.arguments.get("ops"), list)
        return None if is_wrong else super().is_expected(made, scene)
