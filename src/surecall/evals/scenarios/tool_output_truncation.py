"""A result that is too large to be shown."""

from collections.abc import Iterable
from random import Random
from typing import Any, ClassVar

from surecall.errors import Code
from surecall.evals.records import Reason

from .base import TOLERATED, Scenario, check_recovery, reason
from .evidence import Evidence
from .reasons import ReasonCode
from .scene import Scene, new_scene
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

__all__ = ["ToolOutputTruncation"]

_BIG_CHARS = 12_000


class ToolOutputTruncation(Scenario):
    """A read whose answer is left out, and the work done all the same."""

    name: ClassVar[str] = "tool_output_truncation"
    asks: ClassVar[str] = "As `happy_path`, but the read is answered `TOOL_OUTPUT_TOO_LARGE`."
    loose: ClassVar[str] = "As `happy_path`, and some result was `TOOL_OUTPUT_TOO_LARGE`."
    strict: ClassVar[str] = (
        "The whole workspace was asked for once, and a patch that succeeded followed."
    )
    options: ClassVar[dict[str, Any]] = {**TOLERATED, "max_tool_output_bytes": 5000}
    system: ClassVar[str] = instructions(
        INTRO,
        READ_FIRST + " Ask for all of it, without select.",
        "The workspace may be too large to be shown: state_get is answered with "
        "TOOL_OUTPUT_TOO_LARGE then. That is no reason to read again; go on with step 2.",
        PATCH,
        ONE_BY_ONE,
        ON_ERROR,
        NO_COMMIT,
        ANSWER,
        ARGUMENTS,
    )

    def set_scene(self, random: Random) -> Scene:
        """Put a long text into the draft."""
        return new_scene(random, draft={"title": "Plan", "big": "y" * _BIG_CHARS})

    def check_seed(self, seen: Evidence) -> Iterable[Reason]:
        """Look for the code in what the model was told."""
        yield from super().check_seed(seen)
        told = (message.text for message in seen.attempt.history if message.role == "tool")
        if not any(Code.TOOL_OUTPUT_TOO_LARGE in text for text in told):
            yield reason(ReasonCode.GUARD_NOT_FIRED)

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for one read that was too large, and work done after it."""
        yield from check_recovery(seen, "state_get", Code.TOOL_OUTPUT_TOO_LARGE)
        place = seen.met("state_get", Code.TOOL_OUTPUT_TOO_LARGE)
        later = () if place is None else seen.calls[place + 1 :]
        if any(made.name == "state_get" for made in later):
            yield reason(ReasonCode.READ_REPEATED)
