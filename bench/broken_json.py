"""What JSON repair makes of broken documents at its certain level and at its likely one.

    python bench/broken_json.py [--count 2000] [--seed 1] [--slips KIND] [--list 10]

`--slips model` breaks documents as language models do, in their proportion, and shows json_repair
beside surecall where it is installed; see `tests/support/model_slips.py`. `--slips mixed` makes
several of such slips at once, in other documents; see `tests/support/mixed_slips.py`. `--slips
random` makes one to three slips anywhere, cuts, joins and rewrites; see
`tests/support/broken_json.py`. There, a value is counted apart when fewer slips lead from it to the
text than from the document: nobody can tell then. The command exits with 1 when a certain value is
wrong in any other way. Recall is the share of texts that were read right, precision the share of
right values among those that were given.
"""

import argparse
import importlib
import importlib.metadata
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.broken_json import BrokenJSON, break_documents, is_nearer
from support.mixed_slips import make_mixed_slips
from support.model_slips import make_slips
from surecall.text import canonical_bytes, repair_json

Reader = Callable[[BrokenJSON], str]
_WRONG = ("wrong", "wrong, likely", "WRONG", "nearer to another")


def make_cases(slips: str, seed: int, count: int) -> Iterator[BrokenJSON]:
    """Yield broken documents of one of the two kinds."""
    if slips == "random":
        yield from break_documents(seed, count)
        return
    make = make_slips if slips == "model" else make_mixed_slips
    for slip in make(seed, count):
        yield BrokenJSON(slip.kind, (slip.value,), slip.text)


def is_right(case: BrokenJSON, value: Any, rest: tuple[Any, ...] = ()) -> bool:
    """Tell whether values are the documents that were broken, in a list or one by one."""
    wanted = [_write(one) for one in case.values]
    as_list = (
        isinstance(value, list) and [_write(one) for one in cast("list[Any]", value)] == wanted
    )
    return as_list or [_write(one) for one in (value, *rest)] == wanted


def _write(value: Any) -> bytes:
    """Return the same bytes for the same value, and for all that can stand for no number."""
    return canonical_bytes(_write_numbers(value))


def _write_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {key: _write_numbers(one) for key, one in members}
    if isinstance(value, list):
        return [_write_numbers(one) for one in cast("list[Any]", value)]
    is_word = value in ("NaN", "Infinity", "-Infinity")
    return None if is_word or (isinstance(value, float) and not isfinite(value)) else value


def judge(case: BrokenJSON, *, guess: bool) -> str:
    """Return what became of one broken document."""
    found = repair_json(
        case.text, guess=guess, cut="close" if guess else "refuse", non_finite="text"
    )
    if is_right(case, found.value, found.rest):
        return "right" if guess or found.certainty == "certain" else "right, likely"
    if found.state != "whole":
        return "refused or not whole"
    # Several objects are meant as a list: the certain level takes the first, and lists the others.
    if found.rest and is_right(case, [found.value, *found.rest]):
        return "right"
    if found.certainty != "certain":
        return "wrong, likely" if guess or found.value is not None else "refused or not whole"
    return "nearer to another" if is_nearer(case, found.value) else "WRONG"


def make_readers() -> dict[str, Reader]:
    """Return who reads: surecall at both levels, and json_repair if it is there."""
    readers: dict[str, Reader] = {
        "certain": lambda case: judge(case, guess=False),
        "likely": lambda case: judge(case, guess=True),
    }
    try:
        other: Any = importlib.import_module("json_repair")
    except ImportError:
        return readers
    name = f"json_repair {importlib.metadata.version('json_repair')}"
    readers[name] = lambda case: "right" if is_right(case, other.loads(case.text)) else "wrong"
    return readers


def main() -> int:
    """Judge all cases and print the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slips", choices=["model", "mixed", "random"], default="model")
    parser.add_argument("--list", type=int, default=10)
    options = parser.parse_args()
    readers = make_readers()
    counts: dict[str, Counter[str]] = {name: Counter() for name in readers}
    kinds: Counter[tuple[str, str]] = Counter()
    wrong: list[BrokenJSON] = []
    for case in make_cases(options.slips, options.seed, options.count):
        parts = case.kind.split(" + ")
        kinds.update((part, "") for part in parts)
        for name, reader in readers.items():
            verdict = reader(case)
            counts[name][verdict] += 1
            if verdict == "right":
                kinds.update((part, name) for part in parts)
            if verdict == "WRONG" and name == "certain":
                wrong.append(case)
    today = datetime.now(UTC).date()
    print(f"{today}, CPython {platform.python_version()}, {options.slips}, seed {options.seed}")
    for kind in dict.fromkeys(kind for kind, _ in kinds):
        row = ", ".join(f"{name} {kinds[kind, name]}" for name in readers)
        print(f"  {kind}: {kinds[kind, '']}; right: {row}")
    for name, found in counts.items():
        shown = ", ".join(f"{verdict} {count}" for verdict, count in sorted(found.items()))
        given = found["right"] + sum(found[verdict] for verdict in _WRONG)
        precision = found["right"] / given if given else 1
        recall = found["right"] / options.count
        print(
            f"{name}, of {options.count}: {shown}; {recall:.2%} recall, {precision:.2%} precision"
        )
    for case in wrong[: options.list]:
        print(f"  {case.kind}: {case.text!r}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
