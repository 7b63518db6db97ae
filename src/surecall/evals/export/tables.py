"""Trials and calls as tables: `trials.csv` and `calls.csv`, `runs.jsonl`, and Parquet by DuckDB."""

import csv
import errno
import importlib
import importlib.util
import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from surecall.base.errors import Code, ConfigError
from surecall.base.files import explain_write_errors
from surecall.base.spreadsheets import disarm_text
from surecall.evals.records import TrialRow
from surecall.evals.run_files import write_export
from surecall.evals.run_source import RunSource
from surecall.evals.store import RunStore
from surecall.loop.stored import encode_kept
from surecall.text import encode_text

from .columns import CALL_COLUMNS, TRIAL_COLUMNS, Column, ColumnType, list_calls


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
