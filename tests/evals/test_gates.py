"""Gates: how they are read, what they let through, and when they cannot tell."""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError
from surecall.evals.gates import (
    MEASURES,
    GateReport,
    GateResult,
    check_gates,
    limit_errors,
    parse_gate,
)
from surecall.evals.records import TrialRow

from .trial_rows import call, row, series


def check(text: str, rows: Iterable[TrialRow]) -> GateResult:
    """Check one gate that needs no other run."""
    return check_gates([parse_gate(text)], rows).results[0]


def against(text: str, before: list[TrialRow], now: list[TrialRow]) -> GateResult:
    """Check one gate on a regression."""
    asked: list[str] = []

    def rows_of(name: str) -> list[TrialRow]:
        asked.append(name)
        return before

    result = check_gates([parse_gate(text)], now, rows_of=rows_of).results[0]
    assert asked == ["@baseline"]
    return result


# Reading


def test_a_gate_is_a_metric_a_comparison_and_a_number() -> None:
    """The parts of the simplest gate."""
    gate = parse_gate(" strict >= 0.9 ")
    assert (gate.metric, gate.operator, gate.bound) == ("strict", ">=", 0.9)
    assert (gate.where, gate.against) == ((), None)
    assert gate.text == "strict >= 0.9"


def test_axes_in_brackets_select_trials() -> None:
    """Several may be named, quoted where they hold a comma or a bracket."""
    gate = parse_gate('original[model="a,b]c=1", scenario=happy_*]>95%')
    assert gate.where == (("model", "a,b]c=1"), ("scenario", "happy_*"))
    assert (gate.operator, gate.bound) == (">", 0.95)


def test_model_names_need_no_quotes() -> None:
    """Colons, slashes and addresses stand as they are."""
    gate = parse_gate("strict[model=qwen/qwen3:free@http://127.0.0.1:8000/v1]>=0.5")
    assert gate.where == (("model", "qwen/qwen3:free@http://127.0.0.1:8000/v1"),)


def test_a_regression_names_its_run() -> None:
    """The run stands behind `vs`, or is given by the caller."""
    assert parse_gate("regression<=0.02 vs @baseline").against == "@baseline"
    assert parse_gate("regression<=2%", against="k3f0").against == "k3f0"
    assert parse_gate("regression<=2% vs x", against="k3f0").against == "x"
    assert parse_gate("strict>=0.9", against="k3f0").against is None


@pytest.mark.parametrize("metric", [*MEASURES, "pass^3", "pass@10"])
def test_every_metric_can_be_gated(metric: str) -> None:
    """Each name is read back, and says what it means."""
    gate = parse_gate(f"{metric}<=1", against="@latest~1")
    assert gate.metric == metric
    assert gate.measure.meaning


@dataclass(frozen=True)
class Refused:
    id: str
    text: str
    problem: str
    hint: str = "strict>=0.9"


@pytest.mark.parametrize(
    "case",
    [
        Refused("nothing", "", "does not name a metric"),
        Refused("no metric", ">=0.9", "does not name a metric"),
        Refused("misspelt metric", "strickt>=0.9", "'strickt'", "Did you mean 'strict'?"),
        Refused("unknown metric", "xyz>=0.9", "not measured", "Known: "),
        Refused("misspelt axis", "strict[modle=x]>=0.9", "'modle'", "Did you mean 'model'"),
        Refused("no value", "strict[model=]>=0.9", "without a value"),
        Refused("no axis", "strict[happy_path]>=0.9", "no axis=value"),
        Refused("open bracket", "strict[model=x>=0.9", "not closed"),
        Refused("open quote", 'strict[model="x]>=0.9', "quote"),
        Refused("no comparison", "strict 0.9", "no comparison", ">="),
        Refused("single equals", "fabrications=0", "single =", "=="),
        Refused("no number", "strict>=", "not a number"),
        Refused("words for a number", "strict>=high", "not a number"),
        Refused("not finite", "strict>=nan", "not a number"),
        Refused("underscores", "trials>=1_0", "not a number"),
        Refused("not a share", "strict>=90", "share from 0 to 1", "90%"),
        Refused("something behind", "strict>=0.9 please", "continues", "vs RUN"),
        Refused("vs nothing", "regression<=0.1 vs", "continues", "vs RUN"),
        Refused("vs without need", "strict>=0.9 vs @baseline", "compares with a run"),
        Refused("no run", "regression<=0.02", "against which run", "vs @baseline"),
        Refused("asking for a drop", "regression>=0.02 vs x", "asks for a drop"),
        Refused("no series", "pass^>=0.5", "number of trials"),
        Refused("long series", "pass^1000>=0.5", "number of trials"),
    ],
    ids=lambda case: case.id,
)
def test_what_cannot_be_read_is_refused_with_a_way_out(case: Refused) -> None:
    """The code is INVALID_GATE, the message says what is wrong, the hint what to write."""
    with pytest.raises(ConfigError) as caught:
        parse_gate(case.text)
    assert caught.value.code == Code.INVALID_GATE
    assert case.problem in caught.value.message
    if case.hint != "strict>=0.9":
        assert case.hint in (caught.value.hint or "")
    else:
        assert caught.value.hint


@given(st.text(alphabet='strictpass^@[]=<>!,"0.9% vsmodel*', max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_gate_or_refused(text: str) -> None:
    """Nothing but INVALID_GATE is ever raised."""
    problem = None
    try:
        gate = parse_gate(text)
    except ConfigError as error:
        problem = error.code
    else:
        assert parse_gate(gate.text) == gate
    assert problem in {None, Code.INVALID_GATE}


# Rates, counts, times


def test_a_rate_is_compared_as_counted() -> None:
    """Nine of ten fails 0.95, and is too little to pass 0.9; both come with their interval."""
    rows = series("+++++++++-")
    passed, undecided, failed = check_gates(
        [parse_gate("strict>=0.5"), parse_gate("strict>=0.9"), parse_gate("strict>=0.95")], rows
    ).results
    assert (passed.verdict, passed.ok) == ("passed", True)
    assert (undecided.verdict, undecided.ok) == ("undecided", True)
    assert (failed.verdict, failed.ok) == ("failed", False)
    assert (failed.k, failed.n, failed.observed) == (9, 10, 0.9)
    assert failed.interval is not None
    assert 0.59 < failed.interval.low < 0.60


def test_a_rate_on_too_few_trials_says_so() -> None:
    """The bound lies inside the interval: the gate is undecided, and the note says why."""
    result = check("strict>=0.8", series("+++++++++-"))
    assert (result.verdict, result.ok) == ("undecided", True)
    assert result.note == "n = 10 cannot tell 90.0% from 80.0%; about 62 would"
    assert check("strict>=0.5", series("+" * 30 + "-")).note == ""


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("strict[scenario=a]==1", "passed"),
        ("strict[scenario=b]>=0.5", "failed"),
        ("strict[scenario=*]>=0.5", "undecided"),
        ("strict[scenario=A]==1", "passed"),
        ("strict[scenario=a,model=m]==1", "passed"),
        ("strict[scenario=a,model=other]==1", "empty"),
    ],
)
def test_brackets_choose_the_trials(text: str, verdict: str) -> None:
    """All axes must match; case does not matter; a star stands for anything."""
    rows = [*series("++", scenario="a"), *series("--", scenario="b"), *series("+", model="other")]
    assert check(text, rows).verdict == verdict


def test_a_gate_on_nothing_fails() -> None:
    """A value that no trial has is a slip, not a pass; the likely one is suggested."""
    result = check("strict[scenario=hapy_path]>=0", series("+", scenario="happy_path"))
    assert (result.verdict, result.ok) == ("empty", False)
    assert result.note == "no trial has scenario 'hapy_path'. Did you mean 'happy_path'?"
    assert check("strict>=0", []).note == "no trial was made"


def test_controls_count_only_where_nothing_else_is_chosen() -> None:
    """A rate of tools leaves them out; a gate on their scenario is about them."""
    rows = [*series("++"), *series("--", scenario="chat_only", control=True)]
    assert check("strict==1", rows).ok
    result = check("strict[scenario=chat_only]>=0.5", rows)
    assert (result.verdict, result.k, result.n) == ("failed", 0, 2)


def test_one_fabrication_is_too_many() -> None:
    """Counts are compared exactly."""
    assert check("fabrications==0", series("++")).ok
    result = check("fabrications==0", [row(), row(fabrications=1)])
    assert (result.verdict, result.observed) == ("failed", 1.0)


def test_rates_of_calls_can_be_gated() -> None:
    """Calls are the trials of these gates; without any there is nothing to pass."""
    rows = [row(calls=(call(), call(valid_before=False, structured=False)))]
    assert check("valid_before>=0.5", rows).k == 1
    assert check("structured>0.5", rows).verdict == "failed"
    assert check("exact>=0", rows).verdict == "empty"
    assert check("exact>=0", rows).note == "nothing to count: calls with the expected arguments"


def test_series_of_trials_can_be_gated() -> None:
    """pass^2 is the chance that two in a row are right; longer than was tried is unknown."""
    rows = series("++--")
    assert check("pass^2>=0.1", rows).observed == pytest.approx(1 / 6)
    assert check("pass@2>=0.8", rows).observed == pytest.approx(5 / 6)
    assert check("pass^5>=0", rows).verdict == "empty"


def test_times_and_costs_can_be_gated() -> None:
    """Percentiles are those of the report; a cost nobody knows does not pass."""
    rows = [row(elapsed_ms=float(i)) for i in range(100)]
    assert check("p95_ms<=95", rows).ok
    assert check("p50_ms<50", rows).verdict == "failed"
    assert check("cost_usd<=1", rows).verdict == "empty"
    assert check("cost_usd<=1", [row(cost_usd=0.25)]).observed == 0.25


def test_a_time_behind_timeouts_does_not_pass() -> None:
    """Stopped after 10 ms is not the same as done in 10 ms."""
    rows = [
        *(row(elapsed_ms=1.0) for _ in range(8)),
        *(row(False, elapsed_ms=10.0, censored=True) for _ in range(2)),
    ]
    assert check("p50_ms<=5", rows).ok
    result = check("p95_ms<=20", rows)
    assert (result.verdict, result.observed) == ("failed", 10.0)
    assert result.note.startswith("2 timeouts")
    assert check("timeouts<=2", rows).ok


def test_simulated_results_are_marked() -> None:
    """A gate passed by a simulated model says that it was one."""
    assert check("strict>=0.9", series("++", simulated=True)).simulated == "all"
    assert check("strict>=0.9", [*series("++", simulated=True), row()]).simulated == "some"


# Regressions


def test_a_supported_drop_fails() -> None:
    """Ten of forty trials got worse and none better: that is no accident."""
    before = series("+" * 40)
    result = against("regression<=0.02 vs @baseline", before, series("+" * 30 + "-" * 10))
    assert (result.verdict, result.observed, result.n) == ("failed", 0.25, 40)
    assert round(result.p or 1, 3) == 0.002
    assert result.interval is not None
    assert result.interval.low > 0.02
    assert result.note == "worse over all (p = 0.002); worse in s 40/40 → 30/40"


def test_a_drop_that_chance_explains_passes_and_says_so() -> None:
    """One of ten trials got worse: too few to tell, and about how many would be needed."""
    result = against("regression<=0.02 vs @baseline", series("+" * 10), series("+" * 9 + "-"))
    assert (result.verdict, result.ok, result.observed) == ("undecided", True, 0.1)
    assert result.note == (
        "undecided: 10 pairs cannot tell this from chance; about 124 would; "
        "may be chance: s 10/10 → 9/10"
    )


def test_without_a_drop_it_says_what_cannot_be_excluded() -> None:
    """The same results on ten trials leave room for a sizable drop: no clear yes."""
    result = against("regression<=0.02 vs @baseline", series("+" * 10), series("+" * 10))
    assert (result.verdict, result.ok, result.observed) == ("undecided", True, 0.0)
    assert result.note == (
        "undecided: a drop of up to 27.8% is possible with 10 pairs; "
        "about 385 would rule out more than 2.0%"
    )


def test_many_equal_trials_pass() -> None:
    """With enough pairs there is a clear yes."""
    rows = series("+" * 400)
    result = against("regression<=0.02 vs @baseline", rows, rows)
    assert (result.verdict, result.note) == ("passed", "no difference seen in 400 pairs")


def test_an_improvement_passes() -> None:
    """A negative drop is no regression."""
    result = against("regression<=0 vs @baseline", series("-" * 10), series("+" * 10))
    assert (result.verdict, result.observed) == ("passed", -1.0)


def test_a_small_drop_within_the_allowance_passes_however_sure() -> None:
    """Thirty of a thousand is certain, and allowed."""
    before, now = series("+" * 1000), series("+" * 970 + "-" * 30)
    result = against("regression<=0.05 vs @baseline", before, now)
    assert (result.verdict, result.observed) == ("passed", 0.03)
    assert (result.p or 0) < 0.001


def scenarios(broken: str, names: int, trials: int = 10) -> list[TrialRow]:
    """Make trials that are right everywhere but in one scenario."""
    marks = {f"s{n}": "-" if f"s{n}" == broken else "+" for n in range(names)}
    return [one for name, mark in marks.items() for one in series(mark * trials, scenario=name)]


@pytest.mark.parametrize("names", [4, 6, 18])
@pytest.mark.parametrize("trials", [3, 10, 100])
def test_a_scenario_that_breaks_altogether_fails_the_build(names: int, trials: int) -> None:
    """Named scenarios are not a sample: one that was always right and is now wrong is a break."""
    before, now = scenarios("", names, trials), scenarios("s1", names, trials)
    result = against("regression<=0.02 vs @baseline", before, now)
    assert result.verdict == "failed"
    assert f"worse in s1 {trials}/{trials} → 0/{trials}" in result.note


def test_a_scenario_of_one_model_that_breaks_fails_the_build() -> None:
    """The other models do not hide it."""
    before = [*series("+" * 4, model="a"), *series("+" * 40, model="b")]
    now = [*series("-" * 4, model="a"), *series("+" * 40, model="b")]
    result = against("regression<=0.02 vs @baseline", before, now)
    assert result.verdict == "failed"
    assert "worse in a / s 4/4 → 0/4" in result.note


def test_cases_that_are_drawn_are_a_sample() -> None:
    """One of four drawn cases says little about the ones that were not drawn."""
    before, now = (
        [replace(one, drawn=True) for one in scenarios(broken, 4)] for broken in ("", "s1")
    )
    assert against("regression<=0.02 vs @baseline", before, now).verdict == "undecided"


def test_what_is_undecided_can_stop_the_build() -> None:
    """One word in the gate or beside it; nothing else changes."""
    rows = series("+" * 10)
    for gate in (
        parse_gate("regression<=0.02 vs @baseline undecided=fail"),
        parse_gate("regression<=0.02 vs @baseline", undecided="fail"),
    ):
        assert gate.rename("abc") == "regression<=0.02 vs abc undecided=fail"
        result = check_gates([gate], rows, rows_of=lambda _: rows).results[0]
        assert (result.verdict, result.ok) == ("undecided", False)
    assert parse_gate("strict>=0.5 undecided=fail", undecided="pass").undecided == "fail"
    with pytest.raises(ConfigError, match="undecided=maybe"):
        parse_gate("strict>=0.5 undecided=maybe")


# Endpoint errors


def lost(trial: int, outcome: str = "error", code: str = "UPSTREAM_5XX") -> TrialRow:
    """Make a trial that the endpoint failed, or whose request it refused."""
    return row(False, trial=trial, index=trial, outcome=outcome, code=code)


@pytest.mark.parametrize(("outcome", "code"), [("refused", "BAD_REQUEST"), ("error", "RATE_LIMIT")])
@pytest.mark.parametrize(
    "text",
    ["strict>=0.9", "strict>=0", "original>=0", "fabrications==0", "p95_ms<=1000", "pass^1>=0"],
)
def test_no_gate_passes_on_endpoint_errors(text: str, outcome: str, code: str) -> None:
    """Two trials of forty were answered, both right: nothing is proved."""
    rows = [*series("++"), *(lost(trial, outcome, code) for trial in range(3, 41))]
    result = check(text, rows)
    assert (result.verdict, result.ok) == ("failed", False)
    assert result.note == (
        f"38 of 40 trials ended with an endpoint's error ({code}), and <= 2 % is the limit"
    )


@pytest.mark.parametrize("text", ["errors>=0", "errors!=1", "error_share>0", "errors>=38"])
def test_a_gate_that_allows_any_number_of_errors_lifts_no_limit(text: str) -> None:
    """Only an upper bound says how many endpoint errors there may be."""
    rows = [*series("++"), *(lost(trial) for trial in range(3, 41))]
    results = check_gates([parse_gate(text), parse_gate("strict>=0")], rows).results
    assert [result.verdict for result in results] == ["failed", "failed"]
    sound = check_gates([parse_gate("errors>=0"), parse_gate("strict>=0.1")], series("+" * 40))
    assert sound.ok
    none_allowed = check_gates([parse_gate("errors==0"), parse_gate("strict>=0.1")], rows[:3])
    assert [result.verdict for result in none_allowed.results] == ["failed", "failed"]


@pytest.mark.parametrize("text", ["errors<=3", "error_share<=2%", "errors[model=m]<=3"])
def test_a_gate_on_errors_names_what_they_were(text: str) -> None:
    """The code of the error is the reason, as for every other gate."""
    rows = [*series("++"), *(lost(trial) for trial in range(3, 41))]
    result = check(text, rows)
    assert result.verdict == "failed"
    assert result.note.startswith("38 of 40 trials ended with an endpoint's error (UPSTREAM_5XX)")


def test_a_baseline_of_endpoint_errors_proves_nothing() -> None:
    """A run that was not answered cannot be got worse than."""
    before = [*series("++"), *(lost(trial) for trial in range(3, 11))]
    result = against("regression<=0.02 vs @baseline", before, series("++--------"))
    assert result.verdict == "failed"
    assert result.note.startswith("@baseline: 8 of 10 trials ended")


def test_a_few_endpoint_errors_count_as_wrong() -> None:
    """The gate on errors says how many there may be; the rate without them stands beside."""
    rows = [*series("+" * 9), lost(10)]
    result = check_gates([parse_gate("strict==1"), limit_errors("20%")], rows).results[0]
    assert (result.verdict, result.k, result.n) == ("failed", 9, 10)
    assert "1 endpoint errors count as wrong; without them 9/9" in result.note


def test_only_trials_of_both_runs_are_paired() -> None:
    """Other cells and numbers are left out; without pairs the gate fails."""
    before = [*series("++"), *series("++", model="gone")]
    now = [*series("+++++"), *series("--", model="new")]
    assert against("regression<=0 vs @baseline", before, now).n == 2
    alone = against("regression<=0 vs @baseline", before, series("++", model="new"))
    assert (alone.verdict, alone.ok) == ("empty", False)
    assert "partner" in alone.note


def test_the_loose_verdict_has_a_regression_of_its_own() -> None:
    """What strict judges and what the original assertion judges are told apart."""
    before = [row(trial=1)]
    now = [row(trial=1, original_ok=True, strict_ok=False)]
    assert against("original_regression<=0 vs @baseline", before, now).observed == 0.0
    assert against("regression<=0 vs @baseline", before, now).observed == 1.0


def test_a_baseline_is_read_once_for_all_gates() -> None:
    """Two gates on the same run take its trials only once."""
    reads: list[str] = []

    def rows_of(name: str) -> list[TrialRow]:
        reads.append(name)
        return series("++")

    gates = [
        parse_gate("regression<=0 vs @baseline"),
        parse_gate("original_regression<=0 vs @baseline"),
    ]
    assert check_gates(gates, series("++"), rows_of=rows_of).ok
    assert reads == ["@baseline"]


def test_a_regression_without_a_source_is_refused() -> None:
    """Nobody can be asked for the other run."""
    with pytest.raises(ConfigError, match="rows_of"):
        check_gates([parse_gate("regression<=0 vs @baseline")], series("+"))


def test_a_report_is_ok_when_every_gate_is() -> None:
    """One failure is enough, and no gates are no obstacle."""
    gates = [parse_gate("strict>=0.5"), parse_gate("fabrications==0")]
    assert check_gates(gates, series("++")).ok
    assert not check_gates(gates, [row(fabrications=1)]).ok
    assert GateReport(()).ok


def test_errors_are_limited_by_count_or_by_share() -> None:
    """`--max-errors` takes a whole number of trials, or a share of them."""
    lost = row(outcome="error", strict_ok=False, original_ok=False, code="UPSTREAM_5XX", trial=2)
    rows = [row(trial=1), lost]
    verdicts = {
        text: check_gates([limit_errors(text)], rows).results[0].verdict
        for text in ("0", "1", "0.4", "50%")
    }
    assert verdicts == {"0": "failed", "1": "passed", "0.4": "failed", "50%": "passed"}
    with pytest.raises(ConfigError):
        limit_errors("many")
