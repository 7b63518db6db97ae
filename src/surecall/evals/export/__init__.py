"""A run in the files of others: which formats there are, and writing several into one folder."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import asdict

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.files import explain_write_errors
from surecall.evals.export.summaries import write_json
from surecall.evals.gates import check_stored
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.run_source import check_folder
from surecall.evals.store import RunStore

from .junit import write_junit
from .markdown import render_markdown, write_markdown
from .tables import (
    CALL_COLUMNS,
    TRIAL_COLUMNS,
    Column,
    check_parquet,
    write_csv,
    write_jsonl,
    write_parquet,
)

__all__ = [
    "ALL",
    "CALL_COLUMNS",
    "FORMATS",
    "TRIAL_COLUMNS",
    "Column",
    "Exported",
    "Format",
    "check_folder",
    "check_formats",
    "export_run",
    "parse_formats",
    "render_markdown",
    "write_csv",
    "write_json",
    "write_jsonl",
    "write_junit",
    "write_markdown",
    "write_parquet",
]


ALL: Final = "all"
"""Stands for every format that can be written here."""


class Format(NamedTuple):
    """One way to write a run."""

    about: str
    write: Callable[[RunStore, str, Path], tuple[Path, ...]]
    missing: Callable[[], ConfigError | None] = lambda: None
    """Says what must be installed first."""


class Exported(NamedTuple):
    """What came of an export."""

    files: Mapping[str, tuple[Path, ...]]
    """The files and folders of each format."""
    left_out: Mapping[str, ConfigError]
    """Formats of `all` that cannot be written here, and why."""


def _write_html(store: RunStore, run_id: str, out: Path) -> tuple[Path, ...]:
    # The report brings its assets along; nobody else needs to load them.
    from surecall.evals.report import write_html

    return (write_html(store, store.info(run_id), out / "report.html"),)


def _write_json(store: RunStore, run_id: str, out: Path) -> tuple[Path, ...]:
    info = store.info(run_id)
    tallies = tally_rows(store.rows(run_id) if info.manifest.gates else ())
    gates = [{**asdict(one), "ok": one.ok} for one in check_stored(store, info, tallies)]
    return write_json(store, run_id, out, gates)


FORMATS: Final[Mapping[str, Format]] = {
    "html": Format("One page with charts and transcripts, for a browser.", _write_html),
    "json": Format("The original's summaries, and a file for each trial.", _write_json),
    "csv": Format("A table of trials and one of calls.", write_csv),
    "jsonl": Format("A line for each trial.", write_jsonl),
    "md": Format("A short summary, for a pull request.", write_markdown),
    "junit": Format("Suites and cases, for a build server.", write_junit),
    "parquet": Format("Both tables in columns, for analysis.", write_parquet, check_parquet),
}
"""Every format by its name."""


def parse_formats(text: str) -> tuple[str, ...]:
    """Return the formats of a list such as `html,md`, each once; `all` is kept as it is."""
    names = [name.strip().lower() for name in text.split(",")]
    chosen = tuple(dict.fromkeys(name for name in names if name))
    for name in chosen:
        if name not in FORMATS and name != ALL:
            raise ConfigError(
                Code.INVALID_OPTION,
                f"there is no format {name!r}.",
                hint=did_you_mean(name, [*FORMATS, ALL]),
            )
    if not chosen:
        raise ConfigError(
            Code.INVALID_OPTION,
            "no format is named.",
            hint=f"Choose from {', '.join(FORMATS)} and {ALL}.",
        )
    return chosen


def check_formats(formats: Sequence[str]) -> None:
    """Raise when a format that is named needs something that is not installed."""
    for name in formats:
        missing = FORMATS[name].missing() if name in FORMATS else None
        if missing is not None:
            raise missing


def export_run(
    store: RunStore, run_id: str, out: str | Path, formats: Sequence[str] = (ALL,)
) -> Exported:
    """Write a run into a folder, in some formats or in all.

    Nothing is written when a format that is named needs something that is not installed.

    Args:
        store: Where the run is.
        run_id: Its id.
        out: The folder; made when it is not there.
        formats: Names from `FORMATS`, or `all`.
    """
    named = parse_formats(",".join(formats))
    check_formats(named)
    chosen = [name for name in FORMATS if name in named or ALL in named]
    left_out: dict[str, ConfigError] = {}
    for name in chosen:
        missing = FORMATS[name].missing()
        if missing is not None:
            left_out[name] = missing
    folder = Path(out)
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        written = {
            name: FORMATS[name].write(store, run_id, folder)
            for name in chosen
            if name not in left_out
        }
    return Exported(written, left_out)
