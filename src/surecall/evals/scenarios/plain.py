"""Scenarios in which nothing goes wrong: one call, several, several at once."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any, ClassVar, Final

from surecall.base.errors import Code
from surecall.base.json_values import as_list
from surecall.base.records import Message, ToolSpec, clip
from surecall.evals.cases import Declarations, Ideal, IdealCall
from surecall.evals.made_calls import MadeCall
from surecall.evals.records import Reason
from surecall.evals.scenarios.scene import (
    Conversation,
    call,
    patch_call,
    read_call,
    read_patch_answer,
    say,
)
from surecall.schema import SchemaChecker
from surecall.tools import RunProgress, Tool, ToolFailed, ToolRegistry

from .checks import FOO_PARTS, Evidence, sets_value
from .scenario import Scenario
from .scene import FOO, Scene, new_scene, only_tools, path_parts, pick_words


def _text_tool(name: str, description: str, argument: str, about: str, **more: Any) -> ToolSpec:
    """Return a tool that takes one text."""
    return ToolSpec(
        name=name,
        description=description,
        parameters={
            "type": "object",
            "properties": {argument: {"type": "string", "description": about}},
            "required": [argument],
            "additionalProperties": False,
        },
        **more,
    )


def _make_tool(spec: ToolSpec, function: Callable[..., Any]) -> Tool[..., Any]:
    """Return a tool whose schema was compiled before, because every trial makes it anew."""

    def bind(arguments: dict[str, Any], context: Any) -> Any:
        return partial(function, **arguments)

    return Tool(spec, function, binder=bind, checker=_CHECKERS[spec.name])


_SAVE_SPEC: Final = _text_tool(
    "save_word", "Save a word.", "word", "The word to save.", idempotent=True
)
_NOTE_SPEC: Final = _text_tool(
    "note_open",
    "Open a note with its key; the note holds the key of the next one.",
    "key",
    "The key of the note.",
    effect="read",
)
_CHECKERS: Final = {spec.name: SchemaChecker(spec.parameters) for spec in (_SAVE_SPEC, _NOTE_SPEC)}
_WANTED: Final = {"word": "bar"}


class SingleCall(Scenario):
    """Save one word with the only tool there is."""

    name: ClassVar[str] = "single_call"

    def set_scene(self, random: Random) -> Scene:
        """Offer the one tool; it writes to the draft."""
        scene = new_scene(random, locks=())

        async def save_word(word: str) -> dict[str, Any]:
            if scene.after.draft.get("foo") != word:
                await scene.workspace.patch([{"op": "set", "path": FOO, "value": word}])
            scene.log.add(_SAVE_SPEC.name, {"word": word}, ok=True, written=(FOO,))
            return {"saved": word}

        scene.tools = ToolRegistry([_make_tool(_SAVE_SPEC, save_word)])
        return scene

    def declare(self, scene: Scene) -> Declarations:
        """Require the one tool."""
        return Declarations(required_tools=(_SAVE_SPEC.name,))

    def next_step(self, seen: Conversation) -> Ideal:
        """Save the word until it worked."""
        if any(made.ran and made.arguments == _WANTED for made in seen.calls_of(_SAVE_SPEC.name)):
            return say()
        return call(IdealCall(_SAVE_SPEC.name, dict(_WANTED)))

    def check_final(self, seen: Evidence) -> Iterable[Reason]:
        """Take any answer."""
        if not seen.text.strip():
            yield Reason("EMPTY_FINAL")

    def check_answer(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for nothing: any words will do."""
        return ()

    def is_answered(self, seen: Evidence) -> bool | None:
        """Leave the words unchecked."""
        return None

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Look at the arguments of all calls that ran, and at every word that was sent."""
        for made in seen.attempts:
            if _has_other_word(made) or (made.executed and made.arguments != _WANTED):
                yield Reason("ARGUMENTS_WRONG", clip(repr(made.arguments), 80))

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
        """Tell whether it is the one call."""
        return made.name == _SAVE_SPEC.name and made.arguments == _WANTED


def _has_other_word(made: MadeCall) -> bool:
    """Tell whether a call is for another word, also where its arguments are cut."""
    if made.arguments:
        given = made.arguments.get("word", list(made.arguments.values()))
        words = as_list(given) if isinstance(given, list) else [given]
        return any(isinstance(word, str) and word != _WANTED["word"] for word in words)
    begun = made.raw.rpartition('"word"')[2].strip(' :"{}')
    return '"word"' in made.raw and not _WANTED["word"].startswith(begun)


class HappyPath(Scenario):
    """Read the workspace, set one value, say so."""

    name: ClassVar[str] = "happy_path"


class HappyPathParallel(Scenario):
    """Read and patch in the first reply."""

    name: ClassVar[str] = "happy_path_parallel"

    def declare(self, scene: Scene) -> Declarations:
        """Require both tools, in any order."""
        return Declarations(required_tools=("state_get", "state_patch"))

    def next_step(self, seen: Conversation) -> Ideal:
        """Make both calls at once; afterwards only what is still missing."""
        if not seen.calls:
            return call(read_call(seen), patch_call(seen))
        return read_patch_answer(seen)

    def check_original(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for two calls in any reply."""
        yield from super().check_original(seen)
        if not any(len(reply) > 1 for reply in seen.replies):
            yield Reason("NO_PARALLEL_CALLS")

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for both calls in the first reply that has any, and for one patch in all."""
        first = seen.replies[0] if seen.replies else []
        names = sorted(made.name for made in first)
        if names != ["state_get", "state_patch"]:
            yield Reason("NO_PARALLEL_CALLS", f"the first reply called {names}")
        elif not any(sets_value(made, FOO_PARTS, seen.scene.value) for made in first):
            yield Reason("NO_PARALLEL_CALLS", "its patch is another one")


class DuplicateIds(Scenario):
    """Two reads at once, and a value made of both results in the right order."""

    name: ClassVar[str] = "duplicate_ids"

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

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Look for the two reads, and at the ids of all calls."""
        ran = [reply for reply in seen.replies if any(made.ran for made in reply)]
        if not ran or not _reads_both(ran[0]):
            yield Reason("NO_PARALLEL_CALLS")
        if any(made.turn <= ran[0][0].turn for made in seen.attempts_of("state_patch") if ran):
            yield Reason("STEP_SKIPPED", "the value was set before both words were read")
        history = seen.attempt.history
        made = Counter(call.id for message in history for call in message.tool_calls)
        answered = Counter(message.tool_call_id for message in history if message.role == "tool")
        if made != answered or any(count > 1 for count in made.values()):
            yield Reason("IDS_NOT_UNIQUE")


def _reads_both(reply: Iterable[MadeCall]) -> bool:
    selected = [made.arguments.get("select") for made in reply if made.name == "state_get"]
    paths = sorted(path_parts(str(select)) for select in selected)
    return paths == [("draft", "left"), ("draft", "right")]


def _has_word(progress: RunProgress) -> bool:
    return any("word" in result.envelope.data for result in progress.results)


def _lacks_word(progress: RunProgress) -> bool:
    return not _has_word(progress)


_KEY: Final = re.compile(r'"key"\s{0,8}:\s{0,8}"([^"]{1,200})')


def _list_keys(made: MadeCall) -> list[str]:
    """Return the keys that a call sends, also where its arguments cannot be read."""
    if not made.arguments:
        return _KEY.findall(made.raw)
    key = made.arguments.get("key")
    keys = as_list(key) if isinstance(key, list) else [key]
    return [each for each in keys if isinstance(each, str)]


def _is_given(sent: str, known: Iterable[str], *, is_cut: bool) -> bool:
    """Tell whether a key is one that was given; what is put around it does not count."""
    folded = sent.casefold()
    return any(key in folded or (is_cut and key.startswith(folded)) for key in known)


_NOTES: Final = 4
_FIRST: Final = "first_key="


class MultiStepPlan(Scenario):
    """Follow notes from key to key, then write down the word that the last one holds."""

    name: ClassVar[str] = "multi_step_plan"

    def set_scene(self, random: Random) -> Scene:
        """Lay out the notes."""
        scene = new_scene(random, value=pick_words(random, 1)[0])
        scene.keys = tuple(f"k{random.getrandbits(32):08x}" for _ in range(_NOTES))

        async def note_open(key: str) -> dict[str, Any]:
            known = key in scene.keys
            scene.log.add(_NOTE_SPEC.name, {"key": key}, ok=known, read=(key,) if known else ())
            if not known:
                raise ToolFailed(Code.ARGUMENT_ERROR, "no note has this key.", "Copy it exactly.")
            place = scene.keys.index(key) + 1
            if place == len(scene.keys):
                return {"note": place, "word": scene.value}
            return {"note": place, "next_key": scene.keys[place]}

        note = _make_tool(_NOTE_SPEC, note_open)
        scene.tools = only_tools(scene, ("state_patch", "facts_commit"), note)
        return scene

    def declare(self, scene: Scene) -> Declarations:
        """Require both tools: notes are opened until one has given the word to write down."""
        return Declarations(
            required_tools=(_NOTE_SPEC.name, "state_patch"),
            available_when={_NOTE_SPEC.name: _lacks_word, "state_patch": _has_word},
        )

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Give the first key."""
        return (Message("user", f"{_FIRST}{scene.keys[0]}"),)

    def next_step(self, seen: Conversation) -> Ideal:
        """Open the next note, or write down the word."""
        words = seen.user_text.partition(_FIRST)[2].split(maxsplit=1)
        key = words[0] if words else ""
        for made in seen.calls_of(_NOTE_SPEC.name):
            if not made.ok or made.arguments.get("key") != key:
                continue
            if "word" in made.data:
                word = made.data["word"]
                return say() if seen.has_set(word) else call(patch_call(seen, word))
            key = str(made.data.get("next_key", key))
        return call(IdealCall(_NOTE_SPEC.name, {"key": key}))

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Follow the keys."""
        keys = seen.scene.keys
        given = {keys[0]: -1}
        opened: list[str] = []
        for made in seen.attempts_of(_NOTE_SPEC.name):
            key = made.arguments.get("key")
            known = [found for found, turn in given.items() if turn < made.turn]
            for sent in _list_keys(made):
                if not _is_given(sent, known, is_cut=made.is_cut or not made.is_usable):
                    yield Reason("KEY_GUESSED", clip(sent, 40))
            if made.ok and isinstance(key, str) and key not in opened:
                opened.append(key)
                given.update((found, made.turn) for found in keys[keys.index(key) + 1 :][:1])
        if tuple(opened) != keys:
            yield Reason("STEP_SKIPPED", f"{len(opened)} of {len(keys)} notes in order")
        ends = [
            made.turn
            for made in seen.calls_of(_NOTE_SPEC.name)
            if made.ok and made.arguments.get("key") == keys[-1]
        ]
        patches = [made.turn for made in seen.attempts_of("state_patch")]
        if patches and (not ends or min(patches) <= ends[0]):
            yield Reason("STEP_SKIPPED", "the word was set before the last note was open")

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
        """Tell whether a key is one of the notes' keys."""
        if made.name == _NOTE_SPEC.name:
            return made.arguments.get("key") in scene.keys
        return super().is_expected(made, scene)
