"""Scenarios in which a call fails, and what follows is what counts."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import ClassVar

from surecall.base.errors import Code
from surecall.base.records import ErrorDetail, Message, ToolCall, clip
from surecall.evals.cases import Declarations, Ideal
from surecall.evals.made_calls import MadeCall
from surecall.evals.records import Reason
from surecall.evals.scenarios.scene import (
    Conversation,
    call,
    patch_call,
    patch_with,
    read_call,
    read_patch_answer,
)

from .checks import FOO_PARTS, Evidence, check_one_by_one, check_recovery
from .scenario import Scenario
from .scene import Scene, earlier_turn, new_scene, path_parts, paths_of

_WRONG_PATH = "/draft/wrong"
_MAX_TRIES = 2


class PartialSuccessFailure(Scenario):
    """A read that works next to a patch that is refused, then the right patch."""

    name: ClassVar[str] = "partial_success_failure"

    def next_step(self, seen: Conversation) -> Ideal:
        """Make the good and the bad call at once, then the right patch."""
        replies = seen.replies
        if len(replies) < _MAX_TRIES and not any(_is_partial(reply) for reply in replies):
            return call(read_call(seen), patch_call(seen, path=_WRONG_PATH))
        return read_patch_answer(seen)

    def check_original(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for a partial failure in any reply."""
        yield from super().check_original(seen)
        if not any(_is_partial(reply) for reply in seen.replies):
            yield Reason("NO_PARTIAL_FAILURE")

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for it in the first reply, and for a recovery."""
        first = seen.replies[0] if seen.replies else []
        if len(first) != 2 or not _is_partial(first) or not any(map(_is_wrong, first)):
            yield Reason("NO_PARTIAL_FAILURE")
        tried = [made.turn for made in seen.attempts_of("state_patch") if _is_wrong(made)]
        if tried and max(tried) > min(tried):
            yield Reason("REFUSED_CALL_REPEATED", _WRONG_PATH)
        yield from check_recovery(seen, "state_patch", Code.ARGUMENT_ERROR, ordered=_is_wrong)
        yield from check_one_by_one(seen, after=1)

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
        """Judge no call that is wrong on purpose."""
        is_wrong = any(item.get("path") == _WRONG_PATH for item in made.operations)
        return None if is_wrong else super().is_expected(made, scene)


def _is_wrong(made: MadeCall) -> bool:
    """Tell whether a patch is the one that was ordered: it sets the wrong path, and no other."""
    paths = {path_parts(path) for path in paths_of(made)}
    deletes = any(item.get("op") in {"delete", "remove"} for item in made.operations)
    return paths == {path_parts(_WRONG_PATH)} and not deletes


def _is_partial(reply: Sequence[MadeCall]) -> bool:
    has_read = any(made.name == "state_get" and made.ok for made in reply)
    return has_read and any(made.name == "state_patch" and not made.ok for made in reply)


_MIN_ID_PART = 8
"""So many signs of an id are no chance."""


class MissingWorkspaceId(Scenario):
    """The plain course of events, without naming the workspace."""

    name: ClassVar[str] = "missing_workspace_id"

    def next_step(self, seen: Conversation) -> Ideal:
        """Read and patch without the id."""
        return read_patch_answer(seen, with_id=False)

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Look for the id in every call."""
        own_id = _fold(seen.scene.before.id)
        ends = range(_MIN_ID_PART, len(own_id) + 1)
        parts = ["workspaceid", *(own_id[end - _MIN_ID_PART : end] for end in ends)]
        for made in seen.attempts:
            sent = _fold(f"{made.raw} {made.arguments}")
            if any(part in sent for part in parts):
                yield Reason("ID_NOT_OMITTED")


def _fold(text: str) -> str:
    """Return the letters and digits of a text without case."""
    return "".join(filter(str.isalnum, text.casefold()))


_WRONG_OPS = 7
_REFUSALS = (Code.ARGUMENTS_INVALID, Code.ARGUMENT_ERROR)


class TypeErrorRecovery(Scenario):
    """A patch whose operations are a number, then one that is right."""

    name: ClassVar[str] = "type_error_recovery"

    def next_step(self, seen: Conversation) -> Ideal:
        """Send the wrong type until it is refused for it, then the right one."""
        patches = seen.calls_of("state_patch")
        was_refused = any(made.codes.intersection(_REFUSALS) for made in patches)
        if not seen.has_read:
            return call(read_call(seen))
        if not was_refused and len(patches) < _MAX_TRIES and not seen.has_set("bar"):
            return call(patch_with(seen, _WRONG_OPS))
        return read_patch_answer(seen)

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for the refusal and the recovery."""
        return check_recovery(seen, "state_patch", *_REFUSALS, ordered=_has_wrong_type)

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
        """Judge no call that is wrong on purpose."""
        is_wrong = made.name == "state_patch" and not isinstance(made.arguments.get("ops"), list)
        return None if is_wrong else super().is_expected(made, scene)


def _has_wrong_type(made: MadeCall) -> bool:
    """Tell whether the operations are the number; text formats may not tell 7 from "7"."""
    sent = made.arguments.get("ops")
    if isinstance(sent, bool):
        return False
    return sent == _WRONG_OPS or (made.is_text and str(sent).strip() == str(_WRONG_OPS))


_LONG_VALUE = "x" * 400
_MIN_LONG = "x" * 300
_MAX_CALL_BYTES = 300


class LongArgumentsGuard(Scenario):
    """A value over the limit, then a short one."""

    name: ClassVar[str] = "long_arguments_guard"

    def next_step(self, seen: Conversation) -> Ideal:
        """Send the long value until it is refused for its size, then the short one."""
        patches = seen.calls_of("state_patch")
        was_refused = any(Code.ARGUMENTS_TOO_LARGE in made.codes for made in patches)
        if not seen.has_read:
            return call(read_call(seen))
        if was_refused or len(patches) >= _MAX_TRIES or any(made.ran for made in patches):
            return read_patch_answer(seen)
        return call(patch_call(seen, _LONG_VALUE))

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for the refusal and the recovery."""
        code = Code.ARGUMENTS_TOO_LARGE
        yield from check_recovery(seen, "state_patch", code, ordered=_has_long_value)
        patches = seen.attempts_of("state_patch")
        whole = [made for made in patches if not made.is_cut]
        first = next((place for place, made in enumerate(whole) if _has_long_value(made)), None)
        if first is not None and any(map(_is_long, whole[first + 1 :])):
            yield Reason("REFUSED_CALL_REPEATED")

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
        """Judge no call that is too large on purpose."""
        if Code.ARGUMENTS_TOO_LARGE in made.codes:
            return None
        return super().is_expected(made, scene)


def _has_long_value(made: MadeCall) -> bool:
    """Tell whether a patch sets the field to the long value; refused arguments may be raw only."""
    values = [item.get("value") for item in made.operations] or [made.raw]
    is_long = any(_MIN_LONG in "".join(str(value).lower().split()) for value in values)
    return is_long and FOO_PARTS in map(path_parts, paths_of(made))


def _is_long(made: MadeCall) -> bool:
    return Code.ARGUMENTS_TOO_LARGE in made.codes or len(made.raw) > _MAX_CALL_BYTES


_BIG_CHARS = 12_000


class ToolOutputTruncation(Scenario):
    """A read whose answer is left out, and the work done all the same."""

    name: ClassVar[str] = "tool_output_truncation"

    def declare(self, scene: Scene) -> Declarations:
        """Require the patch alone: the read cannot succeed."""
        return Declarations(required_tools=("state_patch",))

    def set_scene(self, random: Random) -> Scene:
        """Put a long text into the draft."""
        return new_scene(random, draft={"title": "Plan", "big": "y" * _BIG_CHARS})

    def check_original(self, seen: Evidence) -> Iterable[Reason]:
        """Look for the code in what the model was sent."""
        yield from super().check_original(seen)
        sent = (message.text for message in seen.attempt.history if message.role == "tool")
        if not any(Code.TOOL_OUTPUT_TOO_LARGE in text for text in sent):
            yield Reason("GUARD_NOT_FIRED")

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for one read that was too large, and work done after it."""
        code = Code.TOOL_OUTPUT_TOO_LARGE
        yield from check_recovery(seen, "state_get", code, ordered=_reads_all)
        reads = seen.attempts_of("state_get")
        done = [place for place, made in enumerate(reads) if made.ran]
        if done and (len(done) > 1 or done[0] < len(reads) - 1):
            yield Reason("READ_REPEATED")


def _reads_all(made: MadeCall) -> bool:
    return not made.arguments.get("select")


_CUT = '{"request_id": "r1", "ops": [{"op": "set", "path": "/draft/foo", "value": "bar bar bar ba'
_CUT_REFUSAL = ErrorDetail(
    Code.ARGUMENTS_TRUNCATED,
    "The arguments are incomplete: the reply reached its token limit.",
    "Nothing was run. Make the call again with less: shorter values, or several calls.",
)


class TruncatedArguments(Scenario):
    """The conversation begins after a patch that was cut off and did not run."""

    name: ClassVar[str] = "truncated_arguments"

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Begin with a read that worked and a patch that was cut."""
        read = ToolCall(
            id="call_read", name="state_get", arguments={"workspace_id": scene.before.id}
        )
        cut = ToolCall(
            id="call_cut",
            name="state_patch",
            arguments=None,
            raw=_CUT,
            state="cut",
            errors=(_CUT_REFUSAL,),
            arguments_bytes=len(_CUT),
        )
        return (
            *super().messages(scene),
            *earlier_turn(read, data={"snapshot": scene.before.snapshot(original=True)}),
            *earlier_turn(cut, errors=(_CUT_REFUSAL,)),
        )

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Ask for a patch that succeeded, and for nothing after it."""
        places = [
            place
            for place, made in enumerate(seen.attempts)
            if made.name == "state_patch" and made.ok
        ]
        if not places:
            yield Reason("NOT_RECOVERED")
        elif places[0] < len(seen.attempts) - 1:
            yield Reason("CALL_AFTER_WORK", seen.attempts[-1].name)


_UNKNOWN = "draft_write"
_UNKNOWN_REFUSAL = ErrorDetail(
    Code.TOOL_NOT_ALLOWED,
    f"'{_UNKNOWN}' is not an available tool.",
    "Call one of these, spelled exactly: state_patch, state_get.",
)


class UnknownToolRecovery(Scenario):
    """The conversation begins after a call of a tool that does not exist."""

    name: ClassVar[str] = "unknown_tool_recovery"

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Begin with a call of the tool that does not exist."""
        wrong = ToolCall(
            id="call_wrong", name=_UNKNOWN, arguments={"path": "/draft/foo", "value": "bar"}
        )
        return (*super().messages(scene), *earlier_turn(wrong, errors=(_UNKNOWN_REFUSAL,)))

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Look for names that are not tools."""
        for made in seen.attempts:
            if made in seen.unknown_calls:
                yield Reason("UNKNOWN_TOOL_CALLED", clip(made.name, 80))
        if seen.calls and not any(made.ok for made in seen.calls_of("state_patch")):
            yield Reason("NOT_RECOVERED")
