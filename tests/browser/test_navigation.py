"""Moving through the report: filters, order, drill-down, addresses and the history."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from support.eval_rows import MODELS, make_body, make_rows
from support.reports import file_url, make_info, with_bodies
from surecall.evals.records import TrialRow
from surecall.evals.report import write_html

from .watched import WatchedPage, show

ROWS = make_rows()
CHANGED = next(row for row in ROWS if "replace_quotes" in row.saved_by and row.strict_ok)


def shown_trials(page: Page) -> list[int]:
    """Return the indexes in the table of trials."""
    return [
        int(text) for text in page.locator("table.trials tbody td:first-child a").all_inner_texts()
    ]


def tick(page: Page, choice: str) -> None:
    """Choose one value of a filter."""
    page.locator(f'input[data-key="{choice}"]').check()


def indexes(fits: Callable[[TrialRow], bool]) -> list[int]:
    """Return the indexes of the rows that fit."""
    return [row.index for row in ROWS if fits(row)]


def cell_hash(row: TrialRow) -> str:
    """Return the address of the cell of a row."""
    cell = row.cell
    parts = (cell.model, cell.profile, cell.strategy, cell.fallback, cell.suite, cell.scenario)
    return "#/cell/" + "/".join(quote(part, safe="") for part in parts)


# Filters


def test_a_filter_changes_the_table_and_its_counts(page: Page) -> None:
    """A choice leaves the trials that fit, and every other choice says what it would leave."""
    page.get_by_role("link", name="Trials 720").click()
    expect(page.locator("#shown")).to_have_text("720 trials")
    tick(page, "verdict=wrong")
    failed = indexes(lambda row: not row.strict_ok)
    expect(page.locator("#shown")).to_have_text(f"{len(failed)} of 720 trials")
    tick(page, "model=acme/small-2")
    both = indexes(lambda row: not row.strict_ok and row.cell.model == "acme/small-2")
    expect(page.locator("#shown")).to_have_text(f"{len(both)} of 720 trials")
    assert shown_trials(page) == both
    other = page.locator(".facets label", has_text="acme/large-2").locator(".k3")
    would = indexes(lambda row: not row.strict_ok and row.cell.model == "acme/large-2")
    assert other.inner_text() == str(len(would))
    expect(page).to_have_url(re.compile("verdict=wrong"))
    expect(page).to_have_url(re.compile("model=acme%2Fsmall-2"))


def test_a_filter_can_be_taken_back(page: Page) -> None:
    """By its chip, or all at once."""
    show(page, "#/trials")
    tick(page, "model=acme/large-2")
    tick(page, "verdict=wrong")
    page.locator(".chip", has_text="Model").click()
    expect(page.locator(".chip")).to_have_count(1)
    page.get_by_role("link", name="clear filters").click()
    expect(page.locator("#shown")).to_have_text("720 trials")
    expect(page.locator(".facets input:checked")).to_have_count(0)


@dataclass(frozen=True)
class Filter:
    """An address with filters, and the trials it must show."""

    id: str
    query: str
    fits: Callable[[TrialRow], bool]


FILTERS = [
    Filter("scenario", "?scenario=happy_path", lambda row: row.cell.scenario == "happy_path"),
    Filter("strategy", "?strategy=raw", lambda row: row.cell.strategy == "raw"),
    Filter("code", "?failure=NO_TOOL_CALLS", lambda row: row.code == "NO_TOOL_CALLS"),
    Filter("outcome", "?outcome=broke", lambda row: row.outcome == "broke"),
    Filter("rule", "?rule=replace_quotes", lambda row: "replace_quotes" in row.rules),
    Filter("tool", "?tool=state_get", lambda row: bool(row.calls)),
    Filter("original verdict", "?verdict=wrong&kind=original", lambda row: not row.original_ok),
    Filter(
        "two models",
        "?model=zoo%3Asteady&model=acme%2Flarge-2&verdict=wrong",
        lambda row: row.cell.model in {"zoo:steady", "acme/large-2"} and not row.strict_ok,
    ),
    Filter(
        "words",
        "?q=upstream_5xx+SMALL-2",
        lambda row: row.code == "UPSTREAM_5XX" and row.cell.model == "acme/small-2",
    ),
    Filter("nothing", "?q=no+such+words", lambda _: False),
]


@pytest.mark.parametrize("given", FILTERS, ids=lambda given: given.id)
def test_filters_are_in_the_address(watched: WatchedPage, report_path: Path, given: Filter) -> None:
    """An address with filters opens the trials that fit, and no other."""
    watched.open(file_url(report_path, f"#/trials{given.query}"))
    expected = indexes(given.fits)
    text = f"{len(expected)} of 720 trials"
    expect(watched.page.locator("#shown")).to_have_text(text)
    assert shown_trials(watched.page) == expected[:200]


def test_flaky_cases_can_be_chosen(watched: WatchedPage, report_path: Path) -> None:
    """Cases that are right sometimes, but not always."""
    watched.open(file_url(report_path, "#/trials?flaky=sometimes&strategy=production"))
    cases: dict[object, list[bool]] = {}
    for row in ROWS:
        cases.setdefault(row.cell, []).append(row.strict_ok)
    expected = indexes(
        lambda row: row.cell.strategy == "production" and len(set(cases[row.cell])) == 2
    )
    assert expected
    assert shown_trials(watched.page) == expected
    words = watched.page.locator("table.trials tbody td:nth-child(7)").all_inner_texts()
    assert words == ["sometimes"] * len(expected)


def test_words_are_looked_for_while_typing(page: Page) -> None:
    """The table follows, the address too, and the history gets no step for each letter."""
    show(page, "#/trials")
    before = page.evaluate("history.length")
    page.locator("#search").press_sequentially("nothing_patched")
    expected = indexes(lambda row: any(r.code == "NOTHING_PATCHED" for r in row.strict_reasons))
    expect(page.locator("#shown")).to_have_text(f"{len(expected)} of 720 trials")
    expect(page).to_have_url(re.compile("q=nothing_patched"))
    assert page.evaluate("history.length") == before
    assert page.evaluate("document.activeElement.id") == "search"


def test_long_tables_grow_on_demand(page: Page) -> None:
    """200 rows at once, then 200 more."""
    show(page, "#/trials")
    assert len(shown_trials(page)) == 200
    page.get_by_role("button", name="Show 200 more of 520").click()
    assert len(shown_trials(page)) == 400


# Order


def test_columns_sort_both_ways(page: Page) -> None:
    """One click up, another down; the order is in the address and told to readers of the page."""
    show(page, "#/trials?verdict=wrong&model=acme%2Fsmall-2")
    failed = [row for row in ROWS if not row.strict_ok and row.cell.model == "acme/small-2"]
    page.get_by_role("button", name="Time").click()
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("Time ▲")
    assert shown_trials(page) == [r.index for r in sorted(failed, key=lambda r: r.elapsed_ms)]
    page.get_by_role("button", name="Time").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_text("Time ▼")
    assert shown_trials(page) == [
        r.index for r in sorted(failed, key=lambda r: r.elapsed_ms, reverse=True)
    ]
    expect(page).to_have_url(re.compile("sort=-time"))
    page.get_by_role("button", name="Scenario").click()
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("Scenario ▲")
    assert shown_trials(page) == [r.index for r in sorted(failed, key=lambda r: r.cell.scenario)]


# Drill-down


def test_from_a_field_to_a_call_and_back(page: Page) -> None:
    """Cell, trial, turn, call; then back step by step through the history."""
    cell = CHANGED.cell
    start = page.url
    page.locator(".view:visible .seg a", has_text=cell.strategy).click()
    label = f"{cell.model}, {cell.scenario}:"
    page.locator(f'.heat:visible a[aria-label^="{label}"]').click()
    expect(page.locator("h1:visible")).to_contain_text(cell.scenario)
    same = indexes(lambda row: row.cell == cell)
    assert shown_trials(page) == same
    page.locator("table.trials a", has_text=re.compile(rf"^{CHANGED.index}$")).click()
    expect(page.locator("h1:visible")).to_contain_text(f"Trial {CHANGED.index}")
    call = page.locator(".call").last
    call.locator("h3 a").first.click()
    expect(page.locator(".call.target")).to_have_count(1)
    turn = CHANGED.calls[-1].turn
    expect(page).to_have_url(re.compile(f"#/trial/{CHANGED.index}/turn/{turn}/call/0"))
    page.go_back()
    expect(page.locator(".call.target")).to_have_count(0)
    page.go_back()
    expect(page.locator("table.trials tbody tr")).to_have_count(len(same))
    page.go_back()
    page.go_back()
    expect(page.locator(".heat:visible")).to_have_count(1)
    expect(page).to_have_url(start)


def test_a_call_shows_what_was_changed(watched: WatchedPage, report_path: Path) -> None:
    """Received, each receipt with its rule, place, before and after, final form, result."""
    turn = CHANGED.calls[-1].turn
    watched.open(file_url(report_path, f"#/trial/{CHANGED.index}/turn/{turn}/call/0"))
    steps = watched.page.locator(".call.target .lane > li")
    words = [" ".join(text.split()) for text in steps.all_inner_texts()]
    body = make_body(CHANGED).transcript[turn]["calls"][0]
    assert len(words) == 5
    assert words[0].startswith("Received tool_calls")
    assert body["raw"] in words[0]
    assert words[1].startswith(f"Changed {len(body['receipts'])} receipt")
    rows = watched.page.locator(".call.target .receipts li")
    for row, receipt in zip(rows.all(), body["receipts"], strict=True):
        assert row.locator(".rule").inner_text() == receipt["rule"]
        assert row.locator(".where").inner_text() == receipt["place"]
        assert receipt["why"] in row.inner_text()
        assert row.locator(".loss").inner_text() == "lossless"
    expect(rows.first.locator("del")).to_contain_text("'path'")
    expect(rows.first.locator("ins")).to_contain_text('"path"')
    assert words[2] == (
        'Validated the form that ran state_patch { "path": "/draft/foo", "value": "bar" }'
    )
    assert words[3].startswith("Executed ran, 1.3")
    assert words[4].startswith("Result ok, as the model read it")


def test_a_refused_call_shows_why(watched: WatchedPage, report_path: Path) -> None:
    """The code and the words that the model read."""
    row = next(r for r in ROWS if r.calls and r.calls[-1].error_codes == ("ARGUMENTS_INVALID",))
    turn = row.calls[-1].turn
    watched.open(file_url(report_path, f"#/trial/{row.index}/turn/{turn}/call/0"))
    result = watched.page.locator(".call.target .lane > li").last
    expect(result).to_contain_text("not ok")
    expect(watched.page.locator(".call.target .lane")).to_contain_text("did not run")
    expect(result).to_contain_text("ARGUMENTS_INVALID 7 is not of type string.")


def test_the_configuration_in_force_is_shown_with_its_origin(
    watched: WatchedPage, report_path: Path
) -> None:
    """Each option with its value and where it came from."""
    watched.open(file_url(report_path, "#/trial/0"))
    page = watched.page
    page.get_by_text("What was in force").click()
    row = page.locator("tr", has_text="max_tool_args_bytes")
    assert row.locator("th, td").all_inner_texts() == ["max_tool_args_bytes", "200000", "scenario"]


def test_neighbours_follow_the_filter(watched: WatchedPage, report_path: Path) -> None:
    """Next is the next of the trials that were chosen."""
    chosen = indexes(lambda row: row.code == "NO_TOOL_CALLS" and not row.strict_ok)
    watched.open(file_url(report_path, f"#/trial/{chosen[1]}?failure=NO_TOOL_CALLS"))
    page = watched.page
    expect(page.locator(".neighbours")).to_contain_text(f"2 of {len(chosen)}")
    page.locator("#next").click()
    expect(page.locator("h1:visible")).to_contain_text(f"Trial {chosen[2]}")
    page.locator("#previous").click()
    page.locator("#previous").click()
    expect(page.locator("h1:visible")).to_contain_text(f"Trial {chosen[0]}")
    assert page.locator("#previous").count() == 0


def test_a_trial_without_transcript_says_so(
    watched: WatchedPage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What was counted of its calls is shown instead."""
    path = tmp_path_factory.mktemp("bare") / "report.html"
    rows = make_rows(models=MODELS[3:4], trials=1)
    watched.open(file_url(write_html(rows, make_info(rows), path, bodies="none"), "#/trial/0"))
    page = watched.page
    expect(page.locator("#transcript .notice")).to_contain_text("not in this file")
    assert page.locator("#transcript table tbody tr").count() == len(rows[0].calls)


def test_what_the_user_said_to_an_answer_stands_before_the_next_turn(
    watched: WatchedPage, tmp_path: Path
) -> None:
    """A conversation can be read from top to bottom; what the user said is text and no markup."""
    row = next(row for row in ROWS if row.turns > 1)
    body = make_body(row)
    said = [{"role": "user", "content": "And <b>now</b>?"}]
    first, second, *others = body.transcript
    body = replace(body, transcript=(first, {**second, "said": said}, *others))
    path = write_html([(row, body)], make_info([row]), tmp_path / "said.html", bodies="all")
    watched.open(file_url(path, f"#/trial/{row.index}"))
    parts = watched.page.locator("#transcript .given, #transcript .turn")
    expect(parts.nth(3)).to_be_attached()
    kinds = [str(part.get_attribute("class")) for part in parts.all()]
    assert kinds[:4] == ["given", "turn", "given", "turn"]
    expect(parts.nth(2)).to_contain_text("And <b>now</b>?")


# Addresses


@pytest.mark.parametrize(
    ("address", "heading"),
    [
        ("#/trials", "Trials"),
        (cell_hash(CHANGED), CHANGED.cell.scenario),
        (f"#/trial/{CHANGED.index}", f"Trial {CHANGED.index}"),
        (f"#/trial/{CHANGED.index}/turn/0", f"Trial {CHANGED.index}"),
        ("#/cell/no/such/cell", "Nothing here"),
        ("#/trial/99999", "Nothing here"),
        ("#/trial/1e1", "Nothing here"),
        ("#/trial", "Nothing here"),
        ("#/%E0%A4%A/%", "Nothing here"),
        ("#/__proto__/constructor", "Nothing here"),
    ],
)
def test_an_address_opens_its_page(
    watched: WatchedPage, report_path: Path, address: str, heading: str
) -> None:
    """Also one that leads nowhere."""
    watched.open(file_url(report_path, address))
    expect(watched.page.locator("h1:visible")).to_contain_text(heading)


def test_a_turn_is_brought_into_view(watched: WatchedPage, report_path: Path) -> None:
    """The turn of the address is marked and on the screen."""
    watched.open(file_url(report_path, f"#/trial/{CHANGED.index}/turn/1"))
    turn = watched.page.locator("#turn-1")
    expect(turn).to_have_class(re.compile("target"))
    expect(turn).to_be_in_viewport()


def test_how_it_was_measured_has_an_address(watched: WatchedPage, report_path: Path) -> None:
    """It opens with that part in view."""
    watched.open(file_url(report_path, "#how"))
    expect(watched.page.locator("#how")).to_be_in_viewport()


def test_links_can_be_copied(watched: WatchedPage, report_path: Path) -> None:
    """What is copied opens the same call, with the same filters."""
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    turn = CHANGED.calls[-1].turn
    watched.open(file_url(report_path, f"#/trial/{CHANGED.index}?strategy=production"))
    page = watched.page
    call = page.locator(f"#turn-{turn}-call-0")
    call.get_by_role("button", name="Copy link").click()
    expect(page.locator("#say")).to_have_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    path = f"#/trial/{CHANGED.index}/turn/{turn}/call/0?strategy=production"
    assert copied == file_url(report_path, path)


def test_where_the_reader_was_is_found_again(page: Page) -> None:
    """Going back scrolls to where the page was left."""
    show(page, "#/trials")
    page.locator("table.trials tbody tr").nth(150).scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    assert before > 1000
    page.locator("table.trials tbody tr").nth(150).locator("a").first.click()
    expect(page.locator("h1:visible")).to_contain_text("Trial 150")
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(page.locator("table.trials")).to_be_visible()
    assert abs(page.evaluate("scrollY") - before) < 5


def test_every_transcript_can_be_opened(
    watched: WatchedPage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each trial of a run opens without trouble, whatever happened in it."""
    rows = make_rows(models=MODELS[2:], strategies=("production",), trials=1)
    path = tmp_path_factory.mktemp("all") / "report.html"
    page_path = write_html(with_bodies(rows), make_info(rows), path, bodies="all")
    watched.open(file_url(page_path))
    for row in rows:
        show(watched.page, f"#/trial/{row.index}")
        expect(watched.page.locator("h1:visible")).to_contain_text(f"Trial {row.index}")
        expect(watched.page.locator("#transcript:not([aria-busy]) .turn").first).to_be_attached()
