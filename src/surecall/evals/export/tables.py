"""Trials and calls as tables: `trials.csv` and `calls.csv`, `runs.jsonl`, and Parquet by DuckDB."""

import csv
import errno
import importlib
import importlib.util
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import msgspec

from surecall.base.errors import Code, ConfigError
from surecall.base.files import explain_write_errors
from surecall.base.spreadsheets import disarm_text
from surecall.evals.records import CallFact, TrialRow
from surecall.evals.run_source import RunSource, utc_text, write_export
from surecall.evals.store import RunStore
from surecall.evals.taxonomy import severity_of
from surecall.text import encode_text
from surecall.tools.outputs import encode_kept

ColumnType = Literal["text", "integer", "number", "boolean", "list", "time"]


class Column(NamedTuple):
    """One column: its name, what is in it, and where that comes from."""

    name: str
    type: ColumnType
    about: str
    value: Callable[[Any], Any]
    """Takes it from a trial, or from a call in its place."""


def _column(
    name: str, kind: ColumnType, about: str, source: str | Callable[[Any], Any] = ""
) -> Column:
    """Make a column from a function, an attribute, or the attribute of the same name."""
    value = attrgetter(source or name) if isinstance(source, str) else source
    return Column(name, kind, about, value)


class CallPlace(NamedTuple):
    """A call, and the trial it was made in."""

    row: TrialRow
    position: int
    call: CallFact


def list_calls(row: TrialRow) -> list[CallPlace]:
    """Return the calls of a trial with their places."""
    return [CallPlace(row, position, call) for position, call in enumerate(row.calls)]


def _first_strict_code(row: TrialRow) -> str | None:
    return row.strict_reasons[0].code if row.strict_reasons else None


def _first_original_code(row: TrialRow) -> str | None:
    return row.original_reasons[0].code if row.original_reasons else None


def _first_answer_code(row: TrialRow) -> str | None:
    answer = None if row.parts is None else row.parts.answer
    return answer.reasons[0].code if answer is not None and answer.reasons else None


def _severity(row: TrialRow) -> str | None:
    code = _first_strict_code(row)
    return None if code is None or row.is_error else severity_of(code).name.lower()


def _part(name: str) -> Callable[[TrialRow], bool | None]:
    def read(row: TrialRow) -> bool | None:
        verdict = None if row.parts is None else getattr(row.parts, name)
        return None if verdict is None else verdict.ok

    return read


def _cell_columns(place: str) -> tuple[Column, ...]:
    return (
        _column("model", "text", "As it was named.", f"{place}.model"),
        _column("profile", "text", "Sampling profile.", f"{place}.profile"),
        _column("strategy", "text", "Such as `raw` or `production`.", f"{place}.strategy"),
        _column("fallback", "text", "Whether calls in text are looked for.", f"{place}.fallback"),
    )


TRIAL_COLUMNS: Final[tuple[Column, ...]] = (
    _column("idx", "integer", "Place in the order of the matrix.", "index"),
    *_cell_columns("cell"),
    _column("suite", "text", "Family of scenarios.", "cell.suite"),
    _column("scenario", "text", "The scenario.", "cell.scenario"),
    _column("case_id", "text", "Which case; empty when there is only one.", "case"),
    _column("trial", "integer", "Which repetition, from 1."),
    _column("seed", "integer", "The random seed of the trial."),
    _column("simulated", "boolean", "Whether the model is simulated."),
    _column("control", "boolean", "Whether it is a control without tools."),
    _column("original_ok", "boolean", "The verdict of the original experiment's assertion."),
    _column("strict_ok", "boolean", "The verdict on behaviour: state and process."),
    _column(
        "outcome",
        "text",
        "`called`, `abstained`, `broke`, or `refused` or `error` of the endpoint.",
    ),
    _column("code", "text", "Code the run ended with, without an answer."),
    _column("category", "text", "Category of the original, when it failed."),
    _column("error", "text", "The error in words."),
    _column("error_status", "integer", "HTTP status of the error."),
    _column("strict_reason", "text", "Gravest reason of the strict verdict.", _first_strict_code),
    _column("original_reason", "text", "First reason of that verdict.", _first_original_code),
    _column("cut_by_limit", "boolean", "Failed, cut at its token limit."),
    _column("censored", "boolean", "The trial was stopped, so its true time is longer."),
    _column("elapsed_ms", "number", "How long it took."),
    _column("turns", "integer", "Turns of the run."),
    _column("requests", "integer", "Requests of the run."),
    _column("attempts", "integer", "Requests sent, including retries."),
    _column("cached_replies", "integer", "Replies that came from the cache."),
    _column("first_token_ms", "number", "Until the first piece of a streamed reply."),
    _column("tokens_per_s", "number", "At which streamed replies were written."),
    _column("input_tokens", "integer", "As reported.", "usage.input_tokens"),
    _column("output_tokens", "integer", "As reported.", "usage.output_tokens"),
    _column("cost_usd", "number", "Empty without a price."),
    _column("calls", "integer", "How many calls were made.", lambda row: len(row.calls)),
    _column("rules", "list", "Rules that changed something."),
    _column("saved_by", "list", "Rules used for a call that ran, when the trial is right."),
    _column("fabrications", "integer", "Must be 0."),
    _column("escalations", "integer", "How often it was asked another way."),
    _column("text", "text", "The answer of the model."),
    _column("started_at", "time", "When it began, UTC.", lambda row: utc_text(row.started_at)),
    _column("state_ok", "boolean", "The state left behind; empty if not checked.", _part("state")),
    _column("process_ok", "boolean", "The calls; empty if not checked.", _part("process")),
    _column("answer_ok", "boolean", "The final text; empty if not checked."),
    _column("severity", "text", "Of the gravest reason: harm, work, order or form.", _severity),
    _column("answer_reason", "text", "Gravest reason against the answer.", _first_answer_code),
)
"""A trial in one row."""

CALL_COLUMNS: Final[tuple[Column, ...]] = (
    _column("idx", "integer", "The trial.", "row.index"),
    _column("position", "integer", "Which call of the trial, from 0."),
    *_cell_columns("row.cell"),
    _column("scenario", "text", "The scenario.", "row.cell.scenario"),
    _column("simulated", "boolean", "Whether the model is simulated.", "row.simulated"),
    _column("turn", "integer", "In which turn.", "call.turn"),
    _column("name", "text", "The tool, as it was called.", "call.name"),
    _column("format", "text", "`tool_calls`, or the text format.", "call.format"),
    _column("structured", "boolean", "In its place in the reply.", "call.structured"),
    _column("state", "text", "Whether it is whole.", "call.state"),
    _column("valid_before", "boolean", "Fitted the schema as it came.", "call.valid_before"),
    _column("valid_after", "boolean", "Fitted the schema after repair.", "call.valid_after"),
    _column("changed", "boolean", "Whether any rule changed it.", "call.changed"),
    _column("exact", "boolean", "As expected; empty when nothing is.", "call.exact"),
    _column("executed", "boolean", "Whether the tool ran.", "call.executed"),
    _column("ok", "boolean", "Whether the tool succeeded.", "call.ok"),
    _column("lossy", "boolean", "Whether a change lost something.", "call.lossy"),
    _column("arguments_bytes", "integer", "Size as it came.", "call.arguments_bytes"),
    _column("rules", "list", "Rules that changed it.", "call.rules"),
    _column("error_codes", "list", "Why it was refused.", "call.error_codes"),
    _column("error_kinds", "list", "Kinds of schema errors.", "call.error_kinds"),
)
"""A call in one row."""


def write_csv(store: RunStore, run_id: str, out: Path) -> tuple[Path, ...]:
    """Write both tables into a folder.

    A text that a spreadsheet could run as a formula gets an apostrophe in front.
    """
    source = RunSource(store, run_id)
    trials, calls = out / "trials.csv", out / "calls.csv"
    with write_export(trials) as trials_file, write_export(calls) as calls_file:
        trial_table = _Table(trials_file, run_id, TRIAL_COLUMNS)
        call_table = _Table(calls_file, run_id, CALL_COLUMNS)
        for row in source.rows():
            trial_table.add(row)
            for place in list_calls(row):
                call_table.add(place)
    return trials, calls


class _Table:
    """A table that is written row by row."""

    def __init__(self, file: BinaryIO, run_id: str, columns: Sequence[Column]) -> None:
        self._file = file
        self._run_id = run_id
        self._columns = columns
        self._buffer = io.StringIO(newline="")
        # Line ends as RFC 4180 has them; then the writer quotes text with either kind in it.
        self._writer = csv.writer(self._buffer, lineterminator="\r\n")
        self._write(["run", *(column.name for column in columns)])

    def add(self, record: Any) -> None:
        """Add a row."""
        self._write([self._run_id, *(_cell(column, record) for column in self._columns)])

    def _write(self, cells: Sequence[str]) -> None:
        self._writer.writerow(cells)
        self._file.write(self._buffer.getvalue().encode("utf-8"))
        self._buffer.seek(0)
        self._buffer.truncate()


def _cell(column: Column, record: Any) -> str:
    value = column.value(record)
    if value is None:
        return ""
    if column.type == "boolean":
        return "true" if value else "false"
    if column.type == "list":
        return encode_text(value)
    if column.type != "text":
        return str(value)
    return disarm_text(str(value))


def write_jsonl(store: RunStore, run_id: str, out: Path) -> tuple[Path, ...]:
    """Write `runs.jsonl` into a folder."""
    source = RunSource(store, run_id)
    path = out / "runs.jsonl"
    with write_export(path) as file:
        for row in source.rows():
            file.write(encode_kept(render_line(run_id, row)) + b"\n")
    return (path,)


def render_line(run_id: str, row: TrialRow) -> dict[str, Any]:
    """Return a trial under the names that tables have, and its reasons and calls in full."""
    whole = ("usage", "original_reasons", "strict_reasons", "parts", "calls")
    return {
        "run": run_id,
        **{column.name: column.value(row) for column in TRIAL_COLUMNS},
        **{name: msgspec.to_builtins(getattr(row, name)) for name in whole},
    }


_TYPES: Final[Mapping[ColumnType, str]] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "list": "VARCHAR[]",
    "time": "TIMESTAMP",
}
_MIN_LINE_BYTES: Final = 1 << 20


def check_parquet() -> ConfigError | None:
    """Return what is missing for Parquet, or None when it can be written."""
    if importlib.util.find_spec("duckdb") is not None:
        return None
    return ConfigError(
        Code.EXTRA_MISSING,
        "Parquet is written by DuckDB, which is not installed.",
        hint="Run: pip install 'surecall[analytics]'",
    )


def write_parquet(store: RunStore, run_id: str, out: Path) -> tuple[Path, ...]:
    """Write both tables into a folder, or raise `EXTRA_MISSING`."""
    missing = check_parquet()
    if missing is not None:
        raise missing
    source = RunSource(store, run_id)
    trials, calls = out / "trials.parquet", out / "calls.parquet"
    with explain_write_errors(out), tempfile.TemporaryDirectory() as folder:
        out.mkdir(parents=True, exist_ok=True)
        _write_table(_lines(run_id, TRIAL_COLUMNS, source.rows()), TRIAL_COLUMNS, folder, trials)
        places = (place for row in source.rows() for place in list_calls(row))
        _write_table(_lines(run_id, CALL_COLUMNS, places), CALL_COLUMNS, folder, calls)
    return trials, calls


def _lines(run_id: str, columns: Sequence[Column], records: Iterator[Any]) -> Iterator[bytes]:
    for record in records:
        values = {column.name: column.value(record) for column in columns}
        yield encode_kept({"run": run_id, **values}) + b"\n"


def _write_table(
    lines: Iterator[bytes], columns: Sequence[Column], folder: str, path: Path
) -> None:
    """Let DuckDB read lines of JSON and write the table; neither holds all of it in memory."""
    between = Path(folder) / f"{path.stem}.ndjson"
    longest = 0
    with between.open("wb") as file:
        for line in lines:
            file.write(line)
            longest = max(longest, len(line))
    types = {"run": "VARCHAR"} | {column.name: _TYPES[column.type] for column in columns}
    duckdb: Any = importlib.import_module("duckdb")
    # One thread keeps the order of the rows, and so the bytes; nothing may come from the network.
    settings = {"threads": 1, "autoinstall_known_extensions": False}
    half = path.with_name(f"{path.name}.part")
    try:
        with duckdb.connect(":memory:", config=settings) as database:
            table = database.read_json(
                str(between),
                columns=types,
                format="newline_delimited",
                maximum_object_size=max(longest + 1, _MIN_LINE_BYTES),
            )
            table.write_parquet(str(half), compression="zstd")
        half.replace(path)
    except duckdb.IOException as error:
        full = errno.ENOSPC if os.strerror(errno.ENOSPC) in str(error) else None
        raise OSError(full, str(error)) from error
    finally:
        half.unlink(missing_ok=True)
