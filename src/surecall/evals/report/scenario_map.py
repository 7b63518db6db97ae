"""The map of a report: which model fails where."""

from collections.abc import Sequence
from math import comb
from typing import Final

from msgspec import Struct

from surecall.evals.diff import Judged
from surecall.evals.metrics.tally import Tallies, Tally
from surecall.evals.recommendation import percent
from surecall.evals.records import Cell
from surecall.evals.scenarios.wording import TEXTS
from surecall.evals.standings import Standing, Standings, key_of

from .markup import Html, cell_link, code, join, name, tag, trials_link

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
    def step(self) -> int:
        """How strong its colour is, by the share of misses: 0 for all right."""
        misses = (self.n - self.k) / self.n
        return next(step for bound, step in _STEPS if misses <= bound)

    @property
    def is_worse(self) -> bool:
        """Whether it is worse than all right by more than chance (exact test, both sides)."""
        misses = self.n - self.k
        return misses > 0 and 2 * comb(self.n, misses) / comb(2 * self.n, misses) < 0.05

    @property
    def text(self) -> str:
        """How many are right: counted, or in per cent where there are many."""
        return str(self.k) if self.n <= _COUNTED else f"{100 * self.k / self.n:.0f}"


class ScenarioMap:
    """The fields of one strategy, by contender and scenario."""

    def __init__(self, tallies: Tallies, standings: Standings) -> None:
        self.standings = standings
        self.columns = _order_columns(tallies, standings.strategy)
        self.fields: dict[tuple[tuple[str, str, str], str, str], Field] = {}
        for (cell, _), tally in tallies.items():
            if cell.strategy == standings.strategy and tally.judged:
                key = (key_of(cell), cell.suite, cell.scenario)
                self.fields[key] = _field(cell, tally, standings.judged)

    def row(self, one: Standing) -> list[Field | None]:
        """Return the fields of a contender, in the order of the columns."""
        key = key_of(one.cell)
        return [self.fields.get((key, column.suite, column.scenario)) for column in self.columns]

    def worst(self, one: Standing) -> list[Field]:
        """Return the scenarios in which a contender fails, the worst first."""
        missed = [field for field in self.row(one) if field is not None and field.k < field.n]
        return sorted(missed, key=lambda field: field.k / field.n)


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


def map_view(found: ScenarioMap) -> Html:
    """Return the map as a table, and as one line a model for a narrow screen."""
    sizes = {field.n for field in found.fields.values()}
    most = max(sizes, default=0)
    said = (
        f"Right trials of {most}"
        if most <= _COUNTED
        else f"Right trials, above {_COUNTED} in per cent"
    )
    said += ". Open a field to see its trials."
    return tag(
        "section",
        {"class": "block", "aria-label": "Where each model fails"},
        tag(
            "div",
            {"class": "head"},
            tag("h2", None, "Where each model fails"),
            tag("p", None, said),
            _legend(),
        ),
        tag("p", {"class": "swipe k3"}, "The map is wider than this window: scroll it sideways."),
        tag(
            "div",
            {"class": "heatbox", "tabindex": "0", "role": "region", "aria-label": "Map"},
            _table(found),
        ),
        tag(
            "div",
            {"class": "cards"},
            *(_card(found, one, place == 0) for place, one in enumerate(found.standings.everyone)),
        ),
        tag(
            "p",
            {"class": "caption"},
            "Few trials tell little: only fields with an edge differ from “all right” by more than "
            "chance. Controls have no tools and are in no rate.",
        ),
    )


def _legend() -> Html:
    steps = ("all", "to 10\u202f% missed", "to 30", "to 60", "more")
    return tag(
        "ul",
        {"class": "heatkey right", "aria-label": "Colours"},
        *(
            tag("li", None, tag("span", {"class": f"cell h{step}"}), f" {words}")
            for step, words in enumerate(steps)
        ),
        tag("li", None, tag("span", {"class": "cell h2 worse"}), " more than chance"),
    )


def _starts_group(columns: Sequence[Column], place: int) -> bool:
    return place > 0 and columns[place].group != columns[place - 1].group


def _table(found: ScenarioMap) -> Html:
    columns = found.columns
    groups: list[Html] = []
    at = 0
    while at < len(columns):
        end = at
        while end < len(columns) and columns[end].group == columns[at].group:
            end += 1
        css = "group start" if at else "group"
        groups.append(
            tag(
                "th",
                {"colspan": end - at, "scope": "colgroup", "class": css},
                tag("span", None, columns[at].group),
            )
        )
        at = end
    titles = [
        tag(
            "th",
            {"scope": "col", "class": "start" if _starts_group(columns, place) else None},
            tag(
                "a",
                {
                    "href": trials_link(scenario=column.scenario),
                    "title": column.scenario,
                    "aria-label": column.scenario,
                },
                name(column.short, whole=True),
            ),
        )
        for place, column in enumerate(columns)
    ]
    rows = [
        tag(
            "tr",
            {"class": "sim" if one.simulated == "all" else None},
            tag("th", {"scope": "row"}, name(one.name)),
            tag("td", {"class": "num"}, percent(one.rate.value)),
            *(
                tag(
                    "td",
                    {"class": "start" if _starts_group(columns, x) else None},
                    _cell(one, field, x, y),
                )
                for x, field in enumerate(found.row(one))
            ),
        )
        for y, one in enumerate(found.standings.everyone)
    ]
    return tag(
        "table",
        {"class": "heat", "data-map": True},
        tag("caption", {"class": "hidden"}, "Right trials by model and scenario"),
        tag(
            "thead",
            None,
            tag(
                "tr",
                {"class": "names"},
                tag("th", {"scope": "col"}, "Model"),
                tag("th", {"scope": "col", "class": "num"}, "right"),
                *titles,
            ),
            tag("tr", {"class": "groups"}, tag("td"), tag("td"), *groups),
        ),
        tag("tbody", None, *rows),
    )


def _cell(one: Standing, field: Field | None, x: int, y: int) -> Html:
    if field is None:
        return tag("span", {"class": "cell none"}, "·")
    words = f"{one.name}, {field.cell.scenario}: {field.k} of {field.n} right"
    return tag(
        "a",
        {
            "class": f"cell h{field.step}{' worse' if field.is_worse else ''}",
            "href": cell_link(field.cell),
            "aria-label": words,
            "data-x": x,
            "data-y": y,
            "tabindex": "-1" if x or y else "0",
        },
        field.text,
    )


def _card(found: ScenarioMap, one: Standing, is_first: bool) -> Html:
    """Return one model for a narrow screen: a strip, and the scenarios with a miss."""
    row, missed = found.row(one), found.worst(one)
    tried = [field for field in row if field is not None]
    right = sum(field.k == field.n for field in tried)
    width = 100 / max(1, len(row))
    strip = "".join(
        f'<rect class="h{field.step}" x="{place * width:.2f}%" width="{0.86 * width:.2f}%" '
        'height="100%"/>'
        for place, field in enumerate(row)
        if field is not None
    )
    return tag(
        "details",
        {"open": is_first},
        tag(
            "summary",
            None,
            tag("b", None, name(one.name)),
            tag(
                "span",
                {"class": "k2"},
                f"{percent(one.rate.value)}, all right in {right} of {len(tried)}",
            ),
            Html(f'<svg class="strip" aria-hidden="true">{strip}</svg>'),
        ),
        tag(
            "ul",
            None,
            *(
                tag(
                    "li",
                    None,
                    tag("a", {"href": cell_link(field.cell)}, name(field.cell.scenario)),
                    tag("span", {"class": f"cell h{field.step}"}, field.text),
                )
                for field in missed
            ),
        ),
        None if missed else tag("p", {"class": "k3"}, "No scenario has a miss."),
    )


def worst_view(found: ScenarioMap) -> Html | None:
    """Return where the first model fails."""
    everyone = found.standings.everyone
    if not everyone:
        return None
    first = everyone[0]
    missed = found.worst(first)
    if not missed:
        return tag(
            "p",
            {"class": "block k2"},
            tag("b", None, name(first.name)),
            " was right in every trial of every scenario.",
        )
    rows = [
        tag(
            "li",
            None,
            tag("a", {"href": cell_link(field.cell)}, name(field.cell.scenario)),
            tag("span", None, f"{field.k} of {field.n} right"),
            tag("span", {"class": "k3"}, "most often ", code(field.worst)) if field.worst else "",
        )
        for field in missed[:_MAX_WORST]
    ]
    left = len(missed) - _MAX_WORST
    return tag(
        "section",
        {"class": "block", "aria-label": "Where the first fails"},
        tag("div", {"class": "head"}, tag("h2", None, "Where ", name(first.name), " fails")),
        tag("ul", {"class": "worst"}, *rows),
        tag("p", {"class": "caption"}, f"{left} more scenarios have a miss.") if left > 0 else None,
    )


def views(found: ScenarioMap) -> Html:
    """Return both parts, the map first."""
    return join(map_view(found), worst_view(found))
