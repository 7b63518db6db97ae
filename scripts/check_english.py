"""Find habits of English that readers stumble over, in the README and the documentation.

python scripts/check_english.py [--write] [--list]

Each page may have as many as `check_english.txt` allows, and pages that are not in it none.
`--write` lowers those figures to what is there now, `--list` prints every place.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = Path(__file__).with_suffix(".txt")
PAGES = (ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md")))
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`|\]\([^)]*\)|<!--.*?-->", re.MULTILINE | re.DOTALL)

START = r"(?:^(?:[-*] |\d+\. )?|(?<=[.!?] ))"
HABITS = {
    "name the thing": rf"{START}(?:What|Whatever|Whoever) (?![^.\n|]*\?)(?=[^.\n|]*[.:](?:\s|$))",
    "repeat the noun": r"\b(?:those|that) of\b",
    "warn, report or name it": r"\b(?:say|says|said|saying) so\b",
    "begin with the feature": rf"{START}You get\b",
    "again, or re-": r"\banew\b",
    "instead of": r"\bin the place of\b",
    "outside": r"\bmade by others\b",
    "also, or nothing": r", too\b",
    "is not a": r"(?<!here )\b(?:is|are|was|were) no (?!(?:longer|more|better|less|fewer)\b)",
    "besides, next to or apart from": r"\bbeside\b",
    "the known word": r"\b(?:judge[ds]|weigh(?:s|ed)?|settle[ds]|mend(?:s|ed|ing)?|strangers?)\b",
}
PATTERNS = {better: re.compile(text, re.MULTILINE) for better, text in HABITS.items()}


def habits(text: str) -> Iterator[tuple[int, str, str]]:
    """Return line, words and what is better, for each habit in a page."""
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), text)
    for better, pattern in PATTERNS.items():
        for found in pattern.finditer(prose):
            line = prose.count("\n", 0, found.start()) + 1
            yield line, prose[found.start() : found.end() + 20].partition("\n")[0], better


def read_allowed() -> dict[str, int]:
    """Return how many each page may have."""
    rows = ALLOWED.read_text("utf-8").splitlines() if ALLOWED.exists() else []
    return {page: int(count) for count, page in (row.split(" ", 1) for row in rows)}


def main() -> int:
    """Compare every page with what it may have."""
    allowed, failed, now = read_allowed(), 0, dict[str, int]()
    for path in PAGES:
        page = path.relative_to(ROOT).as_posix()
        found = sorted(habits(path.read_text("utf-8")))
        over = len(found) > allowed.get(page, 0)
        failed += over
        if over or "--list" in sys.argv:
            for line, words, better in found:
                print(f"{page}:{line}: {words!r}: {better}")
        if kept := min(len(found), allowed.get(page, 0)):
            now[page] = kept
    if "--write" in sys.argv:
        ALLOWED.write_text("".join(f"{count} {page}\n" for page, count in now.items()), "utf-8")
    print(f"{len(PAGES)} pages, {failed} with more habits than they may have")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
