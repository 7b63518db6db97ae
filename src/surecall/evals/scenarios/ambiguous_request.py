"""A request that leaves open what is meant."""

from collections.abc import Iterable
from random import Random
from typing import Any, ClassVar, Final

from surecall.evals.cases import Ideal
from surecall.evals.records import Reason
from surecall.records import Message

from .base import Scenario, reason
from .conversation import Conversation
from .evidence import Evidence
from .flow import say
from .reasons import ReasonCode
from .scene import Scene, new_scene

__all__ = ["AmbiguousRequest"]

_QUESTION_MARKS: Final = ("?", "？", "؟")
_ACTING: Final = frozenset({"state_patch", "facts_propose", "facts_commit"})


class AmbiguousRequest(Scenario):
    """Two titles, no new text: the model must ask before it changes anything."""

    name: ClassVar[str] = "ambiguous_request"
    asks: ClassVar[str] = (
        "Change \u201cthe title\u201d, where there are two and no new text is given; when in "
        "doubt, ask."
    )
    loose: ClassVar[str] = "There is an answer, and the draft is as it was."
    strict: ClassVar[str] = (
        "No call that changes or proposes anything was even tried (reading is fine), and the "
        "answer has a question mark."
    )
    options: ClassVar[dict[str, Any]] = {"tool_use_mode": "relaxed"}
    must_call: ClassVar[bool] = False
    must_read: ClassVar[bool] = False
    system: ClassVar[str] = (
        "You look after a small workspace and work on it only through tools. You may read it with "
        "state_get at any time.\n"
        "Change something only when it is clear which field is meant and what it should hold. "
        "Otherwise change nothing, and ask the user one short question that ends with a question "
        "mark."
    )

    def set_scene(self, random: Random) -> Scene:
        """Have two titles, both of which may be changed."""
        draft = {"short_title": "Plan", "long_title": "Plan for the next year"}
        return new_scene(random, value=None, draft=draft, locks=(), settable=None)

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Ask for a change without saying which."""
        text = f"workspace_id={scene.before.id}\nPlease change the title."
        return (Message("user", text),)

    def next_step(self, seen: Conversation) -> Ideal:
        """Ask."""
        return say("Which title do you mean, the short or the long one, and what should it say?")

    def check_seed(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for an answer and an unchanged draft."""
        if not seen.text.strip():
            yield reason(ReasonCode.EMPTY_FINAL)
        if seen.scene.after.draft != seen.scene.before.draft:
            yield reason(ReasonCode.CHANGED_ELSEWHERE)

    def check_final(self, seen: Evidence) -> Iterable[Reason]:
        """Look for a question."""
        if not any(mark in seen.text for mark in _QUESTION_MARKS):
            yield reason(ReasonCode.NOT_ASKED)

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Look for calls that would change something."""
        if any(made.name in _ACTING for made in seen.calls):
            yield reason(ReasonCode.ACTED_UNASKED)
