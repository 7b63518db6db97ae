"""Damage the native arguments of calls in every wire format, and count what becomes of them.

python scripts/damaged_arguments.py [--texts 30000] [--seed 1] [--only FORM ...] [--show N]

A reply is wrong when its call would run, on a tool with effects, with arguments other than those
that were written, unless a strict reader of the damaged text finds these arguments, too.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.damaged_arguments import FORMS, OUTCOMES, damaged_arguments, judge


def main() -> int:
    """Print what became of the replies of each form, and of each kind of damage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=sorted(FORMS))
    parser.add_argument("--show", type=int, default=5, help="how many wrong replies of each form")
    given = parser.parse_args()
    forms: dict[str, Counter[str]] = {}
    kinds: dict[str, Counter[str]] = {}
    each = -(-given.texts // len(given.only))
    for form in given.only:
        for case in damaged_arguments(form, given.seed, each):
            outcome = judge(case)
            forms.setdefault(form, Counter())[outcome] += 1
            kinds.setdefault(case.kind, Counter())[outcome] += 1
            if outcome == "WRONG" and forms[form][outcome] <= given.show:
                print(f"WRONG {form} / {case.kind}: {case.text!r}, was {case.arguments!r}")
    for title, table in (("form", forms), ("damage", kinds)):
        print(f"\n{title:28}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES))
        for name, counts in sorted(table.items()):
            print(_row(name, counts))
        print(_row("all", sum(table.values(), Counter())))
    return bool(sum(counts["WRONG"] for counts in forms.values()))


def _row(name: str, counts: Counter[str]) -> str:
    return f"{name:28}" + "".join(f"{counts[outcome]:>10}" for outcome in OUTCOMES)


if __name__ == "__main__":
    sys.exit(main())
