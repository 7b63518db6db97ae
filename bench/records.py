"""What a record of a request and an update of a metric cost, beside the least that could be.

    python bench/records.py [--rounds 7] [--n 4000] [--keys 5] [--out FILE]

A record is redacted, encoded and durable in SQLite before its request goes on, with 1, 16 and 64
requests at once. The floor writes 14 plain columns with the same group commit and nothing
else: no redaction, no JSON, no checksum, no key to find it by. Both take turns; the lowest of all
rounds counts, since other processes only ever add to it. CPU is that of the whole process, with
the thread that takes over the log.
"""

import argparse
import asyncio
import json
import sqlite3
import sys
import tempfile
import time
import timeit
from functools import partial
from pathlib import Path

from surecall.base.metrics import Metrics
from surecall.base.redaction import Secret
from surecall.gateway.telemetry.counters import RequestMetrics
from surecall.store.records.record import RequestRecord, new_request_id
from surecall.store.records.spool import Spool, SpooledRecords
from surecall.store.records.sqlite import SqliteRecords

CONCURRENCY = (1, 16, 64)
TARGETS = {1: 22, 16: 7, 64: 6}
BODY = b'{"model":"stub-model","messages":[{"role":"user","content":"What is the weather?"}]}' * 12


def make_record(bodies: bool = False) -> RequestRecord:
    now = time.time()
    return RequestRecord(
        id=new_request_id(now),
        time=now,
        key_id="team-a",
        client_protocol="chat_completions",
        upstream="main",
        upstream_protocol="chat_completions",
        model_asked="stub-model",
        model_answered="stub-model-2026",
        strategy="native",
        status=200,
        calls=1,
        upstream_requests=1,
        prompt_tokens=100,
        completion_tokens=30,
        upstream_ms=12.5,
        added_ms=0.2,
        request_body=BODY if bodies else None,
        reply_body=BODY if bodies else None,
    )


def add_record(store: SpooledRecords, records: list[RequestRecord]):
    return store.add(records.pop())


class Floor:
    """The least that group commit can be."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(path, isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = NORMAL", "wal_autocheckpoint = 0"):
            self.database.execute(f"PRAGMA {setting}")
        self.database.execute(f"CREATE TABLE t ({', '.join(f'c{n}' for n in range(14))})")
        self.insert = f"INSERT INTO t VALUES ({', '.join('?' * 14)})"
        self.rows: list = []

    async def add(self) -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if not self.rows:
            loop.call_soon(self.commit)
        row = ("0199", time.time(), "team-a", "chat", "main", "m", "m2", "native", 200, 1, 1)
        self.rows.append(((*row, 0.1, 0.2, "clean"), future))
        await future

    def commit(self) -> None:
        rows, self.rows = self.rows, []
        self.database.execute("BEGIN")
        self.database.executemany(self.insert, [row for row, _ in rows])
        self.database.execute("COMMIT")
        for _, future in rows:
            if not future.done():
                future.set_result(None)


async def spend(add, concurrency: int, n: int) -> tuple[float, float]:
    """Return CPU µs and wall ms for each record."""
    waits: list[float] = []

    async def one() -> None:
        for _ in range(n // concurrency):
            started = time.perf_counter()
            await add()
            waits.append(time.perf_counter() - started)

    cpu = time.process_time()
    await asyncio.gather(*(one() for _ in range(concurrency)))
    cpu = time.process_time() - cpu
    return cpu / len(waits) * 1e6, sorted(waits)[len(waits) // 2] * 1e3


async def measure(options) -> dict:
    lowest: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            path = Path(folder)
            floor = Floor(path / f"floor{turn}.db")
            stores = [
                SpooledRecords(SqliteRecords(path / f"{name}{turn}.db"), Spool(path / name))
                for name in ("plain", "bodies")
            ]
            for concurrency in CONCURRENCY:
                plain = [make_record() for _ in range(options.n)][::-1]
                bodies = [make_record(bodies=True) for _ in range(options.n)][::-1]
                contenders = {
                    "floor": floor.add,
                    "record": partial(add_record, stores[0], plain),
                    "record with bodies": partial(add_record, stores[1], bodies),
                }
                for name, add in contenders.items():
                    await asyncio.sleep(0.2)  # let the log of the one before be taken over
                    spent = await spend(add, concurrency, options.n)
                    kept = lowest.setdefault((name, concurrency), spent)
                    lowest[name, concurrency] = tuple(map(min, kept, spent))
            for store in stores:
                await store.close()
            floor.database.close()
    return lowest


def measure_metrics(rounds: int) -> dict[str, float]:
    metrics = Metrics()
    counter = metrics.counter("calls", "Calls.", upstream=["main"], outcome=["clean"])
    histogram = metrics.histogram("wait_seconds", "Wait.", upstream=["main"])
    gauge = metrics.gauge("in_flight", "Now.")
    all_of_them = RequestMetrics(Metrics(), upstreams=["main"], models=["stub-model"])
    record = make_record()
    updates = {
        "counter": lambda: counter.add("main", "clean"),
        "histogram": lambda: histogram.observe(0.012, "main"),
        "gauge": lambda: gauge.add(1),
        "making a record": make_record,
        "all of a clean request": lambda: all_of_them.observe(record),
        "(an empty lambda)": lambda: None,
    }
    number = 20_000
    return {
        name: min(timeit.repeat(update, number=number, repeat=rounds)) / number * 1e6
        for name, update in updates.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--keys", type=int, default=5, help="how many secrets are known")
    parser.add_argument("--out", help="write the figures as JSON")
    options = parser.parse_args()
    keys = [Secret(f"bench-key-{number}-0123456789") for number in range(options.keys)]
    lowest = asyncio.run(measure(options))
    metrics = measure_metrics(options.rounds)
    print(f"CPU µs per record (p50 ms), lowest of {options.rounds}, {len(keys)} keys known")
    print(f"{'':22}" + "".join(f"{f'c={number}':>18}" for number in CONCURRENCY))
    for name in dict.fromkeys(name for name, _ in lowest):
        cells = (lowest[name, number] for number in CONCURRENCY)
        print(f"{name:22}" + "".join(f"{cpu:>9.1f} ({wait:.3f})" for cpu, wait in cells))
    print(f"{'target':22}" + "".join(f"{TARGETS[number]:>9.1f}        " for number in CONCURRENCY))
    print("\nµs per update of a metric, and for the record itself")
    for name, cost in metrics.items():
        print(f"{name:24}{cost:>7.2f}")
    if options.out:
        figures = {f"{name} c={number}": value for (name, number), value in lowest.items()}
        Path(options.out).write_text(json.dumps({**figures, **metrics}, indent=1))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
