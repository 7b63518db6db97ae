"""What starting costs: `surecall --version`, `--help` and the import, with peers beside them.

python bench/start.py [--rounds 15] [--peer-rounds 3] [--python PATH ...]

Each figure is the CPU time of a fresh process, user and system, less that of a bare interpreter.
The commands take turns, and the best of all rounds counts, so that a busy machine does not
matter much. Bytecode is written before the first round counts. A peer may take seconds to start,
so peers have fewer rounds. `--python` names interpreters of other environments that have peers
which are not installed in this one.
"""

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

BARE = "bare interpreter"
PEERS = {
    "openai": "import openai",
    "anthropic": "import anthropic",
    "google-genai": "from google import genai",
    "openai-agents": "import agents",
    "pydantic-ai": "import pydantic_ai",
    "langchain-openai": "import langchain_openai",
    "instructor": "from instructor import from_openai",
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


ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def cpu_ms(command: Sequence[str]) -> float:
    """Run a command and return the CPU time it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def can_run(command: Sequence[str]) -> bool:
    """Tell whether a command works here, and let it write its bytecode."""
    ran = subprocess.run(command, check=False, capture_output=True, env=ENVIRONMENT)
    return ran.returncode == 0


def find_peers(pythons: Sequence[str]) -> dict[str, list[str]]:
    """Return the command that imports each peer, with the first interpreter that has it."""
    found: dict[str, list[str]] = {}
    for name, code in PEERS.items():
        commands = ([python, "-c", code] for python in pythons)
        command = next(filter(can_run, commands), None)
        if command is not None:
            found[f"{code}  ({name})"] = command
    return found


def measure(commands: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Let the commands take turns, and return what each took, the least first."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(cpu_ms(command))
    return {name: sorted(times) for name, times in taken.items()}


def print_row(name: str, times: Sequence[float], bare: float, limit: float | None = None) -> bool:
    """Print what a command took, and tell whether it is within its limit."""
    best, middle = times[0] - bare, times[len(times) // 2] - bare
    within = limit is None or best <= limit
    verdict = "" if limit is None else f"  at most {limit:.0f}"
    print(
        f"{best:8.0f} ({middle:.0f}) ms  {name}{verdict}{'' if within else '  MISSED'}", flush=True
    )
    return within


def main() -> int:
    """Print a table; the exit code is 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peer-rounds", type=int, default=3)
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    options = parser.parse_args()
    commands = {BARE: [sys.executable, "-c", "pass"]}
    commands |= {start.name: [sys.executable, *start.arguments] for start in STARTS}
    for command in commands.values():
        can_run(command)  # writes the bytecode
    taken = measure(commands, options.rounds)
    bare = taken[BARE][0]
    print(f"{BARE}: {bare:.0f} ms of CPU")
    print("what each takes over that, the best round, with the median in brackets:\n")
    within = [print_row(start.name, taken[start.name], bare, start.limit_ms) for start in STARTS]
    peers = find_peers([sys.executable, *options.python]) if options.peer_rounds else {}
    for name, times in measure(peers, options.peer_rounds).items():
        print_row(name, times, bare)
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
