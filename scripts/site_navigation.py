"""The documentation site: its navigation folder by folder, and code that keys can scroll."""

from pathlib import Path
from typing import Any

SECTIONS = {
    "Tutorial": "tutorial",
    "How-to": "how-to",
    "Reference": "reference",
    "Explanation": "explanation",
    "Case studies": "case-studies",
    "Decisions": "decisions",
}
"""The headings in their order, and the folder of each."""


def on_config(config: Any) -> Any:
    """Give the generator its navigation."""
    docs = Path(config["docs_dir"])
    config["nav"] = [
        {"Home": "index.md"},
        *({title: list_pages(docs, folder)} for title, folder in SECTIONS.items()),
        {"Glossary": "glossary.md"},
    ]
    return config


def on_page_content(html: str, **_: Any) -> str:
    """Let the keyboard reach blocks of code, which are wider than a narrow screen."""
    return html.replace("<pre>", '<pre tabindex="0">')


def list_pages(docs: Path, folder: str) -> list[dict[str, str]]:
    """List the pages of a folder by title."""
    pages = [(page_title(path), f"{folder}/{path.name}") for path in (docs / folder).glob("*.md")]
    return [{title: path} for title, path in sorted(pages, key=lambda page: page[0].casefold())]


def page_title(path: Path) -> str:
    """Return the first heading of a page."""
    return path.read_text("utf-8").partition("\n")[0].lstrip("# ")
