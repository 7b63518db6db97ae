"""Write the golden corpus of readings anew, and say what changed.

    python scripts/golden.py [--write]

Without `--write` it prints each entry that would change, with what was read before and now.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from golden.reading import CORPUS, Entry, collect, read_whole


def main() -> int:
    """Compare the corpus with today's readings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the corpus, with new entries")
    given = parser.parse_args()
    written = CORPUS.read_text("utf-8").splitlines() if CORPUS.exists() else []
    before = {line["id"]: line for line in map(json.loads, written)}
    kept = [Entry(line["id"], line["tools"], line["reply"]) for line in before.values()]
    entries = {entry.id: entry for entry in (*(collect() if given.write else ()), *kept)}
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
    if given.write:
        CORPUS.write_text("\n".join(lines) + "\n", "utf-8")
    return 0 if given.write else bool(changed)


if __name__ == "__main__":
    sys.exit(main())
