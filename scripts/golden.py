"""Compare the golden corpora with what is done today, or write them again.

    python scripts/golden.py [--write] [--only reading|wire] [--dump FILE]

Without `--write` it prints each entry that would change, as it was before and as it is now.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from golden import wire
from golden.reading import CORPUS, Entry, collect, read_whole


def main() -> int:
    """Compare both corpora with what is done today."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the corpora, with new entries")
    parser.add_argument("--only", choices=("reading", "wire"), help="one of the two")
    parser.add_argument("--dump", type=Path, help="write every sent stream and body into a file")
    given = parser.parse_args()
    changed = 0
    if given.only != "wire":
        changed += compare_readings(is_written=given.write)
    if given.only != "reading":
        changed += compare_wire(is_written=given.write, dump=given.dump)
    return 0 if given.write else bool(changed)


def compare_readings(*, is_written: bool) -> int:
    """Print each reading that would change, and return how many there are."""
    before = lines_of(CORPUS)
    kept = [Entry(line["id"], line["tools"], line["reply"]) for line in before.values()]
    entries = {entry.id: entry for entry in (*(collect() if is_written else ()), *kept)}
    changed = 0
    lines: list[str] = []
    for entry in entries.values():
        reading = read_whole(entry)
        old = before.get(entry.id)
        if old is not None and old["reading"] != reading:
            changed += 1
            print(f"{entry.id}: {entry.reply!r}\n  - {old['reading']}\n  + {reading}")
        line = {"id": entry.id, "tools": entry.tools, "reply": entry.reply, "reading": reading}
        lines.append(json.dumps(line, ensure_ascii=True, separators=(",", ":")))
    print(f"{len(lines)} entries, {changed} changed, {len(lines) - len(before)} new")
    if is_written:
        CORPUS.write_text("\n".join(lines) + "\n", "utf-8")
    return changed


def compare_wire(*, is_written: bool, dump: Path | None) -> int:
    """Print each stream or body of which something else would become; return how many."""
    before = lines_of(wire.CORPUS)
    dumped: list[str] = []

    def keep(name: str, data: bytes) -> None:
        dumped.append(f"{name}\n{data.decode('utf-8', 'replace')}\n")

    now = asyncio.run(follow(None if dump is None else keep))
    changed = 0
    for line in now:
        old = before.get(line["id"], line)
        for name in {**old, **line}:
            if old.get(name) != line.get(name):
                changed += 1
                print(f"{line['id']} | {name}\n  - {old.get(name)}\n  + {line.get(name)}")
    print(f"{len(now)} streams and bodies, {changed} changes, {len(now) - len(before)} new")
    if dump is not None:
        dump.write_text("".join(dumped), "utf-8")
    if is_written:
        lines = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in now]
        wire.CORPUS.write_text("\n".join(lines) + "\n", "utf-8")
    return changed


async def follow(keep: Callable[[str, bytes], None] | None) -> list[dict[str, Any]]:
    """Return what becomes of every stream and body."""
    found = [{"id": item.id, **wire.follow_stream(item, keep)} for item in wire.streams()]
    return found + [{"id": item.id, **await wire.follow_body(item, keep)} for item in wire.bodies()]


def lines_of(corpus: Path) -> dict[str, dict[str, Any]]:
    """Return the lines of a corpus by their ids."""
    written: Iterable[str] = corpus.read_text("utf-8").splitlines() if corpus.exists() else ()
    return {line["id"]: line for line in map(json.loads, written)}


if __name__ == "__main__":
    sys.exit(main())
