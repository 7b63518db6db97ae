"""Commands on a store with damaged rows: the right output or an error with a code."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from surecall.base.errors import StoreError
from surecall.evals.store import RunStore

from .harness import STEADY, documents, invoke

DAMAGES: tuple[Any, ...] = (
    b"\xff\xfe\x00garbage",
    "garbage",
    "",
    "null",
    "{}",
    '{"index":0}',
    -1,
    2**62,
    1e300,
    "2026-02-08",
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A store with a complete run and one that can be continued."""
    folder = tmp_path_factory.mktemp("stores")
    path = folder / "evals.db"
    first, second = (
        documents(invoke("eval", *STEADY, *more, "--json", "--store", str(path)))[-1]["run"]
        for more in (("--trials", "2"), ("--trials", "2", "--seed", "5"))
    )
    with closing(sqlite3.connect(path)) as database:
        number = "(SELECT number FROM runs WHERE id = ?)"
        for table in ("bodies", "trials"):
            database.execute(f"DELETE FROM {table} WHERE idx = 1 AND run = {number}", (second,))
        database.execute("UPDATE runs SET done = 1, status = 'running' WHERE id = ?", (second,))
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path, first, second


def cells(path: Path) -> list[tuple[str, str, int]]:
    """Name every cell of every table: table, column, row."""
    with closing(sqlite3.connect(path)) as database:
        return [
            (table, column[1], row)
            for table in ("runs", "cells", "trials", "bodies")
            for column in database.execute(f"PRAGMA table_info({table})").fetchall()
            for (row,) in database.execute(f"SELECT rowid FROM {table}").fetchall()
        ]


def put(path: Path, cell: tuple[str, str, int], value: Any) -> bool:
    """Put a value into a cell, and tell whether the database took it."""
    table, column, row = cell
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        try:
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
        except sqlite3.IntegrityError:
            return False
        database.commit()
    return True


def flip(path: Path, cell: tuple[str, str, int], chance: random.Random) -> None:
    """Change one bit of a text or a blob, as a disk would, whether it is text afterwards or not."""
    table, column, row = cell
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        ((kind, value),) = database.execute(
            f"SELECT typeof({column}), CAST({column} AS BLOB) FROM {table} WHERE rowid = ?", (row,)
        )
        if kind not in ("text", "blob") or not value:
            return
        content = bytearray(value)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        database.execute(
            f"UPDATE {table} SET {column} = CAST(? AS {kind}) WHERE rowid = ?",
            (bytes(content), row),
        )
        database.commit()


def read_all(path: Path) -> dict[str, Any] | str:
    """Read everything that the store keeps, or return the code of the error."""
    try:
        return _read(path)
    except StoreError as error:
        return error.code


def _read(path: Path) -> dict[str, Any]:
    with RunStore(path) as store:
        found: dict[str, Any] = {info.id: info for info in store.runs()}
        for run in list(found):
            found[f"{run} rows"] = list(store.rows(run))
            found[f"{run} done"] = store.done(run)
            for row in found[f"{run} rows"]:
                found[f"{run} {row.index}"] = store.row(run, row.index)
                found[f"{run} {row.index} body"] = store.body(run, row.index)
    return found


def test_whatever_a_cell_holds_is_told_with_a_code(
    stores: tuple[Path, str, str], tmp_path: Path
) -> None:
    """Every cell of every table, with values of each type: readable, or a code."""
    tried = refused = 0
    # One row of each table is enough.
    for cell in {cell[:2]: cell for cell in cells(stores[0])}.values():
        for damage in DAMAGES:
            path = Path(shutil.copyfile(stores[0], tmp_path / "evals.db"))
            if not put(path, cell, damage):
                continue
            tried += 1
            found = read_all(path)
            refused += isinstance(found, str)
            if isinstance(found, str):
                assert found in ("STORE_CORRUPT", "RUN_NOT_FOUND"), (cell, damage)
    assert tried > 200
    assert refused > 100


def test_a_flipped_bit_in_a_record_is_never_read_as_something_else(
    stores: tuple[Path, str, str], tmp_path: Path
) -> None:
    """Rows and bodies carry checksums: what is read is what was kept."""
    chance = random.Random(11)
    whole = read_all(Path(shutil.copyfile(stores[0], tmp_path / "evals.db")))
    records = [cell for cell in cells(stores[0]) if cell[1] in ("row", "body")]
    for _ in range(150):
        path = Path(shutil.copyfile(stores[0], tmp_path / "evals.db"))
        flip(path, chance.choice(records), chance)
        assert read_all(path) in (whole, "STORE_CORRUPT")


def test_rows_of_before_the_checksums_are_read(
    stores: tuple[Path, str, str], tmp_path: Path
) -> None:
    """A store that an earlier version wrote has the same records without their last field."""
    path = Path(shutil.copyfile(stores[0], tmp_path / "evals.db"))
    whole = read_all(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE trials SET row = json_remove(row, '$.check')")
        database.commit()
    assert read_all(path) == whole


def test_no_command_breaks_on_a_damaged_store(
    stores: tuple[Path, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing, reports, comparison and going on: output, or an error with a code."""
    monkeypatch.chdir(tmp_path)
    whole, first, second = stores
    formats = "html,csv,json,jsonl,md,junit"
    commands = [
        ("eval", "runs", "--store", "evals.db"),
        ("eval", "runs", "show", first, "--store", "evals.db"),
        ("eval", "report", first, "--format", formats, "--store", "evals.db", "-o", "o"),
        ("eval", "diff", first, second, "--html", "diff.html", "--store", "evals.db"),
        ("eval", "--resume", second, "--store", "evals.db", "-q"),
    ]
    chance = random.Random(2)
    places = cells(whole)
    for number in range(60):
        path = Path(shutil.copyfile(whole, "evals.db"))
        cell = chance.choice(places)
        if number % 3 == 0:
            put(path, cell, chance.choice(DAMAGES))
        elif number % 3 == 1:
            flip(path, cell, chance)
        else:
            content = bytearray(path.read_bytes())
            start = chance.randrange(100, len(content))
            content[start : start + 16] = chance.randbytes(16)
            path.write_bytes(content)
        command = commands[number % len(commands)]
        result = invoke(*command)
        told = result.stdout + result.stderr
        assert "INTERNAL_ERROR" not in told, (cell, command, told)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        for left in Path().glob("evals.db-*"):
            left.unlink()
