"""Rows of load for the gateway: each prints its figures beside what they were meant to be.

    python bench/gateway_load.py chunks|slow|soak|slope|stalls|overload|trickle|stop [--small]

- `chunks`: a stream of 10,000 events: CPU for each event, and how much later the first one comes.
- `slow`: 1,000 streams at once, an event every 100 ms, for ten minutes, with liveness probed.
- `soak`: 200,000 requests, a fifth with faults of the upstream, a fifth of clients that leave.
- `slope`: 200,000 plain requests and streams from `wrk`: what the memory grows by.
- `stalls`: bodies of 1, 8 and 31 MiB in several shapes: how long `/readyz` and `/healthz` wait
  at most.
- `overload`: twice as many clients as are let in.
- `trickle`: 500 connections that send a byte now and then, and a client that does not.
- `stop`: SIGTERM with 50 streams under way.

`--small` is a tenth of it or less. The upstream is the C stub of `bench/gateway.py`; the gateway
runs as `surecall serve` with records in SQLite.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from gateway_probes import probing
from gateway_processes import (
    PATH,
    build_stub,
    cpu_s,
    free_port,
    gateway_environment,
    large_requests,
    make_request,
    memory_mb,
    read_stats,
    start,
    start_stub,
    stop,
)

from gateway import LOAD


class Answer(NamedTuple):
    """What one client saw."""

    status: int
    """0 when it got none."""
    first_s: float
    total_s: float
    data: bytes
    head: str = ""


class Scene:
    """A gateway in front of the stub."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.upstream_port, self.port = free_port(), free_port()
        self.stub = start_stub(build_stub(folder), self.upstream_port)
        config = folder / "gateway.toml"
        upstream = f'[upstreams.stub]\nurl = "http://127.0.0.1:{self.upstream_port}/v1"\n'
        config.write_text(upstream + 'probe = "off"\n' + settings)
        self.log = folder / "gateway.log"
        command = [
            *(sys.executable, "-m", "surecall", "-q", "serve", "--config", str(config)),
            *("--port", str(self.port), "--store", str(folder / "requests.db")),
        ]
        environment = gateway_environment(folder / "compiled")
        self.gateway = start(command, log=self.log, env=environment, cwd=folder)
        self.pid = self.gateway.pid

    async def wait(self) -> None:
        for _ in range(2000):
            if (await ask(self.port, None, path="/readyz")).status == 200:
                return
            await asyncio.sleep(0.02)
        sys.exit(self.log.read_text())

    def close(self) -> None:
        for process in (self.gateway, self.stub):
            if process.poll() is None:
                stop(process)

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def use(self, mode: str, connections: int, seconds: int, folder: Path) -> int:
        """Load it with wrk, and return how many requests were answered."""
        script, body = folder / "load.lua", folder / "body"
        script.write_text(LOAD)
        body.write_bytes(make_request(stream=mode == "burst"))
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script)]
        done = subprocess.run(
            [*command, f"http://127.0.0.1:{self.port}{PATH}"],
            env=os.environ | {"BODY": str(body)},
            capture_output=True,
            text=True,
            check=True,
        )
        line = next(line for line in done.stdout.splitlines() if line.startswith("FIGURES "))
        return json.loads(line[8:])["requests"]


async def ask(
    port: int, body: bytes | None, *, path: str = PATH, leave_after_s: float | None = None
) -> Answer:
    """Send one request on a connection of its own; a client may leave before the end."""
    began = time.perf_counter()
    first_s, data = 0.0, b""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return Answer(0, 0.0, time.perf_counter() - began, b"")
    head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
    head += "connection: close\r\n"
    if body is not None:
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    try:
        writer.write(head.encode() + b"\r\n" + (body or b""))
        async with asyncio.timeout(leave_after_s):
            while piece := await reader.read(1 << 18):
                first_s = first_s or time.perf_counter() - began
                data += piece
                if data.endswith(b"\r\n0\r\n\r\n"):
                    break
    except (TimeoutError, OSError):
        pass
    finally:
        writer.close()
    shown, _, rest = data.partition(b"\r\n\r\n")
    status = int(shown.split()[1]) if shown.startswith(b"HTTP/") else 0
    took_s = time.perf_counter() - began
    return Answer(status, first_s, took_s, rest, shown.decode("latin-1").lower())


async def run_clients(count: int, total: int, work: Callable[[int], Awaitable[None]]) -> None:
    """Let so many clients do a number of things together."""
    numbers = iter(range(total))

    async def serve() -> None:
        for number in numbers:
            await work(number)

    await asyncio.gather(*(serve() for _ in range(count)))


def share(values: list[float], part: float) -> float:
    """Return the value that so large a part is not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


# The rows


async def measure_chunks(scene: Scene, options: argparse.Namespace) -> None:
    events, rounds = 10_000, 3 if options.small else 20
    body = make_request(f"text-{events}-0", stream=True)
    await ask(scene.port, body)
    before, ahead, direct = cpu_s(scene.pid), [], []
    for _ in range(rounds):
        answer = await ask(scene.port, body)
        assert answer.data.count(b"data: ") == events + 1, answer.data[-300:]
        ahead.append(answer.first_s)
        direct.append((await ask(scene.upstream_port, body)).first_s)
    spent = (cpu_s(scene.pid) - before) / rounds / events
    later = statistics.median(ahead) - statistics.median(direct)
    print(f"CPU for each of {events} events: {spent * 1e3:.4f} ms (meant: 0.1)")
    print(f"the first event comes {later * 1e3:.2f} ms later (meant: 3)")


async def measure_slow(scene: Scene, options: argparse.Namespace) -> None:
    streams, seconds = (100, 20) if options.small else (1000, 600)
    answers: list[Answer] = []
    body = make_request(f"text-{seconds * 10}-100", stream=True)

    async def one(number: int) -> None:
        await asyncio.sleep(number / streams * 5)
        answers.append(await ask(scene.port, body))

    async with probing(scene.port, "/healthz") as lively:
        await asyncio.gather(*(one(number) for number in range(streams)))
    bad = sum(a.status != 200 or b"[DONE]" not in a.data for a in answers)
    peak = memory_mb(scene.pid, "VmHWM")
    print(f"{streams} streams of {seconds} s: {bad} with errors (meant: 0)")
    print(f"most memory: {peak:.0f} MB (meant: 250)")
    waits = [took_s for _, took_s in lively]
    print(f"liveness p99 {share(waits, 0.99) * 1e3:.0f} ms of {len(waits)} (meant: 100)")


async def measure_soak(scene: Scene, options: argparse.Namespace) -> None:
    total = 5000 if options.small else 200_000
    chance = random.Random(options.seed)
    seen: dict[str, int] = {}

    async def one(number: int) -> None:
        kind = chance.random()
        leave_s = chance.uniform(0.0, 0.02) if kind < 0.2 else None
        model = "stub"
        if leave_s is not None:
            model = chance.choice(("stub", "hang", "paced"))
        elif kind < 0.4:
            model = chance.choice(("broken", "cut"))
        stream = model in ("paced", "cut") or chance.random() < 0.3
        answer = await ask(scene.port, make_request(model, stream=stream), leave_after_s=leave_s)
        what = "left" if leave_s is not None else f"{model} {answer.status}"
        seen[what] = seen.get(what, 0) + 1

    await run_clients(16, max(500, total // 10), one)  # warm
    await asyncio.sleep(2)
    base = (scene.descriptors, memory_mb(scene.pid))
    began = time.perf_counter()
    await run_clients(16, total, one)
    rate = total / (time.perf_counter() - began)
    await asyncio.sleep(10 if options.small else 60)
    grown_kb = (memory_mb(scene.pid) - base[1]) * 1024
    print(f"{total} requests at {rate:.0f}/s: {dict(sorted(seen.items()))}")
    print(
        f"memory {base[1]:.1f} MB and {grown_kb:+.0f} KB, {grown_kb / total:.4f} KB a request "
        "(meant: 0.1)"
    )
    print(f"descriptors {base[0]} and then {scene.descriptors} (meant: within 5)")
    left = (await ask(scene.port, None, path="/metrics")).data.decode()
    print(next(line for line in left.splitlines() if line.startswith("surecall_in_flight")))


async def measure_slope(scene: Scene, options: argparse.Namespace) -> None:
    total = 20_000 if options.small else 200_000
    done, points = 0, []
    folder = scene.log.parent
    for _ in range(3):  # warm
        await asyncio.to_thread(scene.use, "plain", 64, 3, folder)
        await asyncio.to_thread(scene.use, "burst", 64, 2, folder)
    while done < total:
        points.append((done, memory_mb(scene.pid)))
        done += await asyncio.to_thread(scene.use, "plain", 64, 5, folder)
        done += await asyncio.to_thread(scene.use, "burst", 64, 2, folder)
    points.append((done, memory_mb(scene.pid)))
    slope, _ = statistics.linear_regression(*zip(*points, strict=True))
    print(" ".join(f"{count}:{size:.1f}" for count, size in points))
    print(f"memory grows by {slope * 1024:.4f} KB a request over {done} (meant: 0.1)")


async def measure_stalls(scene: Scene, options: argparse.Namespace) -> None:
    for mib, meant in ((1, 50), (8, 100), (31, 250)):
        for shape, path, request in large_requests(mib * 1024 * 1024):
            body = json.dumps(request, separators=(",", ":")).encode()
            async with (
                probing(scene.port, "/readyz", pause_s=0.01) as answers,
                probing(scene.port, "/healthz", pause_s=0.01) as lively,
            ):
                rounds = range(1 if options.small else 5)
                statuses = [(await ask(scene.port, body, path=path)).status for _ in rounds]
            print(
                f"{mib} MiB, {shape}: the loop was silent for "
                f"{max(took_s for _, took_s in answers) * 1e3:.0f} ms (meant: {meant}), liveness "
                f"for {max(took_s for _, took_s in lively) * 1e3:.0f} ms (meant: 100), {statuses}",
                flush=True,
            )


async def measure_overload(scene: Scene, options: argparse.Namespace) -> None:
    capacity, seconds = 32, 6 if options.small else 60
    body = make_request("text-70-2", stream=True)

    async def load(clients: int, ends: float) -> list[Answer]:
        found: list[Answer] = []

        async def one() -> None:
            while time.perf_counter() < ends:
                found.append(await ask(scene.port, body))
                if found[-1].status == 503:  # as a client does that reads retry-after
                    await asyncio.sleep(1)

        await asyncio.gather(*(one() for _ in range(clients)))
        return found

    normal = await load(capacity, time.perf_counter() + seconds / 4)
    async with probing(scene.port, PATH, make_request(), 0.02) as probes:
        both = await load(2 * capacity, time.perf_counter() + seconds)
    taken = [a for a in both if a.status == 200]
    refused = [a for a in both if a.status == 503]
    late = [took_s for status, took_s in probes if status == 503]
    again = await load(capacity, time.perf_counter() + 3)
    usual = share([a.total_s for a in normal], 0.99)
    full = share([a.total_s for a in taken], 0.99)
    print(
        f"{len(taken)} served, {len(refused)} refused, {len(both) - len(taken) - len(refused)} "
        "others (meant: 0)"
    )
    print(f"p99 of those served {full * 1e3:.0f} ms, usually {usual * 1e3:.0f} (meant: twice)")
    if refused:
        hints = sum("retry-after: " in a.head for a in refused)
        print(f"{hints} refusals of {len(refused)} with retry-after (meant: all)")
    if late:  # as another process saw it, which has nothing else to do
        print(
            f"{len(late)} of {len(probes)} probes refused, p50 {share(late, 0.5) * 1e3:.1f} ms, "
            f"p99 {share(late, 0.99) * 1e3:.1f} (meant: 20)"
        )
    print(f"3 s later: {sum(a.status != 200 for a in again)} of {len(again)} fail (meant: 0)")


async def measure_trickle(scene: Scene, options: argparse.Namespace) -> None:
    count = 100 if options.small else 500
    ended: list[float] = []
    served: list[float] = []

    async def trickle(part: str) -> None:
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", scene.port)
        text = f"POST {PATH} HTTP/1.1\r\nhost: x\r\n"
        if part == "body":
            text += "content-type: application/json\r\ncontent-length: 900\r\n\r\n"
        writer.write(text.encode())
        reading = asyncio.create_task(reader.read())
        while not reading.done():
            writer.write(b"x")
            await asyncio.wait({reading}, timeout=1.0)
        ended.append(time.perf_counter() - began)
        writer.close()

    async def normal() -> None:
        while True:
            answer = await ask(scene.port, make_request())
            assert answer.status == 200, answer
            served.append(answer.total_s)
            await asyncio.sleep(0.05)

    asking = asyncio.create_task(normal())
    await asyncio.gather(*(trickle("head" if n % 2 else "body") for n in range(count)))
    asking.cancel()
    print(f"{count} ended after {min(ended):.1f} to {max(ended):.1f} s (meant: 10 and 1 each way)")
    print(f"{len(served)} other requests served, p99 {share(served, 0.99) * 1e3:.0f} ms")


async def measure_stop(scene: Scene, options: argparse.Namespace) -> None:
    short = make_request("text-70-50", stream=True)
    endless = make_request("text-100000-50", stream=True)
    asking = [
        asyncio.create_task(ask(scene.port, endless if number % 5 == 0 else short))
        for number in range(50)
    ]
    await asyncio.sleep(1.5)
    began = time.perf_counter()
    scene.gateway.send_signal(signal.SIGTERM)
    answers = await asyncio.gather(*asking)
    code = await asyncio.to_thread(scene.gateway.wait)
    whole = sum(b"data: [DONE]" in a.data for a in answers)
    broken = sum(b'"error"' in a.data for a in answers)
    print(f"ended after {time.perf_counter() - began:.1f} s (meant: 30) with code {code}")
    print(
        f"{whole} streams whole, {broken} with an error event, "
        f"{len(answers) - whole - broken} without an end (meant: 0)"
    )


ROOM = "max_in_flight = 2000\nmax_connections = 4000\n"
ROWS: dict[str, tuple[Callable[[Scene, argparse.Namespace], Awaitable[None]], str]] = {
    "chunks": (measure_chunks, ""),
    "slow": (measure_slow, f"{ROOM}deadlines = {{ total_s = 900 }}\n[limits]\n{ROOM}"),
    "soak": (measure_soak, ""),
    "slope": (measure_slope, ""),
    "stalls": (measure_stalls, ""),
    "overload": (measure_overload, "[limits]\nmax_in_flight = 32\nmax_waiting = 16\n"),
    "trickle": (measure_trickle, ""),
    "stop": (measure_stop, ""),
}


async def run(row: str, options: argparse.Namespace, folder: Path) -> None:
    measure, settings = ROWS[row]
    scene = Scene(folder, settings)
    try:
        await scene.wait()
        print(f"{row}:", flush=True)
        await measure(scene, options)
        if row != "stop":
            print(f"connections at the stub: {read_stats(scene.upstream_port)['connections']}")
    finally:
        scene.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="+", choices=ROWS)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for row in options.rows:
        with tempfile.TemporaryDirectory() as name:
            asyncio.run(run(row, options, Path(name)))


if __name__ == "__main__":
    main()
