"""What a gateway costs on one core: surecall beside a bare relay, peers, and no gateway at all.

    python bench/gateway.py [--seconds 3] [--rounds 3] [--only surecall,relay] [--out FILE]
        [--modes plain,burst,paced] [--concurrency 1,16,64,256]
        [--peers DIR] [--install] [--add 'NAME=COMMAND {port} {upstream}']

`wrk` sends requests of 0.9 KB over so many connections, from the same core as the stub; what is
measured has the other core for itself. The stub (C) answers with one call: whole (1.5 KB), as 61
events at once (`burst`), or 61 events 5 ms apart (`paced`). surecall validates every call, records
every request in SQLite before the last byte, and counts; nothing is turned off. The relay reads
nothing at all: it is the floor. Contenders take turns in every cell, so compare the ratios.

CPU is user and system time of the contender's processes, for each request that reached the stub.
`others` is how many cores work outside of the bench used meanwhile: with more than 0.3, requests
per second and latencies say little.

LiteLLM is measured when it is installed in DIR (`--install` does that, in a virtual environment);
`--add` measures anything else that takes a port and the URL of an upstream.
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from gateway_processes import (
    BENCH,
    PATH,
    ask,
    build_stub,
    cpu_s,
    free_port,
    gateway_command,
    gateway_environment,
    machine_s,
    make_request,
    memory_mb,
    peer_environment,
    read_stats,
    start,
    start_stub,
    stop,
)

MODES = {"plain": ("stub", False), "burst": ("stub", True), "paced": ("paced", True)}
OURS, FLOOR, DIRECT = "surecall", "relay", "direct"
START_WAIT_S = 300.0
LOAD = """
wrk.method = "POST"
wrk.body = assert(io.open(os.getenv("BODY"), "rb")):read("*a")
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer sk-none"
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\\nFIGURES {"requests":%d,"us":%d,"bad":%d,"p50_us":%d,"p99_us":%d}\\n',
    summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""
TITLES = (
    "| contender | connections | CPU ms | lowest | times relay | litellm is times | "
    "req/s | p50 ms | p99 ms | added p50 ms | others |"
)
LITELLM = """
model_list:
- {model_name: stub, litellm_params: {model: openai/stub, api_base: "URL", api_key: sk-none}}
- {model_name: paced, litellm_params: {model: openai/paced, api_base: "URL", api_key: sk-none}}
litellm_settings: {num_retries: 0, telemetry: false}
"""
LITELLM_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
}


class Contender(NamedTuple):
    """What is measured, and how it is started with a port."""

    name: str
    command: Callable[[int], Sequence[str]] | None
    """None is the stub itself."""
    environment: Mapping[str, str] = MappingProxyType({})


class Running(NamedTuple):
    """A contender that takes requests."""

    port: int
    process: subprocess.Popen
    start_s: float
    idle_mb: float


class Bench:
    """One run: the stub, the contenders in front of it, and the cells."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder
        cores = sorted(os.sched_getaffinity(0))
        self.core, self.load_core = cores[0], cores[-1]
        self.port = free_port()
        self.stub = start_stub(build_stub(folder), self.port, core=self.load_core)
        self.running: dict[str, Running] = {}
        self.rows: list[dict[str, Any]] = []
        self.script = folder / "load.lua"
        self.script.write_text(LOAD)
        for mode, (model, stream) in MODES.items():
            (folder / mode).write_bytes(make_request(model, stream=stream))

    def close(self) -> None:
        for item in self.running.values():
            if item.process is not self.stub:
                stop(item.process)
        stop(self.stub)

    # starting

    def launch(self, contender: Contender) -> None:
        """Start a contender several times, and keep the last."""
        if contender.command is None:
            self.running[contender.name] = Running(self.port, self.stub, 0.0, 0.0)
            return
        times: list[float] = []
        for number in range(self.options.starts + 1):  # the first compiles, and does not count
            port = free_port()
            log = self.folder / f"{contender.name}.log"
            environment = peer_environment()
            if contender.name == OURS:
                environment = gateway_environment(self.folder / "compiled")
            began = time.perf_counter()
            process = start(
                contender.command(port),
                core=self.core,
                log=log,
                env=environment | dict(contender.environment),
                cwd=self.folder,
            )
            if not self._wait(process, port):
                stop(process)
                last = log.read_text(errors="replace")[-600:]
                print(f"{contender.name}: skipped, it does not answer.\n{last}", flush=True)
                return
            if number:
                times.append(time.perf_counter() - began)
            if number < self.options.starts:
                stop(process)
        time.sleep(0.5)
        self.running[contender.name] = Running(
            port, process, statistics.median(times), memory_mb(process.pid)
        )

    def _wait(self, process: subprocess.Popen, port: int) -> bool:
        """Wait until a first request is answered."""
        ends = time.monotonic() + START_WAIT_S
        while time.monotonic() < ends and process.poll() is None:
            try:
                status, body = ask(port, make_request(), wait_s=10.0)
            except OSError:
                time.sleep(0.005)
                continue
            if status == 200 and b"create_ticket" in body:
                return True
            time.sleep(0.05)
        return False

    # measuring

    def measure(self, name: str, mode: str, connections: int) -> None:
        item = self.running[name]
        before, others = self._use(item), self._use_others(item)
        figures = self._load(item.port, mode, connections)
        after = self._use(item)
        spent_s = after[2] - before[2]
        requests = max(1, after[1] - before[1])
        row = {
            "name": name,
            "mode": mode,
            "connections": connections,
            "rps": figures["requests"] * 1e6 / figures["us"],
            "p50_ms": figures["p50_us"] / 1e3,
            "p99_ms": figures["p99_us"] / 1e3,
            "cpu_ms": (after[0] - before[0]) * 1e3 / requests,
            "bad": figures["bad"],
            "others": max(0.0, self._use_others(item) - others) / spent_s,
        }
        self.rows.append(row)
        print(
            f"{mode:6} c={connections:<4} {name:10} {row['cpu_ms']:8.3f} ms CPU "
            f"{row['rps']:8.0f}/s  p50 {row['p50_ms']:8.2f}  p99 {row['p99_ms']:8.2f}  "
            f"bad {row['bad']}  others {row['others']:.2f}",
            flush=True,
        )

    def _use(self, item: Running) -> tuple[float, int, float]:
        served = read_stats(self.port)["requests"]
        return cpu_s(item.process.pid), served, time.perf_counter()

    def _use_others(self, item: Running) -> float:
        spent = os.times()
        ours = spent.user + spent.system + spent.children_user + spent.children_system
        return (
            machine_s()
            - ours
            - cpu_s(self.stub.pid)
            - (0.0 if item.process is self.stub else cpu_s(item.process.pid))
        )

    def _load(self, port: int, mode: str, connections: int) -> dict[str, int]:
        command = [
            *("taskset", "-c", str(self.load_core), "wrk", "-t1", f"-c{connections}"),
            *(f"-d{self.options.seconds}s", "--timeout", "30s", "-s", str(self.script)),
            f"http://127.0.0.1:{port}{PATH}",
        ]
        environment = os.environ | {"BODY": str(self.folder / mode)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            if line.startswith("FIGURES "):
                return json.loads(line[8:])
        sys.exit(done.stdout + done.stderr)

    def run(self) -> None:
        for mode in self.options.modes:
            for item in self.running.values():
                self._load(item.port, mode, 16)  # warm
            for _ in range(self.options.rounds):
                for connections in self.options.concurrency:
                    for name in self.running:
                        self.measure(name, mode, connections)


# Contenders


def list_contenders(options: argparse.Namespace, bench: Bench) -> list[Contender]:
    upstream = f"http://127.0.0.1:{bench.port}/v1"
    store = bench.folder / "requests.db"
    found = [
        Contender(DIRECT, None),
        Contender(
            FLOOR,
            lambda port: [
                *(sys.executable, str(BENCH / "gateway_relay.py"), str(port), str(bench.port))
            ],
        ),
        Contender(OURS, lambda port: gateway_command(port, bench.port, store)),
    ]
    litellm = Path(options.peers or "/nowhere") / "v_litellm/bin/litellm"
    if litellm.exists():
        config = bench.folder / "litellm.yaml"
        config.write_text(LITELLM.replace("URL", upstream))
        found.append(
            Contender(
                "litellm",
                lambda port: [
                    *(str(litellm), "--config", str(config), "--host", "127.0.0.1"),
                    *("--port", str(port), "--num_workers", "1", "--telemetry", "False"),
                ],
                LITELLM_ENVIRONMENT,
            )
        )
    elif "litellm" in options.only or not options.only:
        print("litellm: skipped, it is not installed (--peers DIR --install)")
    for text in options.add:
        name, _, command = text.partition("=")
        found.append(
            Contender(
                name,
                lambda port, command=command: [
                    part.format(port=port, upstream=upstream) for part in shlex.split(command)
                ],
            )
        )
    return [item for item in found if not options.only or item.name in options.only]


def install_peers(folder: Path) -> None:
    """Install the peers, each in an environment of its own outside of the repository."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "v_litellm"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    done = subprocess.run([str(place / "bin/pip"), "install", "-q", "litellm[proxy]"], check=False)
    if done.returncode:
        print("litellm: it could not be installed")


# What came out


def summarize(bench: Bench) -> str:
    """Return the figures as tables: medians of the rounds, and ratios taken within each round."""
    rows = bench.rows
    names = list(bench.running)
    lines: list[str] = []

    def column(name: str, mode: str, connections: int, figure: str) -> list[float]:
        key = (name, mode, connections)
        return [r[figure] for r in rows if (r["name"], r["mode"], r["connections"]) == key]

    def ratio(name: str, base: str, mode: str, connections: int) -> str:
        pairs = zip(
            column(name, mode, connections, "cpu_ms"),
            column(base, mode, connections, "cpu_ms"),
            strict=False,
        )
        found = [one / other for one, other in pairs if other]
        return f"{statistics.median(found):.2f}" if found else "-"

    for mode in dict.fromkeys(row["mode"] for row in rows):
        lines += [
            f"\n{mode}\n",
            TITLES,
            "|" + "---|" * 11,
        ]
        for connections in bench.options.concurrency:
            for name in names:
                cpu = column(name, mode, connections, "cpu_ms")
                if not cpu:
                    continue
                p50 = statistics.median(column(name, mode, connections, "p50_ms"))
                direct = column(DIRECT, mode, connections, "p50_ms")
                added = f"{p50 - statistics.median(direct):.2f}" if direct else "-"
                lines.append(
                    f"| {name} | {connections} | {statistics.median(cpu):.3f} | {min(cpu):.3f} | "
                    f"{ratio(name, FLOOR, mode, connections)} | "
                    f"{ratio('litellm', name, mode, connections)} | "
                    f"{statistics.median(column(name, mode, connections, 'rps')):.0f} | "
                    f"{p50:.2f} | "
                    f"{statistics.median(column(name, mode, connections, 'p99_ms')):.2f} | "
                    f"{added} | "
                    f"{statistics.median(column(name, mode, connections, 'others')):.2f} |"
                )
    lines += ["\n| contender | start s | idle MB | after the load MB |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {item.start_s:.2f} | {item.idle_mb:.0f} | {memory_mb(item.process.pid):.0f} |"
        for name, item in bench.running.items()
        if name != DIRECT
    ]
    return "\n".join(lines)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=3, help="length of a cell")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(MODES))
    parser.add_argument(
        "--concurrency",
        type=lambda text: [int(item) for item in text.split(",")],
        default=[1, 16, 64, 256],
    )
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--peers", help="folder where peers are installed")
    parser.add_argument("--install", action="store_true", help="install the peers there first")
    parser.add_argument("--add", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    for tool in ("wrk", "taskset"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is needed: apt-get install wrk util-linux")
    if options.install:
        if not options.peers:
            sys.exit("--install needs --peers DIR, outside of the repository.")
        install_peers(Path(options.peers))
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(options, Path(name))
        try:
            for contender in list_contenders(options, bench):
                bench.launch(contender)
            bench.run()
            print(summarize(bench))
        finally:
            bench.close()
            if options.out:
                options.out.write_text(json.dumps(bench.rows, indent=1))


if __name__ == "__main__":
    main()
