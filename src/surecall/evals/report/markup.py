"""Markup for the parts of a page that are there without its script; text is always text."""

import re
from collections.abc import Iterable
from html import escape
from typing import Final, TypeAlias
from urllib.parse import quote

from surecall.evals.recommendation import Words
from surecall.evals.records import Cell
from surecall.text import mend_surrogates


class Html(str):
    """Markup that may stand in a page as it is."""

    __slots__ = ()


Child: TypeAlias = "str | Html | Iterable[Child] | None"

_VOID: Final = frozenset({"wbr", "col"})
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
"""Characters that cannot be seen, or that turn the text around them."""


def tag(element: str, attributes: dict[str, object] | None = None, /, *children: Child) -> Html:
    """Return an element; an attribute that is None or False is left out."""
    written = "".join(
        f" {key}" if value is True else f' {key}="{escape(_mend(str(value)))}"'
        for key, value in (attributes or {}).items()
        if value is not None and value is not False
    )
    if element in _VOID:
        return Html(f"<{element}{written}>")
    return Html(f"<{element}{written}>{join(*children)}</{element}>")


def join(*children: Child) -> Html:
    """Return children one after the other; plain text is escaped."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(_mend(child), quote=False))
        else:
            parts.append(join(*child))
    return Html("".join(parts))


def name(text: str, *, whole: bool = False) -> Html:
    """Return a name that somebody else chose: set apart, and with every character to be seen.

    Args:
        text: The name.
        whole: Whether it stays on one line.
    """
    split = _keep if whole else _breakable
    parts: list[Child] = []
    at = 0
    for found in _UNSEEN.finditer(text):
        shown = tag("span", {"class": "unseen"}, f"U+{ord(found[0]):04X}")
        parts += [split(text[at : found.start()]), shown]
        at = found.end()
    return tag("bdi", None, *parts, split(text[at:]))


def code(text: str) -> Html:
    """Return a code, a rule or a scenario."""
    return tag("code", None, name(text))


def sentence(words: Iterable[Words]) -> Html:
    """Return a sentence whose names and figures stand out."""
    kinds = {"strong": "b", "quiet": "span"}
    return join(
        *(
            tag(
                kinds[part.emphasis],
                {"class": "iv"} if part.emphasis == "quiet" else None,
                name(part.text),
            )
            if part.emphasis
            else part.text
            for part in words
        )
    )


def table(caption: str, css: str, head: Iterable[tuple[str, str]], rows: Iterable[Html]) -> Html:
    """Return a table whose columns are pairs of title and class; rows come ready."""
    heads = [
        tag("th", {"scope": "col", "role": "columnheader", "class": css or None}, title)
        for title, css in head
    ]
    scrolls = "0" if css == "plain" else None  # sideways on a narrow screen, also with keys
    return tag(
        "table",
        {"class": css, "role": "table", "tabindex": scrolls},
        tag("caption", {"class": "hidden"}, caption),
        tag("thead", {"role": "rowgroup"}, tag("tr", {"role": "row"}, *heads)),
        tag("tbody", {"role": "rowgroup"}, *rows),
    )


def table_row(first: Child, *cells: Html, css: str | None = None) -> Html:
    """Return a row of a table: what it is about, and its cells."""
    head = tag("th", {"scope": "row", "role": "rowheader"}, first)
    return tag("tr", {"class": css, "role": "row"}, head, *cells)


def table_cell(css: str, label: str | None, *children: Child) -> Html:
    """Return a cell; a narrow screen shows its label beside it."""
    return tag("td", {"class": css, "role": "cell", "data-label": label}, *children)


def cell_link(cell: Cell) -> str:
    """Return the address of a cell's page."""
    parts = (cell.model, cell.profile, cell.strategy, cell.fallback, cell.suite, cell.scenario)
    return "#/cell/" + "/".join(_quote(part) for part in parts)


def trials_link(**filters: str | None) -> str:
    """Return the address of the trials that fit."""
    chosen = "&".join(f"{key}={_quote(value)}" for key, value in filters.items() if value)
    return f"#/trials?{chosen}" if chosen else "#/trials"


def _quote(text: str) -> str:
    return quote(_mend(text), safe="")


def _mend(text: str) -> str:
    return mend_surrogates(text)


def _keep(text: str) -> list[Child]:
    return [text]


def _breakable(text: str) -> list[Child]:
    """Let a line break behind the joints of a long name."""
    parts = re.split(r"(?<=[_/:.-])", text)
    return [piece for part in parts for piece in (tag("wbr"), part)][1:]
