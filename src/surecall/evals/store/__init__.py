"""Runs on disk: every finished trial is in the file before it is counted.

One SQLite file holds all runs. A batch of trials is one transaction; once `add` has returned, the
trials survive the death of the process and a loss of power. A trial is kept once: a second record
of the same place in a run is left out.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeVar

from msgspec.structs import replace

from surecall.base.errors import Code, StoreError
from surecall.base.sqlite_files import damaged, explain_database_errors, transaction
from surecall.evals.records import Cell, Manifest, TrialBody, TrialRow
from surecall.text import encode_text

from .naming import (
    FIRST_EVAL,
    LATEST,
    check_tag,
    hold_run,
    is_held,
    new_run_id,
    parse_latest,
    unknown_run,
)
from .rows import (
    COLUMNS,
    RunInfo,
    RunStatus,
    cell_key,
    check_types,
    columns_of,
    decode_body,
    decode_info,
    decode_row,
    decode_sealed,
    encode_body,
    open_database,
)

__all__ = [
    "FIRST_EVAL",
    "LATEST",
    "STORE_FILE",
    "RightCounts",
    "RunInfo",
    "RunStatus",
    "RunStore",
    "check_tag",
]

T = TypeVar("T")

STORE_FILE: Final = "evals.db"
"""Name of the file in the folder for evals."""

_PAGE: Final = 500
_INSERT_TRIAL: Final = (
    f"INSERT INTO trials ({', '.join(COLUMNS)}) "  # noqa: S608 - names of our own
    f"VALUES ({', '.join('?' * len(COLUMNS))})"
)
_REPLACE_TRIAL: Final = _INSERT_TRIAL.replace("INSERT", "INSERT OR REPLACE", 1)
_KEEP_ATTEMPTS: Final = """
INSERT INTO retried (run, idx, attempt, row, body)
SELECT trials.run, trials.idx,
    (SELECT count(*) FROM retried WHERE retried.run = trials.run AND retried.idx = trials.idx) + 1,
    trials.row, bodies.body
FROM trials LEFT JOIN bodies ON bodies.run = trials.run AND bodies.idx = trials.idx
WHERE trials.run = ? AND trials.outcome = 'error'
"""
_RECOUNT: Final = """
UPDATE runs SET manifest = :manifest, manifest_hash = :hash,
    (done, seed_ok, strict_ok, errors) = (
        SELECT count(*), coalesce(sum(seed_ok), 0), coalesce(sum(strict_ok), 0),
            coalesce(sum(outcome = 'error'), 0)
        FROM trials WHERE run = :run
    )
WHERE number = :run
"""
_INFO: Final = """
SELECT runs.*, (SELECT group_concat(name) FROM tags WHERE tags.run = runs.number) AS tags
FROM runs
"""


_COUNT_RIGHT: Final = """
SELECT count(*) AS n, coalesce(sum(strict_ok), 0) AS strict_ok,
    coalesce(sum(seed_ok), 0) AS original_ok
FROM trials WHERE run = ? AND control = 0
"""


class RightCounts(NamedTuple):
    """How many of the trials with tools are right, by either verdict."""

    n: int
    strict_ok: int
    original_ok: int


class RunStore:
    """All runs of a project, in one file; may be used from several threads."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._database = open_database(self.path)
        self._database.row_factory = sqlite3.Row
        self._turn = threading.RLock()
        self._cells: dict[tuple[str, ...], int] = {}
        self._numbers: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RunStore({str(self.path)!r})"

    def close(self) -> None:
        """Close the file; what was added stays."""
        with self._turn:
            self._database.close()

    # runs

    def create(self, manifest: Manifest, *, now_s: float | None = None) -> str:
        """Begin a run and return its id."""
        now = time.time() if now_s is None else now_s
        with self._writing() as database:
            while True:
                run_id = new_run_id(now)
                if not database.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone():
                    break
            database.execute(
                "INSERT INTO runs (id, status, units, manifest_hash, manifest, created_at) "
                "VALUES (?, 'running', ?, ?, ?, ?)",
                (run_id, manifest.units, manifest.hash, encode_text(manifest), now),
            )
        return run_id

    def find_unfinished(self, manifest_hash: str) -> str | None:
        """Return the latest run that can be continued, of an experiment with this hash."""
        return self._find_latest("status != 'complete'", manifest_hash)

    def find_complete(self, manifest_hash: str) -> str | None:
        """Return the latest run with nothing left to do, of an experiment with this hash."""
        return self._find_latest("status = 'complete'", manifest_hash)

    def resolve(self, reference: str) -> str:
        """Return the id of a run named by id, its beginning, a tag, `@latest` or `@latest~1`."""
        back = parse_latest(reference)
        if back is not None:
            found = self._select(
                "SELECT id FROM runs ORDER BY created_at DESC, number DESC LIMIT 1 OFFSET ?", back
            )
        else:
            name = reference.removeprefix("@")
            found = self._select(
                "SELECT id FROM runs JOIN tags ON tags.run = runs.number WHERE tags.name = ?", name
            )
            if not found and name == reference and name:
                found = self._select(
                    "SELECT id FROM runs WHERE substr(id, 1, ?) = ? ORDER BY id", len(name), name
                )
        if len(found) == 1:
            return found[0]["id"]
        known = self._select("SELECT id AS name FROM runs UNION SELECT '@' || name FROM tags")
        raise unknown_run(reference, [row["id"] for row in found], [row["name"] for row in known])

    def info(self, run_id: str) -> RunInfo:
        """Return what is known of one run."""
        found = self._select(f"{_INFO} WHERE runs.id = ?", run_id)
        if not found:
            raise unknown_run(run_id, [], [info.id for info in self.runs()])
        return self._decode(decode_info, found[0])

    def runs(self) -> list[RunInfo]:
        """List all runs, the latest first."""
        found = self._select(f"{_INFO} ORDER BY runs.created_at DESC, runs.number DESC")
        return [self._decode(decode_info, row) for row in found]

    def set_gates(self, run_id: str, gates: tuple[str, ...]) -> None:
        """Note what a run must pass from now on, in place of the gates that it had."""
        number, manifest = self._number(run_id), replace(self.info(run_id).manifest, gates=gates)
        with self._writing() as database:
            database.execute(
                "UPDATE runs SET manifest = ? WHERE number = ?", (encode_text(manifest), number)
            )

    def finish(self, run_id: str, status: RunStatus, *, now_s: float | None = None) -> None:
        """Note how the work on a run ended."""
        number = self._number(run_id)
        with self._writing() as database:
            database.execute(
                "UPDATE runs SET status = ?, ended_at = ? WHERE number = ?",
                (status, time.time() if now_s is None else now_s, number),
            )

    def tag(self, run_id: str, name: str) -> None:
        """Give a run a name; a run that had it loses it."""
        number, bare = self._number(run_id), check_tag(name)
        with self._writing() as database:
            database.execute(
                "INSERT OR REPLACE INTO tags (name, run) VALUES (?, ?)", (bare, number)
            )

    def untag(self, name: str) -> None:
        """Take a name away from whichever run has it."""
        with self._writing() as database:
            database.execute("DELETE FROM tags WHERE name = ?", (check_tag(name),))

    def remove(self, run_id: str) -> None:
        """Forget a run with all its trials."""
        number = self._number(run_id)
        with self.hold(run_id), self._writing() as database:
            for table in ("bodies", "retried", "trials", "tags"):
                database.execute(f"DELETE FROM {table} WHERE run = ?", (number,))  # noqa: S608
            database.execute("DELETE FROM runs WHERE number = ?", (number,))
            self._numbers.clear()
        with self._turn, explain_database_errors(self.path):
            self._database.execute("PRAGMA incremental_vacuum").fetchall()

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """Keep other processes from working on a run while this one does."""
        return hold_run(self.path, run_id)

    def is_held(self, run_id: str) -> bool:
        """Tell whether a process works on the run right now."""
        return is_held(self.path, run_id)

    # trials

    def add(
        self, run_id: str, trials: Iterable[tuple[TrialRow, TrialBody | None]]
    ) -> tuple[int, ...]:
        """Keep finished trials and return the places of those that were not there before.

        All of them are on disk when this returns; when it raises, none of them is.
        """
        number = self._number(run_id)
        batch: dict[int, tuple[TrialRow, bytes | None]] = {}
        for row, body in trials:
            if row.index not in batch:
                batch[row.index] = (row, None if body is None else encode_body(body))
        with self._writing() as database:
            known = self._places(number, batch)
            fresh = [(row, body) for row, body in batch.values() if row.index not in known]
            cells = [self._cell(row.cell) for row, _ in fresh]
            database.executemany(
                _INSERT_TRIAL,
                [
                    columns_of(number, cell, row)
                    for cell, (row, _) in zip(cells, fresh, strict=True)
                ],
            )
            database.executemany(
                "INSERT INTO bodies (run, idx, body) VALUES (?, ?, ?)",
                [(number, row.index, body) for row, body in fresh if body is not None],
            )
            database.execute(
                "UPDATE runs SET done = done + ?, seed_ok = seed_ok + ?, "
                "strict_ok = strict_ok + ?, errors = errors + ? WHERE number = ?",
                (
                    len(fresh),
                    sum(row.original_ok for row, _ in fresh),
                    sum(row.strict_ok for row, _ in fresh),
                    sum(row.is_error for row, _ in fresh),
                    number,
                ),
            )
        return tuple(row.index for row, _ in fresh)

    def replace_verdicts(self, run_id: str, manifest: Manifest, rows: Iterable[TrialRow]) -> None:
        """Put trials that were judged again in the places of the old ones, and count anew."""
        number = self._number(run_id)
        with self._writing() as database:
            database.executemany(
                _REPLACE_TRIAL, [columns_of(number, self._cell(row.cell), row) for row in rows]
            )
            database.execute(
                _RECOUNT,
                {"run": number, "manifest": encode_text(manifest), "hash": manifest.hash},
            )

    def retry_errors(self, run_id: str) -> int:
        """Make room for a new attempt of every trial that its endpoint failed; return how many.

        The failed attempts are kept beside the trials: `failed_attempts` returns them.
        """
        number, manifest = self._number(run_id), self.info(run_id).manifest
        with self._writing() as database:
            count = database.execute(_KEEP_ATTEMPTS, (number,)).rowcount
            failed = "(SELECT idx FROM trials WHERE run = :run AND outcome = 'error')"
            for table in ("bodies", "trials"):
                database.execute(
                    f"DELETE FROM {table} WHERE run = :run AND idx IN {failed}",  # noqa: S608
                    {"run": number},
                )
            database.execute(
                _RECOUNT,
                {"run": number, "manifest": encode_text(manifest), "hash": manifest.hash},
            )
            if count:
                database.execute(
                    "UPDATE runs SET status = 'interrupted' WHERE number = ?", (number,)
                )
        return count

    def failed_attempts(self, run_id: str) -> list[tuple[int, TrialRow]]:
        """Return the attempts that were made again, with their numbers, in the order of trials."""
        found = self._select(
            "SELECT attempt, row FROM retried WHERE run = ? ORDER BY idx, attempt",
            self._number(run_id),
        )
        return [(each["attempt"], self._decode(decode_sealed, each)) for each in found]

    def count_right(self, run_id: str) -> RightCounts:
        """Count the trials of a run but its controls; an endpoint error is not right."""
        (found,) = self._select(_COUNT_RIGHT, self._number(run_id))
        return RightCounts(found["n"], found["strict_ok"], found["original_ok"])

    def done(self, run_id: str) -> set[int]:
        """Return the places of all trials that are there."""
        found = self._select("SELECT idx FROM trials WHERE run = ?", self._number(run_id))
        return {row["idx"] for row in found}

    def rows(self, run_id: str) -> Iterator[TrialRow]:
        """Yield all trials in the order of the matrix, a page at a time."""
        number, after = self._number(run_id), -(2**62)
        while True:
            page = self._select(
                "SELECT * FROM trials WHERE run = ? AND idx > ? ORDER BY idx LIMIT ?",
                number,
                after,
                _PAGE,
            )
            for found in page:
                yield self._decode(decode_row, found)
            if len(page) < _PAGE:
                return
            after = page[-1]["idx"]

    def row(self, run_id: str, index: int) -> TrialRow:
        """Return one trial."""
        found = self._select(
            "SELECT * FROM trials WHERE run = ? AND idx = ?", self._number(run_id), index
        )
        if not found:
            raise _no_trial(run_id, index)
        return self._decode(decode_row, found[0])

    def body(self, run_id: str, index: int) -> TrialBody:
        """Return what was kept of one trial apart from its row."""
        body = self.find_body(run_id, index)
        if body is None:
            raise _no_trial(run_id, index)
        return body

    def find_body(self, run_id: str, index: int) -> TrialBody | None:
        """Return what was kept of one trial apart from its row, if anything was."""
        found = self._select(
            "SELECT body FROM bodies WHERE run = ? AND idx = ?", self._number(run_id), index
        )
        if not found:
            return None
        body = self._decode(lambda row: decode_body(row["body"]), found[0])
        if body.index != index:
            raise damaged(self.path, f"trial {index} has the body of trial {body.index}")
        return body

    # inside

    def _find_latest(self, condition: str, manifest_hash: str) -> str | None:
        order = "ORDER BY created_at DESC, number DESC LIMIT 1"
        query = f"SELECT id FROM runs WHERE manifest_hash = ? AND {condition} {order}"  # noqa: S608
        found = self._select(query, manifest_hash)
        return found[0]["id"] if found else None

    def _number(self, run_id: str) -> int:
        if run_id not in self._numbers:
            found = self._select("SELECT number FROM runs WHERE id = ?", run_id)
            if not found:
                raise unknown_run(run_id, [], [])
            self._numbers[run_id] = found[0]["number"]
        return self._numbers[run_id]

    def _places(self, number: int, batch: dict[int, Any]) -> set[int]:
        found = self._select(
            "SELECT idx FROM trials WHERE run = ? AND idx IN (SELECT value FROM json_each(?))",
            number,
            encode_text(list(batch)),
        )
        return {row["idx"] for row in found}

    def _cell(self, cell: Cell) -> int:
        key = cell_key(cell)
        if key not in self._cells:
            self._database.execute(
                "INSERT OR IGNORE INTO cells (model, profile, strategy, fallback, suite, scenario) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                key,
            )
            found = self._select(
                "SELECT number FROM cells WHERE model = ? AND profile = ? AND strategy = ? "
                "AND fallback = ? AND suite = ? AND scenario = ?",
                *key,
            )
            if not found:
                raise damaged(self.path, "a cell that was kept is not there")
            self._cells[key] = found[0]["number"]
        return self._cells[key]

    def _select(self, query: str, *values: Any) -> Sequence[sqlite3.Row]:
        with self._turn, explain_database_errors(self.path):
            found = self._database.execute(query, values).fetchall()
        for row in found:
            self._decode(check_types, row)
        return found

    def _decode(self, decode: Callable[[Any], T], row: sqlite3.Row) -> T:
        """Decode a row of the file, or say that the file is damaged."""
        try:
            return decode(row)
        except ValueError as error:
            raise damaged(self.path, str(error)) from error

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """Have one durable transaction: all of it, or nothing."""
        with self._turn, explain_database_errors(self.path):
            try:
                with transaction(self._database):
                    yield self._database
            except BaseException:
                self._cells.clear()
                raise


def _no_trial(run_id: str, index: int) -> StoreError:
    return StoreError(
        Code.RUN_NOT_FOUND,
        f"Run {run_id} has no trial {index}, or nothing was kept of it.",
        hint="It may not have been run yet.",
    )
