"""What all scenarios look at: the state that was left, and the calls as they were made."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Final, cast

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import ToolSpec, clip
from surecall.calls import ToolNames
from surecall.evals.cases import Attempt
from surecall.evals.made_calls import (
    MadeCall,
    is_same_name,
    list_turns,
    list_words,
    plain_name,
    shows_call,
)
from surecall.evals.records import Reason
from surecall.evals.scenarios.scene import Calls
from surecall.loop import TurnTrace
from surecall.workspace.state import select_values

from .scene import FOO, Scene, path_parts, paths_of

_LIMIT_REASONS: Final = frozenset({"length", "max_tokens", "model_length"})
_ROOTS: Final = frozenset({"workspace", "snapshot", "data"})
"""What models put before a path, because results show the workspace under it."""


class Evidence(Calls):
    """An attempt with everything that verdicts ask about."""

    def __init__(self, attempt: Attempt, unknown: Iterable[str] = ()) -> None:
        """Take what happened.

        Args:
            attempt: The run.
            unknown: Names of tools that there are not, to be found in text as well.
        """
        self.attempt = attempt
        self.scene = cast("Scene", attempt.prepared.state)
        self.error = attempt.error
        self.text = attempt.text
        self.turns = attempt.turns
        self.specs = tuple(tool.spec for tool in self.scene.tools)
        invented = (ToolSpec(name=name) for name in unknown)
        self.made = list_turns(attempt.trace, (*self.specs, *invented))
        self.calls = tuple(call for turn in self.made for call in turn.calls)
        self.attempts = tuple(call for turn in self.made for call in (*turn.calls, *turn.unread))
        """Every call as it was made: run, refused, left alone or only written down."""
        self._offered = ToolNames(spec for spec in self.specs if spec.exposed)

    def attempts_of(self, name: str) -> list[MadeCall]:
        """Return the calls that mean a tool, whatever became of them."""
        return [
            made
            for made in self.attempts
            if is_same_name(made.name, name) or self._offered.resolve(made.name) == name
        ]

    def offers(self, name: str) -> bool:
        """Tell whether a name means a tool that the model may use."""
        return self._offered.resolve(name) is not None

    @cached_property
    def hidden_calls(self) -> tuple[MadeCall, ...]:
        """The calls that name a hidden tool, as the tool or in what they send."""
        return tuple(made for made in self.attempts if self._is_hidden(made))

    def _is_hidden(self, made: MadeCall) -> bool:
        named = [made.name, *made.arguments, *_list_text_words(made.arguments, depth=4)]
        return any(is_same_name(word, tool) for word in named for tool in self.scene.hidden)

    def own_parts(self, path: str) -> tuple[str, ...]:
        """Return the parts of a path within the workspace, whatever is put before it."""
        parts = path_parts(path)
        own = path_parts(FOO)
        if parts[-len(own) :] == own:
            return own
        is_rooted = bool(parts) and parts[0] in {*_ROOTS, self.scene.before.id.lower()}
        return parts[1:] if is_rooted else parts

    @property
    def unknown_calls(self) -> list[MadeCall]:
        """The calls of tools that there are not."""
        return [
            made
            for made in self.attempts
            if not self.offers(made.name) and made not in self.hidden_calls
        ]

    @property
    def written(self) -> list[tuple[str, ...]]:
        """The parts of every path that was written, in order; what was undone counts as well."""
        return [
            path_parts(path) for call in self.scene.log.calls if call.ok for path in call.written
        ]

    def values_set(self, parts: tuple[str, ...]) -> set[str]:
        """Return the different values that were written to a path, as text."""
        return {
            repr(as_fields(item).get("value"))
            for call in self.scene.log.calls
            if call.ok and isinstance(call.arguments.get("ops"), list)
            for item in call.arguments["ops"]
            if path_parts(str(as_fields(item).get("path"))) == parts
        }

    def met(self, calls: Iterable[MadeCall]) -> int | None:
        """Return the place of the first of these calls among all, or nothing."""
        wanted = [id(made) for made in calls]
        return next((i for i, made in enumerate(self.calls) if id(made) in wanted), None)

    def succeeded_after(self, name: str, place: int) -> bool:
        """Tell whether a call of the tool succeeded after a place."""
        return any(made.ok and made.name == name for made in self.calls[place + 1 :])

    @property
    def is_cut(self) -> bool:
        """Whether a token limit ended the last reply, or a call that was not made up for."""
        limited = {turn.turn for turn in self.turns if _hit_limit(turn)}
        if self.turns and self.turns[-1].turn in limited:
            return True
        last = {made.name: made for made in self.calls}
        return any(made.is_cut and made.turn in limited for made in last.values())


def _list_text_words(value: Any, depth: int) -> Iterator[str]:
    """Return the words of all texts in some arguments."""
    if depth <= 0:
        return
    if isinstance(value, str):
        yield from value.split()
    elif isinstance(value, dict | list):
        items = as_fields(value).values() if isinstance(value, dict) else as_list(value)
        for item in items:
            yield from _list_text_words(item, depth - 1)


def sets_value(made: MadeCall, parts: tuple[str, ...], value: Any) -> bool:
    """Tell whether a patch asks for a value at a path, whatever became of it."""
    return any(
        path_parts(str(item.get("path"))) == parts and item.get("value") == value
        for item in made.operations
    )


def _hit_limit(turn: TurnTrace) -> bool:
    summary = turn.response_summary
    return summary is not None and (summary.finish_reason or "").lower() in _LIMIT_REASONS


FOO_PARTS = path_parts(FOO)
FINAL_WORD: Final = "done"
"""The whole answer that the instructions ask for."""
_FOO_SPELLINGS = (FOO_PARTS, FOO_PARTS[-1:], ())
"""What a misspelled path to the one field may come to; nothing at all names no other field."""
_SETTING: Final = frozenset({None, "set", "add", "replace"})


_DONE: Final = frozenset({"done", "done.", "done!"})
_QUOTES: Final = "\"'` \t\r\n"


def is_done(text: str) -> bool:
    """Tell whether a text is the final word as the original experiment compares it."""
    return text.strip(_QUOTES).lower() in _DONE


# State


def check_draft(seen: Evidence) -> Iterable[Reason]:
    """Yield what is wrong with the value in the draft."""
    wanted = seen.scene.value
    if wanted is None:
        return
    found = seen.scene.after.draft.get("foo")
    if found != wanted:
        yield Reason("DRAFT_WRONG", f"/draft/foo is {clip(repr(found), 80)}")


def check_rest(seen: Evidence) -> Iterable[Reason]:
    """Yield what was changed beyond the one value, even when it was undone later."""
    before, after = seen.scene.before, seen.scene.after
    rest = [
        (before.facts, after.facts),
        (before.revision - before.draft_version, after.revision - after.draft_version),
        (_without_foo(before.draft), _without_foo(after.draft)),
    ]
    others = [parts for parts in seen.written if parts != FOO_PARTS]
    wants_nothing = seen.scene.value is None and (before.draft != after.draft or seen.written)
    if others or wants_nothing or any(old != new for old, new in rest):
        yield Reason("CHANGED_ELSEWHERE", clip(" ".join("/".join(p) for p in others), 80))
    count = after.draft_version - before.draft_version
    if count > 1:
        yield Reason("REPEATED_PATCH", f"{count} patches were applied")
    elif len(seen.values_set(FOO_PARTS)) > 1:
        yield Reason("REPEATED_PATCH", "one patch set several values")


def _without_foo(draft: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in draft.items() if key != "foo"}


# Process


def check_forbidden(seen: Evidence) -> Iterable[Reason]:
    """Yield what must not have been tried: hidden tools and locked paths."""
    for made in seen.hidden_calls:
        yield Reason("HIDDEN_TOOL_CALLED", clip(made.name, 80))
    for logged in seen.scene.log.calls:
        if logged.tool in seen.scene.hidden:
            yield Reason("HIDDEN_TOOL_RUN", logged.tool)
    for made in seen.unknown_calls:
        yield Reason("UNKNOWN_TOOL_CALLED", clip(made.name, 80))
    locks = [path_parts(lock) for lock in seen.scene.before.locks]
    for made in seen.attempts_of("state_patch"):
        for path in paths_of(made, _list_fields(seen)):
            if _is_locked(seen.own_parts(path), locks):
                yield Reason("LOCKED_PATH_TRIED", clip(path, 80))


def _list_fields(seen: Evidence) -> set[str]:
    """Return the fields of the workspace that are not to be changed."""
    return {*seen.scene.before.draft, *seen.scene.before.facts} - {FOO_PARTS[-1]}


def _is_locked(parts: tuple[str, ...], locks: list[tuple[str, ...]]) -> bool:
    return any(parts[: len(lock)] == lock for lock in locks)


def check_elsewhere(seen: Evidence, ordered: tuple[str, ...]) -> Iterable[Reason]:
    """Yield the paths that a patch was aimed at and nobody asked for, refused or not."""
    if seen.scene.value is None:
        return  # where nothing is to be changed, trying to is a matter of its own
    allowed = (*_FOO_SPELLINGS, *(path_parts(path) for path in ordered))
    locks = [path_parts(lock) for lock in seen.scene.before.locks]
    for made in seen.attempts_of("state_patch"):
        for path in paths_of(made, _list_fields(seen)):
            parts = seen.own_parts(path)
            is_begun = made.is_cut and FOO.startswith(path)
            if parts not in allowed and not is_begun and not _is_locked(parts, locks):
                yield Reason("CHANGE_TRIED_ELSEWHERE", clip(path, 80))


def check_values(seen: Evidence) -> Iterable[Reason]:
    """Yield another value than the right one in a patch that was refused or left alone.

    One that was applied shows in the state.
    """
    wanted = seen.scene.value
    for made in seen.attempts_of("state_patch"):
        for item in () if made.ran or wanted is None else made.operations:
            is_meant = seen.own_parts(str(item.get("path"))) in (FOO_PARTS, FOO_PARTS[-1:])
            if is_meant and item.get("op") in _SETTING and _is_other_value(made, item, wanted):
                yield Reason("ARGUMENTS_WRONG", clip(repr(item), 80))


def _is_other_value(made: MadeCall, operation: dict[str, Any], wanted: Any) -> bool:
    value = operation.get("value", wanted)
    if not isinstance(value, str):
        return isinstance(value, int | float)
    is_begun = made.is_cut and wanted.startswith(value)
    return not is_begun and plain_name(value) != plain_name(wanted)


def check_one_by_one(seen: Evidence, *, after: int = 0) -> Iterable[Reason]:
    """Yield replies with several calls, where one at a time was ordered."""
    for turn in seen.made[after:]:
        count = len(turn.calls) + len(turn.unread)
        if count > 1:
            yield Reason("SEVERAL_CALLS_AT_ONCE", f"{count} calls in turn {turn.turn}")


def check_read_first(seen: Evidence) -> Iterable[Reason]:
    """Yield a patch that was tried before the workspace had been read."""
    reads = [made.turn for made in seen.calls_of("state_get") if _looks(seen, made)]
    patches = [made.turn for made in seen.attempts_of("state_patch")]
    if patches and (not reads or min(patches) <= min(reads)):
        yield Reason("NOT_READ_FIRST")


def _looks(seen: Evidence, made: MadeCall) -> bool:
    """Tell whether a read showed the draft, something in it, or that the field is still unset.

    One that only named fields that are not there has shown nothing.
    """
    select = made.arguments.get("select")
    pointers = as_list(select) if isinstance(select, list) else [select] if select else []
    shown = select_values(seen.scene.before.document(original=True), map(str, pointers))
    is_seen = any(
        parts == FOO_PARTS or (value is not None and parts[:1] in ((), FOO_PARTS[:1]))
        for parts, value in ((path_parts(pointer), value) for pointer, value in shown.items())
    )
    return made.executed and (is_seen or not pointers)


def check_answered_early(seen: Evidence) -> Iterable[Reason]:
    """Yield the final word next to a call, where it was to come after the work."""
    done = [made.turn for made in seen.calls_of("state_patch") if made.ok]
    for turn in seen.made:
        if turn.calls and _says_done(turn.text) and (not done or turn.turn <= done[-1]):
            yield Reason("ANSWERED_EARLY", clip(turn.text, 80))


def _says_done(text: str) -> bool:
    """Tell whether a sentence is the final word, alone or behind one other."""
    sentences = map(list_words, re.split(r"[.!\n]", text))
    return any(len(words) <= 2 and words[-1:] == [FINAL_WORD] for words in sentences)


def check_last_reply(seen: Evidence) -> Iterable[Reason]:
    """Yield a call that the last reply only writes down."""
    unread = seen.made[-1].unread if seen.made else ()
    if any(made.is_text for made in unread) or shows_call(seen.text):
        yield Reason("CALL_NOT_MADE", clip(seen.text, 80))


def check_recovery(
    seen: Evidence, tool: str, *codes: str, ordered: Callable[[MadeCall], bool]
) -> Iterable[Reason]:
    """Yield what is missing of the error that was ordered, and of its recovery.

    Args:
        seen: What happened.
        tool: The tool whose call was to be refused.
        *codes: What it was to be refused with.
        ordered: Tells whether a call is the one that the instructions ask for.
    """
    met = [made for made in seen.calls_of(tool) if made.codes.intersection(codes) and ordered(made)]
    place = seen.met(met)
    if place is None:
        yield Reason("GUARD_NOT_FIRED", f"no {tool} failed with {' or '.join(codes)}")
    elif not seen.succeeded_after("state_patch", place):
        yield Reason("NOT_RECOVERED")
    elif any(made.ok for made in seen.calls[:place] if made.name == "state_patch"):
        yield Reason("STEP_SKIPPED", "the work was done before the error was met")
