"""One call of a reply succeeds and the other fails."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from surecall.errors import Code
from surecall.evals.cases import Ideal
from surecall.evals.records import Reason

from .base import ENFORCED, Scenario, check_recovery, reason
from .conversation import AnsweredCall, Conversation
from .evidence import Evidence, MadeCall
from .flow import call, patch_call, read_call, read_patch_answer
from .reasons import ReasonCode
from .scene import Scene
from .texts import ANSWER, ARGUMENTS, INTRO, NO_COMMIT, ON_ERROR, instructions

__all__ = ["PartialSuccessFailure"]

_WRONG_PATH = "/draft/wrong"
_MAX_TRIES = 2


class PartialSuccessFailure(Scenario):
    """A read that works beside a patch that is refused, then the right patch."""

    name: ClassVar[str] = "partial_success_failure"
    asks: ClassVar[str] = (
        "Call `state_get` and a `state_patch` with a wrong path in the first reply, then patch "
        "rightly."
    )
    loose: ClassVar[str] = (
        "As `happy_path`, and some reply held a good `state_get` and a failed `state_patch`."
    )
    strict: ClassVar[str] = "That reply was the first one; a patch that succeeded followed."
    options: ClassVar[dict[str, Any]] = {
        **ENFORCED,
        "request_overrides": {"parallel_tool_calls": True},
    }
    must_read: ClassVar[bool] = False
    system: ClassVar[str] = instructions(
        INTRO,
        "This is an exercise in handling errors.",
        "Your first reply makes two calls at once, side by side: state_get, and a state_patch "
        f"that sets {_WRONG_PATH}. That path is wrong on purpose: the patch is refused with "
        "ARGUMENT_ERROR, while the read works.",
        "Your second reply makes one call: the right state_patch, which sets /draft/foo to the "
        "string bar. From then on make a single call in each reply.",
        ON_ERROR,
        NO_COMMIT,
        ANSWER,
        ARGUMENTS,
    )

    def next_step(self, seen: Conversation) -> Ideal:
        """Make the good and the bad call at once, then the right patch."""
        replies = seen.replies
        if len(replies) < _MAX_TRIES and not any(_is_partial(reply) for reply in replies):
            return call(read_call(seen), patch_call(seen, path=_WRONG_PATH))
        return read_patch_answer(seen)

    def check_seed(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for a partial failure in any reply."""
        yield from super().check_seed(seen)
        if not any(_is_partial(reply) for reply in seen.replies):
            yield reason(ReasonCode.NO_PARTIAL_FAILURE)

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for it in the first reply, and for a recovery."""
        if not seen.replies or not _is_partial(seen.replies[0]):
            yield reason(ReasonCode.NO_PARTIAL_FAILURE)
        yield from check_recovery(seen, "state_patch", Code.ARGUMENT_ERROR)

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
        """Judge no call that is wrong on purpose."""
        is_wrong = any(item.get("path") == _WRONG_PATH for item in made.operations)
        return None if is_wrong else super().is_expected(made, scene)


def _is_partial(reply: Sequence[AnsweredCall] | Sequence[MadeCall]) -> bool:
    has_read = any(made.name == "state_get" and made.ok for made in reply)
    return has_read and any(made.name == "state_patch" and not made.ok for made in reply)
