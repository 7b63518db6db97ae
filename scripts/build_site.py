"""Build the documentation as a site, with a search that answers with guides first.

    python scripts/build_site.py [FOLDER]

The generator lists every section of every page alike. Here a page of tables or of figures becomes
one entry that holds the names of its sections, decisions are left out, and the words of
docs/search.toml lead to their page. Marks behind the language of a code block are for the tests.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ROOT / "build" / "docs"
BUILT: Final = ROOT / "build" / "site"
LEFT_OUT: Final = ("decisions/", "404")
ONE_ENTRY: Final = ("reference/", "case-studies/", "explanation/", "glossary")

_CELL: Final = re.compile(r"<td\b.*?</td>", re.DOTALL)
_MARKED: Final = re.compile(r"(?m)^(\s*```[a-z]+) .*$")


def main() -> None:
    """Build the site, below the folder that is given or in build/site."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES, ignore=shutil.ignore_patterns("runs"))
    for page in PAGES.rglob("*.md"):
        page.write_text(_MARKED.sub(r"\1", page.read_text("utf-8")), "utf-8")
    command = [Path(sys.executable).parent / "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(  # noqa: S603 - the generator of this environment
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode or "issue found" in done.stdout or "issues found" in done.stdout:
        sys.exit(done.stdout + done.stderr)
    for page in BUILT.rglob("*.html"):  # a bar inside code is written with a backslash in tables
        text = page.read_text("utf-8")
        page.write_text(_CELL.sub(lambda cell: cell[0].replace("\\|", "|"), text), "utf-8")
    index = BUILT / "search.json"
    found = json.loads(index.read_text("utf-8"))
    found["items"] = list(arrange(found["items"]))
    index.write_text(json.dumps(found), "utf-8")
    if len(sys.argv) > 1:
        shutil.copytree(BUILT, sys.argv[1], dirs_exist_ok=True)


def arrange(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what the search knows: words of docs/search.toml, guides, then everything else."""
    pages = {item["location"]: item for item in items if "#" not in item["location"]}
    names = {Path(location).stem: location for location in pages}
    words = tomllib.loads((ROOT / "docs" / "search.toml").read_text("utf-8"))
    for phrase, topic in words.items():
        page = pages[names[topic]]
        yield {**page, "title": f"{phrase}: {page['title']}", "text": page["text"][:300]}
    for item in items:
        location = item["location"]
        if location.startswith(LEFT_OUT):
            continue
        if not location.startswith(ONE_ENTRY):
            yield item
        elif location in pages:
            sections = (one["title"] for one in items if one["location"].startswith(f"{location}#"))
            yield {**item, "text": f"{item['text'][:300]} {' '.join(sections)}"}


if __name__ == "__main__":
    main()
