"""A picture of the terminal as SVG that asks for nothing from the network."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_svg"]


def render_svg(console: "Console", title: str) -> str:
    """Return what a recording console has shown as an SVG document."""
    return _without_fonts(console.export_svg(title=title))


def _without_fonts(svg: str) -> str:
    """Take out the web fonts that rich names; the viewer's own monospace font is used."""
    first, *others = svg.split("@font-face {")
    return first + "".join(part.partition("}")[2] for part in others)
