"""What the first tier of JSON repair makes of broken documents, and what the second.

    python bench/broken_json.py [--count 20000] [--seed 1] [--list 10]

Documents get one to three slips, are cut, joined, commented or written in another notation; see
`tests/support/broken_json.py`. A value is wrong when it differs from the document. It is counted
apart when it is only likely, and when fewer slips lead from it to the text than from the document:
nobody can tell then. The command exits with 1 when a certain value is wrong in any other way.
"""

import argparse
import platform
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.broken_json import BrokenJSON, break_documents, is_nearer
from surecall.text import encode_text, repair_json


def judge(case: BrokenJSON, *, guess: bool) -> str:
    """Return what became of one broken document."""
    found = repair_json(case.text, guess=guess)
    if found.state != "whole":
        return "refused"
    values = [encode_text(value) for value in (found.value, *found.rest)]
    wanted = [encode_text(value) for value in case.values]
    if values == wanted or (found.value == list(case.values) and guess):
        return "right"
    if found.certainty != "certain":
        return "wrong, likely"
    return "nearer to another" if is_nearer(case, found.value) else "WRONG"


def main() -> int:
    """Judge all cases in both tiers and print the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", type=int, default=10)
    options = parser.parse_args()
    tiers: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    wrong: list[BrokenJSON] = []
    for case in break_documents(options.seed, options.count):
        for guess, counts in tiers.items():
            verdict = judge(case, guess=guess)
            counts[verdict] += 1
            if verdict == "WRONG" and not guess:
                wrong.append(case)
    today = datetime.now(UTC).date()
    print(f"{today}, CPython {platform.python_version()}, seed {options.seed}")
    for guess, counts in tiers.items():
        shown = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        print(f"{'likely ' if guess else 'certain'} tier of {options.count}: {shown}")
    for case in wrong[: options.list]:
        print(f"  {case.kind}: {case.text!r}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
