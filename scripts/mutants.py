"""Plant small mistakes in the package, one at a time, and see which of them the tests notice.

    python scripts/mutants.py [--room ROOM ...] [--at-once 1]

A mistake replaces one line of the package, which `scripts/mutants.toml` holds, wherever that line
has moved since. It is planted in a copy of the sources, and the tests of its room run against the
copy until the first one fails. A line that is not there exactly once is reported as `gone`: put a
line in its place that does the same work.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parents[1]
TIME_LIMIT_S: Final = 1800
TESTS: Final[dict[str, tuple[str, ...]]] = {
    "text": ("text", "golden", "conformance"),
    "schema": ("schema", "golden"),
    "calls": ("calls", "golden", "conformance"),
    "wire": ("wire", "golden"),
    "reading": ("reading", "golden", "transforms"),
    "models": ("http_client", "transport", "probe", "profiles", "test_config_sources.py"),
    "tools": ("tools", "tool_servers"),
    "exchange": ("exchange", "golden/test_wire.py"),
    "loop": ("loop", "directives"),
    "gateway": ("gateway",),
}


class Mutant(NamedTuple):
    """A line of a room, and the mistake that takes its place."""

    room: str
    line: str
    instead: str


def read_mutants(rooms: list[str]) -> list[Mutant]:
    """The mistakes of these rooms; of all where none is named."""
    table = tomllib.loads((HERE / "scripts/mutants.toml").read_text(encoding="utf-8"))
    return [
        Mutant(room, one["line"], one["instead"])
        for room, mutants in table.items()
        for one in mutants
        if not rooms or room in rooms
    ]


def plant(mutant: Mutant, package: Path) -> Path | None:
    """The file that the mistake is in now; nothing where its line is not there exactly once."""
    found: list[tuple[Path, str]] = []
    for path in package.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        found += [(path, line) for line in lines if line.strip() == mutant.line]
    if len(found) != 1:
        return None
    [(path, line)] = found
    planted = line.replace(mutant.line, mutant.instead)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f"{line}\n", f"{planted}\n", 1), encoding="utf-8")
    return path


def try_out(mutant: Mutant) -> tuple[Mutant, str]:
    """What the tests of its room say of a mistake."""
    with tempfile.TemporaryDirectory(prefix="mutant") as folder:
        package = Path(folder, "surecall")
        shutil.copytree(HERE / "src/surecall", package)
        path = plant(mutant, package)
        if path is None:
            return mutant, "gone"
        tests = [str(HERE / "tests" / name) for name in TESTS[mutant.room]]
        try:
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
                cwd=HERE,
                env={**os.environ, "PYTHONPATH": folder, "CI": "true"},
                capture_output=True,
                text=True,
                timeout=TIME_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return mutant, f"undecided: no end within {TIME_LIMIT_S} s"
        if done.returncode == 0:
            return mutant, f"MISSED in {path.relative_to(package)}"
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return mutant, f"caught by {failed[0].split(' - ')[0] if failed else done.stdout[-200:]}"


def main() -> int:
    """Plant every mistake, and print which were caught."""
    parser = argparse.ArgumentParser(description="Plant mistakes and see which the tests notice.")
    parser.add_argument("--room", nargs="*", default=[], choices=sorted(TESTS))
    parser.add_argument("--at-once", type=int, default=1)
    args = parser.parse_args()
    outcomes: dict[str, Counter[str]] = {}
    with ThreadPoolExecutor(args.at_once) as pool:
        for mutant, outcome in pool.map(try_out, read_mutants(args.room)):
            outcomes.setdefault(mutant.room, Counter())[outcome.split()[0]] += 1
            print(f"{mutant.room:9} {outcome}\n          {mutant.instead}", flush=True)
    for room, counts in outcomes.items():
        print(f"{room:9} {counts['caught']} of {counts.total()} caught, {counts['gone']} gone")
    missed = sum(counts["MISSED"] for counts in outcomes.values())
    print(f"{sum(counts['caught'] for counts in outcomes.values())} caught, {missed} missed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
