"""What strategies add over others and what they cost, for the terminal and as data."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from surecall.evals.gains import Gain

from .output import select_fields
from .terminal import line_of

if TYPE_CHECKING:
    from rich.console import Console

_MAX_CHARS = 1000


def show_gain(console: "Console", gain: Gain, *, with_remarks: bool = True) -> None:
    """Show what a strategy adds, and where it is better or worse and what it costs if asked."""
    console.print(line_of(gain.sentence, _MAX_CHARS), style="bold", soft_wrap=True)
    for text in gain.remarks if with_remarks else ():
        console.print(line_of(text, _MAX_CHARS), soft_wrap=True)


def gain_data(gains: Iterable[Gain]) -> list[dict[str, Any]]:
    """Return what strategies add, as data."""
    return [
        {
            **select_fields(gain, "base", "strategy", "sentence", "advance", "setback", "cost"),
            "difference": gain.contest.difference,
            "interval": msgspec.to_builtins(gain.contest.interval),
            "p": gain.contest.p,
            "trials": gain.contest.counts.n,
        }
        for gain in gains
    ]
