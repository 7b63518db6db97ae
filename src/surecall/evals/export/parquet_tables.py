"""`trials.parquet` and `calls.parquet`, written by DuckDB when it is installed."""

import errno
import importlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from surecall.errors import Code, ConfigError
from surecall.evals.records import encode_kept
from surecall.evals.store import RunStore
from surecall.files import explain_write_errors

from .columns import CALL_COLUMNS, TRIAL_COLUMNS, Column, ColumnType, list_calls
from .source import RunSource

__all__ = ["check_parquet", "write_parquet"]

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
