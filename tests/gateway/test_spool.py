"""While a store is away: records wait in a bounded file, come back once, and drops are counted."""

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import force_setattr

from support.request_records import make_record
from surecall.base import background
from surecall.base.errors import Code, RowRefusedError, StoreError
from surecall.base.redaction import Secret
from surecall.store.records import spool
from surecall.store.records.spool import Spool, SpooledRecords, read_spool
from surecall.store.records.sqlite import SqliteRecords


class Shaky(SqliteRecords):
    """A store that can be sent away."""

    is_gone = False

    async def add(self, record: Any) -> None:
        if self.is_gone:
            raise StoreError(Code.STORE_WRITE_FAILED, "away.")
        await super().add(record)

    async def list(self, *arguments: Any, **settings: Any) -> Any:
        if self.is_gone:
            raise StoreError(Code.STORE_WRITE_FAILED, "away.")
        return await super().list(*arguments, **settings)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for the store more often."""
    monkeypatch.setattr(spool, "_RETRY_S", 0.01)


def open_both(folder: Path, **settings: Any) -> tuple[Shaky, SpooledRecords]:
    """Return a store that can be sent away, and the same with a spool."""
    store = Shaky(folder / "requests.db")
    return store, SpooledRecords(store, Spool(folder / "requests.spool", **settings))


async def until(is_so: Any) -> None:
    """Wait until something is so."""
    for _ in range(6000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never happened")


async def test_records_wait_and_come_back(tmp_path: Path) -> None:
    """By themselves, as soon as the store is there again, each once."""
    inner, store = open_both(tmp_path)
    inner.is_gone = True
    records = [make_record(number, request_body=b"\xff\0") for number in range(450)]
    await asyncio.gather(*map(store.add, records))
    assert (store.is_away, store.counts.spooled, store.counts.stored) == (True, 450, 0)
    assert stat.S_IMODE((tmp_path / "requests.spool").stat().st_mode) == 0o600
    inner.is_gone = False
    await until(lambda: not store.is_away)
    assert store.counts.replayed == 450
    assert [one.id async for one in store.export()] == [one.id for one in records]
    found = await store.get(records[7].id)
    assert found is not None
    assert found.request_body == b"\xff\0"
    await store.add(make_record(1000))
    assert (store.counts.spooled, store.counts.stored) == (450, 451)
    assert store.spool is not None
    assert store.spool.size_bytes == 0
    await store.close()


async def test_the_spool_is_bounded(tmp_path: Path) -> None:
    """What it cannot take is dropped and counted, and no request fails for it."""
    inner, store = open_both(tmp_path, max_bytes=2000)
    inner.is_gone = True
    await asyncio.gather(*(store.add(make_record(number)) for number in range(50)))
    assert store.counts.dropped > 40
    assert store.counts.spooled + store.counts.dropped == 50
    assert (tmp_path / "requests.spool").stat().st_size <= 2000
    await store.close()


async def test_what_another_process_left_is_replayed(tmp_path: Path) -> None:
    """Also when it was killed in the middle of a line, or in the middle of a replay."""
    inner, store = open_both(tmp_path)
    inner.is_gone = True
    records = [make_record(number) for number in range(30)]
    await asyncio.gather(*map(store.add, records[:10]))
    await store.close()
    waiting = tmp_path / "requests.spool"
    inner, store = open_both(tmp_path)
    await inner.add(records[3])
    inner.is_gone = True
    await asyncio.gather(*map(store.add, records[10:]))
    await store.close()
    with waiting.open("ab") as file:
        file.write(waiting.read_bytes()[:100])
    inner, store = open_both(tmp_path)
    await store.start()
    await until(lambda: store.spool is not None and store.spool.size_bytes == 0)
    assert [one.id async for one in store.export()] == [one.id for one in records]
    assert (store.counts.replayed, store.counts.dropped) == (30, 1)
    await store.close()


async def test_a_damaged_line_is_left_out_and_counted(tmp_path: Path) -> None:
    """The others are kept."""
    inner, store = open_both(tmp_path)
    inner.is_gone = True
    await asyncio.gather(*(store.add(make_record(number)) for number in range(3)))
    await store.close()
    waiting = tmp_path / "requests.spool"
    lines = waiting.read_bytes().splitlines(keepends=True)
    waiting.write_bytes(lines[0] + lines[1].replace(b"small", b"smell") + b"{}\n" + lines[2])
    assert [record is None for record in read_spool(waiting)] == [False, True, True, False]
    inner, store = open_both(tmp_path)
    assert await store.replay() == 2
    assert store.counts.dropped == 2
    await store.close()


async def test_a_spool_that_cannot_be_written_drops_and_counts(tmp_path: Path) -> None:
    """Never silently."""
    (tmp_path / "requests.spool").mkdir()
    inner, store = open_both(tmp_path)
    inner.is_gone = True
    await store.add(make_record())
    assert store.counts.dropped == 1
    await store.close()


async def test_without_a_spool_a_store_that_is_away_drops(tmp_path: Path) -> None:
    """And it is used again when it is back."""
    inner = Shaky(tmp_path / "requests.db")
    store = SpooledRecords(inner, None)
    inner.is_gone = True
    await store.add(make_record(0))
    assert store.counts.dropped == 1
    inner.is_gone = False
    await until(lambda: not store.is_away)
    store.add_soon(make_record(1))
    await store.close()
    assert store.counts.stored == 1


async def test_secrets_do_not_wait_on_disk(tmp_path: Path) -> None:
    """The spool is as clean as the store."""
    secret = Secret("correct-horse-battery")
    inner, store = open_both(tmp_path)
    inner.is_gone = True
    await store.add(make_record(model_asked=secret.reveal(), reply_body=b"a correct-horse-battery"))
    assert b"correct-horse" not in (tmp_path / "requests.spool").read_bytes()
    await store.close()


async def test_a_disk_that_fills_up_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a line is taken back, so that the next one can be read."""
    waiting = Spool(tmp_path / "requests.spool")
    waiting.append(make_record(0))
    write = os.write
    monkeypatch.setattr(spool.os, "write", lambda file, data: write(file, data[:50]))
    with pytest.raises(StoreError) as caught:
        waiting.append(make_record(1))
    assert caught.value.code == "DISK_FULL"
    monkeypatch.undo()
    waiting.append(make_record(2))
    waiting.close()
    assert [record is None for record in read_spool(waiting.path)] == [False, False]


async def test_half_a_line_swallows_no_record(tmp_path: Path) -> None:
    """A process that was killed while it wrote spoils only what it wrote."""
    waiting = Spool(tmp_path / "requests.spool")
    waiting.append(make_record(0))
    whole = waiting.path.read_bytes()
    for cut in (1, 40, len(whole) - 2):
        waiting.path.write_bytes(whole + whole[:cut])
        again = Spool(waiting.path)
        again.append(make_record(1))
        again.append(make_record(2))
        again.close()
        found = [record for record in read_spool(waiting.path) if record is not None]
        assert [record.time for record in found] == [make_record(at).time for at in range(3)]
    waiting.close()


async def test_a_spool_that_is_removed_is_counted_and_begun_again(tmp_path: Path) -> None:
    """Records that waited in it are dropped and counted; the next one waits in a new file."""
    inner, store = open_both(tmp_path)
    inner.is_gone = True
    await asyncio.gather(*(store.add(make_record(number)) for number in range(3)))
    (tmp_path / "requests.spool").unlink()
    await store.add(make_record(3))
    assert (store.counts.spooled, store.counts.dropped) == (4, 3)
    inner.is_gone = False
    await until(lambda: not store.is_away)
    assert [one.time async for one in store.export()] == [make_record(3).time]
    await store.close()


async def test_a_spool_that_is_moved_away_is_begun_again(tmp_path: Path) -> None:
    """Records in a file with another name are not lost, so they are not counted as dropped."""
    waiting = Spool(tmp_path / "requests.spool")
    waiting.append(make_record(0))
    waiting.path.rename(tmp_path / "moved")
    waiting.append(make_record(1))
    assert waiting.lost == 0
    assert len(list(read_spool(waiting.path))) == 1
    waiting.close()


async def test_gateways_share_a_spool(tmp_path: Path) -> None:
    """Whatever one of them stored and removed, the records of the others come back once."""
    first, one = open_both(tmp_path)
    second, two = open_both(tmp_path)
    first.is_gone = second.is_gone = True
    records = [make_record(number) for number in range(240)]
    await asyncio.gather(*map(one.add, records[:90]), *map(two.add, records[90:180]))
    assert two.spool is not None
    two.spool.take(two.spool.next_lines())  # it is not done, and the first one removes the file
    first.is_gone = False
    assert await one.replay() == 180
    first.is_gone = True
    await asyncio.gather(*map(one.add, records[180:210]), *map(two.add, records[210:]))
    second.is_gone = False
    assert await two.replay() == 60
    assert [record.id async for record in one.export()] == [record.id for record in records]
    assert (one.counts.dropped, two.counts.dropped) == (0, 0)
    await one.close()
    await two.close()


async def test_the_log_says_what_became_of_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk nothing waits there, and once it has room again that is reported."""
    inner, store = open_both(tmp_path)
    inner.is_gone = True
    monkeypatch.setattr(spool.os, "write", lambda *_: 0)
    for number in range(20):
        await store.add(make_record(number))
    assert (store.counts.spooled, store.counts.dropped) == (0, 20)
    assert "Records are dropped" in caplog.text
    assert store.is_full
    assert "wait" not in caplog.text
    assert len(caplog.records) == 1
    monkeypatch.undo()
    await store.add(make_record(20))
    assert "Records wait in" in caplog.text
    assert not store.is_full
    inner.is_gone = False
    await store.replay()
    assert "1 came back from the spool, 20 were dropped" in caplog.text
    await store.close()


async def test_a_record_that_no_store_takes_is_in_nobodys_way(tmp_path: Path) -> None:
    """It goes to the dead-letter file, which can be renamed to have it tried again."""
    inner, store = open_both(tmp_path)
    records = [make_record(number) for number in range(60)]
    force_setattr(records[20], "calls", 2**70)
    await asyncio.gather(*map(store.add, records[:30]))
    assert (store.counts.stored, store.counts.refused) == (29, 1)
    inner.is_gone = True
    await store.add(records[30])
    await asyncio.gather(*map(store.add, records[31:40]))
    inner.is_gone = False
    await store.replay()
    await asyncio.gather(*map(store.add, records[40:]))
    assert (store.counts.stored, store.counts.dropped, store.is_away) == (59, 0, False)
    dead = tmp_path / "requests.dead"
    assert stat.S_IMODE(dead.stat().st_mode) == 0o600
    await store.close()
    dead.rename(tmp_path / "requests.spool")
    inner, store = open_both(tmp_path)
    assert await store.replay() == 1  # reading a line bounds the figure
    assert await store.get(records[20].id) is not None
    await store.close()


async def test_a_refused_row_does_not_stop_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of the spool come back, and it is refused once however often that is tried."""
    inner, store = open_both(tmp_path)
    records = [make_record(number) for number in range(30)]
    inner.is_gone = True
    await asyncio.gather(*map(store.add, records))
    add = inner.add

    async def refuse_one(record: Any) -> None:
        if record.id == records[3].id:
            raise RowRefusedError(Code.STORE_WRITE_FAILED, "no.")
        await add(record)

    monkeypatch.setattr(inner, "add", refuse_one)
    inner.is_gone = False
    await until(lambda: not store.is_away)
    assert (store.counts.replayed, store.counts.refused, store.counts.dropped) == (29, 1, 0)
    await store.close()


async def test_who_leaves_while_the_store_fails_is_recorded(tmp_path: Path) -> None:
    """The record of a caller that is cancelled waits on disk like any other."""

    class Failing(SqliteRecords):
        async def add(self, record: Any) -> None:
            await asyncio.sleep(0.02)
            raise StoreError(Code.STORE_WRITE_FAILED, "away.")

        async def list(self, *_: Any, **__: Any) -> Any:
            raise StoreError(Code.STORE_WRITE_FAILED, "away.")

    store = SpooledRecords(Failing(tmp_path / "requests.db"), Spool(tmp_path / "requests.spool"))
    adding = asyncio.ensure_future(store.add(make_record()))
    await asyncio.sleep(0)
    adding.cancel()
    await asyncio.gather(adding, return_exceptions=True)
    await until(lambda: store.counts.spooled == 1)
    await store.close()


@pytest.mark.parametrize("error", [RuntimeError("odd"), asyncio.CancelledError()])
async def test_bringing_records_back_outlives_whatever_it_meets(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception that nobody expected is logged and counted, and it is tried again."""
    monkeypatch.setattr(background, "_AGAIN_S", 0.01)
    inner, store = open_both(tmp_path)
    inner.is_gone = True
    await store.add(make_record())
    inner.is_gone = False
    listing, failures = inner.list, iter([error, error])

    async def fail_twice(*arguments: Any, **settings: Any) -> Any:
        for failure in failures:
            raise failure
        return await listing(*arguments, **settings)

    monkeypatch.setattr(inner, "list", fail_twice)
    await until(lambda: store.counts.replayed == 1)
    assert store.counts.restarts >= 1
    assert not store.is_away
    await store.close()


async def test_work_that_is_wanted_again_as_it_ends_is_begun_again() -> None:
    """Between its end and the notice of it, nothing that asks for it is overheard."""
    begun: list[int] = []

    async def work() -> None:
        begun.append(len(begun))

    supervised = background.Supervised("work", work, lambda: None)
    supervised.start()
    await asyncio.sleep(0)  # it has ended, and its end was not noticed yet
    supervised.start()
    await supervised.wait()
    assert begun == [0, 1]
    await asyncio.sleep(0)
    assert not supervised.is_running
