"""Output on a terminal: text made safe for it, tables, and a picture of the screen.

Nothing that models, providers and tools say may move the cursor, colour the screen, or reorder
what is shown: control characters and bidirectional marks are shown by their number instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from surecall.base.errors import JSONTextError

_BIDIRECTIONAL: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SEPARATORS: Final = (0x2028, 0x2029, 0xFEFF)
_CONTROLS: Final = (*range(0x20), *range(0x7F, 0xA0))

_LOOKS: Final[Mapping[str, Mapping[str, Any]]] = {
    "whole": {"no_wrap": True},
    "cut": {"no_wrap": True, "overflow": "ellipsis"},
    "right": {"justify": "right"},
    "dim": {"style": "dim"},
    "wide": {"ratio": 1},
}
"""The looks of a column, which is folded otherwise: never broken as long as there is room; one line
that is cut; set to the right; dimmed; as wide as there is room."""


def _by_number(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_LINE_TABLE: Final = {
    code: _by_number(code) for code in (*_CONTROLS, *_BIDIRECTIONAL, *_SEPARATORS)
}
_LINE_TABLE.update({0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"})
_TEXT_TABLE: Final = {code: text for code, text in _LINE_TABLE.items() if code not in {0x09, 0x0A}}
_JSON_TABLE: Final = {
    code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *_BIDIRECTIONAL, *_SEPARATORS)
}


def printable(text: str) -> str:
    """Return the text with everything but newlines and tabs made visible that controls a screen."""
    return _without_surrogates(text.replace("\r\n", "\n")).translate(_TEXT_TABLE)


def line_of(text: str, limit: int = 2000) -> str:
    """Return the start of the text as one safe line."""
    clipped = text if len(text) <= limit else f"{text[:limit]}…"
    return _without_surrogates(clipped).translate(_LINE_TABLE)


def bounded(text: str, width: int) -> str:
    """Return one safe line of at most `width` characters, with an ellipsis when it was longer."""
    line = line_of(text, max(width, 1))
    return line if len(line) <= width else f"{line[: max(width - 1, 0)]}…"


def shown_value(value: Any) -> str:
    """Return a value as people read it: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    from surecall.text import encode_text  # much to load for a command that shows no values

    try:
        return encode_text(value)
    except JSONTextError:
        return repr(value)


def escape_json(text: str) -> str:
    """Escape in JSON text what a terminal may act on; the value stays the same."""
    return text.translate(_JSON_TABLE)


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text


def make_table(
    columns: Mapping[str, str],
    rows: "Iterable[Iterable[RenderableType]]" = (),
    *,
    headings: bool = True,
    optional: Sequence[str] = (),
) -> "Table":
    """Return a table that fits the terminal.

    Args:
        columns: Every heading with the looks of its column, such as `right whole`.
        rows: The cells of each row; more can be added.
        headings: Whether the headings are shown.
        optional: Headings of columns that a narrow terminal leaves out, the first of them first.
    """
    from .tables import FittingTable

    table = FittingTable(show_header=headings, header_style="bold")
    table.optional = optional
    for heading, looks in columns.items():
        settings: dict[str, Any] = {"overflow": "fold"}
        for look in looks.split():
            settings |= _LOOKS[look]
        table.add_column(heading, **settings)
    for row in rows:
        table.add_row(*row)
    return table


def styled(*parts: "str | tuple[str, str] | Text") -> "Text":
    """Return text whose parts have a style each, or none."""
    from rich.text import Text

    return Text.assemble(*parts)


def save_svg(console: "Console", title: str, place: str) -> None:
    """Write what a recording console has shown as an SVG document."""
    from surecall.base.files import explain_write_errors, write_whole

    svg = _without_fonts(console.export_svg(title=title))
    with explain_write_errors(place), write_whole(place) as file:
        file.write(svg.encode("utf-8"))


def _without_fonts(svg: str) -> str:
    """Take out the web fonts that rich names; the viewer's own monospace font is used."""
    first, *others = svg.split("@font-face {")
    return first + "".join(part.partition("}")[2] for part in others)
