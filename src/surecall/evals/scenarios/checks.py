"""What all scenarios look at: the state that was left, and the calls as they were made."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from surecall.base.json_values import as_list
from surecall.base.records import clip
from surecall.evals.as_made import MadeCall, plain_name
from surecall.evals.final_text import list_words, shows_call
from surecall.evals.records import Reason
from surecall.workspace.state import select_values

from .evidence import Evidence
from .paths import path_parts, paths_of
from .scene import FOO
from .wording import ReasonCode

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
        yield Reason(ReasonCode.DRAFT_WRONG, f"/draft/foo is {clip(repr(found), 80)}")


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
        yield Reason(ReasonCode.CHANGED_ELSEWHERE, clip(" ".join("/".join(p) for p in others), 80))
    count = after.draft_version - before.draft_version
    if count > 1:
        yield Reason(ReasonCode.REPEATED_PATCH, f"{count} patches were applied")
    elif len(seen.values_set(FOO_PARTS)) > 1:
        yield Reason(ReasonCode.REPEATED_PATCH, "one patch set several values")


def _without_foo(draft: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in draft.items() if key != "foo"}


# Process


def check_forbidden(seen: Evidence) -> Iterable[Reason]:
    """Yield what must not have been tried: hidden tools and locked paths."""
    for made in seen.hidden_calls:
        yield Reason(ReasonCode.HIDDEN_TOOL_CALLED, clip(made.name, 80))
    for logged in seen.scene.log.calls:
        if logged.tool in seen.scene.hidden:
            yield Reason(ReasonCode.HIDDEN_TOOL_RUN, logged.tool)
    for made in seen.unknown_calls:
        yield Reason(ReasonCode.UNKNOWN_TOOL_CALLED, clip(made.name, 80))
    locks = [path_parts(lock) for lock in seen.scene.before.locks]
    for made in seen.attempts_of("state_patch"):
        for path in paths_of(made, _list_fields(seen)):
            if _is_locked(seen.own_parts(path), locks):
                yield Reason(ReasonCode.LOCKED_PATH_TRIED, clip(path, 80))


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
                yield Reason(ReasonCode.CHANGE_TRIED_ELSEWHERE, clip(path, 80))


def check_values(seen: Evidence) -> Iterable[Reason]:
    """Yield another value than the right one in a patch that was refused or left alone.

    One that was applied shows in the state.
    """
    wanted = seen.scene.value
    for made in seen.attempts_of("state_patch"):
        for item in () if made.ran or wanted is None else made.operations:
            is_meant = seen.own_parts(str(item.get("path"))) in (FOO_PARTS, FOO_PARTS[-1:])
            if is_meant and item.get("op") in _SETTING and _is_other_value(made, item, wanted):
                yield Reason(ReasonCode.ARGUMENTS_WRONG, clip(repr(item), 80))


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
            yield Reason(ReasonCode.SEVERAL_CALLS_AT_ONCE, f"{count} calls in turn {turn.turn}")


def check_read_first(seen: Evidence) -> Iterable[Reason]:
    """Yield a patch that was tried before the workspace had been read."""
    reads = [made.turn for made in seen.calls_of("state_get") if _looks(seen, made)]
    patches = [made.turn for made in seen.attempts_of("state_patch")]
    if patches and (not reads or min(patches) <= min(reads)):
        yield Reason(ReasonCode.NOT_READ_FIRST)


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
            yield Reason(ReasonCode.ANSWERED_EARLY, clip(turn.text, 80))


def _says_done(text: str) -> bool:
    """Tell whether a sentence is the final word, alone or behind one other."""
    sentences = map(list_words, re.split(r"[.!\n]", text))
    return any(len(words) <= 2 and words[-1:] == [FINAL_WORD] for words in sentences)


def check_last_reply(seen: Evidence) -> Iterable[Reason]:
    """Yield a call that the last reply only writes down."""
    unread = seen.made[-1].unread if seen.made else ()
    if any(made.is_text for made in unread) or shows_call(seen.text):
        yield Reason(ReasonCode.CALL_NOT_MADE, clip(seen.text, 80))


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
        yield Reason(ReasonCode.GUARD_NOT_FIRED, f"no {tool} failed with {' or '.join(codes)}")
    elif not seen.succeeded_after("state_patch", place):
        yield Reason(ReasonCode.NOT_RECOVERED)
    elif any(made.ok for made in seen.calls[:place] if made.name == "state_patch"):
        yield Reason(ReasonCode.STEP_SKIPPED, "the work was done before the error was met")
