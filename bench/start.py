"""What starting costs: `surecall --version`, `--help` and the import, with peers beside them.

python bench/start.py [--rounds 15] [--python PATH ...]

Each figure is the CPU time of a fresh process, user and system, less that of a bare interpreter.
The contenders take turns, and the best of all rounds counts, so that a busy machine does not
matter. Bytecode is written before the first round counts. `--python` names interpreters of other
environments that have peers which are not installed in this one.
"""

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

BARE = ("-c", "pass")
PEERS = {
    "openai": "import openai",
    "anthropic": "import anthropic",
    "google-genai": "from google import genai",
    "openai-agents": "import agents",
    "pydantic-ai": "import pydantic_ai",
    "langchain-openai": "import langchain_openai",
    "instructor": "import instructor",
    "llama-index-llms-openai-like": "import llama_index.llms.openai_like",
    "litellm": "import litellm",
    "json-repair": "import json_repair",
}


class Start(NamedTuple):
    """One way to start, and how much CPU time it may take."""

    name: str
    arguments: tuple[str, ...]
    limit_ms: float | None = None


STARTS = (
    Start("surecall --version", ("-m", "surecall", "--version"), 80),
    Start("surecall --help", ("-m", "surecall", "--help"), 150),
    Start("import surecall", ("-c", "import surecall"), 30),
    Start("from surecall import read_reply", ("-c", "from surecall import read_reply")),
    Start("from surecall import run", ("-c", "from surecall import run")),
    Start("from surecall import wrap", ("-c", "from surecall import wrap")),
)


def cpu_ms(command: Sequence[str]) -> float:
    """Run a command and return the CPU time it took."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def can_run(command: Sequence[str]) -> bool:
    """Tell whether a command works here, and let it write its bytecode."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def find_peers(pythons: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return each peer with the first interpreter that has it."""
    found: list[tuple[str, list[str]]] = []
    for name, code in PEERS.items():
        commands = ([python, "-c", code] for python in pythons)
        command = next(filter(can_run, commands), None)
        if command is not None:
            found.append((f"{code}  ({name})", command))
    return found


def measure(contenders: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Let the contenders take turns; a first turn of each is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, command in contenders.items():
            spent = cpu_ms(command)
            if turn:
                taken[name].append(spent)
    return taken


def main() -> int:
    """Print a table; the exit code is 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    options = parser.parse_args()
    peers = find_peers([sys.executable, *options.python])
    contenders = {"bare": [sys.executable, *BARE]}
    contenders |= {start.name: [sys.executable, *start.arguments] for start in STARTS}
    contenders |= dict(peers)
    taken = measure(contenders, options.rounds)
    bare = min(taken["bare"])
    print(f"bare interpreter: {bare:.0f} ms of CPU; all others are over that, best of")
    print(f"{options.rounds} rounds, the median in brackets\n")
    limits = {start.name: start.limit_ms for start in STARTS}
    missed = 0
    for name in list(contenders)[1:]:
        times = sorted(taken[name])
        best, middle = times[0] - bare, times[len(times) // 2] - bare
        limit = limits.get(name)
        verdict = "" if limit is None else f"  at most {limit:.0f}"
        if limit is not None and best > limit:
            missed += 1
            verdict += "  MISSED"
        print(f"{best:8.0f} ({middle:.0f}) ms  {name}{verdict}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
