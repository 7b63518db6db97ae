"""Requests in SQLite files: private, whole, refused with a code, merged from all workers."""

import asyncio
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.request_records import make_record
from surecall.base.errors import StoreError
from surecall.base.redaction import MASK, Secret
from surecall.store.databases import by_number
from surecall.store.records import sqlite
from surecall.store.records.record import COLUMNS, encode_row, first_id_at, new_request_id
from surecall.store.records.sqlite import Durability, SqliteRecords
from surecall.store.records.tables import SQLITE, SQLITE_LAYOUT, RecordFilter


def change(path: Path, *statements: str) -> None:
    """Change a file behind the back of its store."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


async def fill(path: Path, count: int = 3) -> list[str]:
    """Make a file with some records, and return their ids."""
    store = SqliteRecords(path)
    records = [make_record(number, error_code="AUTH") for number in range(count)]
    await asyncio.gather(*map(store.add, records))
    await store.close()
    return [record.id for record in records]


async def code_of(path: Path) -> str:
    """Return the code of what opening, writing and reading a file raises."""
    try:
        store = SqliteRecords(path)
        try:
            await store.list()
            await store.add(make_record(50))
        finally:
            await store.close()
    except StoreError as error:
        return error.code
    return "none"


async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    """The log of the database, too, whatever the mask of the process."""
    before = os.umask(0)
    try:
        store = SqliteRecords(tmp_path / "deep" / "requests.db")
        await store.add(make_record())
        files = list((tmp_path / "deep").iterdir())
        assert len(files) == 3
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        await store.close()
    finally:
        os.umask(before)


async def test_every_worker_has_a_file_and_all_are_read(tmp_path: Path) -> None:
    """Pages and exports are in order over all files."""
    path = tmp_path / "requests.db"
    stores = [SqliteRecords(path, worker=number) for number in range(3)]
    records = [make_record(number) for number in range(30)]
    await asyncio.gather(*(stores[at % 3].add(one) for at, one in enumerate(records)))
    assert sorted(file.name for file in tmp_path.glob("*.db")) == [
        "requests.db",
        "requests.w1.db",
        "requests.w2.db",
    ]
    page = await stores[1].list(limit=7)
    assert [one.id for one in page.records] == [one.id for one in reversed(records[23:])]
    page = await stores[2].list(before=page.next, limit=100)
    assert [one.id for one in page.records] == [one.id for one in reversed(records[:23])]
    assert [one.id async for one in stores[0].export()] == [one.id for one in records]
    assert await stores[0].get(records[4].id) == records[4]
    for store in stores:
        await store.close()


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        pytest.param(lambda path: path.write_bytes(b"x" * 5000), "STORE_CORRUPT", id="not one"),
        pytest.param(
            lambda path: change(path, "PRAGMA application_id = 7"), "STORE_CORRUPT", id="foreign"
        ),
        pytest.param(
            lambda path: change(path, "PRAGMA user_version = 99"), "STORE_TOO_NEW", id="too new"
        ),
        pytest.param(
            lambda path: change(path, "DROP TABLE requests"), "STORE_CORRUPT", id="no table"
        ),
        pytest.param(
            lambda path: change(path, "UPDATE requests SET status = 'many'"),
            "STORE_CORRUPT",
            id="wrong type",
        ),
        pytest.param(
            lambda path: change(path, "UPDATE requests SET details = '{half'"),
            "STORE_CORRUPT",
            id="wrong details",
        ),
        pytest.param(
            lambda path: change(path, "UPDATE requests SET outcome = 'odd'"),
            "STORE_CORRUPT",
            id="unknown outcome",
        ),
        pytest.param(
            lambda path: change(path, "UPDATE requests SET upstream = CAST(x'ff' AS TEXT)"),
            "STORE_CORRUPT",
            id="not UTF-8",
        ),
    ],
)
async def test_a_damaged_file_has_a_code(
    spoil: Callable[[Path], None], code: str, tmp_path: Path
) -> None:
    """Whatever is wrong with it."""
    path = tmp_path / "requests.db"
    await fill(path)
    spoil(path)
    assert await code_of(path) == code


async def test_a_page_of_a_file_that_was_overwritten(tmp_path: Path) -> None:
    """Damage in the middle is noticed by whoever reads there."""
    path = tmp_path / "requests.db"
    await fill(path, 400)
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 6] = os.urandom(4096 * 3)
    path.write_bytes(data)
    store = SqliteRecords(path)
    with pytest.raises(StoreError) as caught:
        await store.list(limit=400)
    assert caught.value.code == "STORE_CORRUPT"
    await store.close()


async def test_a_full_disk_fails_the_batch_and_nothing_else(tmp_path: Path) -> None:
    """What was there stays, and with room again it goes on."""
    store = SqliteRecords(tmp_path / "requests.db")
    await store.add(make_record(0))
    assert store._database is not None
    (pages,) = store._database.execute("PRAGMA page_count").fetchone()
    store._database.execute(f"PRAGMA max_page_count = {pages + 1}")
    large = [make_record(at, reply_body=os.urandom(9000)) for at in range(1, 5)]
    done = await asyncio.gather(*map(store.add, large), return_exceptions=True)
    assert [getattr(error, "code", None) for error in done] == ["DISK_FULL"] * 4
    store._database.execute("PRAGMA max_page_count = 100000")
    await asyncio.gather(*map(store.add, large))
    assert len((await store.list()).records) == 5
    await store.close()


async def test_a_file_that_somebody_else_locks(tmp_path: Path) -> None:
    """It fails with a code, and works again when the lock is gone."""
    path = tmp_path / "requests.db"
    store = SqliteRecords(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as caught:
            await store.add(make_record())
        assert caught.value.code == "STORE_WRITE_FAILED"
    await store.add(make_record())
    await store.close()


def test_a_name_is_looked_at_again_when_another_secret_is_known() -> None:
    """Names that were clean are remembered only until then."""
    record = make_record(model_asked="correct-horse-battery")
    place = list(COLUMNS).index("model_asked")
    assert encode_row(record).columns[place] == "correct-horse-battery"
    secret = Secret("correct-horse-battery")
    assert encode_row(record).columns[place] == MASK
    del secret
    assert encode_row(record).columns[place] == "correct-horse-battery"


async def test_a_place_that_cannot_be_used(tmp_path: Path) -> None:
    """A file where a folder should be."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as caught:
        SqliteRecords(tmp_path / "file" / "requests.db")
    assert caught.value.code == "STORE_WRITE_FAILED"


async def test_a_file_of_before_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a reader as well as by a writer; its records stay."""
    path = tmp_path / "requests.db"
    kept = await fill(path)
    await fill(tmp_path / "requests.w1.db")
    step = "ALTER TABLE requests ADD COLUMN later TEXT"
    layout = SQLITE_LAYOUT._replace(steps=(*SQLITE_LAYOUT.steps, step))
    monkeypatch.setattr(sqlite, "SQLITE_LAYOUT", layout)
    store = SqliteRecords(path)
    await store.add(make_record(9))
    assert len((await store.list()).records) == 7
    assert await store.get(kept[0]) is not None
    await store.close()
    for file in tmp_path.glob("*.db"):
        with closing(sqlite3.connect(file)) as database:
            assert database.execute("PRAGMA user_version").fetchone() == (len(layout.steps),)


@pytest.mark.parametrize("limit", [0, 10**9])
async def test_the_log_is_taken_over_beside_the_work(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it is so long that writing has to wait for it."""
    monkeypatch.setattr(sqlite, "_CHECKPOINT_BYTES", 10_000)
    monkeypatch.setattr(sqlite, "_MAX_LOG_BYTES", limit)
    store = SqliteRecords(tmp_path / "requests.db")

    async def work(start: int) -> None:
        for number in range(60):
            await store.add(make_record(start + number))

    await asyncio.gather(*(work(1000 * start) for start in range(8)))
    await store.close()
    again = SqliteRecords(tmp_path / "requests.db")
    assert len([one async for one in again.export()]) == 480
    await again.close()


async def test_looking_for_what_is_rare_uses_an_index(tmp_path: Path) -> None:
    """Neither a code nor an outcome makes the database read every row."""
    await fill(tmp_path / "requests.db")
    with closing(sqlite3.connect(tmp_path / "requests.db")) as database:
        for wanted in (RecordFilter(code="AUTH"), RecordFilter(outcome="refused")):
            query = SQLITE.page(wanted, 50)
            asked = f"EXPLAIN QUERY PLAN {query.text}"
            plan = str(database.execute(asked, by_number(query.values)).fetchall())
            assert "USING INDEX requests_" in plan, plan


def test_ids_sort_by_time_and_differ() -> None:
    """Within one millisecond, too, and after a fork."""
    made = [new_request_id(1_790_000_000 + at / 1000) for at in range(1000)]
    assert made == sorted(made)
    assert len({new_request_id(1_790_000_000) for _ in range(5000)}) == 5000
    assert first_id_at(1_790_000_000) <= new_request_id(1_790_000_000) < first_id_at(1_790_000_001)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, new_request_id(5.0).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 100).decode() != new_request_id(5.0)
    os.close(read)
    os.close(write)


def test_a_plain_record_is_kept_without_details() -> None:
    """The common case costs no more than it must."""
    row = encode_row(make_record())
    assert row.columns[-2:] == (None, None)
    assert row.bodies is None


async def test_a_lone_record_is_durable_without_a_turn_of_the_loop(tmp_path: Path) -> None:
    """Nobody else can add one in this turn, so it does not wait for others."""
    store = SqliteRecords(tmp_path / "requests.db")
    store.is_alone = lambda: True
    adding = store.add(make_record(1))
    with pytest.raises(StopIteration):
        adding.send(None)
    with closing(sqlite3.connect(store.file)) as database:
        assert database.execute("SELECT count(*) FROM requests").fetchone() == (1,)
    assert (store.counts.stored, store.counts.batches) == (1, 1)
    await store.close()


async def test_a_lone_record_that_fails_says_so(tmp_path: Path) -> None:
    """Writing at once raises what writing later does."""
    store = SqliteRecords(tmp_path / "requests.db")
    store.is_alone = lambda: True
    change(store.file, "DROP TABLE requests")
    with pytest.raises(StoreError):
        await store.add(make_record(1))
    assert store.counts.stored == 0
    await store.close()


async def test_rows_with_and_without_nulls_are_one_batch(tmp_path: Path) -> None:
    """A whole reply, a stream, one with an error and one with a first byte and an error."""
    store = SqliteRecords(tmp_path / "requests.db")
    records = [
        make_record(1),
        make_record(2, first_byte_ms=1.5, stream=True, client_closed=True),
        make_record(3, error_code="AUTH"),
        make_record(4, first_byte_ms=2.5, error_code="AUTH"),
    ]
    await asyncio.gather(*map(store.add, records))
    assert store.counts.batches == 1
    assert [record async for record in store.export()] == records
    await store.close()


@pytest.mark.parametrize("durable", ["process", "power"])
@pytest.mark.parametrize("whole_folder", [False, True])
async def test_a_file_that_is_removed_while_it_is_used(
    whole_folder: bool, durable: Durability, tmp_path: Path
) -> None:
    """It is begun again with the latest records, and only what is stored counts as stored."""
    store = SqliteRecords(tmp_path / "deep" / "requests.db", durable=durable)
    await store.add(make_record(0))
    await asyncio.sleep(3 * sqlite._LOOK_S)
    if whole_folder:
        shutil.rmtree(tmp_path / "deep")
    else:
        store.file.unlink()
    await asyncio.gather(*(store.add(make_record(number)) for number in range(1, 6)))
    for _ in range(6000):
        if store.counts.reopened:
            break
        await asyncio.sleep(0.01)
    await store.add(make_record(6))
    assert [one.time async for one in store.export()] == [
        make_record(at).time for at in range(1, 7)
    ]
    assert (store.counts.stored, store.counts.dropped, store.counts.reopened) == (7, 0, 1)
    assert stat.S_IMODE(store.file.stat().st_mode) == 0o600
    await store.close()


async def test_records_of_a_file_that_cannot_be_made_again_are_dropped(tmp_path: Path) -> None:
    """They do not count as stored."""
    store = SqliteRecords(tmp_path / "deep" / "requests.db")
    await store.add(make_record(0))
    shutil.rmtree(tmp_path / "deep")
    (tmp_path / "deep").touch()
    await store.close()
    assert (store.counts.stored, store.counts.dropped) == (0, 1)


@pytest.mark.parametrize("kept_bytes", [None, 0, 20_000])
async def test_a_log_that_is_cut_or_removed_is_noticed(
    kept_bytes: int | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The file stays whole, what was only in the log counts as dropped, and work goes on."""
    store = SqliteRecords(tmp_path / "requests.db")
    await asyncio.gather(*(store.add(make_record(number)) for number in range(30)))
    store._begin_checkpoint()
    while store._is_checkpointing:
        await asyncio.sleep(0.01)
    for number in range(30, 60):
        await store.add(make_record(number))
    await asyncio.sleep(3 * sqlite._LOOK_S)
    log = Path(f"{store.file}-wal")
    log.unlink() if kept_bytes is None else os.truncate(log, kept_bytes)
    await asyncio.gather(*(store.add(make_record(number)) for number in range(60, 70)))
    while not store.counts.reopened:
        await asyncio.sleep(0.01)
    assert "30 records are lost" in caplog.text
    await store.add(make_record(70))
    assert (store.counts.stored, store.counts.dropped) == (41, 30)
    await store.close()
    again = SqliteRecords(tmp_path / "requests.db")
    wanted = [make_record(number).time for number in (*range(30), *range(60, 71))]
    assert [record.time async for record in again.export()] == wanted
    await again.close()
