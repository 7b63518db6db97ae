"""The documentation site: its navigation folder by folder, and its wide parts scroll."""

import re
from pathlib import Path
from typing import Any

SECTIONS = {
    "Tutorial": "tutorial",
    "How-to": "how-to",
    "Reference": "reference",
    "Explanation": "explanation",
    "Case studies": "case-studies",
}
"""The headings in their order, and the folder of each."""

_CELL = re.compile(r"<t[dh]\b.*?</t[dh]>", re.DOTALL)
_CODE = re.compile(r"<code>[^<]*</code>")


def on_config(config: Any) -> Any:
    """Give the generator its navigation."""
    docs = Path(config["docs_dir"])
    pages: dict[str, list[Any]] = {
        title: list_pages(docs, folder) for title, folder in SECTIONS.items()
    }
    pages["Reference"].append({"Glossary": "glossary.md"})
    pages["Explanation"].append({"Decisions": list_pages(docs, "decisions")})
    config["nav"] = [{"Home": "index.md"}, *({title: found} for title, found in pages.items())]
    return config


def on_page_content(html: str, **_: Any) -> str:
    """Let the keyboard scroll code and tables, which may be wider than a narrow screen.

    A bar inside code is written with a backslash in tables, which only the bar should show.
    """
    html = html.replace("<pre>", '<pre tabindex="0">')
    html = html.replace("<table>", '<div class="wide-table" tabindex="0"><table>')
    html = html.replace("</table>", "</table></div>")
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


def on_post_page(output: str, **_: Any) -> str:
    """Let names in tables break behind an underscore, once the search has read them whole."""
    return _CELL.sub(lambda cell: _CODE.sub(_let_break, cell[0]), output)


def _let_break(code: re.Match[str]) -> str:
    return code[0].replace("_", "_<wbr>")


def list_pages(docs: Path, folder: str) -> list[dict[str, str]]:
    """List the pages of a folder by title."""
    pages = [(page_title(path), f"{folder}/{path.name}") for path in (docs / folder).glob("*.md")]
    return [{title: path} for title, path in sorted(pages, key=lambda page: page[0].casefold())]


def page_title(path: Path) -> str:
    """Return the first heading of a page."""
    return path.read_text("utf-8").partition("\n")[0].lstrip("# ")
