"""What all scenarios share: preparing a trial, judging it, and playing it well."""

from collections.abc import Iterable
from random import Random
from typing import Any, ClassVar, Final

from surecall.errors import Code
from surecall.evals.cases import Attempt, Declarations, Grades, Ideal, Prepared, run_failed
from surecall.evals.records import Reason, Verdict
from surecall.records import Message, ModelRequest, clip
from surecall.workspace.patch import is_under, split_path

from .conversation import (
    GAVE_UP,
    Conversation,
    Evidence,
    SeenCall,
    is_done,
    read_patch_answer,
    say,
    shows_call,
)
from .scene import FOO, Scene, new_scene
from .wording import ReasonCode

ENFORCED: Final[dict[str, Any]] = {"tool_use_mode": "enforced"}
"""For scenarios that cannot be done without tools."""
PARALLEL: Final[dict[str, Any]] = {
    **ENFORCED,
    "request_overrides": {"parallel_tool_calls": True},
}
"""For scenarios with several calls in one reply."""
TOLERATED: Final[dict[str, Any]] = {**ENFORCED, "tool_failure_policy": "tolerated"}
"""For scenarios in which a call may fail for good."""

_MAX_KEPT_CHARS: Final = 200

Reasons = list[Reason]


class Scenario:
    """One scenario with its only case.

    The loose verdict is that of the original experiment: a final text and a value in the draft.
    The strict one asks whether the model did what it was told to do, and nothing else.
    """

    name: ClassVar[str]
    asks: ClassVar[str]
    """What the model is asked to do, in one sentence."""
    loose: ClassVar[str] = "The answer is `Done.`, and `/draft/foo` is `bar`."
    """When the loose verdict is yes."""
    strict: ClassVar[str]
    """What the strict verdict demands on top of what it demands everywhere."""
    id: str = ""
    """Empty: a scenario has one case."""
    control: bool = False
    """Whether it is a control without tools."""
    system: ClassVar[str]
    options: ClassVar[dict[str, Any]] = ENFORCED
    must_call: ClassVar[bool] = True
    """Whether the work needs a tool."""
    must_read: ClassVar[bool] = True
    """Whether the workspace has to be read before it is changed."""

    @property
    def scenario(self) -> str:
        """Its name."""
        return self.name

    def prepare(self, seed: int) -> Prepared:
        """Set up one trial on a workspace of its own."""
        scene = self.set_scene(Random(seed))  # noqa: S311 - chance that can be repeated
        return Prepared(
            tools=scene.tools,
            system=self.system,
            messages=self.messages(scene),
            options=dict(self.options),
            state=scene,
            declarations=self.declare(scene),
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Judge what happened, loosely and strictly."""
        seen = Evidence(attempt)
        return Grades(
            original=_verdict(seen, self._original_reasons(seen)),
            strict=_verdict(seen, self._strict_reasons(seen)),
            exact=tuple(self.is_expected(made, seen.scene) for made in seen.calls),
            state=_describe_state(seen.scene),
        )

    def ideal(self, request: ModelRequest) -> Ideal:
        """Say what a model that makes no mistakes would do next."""
        wanted = self.next_step(Conversation(request))
        if not wanted.calls:
            return wanted
        offered = {tool.name for tool in request.tools}
        calls = tuple(call for call in wanted.calls if call.name in offered)
        return Ideal(calls=calls) if calls else say(GAVE_UP)

    # ------------------------------------------------------------ what a scenario may change

    def set_scene(self, random: Random) -> Scene:
        """Make the workspace and the tools of one trial."""
        return new_scene(random)

    def declare(self, scene: Scene) -> Declarations:
        """Return what an application would declare: the patch, and the read that comes first."""
        if not self.must_call:
            return Declarations()
        if not self.must_read:
            return Declarations(required_tools=("state_patch",))
        return Declarations(
            required_tools=("state_get", "state_patch"), requires={"state_patch": ("state_get",)}
        )

    def messages(self, scene: Scene) -> tuple[Message, ...]:
        """Return the conversation so far."""
        return (Message("user", f"workspace_id={scene.before.id}"),)

    def next_step(self, seen: Conversation) -> Ideal:
        """Decide what is right to do next."""
        return read_patch_answer(seen, must_read=self.must_read)

    def check_original(self, seen: Evidence) -> Iterable[Reason]:
        """Yield what the loose verdict finds wrong."""
        yield from self.check_final(seen)
        yield from check_draft(seen)

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Yield what this scenario finds wrong, apart from what all of them look at."""
        return ()

    def check_final(self, seen: Evidence) -> Iterable[Reason]:
        """Yield what is wrong with the final answer."""
        if not is_done(seen.text):
            yield Reason(ReasonCode.FINAL_TEXT_WRONG, f"answered {clip(seen.text, 80)!r}")

    def is_expected(self, made: SeenCall, scene: Scene) -> bool | None:
        """Tell whether the arguments of a call are what was asked for; `None` if nothing was."""
        if made.name == "state_get":
            return _has_own_id(made, scene) and not made.arguments.keys() - {
                "workspace_id",
                "select",
            }
        if made.name == "state_patch":
            wanted = [{"op": "set", "path": FOO, "value": scene.value}]
            return _has_own_id(made, scene) and made.arguments.get("ops") == wanted
        return None

    # ------------------------------------------------------------ what is the same for all

    def _original_reasons(self, seen: Evidence) -> Reasons:
        if seen.error is not None:
            return [run_failed(seen.error)]
        return list(self.check_original(seen))

    def _strict_reasons(self, seen: Evidence) -> Reasons:
        reasons: Reasons = []
        if seen.error is not None:
            reasons.append(run_failed(seen.error))
        else:
            reasons += self._check_answer(seen)
        if not seen.turns:
            return reasons or [Reason(ReasonCode.RUN_FAILED, "nothing happened")]
        if self.must_call and not seen.calls:
            reasons.append(Reason(ReasonCode.NO_CALLS))
        reasons += check_draft(seen)
        reasons += _check_rest(seen)
        reasons += _check_forbidden(seen)
        if self.must_read:
            reasons += _check_read_first(seen)
        reasons += self.check_strict(seen)
        first: dict[str, Reason] = {}
        for item in reasons:
            first.setdefault(item.code, item)
        return list(first.values())

    def _check_answer(self, seen: Evidence) -> Iterable[Reason]:
        if not seen.text.strip():
            yield Reason(ReasonCode.EMPTY_FINAL)
            return
        yield from self.check_final(seen)
        if shows_call(seen.text, (tool.name for tool in seen.scene.tools)):
            yield Reason(ReasonCode.TEXT_CALL_LEAKED, clip(seen.text, 80))
        if is_done(seen.text) and any(check_draft(seen)):
            yield Reason(ReasonCode.CLAIMED_DONE)


def check_draft(seen: Evidence) -> Iterable[Reason]:
    """Yield what is wrong with the value in the draft."""
    wanted = seen.scene.value
    if wanted is None:
        return
    found = seen.scene.after.draft.get("foo")
    if found != wanted:
        yield Reason(ReasonCode.DRAFT_WRONG, f"/draft/foo is {clip(repr(found), 80)}")


def check_recovery(seen: Evidence, tool: str, *codes: str) -> Iterable[Reason]:
    """Yield what is missing of an error and its recovery."""
    place = seen.met(tool, *codes)
    if place is None:
        yield Reason(ReasonCode.GUARD_NOT_FIRED, f"no {tool} failed with {' or '.join(codes)}")
    elif not seen.succeeded_after("state_patch", place):
        yield Reason(ReasonCode.NOT_RECOVERED)


def _check_rest(seen: Evidence) -> Iterable[Reason]:
    before, after = seen.scene.before, seen.scene.after
    rest = [
        (before.facts, after.facts),
        (before.revision - before.draft_version, after.revision - after.draft_version),
        (_without_foo(before.draft), _without_foo(after.draft)),
    ]
    wants_nothing = seen.scene.value is None and before.draft != after.draft
    if wants_nothing or any(old != new for old, new in rest):
        yield Reason(ReasonCode.CHANGED_ELSEWHERE)
    if after.draft_version - before.draft_version > 1:
        count = after.draft_version - before.draft_version
        yield Reason(ReasonCode.REPEATED_PATCH, f"{count} patches were applied")


def _check_forbidden(seen: Evidence) -> Iterable[Reason]:
    hidden, locks = seen.scene.hidden, [split_path(lock) for lock in seen.scene.before.locks]
    for made in seen.calls:
        if made.name in hidden:
            yield Reason(ReasonCode.HIDDEN_TOOL_CALLED, made.name)
        if Code.WORKSPACE_NOT_FOUND in made.codes:
            yield Reason(ReasonCode.WRONG_WORKSPACE)
        paths = [str(item.get("path")) for item in made.operations]
        for path in paths:
            parts = tuple(path.split("/")[1:])
            if any(is_under(parts, lock) for lock in locks):
                yield Reason(ReasonCode.LOCKED_PATH_TRIED, clip(path, 80))
    for logged in seen.scene.log.calls:
        if logged.tool in hidden:
            yield Reason(ReasonCode.HIDDEN_TOOL_RUN, logged.tool)


def _check_read_first(seen: Evidence) -> Iterable[Reason]:
    read_in: int | None = None
    for made in seen.calls:
        if made.name == "state_get" and made.executed and read_in is None:
            read_in = made.turn
        if made.name == "state_patch" and made.ok and (read_in is None or read_in == made.turn):
            yield Reason(ReasonCode.NOT_READ_FIRST)
            return


def _verdict(seen: Evidence, reasons: Reasons) -> Verdict:
    if reasons and seen.is_cut:
        reasons = [*reasons, Reason(ReasonCode.CUT_BY_LIMIT)]
    return Verdict.of(reasons)


def _has_own_id(made: SeenCall, scene: Scene) -> bool:
    return made.arguments.get("workspace_id") in (None, "", "workspace_id", scene.before.id)


def _without_foo(draft: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in draft.items() if key != "foo"}


def _describe_state(scene: Scene) -> dict[str, Any]:
    """Return what is kept of the state: small, and enough to see what happened."""
    after = scene.after
    draft = {
        key: clip(value, _MAX_KEPT_CHARS) if isinstance(value, str) else value
        for key, value in after.draft.items()
    }
    return {
        "draft": draft,
        "facts": after.facts,
        "versions": {"facts_etag": after.facts_etag, "draft_etag": after.draft_etag},
        "log": [
            {"tool": call.tool, "ok": call.ok, "code": call.code, "written": list(call.written)}
            for call in scene.log.calls
        ],
    }
