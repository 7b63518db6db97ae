"""Text from outside stays text: it is shown as it is, runs nowhere and loads nothing."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from support.eval_rows import make_rows
from support.reports import file_url, make_info
from surecall.evals.records import CallFact, Cell, Manifest, Reason, TrialBody, TrialRow
from surecall.evals.report import write_html

from .payloads import PAYLOADS
from .watched import WatchedPage, show

SHORT = PAYLOADS[2]


def hostile_row(index: int, text: str) -> TrialRow:
    """Put the text wherever a row has one."""
    return TrialRow(
        index=index,
        cell=Cell(
            model=f"m {text}",
            profile=f"p {text}",
            strategy=f"s {text}" if index == 0 else "production",
            fallback=f"f {text}" if index == 1 else "best_effort",
            suite=f"u {text}" if index == 2 else "state",
            scenario=f"x {text}" if index % 10 == 0 else "happy_path",
        ),
        case=f"c {text}",
        original_ok=False,
        strict_ok=index % 7 == 0,
        simulated=index % 2 == 0,
        original_reasons=(Reason(f"rc {text}", f"rm {text}"),),
        strict_reasons=(Reason(f"rc {text}", f"rm {text}"),),
        outcome="called",
        category=f"cat {text}",
        error=f"e {text}",
        elapsed_ms=5.0 + index,
        turns=1,
        calls=(
            CallFact(
                turn=0,
                name=f"tool {text}",
                format=f"format {text}",
                structured=True,
                state=f"state {text}",
                valid_before=False,
                valid_after=True,
                changed=True,
                executed=True,
                rules=(f"rule {text}",),
                error_codes=(f"ec {text}",),
                error_kinds=(f"ek {text}",),
                arguments_bytes=40,
            ),
        ),
        rules=(f"rule {text}",),
        saved_by=(f"rule {text}",) if index % 7 == 0 else (),
        text=f"t {text}",
    )


def hostile_body(index: int, text: str) -> TrialBody:
    """Put the text wherever a body has one, keys included."""
    error = {"code": f"ec {text}", "message": f"em {text}", "hint": f"eh {text}", "path": text}
    receipt = {"rule": text, "place": text, "before": text, "after": {text: text}, "why": text}
    call = {
        "id": text,
        "name": f"tool {text}",
        "format": f"format {text}",
        "state": f"state {text}",
        "raw": f'{{"a": "{text}"}}',
        "arguments": {text: [text]},
        "receipts": [receipt, receipt | {"lossless": False, "before": None}],
        "errors": [error],
    }
    result = {
        "call_id": text,
        "name": text,
        "ok": False,
        "executed": False,
        "envelope": {"ok": False, "tool_name": text, "errors": [error]},
        "text": f"r {text}",
    }
    turn: dict[str, Any] = {
        "turn": 0,
        "mode": text,
        "answered_by": text,
        "raw": {"content": f"content {text}", text: text},
        "finish_reason": text,
        "failures": [{"code": text, "message": text, "status": 500}],
        "defects": [{"code": text, "message": text, "place": text}],
        "receipts": [receipt],
        "calls": [call],
        "ignored": [call],
        "results": [result, result | {"call_id": "another"}],
    }
    return TrialBody(
        index=index,
        request={
            "system": f"system {text}",
            "messages": [{"role": text, "content": f"message {text}"}],
            "tools": [{"name": text, "description": text, "parameters": {text: text}}],
        },
        config={"options": {text: text}, "origins": {text: text}, "presets": [text], text: text},
        transcript=(turn,),
        state={text: text},
    )


@pytest.fixture(scope="module")
def hostile_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report in which every text is hostile."""
    trials = [(hostile_row(i, text), hostile_body(i, text)) for i, text in enumerate(PAYLOADS)]
    manifest = Manifest(
        units=len(trials),
        axes={SHORT: SHORT},
        suites={SHORT: SHORT},
        options={SHORT: [SHORT]},
        package=SHORT,
        python=SHORT,
        command=SHORT,
        engine=SHORT,
    )
    info = make_info([], id=SHORT, tags=(SHORT,), manifest=manifest, units=len(trials))
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    return write_html(trials, info, path, bodies="all")


def assert_unharmed(page: Page) -> None:
    """Nothing ran, and no element is there that the page itself never makes."""
    assert page.evaluate("window.__pwned") is None
    strange = "iframe, object, embed, img, video, audio, marquee, math, base, body style, body link"
    assert page.locator(strange).count() == 0
    assert page.locator("script").count() == 3
    assert page.locator("meta[http-equiv=refresh]").count() == 0
    own = "[...document.links].filter((a) => !a.getAttribute('href').startsWith('#')).length"
    assert page.evaluate(own) == 0


def text_of(page: Page, selector: str) -> str:
    """Return the text inside an element, as it stands in the document."""
    return page.locator(selector).evaluate("node => node.textContent")


READ_TRIAL = """async (index) => {
  const find = (selector) => document.querySelector(selector);
  const isShown = () => [...document.querySelectorAll("h1")].some(
    (head) => head.checkVisibility() && head.textContent.includes(`Trial ${index}:`));
  location.hash = `#/trial/${index}/turn/0/call/0`;
  while (!isShown() || !find("#transcript:not([aria-busy]) .call.target")) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  return find("#main").textContent;
}"""
"""Opens a trial with all its folds, and returns its text; one trip to the browser."""


def test_there_are_many_different_texts() -> None:
    """At least 150, so that every kind of escape meets every kind of vector."""
    assert len(PAYLOADS) >= 150
    assert len(set(PAYLOADS)) == len(PAYLOADS)


def test_charts_and_tables_show_hostile_names_as_text(
    watched: WatchedPage, hostile_path: Path
) -> None:
    """Models, scenarios, rules and codes stand in the page letter by letter."""
    watched.open(file_url(hostile_path))
    page = watched.page
    text = text_of(page, "#main")
    for payload in PAYLOADS:
        assert f"m {payload} · p {payload}" in text
    assert text_of(page, "#how").count(SHORT) >= 5
    assert page.title() == f"surecall {SHORT}"
    assert_unharmed(page)
    show(page, "#/trials")
    expect(page.locator("table.trials")).to_be_visible()
    table = text_of(page, "table.trials")
    assert all(f"m {payload}" in table for payload in PAYLOADS[:200])
    assert_unharmed(page)


def test_transcripts_show_hostile_text_as_text(watched: WatchedPage, hostile_path: Path) -> None:
    """Every trial is opened with every fold open: all places show the text, and nothing acts."""
    watched.open(file_url(hostile_path))
    page = watched.page
    places = (
        "m {}", "rm {}", "e {}", "t {}", "system {}", "message {}", "content {}", "tool {}",
        "format {}", "state {}", "em {}", "eh {}", "r {}",
    )  # fmt: skip
    for index, payload in enumerate(PAYLOADS):
        text = page.evaluate(READ_TRIAL, index)
        missing = [place for place in places if place.format(payload) not in text]
        assert missing == [], (index, payload)
        assert page.evaluate("window.__pwned") is None
    assert_unharmed(page)


def test_cells_and_filters_with_hostile_names_can_be_used(
    watched: WatchedPage, hostile_path: Path
) -> None:
    """Links and filters built from such names lead where they should."""
    watched.open(file_url(hostile_path, "#/trials"))
    page = watched.page
    for index, payload in list(enumerate(PAYLOADS))[::12]:
        show(page, f"#/trials?model={quote(f'm {payload}', safe='')}")
        expect(page.locator("table.trials tbody tr")).to_have_count(1)
        page.locator("table.trials tbody tr td a").nth(1).click()
        expect(page.locator("h1:visible")).to_contain_text(f"m {payload}")
        expect(page.locator("table.trials td:first-child a")).to_have_text(str(index))
    assert_unharmed(page)


def test_hostile_addresses_do_nothing(watched: WatchedPage, hostile_path: Path) -> None:
    """What stands in the address is text as well."""
    watched.open(file_url(hostile_path))
    page = watched.page
    for payload in PAYLOADS[::16]:
        part = quote(payload, safe="")
        for address in (
            f"#/{payload}",
            f"#/trial/{part}",
            f"#/cell/{part}",
            f"#/cell/{part}/{part}",
        ):
            show(page, address)
        show(page, f"#/trials?q={part}&model={part}&sort={part}&show={part}&kind={part}")
        expect(page.locator("#shown")).to_contain_text(f"of {len(PAYLOADS)} trials")
        expect(page.locator("#chips")).to_contain_text(f"Text: {' '.join(payload.split())}")
    assert_unharmed(page)


def test_nothing_but_the_file_is_ever_asked_for(watched: WatchedPage, report_path: Path) -> None:
    """Overview, table, cell and trial make one request together: the one for the file."""
    watched.open(file_url(report_path))
    page = watched.page
    page.route("**/*", lambda route: route.abort())
    for address in ("#/trials", "#/trial/93", "#/trial/93/turn/1", "#how", "#/"):
        show(page, address)
        expect(page.locator("[aria-busy]")).to_have_count(0)
    asked = [url for url in watched.requests if not url.startswith("data:")]
    assert asked == [file_url(report_path)]


def test_the_policy_stops_what_is_not_of_the_page(watched: WatchedPage, report_path: Path) -> None:
    """Even a script or style that got in would not act, and markup cannot be made of text."""
    watched.open(file_url(report_path))
    page = watched.page
    outcome = page.evaluate(
        """() => {
          const script = document.createElement("script");
          try { script.textContent = "window.__pwned = 1"; } catch { }
          document.body.append(script);
          const style = document.createElement("style");
          style.textContent = "body { display: none }";
          document.body.append(style);
          const box = document.createElement("div");
          let markup = "made";
          try { box.innerHTML = "<b>x</b>"; } catch { markup = "refused"; }
          return [window.__pwned ?? null, getComputedStyle(document.body).display, markup];
        }"""
    )
    assert outcome == [None, "block", "refused"]
    assert watched.troubles
    assert all(
        "Content Security Policy" in one or "trusted" in one.lower() for one in watched.troubles
    )
    watched.troubles.clear()


def test_unseen_characters_are_made_visible(
    watched: WatchedPage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Text that turns around or hides its neighbours is shown with the names of its characters."""
    (row, *_) = make_rows(trials=1)
    body = TrialBody(index=row.index, request={"system": "a\u202eb\u200bc\x00d\ne"})
    path = tmp_path_factory.mktemp("unseen") / "report.html"
    watched.open(
        file_url(write_html([(row, body)], make_info([row]), path, bodies="all"), "#/trial/0")
    )
    block = watched.page.locator(".given pre").first
    expect(block.locator(".unseen")).to_have_text(["U+202E", "U+200B", "U+0000"])
    assert block.evaluate("node => node.textContent") == "aU+202EbU+200BcU+0000d\ne"
