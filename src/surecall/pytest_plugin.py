"""pytest plugin: tests that are repeated, because a model does not always do the same.

    @pytest.mark.toolcalls(trials=10, min_rate=0.9)
    def test_it_books(scripted_model): ...

Each trial is the whole test with new fixtures. The test passes when enough trials do, and stops
as soon as that is certain either way. All trials run in one process, so that xdist distributes
tests as ever. Nothing else of surecall is loaded until a fixture is used.
"""

from collections.abc import Callable, Generator
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

if TYPE_CHECKING:
    from surecall.faults import SimulatedTransport
    from surecall.models.transport import ScriptedTransport

__all__ = ["faulty_model", "scripted_model", "trial_number"]

_MARK: Final = "toolcalls"
_PROPERTY: Final = "toolcalls"
_trial: Final = pytest.StashKey[int]()
_trials: Final[list[list[pytest.TestReport]]] = []
"""The reports of the trial that runs; nothing while no trial does."""
_Subtest: Final = getattr(pytest, "SubtestReport", ())
"""The report of a part of a test; pytest before version 9 has none."""


class Demand(NamedTuple):
    """How often a test is tried, and how often it must pass."""

    trials: int
    min_rate: float

    @property
    def needed(self) -> int:
        """How many trials must pass."""
        exact = Decimal(str(self.min_rate)) * self.trials
        return int(exact.to_integral_value(rounding=ROUND_CEILING))


class Tally(NamedTuple):
    """How the trials of a test came out."""

    passed: int
    done: int
    demand: Demand

    @property
    def is_enough(self) -> bool:
        """Whether the test passes, whatever comes."""
        return self.passed >= self.demand.needed

    @property
    def is_certain(self) -> bool:
        """Whether trials that are left cannot change the outcome."""
        failed = self.done - self.passed
        return self.is_enough or failed > self.demand.trials - self.demand.needed

    def describe(self) -> str:
        """Return the count, its interval and what was asked for, in words."""
        from surecall.evals.stats import wilson

        interval = wilson(self.passed, self.done)
        left = self.demand.trials - self.done
        early = f", {left} of {self.demand.trials} not needed" if left else ""
        return (
            f"{self.passed}/{self.done} passed, "
            f"95% interval {interval.low:.0%} to {interval.high:.0%}, "
            f"at least {self.demand.min_rate:.0%} asked for{early}"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that makes every trial."""
    group = parser.getgroup("surecall")
    group.addoption(
        "--toolcalls-all",
        action="store_true",
        help="make every trial of a test marked toolcalls, even when its outcome is certain",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line(
        "markers",
        f"{_MARK}(trials=10, min_rate=1.0): repeat the test, and pass if this share of trials does",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse marks that make no sense before anything runs."""
    for item in items:
        _find_demand(item)


def _find_demand(item: pytest.Item) -> Demand | None:
    mark = item.get_closest_marker(_MARK)
    if mark is None:
        return None
    given: dict[str, Any] = {"trials": 10, "min_rate": 1.0, **mark.kwargs}
    trials, min_rate = given.pop("trials"), given.pop("min_rate")
    is_count = type(trials) is int and trials >= 1
    is_share = isinstance(min_rate, int | float) and 0 <= min_rate <= 1
    if mark.args or given or not is_count or not is_share:
        raise pytest.UsageError(
            f"{item.nodeid}: toolcalls takes trials, a whole number from 1 on, and min_rate, "
            "a number from 0 to 1"
        )
    return Demand(trials, float(min_rate))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a marked test as often as needed, and report it once."""
    demand = None if _trials else _find_demand(item)
    if demand is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = _run_trials(item, demand)
    ending = _tear_down_shared(item, nextitem)
    if ending.failed:
        reports = [report for report in reports if report.when != "teardown"] + [ending]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _tear_down_shared(item: pytest.Item, nextitem: pytest.Item | None) -> pytest.TestReport:
    """Tear down what the test shares with others, such as fixtures of its module."""
    assert item.parent is not None
    last: pytest.Item = _NoTrial.from_parent(item.parent, name=item.name)  # pyright: ignore[reportUnknownMemberType]
    return _run_once(last, nextitem)[-1]


class _NoTrial(pytest.Item):
    """A test beside the trials that does nothing, behind which the next test comes."""

    def runtest(self) -> None:
        """Do nothing."""


def _run_trials(item: pytest.Item, demand: Demand) -> list[pytest.TestReport]:
    runs_all = bool(item.config.getoption("toolcalls_all"))
    tally = Tally(0, 0, demand)
    kept: dict[bool, list[pytest.TestReport]] = {}
    duration = 0.0
    while tally.done < demand.trials and (runs_all or not tally.is_certain or tally.done == 0):
        item.stash[_trial] = tally.done + 1
        # What comes next is a test beside this one: only what belongs to the test is torn down.
        made = _run_once(item, item.parent)
        reports = [report for report in made if not isinstance(report, _Subtest)]
        failed_parts = [report for report in made if report.failed and report not in reports]
        call = _call_of(reports)
        if call is None or call.skipped:  # broken or skipped: no trial of the model at all
            return reports
        if failed_parts and call.passed:
            call.outcome, call.longrepr = "failed", failed_parts[0].longrepr
        tally = Tally(tally.passed + call.passed, tally.done + 1, demand)
        kept[call.passed] = reports
        duration += call.duration
        if item.session.shouldstop or item.session.shouldfail:
            break
    return _make_reports(kept, tally, duration)


def _run_once(item: pytest.Item, nextitem: Any) -> list[pytest.TestReport]:
    """Run a test as pytest does, and return its reports; none is shown or counted."""
    reports: list[pytest.TestReport] = []
    _trials.append(reports)
    try:
        item.ihook.pytest_runtest_protocol(item=item, nextitem=nextitem)
    finally:
        _trials.pop()
    return reports


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> Generator[None]:
    """Keep the report of a trial; everybody else is told of a part that says nothing."""
    if not _trials:
        return (yield)
    kept = dict(vars(report))
    _trials[-1].append(report)
    report.when, report.outcome, report.longrepr = "setup", "passed", None
    report.duration, report.sections, report.user_properties = 0.0, [], []
    try:
        return (yield)
    finally:
        vars(report).update(kept)


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Take the outcome of the trials: subtests that failed in some of them do not change it."""
    if report.when != "call" or _PROPERTY not in dict(report.user_properties):
        return None
    return report.outcome, "." if report.passed else "F", report.outcome.upper()


def _call_of(reports: list[pytest.TestReport]) -> pytest.TestReport | None:
    """Return the report of the test itself; None when what surrounds it failed."""
    around = [report for report in reports if report.when != "call"]
    if any(report.outcome != "passed" for report in around):
        return None
    return next((report for report in reports if report.when == "call"), None)


def _make_reports(
    kept: dict[bool, list[pytest.TestReport]], tally: Tally, duration: float
) -> list[pytest.TestReport]:
    """Return the reports of one trial, with the outcome of all of them."""
    is_passed = tally.is_enough
    reports = kept.get(is_passed) or kept[not is_passed]
    words = tally.describe()
    for report in reports:
        if report.when != "setup":  # the report for a build server is made of the last one
            report.user_properties.append((_PROPERTY, words))
        if report.when != "call":
            continue
        report.outcome = "passed" if is_passed else "failed"
        report.duration = duration
        report.longrepr = None if is_passed else report.longrepr or words
        report.sections.append((_MARK, words))
    return reports


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the count and the interval of every marked test."""
    rows: list[tuple[str, str]] = []
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            if isinstance(report, pytest.TestReport) and report.when == "call":
                given = dict(report.user_properties)
                if _PROPERTY in given:
                    rows.append((report.nodeid, str(given[_PROPERTY])))
    if rows:
        terminalreporter.section("tool calls")
        for nodeid, words in sorted(rows):
            terminalreporter.line(f"{nodeid}: {words}")


@pytest.fixture
def trial_number(request: pytest.FixtureRequest) -> int:
    """Return the number of this trial, from 1 on; 1 in a test that is not repeated."""
    return request.node.stash.get(_trial, 1)


@pytest.fixture
def scripted_model() -> "Callable[..., ScriptedTransport]":
    """Return a function that makes a model out of its replies, for `transport=`."""
    from surecall.models.transport import ScriptedTransport

    def make(*replies: Any, **settings: Any) -> ScriptedTransport:
        return ScriptedTransport(replies, **settings)

    return make


@pytest.fixture
def faulty_model(trial_number: int) -> "Callable[..., SimulatedTransport]":
    """Return a function that makes a model with a fault, or a simulated one, for `transport=`.

    It takes the name of a fault, `faults:NAME` or `zoo:NAME`; each trial has its own seed.
    """
    from surecall.faults import FaultPlan, SimulatedTransport

    def make(name: str, *, seed: int = 0, **settings: Any) -> SimulatedTransport:
        own_seed = seed + trial_number - 1
        if name.startswith("zoo:"):
            return SimulatedTransport(name.removeprefix("zoo:"), seed=own_seed, **settings)
        return SimulatedTransport(
            plan=FaultPlan.of(name.removeprefix("faults:")), seed=own_seed, **settings
        )

    return make
