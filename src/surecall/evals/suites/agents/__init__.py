"""The suite `agents`: from a question to the query that answers it, stage by stage."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.records import Message, ModelRequest, ToolCall, clip
from surecall.evals.cases import (
    ENFORCED,
    Attempt,
    Grades,
    Ideal,
    IdealCall,
    Prepared,
    judge,
    run_failed,
)
from surecall.evals.final_text import states_all
from surecall.evals.records import Reason, Verdict
from surecall.evals.scenarios.conversation import Conversation
from surecall.evals.suites.plain_checks import (
    check_one_by_one,
    check_plain_answer,
    check_written_calls,
    list_attempts,
)
from surecall.text import canonical_hash

from .database import changes_data
from .judging import AGENT_REASONS, AgentReason, is_same_answer, judge_stage
from .questions import WORKSPACE_IDS, Question, find_workspace, load_questions
from .stages import CHECKERS, STAGES, Desk, Stage, instruct_pipeline, instruct_stage

__all__ = ["AGENT_REASONS", "AgentCase", "AgentReason", "AgentsSuite"]

PIPELINE: Final = "pipeline"
"""The scenario in which all stages follow each other."""

_STAGE_OPTIONS: Final[dict[str, Any]] = {"max_turns": 6}
_PIPELINE_OPTIONS: Final[dict[str, Any]] = {"max_turns": 16}
_BY_TOOL: Final = {stage.tool.name: stage for stage in STAGES}
_CONFIDENCE: Final = 0.9
_MAX_NAMED_VALUES: Final = 6
"""Up to so many values an answer in one sentence has to name all of them."""
_OF_PROCESS: Final = frozenset(
    {AgentReason.STAGE_NOT_CALLED, AgentReason.CALL_NOT_VALID, AgentReason.CALL_NOT_ACCEPTED}
)
"""Reasons about what was called; the others are about what was handed in."""


class AgentCase(Struct, frozen=True, kw_only=True):
    """A question at one stage, or in the pipeline.

    The loose verdict asks what the metrics note asks: every stage was called with the required
    fields, in their types and ranges, and with names that exist. The strict one asks for the
    right answer at each stage and no other, and that nothing but reading was tried: no statement
    that changes data, and no tool that there is not and that would.
    """

    scenario: str
    question: Question
    control: bool = False

    @property
    def id(self) -> str:
        """The id of the question."""
        return self.question.id

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that are tried."""
        if self.scenario == PIPELINE:
            return STAGES
        return tuple(stage for stage in STAGES if stage.name == self.scenario)

    def prepare(self, seed: int) -> Prepared:
        """Set up one trial with a desk of its own; nothing in it is left to chance."""
        desk = Desk(self.question, self.stages)
        if self.scenario == PIPELINE:
            system, options = instruct_pipeline(), dict(_PIPELINE_OPTIONS)
        else:
            (stage,) = self.stages
            system = instruct_stage(stage, self.question)
            options = {**_STAGE_OPTIONS, "tool_choice": stage.tool.name}
        return Prepared(
            tools=desk.registry(),
            system=system,
            messages=(Message("user", self.question.question),),
            options=options,
            defaults=ENFORCED,
            state=desk,
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Judge the last accepted call of each stage."""
        desk: Desk = attempt.prepared.state
        calls = [call for _, call, _ in attempt.calls]
        failed = [] if attempt.error is None else [run_failed(attempt.error)]
        called = {_BY_TOOL[call.name].name for call in calls if call.name in _BY_TOOL}
        found = list(self._check_answers(desk, called))
        return judge(
            original=Verdict.of([*failed, *self._check_form(desk, called)]),
            state=[reason for reason in found if reason.code not in _OF_PROCESS],
            process=[
                *failed,
                *(reason for reason in found if reason.code in _OF_PROCESS),
                *self._check_order(attempt),
                *check_written_calls(attempt),
                *_check_statements(attempt),
            ],
            answer=self._check_text(attempt),
            exact=tuple(self._is_right(call) for call in calls),
            kept=_describe_state(desk),
        )

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Call the first stage that has no right answer yet; then answer."""
        seen = Conversation(request)
        right: set[str] = set()
        for call in seen.calls:
            stage = _BY_TOOL.get(call.name)
            if stage is None or not call.ok or not CHECKERS[stage.name].is_valid(call.arguments):
                continue
            right -= {later.name for later in STAGES[STAGES.index(stage) :]}
            if not judge_stage(stage.name, call.arguments, self.question):
                right.add(stage.name)
        for stage in self.stages:
            if stage.name not in right and stage.tool.name in seen.offered:
                return Ideal(calls=(self._ideal_call(stage),))
        return Ideal(text=self._ideal_text())

    def _check_form(self, desk: Desk, called: set[str]) -> Iterator[Reason]:
        for stage in self.stages:
            if stage.name not in called:
                yield Reason(AgentReason.STAGE_NOT_CALLED, stage.name)
            elif not any(call.stage == stage.name and call.is_sound for call in desk.log):
                yield Reason(AgentReason.CALL_NOT_VALID, stage.name)

    def _check_answers(self, desk: Desk, called: set[str]) -> Iterator[Reason]:
        for stage in self.stages:
            accepted = desk.accepted.get(stage.name)
            if accepted is not None:
                if self._decides(stage):
                    yield from judge_stage(stage.name, accepted.arguments, self.question)
            elif stage.name in called:
                codes = {call.error for call in desk.log if call.stage == stage.name and call.error}
                why = f"{stage.name}: {', '.join(sorted(codes))}" if codes else stage.name
                yield Reason(AgentReason.CALL_NOT_ACCEPTED, why)
            else:
                yield Reason(AgentReason.STAGE_NOT_CALLED, stage.name)

    def _check_order(self, attempt: Attempt) -> Iterator[Reason]:
        """Look for calls that did not wait for a result, or gave another answer without one."""
        if self.scenario == PIPELINE:
            yield from check_one_by_one(attempt)
            return
        handed_in = [
            (turn.turn, call.arguments or {})
            for turn, call, result in attempt.calls
            if result is not None and result.ok
        ]
        for turn, arguments in handed_in[:-1]:
            last_turn, last = handed_in[-1]
            learned = self.scenario == "sql_generation" and turn < last_turn
            if not learned and not is_same_answer(arguments, last):
                yield Reason(AgentReason.SEVERAL_ANSWERS, self.scenario)
                return

    def _check_text(self, attempt: Attempt) -> list[Reason] | None:
        """Look at the final text; in the pipeline it has to say what the query returned."""
        values = [value for row in self.question.answer for value in row if value is not None]
        said = None
        if self.scenario == PIPELINE and len(values) <= _MAX_NAMED_VALUES:
            said = states_all(attempt.text, values)
        wrong = [] if said else [Reason(AgentReason.ANSWER_WRONG, clip(attempt.text, 80))]
        return check_plain_answer(attempt, None if said is None else wrong)

    def _decides(self, stage: Stage) -> bool:
        """Tell whether a stage is judged by itself: in the pipeline, what it leads to is."""
        return self.scenario != PIPELINE or stage.name in ("intent", "sql_generation")

    def _is_right(self, call: ToolCall) -> bool | None:
        stage = _BY_TOOL.get(call.name)
        if stage is None or stage not in self.stages:
            return None
        if call.arguments is None or not CHECKERS[stage.name].is_valid(call.arguments):
            return False
        return not judge_stage(stage.name, call.arguments, self.question)

    def _ideal_call(self, stage: Stage) -> IdealCall:
        question = self.question
        columns = [column.full_name for column in question.workspace.columns_of(question.tables)]
        arguments: dict[str, Any]
        match stage.name:
            case "intent":
                arguments = {"workspace_id": question.workspace.id, "confidence": _CONFIDENCE}
            case "table":
                arguments = {"relevant_tables": list(question.tables)}
            case "column_prune":
                arguments = {
                    "relevant_columns": list(question.columns),
                    "irrelevant_columns": [
                        name for name in columns if name not in question.columns
                    ],
                }
            case _:
                return IdealCall(
                    stage.tool.name,
                    {
                        "sql_query": question.sql.strip(),
                        "explanation": "It reads the rows that the question asks about.",
                        "tables_used": list(question.tables),
                    },
                )
        reasoning = f"The question is about {' and '.join(question.tables)}."
        return IdealCall(stage.tool.name, {**arguments, "reasoning": reasoning})

    def _ideal_text(self) -> str:
        if self.scenario != PIPELINE:
            return "Done."
        rows = ("; ".join(", ".join(map(str, row)) for row in self.question.answer)) or "nothing"
        return f"The answer is: {rows}."


def _check_statements(attempt: Attempt) -> Iterator[Reason]:
    """Look for statements that do more than read, refused or not."""
    for made in list_attempts(attempt):
        sql = made.arguments.get("sql_query", made.raw)
        if isinstance(sql, str) and changes_data(sql):
            yield Reason(AgentReason.CHANGE_TRIED, clip(sql, 80))


def _describe_state(desk: Desk) -> dict[str, Any]:
    """Return what is kept of a trial: each stage's answer and every refusal."""
    return {
        "accepted": {name: call.arguments for name, call in desk.accepted.items()},
        "refused": [
            {"stage": call.stage, "code": call.error} for call in desk.log if call.error is not None
        ],
    }


_REVISION: Final = 6
"""To be raised when verdicts change in a way that the texts and data do not show."""
_HASH_CHARS: Final = 12
_SCENARIOS: Final = (*(stage.name for stage in STAGES), PIPELINE)


class AgentsSuite:
    """Forty questions at each of four stages, and through all of them.

    Args:
        every: Take only each n-th question, beginning with the first.
    """

    name = "agents"

    def __init__(self, *, every: int = 1) -> None:
        self._every = every

    @cached_property
    def version(self) -> str:
        """A number, a hash over every text, table, row and question, and the sampling."""
        surface = (
            load_questions(),
            STAGES,
            instruct_pipeline(),
            [find_workspace(name) for name in WORKSPACE_IDS],
        )
        step = f"/{self._every}" if self._every > 1 else ""
        return f"{_REVISION}-{canonical_hash(msgspec.to_builtins(surface))[:_HASH_CHARS]}{step}"

    def scenarios(self) -> Sequence[str]:
        """Name the stages, and the pipeline."""
        return _SCENARIOS

    def cases(self, scenario: str) -> Sequence[AgentCase]:
        """Return the questions, to be tried at this stage."""
        if scenario not in _SCENARIOS:
            raise ConfigError(
                Code.NOTHING_SELECTED,
                f"the suite agents has no scenario {scenario!r}.",
                hint=did_you_mean(scenario, _SCENARIOS),
            )
        questions = load_questions()[:: self._every]
        return tuple(AgentCase(scenario=scenario, question=question) for question in questions)
