"""A process that records requests and may be killed at any moment.

Run as a program, it reads one order a line and forks for each. Many requests at once add their
record and acknowledge it in a file, as a gateway sends the last byte of an answer; some leave
before that. When it is away, the store is not there and records go to the spool.
"""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from support.request_records import make_record
from surecall.store.records import open_records
from surecall.store.records.record import decode_row
from surecall.store.records.spool import SpooledRecords
from surecall.store.records.tables import SQLITE

__all__ = ["RecordScene", "RecordVictims"]


class RecordVictims:
    """Starts victims and kills them."""

    def __init__(self) -> None:
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "support.record_victim"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        self._line()  # it has imported everything

    def start(self, order: dict[str, Any]) -> int:
        """Start a victim and return the number of its process."""
        assert self._zygote.stdin is not None
        self._zygote.stdin.write(json.dumps(order) + "\n")
        self._zygote.stdin.flush()
        return int(self._line())

    def kill(self, pid: int) -> int:
        """Kill the victim and return how it ended."""
        os.kill(pid, signal.SIGKILL)
        return int(self._line())

    def close(self) -> None:
        """Send everybody home."""
        self._zygote.communicate()

    def _line(self) -> str:
        assert self._zygote.stdout is not None
        return self._zygote.stdout.readline()


class RecordScene:
    """One store that is killed again and again."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "requests.db"
        self.acks = folder / "acks"
        self.acks.touch()
        self.checked_bytes = 0

    def order(self, *, is_away: bool = False) -> dict[str, Any]:
        """Return what a victim is told."""
        return {"store": str(self.store), "acks": str(self.acks), "is_away": is_away}

    def new_acks(self) -> set[str]:
        """Return what was acknowledged since the last time."""
        data = self.acks.read_bytes()
        fresh, self.checked_bytes = data[self.checked_bytes :], len(data)
        return {line.decode() for line in fresh.splitlines()}

    def check(self, acknowledged: set[str]) -> int:
        """Check that everything acknowledged is there, and return how many records there are."""
        with closing(sqlite3.connect(self.store)) as database:
            assert database.execute("PRAGMA quick_check").fetchone() == ("ok",)
            rows = database.execute(SQLITE.rows(bodies=False)).fetchall()
        kept = {decode_row(row[:-2]).id for row in rows}
        assert len(kept) == len(rows)
        lost = acknowledged - kept
        assert not lost, f"{len(lost)} records that were acknowledged are lost"
        return len(rows)


async def _serve(order: dict[str, Any]) -> None:
    acks = os.open(order["acks"], os.O_WRONLY | os.O_APPEND)
    store = open_records(order["store"])
    await store.start()
    if order["is_away"]:
        store = SpooledRecords(cast("Any", _Away(store.store)), store.spool)

    async def one(number: int) -> None:
        while True:
            record = make_record(number, reply_body=b"x" * 500 if number % 4 == 0 else None)
            adding = asyncio.ensure_future(store.add(record))
            if number == 1:  # a client that leaves
                await asyncio.sleep(0)
                adding.cancel()
                await asyncio.gather(adding, return_exceptions=True)
                await asyncio.sleep(0.001)
                continue
            await adding
            os.write(acks, f"{record.id}\n".encode())
            await asyncio.sleep(0)

    await asyncio.gather(*map(one, range(16)))


class _Away:
    """A store that is not there."""

    def __init__(self, store: Any) -> None:
        self.counts, self.dialect = store.counts, store.dialect

    async def add(self, record: Any) -> None:
        from surecall.base.errors import StoreError

        raise StoreError("STORE_WRITE_FAILED", "away.")

    async def list(self, *_: Any, **__: Any) -> Any:
        await self.add(None)


def main() -> None:
    """Take orders until there are no more."""
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            asyncio.run(_serve(order))
            os._exit(0)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
