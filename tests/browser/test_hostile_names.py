"""Names that mean something to JavaScript are names like any other."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from support.reports import file_url, make_info
from surecall.evals.records import CallFact, Cell, Manifest, Reason, TrialBody, TrialRow
from surecall.evals.report import write_html

from .watched import WatchedPage, show

NAMES = (
    "constructor", "__proto__", "prototype", "toString", "hasOwnProperty", "valueOf",
    "isPrototypeOf", "__defineGetter__", "length", "name", "then", "undefined", "null", "NaN",
    "0", "once", "broke", "pass", "always", "model", "default",
)  # fmt: skip
LONG = {"text": "long " * 400}
"""Large enough to be kept once for all transcripts."""


def named_row(index: int, name: str) -> TrialRow:
    """Use the name in every dimension; every second trial is right."""
    reasons = () if index % 2 == 0 else (Reason(name, name),)
    return TrialRow(
        index=index,
        cell=Cell(
            model=name,
            profile=name,
            strategy=name,
            fallback=name,
            suite=name,
            scenario=name,
        ),
        case=name,
        original_ok=not reasons,
        strict_ok=not reasons,
        original_reasons=reasons,
        strict_reasons=reasons,
        outcome="called",
        category=name if reasons else None,
        code=name if reasons else None,
        elapsed_ms=5.0 + index,
        turns=1,
        calls=(
            CallFact(
                turn=0,
                name=name,
                format=name,
                structured=True,
                state=name,
                valid_before=False,
                valid_after=True,
                changed=True,
                executed=True,
                rules=(name,),
                error_codes=(name,),
                error_kinds=(name,),
                arguments_bytes=40,
            ),
        ),
        rules=(name,),
        saved_by=() if reasons else (name,),
        text=name,
    )


def named_body(index: int, name: str) -> TrialBody:
    """Use the name as a key wherever there are keys, for small parts and for large ones."""
    turn: dict[str, Any] = {
        "turn": 0,
        "raw": {"content": "said", name: name},
        "calls": [{"id": name, "name": name, "format": name, "arguments": {name: name}}],
        "results": [{"call_id": name, "name": name, "ok": True, "text": name}],
    }
    return TrialBody(
        index=index,
        request={"messages": [{"role": name, "content": "asked"}], name: LONG},
        config={
            "options": {name: 5, "max_turns": 7},
            "origins": {"max_turns": "caller"},
            "capabilities": {name: LONG},
            name: LONG,
        },
        transcript=(turn,),
        state={name: name},
    )


@pytest.fixture(scope="module")
def named_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report in which every name is one of those, everywhere."""
    trials = [(named_row(i, name), named_body(i, name)) for i, name in enumerate(NAMES)]
    manifest = Manifest(
        units=len(trials),
        axes={name: name for name in NAMES},
        suites={name: name for name in NAMES},
        options={name: name for name in NAMES},
    )
    info = make_info([], manifest=manifest, units=len(trials), done=len(trials))
    path = tmp_path_factory.mktemp("named") / "report.html"
    return write_html(trials, info, path, bodies="all")


FACETS = (
    "failure",
    "model",
    "scenario",
    "strategy",
    "profile",
    "fallback",
    "suite",
    "rule",
    "tool",
)
CHOICES = """
() => [...document.querySelectorAll("aside.facets li")].map((li) => [
  li.querySelector("input").dataset.key,
  li.querySelector(".name").textContent,
  li.querySelector(".k3").textContent,
])
"""


def test_every_name_is_a_choice_with_its_number(watched: WatchedPage, named_path: Path) -> None:
    """The overview is drawn, and each filter shows the names as they are, once each."""
    watched.open(file_url(named_path))
    page = watched.page
    assert page.locator(".view").count() == 2 * len(NAMES)
    for name in NAMES:
        show(page, f"#/?show={quote(name)}")
        expect(page.locator(".heat:visible tbody th")).to_have_text(" · ".join([name] * 3))
    show(page, "#/trials")
    shown = {key: (name, number) for key, name, number in page.evaluate(CHOICES)}
    for facet in FACETS:
        expected = NAMES[1::2] if facet == "failure" else NAMES
        assert {key for key in shown if key.startswith(f"{facet}=")} == {
            f"{facet}={name}" for name in expected
        }
        for name in expected:
            assert shown[f"{facet}={name}"] == (name, "1")
    assert shown["verdict=right"][1] == str(len(NAMES[::2]))


def test_every_name_can_be_chosen_and_opened(watched: WatchedPage, named_path: Path) -> None:
    """Filters leave the one trial, cells are found by their names, and searching finds them."""
    watched.open(file_url(named_path, "#/trials"))
    page = watched.page
    expect(page.locator("table.trials tbody tr")).to_have_count(len(NAMES))
    for name in NAMES:
        for facet in ("model", "tool", "rule"):
            show(page, f"#/trials?{facet}={quote(name)}")
            expect(page.locator("table.trials tbody tr")).to_have_count(1)
            expect(page.locator(".chip")).to_contain_text(f": {name}")
        show(page, "#/cell/" + "/".join([quote(name)] * 6))
        expect(page.locator("table.trials tbody tr")).to_have_count(1)
        show(page, f"#/trials?sort={quote(name)}&show={quote(name)}")
        expect(page.locator("table.trials tbody tr")).to_have_count(len(NAMES))


def test_every_name_is_shown_in_its_transcript(watched: WatchedPage, named_path: Path) -> None:
    """Keys of a request, of options and of what was left behind are there with their values."""
    watched.open(file_url(named_path))
    page = watched.page
    for index, name in enumerate(NAMES):
        show(page, f"#/trial/{index}")
        expect(page.locator("#transcript:not([aria-busy])")).to_have_count(1)
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        state = page.get_by_role("region", name="State", exact=True)
        assert state.text_content() == f'{{\n  "{name}": "{name}"\n}}'
        options = page.locator("#transcript table", has_text="Options").locator("tbody tr")
        found = options.evaluate_all(
            "rows => rows.map((r) => [...r.cells].map((c) => c.textContent))"
        )
        assert sorted(found) == sorted([[name, "5", ""], ["max_turns", "7", "caller"]])
        strategy = page.get_by_role("region", name="Strategy", exact=True).text_content() or ""
        assert f'"{name}": {{\n    "text": "long long' in strategy
        long = page.locator("#transcript table", has_text="Capabilities").locator("tbody tr")
        assert long.locator("th").text_content() == name
        assert (long.text_content() or "").count("long ") == 400
