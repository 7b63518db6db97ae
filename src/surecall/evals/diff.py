"""Two runs, trial by trial: what fails now, what works now, and whether that is chance.

Trials are paired by cell, case and number. Axes in which the runs differ on purpose, such as the
strategy, can be set aside.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.evals.wording import describe_reasons

from .clusters import CasePairs, Difference, compare_pairs
from .metrics.records import AXES, Simulated, say_simulated
from .metrics.tally import find_axes, merge_pairs
from .records import Cell, TrialRow
from .stats import PairCounts, correct_pairs, count_pairs
from .taxonomy import Failure, classify

Judged = Literal["strict", "original"]
"""Which verdict is compared."""

Change = Literal["newly_failing", "newly_passing", "changed_reason", "still_failing"]

_MAX_TEXT: Final = 300


class Side(Struct, frozen=True, kw_only=True):
    """One trial of a pair."""

    index: int
    ok: bool
    failure: Failure | None = None
    reason: str = ""
    """What was wrong, in words."""
    elapsed_ms: float = 0.0


class TrialPair(Struct, frozen=True, kw_only=True):
    """The same trial in both runs, where at least one of them failed."""

    change: Change
    cell: Cell
    """As it is in B."""
    case: str
    trial: int
    control: bool
    simulated: bool
    """Whether one of the two is."""
    a: Side
    b: Side

    @property
    def title(self) -> str:
        """The trial in words, with what must be known about it."""
        case = f" / {self.case}" if self.case else ""
        control = " (control)" if self.control else ""
        simulated = " (simulated)" if self.simulated else ""
        return f"{self.cell.label}{case}, trial {self.trial}{control}{simulated}"


class PairedRate(Difference, frozen=True, kw_only=True):
    """How the pairs of a group agree, and what that proves."""

    axis: str
    value: str
    simulated: Simulated = "none"


class DiffResult(Struct, frozen=True, kw_only=True):
    """What B does differently from A."""

    a: str
    b: str
    judged: Judged
    across: tuple[str, ...]
    config: tuple[str, ...]
    """What the experiments were made with, where it differs."""
    overall: PairedRate
    controls: PairedRate | None
    """Pairs of scenarios without tools, kept out of everything else."""
    groups: tuple[PairedRate, ...]
    """By every axis that has more than one value."""
    pairs: tuple[TrialPair, ...]
    """Every pair in which a trial failed, in the order of B."""
    only_a: int
    """Trials of A without a partner."""
    only_b: int
    errors: int = 0
    """Pairs in which the endpoint failed a trial, which counts as wrong."""

    def having(self, change: Change) -> tuple[TrialPair, ...]:
        """Return the pairs that changed in one way."""
        return tuple(pair for pair in self.pairs if pair.change == change)


def diff_rows(
    rows_a: Iterable[TrialRow],
    rows_b: Iterable[TrialRow],
    *,
    a: str = "A",
    b: str = "B",
    judged: Judged = "strict",
    across: Collection[str] = (),
    config: Sequence[str] = (),
) -> DiffResult:
    """Compare two runs.

    Args:
        rows_a: The trials of the earlier run.
        rows_b: The trials of the later run; they are read once and not kept.
        a: What the earlier run is called.
        b: What the later run is called.
        judged: Which verdict is compared.
        across: Axes that may differ between the two trials of a pair.
        config: What the experiments were made with, where it differs.

    Raises:
        ConfigError: An axis is not known, the runs share no trial, or an axis that is set aside
            has several values, so that a trial would have several partners.
    """
    _check_axes(across)
    left = _keep_sides(rows_a, a, judged, across)
    comparison = _Comparison(left, judged, across)
    for row in rows_b:
        comparison.add(row, b)
    if not comparison.paired:
        raise _not_comparable(
            f"{a} and {b} have no trial in common: none has the same cell, case and number.",
            "Set aside the axis in which they differ, such as --across model.",
        )
    overall, controls, groups = comparison.rates()
    return DiffResult(
        a=a,
        b=b,
        judged=judged,
        across=tuple(across),
        config=tuple(config),
        overall=overall,
        controls=controls if controls.counts.n else None,
        groups=groups,
        pairs=tuple(comparison.pairs),
        only_a=len(left) - comparison.paired,
        only_b=comparison.alone,
        errors=comparison.errors,
    )


Key = tuple[Cell, str, int]


class _Kept(Struct, frozen=True):
    side: Side
    simulated: bool
    is_error: bool


def align_rows(
    rows: Iterable[TrialRow], partners: Iterable[TrialRow], across: Collection[str]
) -> Iterator[TrialRow]:
    """Yield the trials that have a partner, each moved to its partner's cell."""
    cells = {_key(row, across): row.cell for row in partners}
    for row in rows:
        cell = cells.get(_key(row, across))
        if cell is not None:
            yield replace(row, cell=cell)


def _check_axes(across: Iterable[str]) -> None:
    for axis in across:
        if axis not in AXES:
            raise ConfigError(
                Code.INVALID_OPTION, f"{axis!r} is not an axis.", hint=did_you_mean(axis, AXES)
            )


def _keep_sides(
    rows: Iterable[TrialRow], name: str, judged: Judged, across: Collection[str]
) -> dict[Key, _Kept]:
    found: dict[Key, _Kept] = {}
    for row in rows:
        key = _key(row, across)
        if key in found:
            raise _refuse_several(name, row, across)
        found[key] = _Kept(_side(row, judged), row.simulated, row.is_error)
    return found


class _Comparison:
    """Pairs the trials of B with those kept of A, and counts."""

    def __init__(self, left: dict[Key, _Kept], judged: Judged, across: Collection[str]) -> None:
        self._left = left
        self._judged: Judged = judged
        self._across = across
        self._seen: set[Key] = set()
        self._counts: _Counts = {}
        self.pairs: list[TrialPair] = []
        self.alone = 0
        self.errors = 0

    @property
    def paired(self) -> int:
        """How many trials of A found their partner."""
        return len(self._seen)

    def add(self, row: TrialRow, name: str) -> None:
        key = _key(row, self._across)
        before = self._left.get(key)
        if before is None:
            self.alone += 1
            return
        if key in self._seen:
            raise _refuse_several(name, row, self._across)
        self._seen.add(key)
        now = _side(row, self._judged)
        self.errors += row.is_error or before.is_error
        self._count(row, before, now)
        change = _change(before.side, now)
        if change is not None:
            self.pairs.append(
                TrialPair(
                    change=change,
                    cell=row.cell,
                    case=row.case,
                    trial=row.trial,
                    control=row.control,
                    simulated=row.simulated or before.simulated,
                    a=before.side,
                    b=now,
                )
            )

    def _count(self, row: TrialRow, before: _Kept, now: Side) -> None:
        cell, case, _ = _key(row, self._across)
        pairs = self._counts.setdefault((cell, case, row.control), _Pairs(row.drawn))
        pairs.counts += count_pairs([(before.side.ok, now.ok)])
        pairs.simulated += row.simulated or before.simulated

    def rates(self) -> tuple[PairedRate, PairedRate, tuple[PairedRate, ...]]:
        """Return the rates of all pairs, of controls, and by every axis that has several values.

        The p of the groups of an axis is corrected for their number, and a named case is better or
        worse where it is over all.
        """
        tools, controls = (
            {key: pairs for key, pairs in self._counts.items() if key[2] == control}
            for control in (False, True)
        )
        names = find_axes(cell for cell, _, _ in tools)
        overall = compare_pairs(_merge(tools, names))
        groups: list[PairedRate] = []
        for axis in AXES:
            values = dict.fromkeys(getattr(cell, axis) for cell, _, _ in tools)
            if len(values) < 2:
                continue
            members = [
                {key: one for key, one in tools.items() if getattr(key[0], axis) == value}
                for value in values
            ]
            merged = [_merge(found, names) for found in members]
            totals = [sum((case.counts for case in cases), PairCounts()) for cases in merged]
            corrected = correct_pairs([(one.only_a, one.only_b) for one in totals])
            for value, found, cases, p in zip(values, members, merged, corrected, strict=True):
                groups.append(_rate(axis, value, found, compare_pairs(cases, p=p, among=overall)))
        held = compare_pairs(_merge(controls, ["scenario"]))
        return (
            _rate("overall", "all", tools, overall),
            _rate("controls", "controls", controls, held),
            tuple(groups),
        )


class _Pairs:
    """The pairs of one case in one cell."""

    def __init__(self, drawn: bool) -> None:
        self.drawn = drawn
        self.counts = PairCounts()
        self.simulated = 0


_Counts = dict[tuple[Cell, str, bool], _Pairs]


def _merge(found: _Counts, names: Sequence[str]) -> tuple[CasePairs, ...]:
    return merge_pairs(
        (((cell, case), one.counts, one.drawn) for (cell, case, _), one in found.items()), names
    )


def _rate(axis: str, value: str, found: _Counts, pairs: Difference) -> PairedRate:
    simulated = sum(one.simulated for one in found.values())
    return PairedRate(
        **asdict(pairs),
        axis=axis,
        value=value,
        simulated=say_simulated(simulated, pairs.counts.n),
    )


def _change(before: Side, now: Side) -> Change | None:
    if before.ok and now.ok:
        return None
    if before.ok:
        return "newly_failing"
    if now.ok:
        return "newly_passing"
    return "still_failing" if before.failure == now.failure else "changed_reason"


def _side(row: TrialRow, judged: Judged) -> Side:
    ok = row.strict_ok if judged == "strict" else row.original_ok
    if ok:
        return Side(index=row.index, ok=True, elapsed_ms=row.elapsed_ms)
    reasons = row.strict_reasons if judged == "strict" else row.original_reasons
    # The taxonomy explains the strict verdict; where only the loose one is no, its reasons must do.
    judged_row = (
        row if judged == "strict" else replace(row, strict_ok=False, strict_reasons=reasons)
    )
    words = row.error or describe_reasons(reasons)
    return Side(
        index=row.index,
        ok=False,
        failure=classify(judged_row),
        reason=words[:_MAX_TEXT],
        elapsed_ms=row.elapsed_ms,
    )


def _key(row: TrialRow, across: Collection[str]) -> Key:
    cell = replace(row.cell, **dict.fromkeys(across, "")) if across else row.cell
    return cell, row.case, row.trial


def _refuse_several(name: str, row: TrialRow, across: Collection[str]) -> ConfigError:
    aside = ", ".join(across) or "nothing"
    return _not_comparable(
        f"{name} has several trials that look the same with {aside} set aside: "
        f"{row.cell.label}, trial {row.trial}.",
        "Set fewer axes aside, or compare runs that have one value of each.",
    )


def _not_comparable(message: str, hint: str) -> ConfigError:
    return ConfigError(Code.RUNS_NOT_COMPARABLE, message, hint=hint)
