"""Arguments that are too large, and a smaller call after them."""

from collections.abc import Iterable
from typing import Any, ClassVar

from surecall.errors import Code
from surecall.evals.cases import Ideal
from surecall.evals.records import Reason

from .base import ENFORCED, Scenario, check_recovery
from .conversation import Conversation
from .evidence import Evidence, MadeCall
from .flow import call, patch_call, read_call, read_patch_answer
from .scene import Scene
from .texts import (
    ARGUMENTS,
    INTRO,
    NO_COMMIT,
    ON_ERROR,
    ONE_BY_ONE,
    READ_FIRST,
    instructions,
)

__all__ = ["LongArgumentsGuard"]

_LONG_VALUE = "x" * 400
_MAX_TRIES = 2


class LongArgumentsGuard(Scenario):
    """A value over the limit, then a short one."""

    name: ClassVar[str] = "long_arguments_guard"
    asks: ClassVar[str] = (
        "Read, try to patch a value of 300 letters or more while calls are limited to 300 bytes, "
        "then patch `bar`."
    )
    strict: ClassVar[str] = (
        "A patch was refused with `ARGUMENTS_TOO_LARGE`, and a patch that succeeded followed."
    )
    options: ClassVar[dict[str, Any]] = {**ENFORCED, "max_tool_args_bytes": 300}
    system: ClassVar[str] = instructions(
        INTRO,
        "This is an exercise in keeping within limits.",
        READ_FIRST,
        "Step 2: call state_patch to set /draft/foo to a run of 400 letters x, written out. The "
        "exact number does not matter, as long as there are 300 or more.",
        "Step 3: that call is refused with ARGUMENTS_TOO_LARGE. Do not send it again: call "
        "state_patch to set /draft/foo to the string bar. If the long value was accepted after "
        "all, do the same.",
        ONE_BY_ONE,
        ON_ERROR,
        NO_COMMIT,
        "When the patch with bar has succeeded, and not earlier, your whole answer is this one "
        "word: Done.",
        ARGUMENTS,
    )

    def next_step(self, seen: Conversation) -> Ideal:
        """Send the long value until it is refused for its size, then the short one."""
        patches = seen.calls_of("state_patch")
        was_refused = any(Code.ARGUMENTS_TOO_LARGE in made.codes for made in patches)
        if not seen.has_read:
            return call(read_call(seen))
        if was_refused or len(patches) >= _MAX_TRIES or any(made.ran for made in patches):
            return read_patch_answer(seen)
        return call(patch_call(seen, _LONG_VALUE))

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for the refusal and the recovery."""
        return check_recovery(seen, "state_patch", Code.ARGUMENTS_TOO_LARGE)

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
        """Judge no call that is too large on purpose."""
        if Code.ARGUMENTS_TOO_LARGE in made.codes:
            return None
        return super().is_expected(made, scene)
