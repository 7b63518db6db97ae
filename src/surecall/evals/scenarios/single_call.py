"""One tool, one obvious argument: within reach of the smallest models."""

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import Any, ClassVar, Final

from surecall.evals.cases import Ideal, IdealCall
from surecall.evals.records import Reason
from surecall.records import Message, ToolSpec, clip
from surecall.schema import SchemaChecker
from surecall.tools import Tool, ToolRegistry

from .base import ENFORCED, Scenario, reason
from .conversation import Conversation
from .evidence import Evidence, MadeCall
from .flow import call, say
from .reasons import ReasonCode
from .scene import FOO, Scene, new_scene

__all__ = ["SingleCall"]

_SPEC: Final = ToolSpec(
    name="save_word",
    description="Save a word.",
    parameters={
        "type": "object",
        "properties": {"word": {"type": "string", "description": "The word to save."}},
        "required": ["word"],
        "additionalProperties": False,
    },
    idempotent=True,
)
_CHECKER: Final = SchemaChecker(_SPEC.parameters)
_WANTED: Final = {"word": "bar"}


class SingleCall(Scenario):
    """Save one word with the only tool there is."""

    name: ClassVar[str] = "single_call"
    asks: ClassVar[str] = "Save the word `bar` with the only tool, `save_word`."
    loose: ClassVar[str] = "There is an answer, and the word that is saved is `bar`."
    strict: ClassVar[str] = (
        'Every call that ran had exactly the arguments `{"word": "bar"}`; making the same call '
        "again is forgiven, because it changes nothing."
    )
    options: ClassVar[dict[str, Any]] = {**ENFORCED, "max_turns": 6}
    must_read: ClassVar[bool] = False
    system: ClassVar[str] = "Do what the user asks with the tool. Then answer: Done."

    def set_scene(self, random: Random) -> Scene:
        """Offer the one tool; it writes to the draft."""
        scene = new_scene(random, locks=())

        async def save_word(word: str) -> dict[str, Any]:
            if scene.after.draft.get("foo") != word:
                await scene.workspace.patch([{"op": "set", "path": FOO, "value": word}])
            scene.log.add(_SPEC.name, {"word": word}, ok=True, written=(FOO,))
            return {"saved": word}

        def bind(arguments: dict[str, Any], context: Any) -> Any:
            return partial(save_word, **arguments)

        scene.tools = ToolRegistry([Tool(_SPEC, save_word, binder=bind, checker=_CHECKER)])
        return scene

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Ask for it in one short sentence."""
        return (Message("user", 'Save the word "bar".'),)

    def next_step(self, seen: Conversation) -> Ideal:
        """Save the word until it worked."""
        if any(made.ran and made.arguments == _WANTED for made in seen.calls_of(_SPEC.name)):
            return say()
        return call(IdealCall(_SPEC.name, dict(_WANTED)))

    def check_final(self, seen: Evidence) -> Iterable[Reason]:
        """Take any answer."""
        if not seen.text.strip():
            yield reason(ReasonCode.EMPTY_FINAL)

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Look at the arguments of the calls that ran."""
        for made in seen.calls:
            if made.executed and made.arguments != _WANTED:
                yield reason(ReasonCode.ARGUMENTS_WRONG, clip(repr(made.arguments), 80))

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
        """Tell whether it is the one call."""
        return made.name == _SPEC.name and made.arguments == _WANTED
