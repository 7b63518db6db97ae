"""Two calls in one reply."""

from collections.abc import Iterable
from typing import Any, ClassVar

from surecall.evals.cases import Ideal
from surecall.evals.records import Reason

from .base import ENFORCED, Scenario, reason
from .conversation import Conversation
from .evidence import Evidence
from .flow import call, patch_call, read_call, read_patch_answer
from .reasons import ReasonCode
from .texts import ANSWER, ARGUMENTS, INTRO, NO_COMMIT, ON_ERROR, instructions

__all__ = ["HappyPathParallel"]


class HappyPathParallel(Scenario):
    """Read and patch in the first reply."""

    name: ClassVar[str] = "happy_path_parallel"
    asks: ClassVar[str] = "Call `state_get` and the right `state_patch` in the first reply."
    loose: ClassVar[str] = "As `happy_path`, and some reply held two calls or more."
    strict: ClassVar[str] = "The first reply with calls held both."
    options: ClassVar[dict[str, Any]] = {
        **ENFORCED,
        "request_overrides": {"parallel_tool_calls": True},
    }
    must_read: ClassVar[bool] = False
    system: ClassVar[str] = instructions(
        INTRO,
        "Your first reply makes two calls at once, side by side: state_get to see what is there, "
        "and state_patch to set /draft/foo to the string bar.",
        "The value has been approved already, so do not ask about it. Leave everything else alone.",
        ON_ERROR,
        NO_COMMIT,
        ANSWER,
        ARGUMENTS,
    )

    def next_step(self, seen: Conversation) -> Ideal:
        """Make both calls at once; afterwards only what is still missing."""
        if not seen.calls:
            return call(read_call(seen), patch_call(seen))
        return read_patch_answer(seen)

    def check_seed(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for two calls in any reply."""
        yield from super().check_seed(seen)
        if not any(len(reply) > 1 for reply in seen.replies):
            yield reason(ReasonCode.NO_PARALLEL_CALLS)

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for both calls in the first reply that has any."""
        first = [made.name for made in seen.replies[0]] if seen.replies else []
        if not {"state_get", "state_patch"} <= set(first):
            yield reason(ReasonCode.NO_PARALLEL_CALLS, f"the first reply called {first}")
