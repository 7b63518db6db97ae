"""Two calls of one tool in one reply, whose results must not be mixed up."""

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any, ClassVar

from surecall.evals.cases import Ideal
from surecall.evals.records import Reason

from .base import ENFORCED, Scenario, reason
from .conversation import Conversation
from .evidence import Evidence
from .flow import call, patch_call, read_call, say
from .reasons import ReasonCode
from .scene import Scene, new_scene, pick_words
from .texts import INTRO, NO_COMMIT, ON_ERROR, instructions

__all__ = ["DuplicateIds"]


class DuplicateIds(Scenario):
    """Two reads at once, and a value made of both results in the right order."""

    name: ClassVar[str] = "duplicate_ids"
    asks: ClassVar[str] = (
        "Read `/draft/left` and `/draft/right` with two calls in one reply, then set `/draft/foo` "
        "to both words joined by a hyphen."
    )
    loose: ClassVar[str] = "The answer is `Done.`, and `/draft/foo` holds both words in order."
    strict: ClassVar[str] = (
        "Both reads came in one reply, and every call of the conversation had an id and a result "
        "of its own."
    )
    options: ClassVar[dict[str, Any]] = {
        **ENFORCED,
        "request_overrides": {"parallel_tool_calls": True},
    }
    system: ClassVar[str] = instructions(
        INTRO,
        "Your first reply makes two calls of state_get at once, side by side: one with select "
        '["/draft/left"] and one with select ["/draft/right"]. Each result holds one word.',
        "Your second reply calls state_patch to set /draft/foo to the left word, a hyphen, and "
        "the right word, such as sun-moon. Leave everything else as it is.",
        ON_ERROR,
        NO_COMMIT,
        "When state_patch has succeeded, and not earlier, your whole answer is this one word: "
        "Done.",
        'Arguments of state_get: {"workspace_id": "<id>", "select": ["/draft/left"]}\n'
        'Arguments of state_patch: {"workspace_id": "<id>", "request_id": "r1", '
        '"ops": [{"op": "set", "path": "/draft/foo", "value": "<left>-<right>"}]}\n'
        "The user's message gives you the id.",
    )

    def set_scene(self, random: Random) -> Scene:
        """Hide two words in the draft."""
        left, right = pick_words(random, 2)
        draft = {"title": "Plan", "left": left, "right": right}
        return new_scene(random, draft=draft, value=f"{left}-{right}")

    def next_step(self, seen: Conversation) -> Ideal:
        """Read what is not known yet, join it, answer."""
        words = {side: seen.read("draft", side) for side in ("left", "right")}
        unknown = [f"/draft/{side}" for side, word in words.items() if word is None]
        if unknown:
            return call(*(read_call(seen, select=(pointer,)) for pointer in unknown))
        value = f"{words['left']}-{words['right']}"
        return say() if seen.has_set(value) else call(patch_call(seen, value))

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Look for the two reads, and at the ids of all calls."""
        if not any(_reads_both(reply) for reply in seen.replies):
            yield reason(ReasonCode.NO_PARALLEL_CALLS)
        history = seen.attempt.history
        made = Counter(call.id for message in history for call in message.tool_calls)
        answered = Counter(message.tool_call_id for message in history if message.role == "tool")
        if made != answered or any(count > 1 for count in made.values()):
            yield reason(ReasonCode.IDS_NOT_UNIQUE)


def _reads_both(reply: Iterable[Any]) -> bool:
    selected = [str(made.arguments.get("select")) for made in reply if made.name == "state_get"]
    lefts = sum("left" in text for text in selected)
    return len(selected) > 1 and lefts > 0 and any("right" in text for text in selected)
