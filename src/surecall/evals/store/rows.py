"""Runs and trials as they are kept: rows of JSON with a checksum, and compressed bodies.

Whatever a file holds in place of a row is either decoded to what was kept or is a `ValueError`.
"""

import sqlite3
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from surecall.base.errors import JSONTextError
from surecall.base.sealed_lines import checksum, seal_line, split_sealed
from surecall.base.sqlite_files import Layout, connect, damaged, explain_database_errors
from surecall.evals.records import Cell, Manifest, TrialBody, TrialRow
from surecall.text import decode_own, repair_surrogates
from surecall.tools.outputs import encode_kept

_REPEATED: Final[Mapping[str, Callable[[TrialRow], Any]]] = {
    "idx": lambda row: row.index,
    "case_id": lambda row: repair_surrogates(row.case),
    "trial": lambda row: row.trial,
    "seed": lambda row: row.seed,
    "simulated": lambda row: row.simulated,
    "control": lambda row: row.control,
    "seed_ok": lambda row: row.original_ok,
    "strict_ok": lambda row: row.strict_ok,
    "outcome": lambda row: row.outcome,
    "code": lambda row: row.code and repair_surrogates(row.code),
    "category": lambda row: row.category and repair_surrogates(row.category),
    "elapsed_ms": lambda row: row.elapsed_ms,
    "started_at": lambda row: row.started_at,
}
"""Columns that repeat a field of the row; the original verdict kept its old name."""

COLUMNS: Final = ("run", "cell", *_REPEATED, "row")
"""The columns of the table `trials`."""

_LATEST_S: Final = 253_402_300_799
"""The last second that has a date."""

_TEXT, _WHOLE, _NUMBER, _NONE = (str,), (int,), (float, int), type(None)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("id", "status", "manifest", "case_id", "outcome", "row", "name"), _TEXT),
    **dict.fromkeys(("code", "category", "tags"), (str, _NONE)),
    **dict.fromkeys(("number", "units", "done", "idx", "trial", "seed"), _WHOLE),
    **dict.fromkeys(("simulated", "control", "seed_ok", "strict_ok"), _WHOLE),
    **dict.fromkeys(("elapsed_ms", "started_at", "created_at"), _NUMBER),
    "ended_at": (*_NUMBER, _NONE),
    "body": (bytes,),
}
"""What the columns hold; a file may hold anything in any of them."""

RunStatus = Literal["running", "interrupted", "complete"]
"""`running` is also what a run is called whose process was killed."""

_COMPRESSION: Final = 1
"""Bodies are text that repeats itself; more effort gains little and costs several times as much."""

_TABLES: Final = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    units INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    seed_ok INTEGER NOT NULL DEFAULT 0,
    strict_ok INTEGER NOT NULL DEFAULT 0,
    errors INTEGER NOT NULL DEFAULT 0,
    manifest_hash TEXT NOT NULL,
    manifest TEXT NOT NULL,
    created_at REAL NOT NULL,
    ended_at REAL
);
CREATE INDEX runs_by_manifest ON runs (manifest_hash);

CREATE TABLE tags (
    name TEXT PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (number)
);

CREATE TABLE cells (
    number INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    profile TEXT NOT NULL,
    strategy TEXT NOT NULL,
    fallback TEXT NOT NULL,
    suite TEXT NOT NULL,
    scenario TEXT NOT NULL,
    UNIQUE (model, profile, strategy, fallback, suite, scenario)
);

CREATE TABLE trials (
    run INTEGER NOT NULL REFERENCES runs (number),
    idx INTEGER NOT NULL,
    cell INTEGER NOT NULL REFERENCES cells (number),
    case_id TEXT NOT NULL,
    trial INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    simulated INTEGER NOT NULL,
    control INTEGER NOT NULL,
    seed_ok INTEGER NOT NULL,
    strict_ok INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    code TEXT,
    category TEXT,
    elapsed_ms REAL NOT NULL,
    started_at REAL NOT NULL,
    row TEXT NOT NULL,
    PRIMARY KEY (run, idx)
);

CREATE TABLE bodies (
    run INTEGER NOT NULL REFERENCES runs (number),
    idx INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, idx)
);

-- Attempts that an endpoint failed and that were made again; the trial is where it always is.
CREATE TABLE retried (
    run INTEGER NOT NULL REFERENCES runs (number),
    idx INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    row TEXT NOT NULL,
    body BLOB,
    PRIMARY KEY (run, idx, attempt)
);
"""


def _fields(place: str, names: str) -> str:
    """Return the columns of a view that are fields of a JSON object."""
    return ", ".join(f"json_extract({place}, '$.{name}') AS {name}" for name in names.split())


_VIEWS: Final = f"""
CREATE VIEW v_runs AS
SELECT
    runs.id AS run,
    runs.status,
    runs.units,
    runs.done,
    runs.seed_ok AS original_ok,
    runs.strict_ok,
    runs.errors,
    (SELECT group_concat(name, ',') FROM tags WHERE tags.run = runs.number) AS tags,
    datetime(runs.created_at, 'unixepoch') AS created_at,
    datetime(runs.ended_at, 'unixepoch') AS ended_at,
    json_extract(runs.manifest, '$.package') AS package,
    json_extract(runs.manifest, '$.command') AS command,
    runs.manifest_hash,
    runs.manifest
FROM runs;

CREATE VIEW v_trials AS
SELECT
    runs.id AS run,
    trials.idx,
    cells.model,
    cells.profile,
    cells.strategy,
    cells.fallback,
    cells.suite,
    cells.scenario,
    trials.case_id,
    trials.trial,
    trials.seed,
    trials.simulated,
    trials.control,
    trials.seed_ok AS original_ok,
    trials.strict_ok,
    trials.outcome,
    trials.code,
    trials.category,
    {_fields("trials.row", "error error_status")},
    json_extract(trials.row, '$.strict_reasons[0].code') AS strict_reason,
    json_extract(trials.row, '$.seed_reasons[0].code') AS original_reason,
    {_fields("trials.row", "cut_by_limit censored")},
    trials.elapsed_ms,
    {_fields("trials.row", "turns requests")},
    json_extract(trials.row, '$.usage.input_tokens') AS input_tokens,
    json_extract(trials.row, '$.usage.output_tokens') AS output_tokens,
    {_fields("trials.row", "cost_usd")},
    json_array_length(trials.row, '$.calls') AS calls,
    {_fields("trials.row", "rules saved_by fabrications escalations text")},
    datetime(trials.started_at, 'unixepoch') AS started_at,
    json_extract(trials.row, '$.parts.state.ok') AS state_ok,
    json_extract(trials.row, '$.parts.process.ok') AS process_ok,
    json_extract(trials.row, '$.parts.answer.ok') AS answer_ok,
    json_extract(trials.row, '$.parts.answer.reasons[0].code') AS answer_reason
FROM trials
JOIN runs ON runs.number = trials.run
JOIN cells ON cells.number = trials.cell;

CREATE VIEW v_tool_calls AS
SELECT
    runs.id AS run,
    trials.idx,
    call.key AS position,
    cells.model,
    cells.profile,
    cells.strategy,
    cells.scenario,
    {_fields("call.value", "turn name format structured state valid_before valid_after changed")},
    {_fields("call.value", "exact executed ok lossy arguments_bytes rules error_codes error_kinds")}
FROM trials
JOIN runs ON runs.number = trials.run
JOIN cells ON cells.number = trials.cell,
json_each(trials.row, '$.calls') AS call;
"""  # noqa: S608 - names of our own


LAYOUT: Final = Layout(0x53_43_45_56, (_TABLES + _VIEWS,))  # "SCEV"
_SETTINGS: Final = (
    "cache_size = -4096",
    # A commit survives a loss of power, not only of the process.
    "synchronous = FULL",
    "foreign_keys = ON",
)
_OF_NEW_FILES: Final = ("auto_vacuum = INCREMENTAL",)
"""SQLite writes this one whenever it is given, also into a file that is about to be refused."""


def open_database(path: Path) -> sqlite3.Connection:
    """Open the file, made new when it is not there; one with a damaged page is refused."""
    is_new = not path.exists() or not path.stat().st_size
    connection = connect(path, LAYOUT, (*_SETTINGS, *(_OF_NEW_FILES if is_new else ())))
    with explain_database_errors(path):
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        connection.close()
        raise damaged(path, found)
    return connection


class RunInfo(Struct, frozen=True, kw_only=True):
    """One run, as it is listed."""

    id: str
    status: RunStatus
    manifest: Manifest
    units: int
    done: int
    original_ok: int = 0
    strict_ok: int = 0
    errors: int = 0
    """Trials that the endpoint failed: in no rate."""
    tags: tuple[str, ...] = ()
    created_at: float = 0.0
    """Seconds since 1970."""
    ended_at: float | None = None

    @property
    def judged(self) -> int:
        """How many trials say something about the model."""
        return self.done - self.errors

    @property
    def is_complete(self) -> bool:
        """Whether every trial is there."""
        return self.done >= self.units


def columns_of(run: int, cell: int, row: TrialRow) -> tuple[Any, ...]:
    """Return the values of a row of the table, in the order of `COLUMNS`."""
    text = encode_kept(row)
    repeated = (read(row) for read in _REPEATED.values())
    return (run, cell, *repeated, seal_line(text, checksum(b"", text)).decode())


def check_types(found: Mapping[str, Any]) -> None:
    """Raise when a column holds something of another type, or a moment that has no date."""
    for name in found.keys():  # noqa: SIM118 - iterating over a row of sqlite yields its values
        value, types = found[name], _TYPES.get(name)
        if types is not None and not isinstance(value, types):
            raise ValueError(f"{name} holds {type(value).__name__}")
        if name.endswith("_at") and value is not None and not 0 <= value <= _LATEST_S:
            raise ValueError(f"{name} is {value}")


def decode_sealed(found: Mapping[str, Any]) -> TrialRow:
    """Return the trial in the column `row`, which must be as it was written."""
    text, check = split_sealed(found["row"].encode())
    if check is not None and check != checksum(b"", text):  # rows of before have none
        raise ValueError("the checksum of a trial does not fit")
    return msgspec.convert(_decode_json(text), TrialRow)


def decode_row(found: Mapping[str, Any]) -> TrialRow:
    """Return the trial of a stored row, which must say the same as its other columns."""
    row = decode_sealed(found)
    for name, read in _REPEATED.items():
        if found[name] != read(row):
            raise ValueError(f"{name} is not what the row says")
    return row


def decode_info(row: Mapping[str, Any]) -> RunInfo:
    """Return what is known of a stored run."""
    info = msgspec.convert(
        {
            **dict(row),
            "manifest": _decode_json(row["manifest"].encode()),
            "original_ok": row["seed_ok"],
            "tags": sorted(row["tags"].split(",")) if row["tags"] else (),
        },
        RunInfo,
    )
    if info.units != info.manifest.units:
        raise ValueError("a run has another size than its manifest")
    if min(info.done, info.original_ok, info.strict_ok, info.errors, info.judged) < 0:
        raise ValueError("a run has less than no trials")
    return info


def _decode_json(text: bytes) -> Any:
    try:
        return decode_own(text)
    except JSONTextError as error:
        raise ValueError(error.message.rstrip(".")) from error


def encode_body(body: TrialBody) -> bytes:
    """Return a body as it is kept."""
    return zlib.compress(encode_kept(body), _COMPRESSION)


def decode_body(data: bytes) -> TrialBody:
    """Return the body of a stored trial."""
    try:
        return msgspec.convert(_decode_json(zlib.decompress(data)), TrialBody)
    except zlib.error as error:
        raise ValueError("a body cannot be unpacked") from error


def cell_key(cell: Cell) -> tuple[str, ...]:
    """Return what tells one cell from another."""
    return tuple(map(repair_surrogates, msgspec.structs.astuple(cell)))
