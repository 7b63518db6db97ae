"""The first page: the sentence, the models best first, the map, and the same totals everywhere."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect

from support.eval_rows import MODELS, SCENARIOS, make_rows
from support.reports import file_url, make_info
from surecall.evals.metrics import summarize
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.recommendation import recommend
from surecall.evals.records import Parts, Reason, TrialRow, Verdict
from surecall.evals.report import write_html

from .watched import WatchedPage, show

ROWS = make_rows()
FOUND = recommend(tally_rows(ROWS))


def test_the_sentence_is_that_of_the_rule(page: Page) -> None:
    """The title is the finding, letter by letter."""
    expect(page.locator("h1:visible")).to_have_text(FOUND.sentence)


def test_models_are_best_first_and_simulated_ones_below_a_line(page: Page) -> None:
    """Each with its rate, and `simulated` is said once."""
    rows = page.locator(".board:visible tbody tr:not(.sep)")
    names = rows.locator("th").all_inner_texts()
    assert names == [one.name for one in FOUND.standings.everyone]
    text = page.locator(".view:visible").inner_text()
    assert text.lower().count("simulated") == 1
    for one in FOUND.standings.everyone:
        row = page.locator(".board:visible tr", has_text=one.name)
        expect(row.locator("td.rate .hidden")).to_have_text(f", {one.rate.k} of {one.rate.n}")


def test_every_strategy_and_verdict_has_its_own_answer(page: Page) -> None:
    """A choice changes the whole page, and is in the address."""
    page.locator(".view:visible .seg a", has_text="raw").click()
    expect(page).to_have_url(re.compile("show=raw"))
    expect(page.locator(".kicker:visible")).to_contain_text("strategy raw")
    page.locator(".view:visible .seg a", has_text="original").click()
    expect(page).to_have_url(re.compile("show=raw&kind=original|kind=original&show=raw"))
    found = recommend(tally_rows(ROWS), strategy="raw", judged="original")
    expect(page.locator("h1:visible")).to_have_text(found.sentence)


def test_the_map_has_a_field_for_every_cell(page: Page) -> None:
    """Model times scenario, the control apart; a field leads to its trials."""
    assert page.locator(".heat:visible a.cell").count() == len(MODELS) * len(SCENARIOS)
    passed = sum(
        row.strict_ok
        for row in ROWS
        if (row.cell.model, row.cell.scenario, row.cell.strategy)
        == ("acme/small-2", "happy_path", "production")
    )
    label = f"acme/small-2, happy_path: {passed} of 5 right"
    page.locator(f'.heat:visible a[aria-label="{label}"]').click()
    expect(page.locator("h1:visible")).to_have_text(
        f"acme/small-2: {passed} of 5 right in happy_path"
    )


def test_what_production_gains_is_said_in_one_line(page: Page) -> None:
    """From and to, points with their interval, and how many trials were gained and lost."""
    (one,) = [
        one
        for one in summarize(ROWS).strategies
        if (one.a, one.b, one.model) == ("raw", "production", None)
    ]
    line = page.locator(".view:visible p.gain").first
    expect(line).to_contain_text("production against raw:")
    expect(line).to_contain_text(
        f"of {one.counts.n} trials {one.counts.only_b} were gained and {one.counts.only_a} lost; "
    )


def test_it_can_be_read_without_a_script(browser: Browser, report_path: Path) -> None:
    """Sentence, leaderboard and map are in the file itself; one strategy is shown."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file_url(report_path))
    expect(page.locator("h1:visible")).to_have_text(FOUND.sentence)
    expect(page.locator(".board:visible")).to_have_count(1)
    expect(page.locator(".heat:visible")).to_have_count(1)
    context.close()


# One trial


@pytest.fixture(scope="module")
def judged_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report whose trials have verdicts in three parts, and one endpoint error."""
    (row, other, failed, *_) = make_rows(models=MODELS[2:3], strategies=("production",), trials=1)
    wrong = Verdict.of([Reason("FINAL_TEXT_WRONG", "asked for Done.")])
    right = Verdict.of([])
    rows: list[TrialRow] = [
        replace(row, strict_ok=True, code=None, cut_by_limit=False,
                parts=Parts(state=right, process=right, answer=wrong)),
        replace(other, strict_ok=False, code=None, cut_by_limit=False,
                parts=Parts(state=Verdict.of([Reason("CHANGED_ELSEWHERE")]), process=right)),
        replace(failed, strict_ok=False, outcome="error", code="UPSTREAM_5XX", calls=()),
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("judged") / "report.html"
    return write_html(rows, make_info(rows), path)


def test_a_verdict_has_three_parts(watched: WatchedPage, judged_path: Path) -> None:
    """State, process and answer, each with its word; the title says what happened."""
    watched.open(file_url(judged_path, "#/trial/0"))
    page = watched.page
    expect(page.locator("h1:visible")).to_have_text("Trial 0: did the work, gave the wrong answer")
    words = [" ".join(text.split()) for text in page.locator(".verdict > div").all_inner_texts()]
    assert words == [
        "State right",
        "Process right",
        "Answer wrong FINAL_TEXT_WRONG asked for Done.",
    ]
    show(page, "#/trial/1")
    expect(page.locator("h1:visible")).to_have_text("Trial 1: changed something else")
    expect(page.locator(".verdict > div").last).to_contain_text("not checked")


def test_an_endpoint_error_is_no_verdict(watched: WatchedPage, judged_path: Path) -> None:
    """It is in no rate, counted beside them, and the trial says so."""
    watched.open(file_url(judged_path, "#/trial/2"))
    page = watched.page
    expect(page.locator("h1:visible")).to_have_text("Trial 2: the endpoint failed, UPSTREAM_5XX")
    expect(page.locator(".notice:visible").first).to_contain_text("in no rate")
    show(page, "#/")
    expect(page.locator(".board:visible td[data-label=errors]")).to_have_text("1 without: 50 %")
    expect(page.locator(".board:visible td.rate .hidden")).to_have_text(", 1 of 3")


def test_a_run_of_before_has_two_verdicts(watched: WatchedPage, report_path: Path) -> None:
    """Strict and original, without parts that nobody judged."""
    watched.open(file_url(report_path, "#/trial/93"))
    heads = watched.page.locator(".verdict h2").all_inner_texts()
    assert [head.split()[0] for head in heads] == ["Strict", "Original"]
