"""Metrics: what is counted, closed sets of labels, and the text that Prometheus reads."""

import re

import pytest

from support.request_records import make_record
from surecall.base.errors import SetupError
from surecall.base.metrics import MAX_VALUES, OTHER, Metrics
from surecall.base.records import Defect, Receipt
from surecall.gateway.telemetry.counters import RequestMetrics
from surecall.store.records.record import ParseError, StepNote

LINE = re.compile(
    r'[a-z_]+(?:\{[a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? '
    r"-?(?:[0-9.]+(?:e-?[0-9]+)?)"
)


def parse(text: bytes) -> dict[str, float]:
    """Read the text form: every line is a comment or a sample, and every sample has its type."""
    assert text.endswith(b"\n")
    samples: dict[str, float] = {}
    types: set[str] = set()
    for line in text.decode().splitlines():
        if line.startswith("# TYPE "):
            types.add(line.split()[2])
        elif not line.startswith("# HELP "):
            assert LINE.fullmatch(line), line
            name, _, value = line.rpartition(" ")
            family = re.sub(r"_(bucket|sum|count)$", "", name.partition("{")[0])
            assert {family, name.partition("{")[0]} & types, line
            assert name not in samples, line
            samples[name] = float(value)
    return samples


def test_what_is_counted_is_shown() -> None:
    """Each kind, with and without labels."""
    metrics = Metrics()
    counter = metrics.counter("a_total", "Things.", kind=["x", "y"])
    counter.add("x")
    counter.add("x")
    counter.add_many(2.5, "y")
    metrics.counter("b_total", "Nothing yet.")
    gauge = metrics.gauge("c", "Now.")
    gauge.set(3)
    gauge.add(-1)
    metrics.gauge("d", "Asked for.", lambda: 7.5)
    histogram = metrics.histogram("e_seconds", "Waits.", bounds=(1, 5), kind=["x"])
    for value in (0.5, 1, 3, 100):
        histogram.observe(value, "x")
    assert parse(metrics.render()) == {
        'a_total{kind="x"}': 2,
        'a_total{kind="y"}': 2.5,
        "b_total": 0,
        "c": 2,
        "d": 7.5,
        'e_seconds_bucket{kind="x",le="1"}': 2,
        'e_seconds_bucket{kind="x",le="5"}': 3,
        'e_seconds_bucket{kind="x",le="+Inf"}': 4,
        'e_seconds_sum{kind="x"}': 104.5,
        'e_seconds_count{kind="x"}': 4,
    }


def test_what_was_not_declared_is_other() -> None:
    """However many names a client thinks up."""
    metrics = Metrics()
    counter = metrics.counter("a_total", "Things.", model=["small"])
    histogram = metrics.histogram("b", "Waits.", model=["small"])
    for number in range(1000):
        counter.add(f"model-{number}")
        histogram.observe(1, f"model-{number}")
    assert counter.samples() == {(OTHER,): (1000,)}
    assert list(histogram.samples()) == [(OTHER,)]
    metrics.allow("model", ["large"])
    counter.add("large")
    assert counter.value("large") == 1
    metrics.allow("model", map(str, range(10_000)))
    for number in range(10_000):
        counter.add(str(number))
    assert len(counter.samples()) <= MAX_VALUES + 1


def test_hostile_values_of_labels_are_escaped() -> None:
    """Also those that were declared."""
    metrics = Metrics()
    name = 'a"b\\c\nd\ud800'
    metrics.counter("a_total", "One\nline \\.", model=[name]).add(name)
    text = metrics.render()
    assert b'a_total{model="a\\"b\\\\c\\nd?"} 1\n' in text
    assert b"# HELP a_total One\\nline \\\\.\n" in text


def test_the_same_name_is_the_same_series() -> None:
    """With the values of both; another kind or other labels are a mistake."""
    metrics = Metrics()
    first = metrics.counter("a_total", "Things.", kind=["x"])
    assert metrics.counter("a_total", "Things.", kind=["y"]) is first
    first.add("y")
    assert first.value("y") == 1
    with pytest.raises(SetupError):
        metrics.counter("a_total", "Things.", other=["x"])
    with pytest.raises(SetupError):
        metrics.gauge("a_total", "Things.")
    with pytest.raises(SetupError):
        first.add("x", "y")


def test_processes_are_added_up() -> None:
    """From snapshots; what only another process has counted is shown as well."""
    metrics = [Metrics(), Metrics()]
    for number, one in enumerate(metrics):
        counter = one.counter("a_total", "Things.", kind=["x", "y"])
        counter.add_many(number + 1, "x")
        one.histogram("b", "Waits.", bounds=(1,)).observe(number * 2)
        one.gauge("c", "Now.").set(1)
    metrics[1].counter("a_total", "Things.", kind=["x", "y"]).add("y")
    found = parse(metrics[0].render([metrics[1].snapshot()]))
    assert found == {
        'a_total{kind="x"}': 3,
        'a_total{kind="y"}': 1,
        'b_bucket{le="1"}': 1,
        'b_bucket{le="+Inf"}': 2,
        "b_sum": 2,
        "b_count": 2,
        "c": 2,
    }


def test_requests_are_counted_with_what_to_divide_by() -> None:
    """Every figure of the issue is there, and so is its denominator."""
    observed = RequestMetrics(Metrics(), upstreams=["main"], models=["small"])
    observed.observe(make_record(calls=2, prompt_tokens=10, completion_tokens=5))
    observed.observe(
        make_record(
            outcome="reasked",
            calls=1,
            steps=(StepNote("repair", "failed", 0), StepNote("reask", "rescued", 1)),
            receipts=(Receipt("drop_trailing_comma", "", 1, 2), Receipt("of my own", "", 1, 2)),
            defects=(Defect("ANSWER_EMPTY", "m"), Defect("my own", "m")),
            parse_error=ParseError("native", "e"),
            retries=1,
            upstream_requests=3,
            stream=True,
            first_byte_ms=5.0,
            client_closed=True,
        )
    )
    observed.observe(make_record(outcome="failed", model_asked="x" * 99, error_code="IDLE_TIMEOUT"))
    observed.observe(make_record(outcome="relayed", upstream="elsewhere"))
    observed.shed.add("overload")
    observed.in_flight.add(1)
    found = parse(observed.metrics.render())
    where = 'upstream="main",model="small"'
    assert found[f'surecall_requests_total{{{where},outcome="clean"}}'] == 1
    assert found['surecall_requests_total{upstream="main",model="other",outcome="failed"}'] == 1
    assert found['surecall_requests_total{upstream="other",model="small",outcome="relayed"}'] == 1
    assert found[f'surecall_replies_total{{{where},mode="native"}}'] == 2
    assert found[f'surecall_calls_total{{{where},outcome="clean"}}'] == 2
    assert found[f'surecall_calls_total{{{where},outcome="reasked"}}'] == 1
    assert found[f'surecall_defects_total{{{where},code="ANSWER_EMPTY"}}'] == 1
    assert found[f'surecall_defects_total{{{where},code="other"}}'] == 1
    assert found[f"surecall_empty_finals_total{{{where}}}"] == 1
    assert found[f'surecall_receipts_total{{{where},rule="drop_trailing_comma"}}'] == 1
    assert found[f'surecall_receipts_total{{{where},rule="other"}}'] == 1
    assert found['surecall_steps_used_total{step="reask"}'] == 1
    assert found['surecall_steps_rescued_total{step="reask"}'] == 1
    assert found[f'surecall_parse_errors_total{{{where},mode="native"}}'] == 1
    assert found['surecall_upstream_requests_total{upstream="main"}'] == 5
    assert found['surecall_upstream_retries_total{upstream="main"}'] == 1
    assert found['surecall_upstream_seconds_count{upstream="main"}'] == 3
    assert found['surecall_added_seconds_count{upstream="main"}'] == 3
    assert found['surecall_added_seconds_sum{upstream="main"}'] == 0.00075
    assert found['surecall_first_byte_seconds_count{upstream="main"}'] == 1
    assert found['surecall_upstream_stalls_total{upstream="main",waited_for="idle"}'] == 1
    assert found['surecall_errors_total{upstream="main",code="IDLE_TIMEOUT"}'] == 1
    assert found['surecall_clients_left_total{upstream="main"}'] == 1
    assert found['surecall_tokens_total{upstream="main",direction="input"}'] == 10
    assert found['surecall_shed_total{reason="overload"}'] == 1
    assert found["surecall_in_flight"] == 1


def test_names_that_nobody_declared_are_not_remembered() -> None:
    """A client that thinks up names makes nothing grow."""
    observed = RequestMetrics(Metrics(), upstreams=["main"], models=["small"])
    for number in range(500):
        observed.observe(make_record(model_asked=f"model-{number}"))
    assert len(observed._samples) == 0
    assert len(observed.requests.samples()) == 1


def test_every_rate_says_what_to_divide_by() -> None:
    """A help text names a series that is there."""
    observed = RequestMetrics(Metrics())
    names = {series.name for series in observed.metrics.series()}
    for series in observed.metrics.series():
        assert series.help.endswith(".")
        assert set(re.findall(r"surecall_\w+", series.help)) <= names, series.help
        assert series.name.endswith("_total") == (series.kind == "counter")
