"""Put the CanIToolCall suite to surecall and print the score of each family.

python scripts/conformance.py
"""

import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from canitoolcall.results import Status

from conformance.canitoolcall_adapter import STRATEGIES, fixtures, judge


def main() -> int:
    """Judge every fixture over all chunkings; print a table and what did not pass."""
    scores: dict[str, Counter[Status]] = {}
    misses: list[str] = []
    for fixture in fixtures():
        status, wrong = judge(fixture)
        scores.setdefault(fixture.family, Counter())[status] += 1
        if status is not Status.PASS or wrong:
            misses.append(f"{fixture.id} ({status.value}): {wrong[0]}")
    print(f"CanIToolCall {version('canitoolcall')}, {len(STRATEGIES)} chunkings and whole texts\n")
    print(f"{'family':14}{'fixtures':>9}{'strict':>8}{'soft':>6}{'fail':>6}")
    for family, counts in sorted(scores.items()):
        print(row(family, counts))
    print(row("total", sum(scores.values(), Counter())))
    print("\nnot strict:", *misses, sep="\n  ")
    return 0


def row(name: str, counts: Counter[Status]) -> str:
    """Draw the counts of one family; whatever is neither strict nor soft is a failure."""
    strict, soft = counts[Status.PASS], counts[Status.SOFT_PASS]
    fail = counts.total() - strict - soft
    return f"{name:14}{counts.total():>9}{strict:>8}{soft:>6}{fail:>6}"


if __name__ == "__main__":
    sys.exit(main())
