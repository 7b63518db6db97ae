"""Tables that fit the terminal: nothing is cut that somebody may want to copy."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table

_GAP: Final = 2
_READABLE: Final = 16
"""Width at which text that is folded can still be read."""
_NARROW: Final = 8
"""Width that is left to a column where there is hardly any room."""
_LONG_WORD: Final = 40
"""Characters from which on a word may be broken while columns could be left out instead."""


class _Need(NamedTuple):
    """How much room a column needs."""

    column: Column
    full: int
    """Characters of its longest line."""
    word: int
    """Characters of its longest word, or of its longest line where that must not be folded."""

    @property
    def readable(self) -> int:
        """Return how narrow the column may be as long as another one can be left out instead."""
        if _is_whole(self.column):
            return self.full
        if _is_cut(self.column):
            return min(self.full, _READABLE)
        return max(min(self.full, _READABLE), min(self.word, _LONG_WORD))

    @property
    def least(self) -> int:
        """Return how narrow the column may be so that what must not be folded keeps its room."""
        return self.full if _is_whole(self.column) else min(self.word, _NARROW)


class FittingTable(Table):
    """A table that leaves out less important columns and folds the others to fit the terminal."""

    optional: Sequence[str] = ()
    """Headings of columns that may be left out, the least important first."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw what fits."""
        needs = self._choose_columns(console, options)
        yield self._make_plain(_share_room(needs, options.max_width))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return how wide the table is when it is drawn."""
        needs = self._choose_columns(console, options)
        width = _sum_widths(width for _, width in _share_room(needs, options.max_width))
        return Measurement(width, width)

    def _choose_columns(self, console: Console, options: ConsoleOptions) -> list[_Need]:
        needs = [self._measure(column, console, options) for column in self.columns]
        for heading in self.optional:
            if _sum_widths(need.readable for need in needs) <= options.max_width:
                break
            needs = [need for need in needs if need.column.header != heading]
        return needs

    def _measure(self, column: Column, console: Console, options: ConsoleOptions) -> _Need:
        if column.width is not None:
            return _Need(column, column.width, column.width)
        cells = [*column.cells, *([column.header] if self.show_header else [])]
        sizes = [Measurement.get(console, options, cell) for cell in cells]
        full = max((size.maximum for size in sizes), default=0)
        word = max((size.minimum for size in sizes), default=0)
        if column.ratio:
            full = options.max_width
        return _Need(column, full, full if _is_whole(column) else word)

    def _make_plain(self, widths: Iterable[tuple[Column, int]]) -> Table:
        table = Table(
            box=None,
            pad_edge=False,
            collapse_padding=True,
            padding=(0, _GAP),
            show_header=self.show_header,
            header_style=self.header_style,
        )
        cells: list[list[RenderableType]] = []
        for column, width in widths:
            cells.append([*column.cells])
            table.add_column(
                column.header,
                style=column.style,
                justify=column.justify,
                overflow="ellipsis" if _is_cut(column) else "fold",
                no_wrap=_is_cut(column),
                width=width,
            )
        for row, values in zip(self.rows, zip(*cells, strict=True), strict=True):
            table.add_row(*values, style=row.style)
        return table


def _is_whole(column: Column) -> bool:
    return column.no_wrap and not _is_cut(column)


def _is_cut(column: Column) -> bool:
    return column.no_wrap and column.overflow == "ellipsis"


def _sum_widths(widths: Iterable[int]) -> int:
    listed = list(widths)
    return sum(listed) + _GAP * max(len(listed) - 1, 0)


def _share_room(needs: Sequence[_Need], room: int) -> list[tuple[Column, int]]:
    """Give every column what it needs at least, and the narrowest ones more until all is used."""
    choices = (
        [need.readable for need in needs],
        [need.word for need in needs],
        [need.least for need in needs],
        [1 for _ in needs],
    )
    widths = next((each for each in choices if _sum_widths(each) <= room), choices[-1])
    left = room - _sum_widths(widths)
    while left > 0:
        growing = [at for at, need in enumerate(needs) if widths[at] < need.full]
        if not growing:
            break
        widths[min(growing, key=lambda at: widths[at])] += 1
        left -= 1
    return [(need.column, width) for need, width in zip(needs, widths, strict=True)]
