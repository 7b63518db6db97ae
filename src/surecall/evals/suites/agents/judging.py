"""Whether an answer at a stage is right, and whether two queries gave the same rows."""

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import auto
from typing import Any, Final

from surecall.base.json_values import as_list
from surecall.base.records import clip
from surecall.evals.records import Meant, Reason

from .database import QueryRefused, Rows, run_query
from .questions import Question, answer_of

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


class AgentReason(Meant):
    """Every reason for which a case of this suite is not passed."""

    RUN_FAILED = auto(), "The run ended with an error instead of an answer."
    STAGE_NOT_CALLED = auto(), "The tool of the stage was never called."
    CALL_NOT_VALID = (
        auto(),
        (
            "No call of the stage had the required fields, with values of "
            "the right type and range and names that exist."
        ),
    )
    CALL_NOT_ACCEPTED = auto(), "Every call of the stage was refused."
    INTENT_WRONG = auto(), "The question was taken to be about another workspace."
    TABLES_MISSING = auto(), "A table that the query has to read was not chosen."
    TABLES_NEEDLESS = auto(), "A table was chosen that the query need not read."
    COLUMNS_MISSING = auto(), "A column that the query has to read was not kept."
    COLUMNS_NEEDLESS = auto(), "A column was kept that the query need not read."
    COLUMNS_UNSORTED = auto(), "A column is in both lists, or in none."
    SQL_WRONG = auto(), "The query does not return what was asked for."
    SQL_NOT_GENERAL = auto(), "The query returns what was asked for on these rows only."
    CHANGE_TRIED = auto(), "A statement was sent that changes data, where only reading was asked."
    SEVERAL_ANSWERS = (
        auto(),
        "Different answers were handed in, with nothing learned between.",
    )
    SEVERAL_CALLS_AT_ONCE = auto(), "A reply held several calls, though one at a time was ordered."
    UNKNOWN_TOOL_CALLED = auto(), "A tool was called that does not exist."
    CALL_NOT_MADE = auto(), "The last reply only writes a call down."
    EMPTY_FINAL = auto(), "The final answer is empty."
    ANSWER_WRONG = auto(), "The final answer does not say what the query returned."
    TEXT_CALL_LEAKED = auto(), "The final answer shows a call to the user."
    TABLES_USED_WRONG = auto(), "The tables that it says it reads are not those it reads."


AGENT_REASONS: Final = {reason: reason.meaning for reason in AgentReason}
"""One sentence for each reason."""


def is_same_answer(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two calls of a stage hand in the same, whatever they say about it."""
    return _drop_words(one) == _drop_words(other)


def _drop_words(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        key: sorted(map(str, as_list(value))) if isinstance(value, list) else value
        for key, value in arguments.items()
        if key not in _WORDS
    }


def judge_stage(stage: str, arguments: dict[str, Any], question: Question) -> list[Reason]:
    """Say what is wrong with an accepted answer; nothing when it is right."""
    match stage:
        case "intent":
            return list(_judge_intent(arguments, question))
        case "table":
            return list(_judge_tables(arguments, question))
        case "column_prune":
            return list(_judge_columns(arguments, question))
        case _:
            return list(_judge_sql(arguments, question))


def _judge_intent(arguments: dict[str, Any], question: Question) -> Iterator[Reason]:
    chosen = arguments["workspace_id"]
    if chosen != question.workspace.id:
        yield Reason(AgentReason.INTENT_WRONG, f"{chosen} instead of {question.workspace.id}")


def _judge_tables(arguments: dict[str, Any], question: Question) -> Iterator[Reason]:
    wanted, chosen = set(question.tables), set(arguments["relevant_tables"])
    if wanted - chosen:
        yield Reason(AgentReason.TABLES_MISSING, _list_names(wanted - chosen))
    if chosen - wanted:
        yield Reason(AgentReason.TABLES_NEEDLESS, _list_names(chosen - wanted))


def _judge_columns(arguments: dict[str, Any], question: Question) -> Iterator[Reason]:
    kept, left = set(arguments["relevant_columns"]), set(arguments["irrelevant_columns"])
    columns = {column.full_name for column in question.workspace.columns_of(question.tables)}
    if missing := set(question.columns) - kept:
        yield Reason(AgentReason.COLUMNS_MISSING, _list_names(missing))
    if needless := kept - question.readable:
        yield Reason(AgentReason.COLUMNS_NEEDLESS, _list_names(needless))
    if unsorted := (kept & left) | (columns - kept - left):
        yield Reason(AgentReason.COLUMNS_UNSORTED, _list_names(unsorted))


def _judge_sql(arguments: dict[str, Any], question: Question) -> Iterator[Reason]:
    sql, workspace = arguments["sql_query"], question.workspace
    try:
        found = run_query(sql, workspace.script)
        elsewhere = run_query(sql, workspace.script, workspace.changes)
    except QueryRefused as refusal:
        yield Reason(AgentReason.SQL_WRONG, refusal.message)
        return
    if not _is_answer(found, question, changed=False):
        yield Reason(AgentReason.SQL_WRONG, _describe_rows(found))
    elif not _is_answer(elsewhere, question, changed=True):
        yield Reason(AgentReason.SQL_NOT_GENERAL, _describe_rows(elsewhere))
    if set(arguments["tables_used"]) != found.tables:
        yield Reason(
            AgentReason.TABLES_USED_WRONG, f"it reads {_list_names(found.tables) or 'none'}"
        )


def _is_answer(found: Rows, question: Question, *, changed: bool) -> bool:
    wanted = answer_of(question.id, changed=changed)
    return found.is_complete and same_rows(wanted.rows, found.rows, is_ordered=question.is_ordered)


def _describe_rows(found: Rows) -> str:
    rows = clip(repr([list(row) for row in found.rows[:5]]), 200)
    return f"{len(found.rows)} rows: {rows}"


def _list_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
