"""The tables of a store, its stable views, and opening the file that holds them."""

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from surecall.base.sqlite_files import (
    check_owner,
    connect,
    damaged,
    read_version,
    transaction,
    write_ahead,
)

SCHEMA_VERSION: Final = 1

_APPLICATION_ID: Final = 0x53_43_45_56  # "SCEV"
_CACHE_KIB: Final = 4096

_RETRIED: Final = """
CREATE TABLE IF NOT EXISTS retried (
    run INTEGER NOT NULL REFERENCES runs (number),
    idx INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    row TEXT NOT NULL,
    body BLOB,
    PRIMARY KEY (run, idx, attempt)
);
"""
"""Attempts that an endpoint failed and that were made again; the trial is where it always is."""
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


def open_database(path: Path) -> sqlite3.Connection:
    """Open the file, made new when it is not there; what is not ours is refused untouched."""
    return connect(path, _prepare)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    check_owner(connection, path, _APPLICATION_ID, SCHEMA_VERSION)
    # Readers must not wait for the writer; where the disk cannot do this, sqlite says so and
    # goes on with its older journal, which is as durable.
    write_ahead(connection)
    # FULL: a commit survives a loss of power, not only of the process. NORMAL would not.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    if read_version(connection) == SCHEMA_VERSION:
        _check_pages(connection, path)
        with suppress(sqlite3.OperationalError):  # a file that cannot be written is only read
            connection.execute(_RETRIED)
        return
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    # Two processes may meet here: the second finds the tables of the first.
    with transaction(connection):
        if read_version(connection) != SCHEMA_VERSION:
            for statement in (_TABLES + _RETRIED + _VIEWS).split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file with a damaged page, whatever is wanted of it."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise damaged(path, found)
