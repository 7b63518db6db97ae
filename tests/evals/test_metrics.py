"""Figures of an experiment, counted from trials made by hand."""

import random
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from surecall.base.errors import Code
from surecall.base.records import Usage
from surecall.evals.metrics import Summary, summarize
from surecall.evals.metrics.records import AXES, PassPoint, Stability
from surecall.evals.records import TrialRow, read_data
from surecall.evals.stats import PairCounts, wilson
from surecall.evals.taxonomy import (
    CUT_BY_LIMIT,
    UNEXPLAINED,
    Failure,
    Layer,
    blames_endpoint,
    classify,
    layer_of,
)

from .trial_rows import call, cell, row, series


def test_rates_come_with_counts_and_intervals() -> None:
    """Nine of ten is nine, ten, and what Wilson says about it."""
    overall = summarize(series("+++++++++-")).overall
    assert (overall.n, overall.strict.k, overall.strict.n) == (10, 9, 10)
    assert overall.strict.interval == wilson(9, 10)
    assert overall.original.k == 9


def test_the_two_verdicts_are_counted_apart() -> None:
    """A trial may satisfy the loose assertion and not the strict one."""
    overall = summarize([row(original_ok=True, strict_ok=False), row(), row(False)]).overall
    assert (overall.original.k, overall.strict.k) == (2, 1)


def test_controls_stay_out_of_the_rates_of_tools() -> None:
    """Trials without tools have a group of their own, and their cells are marked."""
    rows = [*series("++-"), *series("-----", scenario="chat_only", control=True)]
    summary = summarize(rows)
    assert summary.rows == 8
    assert (summary.overall.strict.k, summary.overall.n) == (2, 3)
    assert summary.controls is not None
    assert (summary.controls.strict.k, summary.controls.n) == (0, 5)
    assert [group.value for group in summary.axes["scenario"]] == ["s"]
    assert [(group.value.split(" / ")[-1], group.control) for group in summary.cells] == [
        ("s", False),
        ("chat_only", True),
    ]
    assert [(item.case, item.control) for item in summary.items] == [("", False), ("", True)]


def test_without_controls_there_is_no_group_of_them() -> None:
    """Nothing is made up for what was not tried."""
    assert summarize(series("+")).controls is None


def test_every_axis_has_its_groups_in_the_order_met() -> None:
    """A group holds all trials with one value, whatever else they differ in."""
    rows = [
        *series("++", model="b", strategy="raw"),
        *series("+-", model="a", strategy="raw"),
        *series("--", model="b", strategy="production"),
    ]
    summary = summarize(rows)
    assert set(summary.axes) == set(AXES)
    models = {group.value: (group.strict.k, group.n) for group in summary.axes["model"]}
    assert models == {"b": (2, 4), "a": (1, 2)}
    assert list(models) == ["b", "a"]
    strategies = {group.value: (group.strict.k, group.n) for group in summary.axes["strategy"]}
    assert strategies == {"raw": (3, 4), "production": (0, 2)}
    assert [group.cell for group in summary.cells] == [
        cell(model="b", strategy="raw"),
        cell(model="a", strategy="raw"),
        cell(model="b", strategy="production"),
    ]


def test_nothing_at_all_is_a_summary_too() -> None:
    """An experiment without trials has no rates and no cells."""
    summary = summarize([])
    assert (summary.rows, summary.overall.n, summary.overall.strict.value) == (0, 0, None)
    assert summary.cells == summary.items == summary.strategies == ()
    assert summary.overall.pass_curve == ()


def test_outcomes_are_counted_five_ways() -> None:
    """A trial called, abstained, tried and broke, or met an endpoint that refused it or failed."""
    rows = [row(outcome=name) for name in ("called", "broke", "broke", "refused", "error")]
    expected = {"called": 1, "abstained": 0, "broke": 2, "refused": 1, "error": 1}
    assert summarize(rows).overall.outcomes == expected


def test_an_error_of_the_endpoint_is_in_no_rate_and_counted_beside_them() -> None:
    """Rates, repeats and pairs are of the trials that say something about the model."""
    lost = row(outcome="error", strict_ok=False, original_ok=False, code="UPSTREAM_5XX", trial=2)
    group = summarize([row(strict_ok=True, original_ok=True, trial=1), lost]).overall
    assert (group.strict.k, group.strict.n, group.original.n) == (1, 1, 1)
    assert (group.n, group.errors, group.unanswered.value) == (2, 1, 0.5)
    assert [(one.failure.code, one.count) for one in group.error_causes] == [("UPSTREAM_5XX", 1)]
    assert (group.failures, group.stability.once) == ((), 1)


def test_an_endpoint_that_fails_at_once_is_not_fast() -> None:
    """Only a timeout tells something about the time: that it would have taken longer."""
    refused = row(outcome="error", strict_ok=False, original_ok=False, elapsed_ms=1.0, trial=2)
    stopped = msgspec.structs.replace(refused, censored=True, elapsed_ms=900.0, trial=3)
    found = summarize([row(elapsed_ms=500.0, trial=1), refused, stopped]).overall.latency
    assert (found.n, found.censored, found.p50_ms) == (2, 1, 900.0)


def test_figures_of_calls_are_shares_of_calls() -> None:
    """Form, validity before and after, exactness and error kinds are counted call by call."""
    rows = [
        row(calls=(call(exact=True), call(exact=False))),
        row(
            calls=(
                call(
                    structured=False,
                    format="qwen_xml",
                    valid_before=False,
                    changed=True,
                    exact=True,
                ),
                call(
                    valid_before=False,
                    valid_after=False,
                    executed=False,
                    error_kinds=("missing", "enum"),
                    error_codes=("ARGUMENTS_INVALID",),
                ),
            )
        ),
    ]
    calls = summarize(rows).overall.calls
    assert calls.count == 4
    assert (calls.structured.k, calls.valid_before.k, calls.valid_after.k) == (3, 2, 3)
    assert (calls.executed.k, calls.changed.k) == (3, 1)
    assert (calls.exact.k, calls.exact.n) == (2, 3)
    assert calls.error_kinds == {"enum": 1, "missing": 1}
    assert calls.error_codes == {"ARGUMENTS_INVALID": 1}
    assert calls.formats == {"tool_calls": 3, "qwen_xml": 1}


def test_repair_precision_looks_only_at_changed_calls_with_a_known_answer() -> None:
    """A repaired call that came out wrong counts against repair; one nobody can judge does not."""
    calls = (
        call(changed=True, exact=True),
        call(changed=True, exact=False),
        call(changed=True, exact=None),
        call(changed=False, exact=False),
    )
    precision = summarize([row(calls=calls)]).overall.calls.repair_precision
    assert (precision.k, precision.n) == (1, 2)


def test_a_recovery_is_a_right_trial_that_needed_the_rule() -> None:
    """Saved trials are counted by rule, with an example; other firings are counted beside."""
    rows = [
        row(index=4, rules=("strip_code_fence",), saved_by=("strip_code_fence",)),
        row(index=5, rules=("strip_code_fence", "coerce"), saved_by=("strip_code_fence", "coerce")),
        row(False, index=6, rules=("strip_code_fence",), saved_by=("strip_code_fence",)),
        row(index=7),
    ]
    overall = summarize(rows).overall
    fence, coerce = overall.recoveries
    assert (fence.rule, fence.saved.k, fence.saved.n) == ("strip_code_fence", 2, 3)
    assert (fence.fired, fence.example) == (3, 4)
    assert fence.saved.interval == wilson(2, 3)
    assert (coerce.rule, coerce.saved.k, coerce.fired, coerce.example) == ("coerce", 1, 1, 5)
    assert (overall.saved.k, overall.saved.n) == (2, 3)


def test_failures_are_counted_with_an_example_each() -> None:
    """The most frequent comes first, and points at the first trial that shows it."""
    rows = [
        row(index=0),
        row(False, index=1, reason="READ_NOT_FIRST"),
        row(False, index=2, reason="DRAFT_WRONG"),
        row(False, index=3, reason="DRAFT_WRONG"),
    ]
    found = summarize(rows).overall.failures
    assert [(one.failure.code, one.count, one.example) for one in found] == [
        ("DRAFT_WRONG", 2, 2),
        ("READ_NOT_FIRST", 1, 1),
    ]


def test_costs_and_dangers_are_summed() -> None:
    """Turns, requests, tokens, cost, escalations and fabrications add up."""
    rows = [
        row(turns=2, requests=3, usage=Usage(10, 5, 15), cost_usd=0.5, escalations=1),
        row(turns=1, requests=1, usage=Usage(1, 1, 2), fabrications=2),
    ]
    overall = summarize(rows).overall
    assert (overall.costs.turns, overall.costs.requests, overall.costs.escalations) == (3, 4, 1)
    assert overall.costs.usage == Usage(11, 6, 17)
    assert (overall.costs.cost_usd, overall.costs.priced) == (0.5, 1)
    assert overall.fabrications == 2
    assert summarize([row()]).overall.costs.cost_usd is None


def test_timeouts_are_not_taken_for_ends() -> None:
    """The seeds' percentile includes them; the other says that nobody knows."""
    rows = [row(elapsed_ms=float(i)) for i in range(1, 10)]
    rows.append(row(False, elapsed_ms=120_000.0, censored=True))
    latency = summarize(rows).overall.latency
    assert (latency.n, latency.censored) == (10, 1)
    assert (latency.p50_ms, latency.p95_ms) == (6.0, 120_000.0)
    assert (latency.true_p50_ms, latency.true_p95_ms) == (5.0, None)


def test_the_curve_of_consistency_averages_over_cases() -> None:
    """One case that is always right and one that is right half of the time."""
    rows = [*series("++++", case="x"), *series("++--", case="y")]
    curve = summarize(rows).overall.pass_curve
    assert [(point.k, point.items) for point in curve] == [(1, 2), (2, 2), (3, 2), (4, 2)]
    assert curve[0].some == curve[0].every == 0.75
    assert curve[1].some == pytest.approx((1 + 5 / 6) / 2)
    assert curve[1].every == pytest.approx((1 + 1 / 6) / 2)
    assert curve[3] == PassPoint(4, 1.0, 0.5, 2)


def test_the_curve_says_how_many_cases_each_point_stands_on() -> None:
    """A case with fewer trials drops out of the longer series."""
    curve = summarize([*series("+++", case="x"), *series("-", case="y")]).overall.pass_curve
    assert [(point.k, point.every, point.items) for point in curve] == [
        (1, 0.5, 2),
        (2, 1.0, 1),
        (3, 1.0, 1),
    ]


def test_flaky_is_told_from_broken() -> None:
    """Cases are always, sometimes or never right, and once says nothing."""
    rows = [
        *series("+++", case="a"),
        *series("+-+", case="b"),
        *series("---", case="c"),
        *series("-", case="d"),
    ]
    summary = summarize(rows)
    assert summary.overall.stability == Stability(always=1, sometimes=1, never=1, once=1)
    assert [(item.case, item.k, item.n, item.consistency) for item in summary.items] == [
        ("a", 3, 3, "always"),
        ("b", 2, 3, "sometimes"),
        ("c", 0, 3, "never"),
        ("d", 0, 1, "once"),
    ]


def test_strategies_are_compared_on_trials_equal_in_all_else() -> None:
    """Pairs share model, scenario, case and number; the rest is left out."""
    rows = [
        *series("+--- ", strategy="raw"),
        *series("+++-+", strategy="production"),
        *series("-", strategy="raw", model="other"),
        *series("+", strategy="production", model="other"),
        *series("+", strategy="raw", model="only raw"),
        *series("+", strategy="raw", scenario="chat_only", control=True),
        *series("+", strategy="production", scenario="chat_only", control=True),
    ]
    whole, mine, other = summarize(rows).strategies
    assert (whole.a, whole.b, whole.model) == ("raw", "production", None)
    assert whole.counts == PairCounts(both=1, only_a=0, only_b=3, neither=1)
    assert (whole.p, whole.test.method) == (0.25, "exact")
    assert whole.interval.low < 0.6 < whole.interval.high
    assert (mine.model, mine.counts.n) == ("m", 4)
    assert (other.model, other.counts) == ("other", PairCounts(only_b=1))


def test_every_two_of_three_strategies_are_compared() -> None:
    """Each pair once, in the order met."""
    rows = [one for name in ("raw", "baseline", "production") for one in series("+", strategy=name)]
    found = [(one.a, one.b) for one in summarize(rows).strategies if one.model is None]
    assert found == [("raw", "baseline"), ("raw", "production"), ("baseline", "production")]


def test_simulated_trials_are_marked_in_every_group() -> None:
    """Where some or all trials are simulated, the group says so."""
    rows = [*series("++", model="zoo:x", simulated=True), *series("+", model="real")]
    summary = summarize(rows)
    assert summary.overall.simulated == "some"
    assert [group.simulated for group in summary.axes["model"]] == ["all", "none"]


def test_a_summary_survives_json() -> None:
    """The whole can be stored and read back."""
    rows = [*series("+-", case="x"), row(False, code="RATE_LIMIT", error_status=429)]
    summary = summarize(rows)
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary


def test_memory_stays_flat_over_ten_thousand_trials() -> None:
    """Rows are read once and dropped; what stays is far smaller than they are."""

    def many() -> Iterator[TrialRow]:
        chance = random.Random(3)
        for index in range(10_000):
            yield row(
                chance.random() < 0.8,
                index=index,
                model=f"m{index % 17}",
                scenario=f"s{index % 7}",
                trial=index // 119,
                elapsed_ms=chance.random(),
                calls=(call(), call(changed=True)),
                text="x" * 200,
            )

    tracemalloc.start()
    try:
        summary = summarize(many())
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert summary.rows == 10_000
    assert summary.overall.calls.count == 20_000
    assert peak_bytes < 4 * 1024 * 1024


# Why trials fail


@dataclass(frozen=True)
class Why:
    id: str
    expected: Failure
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


WHYS = [
    Why(
        "an error of the provider, with its status",
        Failure(Layer.PROVIDER, "RATE_LIMIT", "429"),
        {"code": "RATE_LIMIT", "error_status": 429, "outcome": "abstained"},
    ),
    Why(
        "no connection",
        Failure(Layer.CONNECTION, "CONNECTION_REFUSED"),
        {"code": "CONNECTION_REFUSED"},
    ),
    Why("a reply that is none", Failure(Layer.REPLY, "UPSTREAM_HTML"), {"code": "UPSTREAM_HTML"}),
    Why("a setting", Failure(Layer.SETUP, "UNKNOWN_PRESET"), {"code": "UNKNOWN_PRESET"}),
    Why(
        "a token limit wins over what followed from it",
        Failure(Layer.LIMIT, "CUT_BY_LIMIT", "DRAFT_WRONG"),
        {"cut_by_limit": True},
    ),
    Why(
        "too many turns",
        Failure(Layer.LIMIT, "MAX_TURNS_REACHED", "called"),
        {"code": "MAX_TURNS_REACHED"},
    ),
    Why(
        "a call that does not fit its schema",
        Failure(Layer.CALL, "ARGUMENTS_INVALID", "enum,missing"),
        {
            "outcome": "broke",
            "calls": (
                call(
                    ok=False,
                    error_codes=("ARGUMENTS_INVALID",),
                    error_kinds=("missing", "enum", "missing"),
                ),
            ),
        },
    ),
    Why(
        "the last call that failed is to blame",
        Failure(Layer.TOOL, "ARGUMENT_ERROR", "state_patch"),
        {
            "code": "TOOL_ERROR",
            "calls": (
                call(ok=False, error_codes=("ARGUMENTS_TRUNCATED",)),
                call(ok=False, error_codes=("ARGUMENT_ERROR",)),
                call(name="state_get"),
            ),
        },
    ),
    Why(
        "an error inside a tool is the tool's",
        Failure(Layer.TOOL, "INTERNAL_ERROR", "state_patch"),
        {"code": "TOOL_ERROR", "calls": (call(ok=False, error_codes=("INTERNAL_ERROR",)),)},
    ),
    Why(
        "no call where one was demanded",
        Failure(Layer.BEHAVIOUR, "NO_TOOL_CALLS", "abstained"),
        {"code": "NO_TOOL_CALLS", "outcome": "abstained"},
    ),
    Why("the reason of the scenario", Failure(Layer.BEHAVIOUR, "DRAFT_WRONG", "called")),
    Why(
        "broken, and nobody says how",
        Failure(Layer.BEHAVIOUR, "DRAFT_WRONG", "broke"),
        {"outcome": "broke"},
    ),
    Why(
        "nothing says why",
        Failure(Layer.HARNESS, "UNEXPLAINED", "called"),
        {"strict_reasons": ()},
    ),
    Why("an unknown code", Failure(Layer.HARNESS, "EXCEPTION"), {"code": "EXCEPTION"}),
]


@pytest.mark.parametrize("why", WHYS, ids=lambda why: why.id)
def test_a_failed_trial_is_blamed_on_one_layer(why: Why) -> None:
    """Layer, code and detail follow from what the trial recorded."""
    assert classify(row(False, **why.facts)) == why.expected


def test_a_right_trial_has_no_failure() -> None:
    """Also when something went wrong on the way."""
    calls = (call(ok=False, error_codes=("ARGUMENT_ERROR",)), call())
    assert classify(row(calls=calls)) is None


@pytest.mark.parametrize("code", ["NO_TOOL_CALLS", "REQUIRED_TOOL_MISSING", "TOOL_ERROR"])
def test_tools_that_were_not_used_are_the_models_doing(code: str) -> None:
    """Such trials fail; they are no errors of the endpoint, which count in no rate."""
    assert layer_of(code) in {Layer.BEHAVIOUR, Layer.TOOL}
    assert not blames_endpoint(code)


def test_every_code_has_a_layer_other_than_harness() -> None:
    """Only an error inside surecall is blamed on surecall."""
    ours = {code for code in Code if layer_of(code) is Layer.HARNESS}
    assert ours == {Code.INTERNAL_ERROR, Code.WORKER_LOST}


def test_the_table_of_layers_holds_codes_that_there_are() -> None:
    """A code that is misspelt there would belong to another layer."""
    listed = [code for codes in read_data("reasons.toml")["layers"].values() for code in codes]
    assert len(set(listed)) == len(listed)
    assert set(listed) - {str(code) for code in Code} == {CUT_BY_LIMIT, UNEXPLAINED}
