"""While a store is away: records wait in a bounded file, come back once, and drops are counted."""

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from support.request_records import make_record
from surecall.errors import Code, StoreError
from surecall.gateway.records import Spool, SpooledRecords, SqliteRecords, spool
from surecall.gateway.records.spool import read_spool
from surecall.redaction import Secret


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
    for _ in range(300):
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
    waiting.rename(tmp_path / "requests.spool.replaying")
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
