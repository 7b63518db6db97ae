"""A picture of the terminal as SVG that asks for nothing from the network."""

from typing import TYPE_CHECKING

from surecall.files import explain_write_errors, write_whole

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["save_svg"]


def save_svg(console: "Console", title: str, place: str) -> None:
    """Write what a recording console has shown as an SVG document."""
    svg = _without_fonts(console.export_svg(title=title))
    with explain_write_errors(place), write_whole(place) as file:
        file.write(svg.encode("utf-8"))


def _without_fonts(svg: str) -> str:
    """Take out the web fonts that rich names; the viewer's own monospace font is used."""
    first, *others = svg.split("@font-face {")
    return first + "".join(part.partition("}")[2] for part in others)
