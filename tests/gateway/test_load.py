"""A little load: what is left when it is over, and who notices it meanwhile.

`python bench/gateway_load.py` does the same with hundreds of thousands of requests.
"""

import asyncio
import random
from pathlib import Path

from .harness import (
    STREAM_END,
    STREAM_HEAD,
    ask,
    chat,
    completion,
    piece,
    reply,
    serve_stub,
    serve_stubbed,
)
from .test_life import CHAT, begin, until

HANG = 30.0
ROOM = "max_in_flight = 200\n[limits]\nmax_in_flight = 200\n"


async def test_nothing_is_left_behind_faults_and_clients_that_leave(tmp_path: Path) -> None:
    """Whole answers, broken ones, cut streams and early leavers: all slots and sockets return."""
    chance = random.Random(12)
    whole = [reply(completion())]
    cut = [STREAM_HEAD, piece("Hel"), None]
    broken = [reply({"error": {"message": "no"}}, 500), None]
    stream = [STREAM_HEAD, piece("Hello"), piece("", "stop"), STREAM_END]
    steps = [whole, stream, cut, broken, [HANG], whole]
    answers = [chance.choice(steps) for _ in range(300)]
    async with serve_stubbed(tmp_path, *answers) as (served, stub):
        tasks = len(asyncio.all_tasks())

        async def one() -> None:
            body = chat("m", "Hi", stream=chance.random() < 0.5)
            reader, writer = await begin(served, body)
            try:
                async with asyncio.timeout(chance.uniform(0.01, 0.1)):
                    await reader.readuntil(b"\r\n\r\n")
                    await reader.read(64)
            except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        for _ in range(10):
            await asyncio.gather(*(one() for _ in range(12)))
        gateway = served.gateway
        upstream = gateway.state.upstreams["stub"]
        await until(lambda: not gateway.live)
        assert gateway.gate.inside == gateway.budget.live == upstream.gate.inside == 0
        assert gateway.gate.waiting == upstream.gate.waiting == 0
        assert upstream._origin is not None
        origin = upstream._origin
        await until(lambda: origin.open_count == origin.idle_count)
        await until(lambda: len(asyncio.all_tasks()) <= tasks + origin.open_count)
        assert stub.heads
        assert len(served.store.records) <= 120


async def test_a_hundred_slow_streams_leave_the_gateway_responsive(tmp_path: Path) -> None:
    """A hundred streams at once, each in pieces: all are whole, and liveness answers meanwhile."""
    slow = [STREAM_HEAD, *[piece("a"), 0.02] * 5, piece("", "stop"), STREAM_END]
    async with serve_stubbed(tmp_path, slow, text=ROOM) as (served, _):
        asking = [
            asyncio.create_task(ask(served, "POST", CHAT, chat("m", "Hi", stream=True)))
            for _ in range(100)
        ]
        lively = [await ask(served, "GET", "/healthz") for _ in range(5)]
        answers = await asyncio.gather(*asking)
    assert [answer.status for answer in lively] == [200] * 5
    assert [answer.status for answer in answers] == [200] * 100
    assert all(b"data: [DONE]" in answer.body for answer in answers)
    assert {record.outcome for record in served.store.records} == {"clean"}


async def test_one_hanging_model_does_not_slow_another(tmp_path: Path) -> None:
    """With every slot of one upstream taken by requests that hang, another answers as ever."""
    async with serve_stub([reply(completion())]) as good:
        text = f'max_in_flight = 4\n[upstreams.good]\nurl = "{good.url}"\nprobe = "off"\n'
        text += 'models = ["quick"]\n[limits]\nmax_waiting = 0\n'
        async with serve_stubbed(tmp_path, [HANG], text=text) as (served, _):
            held = [await begin(served, chat("slow", "Hi")) for _ in range(4)]
            await until(lambda: served.gateway.state.upstreams["stub"].gate.inside == 4)
            refused = await ask(served, "POST", CHAT, chat("slow", "Hi"))
            quick = [await ask(served, "POST", CHAT, chat("quick", "Hi")) for _ in range(20)]
            for _, writer in held:
                writer.close()
            await until(lambda: not served.gateway.live)
    assert refused.status == 503
    assert refused.headers["retry-after"] == "1"
    assert [answer.status for answer in quick] == [200] * 20
