"""The pages of the documentation, which an installed package brings along."""

import tomllib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, NamedTuple

from surecall.base.errors import Code, ConfigError, did_you_mean

__all__ = ["KINDS", "Page", "find_page", "list_pages", "search_pages"]

KINDS: Final = ("tutorial", "how-to", "reference", "explanation", "case-studies")
"""The folders of pages, in the order in which they are listed."""

_IN_TITLE: Final = 20.0
_IN_HEADING: Final = 6.0
_MAX_USES: Final = 20
_GENERATED: Final = 0.7
"""Pages of tables use every word; a guide is what somebody looks for."""


class Page(NamedTuple):
    """One page of the documentation."""

    topic: str
    """Its name, which is what it is asked for by."""
    kind: str
    """The folder it is in, one of `KINDS`."""
    title: str
    text: str
    """The page in Markdown."""


def list_pages() -> tuple[Page, ...]:
    """Return all pages, by kind and topic."""
    return tuple(_pages().values())


def find_page(topic: str) -> Page:
    """Return the page of a topic, in any case, with `-`, `_` or blanks.

    Raises:
        ConfigError: `UNKNOWN_TOPIC`: no page has this name.
    """
    name = topic.strip().lower().replace("_", "-").replace(" ", "-")
    name = name.rpartition("/")[2].removesuffix(".md")
    pages = _pages()
    if name not in pages:
        message = f"There is no page {topic!r}."
        hint = did_you_mean(name, pages, listed_by="surecall docs")
        raise ConfigError(Code.UNKNOWN_TOPIC, message, hint=hint)
    return pages[name]


def search_pages(words: str) -> tuple[Page, ...]:
    """Return the pages that hold all of the words, the likeliest first.

    First comes the page that docs/search.toml names for them. A word in the name or the title of a
    page counts most, then one in a heading, then how often the page uses it for its length.
    """
    known = tomllib.loads(_folder().joinpath("search.toml").read_text("utf-8"))
    named = known.get(" ".join(words.lower().split()))
    wanted = words.lower().replace("-", " ").replace("_", " ").split()
    scored = [(_score(page, wanted), page) for page in list_pages()] if wanted else []
    found = [(score, page) for score, page in scored if score]
    ranked = [page for _, page in sorted(found, key=lambda one: -one[0]) if page.topic != named]
    return (*((find_page(named),) if named else ()), *ranked)


def _score(page: Page, wanted: list[str]) -> float:
    text = page.text.lower()
    if not all(word in text or word in page.topic for word in wanted):
        return 0.0
    title = f"{page.topic} {page.title}".lower()
    headings = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    uses = sum(min(text.count(word), _MAX_USES) for word in wanted) / (len(text) / 1_000 + 1)
    places = sum(_IN_TITLE * (word in title) + _IN_HEADING * (word in headings) for word in wanted)
    return (places + uses) * (_GENERATED if page.kind == "reference" else 1.0)


@cache
def _pages() -> dict[str, Page]:
    found: dict[str, Page] = {}
    for kind in KINDS:
        for file in sorted(_folder().joinpath(kind).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".md"):
                text = file.read_text("utf-8")
                title = text.partition("\n")[0].lstrip("# ")
                topic = file.name.removesuffix(".md")
                found[topic] = Page(topic, kind, title, text)
    return found


def _folder() -> Traversable:
    """Return where the pages are: in the package, or at the root of a checkout."""
    packaged = files("surecall").joinpath("docs")
    if packaged.is_dir():
        return packaged
    checkout = Path(__file__).parents[3] / "docs"
    if checkout.is_dir():
        return checkout
    raise ConfigError(Code.UNKNOWN_TOPIC, "This installation has no documentation pages.")
