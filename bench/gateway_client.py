"""What a request costs in the gateway's HTTP client: CPU beside aiohttp's client and a floor.

    python bench/gateway_client.py [--seconds 1.5] [--rounds 3] [--concurrency 1,16,64] [--out FILE]

A stub in a process of its own answers at once: a reply of 1.5 KB with a length, or a stream of 61
events in chunks. Each contender runs in a process of its own and sends requests of 0.8 KB with
eight headers over as many connections as there are tasks; they take turns, and the figure is the
CPU of that process for each request: user and system time, the event loop included. The floor is
a bare protocol that checks nothing: it finds the length in the head and counts. Compare the
ratios, not the figures: they rise with whatever else the machine does.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
LOOPS = ("asyncio", "uvloop")
CONTENDERS = ("floor", "surecall", "aiohttp")
KINDS = ("plain", "stream")
EVENTS = 61

REQUEST = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 740}]}).encode()
REPLY = json.dumps({"choices": [{"message": {"content": "x" * 1450}}]}).encode()
EVENT = b"data: " + json.dumps({"choices": [{"delta": {"content": "x" * 200}}]}).encode() + b"\n\n"
HEADERS = [
    ("content-type", "application/json"),
    ("accept", "application/json"),
    ("authorization", "Bearer sk-not-a-key-but-as-long-as-one-is"),
    ("user-agent", "bench"),
    ("x-request-id", "0123456789abcdef"),
    ("x-stainless-lang", "python"),
    ("x-stainless-os", "Linux"),
    ("x-stainless-runtime", "CPython"),
]
ANSWER_HEADERS = (
    b"date: Mon, 01 Jan 2026 00:00:00 GMT\r\nserver: stub\r\nx-request-id: 0123456789abcdef\r\n"
    b"x-ratelimit-remaining-requests: 99\r\nx-ratelimit-remaining-tokens: 9999\r\n"
)
PLAIN = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    + ANSWER_HEADERS
    + b"content-length: %d\r\n\r\n" % len(REPLY)
    + REPLY
)
STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    + ANSWER_HEADERS
    + b"transfer-encoding: chunked\r\n\r\n"
    + b"%x\r\n%s\r\n" % (len(EVENT), EVENT) * EVENTS
    + b"0\r\n\r\n"
)


class Stub(asyncio.Protocol):
    """Answers each request, which must come in one piece or two."""

    def connection_made(self, transport) -> None:
        self.transport, self.got = transport, b""

    def data_received(self, data: bytes) -> None:
        self.got += data
        if self.got.endswith(REQUEST[-20:]):
            self.transport.write(STREAM if self.got.startswith(b"POST /stream") else PLAIN)
            self.got = b""


class Bare(asyncio.Protocol):
    """One connection of the floor: no checks, no limits, no deadlines."""

    def connection_made(self, transport) -> None:
        self.transport, self.waiter, self.got, self.end = transport, None, b"", None

    def ask(self, loop, data: bytes):
        self.waiter = loop.create_future()
        self.transport.write(data)
        return self.waiter

    def data_received(self, data: bytes) -> None:
        self.got = got = self.got + data if self.got else data
        if self.end is None:
            at = got.find(b"\r\n\r\n") + 4
            length = got.find(b"content-length: ")
            self.end = at + int(got[length + 16 : at - 4]) if 0 < length < at else 0
        if len(got) == self.end or (self.end == 0 and got.endswith(b"0\r\n\r\n")):
            self.got, self.end = b"", None
            self.waiter.set_result(got)


async def run_floor(port: int, path: str, concurrency: int, running) -> int:
    loop = asyncio.get_running_loop()
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", *(f"{n}: {v}" for n, v in HEADERS)]
    head = "\r\n".join([*lines, f"content-length: {len(REQUEST)}\r\n\r\n"]).encode()

    async def work() -> int:
        _, bare = await loop.create_connection(Bare, "127.0.0.1", port)
        done = 0
        while running():
            assert await bare.ask(loop, head + REQUEST)
            done += 1
        bare.transport.close()
        return done

    return sum(await asyncio.gather(*(work() for _ in range(concurrency))))


async def run_surecall(port: int, path: str, concurrency: int, running) -> int:
    from surecall.models.client import ClientLimits, Origin
    from surecall.models.transport import Deadlines

    deadlines = Deadlines()
    origin = Origin(f"http://127.0.0.1:{port}", limits=ClientLimits(max_connections=concurrency))

    async def work() -> int:
        done = 0
        while running():
            answer = await origin.send("POST", path, HEADERS, REQUEST, deadlines=deadlines)
            if path == "/stream":
                size = 0

                def feed(piece: bytes) -> None:
                    nonlocal size
                    size += len(piece)

                await answer.pipe(feed)
                assert size == len(EVENT) * EVENTS
            else:
                assert len(await answer.read()) == len(REPLY)
            done += 1
        return done

    try:
        return sum(await asyncio.gather(*(work() for _ in range(concurrency))))
    finally:
        await origin.close()


async def run_aiohttp(port: int, path: str, concurrency: int, running) -> int:
    import aiohttp

    url, headers = f"http://127.0.0.1:{port}{path}", dict(HEADERS)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=concurrency), cookie_jar=aiohttp.DummyCookieJar()
    ) as session:

        async def work() -> int:
            done = 0
            while running():
                async with session.post(url, data=REQUEST, headers=headers) as response:
                    if path == "/stream":
                        size = 0
                        async for piece in response.content.iter_any():
                            size += len(piece)
                        assert size == len(EVENT) * EVENTS
                    else:
                        assert len(await response.read()) == len(REPLY)
                done += 1
            return done

        return sum(await asyncio.gather(*(work() for _ in range(concurrency))))


def contend(name: str, loop: str, kind: str, concurrency: int, port: int, seconds: float) -> None:
    """Run one contender and print the CPU of a request in microseconds."""
    work = {"floor": run_floor, "surecall": run_surecall, "aiohttp": run_aiohttp}[name]

    async def main() -> tuple[float, float]:
        for span in (0.2, seconds):  # the first one warms up
            until = time.perf_counter() + span
            before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            done = await work(
                port, f"/{kind}", concurrency, lambda until=until: time.perf_counter() < until
            )
            after, spent = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter() - started
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cpu_s / done * 1e6, done / spent

    print(json.dumps(run_in(loop, main())))


def run_in(loop: str, task):
    if loop == "uvloop":
        import uvloop

        return uvloop.run(task)
    return asyncio.run(task)


def serve() -> None:
    """Run the stub and print its port."""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    run_in("uvloop", main())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", default="1,16,64")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    stub = subprocess.Popen([sys.executable, HERE, "--serve"], stdout=subprocess.PIPE, text=True)
    found: dict[tuple[str, str, str, int], list[tuple[float, float]]] = {}
    try:
        assert stub.stdout is not None
        port = stub.stdout.readline().strip()
        for _ in range(options.rounds):
            for kind in KINDS:
                for level in map(int, options.concurrency.split(",")):
                    for loop in LOOPS:
                        for name in CONTENDERS:
                            words = [name, loop, kind, str(level), port, str(options.seconds)]
                            done = subprocess.run(
                                [sys.executable, HERE, "--contend", *words],
                                capture_output=True,
                                text=True,
                                check=True,
                            )
                            key = (kind, name, loop, level)
                            found.setdefault(key, []).append(tuple(json.loads(done.stdout)))
    finally:
        stub.terminate()
        stub.wait()
    report(found, options)


def report(found, options) -> None:
    levels = [int(level) for level in options.concurrency.split(",")]
    rows = []
    for kind in KINDS:
        print(f"\n{kind}: CPU us a request, median (lowest) of {options.rounds}; requests/s")
        for loop in LOOPS:
            for name in CONTENDERS:
                cells = []
                for level in levels:
                    runs = found[kind, name, loop, level]
                    cpu = [run[0] for run in runs]
                    rate = statistics.median(run[1] for run in runs)
                    middle = statistics.median(cpu)
                    cells.append(f"{middle:7.1f} ({min(cpu):6.1f}) {rate:8.0f}/s")
                    rows.append(
                        {
                            "kind": kind,
                            "name": name,
                            "loop": loop,
                            "concurrency": level,
                            "cpu_us": middle,
                            "cpu_us_lowest": min(cpu),
                            "per_s": rate,
                        }
                    )
                print(
                    f"  {loop:8} {name:9}"
                    + "".join(
                        f"  c={level:<3} {cell}" for level, cell in zip(levels, cells, strict=True)
                    )
                )
            ratios = [
                min(run[0] for run in found[kind, "aiohttp", loop, level])
                / min(run[0] for run in found[kind, "surecall", loop, level])
                for level in levels
            ]
            print(
                f"  {loop:8} aiohttp / surecall (lowest): "
                + "  ".join(f"{ratio:.1f}x" for ratio in ratios)
            )
    if options.out:
        machine = {"cores": os.cpu_count(), "python": sys.version.split()[0]}
        options.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve()
    elif sys.argv[1:2] == ["--contend"]:
        who, where, what, many, at, span = sys.argv[2:]
        contend(who, where, what, int(many), int(at), float(span))
    else:
        main()
