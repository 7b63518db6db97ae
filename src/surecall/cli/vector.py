"""A picture of the terminal as SVG that asks for nothing from the network."""

from pathlib import Path
from typing import TYPE_CHECKING

from .output import explain_unwritable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["save_svg"]


def save_svg(console: "Console", title: str, place: str) -> None:
    """Write what a recording console has shown as an SVG document."""
    with explain_unwritable(place):
        Path(place).write_text(_without_fonts(console.export_svg(title=title)), "utf-8")


def _without_fonts(svg: str) -> str:
    """Take out the web fonts that rich names; the viewer's own monospace font is used."""
    first, *others = svg.split("@font-face {")
    return first + "".join(part.partition("}")[2] for part in others)
