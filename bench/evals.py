"""What an eval costs: the same trials by surecall, raw asyncio, and Inspect AI if it is there.

    python bench/evals.py [--rounds 3] [--n 500] [--concurrency 64] [--peers DIR] [--out FILE]

A trial is a prompt, one tool call, its result and a final text: two requests to one stub server
that answers at once, so only the harness is measured. surecall runs it as `surecall eval` does:
the real loop, every check, and a durable record of every trial with its whole transcript. The
floor is aiohttp, `json` and one line in a file for each trial. Each contender runs in a process
of its own, they take turns, and imports count: compare the ratios, not the figures.

`--flat` measures memory instead: the peak after 1,000 and after 10,000 trials.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

from ticket_stub import (
    PARAMETERS,
    TOOL,
    interpreter_of,
    machine,
    running_stub,
    tell_missing,
)
from ticket_stub import create_ticket as file_ticket

HERE = Path(__file__).resolve()
FINAL = "The ticket is filed."
MODULES = {"floor": "aiohttp", "surecall": "surecall", "inspect": "inspect_ai"}


# the contenders: each runs n trials and returns how many passed


def floor(options) -> int:
    import aiohttp

    async def run() -> int:
        passed, room = 0, asyncio.Semaphore(options.concurrency)
        connector = aiohttp.TCPConnector(limit=0)
        with (Path(options.folder) / "trials.jsonl").open("w") as log:
            async with aiohttp.ClientSession(connector=connector) as session:

                async def one(number: int) -> None:
                    nonlocal passed
                    async with room:
                        messages = [{"role": "user", "content": f"trial {number}: file a ticket"}]
                        while messages[-1]["role"] != "assistant" or "tool_calls" in messages[-1]:
                            body = {"model": "stub", "messages": messages, "tools": [TOOL]}
                            url = options.base + "/chat/completions"
                            async with session.post(url, json=body) as response:
                                message = (await response.json())["choices"][0]["message"]
                            messages.append(message)
                            for call in message.get("tool_calls", ()):
                                output = file_ticket(**json.loads(call["function"]["arguments"]))
                                messages.append(
                                    {"role": "tool", "tool_call_id": call["id"], "content": output}
                                )
                        ok = messages[-1]["content"] == FINAL
                        passed += ok
                        log.write(json.dumps({"id": number, "ok": ok, "messages": messages}) + "\n")

                await asyncio.gather(*(one(number) for number in range(options.n)))
        return passed

    return asyncio.run(run())


class TicketSuite:
    name = "tickets"
    version = "1"

    def scenarios(self) -> Sequence[str]:
        return ("file",)

    def cases(self, scenario: str):
        return (TicketCase(),)


class TicketCase:
    scenario = "file"
    id = ""
    control = False

    def prepare(self, seed: int):
        from surecall.base.records import Message, ToolSpec
        from surecall.evals.cases import Prepared
        from surecall.tools import ToolRegistry

        spec = ToolSpec(name="create_ticket", description="File a ticket.", parameters=PARAMETERS)
        made: list[str] = []

        def execute(name: str, arguments: dict) -> str:
            made.append(name)
            return file_ticket(**arguments)

        prompt = Message("user", f"trial {seed}: file a ticket")
        tools = ToolRegistry.from_executor([spec], execute)
        return Prepared(tools=tools, messages=(prompt,), state=made)

    def grade(self, attempt):
        from surecall.evals.cases import Grades, failed
        from surecall.evals.records import Verdict

        ok = attempt.text == FINAL and attempt.prepared.state == ["create_ticket"]
        verdict = Verdict(ok=True) if ok else failed("WRONG", attempt.text)
        return Grades(original=verdict, strict=verdict, exact=(ok,))

    def ideal(self, request):
        return None


@asynccontextmanager
async def open_bench_job(params: dict):
    from surecall.evals.cases import Contender
    from surecall.evals.jobs import TrialParams, Trials
    from surecall.models.transport import HttpTransport

    transport = HttpTransport(params["base"], api_key="sk-none")

    @asynccontextmanager
    async def open_transport(_contender, _unit, _case):
        yield transport

    contender = Contender(label="stub", model="stub", base_url=params["base"])
    settings = TrialParams(
        suites=("tickets",), contenders=(contender,), open_transport="", timeout_s=60.0
    )
    async with transport:
        yield Trials(settings, [TicketSuite()], open_transport).run


def surecall(options) -> int:
    from surecall.evals.executors import LocalExecutor
    from surecall.evals.jobs import Job
    from surecall.evals.records import Cell, Unit, make_manifest
    from surecall.evals.runner import run_experiment
    from surecall.evals.store import RunStore

    cell = Cell(model="stub", suite="tickets", scenario="file")
    units = tuple(
        Unit(index=number, cell=cell, trial=number + 1, seed=number) for number in range(options.n)
    )
    matrix = SimpleNamespace(units=units)
    sys.modules.setdefault("evals_bench", sys.modules[__name__])
    job = Job(open="evals_bench:open_bench_job", params={"base": options.base})
    manifest = make_manifest(units, axes={"trials": options.n}, suites={"tickets": "1"})
    with RunStore(Path(options.folder) / "evals.db") as store:
        executor = LocalExecutor(job, concurrency=options.concurrency)
        info = asyncio.run(run_experiment(matrix, manifest, store, executor=executor))
        assert info.is_complete
        return info.strict_ok


def inspect(options) -> int:
    os.environ["STUB_API_KEY"] = "sk-none"
    from inspect_ai import Task, eval  # noqa: A004 - its name for it
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import tool

    @tool
    def create_ticket():
        async def execute(title: str, body: str, priority: str, tags: list[str], due_days: int):
            """File a ticket.

            Args:
                title: Title.
                body: Body.
                priority: Priority.
                tags: Tags.
                due_days: Days.
            """
            return file_ticket(title, body, priority, tags, due_days)

        return execute

    task = Task(
        dataset=[
            Sample(input=f"trial {number}: file a ticket", target=FINAL, id=number)
            for number in range(options.n)
        ],
        solver=[use_tools([create_ticket()]), generate()],
        scorer=match(),
    )
    (log,) = eval(
        task,
        model="openai-api/stub/stub",
        model_base_url=options.base,
        log_dir=options.folder,
        display="none",
        max_connections=options.concurrency,
        max_samples=options.concurrency,
        max_tasks=1,
        log_level="error",
    )
    assert log.status == "success", log.error
    return round(log.results.scores[0].metrics["accuracy"].value * options.n)


CONTENDERS = {function.__name__: function for function in (floor, surecall, inspect)}


def measure(options) -> None:
    started, cpu = time.perf_counter(), time.process_time()
    passed = CONTENDERS[options.one](options)
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert passed == options.n, f"{passed} of {options.n} trials passed"
    files = [path for path in Path(options.folder).rglob("*") if path.is_file()]
    row = {
        "runs_s": options.n / wall,
        "cpu_ms": cpu / options.n * 1000,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "log_kb": sum(path.stat().st_size for path in files) / options.n / 1000,
    }
    print(json.dumps(row), flush=True)
    os._exit(0)


def environment() -> dict[str, str]:
    """Modules are imported as they are installed, from their compiled form."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONWARNINGS": "ignore", "NO_PROXY": "127.0.0.1"}


def run_one(python: str, name: str, base: str, n: int, concurrency: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        command = [python, str(HERE), "--one", name, "--base", base, "--folder", folder]
        done = subprocess.run(
            [*command, "--n", str(n), "--concurrency", str(concurrency)],
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(options, base: str) -> None:
    pythons = {name: interpreter_of(name, MODULES[name], options.peers) for name in CONTENDERS}
    present = {name: python for name, python in pythons.items() if python}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in present}
    for _ in range(options.rounds):
        for name, python in present.items():
            row = run_one(python, name, base, options.n, options.concurrency)
            rounds[name].append(row)
    print(
        f"{machine()}, {options.rounds} rounds of {options.n} trials, "
        f"{options.concurrency} at once\n"
    )
    print(
        f"{'':10}{'trials/s':>10}{'spread':>14}{'x floor':>9}{'CPU ms':>8}{'MB':>6}{'KB kept':>9}"
    )
    table: dict[str, dict[str, float]] = {}
    for name in present:
        rates = [row["runs_s"] for row in rounds[name]]
        ratios = [
            own["runs_s"] / floor["runs_s"]
            for own, floor in zip(rounds[name], rounds["floor"], strict=True)
        ]
        table[name] = row = {
            key: statistics.median(entry[key] for entry in rounds[name]) for key in rounds[name][0]
        }
        row["ratio"] = statistics.median(ratios)
        spread = f"{min(rates):.0f}-{max(rates):.0f}"
        print(
            f"{name:10}{row['runs_s']:>10.0f}{spread:>14}{row['ratio']:>9.2f}"
            f"{row['cpu_ms']:>8.2f}{row['rss_mb']:>6.0f}{row['log_kb']:>9.1f}"
        )
    tell_missing(pythons)
    if options.out:
        options.out.write_text(json.dumps(table, indent=1))


def show_memory(options, base: str) -> None:
    for n in (1_000, 10_000):
        row = run_one(sys.executable, "surecall", base, n, options.concurrency)
        print(f"{n:>6} trials: {row['rss_mb']:.0f} MB at the peak, {row['runs_s']:.0f} trials/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--peers", type=Path, help="folder with one virtual environment a library")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--flat", action="store_true", help="measure memory instead")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--base", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options)
        return
    with running_stub(1, FINAL) as base:
        (show_memory if options.flat else compare)(options, base)


if __name__ == "__main__":
    main()
