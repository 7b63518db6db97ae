"""Markup for the parts of a page that are there without its script; text is always text.

A template is HTML with `{{key}}` for a text, `{{name key}}` and `{{code key}}` for a name that
somebody else chose, `{{#key}} … {{/key}}` for each of a list or for what is there, and
`{{^key}} … {{/key}}` for what is not. Ends of lines and the spaces after them are left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from typing import Any, Final, TypeGuard
from urllib.parse import quote

from surecall.base.json_values import as_list
from surecall.base.pages import read_asset
from surecall.evals.recommendation import Words
from surecall.evals.records import Cell
from surecall.text import repair_surrogates

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
"""Characters that cannot be seen, or that turn the text around them."""
_PLACE: Final = re.compile(r"\{\{([#^/]?)(?:(name|code) )?([\w.]+)\}\}")


class Html(str):
    """Markup that may stand in a page as it is."""

    __slots__ = ()


def fill(place: str, package: str, view: Mapping[str, Any]) -> Html:
    """Return a template of a package's assets with everything in its place."""
    parts, _ = _parse(_split(place, package), 0)
    return Html("".join(_render(parts, [view])))


@cache
def _split(place: str, package: str) -> tuple[str, ...]:
    """Return texts, and mark, kind and key of each place between them."""
    text = re.sub(r"\n[ ]*+", "", read_asset(place, package))
    return tuple(part or "" for part in _PLACE.split(text))


_Part = tuple[str, str, str, Sequence[Any]]
"""Text before a place; its mark or kind; its key; what a section holds."""


def _parse(pieces: Sequence[str], at: int) -> tuple[list[_Part], int]:
    parts: list[_Part] = []
    while at + 3 < len(pieces):
        text, mark, kind, key = pieces[at : at + 4]
        at += 4
        inner: list[_Part] = []
        if mark in ("#", "^"):
            inner, at = _parse(pieces, at)
        parts.append((text, mark or kind, key, inner))
        if mark == "/":
            return parts, at
    return [*parts, (pieces[at], "/", "", ())], at


def _render(parts: Sequence[_Part], views: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for text, mark, key, inner in parts:
        yield text
        if mark == "/":
            return
        found: Any = next((view[key] for view in reversed(views) if key in view), None)
        match mark:
            case "#":
                yield from _repeat(inner, views, found)
            case "^":
                yield from () if found else _render(inner, views)
            case "name":
                yield name(found)
            case "code":
                yield code(found)
            case _:
                yield found if isinstance(found, Html) else _escape(found)


def _repeat(
    parts: Sequence[_Part], views: Sequence[Mapping[str, Any]], found: Any
) -> Iterator[str]:
    whole: list[Any] = [found] if found else []
    for each in as_list(found) if isinstance(found, list) else whole:
        yield from _render(parts, [*views, each if _is_view(each) else {".": each}])


def _is_view(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict)


def _escape(value: object) -> str:
    return "" if value is None else escape(repair_surrogates(str(value)))


def name(text: str, *, whole: bool = False) -> Html:
    """Return a name that somebody else chose: set apart, and with every character to be seen.

    Args:
        text: The name.
        whole: Whether it stays on one line.
    """
    parts: list[str] = []
    at = 0
    for found in _UNSEEN.finditer(text):
        parts.append(_break(text[at : found.start()], whole=whole))
        parts.append(f'<span class="unseen">U+{ord(found[0]):04X}</span>')
        at = found.end()
    return Html(f"<bdi>{''.join(parts)}{_break(text[at:], whole=whole)}</bdi>")


def _break(text: str, *, whole: bool) -> str:
    """Let a line break behind the joints of a long name."""
    return "<wbr>".join(map(_escape, [text] if whole else re.split(r"(?<=[_/:.-])", text)))


def code(text: str) -> Html:
    """Return a code, a rule or a scenario."""
    return Html(f"<code>{name(text)}</code>")


def join(*parts: str) -> Html:
    """Return markup and plain texts, which are escaped, one after the other."""
    return Html("".join(part if isinstance(part, Html) else _escape(part) for part in parts))


def sentence(words: Iterable[Words]) -> Html:
    """Return a sentence whose names and figures stand out."""
    shown = {"strong": "<b>{}</b>", "quiet": '<span class="iv">{}</span>'}
    return join(
        *(
            Html(shown[part.emphasis].format(name(part.text))) if part.emphasis else part.text
            for part in words
        )
    )


def link(words: str, address: str) -> Html:
    """Return a link within the page."""
    return Html(f'<a href="{_escape(address)}">{_escape(words)}</a>')


def cell_link(cell: Cell) -> str:
    """Return the address of a cell's page."""
    parts = (cell.model, cell.profile, cell.strategy, cell.fallback, cell.suite, cell.scenario)
    return "#/cell/" + "/".join(map(_quote, parts))


def trials_link(**filters: str | None) -> str:
    """Return the address of the trials that fit."""
    chosen = "&".join(f"{key}={_quote(value)}" for key, value in filters.items() if value)
    return f"#/trials?{chosen}" if chosen else "#/trials"


def _quote(text: str) -> str:
    return quote(repair_surrogates(text), safe="")
