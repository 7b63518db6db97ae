"""What our server costs for a request beside uvicorn: CPU of a function that answers 1.5 KB.

    python bench/serving.py [--seconds 3] [--rounds 3]

Both run one function of ASGI that reads 0.9 KB and answers at once, on uvloop, alone on a core;
`wrk` asks over 16 connections from the other. uvicorn has no deadlines for heads and bodies.
"""

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BODY = b"x" * 1500
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"1500")]
LOAD = """
wrk.method = "POST"
wrk.body = string.rep("y", 900)
wrk.headers["content-type"] = "application/json"
"""


async def app(scope, receive, send) -> None:
    while (await receive())["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY, "more_body": False})


def serve(name: str, port: int) -> None:
    sock = socket.create_server(("127.0.0.1", port))
    if name == "uvicorn":
        import uvicorn

        config = uvicorn.Config(
            app, http="httptools", ws="none", lifespan="off", access_log=False, loop="uvloop"
        )
        config.server_header = config.date_header = False
        uvicorn.Server(config).run(sockets=[sock])
        return
    import uvloop

    from surecall.gateway.settings.tables import LimitSettings
    from surecall.serving import HttpServer

    async def forever() -> None:
        sock.settimeout(0)
        await HttpServer(app, LimitSettings()).listen(sock)
        await asyncio.Event().wait()

    uvloop.run(forever())


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name: str, seconds: int, script: str) -> float:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = ["taskset", "-c", "1", sys.executable, __file__, "--one", name, "--port", str(port)]
    with subprocess.Popen(command) as process:
        try:
            time.sleep(1.5)
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            wrk = ["taskset", "-c", "0", "wrk", "-t1", "-c16", "-s", script, url]
            subprocess.run([*wrk, "-d1s"], check=True, capture_output=True)
            before = cpu_s(process.pid)
            done = subprocess.run(
                [*wrk, f"-d{seconds}s"], check=True, capture_output=True, text=True
            )
            spent = cpu_s(process.pid) - before
        finally:
            process.terminate()
    line = next(line for line in done.stdout.splitlines() if "requests in" in line)
    return spent / int(line.split()[0]) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        serve(options.one, options.port)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(LOAD)
        script.flush()
        found: dict[str, list[float]] = {"surecall": [], "uvicorn": []}
        for _ in range(options.rounds):
            for name, costs in found.items():
                costs.append(measure(name, options.seconds, script.name))
    for name, costs in found.items():
        low, middle, high = min(costs), statistics.median(costs), max(costs)
        print(f"{name:10}{middle:8.1f} µs of CPU a request ({low:.1f}-{high:.1f})")


if __name__ == "__main__":
    main()
