"""The suite `agents`: from a question to the query that answers it, stage by stage."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Struct

from surecall.base.json_values import as_list
from surecall.base.records import Message, ModelRequest, ToolCall, clip
from surecall.evals.cases import (
    ENFORCED,
    Attempt,
    Grades,
    Ideal,
    IdealCall,
    Prepared,
    make_grades,
    number_version,
    refuse_scenario,
    run_failed,
)
from surecall.evals.made_calls import (
    check_one_by_one,
    check_plain_answer,
    check_written_calls,
    list_attempts,
    states_all,
)
from surecall.evals.records import Reason, Verdict
from surecall.evals.scenarios.scene import Conversation
from surecall.evals.suites.agents.questions import (
    CHECKERS,
    STAGES,
    Desk,
    Stage,
    instruct_pipeline,
    instruct_stage,
)

from .database import QueryRefused, Rows, changes_data, run_query
from .questions import WORKSPACE_IDS, Question, answer_of, find_workspace, load_questions

_MAX_OFF: Final = 0.005
"""Numbers are the same when they are at two decimals: half a cent."""
_MAX_OFF_SHARE: Final = 1e-6

_WORDS: Final = frozenset({"reasoning", "confidence", "explanation"})
"""Arguments that tell about an answer and are no part of it."""

Row = Sequence[Any]


def same_rows(wanted: Sequence[Row], found: Sequence[Row], *, is_ordered: bool) -> bool:
    """Tell whether rows are the same, each as often; names of columns do not count.

    Args:
        wanted: The rows of the known query.
        found: The rows of the query that is judged.
        is_ordered: Whether the order of the rows was asked for.
    """
    if len(wanted) != len(found):
        return False
    if is_ordered:
        return all(_same(mine, theirs) for mine, theirs in zip(wanted, found, strict=True))
    left = list(found)
    for row in wanted:
        place = next((place for place, other in enumerate(left) if _same(row, other)), None)
        if place is None:
            return False
        del left[place]
    return True


def _same(wanted: Row, found: Row) -> bool:
    return len(wanted) == len(found) and all(
        _same_value(mine, theirs) for mine, theirs in zip(wanted, found, strict=True)
    )


def _same_value(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, float) or isinstance(found, float):
        if not isinstance(wanted, int | float) or not isinstance(found, int | float):
            return False
        return math.isclose(wanted, found, rel_tol=_MAX_OFF_SHARE, abs_tol=_MAX_OFF)
    return type(wanted) is type(found) and wanted == found


def is_same_answer(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two calls of a stage hand in the same, whatever they say about it."""
    return _drop_words(one) == _drop_words(other)


def _drop_words(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        key: sorted(map(str, as_list(value))) if isinstance(value, list) else value
        for key, value in arguments.items()
        if key not in _WORDS
    }


def grade_stage(stage: str, arguments: dict[str, Any], question: Question) -> list[Reason]:
    """Say what is wrong with an accepted answer; nothing when it is right."""
    match stage:
        case "intent":
            return list(_grade_intent(arguments, question))
        case "table":
            return list(_grade_tables(arguments, question))
        case "column_prune":
            return list(_grade_columns(arguments, question))
        case _:
            return list(_grade_sql(arguments, question))


def _grade_intent(arguments: dict[str, Any], question: Question) -> Iterator[Reason]:
    chosen = arguments["workspace_id"]
    if chosen != question.workspace.id:
        yield Reason("INTENT_WRONG", f"{chosen} instead of {question.workspace.id}")


def _grade_tables(arguments: dict[str, Any], question: Question) -> Iterator[Reason]:
    wanted, chosen = set(question.tables), set(arguments["relevant_tables"])
    if wanted - chosen:
        yield Reason("TABLES_MISSING", _list_names(wanted - chosen))
    if chosen - wanted:
        yield Reason("TABLES_NEEDLESS", _list_names(chosen - wanted))


def _grade_columns(arguments: dict[str, Any], question: Question) -> Iterator[Reason]:
    kept, left = set(arguments["relevant_columns"]), set(arguments["irrelevant_columns"])
    columns = {column.full_name for column in question.workspace.columns_of(question.tables)}
    if missing := set(question.columns) - kept:
        yield Reason("COLUMNS_MISSING", _list_names(missing))
    if needless := kept - question.readable:
        yield Reason("COLUMNS_NEEDLESS", _list_names(needless))
    if unsorted := (kept & left) | (columns - kept - left):
        yield Reason("COLUMNS_UNSORTED", _list_names(unsorted))


def _grade_sql(arguments: dict[str, Any], question: Question) -> Iterator[Reason]:
    sql, workspace = arguments["sql_query"], question.workspace
    try:
        found = run_query(sql, workspace.script)
        elsewhere = run_query(sql, workspace.script, workspace.changes)
    except QueryRefused as refusal:
        yield Reason("SQL_WRONG", refusal.message)
        return
    if not _is_answer(found, question, changed=False):
        yield Reason("SQL_WRONG", _describe_rows(found))
    elif not _is_answer(elsewhere, question, changed=True):
        yield Reason("SQL_NOT_GENERAL", _describe_rows(elsewhere))
    if set(arguments["tables_used"]) != found.tables:
        yield Reason("TABLES_USED_WRONG", f"it reads {_list_names(found.tables) or 'none'}")


def _is_answer(found: Rows, question: Question, *, changed: bool) -> bool:
    wanted = answer_of(question.id, changed=changed)
    return found.is_complete and same_rows(wanted.rows, found.rows, is_ordered=question.is_ordered)


def _describe_rows(found: Rows) -> str:
    rows = clip(repr([list(row) for row in found.rows[:5]]), 200)
    return f"{len(found.rows)} rows: {rows}"


def _list_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


__all__ = ["AgentCase", "AgentsSuite"]

PIPELINE: Final = "pipeline"
"""The scenario in which all stages follow each other."""

_STAGE_OPTIONS: Final[dict[str, Any]] = {"max_turns": 6}
_PIPELINE_OPTIONS: Final[dict[str, Any]] = {"max_turns": 16}
_BY_TOOL: Final = {stage.tool.name: stage for stage in STAGES}
_CONFIDENCE: Final = 0.9
_MAX_NAMED_VALUES: Final = 6
"""Up to so many values an answer in one sentence has to name all of them."""
_OF_PROCESS: Final = frozenset({"STAGE_NOT_CALLED", "CALL_NOT_VALID", "CALL_NOT_ACCEPTED"})
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
        return make_grades(
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
            if not grade_stage(stage.name, call.arguments, self.question):
                right.add(stage.name)
        for stage in self.stages:
            if stage.name not in right and stage.tool.name in seen.offered:
                return Ideal(calls=(self._ideal_call(stage),))
        return Ideal(text=self._ideal_text())

    def _check_form(self, desk: Desk, called: set[str]) -> Iterator[Reason]:
        for stage in self.stages:
            if stage.name not in called:
                yield Reason("STAGE_NOT_CALLED", stage.name)
            elif not any(call.stage == stage.name and call.is_sound for call in desk.log):
                yield Reason("CALL_NOT_VALID", stage.name)

    def _check_answers(self, desk: Desk, called: set[str]) -> Iterator[Reason]:
        for stage in self.stages:
            accepted = desk.accepted.get(stage.name)
            if accepted is not None:
                if self._decides(stage):
                    yield from grade_stage(stage.name, accepted.arguments, self.question)
            elif stage.name in called:
                codes = {call.error for call in desk.log if call.stage == stage.name and call.error}
                why = f"{stage.name}: {', '.join(sorted(codes))}" if codes else stage.name
                yield Reason("CALL_NOT_ACCEPTED", why)
            else:
                yield Reason("STAGE_NOT_CALLED", stage.name)

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
                yield Reason("SEVERAL_ANSWERS", self.scenario)
                return

    def _check_text(self, attempt: Attempt) -> list[Reason] | None:
        """Look at the final text; in the pipeline it has to say what the query returned."""
        values = [value for row in self.question.answer for value in row if value is not None]
        said = None
        if self.scenario == PIPELINE and len(values) <= _MAX_NAMED_VALUES:
            said = states_all(attempt.text, values)
        wrong = [] if said else [Reason("ANSWER_WRONG", clip(attempt.text, 80))]
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
        return not grade_stage(stage.name, call.arguments, self.question)

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
            yield Reason("CHANGE_TRIED", clip(sql, 80))


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
        return number_version(_REVISION, msgspec.to_builtins(surface)) + step

    def scenarios(self) -> Sequence[str]:
        """Name the stages, and the pipeline."""
        return _SCENARIOS

    def cases(self, scenario: str) -> Sequence[AgentCase]:
        """Return the questions, to be tried at this stage."""
        if scenario not in _SCENARIOS:
            raise refuse_scenario(self.name, scenario, _SCENARIOS)
        questions = load_questions()[:: self._every]
        return tuple(AgentCase(scenario=scenario, question=question) for question in questions)
