"""Damage calls that are written as text, and count what becomes of them.

python scripts/damaged_calls.py [--texts 40000] [--seed 1] [--only FAMILY ...] [--show N]

A text is wrong when a call of it would run, on a tool with effects, with arguments other than those
that were written, unless a strict reader of the damaged text finds these arguments, too. It is
silent when a call of an offered tool left no call, no defect and nothing that was seen.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.damaged_calls import OUTCOMES, RENDERERS, damaged_calls, judge


def main() -> int:
    """Print what became of the texts of each family, and of each kind of damage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=sorted(RENDERERS))
    parser.add_argument("--show", type=int, default=10, help="texts that are wrong or silent")
    given = parser.parse_args()
    families: dict[str, Counter[str]] = {}
    kinds: dict[str, Counter[str]] = {}
    shown: Counter[str] = Counter()
    each = -(-given.texts // len(given.only))
    for family in given.only:
        for call in damaged_calls(family, given.seed, each):
            outcome = judge(call)
            families.setdefault(family, Counter())[outcome] += 1
            kinds.setdefault(call.kind, Counter())[outcome] += 1
            if outcome in ("WRONG", "silent") and shown[outcome, family] < given.show:
                shown[outcome, family] += 1
                print(f"{outcome} {family} / {call.kind}: {call.text!r}")
    for title, table in (("family", families), ("damage", kinds)):
        print(f"\n{title:28}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES))
        for name, counts in sorted(table.items()):
            print(_row(name, counts))
        print(_row("all", sum(table.values(), Counter())))
    return 0


def _row(name: str, counts: Counter[str]) -> str:
    return f"{name:28}" + "".join(f"{counts[outcome]:>10}" for outcome in OUTCOMES)


if __name__ == "__main__":
    sys.exit(main())
