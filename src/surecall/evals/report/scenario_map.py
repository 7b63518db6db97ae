"""The map of a report: which model fails where."""

from itertools import groupby
from math import comb
from typing import Any, Final

from msgspec import Struct

from surecall.evals.diff import Judged
from surecall.evals.metrics.tally import Tallies, Tally
from surecall.evals.recommendation import percent
from surecall.evals.records import Cell
from surecall.evals.scenarios.scenario import TEXTS
from surecall.evals.standings import Standing, Standings, key_of

from .markup import cell_link, name, trials_link

MAX_NAME_CHARS: Final = 15
_COUNTED: Final = 20
"""Up to so many trials a field shows how many are right, and above it per cent."""
_CONTROLS: Final = "Ctrl"
_STEPS: Final = ((0.0, 0), (0.1, 1), (0.3, 2), (0.6, 3), (1.0, 4))
_MAX_WORST: Final = 6
_GROUPS: Final = tuple(dict.fromkeys(text["group"] for text in TEXTS.values()))


class Column(Struct, frozen=True):
    """One scenario of the map."""

    suite: str
    scenario: str
    control: bool

    @property
    def group(self) -> str:
        """What it stands with."""
        if self.control:
            return _CONTROLS
        known = TEXTS.get(self.scenario) if self.suite == "state" else None
        return known["group"] if known else self.suite

    @property
    def short(self) -> str:
        """A name that fits above a field."""
        known = TEXTS.get(self.scenario) if self.suite == "state" else None
        if known:
            return known["short"]
        text = self.scenario.replace("_", " ")
        return text if len(text) <= MAX_NAME_CHARS else f"{text[: MAX_NAME_CHARS - 1]}…"


class Field(Struct, frozen=True):
    """The trials of one model in one scenario."""

    cell: Cell
    k: int
    n: int
    worst: str
    """The reason that trials fail for most often."""

    @property
    def is_worse(self) -> bool:
        """Whether it is worse than all right by more than chance (exact test, both sides)."""
        misses = self.n - self.k
        return misses > 0 and 2 * comb(self.n, misses) / comb(2 * self.n, misses) < 0.05

    def view(self) -> dict[str, Any]:
        """Return what the page shows of it: the stronger its colour, the more misses."""
        misses = (self.n - self.k) / self.n
        return {
            "k": self.k,
            "n": self.n,
            "scenario": self.cell.scenario,
            "reason": self.worst,
            "link": cell_link(self.cell),
            "step": next(step for bound, step in _STEPS if misses <= bound),
            "is_worse": self.is_worse,
            "shown": str(self.k) if self.n <= _COUNTED else f"{100 * self.k / self.n:.0f}",
        }


class ScenarioMap:
    """The fields of one strategy, by model and scenario."""

    def __init__(self, tallies: Tallies, standings: Standings) -> None:
        self.standings = standings
        self.columns = _order_columns(tallies, standings.strategy)
        self.fields: dict[tuple[tuple[str, str, str], str, str], Field] = {}
        for (cell, _), tally in tallies.items():
            if cell.strategy == standings.strategy and tally.judged:
                key = (key_of(cell), cell.suite, cell.scenario)
                self.fields[key] = _field(cell, tally, standings.judged)

    def row(self, one: Standing) -> list[Field | None]:
        """Return the fields of a model, in the order of the columns."""
        key = key_of(one.cell)
        return [self.fields.get((key, column.suite, column.scenario)) for column in self.columns]

    def worst(self, one: Standing) -> list[Field]:
        """Return the scenarios in which a model fails, the worst first."""
        missed = [field for field in self.row(one) if field is not None and field.k < field.n]
        return sorted(missed, key=lambda field: field.k / field.n)

    def view(self) -> dict[str, Any]:
        """Return the map as a table, and as one line a model for a narrow screen."""
        most = max((field.n for field in self.fields.values()), default=0)
        counted = f"Right trials of {most}"
        said = counted if most <= _COUNTED else f"Right trials, above {_COUNTED} in per cent"
        groups = [
            (title, len(list(found))) for title, found in groupby(c.group for c in self.columns)
        ]
        return {
            "said": f"{said}. Open a field to see its trials.",
            "columns": [
                {
                    "scenario": column.scenario,
                    "link": trials_link(scenario=column.scenario),
                    "short": name(column.short, whole=True),
                    "starts": self._starts(place),
                }
                for place, column in enumerate(self.columns)
            ],
            "groups": [
                {"title": title, "size": size, "starts": place > 0}
                for place, (title, size) in enumerate(groups)
            ],
            "models": [self._view_model(one, y) for y, one in enumerate(self.standings.everyone)],
        }

    def view_worst(self) -> dict[str, Any] | None:
        """Return where the first model fails."""
        if not self.standings.everyone:
            return None
        first = self.standings.everyone[0]
        missed = self.worst(first)
        return {
            "who": first.name,
            "missed": [field.view() for field in missed[:_MAX_WORST]],
            "has_missed": bool(missed),
            "left": max(0, len(missed) - _MAX_WORST),
        }

    def _view_model(self, one: Standing, y: int) -> dict[str, Any]:
        row, width = self.row(one), 100 / max(1, len(self.columns))
        tried = [field for field in row if field is not None]
        places = [
            {"n": 0} if field is None else field.view() | {"x": x, "y": y, "tab": -bool(x or y)}
            for x, field in enumerate(row)
        ]
        return {
            "who": one.name,
            "rate": percent(one.rate.value),
            "is_simulated": one.simulated == "all",
            "is_first": y == 0,
            "fields": [place | {"starts": self._starts(x)} for x, place in enumerate(places)],
            "right": sum(field.k == field.n for field in tried),
            "tried": len(tried),
            "strip": [
                place | {"place": f"{x * width:.2f}", "width": f"{0.86 * width:.2f}"}
                for x, place in enumerate(places)
                if place["n"]
            ],
            "missed": [field.view() for field in self.worst(one)],
        }

    def _starts(self, place: int) -> bool:
        return place > 0 and self.columns[place].group != self.columns[place - 1].group


def _order_columns(tallies: Tallies, strategy: str) -> list[Column]:
    found = dict.fromkeys(
        Column(cell.suite, cell.scenario, control)
        for (cell, control), tally in tallies.items()
        if cell.strategy == strategy and tally.judged
    )
    known = {group: place for place, group in enumerate(_GROUPS)}
    suites = {suite: i for i, suite in enumerate(dict.fromkeys(one.suite for one in found))}
    last = len(known)
    return sorted(
        found, key=lambda one: (one.control, suites[one.suite], known.get(one.group, last))
    )


def _field(cell: Cell, tally: Tally, judged: Judged) -> Field:
    k = tally.strict_ok if judged == "strict" else tally.original_ok
    failures = sorted(tally.failures.items(), key=lambda item: (-item[1], item[0]))
    return Field(cell, k, tally.judged, failures[0][0].code if failures else "")
