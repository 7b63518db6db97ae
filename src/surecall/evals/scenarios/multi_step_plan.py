"""Steps of which each needs what the one before found out."""

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import Any, ClassVar, Final

from surecall.errors import Code
from surecall.evals.cases import Ideal, IdealCall
from surecall.evals.records import Reason
from surecall.records import Message, ToolSpec, clip
from surecall.schema import SchemaChecker
from surecall.tools import Tool, ToolFailed

from .base import ENFORCED, Scenario, reason
from .conversation import Conversation
from .evidence import Evidence, MadeCall
from .flow import call, patch_call, say
from .reasons import ReasonCode
from .scene import Scene, new_scene, only_tools, pick_words
from .texts import INTRO, NO_COMMIT, ON_ERROR, ONE_BY_ONE, instructions

__all__ = ["MultiStepPlan"]

_NOTES: Final = 4
_FIRST: Final = "first_key="
_SPEC: Final = ToolSpec(
    name="note_open",
    description="Open a note with its key; the note holds the key of the next one.",
    parameters={
        "type": "object",
        "properties": {"key": {"type": "string", "description": "The key of the note."}},
        "required": ["key"],
        "additionalProperties": False,
    },
    effect="read",
)
_CHECKER: Final = SchemaChecker(_SPEC.parameters)


class MultiStepPlan(Scenario):
    """Follow notes from key to key, then write down the word that the last one holds."""

    name: ClassVar[str] = "multi_step_plan"
    asks: ClassVar[str] = (
        f"Open {_NOTES} notes, each with the key from the one before, and set `/draft/foo` to the "
        "word in the last."
    )
    loose: ClassVar[str] = "The answer is `Done.`, and `/draft/foo` is the word of the last note."
    strict: ClassVar[str] = (
        "Every note was opened in order, and no key was used that no result had given."
    )
    options: ClassVar[dict[str, Any]] = ENFORCED
    must_read: ClassVar[bool] = False
    system: ClassVar[str] = instructions(
        INTRO,
        "Notes lie in a row, and each is locked with a key. note_open opens one. It answers with "
        "the key of the next note in next_key; the last note has a word instead.",
        "Open the first note with the key from the user's message, and go on to the last one. "
        "Keys cannot be guessed.",
        "Then call state_patch to set /draft/foo to that word. Leave everything else as it is.",
        ONE_BY_ONE,
        ON_ERROR,
        NO_COMMIT,
        "When state_patch has succeeded, and not earlier, your whole answer is this one word: "
        "Done.",
        'Arguments of note_open: {"key": "<key>"}\n'
        'Arguments of state_patch: {"request_id": "r1", '
        '"ops": [{"op": "set", "path": "/draft/foo", "value": "<word>"}]}',
    )

    def set_scene(self, random: Random) -> Scene:
        """Lay out the notes."""
        scene = new_scene(random, value=pick_words(random, 1)[0])
        scene.keys = tuple(f"k{random.getrandbits(32):08x}" for _ in range(_NOTES))

        async def note_open(key: str) -> dict[str, Any]:
            known = key in scene.keys
            scene.log.add(_SPEC.name, {"key": key}, ok=known, read=(key,) if known else ())
            if not known:
                raise ToolFailed(Code.ARGUMENT_ERROR, "no note has this key.", "Copy it exactly.")
            place = scene.keys.index(key) + 1
            if place == len(scene.keys):
                return {"note": place, "word": scene.value}
            return {"note": place, "next_key": scene.keys[place]}

        def bind(arguments: dict[str, Any], context: Any) -> Any:
            return partial(note_open, **arguments)

        note = Tool(_SPEC, note_open, binder=bind, checker=_CHECKER)
        scene.tools = only_tools(scene, ("state_patch", "facts_commit"), note)
        return scene

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Give the first key."""
        return (Message("user", f"{_FIRST}{scene.keys[0]}"),)

    def next_step(self, seen: Conversation) -> Ideal:
        """Open the next note, or write down the word."""
        words = seen.user_text.partition(_FIRST)[2].split(maxsplit=1)
        key = words[0] if words else ""
        for made in seen.calls_of(_SPEC.name):
            if not made.ok or made.arguments.get("key") != key:
                continue
            if "word" in made.data:
                word = made.data["word"]
                return say() if seen.has_set(word) else call(patch_call(seen, word))
            key = str(made.data.get("next_key", key))
        return call(IdealCall(_SPEC.name, {"key": key}))

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Follow the keys."""
        keys = seen.scene.keys
        given = {keys[0]: -1}
        opened: list[str] = []
        for made in seen.calls_of(_SPEC.name):
            key = made.arguments.get("key")
            if isinstance(key, str) and given.get(key, made.turn) >= made.turn:
                yield reason(ReasonCode.KEY_GUESSED, clip(key, 40))
            if made.ok and isinstance(key, str) and key not in opened:
                opened.append(key)
                given.update((found, made.turn) for found in keys[keys.index(key) + 1 :][:1])
        if tuple(opened) != keys:
            yield reason(ReasonCode.STEP_SKIPPED, f"{len(opened)} of {len(keys)} notes in order")

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
        """Tell whether a key is one of the notes' keys."""
        if made.name == _SPEC.name:
            return made.arguments.get("key") in scene.keys
        return super().is_expected(made, scene)
