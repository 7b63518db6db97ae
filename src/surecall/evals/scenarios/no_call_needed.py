"""A question that needs no tool."""

from collections.abc import Iterable
from random import Random
from typing import Any, ClassVar, Final

from surecall.evals.cases import Ideal
from surecall.evals.records import Reason
from surecall.records import Message, clip

from .base import Scenario, reason
from .conversation import Conversation
from .evidence import Evidence
from .flow import say
from .reasons import ReasonCode
from .scene import Scene, new_scene

__all__ = ["NoCallNeeded"]

_ANSWERS: Final = ("7", "seven")


class NoCallNeeded(Scenario):
    """Tools are offered, and calling one is the mistake."""

    name: ClassVar[str] = "no_call_needed"
    asks: ClassVar[str] = "Answer how many days a week has, while tools are offered."
    loose: ClassVar[str] = "The answer names seven."
    strict: ClassVar[str] = "No tool was called."
    options: ClassVar[dict[str, Any]] = {"tool_use_mode": "relaxed"}
    must_call: ClassVar[bool] = False
    must_read: ClassVar[bool] = False
    system: ClassVar[str] = (
        "You look after a small workspace. Use its tools only when a request is about the "
        "workspace; answer everything else at once, without any call."
    )

    def set_scene(self, random: Random) -> Scene:
        """Make a workspace that nothing should be done to."""
        return new_scene(random, value=None)

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Ask something that everybody knows."""
        return (Message("user", "How many days does a week have? Answer with the number only."),)

    def next_step(self, seen: Conversation) -> Ideal:
        """Answer."""
        return say("7")

    def check_final(self, seen: Evidence) -> Iterable[Reason]:
        """Look for the number."""
        words = "".join(char if char.isalnum() else " " for char in seen.text.lower()).split()
        if not any(answer in words for answer in _ANSWERS):
            yield reason(ReasonCode.ANSWER_WRONG, clip(seen.text, 80))

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Look for calls."""
        if seen.calls or seen.ignored:
            yield reason(ReasonCode.NEEDLESS_CALL)
