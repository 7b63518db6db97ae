"""What all scenarios share: preparing a trial, judging it, and playing it well."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from surecall.base.records import Message, ModelRequest, clip
from surecall.evals.cases import (
    ENFORCED,
    Attempt,
    Declarations,
    Grades,
    Ideal,
    Prepared,
    make_grades,
    run_failed,
)
from surecall.evals.made_calls import MadeCall, find_text_calls, is_word, says_nothing, shows_call
from surecall.evals.records import Reason, Verdict, read_data
from surecall.evals.scenarios.scene import GAVE_UP, Conversation, read_patch_answer, say
from surecall.evals.taxonomy import first_of_each

from .checks import (
    FINAL_WORD,
    Evidence,
    check_answered_early,
    check_draft,
    check_elsewhere,
    check_forbidden,
    check_last_reply,
    check_one_by_one,
    check_read_first,
    check_rest,
    check_values,
    is_done,
)
from .scene import FOO, Scene, new_scene

_MAX_KEPT_CHARS: Final = 200
_DATA: Final = read_data("state.toml")
TEXTS: Final[dict[str, dict[str, Any]]] = _DATA["scenarios"]
"""What each scenario asks, when it is passed, where it stands in a report, and its instructions."""


def join_lines(lines: Iterable[str]) -> str:
    """Return instructions as one text; `@NAME` stands for the lines of a part."""
    return "\n".join(_expand(lines))


def _expand(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith("@"):
            yield from _expand(_DATA["parts"][line[1:]])
        else:
            yield line


ONE_BY_ONE: Final = join_lines(["@one_by_one"])
NOT_EARLIER: Final = "has succeeded, and not earlier,"

Reasons = list[Reason]


class Scenario:
    """One scenario with its only case.

    The loose verdict is that of the original experiment: a final text and a value in the draft.
    The strict one asks whether the model did what it was told to do, and nothing else: by the
    state that it left and by the calls that it made. The answer is checked separately, and only
    for what the case declares.
    """

    name: ClassVar[str]
    asks: ClassVar[str]
    """What the model is asked to do, in one sentence."""
    loose: ClassVar[str] = "The answer is `Done.`, and `/draft/foo` is `bar`."
    """When the loose verdict is yes."""
    group: ClassVar[str]
    """What it stands with in a report."""
    short: ClassVar[str]
    """A name that fits above a field of the map."""
    strict: ClassVar[str]
    """What the strict verdict demands on top of what it demands everywhere."""
    id: str = ""
    """Empty: a scenario has one case."""
    control: bool = False
    """Whether it is a control without tools."""
    system: ClassVar[str]
    user: ClassVar[str] = "workspace_id={id}"
    options: ClassVar[dict[str, Any]] = {}
    """What it needs itself."""
    defaults: ClassVar[dict[str, Any]] = ENFORCED
    """What it has unless the experiment says otherwise."""
    must_call: ClassVar[bool] = True
    """Whether the work needs a tool."""
    must_read: ClassVar[bool] = True
    """Whether the workspace has to be read before it is changed."""
    answer_is_work: ClassVar[bool] = False
    """Whether a wrong answer leaves the work undone, so that it is a matter of process, too."""
    invented: ClassVar[tuple[str, ...]] = ()
    """Tools that there are not, which the conversation names."""
    ordered_paths: ClassVar[tuple[str, ...]] = ()
    """Paths besides `/draft/foo` that the instructions have the model try."""
    has_other_values: ClassVar[bool] = False
    """Whether the instructions have the model try another value on the way."""

    def __init_subclass__(cls) -> None:
        """Give each scenario its texts, and what its row says of it."""
        for key, text in TEXTS.get(getattr(cls, "name", ""), {}).items():
            setattr(cls, key, join_lines(text) if key == "system" else text)

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
            defaults=dict(self.defaults),
            state=scene,
            declarations=self.declare(scene),
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Judge what happened: loosely, and by state, process and answer."""
        seen = Evidence(attempt, self.invented)
        state, process = self._list_state_reasons(seen), self._list_process_reasons(seen)
        answer = self._list_answer_reasons(seen)
        if self.answer_is_work and seen.error is None and self.leaves_work(seen):
            process.append(Reason("WORK_NOT_DONE", clip(seen.text, 80)))
        if seen.is_cut and (state or process or answer):
            process.append(Reason("CUT_BY_LIMIT"))
        return make_grades(
            original=self._original_verdict(seen),
            state=None if state is None else first_of_each(state),
            process=first_of_each(process),
            answer=None if answer is None else first_of_each(answer),
            exact=tuple(self._is_exact(made, seen.scene) for made in seen.calls),
            kept=_describe_state(seen.scene),
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
        return (Message("user", self.user.replace("{id}", scene.before.id)),)

    def next_step(self, seen: Conversation) -> Ideal:
        """Decide what is right to do next."""
        return read_patch_answer(seen, must_read=self.must_read)

    def check_original(self, seen: Evidence) -> Iterable[Reason]:
        """Yield what the loose verdict finds wrong."""
        yield from self.check_final(seen)
        yield from check_draft(seen)

    def check_process(self, seen: Evidence) -> Iterable[Reason]:
        """Yield what this scenario finds wrong with the calls, apart from what all look at."""
        return ()

    def check_final(self, seen: Evidence) -> Iterable[Reason]:
        """Yield what the loose verdict finds wrong with the final answer."""
        if not is_done(seen.text):
            yield Reason("FINAL_TEXT_WRONG", f"answered {clip(seen.text, 80)!r}")

    def check_answer(self, seen: Evidence) -> Iterable[Reason]:
        """Yield what is wrong with the final answer: it is one word, however it is set off."""
        if not is_word(seen.text, FINAL_WORD):
            yield Reason("FINAL_TEXT_WRONG", f"answered {clip(seen.text, 80)!r}")

    def is_answered(self, seen: Evidence) -> bool | None:
        """Tell whether the answer is what the case declares; `None` if nothing checks it."""
        return not any(self.check_answer(seen))

    def leaves_work(self, seen: Evidence) -> bool:
        """Tell whether the answer leaves the work undone, where it is all the work there is."""
        return says_nothing(seen.text) or self.is_answered(seen) is False

    def is_expected(self, made: MadeCall, scene: Scene) -> bool | None:
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

    def _is_exact(self, made: MadeCall, scene: Scene) -> bool | None:
        used = made if made.is_usable else replace(made, arguments={})
        return self.is_expected(used, scene)

    def _original_verdict(self, seen: Evidence) -> Verdict:
        reasons = [run_failed(seen.error)] if seen.error else list(self.check_original(seen))
        if reasons and seen.is_cut:
            reasons.append(Reason("CUT_BY_LIMIT"))
        return Verdict.of(reasons)

    def _list_state_reasons(self, seen: Evidence) -> Reasons | None:
        if not seen.turns:
            return None
        return [*check_draft(seen), *check_rest(seen)]

    def _list_process_reasons(self, seen: Evidence) -> Reasons:
        reasons: Reasons = [] if seen.error is None else [run_failed(seen.error)]
        if not seen.turns:
            return reasons or [Reason("RUN_FAILED", "nothing happened")]
        if self.must_call and not seen.calls:
            reasons.append(Reason("NO_CALLS"))
        reasons += check_forbidden(seen)
        reasons += check_elsewhere(seen, self.ordered_paths)
        if not self.has_other_values:
            reasons += check_values(seen)
        if ONE_BY_ONE in self.system:
            reasons += check_one_by_one(seen)
        if NOT_EARLIER in self.system:
            reasons += check_answered_early(seen)
        if self.must_read:
            reasons += check_read_first(seen)
        if self.must_call and seen.error is None:
            reasons += check_last_reply(seen)
        reasons += self.check_process(seen)
        return reasons

    def _list_answer_reasons(self, seen: Evidence) -> Reasons | None:
        if seen.error is not None or not seen.turns:
            return None
        if says_nothing(seen.text):
            return [Reason("EMPTY_FINAL")]
        reasons = list(self.check_answer(seen))
        if shows_call(seen.text) or find_text_calls(seen.text, seen.specs):
            reasons.append(Reason("TEXT_CALL_LEAKED", clip(seen.text, 80)))
        return reasons if reasons or self.is_answered(seen) is not None else None


def _has_own_id(made: MadeCall, scene: Scene) -> bool:
    return made.arguments.get("workspace_id") in (None, "", "workspace_id", scene.before.id)


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
