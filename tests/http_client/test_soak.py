"""Faults, cancellations and good answers in any order: nothing wrong, nothing left behind."""

import asyncio
import os
import random
from pathlib import Path

from support.upstream import (
    CLOSE,
    HANG,
    RESET,
    FaultyUpstream,
    Pause,
    Received,
    Script,
    chunked,
    gzipped,
    http_response,
)
from surecall.base.errors import ProviderError
from surecall.models.client import ClientLimits, Origin
from surecall.models.transport import Deadlines

REQUESTS = int(os.environ.get("SURECALL_SOAK_REQUESTS", "300"))
LIMITS = ClientLimits(
    max_connections=8,
    max_waiting=1000,
    max_wait_s=60,
    max_body_bytes=100_000,
    max_stream_bytes=100_000,
)
DEADLINES = Deadlines(connect_s=60, first_byte_s=0.2, idle_s=0.2, total_s=60)
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def answer_for(chance: random.Random, mark: bytes) -> Script:
    """Return one way to answer a request whose right answer is its mark."""
    whole = http_response(mark)
    packed = http_response(gzipped(mark), headers={"content-encoding": "gzip"})
    scripts: list[Script] = [
        [whole],
        [whole],
        [whole[:-3], Pause(0.002), whole[-3:]],
        [CHUNKED + chunked(mark[:2], mark[2:])],
        [packed],
        [packed[:-1], CLOSE],
        [http_response(mark, headers={"connection": "close"})],
        [whole, whole],
        [whole, b"\r\n"],
        [whole, CLOSE],
        [whole[:-1], CLOSE],
        [whole[:-1], RESET],
        [CLOSE],
        [RESET],
        [HANG],
        [CHUNKED, HANG],
        [CHUNKED + b"zz"],
        [http_response(b"x" * 100_001)],
    ]
    return chance.choice(scripts)


def open_descriptors() -> int:
    """Count the descriptors of this process, where that can be seen."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


async def test_no_request_gets_the_answer_of_another() -> None:
    """Each gets its own answer or an error; connections, tasks and descriptors are given back."""
    chance = random.Random(7)
    outcomes = {"right": 0, "error": 0, "cancelled": 0}

    def script(sent: Received) -> Script:
        return answer_for(chance, sent.body)

    async def one(origin: Origin, number: int) -> None:
        mark = f"mark-{number:06}".encode()
        try:
            answer = await origin.send("POST", "/v1/x", [], mark, deadlines=DEADLINES)
            found = bytearray()
            if number % 2:
                found += await answer.read()
            else:
                await answer.pipe(found.extend)
        except ProviderError:
            outcomes["error"] += 1
            return
        except asyncio.CancelledError:
            outcomes["cancelled"] += 1
            raise
        assert bytes(found) == mark
        outcomes["right"] += 1

    async with FaultyUpstream(script) as upstream:
        before = open_descriptors(), len(asyncio.all_tasks())
        origin = Origin(upstream.url, limits=LIMITS)
        for start in range(0, REQUESTS, 100):
            tasks = [asyncio.ensure_future(one(origin, start + n)) for n in range(100)]
            for task in chance.sample(tasks, 10):
                asyncio.get_running_loop().call_later(chance.random() * 0.1, task.cancel)
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                assert result is None or isinstance(result, asyncio.CancelledError), result
            assert origin.open_count <= 8
            assert origin.waiting_count == 0
        await origin.close()
        for _ in range(10_000):
            await asyncio.sleep(0.005)
            if origin.open_count == 0 and len(asyncio.all_tasks()) <= before[1]:
                break
        assert origin.open_count == 0
        assert len(asyncio.all_tasks()) <= before[1]
        assert open_descriptors() <= before[0] + 2
    assert outcomes["right"] > REQUESTS * 0.3
    assert outcomes["error"] > REQUESTS * 0.2
    assert sum(outcomes.values()) >= REQUESTS * 0.95
