"""One contract for both stores of requests: SQLite, and a real PostgreSQL server."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr, replace

from support.request_records import START, make_record, run_postgres, stop_postgres
from surecall.base.errors import RowRefusedError, StoreError
from surecall.base.records import Defect, Receipt
from surecall.base.redaction import MASK, Secret
from surecall.store.records import open_records
from surecall.store.records import postgres as postgres_module
from surecall.store.records.postgres import PostgresRecords
from surecall.store.records.record import (
    _COUNTS,
    _TIMES,
    MAX_COUNT,
    ParseError,
    ProbeNote,
    RequestRecord,
    StepNote,
    decode_line,
    decode_row,
    encode_line,
    encode_row,
    new_request_id,
)
from surecall.store.records.retention import Retention
from surecall.store.records.spool import Spool, SpooledRecords
from surecall.store.records.sqlite import SqliteRecords
from surecall.store.records.store import (
    RecordStore,
    count_all,
    count_by_model,
    count_by_time,
    list_times,
)
from surecall.store.records.tables import POSTGRES_LAYOUT, RecordFilter

FULL: dict[str, Any] = {
    "probe": ProbeNote(ok=False, error="no tool use"),
    "stream": True,
    "outcome": "reasked",
    "calls": 2,
    "steps": (StepNote("repair", "failed", 0), StepNote("reask", "rescued", 1)),
    "receipts": (Receipt("strip_code_fence", "/0", {"a": [1, "x"]}, None, why="fenced"),),
    "defects": (Defect("ID_REPEATED", "the id was there", "/1"),),
    "parse_error": ParseError("native", "not JSON", "{half"),
    "retries": 1,
    "prompt_tokens": 7,
    "completion_tokens": 9,
    "first_byte_ms": 3.5,
    "error_code": "IDLE_TIMEOUT",
    "client_closed": True,
    "request_body": b'{"model":"small"}',
    "reply_body": b"\xff\x00 not text",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """The one server of this file."""
    with run_postgres() as started:
        yield started


@pytest.fixture(params=["sqlite", "sqlite, power", "postgres", "spooled"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RecordStore]:
    """An empty store of each kind."""
    made: RecordStore
    if request.param == "postgres":
        made = await empty_tables(request.getfixturevalue("server"))
    elif request.param == "spooled":
        made = open_records(tmp_path / "requests.db")
    else:
        durable = "power" if "power" in request.param else "process"
        made = SqliteRecords(tmp_path / "requests.db", durable=durable)
    yield made
    await made.close()


async def empty_tables(server: Any) -> PostgresRecords:
    """Return a store on a database without our tables."""
    import asyncpg

    connection = await asyncpg.connect(server.get_uri())
    for name in ("budgets", "requests", "bodies", "layout"):
        await connection.execute(f"DROP TABLE IF EXISTS surecall_{name}")
    await connection.close()
    return PostgresRecords(server.get_uri())


async def add_all(store: RecordStore, *records: RequestRecord) -> None:
    """Add records at the same time."""
    await asyncio.gather(*map(store.add, records))


async def ids(store: RecordStore, **wanted: Any) -> list[str]:
    """Return the ids of what a filter finds."""
    page = await store.list(RecordFilter(**wanted), limit=100)
    return [record.id for record in page.records]


async def test_a_record_comes_back_as_it_was_added(store: RecordStore) -> None:
    """Every field of it; lists leave the bodies out."""
    full, plain = make_record(1, **FULL), make_record(0)
    await add_all(store, full, plain)
    found = await store.get(full.id)
    assert found is not None
    assert found == replace(full, request_bytes=17, reply_bytes=11)
    assert await store.get(plain.id) == plain
    page = await store.list()
    assert [record.id for record in page.records] == [full.id, plain.id]
    assert page.records[0].request_body is None
    assert page.records[0].receipts == full.receipts
    assert page.next is None
    assert [record async for record in store.export()] == [plain, found]
    assert await store.get("nothing") is None
    assert store.counts.stored == 2


async def test_many_at_once_are_few_transactions(store: RecordStore) -> None:
    """Whatever comes within a turn of the loop is written together."""
    await add_all(store, *(make_record(number) for number in range(300)))
    assert store.counts.stored == 300
    assert store.counts.batches <= 10
    assert len([record async for record in store.export()]) == 300


async def test_a_record_is_kept_once(store: RecordStore) -> None:
    """The first stays, also when both come together."""
    first = make_record(0)
    second = replace(first, model_asked="other", request_body=b"x")
    await add_all(store, first, second)
    await store.add(second)
    found = await store.get(first.id)
    assert found is not None
    assert found.model_asked == "small"
    assert len(await ids(store)) == 1


async def test_filters(store: RecordStore) -> None:
    """Time, models, upstream, outcome, codes and keys, alone and together."""
    records = [
        make_record(0),
        make_record(1, upstream="spare", outcome="repaired"),
        make_record(2, model_answered="large", outcome="refused", error_code="AUTH"),
        make_record(3, key_id="team-b", defects=(Defect("ID_REPEATED", "m"),), outcome="repaired"),
        make_record(4, model_asked="large", defects=(Defect("ID_REPEATED_TOO", "m"),)),
    ]
    await add_all(store, *records)
    name = {record.id: number for number, record in enumerate(records)}

    async def found(**wanted: Any) -> list[int]:
        return [name[record_id] for record_id in await ids(store, **wanted)]

    assert await found() == [4, 3, 2, 1, 0]
    assert await found(since=START + 2) == [4, 3, 2]
    assert await found(until=START + 2) == [1, 0]
    assert await found(since=START + 1, until=START + 3) == [2, 1]
    assert await found(model="large") == [4, 2]
    assert await found(upstream="spare") == [1]
    assert await found(outcome="repaired") == [3, 1]
    assert await found(outcome="clean") == [4, 0]
    assert await found(code="ID_REPEATED") == [3]
    assert await found(code="AUTH") == [2]
    assert await found(key_id="team-b", outcome="repaired") == [3]
    assert await found(model="it's; DROP TABLE requests\0") == []
    exported = [name[record.id] async for record in store.export(RecordFilter(outcome="repaired"))]
    assert exported == [1, 3]


async def test_pages_follow_one_another(store: RecordStore) -> None:
    """Nothing twice and nothing left out, also while records are added."""
    await add_all(store, *(make_record(number) for number in range(25)))
    seen: list[str] = []
    before: str | None = None
    for _ in range(3):
        page = await store.list(before=before, limit=10)
        seen += [record.id for record in page.records]
        before = page.next
        await store.add(make_record(100))
    assert before is None
    assert len(seen) == len(set(seen)) == 25
    assert seen == sorted(seen, reverse=True)
    assert len((await store.list(limit=0)).records) == 1


async def test_retention_by_age_and_number(store: RecordStore) -> None:
    """The earliest go first, with their bodies."""
    now = time.time()
    old = [make_record(number, request_body=b"x") for number in range(20)]
    new = [RequestRecord(id=new_request_id(now + at), time=now + at) for at in range(30)]
    await add_all(store, *old, *new)
    assert await Retention(max_age_s=None, max_records=None).prune(store) == 0
    assert await Retention(max_age_s=3600).prune(store) == 20
    assert sorted(await ids(store)) == sorted(record.id for record in new)
    assert await store.get(old[0].id) is None
    assert await Retention(max_records=10).prune(store) == 20
    assert sorted(await ids(store)) == sorted(record.id for record in new)[20:]
    assert await Retention(max_records=0).prune(store) == 10


async def test_one_who_is_cancelled_neither_hangs_the_rest_nor_loses_its_record(
    store: RecordStore,
) -> None:
    """A client that left is recorded like any other."""
    records = [make_record(number) for number in range(6)]
    tasks = [asyncio.ensure_future(store.add(record)) for record in records]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[3].cancel()
    done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
    assert [isinstance(item, asyncio.CancelledError) for item in done].count(True) <= 2
    assert [item for item in done if isinstance(item, StoreError)] == []
    store.add_soon(make_record(7))
    await store.add(make_record(8))
    for _ in range(6000):
        if len(await ids(store)) == 8:
            break
        await asyncio.sleep(0.01)
    assert len(await ids(store)) == 8


async def test_whatever_a_record_holds_can_be_kept(store: RecordStore) -> None:
    """Halves of characters, NULs, numbers without end, and counts that no database takes."""
    nasty = "a\0b\ud800\u202e=cmd"
    record = make_record(
        model_asked=nasty,
        model_answered="m" * 5000,
        upstream="\0up",
        prompt_tokens=10**30,
        receipts=(Receipt("r", nasty, float("nan"), {"k": [nasty, 10**40]}, why=nasty),),
        defects=(Defect("ODD", nasty),),
        parse_error=ParseError("native", nasty, nasty),
        reply_body=b"\0\xff",
    )
    await store.add(record)
    found = await store.get(record.id)
    assert found is not None
    assert len(found.model_answered) <= 201
    assert found.model_asked.startswith("a")
    assert found.reply_body == b"\0\xff"
    assert found.prompt_tokens < 2**63
    assert await ids(store, code="ODD") == [record.id]


NUMBERS = st.one_of(
    st.sampled_from([2**63, -(2**63) - 1, 2**53, -(2**53), 1e400, -1e400, -1, True, "12", None]),
    st.integers(),
    st.floats(),
    st.lists(st.integers(), max_size=2),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.tuples(*[NUMBERS] * len((*_COUNTS, *_TIMES))))
def test_the_numbers_of_a_record_are_bounded(given_numbers: tuple[Any, ...]) -> None:
    """Whatever an upstream reports, every field is a number that every database takes."""
    names = (*_COUNTS, *_TIMES)
    record = RequestRecord(id="a", **dict(zip(names, given_numbers, strict=True)))
    for name in _COUNTS:
        found = getattr(record, name)
        assert type(found) is int
        assert 0 <= found <= MAX_COUNT
    for name in _TIMES:
        found = getattr(record, name)
        if found is None:
            assert name == "first_byte_ms"
        else:
            assert 0.0 <= found <= MAX_COUNT
    assert decode_line(encode_line(record)) == record


@given(VALUES, st.text(), st.integers(0, 3000))
def test_whatever_was_changed_can_be_written_down(value: Any, text: str, depth: int) -> None:
    """Any value in a receipt, however deep, makes a row and a line that can be read again."""
    for _ in range(depth):
        value = [value]
    record = make_record(
        model_asked=text,
        receipts=(Receipt("r", text, value, {text: value}, why=text),),
        defects=(Defect("ODD", text, text),),
    )
    row = encode_row(record)
    assert decode_row(row.columns).id == record.id
    assert decode_line(encode_line(record)).id == record.id


async def test_a_row_that_is_refused_fails_alone(store: RecordStore) -> None:
    """The others of its batch are kept, whichever rows they are."""
    records = [make_record(number) for number in range(40)]
    bad = {3: 2**63, 4: -(2**63) - 1, 39: 2**200}
    for number, value in bad.items():
        force_setattr(records[number], "calls", value)
    force_setattr(records[20], "upstream_ms", None)
    done = await asyncio.gather(*map(store.add, records), return_exceptions=True)
    failed = {number for number, error in enumerate(done) if isinstance(error, RowRefusedError)}
    if isinstance(store, SpooledRecords):
        assert store.counts.refused == 4
    else:
        assert failed == {*bad, 20}
    assert store.counts.stored == 36
    assert len([one async for one in store.export()]) == 36


async def test_secrets_are_not_kept(store: RecordStore) -> None:
    """Known ones and what looks like a key, wherever they are."""
    secret = Secret("correct-horse-battery")
    key = "sk-proj-abcdefghij0123456789"
    texts = [f"before {secret.reveal()} after", f"before {key} after"]
    for number, text in enumerate(texts):
        record = make_record(
            number,
            model_asked=text,
            model_answered=text,
            probe=ProbeNote(ok=False, error=text),
            receipts=(Receipt("r", "/0", text, {text: [text]}, why=text),),
            defects=(Defect("ODD", text, text),),
            parse_error=ParseError("native", text, text),
            request_body=text.encode(),
            reply_body=(text * 10_000).encode(),
        )
        await store.add(record)
        found = await store.get(record.id)
        assert found is not None
        assert found.reply_body is not None
        assert len(found.reply_body) <= 64 * 1024
        assert found.reply_bytes == len(text) * 10_000
        assert found.request_body == f"before {MASK} after".encode()
        assert secret.reveal() not in repr(found)
        assert key not in repr(found)


async def test_a_closed_store_takes_nothing(store: RecordStore) -> None:
    """What was waiting is written first."""
    record = make_record()
    waiting = asyncio.ensure_future(store.add(record))
    await asyncio.sleep(0)
    await store.close()
    await waiting
    assert store.counts.stored == 1
    if not isinstance(store, SpooledRecords):
        with pytest.raises(StoreError, match="closed"):
            await store.add(make_record(1))


# what only PostgreSQL does


async def test_several_gateways_share_a_server(server: Any) -> None:
    """They begin together on an empty database, and read what the others wrote."""
    await (await empty_tables(server)).close()
    stores = [PostgresRecords(server.get_uri()) for _ in range(4)]
    await asyncio.gather(*(one.add(make_record(number)) for number, one in enumerate(stores)))
    assert [len(await ids(one)) for one in stores] == [4] * 4
    keep_one = Retention(max_age_s=None, max_records=1)
    removed = await asyncio.gather(*(keep_one.prune(one) for one in stores))
    assert sum(removed) == 3
    await asyncio.gather(*(one.close() for one in stores))


async def test_a_server_with_a_later_layout_is_left_alone(server: Any) -> None:
    """The tables stay as they are."""
    import asyncpg

    store = await empty_tables(server)
    await store.add(make_record())
    await store.close()
    connection = await asyncpg.connect(server.get_uri())
    await connection.execute("UPDATE surecall_layout SET version = 99")
    late = PostgresRecords(server.get_uri())
    with pytest.raises(StoreError) as caught:
        await late.add(make_record(1))
    assert caught.value.code == "STORE_TOO_NEW"
    current = len(POSTGRES_LAYOUT.steps)
    await connection.execute("UPDATE surecall_layout SET version = $1", current)
    await connection.execute("ALTER TABLE surecall_requests RENAME COLUMN calls TO other")
    with pytest.raises(StoreError) as caught:
        await late.add(make_record(2))
    assert caught.value.code == "STORE_CORRUPT"
    await late.close()
    await connection.execute("DROP TABLE surecall_requests")
    await connection.close()


async def test_the_tables_are_brought_up_to_date(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of before stay, and each step is done once."""
    store = await empty_tables(server)
    record = make_record()
    await store.add(record)
    await store.close()
    step = "ALTER TABLE surecall_requests ADD COLUMN later text"
    layout = POSTGRES_LAYOUT._replace(steps=(*POSTGRES_LAYOUT.steps, step))
    monkeypatch.setattr(postgres_module, "POSTGRES_LAYOUT", layout)
    for _ in range(2):
        newer = PostgresRecords(server.get_uri())
        assert await newer.get(record.id) == record
        await newer.close()


async def test_a_server_that_is_not_there_has_a_code(tmp_path: Path) -> None:
    """And its password is shown nowhere."""
    store = PostgresRecords("postgresql://user:pass-word-123@127.0.0.1:9/none")
    with pytest.raises(StoreError) as caught:
        await asyncio.wait_for(store.add(make_record()), 60)
    assert caught.value.code == "STORE_WRITE_FAILED"
    assert "127.0.0.1:9/none" in str(caught.value)
    assert "pass-word" not in f"{caught.value!r} {store!r}"
    await store.close()


async def test_a_server_that_goes_away_and_comes_back(server: Any, tmp_path: Path) -> None:
    """Records wait on disk meanwhile, and none is lost or there twice."""
    inner = await empty_tables(server)
    store = SpooledRecords(inner, Spool(tmp_path / "spool"))
    records = [make_record(number, request_body=b"body") for number in range(40)]
    await asyncio.gather(*map(store.add, records[:10]))
    stop_postgres(server)
    await asyncio.gather(*map(store.add, records[10:30]))
    assert store.is_away
    assert store.counts.spooled == 20
    server.ensure_postgres_running()
    await asyncio.gather(*map(store.add, records[30:]))
    await store.replay()
    assert not store.is_away
    assert sorted(await ids(store)) == sorted(record.id for record in records)
    assert (await store.get(records[15].id)) is not None
    assert store.counts.dropped == 0
    await store.close()


async def test_a_driver_that_fails_in_its_own_way_is_begun_again(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections are given up, and the next record is stored."""
    import asyncpg

    store = await empty_tables(server)
    await store.add(make_record(0))
    failures = iter([asyncpg.InternalClientError("cannot switch to state 15"), RuntimeError("odd")])
    execute = asyncpg.Connection.execute

    async def fail(connection: Any, query: str, *values: Any, **settings: Any) -> Any:
        for failure in failures if query.startswith("INSERT") else ():
            raise failure
        return await execute(connection, query, *values, **settings)

    monkeypatch.setattr(asyncpg.Connection, "execute", fail)
    for number in (1, 2):
        with pytest.raises(StoreError) as caught:
            await store.add(make_record(number))
        assert caught.value.code == "STORE_WRITE_FAILED"
    await store.add(make_record(3))
    assert (store.counts.stored, store.counts.reopened) == (2, 2)
    await store.close()


async def test_a_writing_task_that_dies_is_started_again(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it, and the death is counted."""
    store = await empty_tables(server)
    insert = store._insert

    async def die(rows: Any) -> None:
        monkeypatch.setattr(store, "_insert", insert)
        raise KeyError("odd")

    monkeypatch.setattr(store, "_insert", die)
    done = await asyncio.wait_for(
        asyncio.gather(*map(store.add, map(make_record, range(5))), return_exceptions=True), 10
    )
    assert all(isinstance(error, StoreError) for error in done)
    await store.add(make_record(9))
    assert (store.counts.stored, store.counts.restarts) == (1, 1)
    await store.close()


async def test_reading_does_not_keep_writing_waiting(server: Any) -> None:
    """However many readers are slow, there is a connection for writing."""
    store = await empty_tables(server)
    await store.add(make_record(0))
    slow = [asyncio.ensure_future(store._reader.fetch("SELECT pg_sleep(1)")) for _ in range(8)]
    await asyncio.sleep(0.1)
    await asyncio.wait_for(store.add(make_record(1)), 60)
    assert not any(task.done() for task in slow)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    await store.close()


# Figures


async def test_requests_are_counted_by_time_and_outcome(store: RecordStore) -> None:
    """A moment belongs to the stretch that it begins."""
    outcomes = ("clean", "repaired", "clean", "reasked")
    await add_all(
        store,
        *(
            make_record(at, outcome=name)
            for at, name in zip((0, 59, 60, 120), outcomes, strict=True)
        ),
    )
    found = await count_by_time(store, RecordFilter(since=START), START, 60.0)
    assert sorted((item.slot, item.outcome, item.requests) for item in found) == [
        (0, "clean", 1),
        (0, "repaired", 1),
        (1, "clean", 1),
        (2, "reasked", 1),
    ]
    later = await count_by_time(store, RecordFilter(since=START + 60), START, 60.0)
    assert sorted(item.slot for item in later) == [1, 2]


async def test_requests_are_counted_by_model_and_upstream(store: RecordStore) -> None:
    """With defects, receipts and what could not be parsed; a name inside a value is not one."""
    tricky = Receipt("strip_code_fence", "/0", '"parse_error":{', {"receipts": [1]})
    await add_all(
        store,
        make_record(0, **FULL),
        make_record(1, retries=2, upstream_requests=3, calls=4),
        make_record(2),
        make_record(3, upstream="other", outcome="repaired", receipts=(tricky,)),
        make_record(4, model_asked="__proto__", outcome="failed", error_code="AUTH"),
    )
    found = {
        (item.model, item.upstream, item.outcome): item.counts
        for item in await count_by_model(store, RecordFilter())
    }
    assert len(found) == 4
    clean = found["small", "main", "clean"]
    assert (clean.requests, clean.retries, clean.upstream_requests, clean.calls) == (2, 2, 4, 4)
    full = found["small", "main", "reasked"]
    assert (full.with_defects, full.with_receipts, full.parse_errors) == (1, 1, 1)
    other = found["small", "other", "repaired"]
    assert (other.with_defects, other.with_receipts, other.parse_errors) == (0, 1, 0)
    assert found["__proto__", "main", "failed"].with_defects == 0  # nothing of a model


async def test_times_are_those_of_the_latest(store: RecordStore) -> None:
    """The latest first, with what the upstream took and what was added."""
    await add_all(
        store, *(make_record(at, upstream_ms=10.0 + at, added_ms=at / 4) for at in range(3))
    )
    found = await list_times(store, RecordFilter(since=START + 1))
    assert [(item.upstream_ms, item.added_ms) for item in found] == [(12.0, 0.5), (11.0, 0.25)]
    assert (found[0].model, found[0].upstream) == ("small", "main")


async def test_requests_are_found_by_status_and_by_not_being_clean(store: RecordStore) -> None:
    """A status, all of a kind, and every outcome in which something was wrong."""
    names = ("clean", "relayed", "repaired", "failed", "refused")
    made = [
        make_record(at, outcome=name, status=status)
        for at, (name, status) in enumerate(zip(names, (200, 200, 200, 429, 404), strict=True))
    ]
    await add_all(store, *made)
    assert await ids(store, status="429") == [made[3].id]
    assert await ids(store, status="4xx") == [made[4].id, made[3].id]
    assert await ids(store, status="%") == []
    assert await ids(store, outcome="not-clean") == [made[4].id, made[3].id, made[2].id]
    assert await count_all(store, RecordFilter(outcome="not-clean")) == 3
