"""The columns of a trial and of a call: the same in CSV, Parquet, JSON lines and the SQL views."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

from surecall.evals.records import CallFact, Reason, TrialRow

from .files import utc_text

__all__ = ["CALL_COLUMNS", "TRIAL_COLUMNS", "CallPlace", "Column", "ColumnType", "list_calls"]

ColumnType = Literal["text", "integer", "number", "boolean", "list", "time"]


class Column(NamedTuple):
    """One column: its name, what is in it, and where that comes from."""

    name: str
    type: ColumnType
    about: str
    value: Callable[[Any], Any]
    """Takes it from a trial, or from a call in its place."""


class CallPlace(NamedTuple):
    """A call, and the trial it was made in."""

    row: TrialRow
    position: int
    call: CallFact


def list_calls(row: TrialRow) -> list[CallPlace]:
    """Return the calls of a trial with their places."""
    return [CallPlace(row, position, call) for position, call in enumerate(row.calls)]


def _first_code(reasons: Sequence[Reason]) -> str | None:
    return reasons[0].code if reasons else None


def _of_row(name: str, kind: ColumnType, about: str, value: Callable[[TrialRow], Any]) -> Column:
    return Column(name, kind, about, value)


def _of_call(name: str, kind: ColumnType, about: str, value: Callable[[CallPlace], Any]) -> Column:
    return Column(name, kind, about, value)


TRIAL_COLUMNS: Final[tuple[Column, ...]] = (
    _of_row("idx", "integer", "Place in the order of the matrix.", lambda row: row.index),
    _of_row("model", "text", "As it was named.", lambda row: row.cell.model),
    _of_row("profile", "text", "Sampling profile.", lambda row: row.cell.profile),
    _of_row("strategy", "text", "Such as `raw` or `production`.", lambda row: row.cell.strategy),
    _of_row(
        "fallback", "text", "Whether calls in text are looked for.", lambda row: row.cell.fallback
    ),
    _of_row("suite", "text", "Family of scenarios.", lambda row: row.cell.suite),
    _of_row("scenario", "text", "What was tried.", lambda row: row.cell.scenario),
    _of_row("case_id", "text", "Which case; empty when there is one only.", lambda row: row.case),
    _of_row("trial", "integer", "Which repetition, from 1.", lambda row: row.trial),
    _of_row("seed", "integer", "The seed the trial was given.", lambda row: row.seed),
    _of_row("simulated", "boolean", "Whether the model is made up.", lambda row: row.simulated),
    _of_row(
        "control", "boolean", "Whether it is a control without tools.", lambda row: row.control
    ),
    _of_row(
        "original_ok", "boolean", "The loose verdict of the original.", lambda row: row.original_ok
    ),
    _of_row("strict_ok", "boolean", "The verdict on behaviour.", lambda row: row.strict_ok),
    _of_row("outcome", "text", "`called`, `abstained` or `broke`.", lambda row: row.outcome),
    _of_row("code", "text", "Code the run ended with, without an answer.", lambda row: row.code),
    _of_row(
        "category", "text", "Category of the original, when it failed.", lambda row: row.category
    ),
    _of_row("error", "text", "What went wrong, in words.", lambda row: row.error),
    _of_row("error_status", "integer", "HTTP status of the error.", lambda row: row.error_status),
    _of_row(
        "strict_reason",
        "text",
        "First reason of the strict verdict.",
        lambda row: _first_code(row.strict_reasons),
    ),
    _of_row(
        "original_reason",
        "text",
        "First reason of the loose verdict.",
        lambda row: _first_code(row.original_reasons),
    ),
    _of_row(
        "cut_by_limit", "boolean", "Failed, cut at its token limit.", lambda row: row.cut_by_limit
    ),
    _of_row("censored", "boolean", "Stopped: the true time is longer.", lambda row: row.censored),
    _of_row("elapsed_ms", "number", "How long it took.", lambda row: row.elapsed_ms),
    _of_row("turns", "integer", "Turns of the run.", lambda row: row.turns),
    _of_row("requests", "integer", "Requests of the run.", lambda row: row.requests),
    _of_row(
        "attempts", "integer", "Requests sent, those sent again too.", lambda row: row.attempts
    ),
    _of_row("input_tokens", "integer", "As reported.", lambda row: row.usage.input_tokens),
    _of_row("output_tokens", "integer", "As reported.", lambda row: row.usage.output_tokens),
    _of_row("cost_usd", "number", "Empty without a price.", lambda row: row.cost_usd),
    _of_row("calls", "integer", "How many calls were made.", lambda row: len(row.calls)),
    _of_row("rules", "list", "Rules that changed something.", lambda row: row.rules),
    _of_row("saved_by", "list", "Rules it could not have done without.", lambda row: row.saved_by),
    _of_row("fabrications", "integer", "Must be 0.", lambda row: row.fabrications),
    _of_row(
        "escalations", "integer", "How often it was asked another way.", lambda r: r.escalations
    ),
    _of_row("text", "text", "What the model answered.", lambda row: row.text),
    _of_row("started_at", "time", "When it began, UTC.", lambda row: utc_text(row.started_at)),
    _of_row("seed_ok", "boolean", "Old name of `original_ok`.", lambda row: row.original_ok),
    _of_row(
        "seed_reason",
        "text",
        "Old name of `original_reason`.",
        lambda row: _first_code(row.original_reasons),
    ),
)
"""A trial in one row."""

CALL_COLUMNS: Final[tuple[Column, ...]] = (
    _of_call("idx", "integer", "The trial.", lambda at: at.row.index),
    _of_call("position", "integer", "Which call of the trial, from 0.", lambda at: at.position),
    _of_call("model", "text", "As it was named.", lambda at: at.row.cell.model),
    _of_call("profile", "text", "Sampling profile.", lambda at: at.row.cell.profile),
    _of_call("strategy", "text", "Such as `raw` or `production`.", lambda at: at.row.cell.strategy),
    _of_call(
        "fallback", "text", "Whether calls in text are looked for.", lambda a: a.row.cell.fallback
    ),
    _of_call("scenario", "text", "What was tried.", lambda at: at.row.cell.scenario),
    _of_call("simulated", "boolean", "Whether the model is made up.", lambda at: at.row.simulated),
    _of_call("turn", "integer", "In which turn.", lambda at: at.call.turn),
    _of_call("name", "text", "The tool, as it was called.", lambda at: at.call.name),
    _of_call("format", "text", "`tool_calls`, or the text format.", lambda at: at.call.format),
    _of_call("structured", "boolean", "In its place in the reply.", lambda at: at.call.structured),
    _of_call("state", "text", "Whether it is whole.", lambda at: at.call.state),
    _of_call(
        "valid_before", "boolean", "Fitted the schema as it came.", lambda a: a.call.valid_before
    ),
    _of_call(
        "valid_after", "boolean", "Fitted the schema after repair.", lambda a: a.call.valid_after
    ),
    _of_call("changed", "boolean", "Whether any rule changed it.", lambda at: at.call.changed),
    _of_call("exact", "boolean", "As expected; empty: nothing is.", lambda at: at.call.exact),
    _of_call("executed", "boolean", "Whether the tool ran.", lambda at: at.call.executed),
    _of_call("ok", "boolean", "Whether the tool said yes.", lambda at: at.call.ok),
    _of_call("lossy", "boolean", "Whether a change lost something.", lambda at: at.call.lossy),
    _of_call("arguments_bytes", "integer", "Size as it came.", lambda at: at.call.arguments_bytes),
    _of_call("rules", "list", "Rules that changed it.", lambda at: at.call.rules),
    _of_call("error_codes", "list", "Why it was refused.", lambda at: at.call.error_codes),
    _of_call("error_kinds", "list", "Kinds of schema errors.", lambda at: at.call.error_kinds),
)
"""A call in one row."""
