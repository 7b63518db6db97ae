"""`runs.jsonl`: one line for each trial, with everything but its transcript."""

from pathlib import Path
from typing import Any

import msgspec

from surecall.evals.original import add_old_names
from surecall.evals.records import TrialRow, encode_kept
from surecall.evals.store import RunStore

from .columns import TRIAL_COLUMNS
from .files import write_export
from .source import RunSource

__all__ = ["render_line", "write_jsonl"]


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
    columns = {column.name: column.value(row) for column in TRIAL_COLUMNS}
    fields = {
        "run": run_id,
        **columns,
        "usage": msgspec.to_builtins(row.usage),
        "original_reasons": msgspec.to_builtins(row.original_reasons),
        "strict_reasons": msgspec.to_builtins(row.strict_reasons),
        "calls": msgspec.to_builtins(row.calls),
    }
    return add_old_names(fields)
