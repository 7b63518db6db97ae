"""Find habits of English that readers stumble over, in the README and the documentation.

python scripts/check_english.py [PAGE ...]
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
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
    """Return line, words and the better form, for each habit in a page."""
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), text)
    for better, pattern in PATTERNS.items():
        for found in pattern.finditer(prose):
            line = prose.count("\n", 0, found.start()) + 1
            yield line, prose[found.start() : found.end() + 20].partition("\n")[0], better


def main() -> int:
    """Print every place, and fail if there is one."""
    pages = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    count = 0
    for path in pages:
        for line, words, better in sorted(habits(path.read_text("utf-8"))):
            print(f"{path.relative_to(ROOT)}:{line}: {words!r}: {better}")
            count += 1
    print(f"{len(pages)} pages, {count} habits")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
