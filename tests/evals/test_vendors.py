"""The same model at several endpoints, measured by one of them."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from surecall.base.errors import Code, ConfigError
from surecall.evals.records import CallFact, TrialRow
from surecall.evals.stats import PairCounts, f1_score
from surecall.evals.vendors import (
    CallFault,
    Comparison,
    Endpoint,
    VendorReport,
    compare_vendors,
    fault_of,
)

from .trial_rows import call, row

BAD = call(valid_before=False, error_kinds=("missing",), error_codes=("ARGUMENTS_INVALID",))


def trials(label: str, marks: str, **facts: Any) -> list[TrialRow]:
    """Return trials: `c` called cleanly, `s` broke its schema, `.` abstained, `x` no answer."""
    made: dict[str, dict[str, Any]] = {
        "c": {"calls": (call(),)},
        "s": {"ok": False, "calls": (BAD,), "outcome": "broke"},
        ".": {"ok": False, "outcome": "abstained"},
        "x": {"ok": False, "outcome": "abstained", "code": "UPSTREAM_5XX", "error_status": 503},
    }
    return [
        row(model=label, trial=number, index=number, **(made[mark] | facts))
        for number, mark in enumerate(marks, 1)
    ]


def compare(reference: str, other: str, **options: Any) -> tuple[VendorReport, Endpoint]:
    """Compare two endpoints."""
    rows = [*trials("ref", reference), *trials("other", other)]
    report = compare_vendors(rows, "ref", **options)
    return report, report.endpoints[0]


def part(endpoint: Endpoint, measure: str) -> Comparison:
    """Return one comparison of an endpoint."""
    return next(one for one in endpoint.comparisons if one.measure == measure)


@dataclass(frozen=True)
class Fault:
    id: str
    call: CallFact
    expected: CallFault | None


@pytest.mark.parametrize(
    "case",
    [
        Fault("clean", call(), None),
        Fault("cut", call(state="cut", valid_before=False), CallFault.TRUNCATED),
        Fault("cut by code", call(error_codes=("ARGUMENTS_TRUNCATED",)), CallFault.TRUNCATED),
        Fault(
            "no such tool",
            call(valid_before=False, error_codes=("TOOL_NOT_IMPLEMENTED",)),
            CallFault.UNKNOWN_NAME,
        ),
        Fault(
            "name put right",
            call(valid_before=False, rules=("resolve_tool_name",)),
            CallFault.UNKNOWN_NAME,
        ),
        Fault(
            "written as text", call(valid_before=False, structured=False), CallFault.NOT_STRUCTURED
        ),
        Fault("unreadable", call(valid_before=False, state="unreadable"), CallFault.INVALID_JSON),
        Fault(
            "repaired into what fits",
            call(valid_before=False, changed=True, rules=("drop_trailing_comma",)),
            CallFault.INVALID_JSON,
        ),
        Fault("does not fit", BAD, CallFault.SCHEMA_MISMATCH),
        Fault(
            "coerced into what fits",
            call(valid_before=False, changed=True, error_kinds=("type",)),
            CallFault.SCHEMA_MISMATCH,
        ),
        Fault("failed in the tool", call(ok=False, error_codes=("ARGUMENT_ERROR",)), None),
    ],
    ids=lambda case: case.id,
)
def test_a_call_has_one_fault_as_it_arrived(case: Fault) -> None:
    """What repair made of it afterwards does not matter, nor what the tool said."""
    assert fault_of(case.call) == case.expected


def test_the_trigger_is_compared_with_when_the_reference_calls() -> None:
    """Calls of the reference are what should have been done."""
    _, other = compare("cccc..", "cc.sc.")
    assert other.trigger == f1_score(3, 1, 1)
    assert part(other, "trigger").counts == PairCounts(both=3, only_a=1, only_b=1, neither=1)


def test_trials_without_an_answer_say_nothing_about_the_model() -> None:
    """They are counted apart, and left out of the trigger on either side."""
    _, other = compare("cccx", "cxcc")
    assert (other.unanswered.k, other.unanswered.n) == (1, 4)
    assert (other.called.k, other.called.n) == (3, 3)
    assert part(other, "trigger").counts == PairCounts(both=2)
    assert part(other, "strict").counts == PairCounts(both=2, only_a=1, only_b=1)


def test_schema_accuracy_and_faults_are_shares_of_calls() -> None:
    """Every fault has its rate and interval, also those that never occurred."""
    _, other = compare("cccc", "ccss")
    assert (other.valid_before.k, other.valid_before.n) == (2, 4)
    rates = {one.fault: (one.rate.k, one.rate.n, one.of) for one in other.faults}
    assert rates[CallFault.SCHEMA_MISMATCH] == (2, 4, "calls")
    assert rates[CallFault.INVALID_JSON] == (0, 4, "calls")
    assert set(rates) == set(CallFault)


def test_repeated_ids_are_counted_in_trials() -> None:
    """It takes two calls to repeat an id."""
    rows = [
        *trials("ref", "cc"),
        *trials("other", "c"),
        row(model="other", trial=2, rules=("rename_repeated_id",), calls=(call(), call())),
    ]
    other = compare_vendors(rows, "ref").endpoints[0]
    found = next(one for one in other.faults if one.fault is CallFault.DUPLICATE_ID)
    assert (found.rate.k, found.rate.n, found.of) == (1, 2, "trials")


def test_calls_in_text_are_counted_in_trials() -> None:
    """Whether somebody read them or not."""
    text = call(structured=False, valid_before=False)
    rows = [
        *trials("ref", "ccc"),
        row(False, model="other", trial=1, outcome="broke"),
        row(model="other", trial=2, calls=(text, text)),
        row(model="other", trial=3, calls=(call(),)),
    ]
    other = compare_vendors(rows, "ref").endpoints[0]
    found = next(one for one in other.faults if one.fault is CallFault.NOT_STRUCTURED)
    assert (found.rate.k, found.rate.n, found.of) == (2, 3, "trials")
    assert part(other, "schema").counts == PairCounts(both=1, only_a=2)


def test_few_trials_are_too_few_to_tell() -> None:
    """Ten equal trials prove nothing about a difference of five points; how many would is said."""
    report, other = compare("c" * 10, "c" * 10)
    assert (other.verdict, report.ok) == ("too few to tell", True)
    assert part(other, "strict").needed == 203


def test_a_coarser_margin_needs_fewer_trials() -> None:
    """Who only cares about forty points needs no thousand trials."""
    _, other = compare("c" * 40, "c" * 40, margin=0.4)
    assert other.verdict == "same as far as seen"


def test_many_equal_trials_are_the_same_as_far_as_seen() -> None:
    """With enough trials for the margin nothing is left to doubt."""
    report, other = compare("c" * 300, "c" * 299 + "s")
    assert (other.verdict, report.ok) == ("same as far as seen", True)


def test_an_endpoint_that_breaks_schemas_is_worse() -> None:
    """A quarter of forty trials with calls that do not fit is no accident."""
    report, other = compare("c" * 40, "c" * 30 + "s" * 10)
    assert (other.verdict, report.ok) == ("worse", False)
    schema = part(other, "schema")
    assert (schema.verdict, schema.counts) == ("worse", PairCounts(both=30, only_a=10))
    assert schema.interval.high < 0


def test_an_endpoint_that_calls_too_often_is_worse() -> None:
    """Calling where the reference does not is no improvement."""
    _, other = compare("." * 20, "c" * 20)
    assert part(other, "trigger").verdict == "worse"
    assert part(other, "strict").verdict == "better"
    assert other.verdict == "worse"


def test_an_endpoint_that_calls_at_other_times_is_worse() -> None:
    """As many calls as the reference, but not in the same cases."""
    rows = []
    for number in range(40):
        mark, other = ("cc", "..") if number % 2 else ("..", "cc")
        rows += trials("ref", mark, case=f"case {number}")
        rows += trials("other", other, case=f"case {number}")
    report = compare_vendors(rows, "ref")
    assert report.noise == f1_score(20, 0, 0)
    endpoint = report.endpoints[0]
    assert endpoint.called.k == report.reference.called.k
    assert part(endpoint, "trigger").test.p == 1
    assert part(endpoint, "trigger").verdict == "worse"


def test_an_endpoint_that_does_more_right_is_better() -> None:
    """Where nothing is worse and there were trials enough."""
    _, other = compare("c" * 300 + "s" * 100, "c" * 400)
    assert other.verdict == "better"


def test_the_reference_is_compared_with_itself() -> None:
    """A model that wavers does not agree with itself; once tried, nobody knows."""
    assert compare("c.cc", "cccc")[0].noise == f1_score(1, 0, 1)
    assert compare("c", "c")[0].noise is None


def test_controls_are_left_out() -> None:
    """Where no tools are offered nobody can call."""
    rows = [
        *trials("ref", "c"),
        *trials("other", "c"),
        *trials("ref", "." * 5, scenario="chat_only", control=True),
    ]
    assert compare_vendors(rows, "ref").reference.trials == 1


def test_endpoints_can_be_chosen() -> None:
    """Only those named, in that order, each once."""
    rows = [one for label in ("ref", "x", "y", "z") for one in trials(label, "cc")]
    assert [one.label for one in compare_vendors(rows, "ref").endpoints] == ["x", "y", "z"]
    chosen = compare_vendors(rows, "ref", ("z", "x", "z")).endpoints
    assert [one.label for one in chosen] == ["z", "x"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param(trials("rif", "c"), "Did you mean 'rif'", id="no reference"),
        pytest.param(trials("ref", "c"), "nothing to compare", id="nobody else"),
        pytest.param(
            [*trials("ref", "c"), *trials("other", "c", scenario="else")],
            "no trial in common",
            id="other scenarios",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(rows: list[TrialRow], words: str) -> None:
    """The code is RUNS_NOT_COMPARABLE."""
    with pytest.raises(ConfigError, match=words) as caught:
        compare_vendors(rows, "ref")
    assert caught.value.code == Code.RUNS_NOT_COMPARABLE


def test_an_endpoint_without_trials_is_refused() -> None:
    """A label that was not run is a slip."""
    rows = [*trials("ref", "c"), *trials("other", "c")]
    with pytest.raises(ConfigError, match="'othr' has no trials"):
        compare_vendors(rows, "ref", ["othr"])


def test_simulated_endpoints_are_marked() -> None:
    """A made-up endpoint says so."""
    rows = [*trials("ref", "c"), *trials("other", "cc", simulated=True)]
    report = compare_vendors(rows, "ref")
    assert (report.reference.simulated, report.endpoints[0].simulated) == ("none", "all")


def test_a_report_survives_json() -> None:
    """The whole can be written and read back."""
    report, _ = compare("cc.s", "c.cx")
    assert msgspec.json.decode(msgspec.json.encode(report), type=VendorReport) == report
