"""Check that every relative link of the documentation leads somewhere."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """List all pages."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def anchors(page: Path) -> set[str]:
    """List the anchors of a page, made from its headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    """Yield what a page links to that is not there."""
    for target in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        inside = path.exists() and ROOT in (path, *path.parents)
        if not inside or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            yield target


def main() -> int:
    """Print every broken link."""
    broken = [(page, target) for page in pages() for target in broken_links(page)]
    for page, target in broken:
        print(f"{page.relative_to(ROOT)}: {target} leads nowhere")
    print(f"{len(pages())} pages, {len(broken)} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
