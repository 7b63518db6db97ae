"""Show official clients every named fault, straight and through the gateway, and write the table.

python scripts/faults_through_gateway.py                    print the table's summary
python scripts/faults_through_gateway.py --write            write it into docs/ as well
python scripts/faults_through_gateway.py --only text_cut    one fault, or several with commas
"""

import argparse
import asyncio
import logging
import platform
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.fault_trials import (
    BAD,
    CLIENTS,
    Seen,
    Trial,
    find_failures,
    list_trials,
    open_stand,
)

PAGE = ROOT / "docs/explanation/faults-through-the-gateway.md"
BEGIN = "<!-- The table is written by scripts/faults_through_gateway.py --write. -->"
LANES = 4


class Row(NamedTuple):
    """What came of one trial."""

    trial: Trial
    direct: Seen
    gateway: Seen


def main() -> int:
    """Run the trials, print what they came to, and write the table if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/")
    parser.add_argument("--only", default="", help="names of faults, with commas")
    parser.add_argument("--client", default="", help="one wire format only")
    parser.add_argument("--no-direct", action="store_true", help="leave the direct trials out")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")  # of client libraries
    only = {name for name in given.only.split(",") if name}
    trials = [
        trial
        for trial in list_trials()
        if (not only or trial.fault.name in only) and given.client in ("", trial.client)
    ]
    began_s = time.perf_counter()
    rows = asyncio.run(run_all(trials, direct=not given.no_direct))
    took_s = time.perf_counter() - began_s
    failures = [text for row in rows if (text := find_failures(row.trial, row.gateway))]
    if only:
        for row in rows:
            print(row.trial.name, row.direct, row.gateway, sep="\n    ")
    print(*summarize(rows), sep="\n")
    print(f"{len(trials)} trials in {took_s:.0f} s; not as they must be: {len(failures)}")
    print(*failures, sep="\n")
    if given.write:
        head, _, _ = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(head + "\n".join(render_page(rows)) + "\n", "utf-8")
    return 1 if failures else 0


async def run_all(trials: list[Trial], *, direct: bool) -> list[Row]:
    """Run the trials in a few lanes, each with its own servers."""
    rows: dict[int, Row] = {}
    waiting = list(enumerate(trials))[::-1]

    async def run_lane() -> None:
        async with open_stand() as stand:
            while waiting:
                number, trial = waiting.pop()
                seen = await stand.meet_direct(trial) if direct else Seen("-")
                rows[number] = Row(trial, seen, await stand.meet_gateway(trial))

    await asyncio.gather(*(run_lane() for _ in range(LANES)))
    return [rows[number] for number in sorted(rows)]


def summarize(rows: list[Row]) -> list[str]:
    """Return the counts of both ways, as the rows of a table."""
    lines = ["| | without | with the gateway |", "|---|---|---|"]
    lines.append(_count_row("trials", len(rows), len(rows)))
    repairable = [row for row in rows if row.trial.fault.repairable]
    direct = sum(row.direct.kind == "right" for row in repairable)
    gateway = sum(row.gateway.kind == "right" for row in repairable)
    total = len(repairable)
    lines.append(f"| repairable: right | {direct} of {total} | {gateway} of {total} |")
    before = Counter(row.direct.kind for row in rows)
    after = Counter(row.gateway.kind for row in rows)
    kinds = (*sorted(BAD), "no call", "no answer", "error")
    return lines + [_count_row(kind, before[kind], after[kind]) for kind in kinds]


def _count_row(name: str, direct: int, gateway: int) -> str:
    return f"| {name} | {direct} | {gateway} |"


def render_page(rows: list[Row]) -> list[str]:
    """Return the generated part of the page."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    command = "python scripts/faults_through_gateway.py --write"
    lines = [
        BEGIN,
        "",
        f"Made on {day} by `{command}` (2 cores, CPython {platform.python_version()}).",
        "",
        "## In numbers",
        "",
        *summarize(rows),
        "",
        "## Fault by fault",
    ]
    by_fault: dict[str, list[Row]] = {}
    for row in rows:
        by_fault.setdefault(row.trial.fault.name, []).append(row)
    cells = {
        name: [_render_cells([row for row in found if row.trial.client == c]) for c in CLIENTS]
        for name, found in by_fault.items()
    }
    return lines + render_faults(cells)


def render_faults(cells: dict[str, list[tuple[str, str]]]) -> list[str]:
    """Return two tables of faults with equal outcomes: without those that do no harm."""
    alike: dict[str, list[str]] = {}
    mixed: dict[str, list[str]] = {}
    for name, by_client in cells.items():
        direct = [before for before, _ in by_client]
        gateway = " / ".join(dict.fromkeys(after for _, after in by_client if after))
        seen = set(direct) - {"–"}
        table, outcomes = (alike, list(seen)) if len(seen) == 1 else (mixed, direct)
        table.setdefault(" | ".join([*outcomes, f"**{gateway}**"]), []).append(f"`{name}`")
    alike.pop("right | **right**", None)
    lines = ["", "The same in every client:", "", "| faults | without | with |", "|---|---|---|"]
    lines += [f"| {', '.join(names)} | {outcomes} |" for outcomes, names in sorted(alike.items())]
    lines += ["", "Not the same:", ""]
    lines += ["| faults | chat completions | responses | messages | gemini | with |"]
    lines += ["|---|---|---|---|---|---|"]
    return lines + [f"| {', '.join(names)} | {row} |" for row, names in sorted(mixed.items())]


def _render_cells(rows: list[Row]) -> tuple[str, str]:
    """Return what a client sees, without the gateway and with it; whole before streamed."""
    direct = " / ".join(dict.fromkeys(row.direct.label for row in rows))
    labels = (row.gateway.label.removesuffix(", repaired") for row in rows)
    return direct or "–", " / ".join(dict.fromkeys(labels))


if __name__ == "__main__":
    sys.exit(main())
