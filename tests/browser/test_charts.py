"""The overview: every chart is drawn from the trials, and has its table."""

import re
from collections import Counter

import pytest
from playwright.sync_api import Page, expect

from support.eval_rows import CONTROL, MODELS, SCENARIOS, STRATEGIES, make_rows
from support.reports import file_url, make_info
from surecall.evals.metrics import summarize
from surecall.evals.report import write_html
from surecall.evals.stats import wilson
from surecall.evals.taxonomy import classify

from .watched import WatchedPage

ROWS = make_rows()
PRODUCTION = [row for row in ROWS if row.cell.strategy == "production"]
TOOLS = [row for row in PRODUCTION if not row.control]
CHARTS = (
    "heat",
    "failures",
    "intervals",
    "strategies",
    "recoveries",
    "consistency",
    "latency",
    "sizes",
)


def table_of(page: Page, chart: str) -> list[list[str]]:
    """Open the table behind a chart and return its rows."""
    details = page.locator(f"#chart-{chart} details").last
    details.locator("summary").first.click()
    rows = details.locator("tbody tr").all()
    return [row.locator("th, td").all_inner_texts() for row in rows]


def test_all_charts_are_there(page: Page) -> None:
    """Eight figures, each with a title, words below it and a table behind it."""
    assert page.locator("figure.chart").count() == len(CHARTS)
    for chart in CHARTS:
        figure = page.locator(f"#chart-{chart}")
        expect(figure.locator("h2")).not_to_be_empty()
        expect(figure.locator("figcaption")).not_to_be_empty()
        assert len(table_of(page, chart)) > 0


def test_the_heat_map_has_a_field_for_every_cell(page: Page) -> None:
    """Model times scenario, each with k/n and a link to its trials."""
    fields = page.locator("#heat a.rate")
    assert fields.count() == len(MODELS) * len(SCENARIOS)
    label = "embedded:smollm2-135m, happy_path, production"
    passed = sum(
        row.strict_ok
        for row in PRODUCTION
        if (row.cell.model, row.cell.scenario) == ("embedded:smollm2-135m", "happy_path")
    )
    field = page.locator(f'#heat a[aria-label^="{label}"]')
    expect(field).to_have_text(f"{passed}/5")
    assert "too few trials to call" in (field.get_attribute("aria-label") or "")


def test_a_field_with_few_trials_is_hatched_and_one_with_many_is_not(
    watched: WatchedPage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """5 of 5 has an interval of 43 points, 40 of 40 one of 9."""
    few = make_rows(models=MODELS[:1], strategies=("raw",), scenarios=(CONTROL,), trials=5)
    many = make_rows(models=MODELS[3:4], strategies=("raw",), scenarios=(CONTROL,), trials=40)
    rows = [*few, *many]
    path = tmp_path_factory.mktemp("few") / "report.html"
    watched.open(file_url(write_html(rows, make_info(rows), path)))
    page = watched.page
    hatched = page.locator("#heat a.rate.thin")
    assert hatched.count() == 1
    assert "zoo:steady" in (hatched.get_attribute("aria-label") or "")
    image = "el => getComputedStyle(el).backgroundImage"
    assert "repeating-linear-gradient" in hatched.evaluate(image)
    assert page.locator("#heat a.rate:not(.thin)").evaluate(image) == "none"


def test_controls_are_in_no_rate_of_tools(page: Page) -> None:
    """The control column is marked, and the totals leave it out."""
    head = page.locator("#heat thead th.control")
    assert head.inner_text().split() == ["chat_only", "control"]
    total = page.locator("#heat tbody tr").first.locator("td.all")
    ok = sum(row.strict_ok for row in TOOLS if row.cell.model == "zoo:steady")
    assert f"{ok}/35" in total.inner_text()


def test_intervals_are_those_of_the_statistics(page: Page) -> None:
    """One whisker for every model and strategy, with the Wilson interval."""
    marks = page.locator("#chart-intervals svg[role=img] a.mark")
    assert marks.count() == len(MODELS) * len(STRATEGIES)
    shown = {(cells[0].split()[0], cells[1]): cells[2:] for cells in table_of(page, "intervals")}
    for model in MODELS:
        for strategy in STRATEGIES:
            group = [
                row
                for row in ROWS
                if row.cell.model == model.name
                and row.cell.strategy == strategy
                and not row.control
            ]
            k, n = sum(row.strict_ok for row in group), len(group)
            span = wilson(k, n)
            text = f"{_short(span.low)}–{_short(span.high)} %"
            assert shown[model.name, strategy] == [f"{k}/{n}", f"{_short(k / n)} %", text]


def test_strategies_are_compared_in_pairs(page: Page) -> None:
    """Three marks for each model; gain, interval and test are those of the statistics."""
    assert page.locator("#chart-strategies svg[role=img] a.mark").count() == 3 * len(MODELS)
    shown = {cells[0].split()[0]: cells for cells in table_of(page, "strategies")}
    compared = {
        one.model: one
        for one in summarize(ROWS).strategies
        if (one.a, one.b) == ("raw", "production")
    }
    for model in MODELS:
        one = compared[model.name]
        cells = shown[model.name]
        assert one.counts.difference is not None
        assert cells[4] == _points(one.counts.difference)
        assert cells[5] == f"{_points(one.interval.low)} to {_points(one.interval.high)}"
        assert cells[6:8] == ["35", f"{one.counts.only_b} : {one.counts.only_a}"]
        p = "p < 0.001" if one.test.p < 0.001 else f"p = {one.test.p:.3f}"
        assert cells[8] == p


def test_failures_are_counted_by_code(page: Page) -> None:
    """The stack has a segment for each model and code; the table counts them with an example."""
    failures = [(row, classify(row)) for row in TOOLS if not row.strict_ok]
    counts = Counter(failure.code for _, failure in failures if failure)
    shown = {cells[0]: cells for cells in table_of(page, "failures")}
    assert {code: int(cells[2]) for code, cells in shown.items()} == dict(counts)
    first = next(row for row, failure in failures if failure and failure.code == "NO_TOOL_CALLS")
    assert shown["NO_TOOL_CALLS"][6] == f"trial {first.index}"
    named = [code for code, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))][:7]
    segments = {
        (row.cell.model, failure.code if failure.code in named else "others")
        for row, failure in failures
        if failure
    }
    assert page.locator("#chart-failures svg[role=img] rect.segment").count() == len(segments)


def test_recoveries_are_attributed_to_rules(page: Page) -> None:
    """A bar for each rule that saved a trial, with how many."""
    right = [row for row in TOOLS if row.strict_ok]
    saved = Counter(rule for row in right for rule in row.saved_by)
    assert page.locator("#chart-recoveries rect.segment").count() == len(saved)
    shown = {cells[0]: cells[1] for cells in table_of(page, "recoveries")}
    assert shown == {rule: f"{k}/{len(right)}" for rule, k in saved.items()}


def test_times_are_curves_with_crosses_where_a_trial_was_stopped(page: Page) -> None:
    """Quantiles know that a timeout is not an end."""
    figure = page.locator("#chart-latency")
    assert figure.locator("svg[role=img] path.curve").count() == len(MODELS)
    with_timeouts = {row.cell.model for row in TOOLS if row.censored}
    assert figure.locator("svg[role=img] path.cross").count() == len(with_timeouts) > 0
    shown = {cells[0].split()[0]: cells for cells in table_of(page, "latency")}
    for group in summarize(TOOLS).axes["model"]:
        cells = shown[group.value]
        assert cells[1:3] == [str(group.latency.n), str(group.latency.censored)]
        assert cells[3] == _duration(group.latency.true_p50_ms)
        assert cells[4] == _duration(group.latency.true_p95_ms)


def test_consistency_is_a_curve_over_k(page: Page) -> None:
    """pass^k is that of the statistics for every k."""
    assert page.locator("#chart-consistency svg[role=img] path.curve").count() == len(MODELS)
    shown = {cells[0].split()[0]: cells for cells in table_of(page, "consistency")}
    for group in summarize(TOOLS).axes["model"]:
        expected = [f"{_short(point.every)} %" for point in group.pass_curve]
        assert shown[group.value][2:] == expected


def test_sizes_show_the_limit(page: Page) -> None:
    """Every call is in the histogram, and the limit within the axis is drawn."""
    rows = table_of(page, "sizes")
    assert sum(int(n.replace(",", "")) for cells in rows for n in cells[1:]) == sum(
        len(row.calls) for row in TOOLS
    )
    figure = page.locator("#chart-sizes")
    assert figure.locator("line.limit").count() == 1
    expect(figure.locator("figcaption")).to_contain_text("200,000 bytes lies beyond the axis")
    assert figure.locator("rect.bin").count() >= len(rows)


def test_simulated_models_are_marked_wherever_they_are_named(page: Page) -> None:
    """In the notice, in the heat map, in charts, legends, filters and figures."""
    expect(page.locator(".notice").first).to_contain_text("Simulated: zoo:steady")
    names = page.locator("#heat tbody th", has_text="zoo:").all_inner_texts()
    assert len(names) == 3
    assert all("simulated" in name for name in names)
    labels = page.locator("svg[role=img] text.label", has_text="zoo:").all_text_contents()
    assert labels
    assert all("simulated" in label for label in labels)
    legends = page.locator(".legend li", has_text="zoo:").all_inner_texts()
    assert legends
    assert all("simulated" in text for text in legends)
    rates = page.locator(".tile", has_text="interval").all_inner_texts()
    assert all("simulated" in text for text in rates)
    assert page.locator("#heat tbody th", has_text="acme/").locator(".badge").count() == 0


def test_one_strategy_can_be_shown_and_all_at_once(page: Page) -> None:
    """The choice changes the charts, and is in the address."""
    page.get_by_role("link", name="raw", exact=True).first.click()
    expect(page).to_have_url(re.compile("show=raw"))
    raw = sum(row.strict_ok for row in ROWS if row.cell.strategy == "raw" and not row.control)
    expect(page.locator(".tile").first).to_contain_text(f"{raw} of 210")
    page.get_by_role("link", name="all", exact=True).click()
    expect(page.locator("#heat a.rate")).to_have_count(3 * len(MODELS) * len(SCENARIOS))


def test_the_verdict_can_be_the_original_one(page: Page) -> None:
    """The loose verdict lets more trials pass."""
    page.locator("#kind").select_option("original")
    expect(page.locator("#chart-heat figcaption")).to_contain_text("the original, loose verdict")
    expect(page).to_have_url(re.compile("kind=original"))
    ok = sum(row.original_ok for row in TOOLS if row.cell.model == "acme/small-2")
    row = page.locator("#heat tbody tr", has_text="acme/small-2")
    expect(row.locator("td.all")).to_contain_text(f"{ok}/35")


def test_models_can_be_put_in_order_of_their_rate(page: Page) -> None:
    """Best first; the order is in the address."""
    page.get_by_role("link", name="best first").click()
    expect(page.locator("#heat tbody th").last).to_contain_text("embedded:smollm2-135m")
    expect(page.locator("#heat tbody th").first).to_contain_text("acme/large-2")


def _short(value: float) -> str:
    return re.sub(r"\.0$", "", f"{100 * value:.1f}")


def _points(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{_short(abs(value))}"


def _duration(ms: float | None) -> str:
    if ms is None:
        return "over the limit"
    if ms < 1000:
        return f"{round(ms)} ms"
    s = ms / 1000
    return f"{s:.2f} s" if s < 10 else f"{s:.1f} s" if s < 100 else f"{round(s)} s"
