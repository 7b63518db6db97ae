"""The control: no tools at all."""

from collections.abc import Iterable
from random import Random
from typing import Any, ClassVar

from surecall.evals.cases import Ideal
from surecall.evals.records import Reason
from surecall.records import Message

from .base import Scenario, reason
from .conversation import Conversation
from .evidence import Evidence
from .flow import say
from .reasons import ReasonCode
from .scene import Scene, new_scene

__all__ = ["ChatOnly"]


class ChatOnly(Scenario):
    """A single word is asked for, and tools are switched off."""

    name: ClassVar[str] = "chat_only"
    asks: ClassVar[str] = "Answer `Done.`; tools are switched off."
    loose: ClassVar[str] = "The answer is `Done.`"
    strict: ClassVar[str] = "No call was tried."
    is_control: ClassVar[bool] = True
    must_call: ClassVar[bool] = False
    must_read: ClassVar[bool] = False
    options: ClassVar[dict[str, Any]] = {"tool_use_mode": "disabled"}
    system: ClassVar[str] = (
        "You have no tools in this conversation, so do not try to call any.\n"
        "Your whole answer is this one word: Done."
    )

    def set_scene(self, random: Random) -> Scene:
        """Make a workspace that nothing should be done to."""
        return new_scene(random, value=None)

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Ask for the word once more."""
        return (Message("user", "Please answer with the one word: Done."),)

    def next_step(self, seen: Conversation) -> Ideal:
        """Say the word."""
        return say()

    def check_seed(self, seen: Evidence) -> Iterable[Reason]:
        """Look at the answer alone."""
        return self.check_final(seen)

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Look for calls."""
        if seen.calls or seen.ignored:
            yield reason(ReasonCode.NEEDLESS_CALL)
