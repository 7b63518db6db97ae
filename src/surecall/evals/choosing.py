"""Choosing from what there is: one grammar of filters for every axis of a matrix.

A part of a filter that matches nothing is an error, so that a typo never silently drops
something from the run.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.models.profiles import STRATEGIES, Catalog, Selectable, matches_glob, select

from .cases import Suite
from .strategies import ABLATE, GUIDED, list_ablations

_DEFAULT: Final = "default"
_EVERYTHING: Final = frozenset({"*", "all", "full"})
_FALLBACKS: Final[Mapping[str, tuple[str, ...]]] = {
    "best_effort": ("best_effort",),
    "both": ("fallback_off", "fallback_on"),
    "fallback_off": ("fallback_off",),
    "fallback_on": ("fallback_on",),
    "off": ("fallback_off",),
    "on": ("fallback_on",),
}
_GUIDED: Final = next(item for item in STRATEGIES if item.id == GUIDED)


@runtime_checkable
class SelectsScenarios(Protocol):
    """A suite with names for groups of its scenarios."""

    def select(self, expression: str = "") -> Sequence[str]:
        """Return the scenarios of a name, a glob or a group; without one, its default.

        Raises:
            ConfigError: Nothing is called that.
        """
        ...


class ChosenScenario(NamedTuple):
    """A scenario that takes part, with the ids of its cases."""

    suite: str
    name: str
    cases: tuple[str, ...]


class CaseFilter(Struct, frozen=True, kw_only=True):
    """Which cases of the chosen scenarios take part; first by name, then by lot, then by number."""

    cases: str | None = None
    """Ids or globs, separated by commas: of a case, of a scenario with one case, or of both as
    `scenario/case`."""
    sample: int | None = None
    """How many to draw, from each scenario in proportion to its size."""
    limit: int | None = None
    """How many to take at most, from the beginning."""


Item = TypeVar("Item", bound=Selectable)


def choose(
    items: Sequence[Item], expression: str, what: str, *, names: Iterable[str] | None = None
) -> tuple[Item, ...]:
    """Return what a filter chooses; a part of it that matches nothing is an error.

    Args:
        items: What there is.
        expression: Which of them.
        what: What one of them is called, for an error.
        names: What an error suggests; by default the ids and tags of the items.
    """
    require_known(expression, items, what, names=names)
    return select(items, expression)


def choose_strategies(expression: str, catalog: Catalog | None = None) -> tuple[str, ...]:
    """Return the strategies a filter chooses: from raw to guided, then ablations.

    `ablate:` and a name or a glob adds ablations; without that there are none, also with `all`.
    `guided` has to be named as well, because it is not the task alone that is compared with it.
    """
    tokens = [token.strip().lower() for token in expression.split(",") if token.strip()]
    ablations = [token for token in tokens if token.removeprefix("!").startswith(ABLATE)]
    plain = [token for token in tokens if token not in ablations]
    chosen: tuple[str, ...] = ()
    if plain or not ablations:
        is_named = any(token in (GUIDED, *_GUIDED.tags) for token in plain)
        known = STRATEGIES if is_named else [item for item in STRATEGIES if item is not _GUIDED]
        names = (*(item.id for item in STRATEGIES), f"{ABLATE}NAME")
        chosen = tuple(item.id for item in choose(known, ",".join(plain), "strategy", names=names))
    if not ablations:
        return chosen
    known = list_ablations(catalog)
    for token in ablations:
        if not any(matches_glob(token.removeprefix("!"), item.id) for item in known):
            raise _nothing(token, (item.id for item in known), "strategy")
    included = [token for token in ablations if not token.startswith("!")]
    excluded = [token[1:] for token in ablations if token.startswith("!")]
    wanted = (
        item.id
        for item in known
        if any(matches_glob(token, item.id) for token in included)
        and not any(matches_glob(token, item.id) for token in excluded)
    )
    return (*chosen, *wanted)


def choose_scenarios(suites: Sequence[Suite], expression: str) -> list[ChosenScenario]:
    """Return what is chosen, in the order of the suites; a token need not be known to all."""
    tokens = [part.strip().lower() for part in expression.split(",") if part.strip()] or [_DEFAULT]
    excluded = [token[1:].strip() for token in tokens if token.startswith("!")]
    included = [token for token in tokens if not token.startswith("!")] or ["all"]
    matches = {
        token: [_matching(suite, token) for suite in suites] for token in (*included, *excluded)
    }
    for token, found in matches.items():
        if not any(found):
            known = (name for suite in suites for name in suite.scenarios())
            raise _nothing(token, known, "scenario")
    chosen: list[ChosenScenario] = []
    for number, suite in enumerate(suites):
        wanted = frozenset[str]().union(*(matches[token][number] for token in included))
        wanted -= frozenset[str]().union(*(matches[token][number] for token in excluded))
        chosen += (
            ChosenScenario(suite.name, name, tuple(case.id for case in suite.cases(name)))
            for name in suite.scenarios()
            if name in wanted
        )
    if not chosen:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"no scenario is left by {expression!r}.",
            hint="Exclude less, or name what is to run.",
        )
    return chosen


def choose_cases(
    scenarios: Sequence[ChosenScenario], wanted: CaseFilter, *, seed: int = 0
) -> list[ChosenScenario]:
    """Return the scenarios with the cases that are left of each; those without any are left out.

    A sample depends on the seed and on nothing else: every model meets the same cases.
    """
    for name in ("sample", "limit"):
        number = getattr(wanted, name)
        if number is not None and number < 1:
            raise ConfigError(Code.INVALID_OPTION, f"{name} must be 1 or more, not {number}.")
    found = list(scenarios)
    if wanted.cases is not None:
        found = _filter_cases(found, wanted.cases)
    if wanted.sample is not None:
        sizes = _share_out(wanted.sample, [len(item.cases) for item in found])
        found = [_draw(item, size, seed) for item, size in zip(found, sizes, strict=True)]
    if wanted.limit is not None:
        left, limited = wanted.limit, list[ChosenScenario]()
        for item in found:
            limited.append(item._replace(cases=item.cases[:left]))
            left -= len(limited[-1].cases)
        found = limited
    found = [item for item in found if item.cases]
    if not found:
        raise ConfigError(Code.NOTHING_SELECTED, "no case is left.", hint="Name the cases to run.")
    return found


def _filter_cases(scenarios: Sequence[ChosenScenario], expression: str) -> list[ChosenScenario]:
    tokens = [part.strip().lower() for part in expression.split(",") if part.strip()]
    names = {
        (item.suite, item.name, case): _case_names(item, case)
        for item in scenarios
        for case in item.cases
    }
    for token in tokens:
        if not any(_is_named(token, each) for each in names.values()):
            known = (each[0] for each in names.values())
            raise _nothing(token, known, "case")
    return [
        item._replace(
            cases=tuple(
                case
                for case in item.cases
                if any(_is_named(token, names[item.suite, item.name, case]) for token in tokens)
            )
        )
        for item in scenarios
    ]


def _case_names(scenario: ChosenScenario, case: str) -> tuple[str, ...]:
    return (case, f"{scenario.name}/{case}") if case else (scenario.name,)


def _is_named(token: str, names: Iterable[str]) -> bool:
    return any(matches_glob(token, name.lower()) for name in names)


def _share_out(total: int, sizes: Sequence[int]) -> list[int]:
    """Return how many to draw from each scenario: in proportion, none without any if possible."""
    whole = sum(sizes)
    if total >= whole:
        return list(sizes)
    exact = [total * size / whole for size in sizes]
    shares = [max(int(part), 1) if total >= len(sizes) else int(part) for part in exact]
    by_rest = sorted(range(len(sizes)), key=lambda place: shares[place] - exact[place])
    while sum(shares) != total:
        step = 1 if sum(shares) < total else -1
        for place in by_rest[::step]:
            if sum(shares) == total:
                break
            changed = shares[place] + step
            if (1 if total >= len(sizes) else 0) <= changed <= sizes[place]:
                shares[place] = changed
    return shares


def _draw(scenario: ChosenScenario, size: int, seed: int) -> ChosenScenario:
    """Draw cases by lot and return them in their own order; a larger sample has the smaller one."""

    def lot(case: str) -> bytes:
        text = "\x1f".join((str(seed), scenario.suite, scenario.name, case))
        return hashlib.sha256(text.encode("utf-8", "replace")).digest()

    drawn = set(sorted(scenario.cases, key=lot)[:size])
    return scenario._replace(cases=tuple(case for case in scenario.cases if case in drawn))


def _matching(suite: Suite, token: str) -> frozenset[str]:
    names = tuple(suite.scenarios())
    if token in _EVERYTHING or token == suite.name.lower():
        return frozenset(names)
    if isinstance(suite, SelectsScenarios):
        try:
            return frozenset(suite.select("" if token == _DEFAULT else token))
        except ConfigError:
            return frozenset()
    if token == _DEFAULT:
        return frozenset(names)
    return frozenset(name for name in names if matches_glob(token, name.lower()))


def choose_fallbacks(expression: str) -> tuple[str, ...]:
    """Return the fallbacks that an expression such as `both` stands for."""
    found: dict[str, None] = {}
    for token in (part.strip().lower() for part in expression.split(",")):
        if token not in _FALLBACKS:
            raise _nothing(token, _FALLBACKS, "fallback")
        found.update(dict.fromkeys(_FALLBACKS[token]))
    return tuple(found)


def require_known(
    expression: str,
    items: Sequence[Selectable],
    what: str,
    *,
    names: Iterable[str] | None = None,
) -> None:
    """Raise when a part of a filter matches nothing."""
    for part in expression.split(","):
        token = part.strip().removeprefix("!").strip()
        if not token:
            continue
        try:
            select(items, token)
        except ConfigError as error:
            if error.code != Code.NOTHING_SELECTED:
                raise
            known = (name for item in items for name in (item.id, *item.tags))
            raise _nothing(token, dict.fromkeys(names or known), what) from None


def _nothing(token: str, known: Iterable[str], what: str) -> ConfigError:
    return ConfigError(
        Code.NOTHING_SELECTED, f"there is no {what} {token!r}.", hint=did_you_mean(token, known)
    )
