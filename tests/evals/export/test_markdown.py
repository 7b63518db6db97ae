"""The comment for a pull request: short, honest about its counts, and safe."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.trial_rows import row, series
from support.eval_rows import SampleModel, make_rows, seed_sized_rows
from surecall.evals.export import write_markdown
from surecall.evals.export.markdown import MAX_LINES, code_span
from surecall.evals.records import TrialRow

from .stored import HOSTILE, keep_rows, no_body


def page_of(folder: Path, rows: list[TrialRow], **settings: object) -> str:
    """Return the comment on some trials."""
    stored = keep_rows(folder, rows, body=no_body, **settings)  # type: ignore[arg-type]  # passed on
    (path,) = stored.write(write_markdown)
    return path.read_text("utf-8")


def many_of_everything() -> list[TrialRow]:
    """Make more models, strategies and scenarios than fit."""
    models = [
        SampleModel(f"m{n}", 0.1 + n * 0.03, 0.5, 100.0, simulated=n % 2 == 0) for n in range(25)
    ]
    return make_rows(models=models, scenarios=[f"scenario_{n}" for n in range(40)], trials=1)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(make_rows(trials=1), id="three strategies"),
        pytest.param(seed_sized_rows(), id="29 models"),
        pytest.param(many_of_everything(), id="more than fits"),
    ],
)
def test_it_is_never_longer_than_sixty_lines(tmp_path: Path, rows: list[TrialRow]) -> None:
    """However large the matrix, and with every part there; tables are whole."""
    rows[0] = row(index=rows[0].index, fabrications=2, model=rows[0].cell.model)
    page = page_of(tmp_path, rows, units=len(rows) + 1, status="interrupted")
    lines = page.splitlines()
    assert len(lines) <= MAX_LINES == 60
    assert lines.count("</details>") == 1
    assert "why" in page
    assert "rule" in page
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({line.replace("\\|", "").count("|") for line in table.splitlines()}) == 1


def test_rates_stand_with_counts_and_intervals(tmp_path: Path) -> None:
    """One line for each model; 36 of 40 is 77 to 96 percent."""
    rows = series("+" * 36 + "-" * 4, model="acme/large-2")
    page = page_of(tmp_path, rows)
    assert "### Tool calls: 36/40 (77–96 %) right\n" in page
    assert re.search(
        r"^\| `acme/large-2` \| 36/40 \(77–96 %\), p95 [\d,]+ ms \| 36/40 \(77–96 %\) \|$",
        page,
        re.MULTILINE,
    )
    assert "simulated" not in page


def test_strategies_stand_side_by_side_and_are_compared(tmp_path: Path) -> None:
    """The gain is on the same trials, with its interval and p."""
    rows = series("-" * 10 + "+" * 30, strategy="raw")
    rows += series("+" * 40, start=40, strategy="production")
    page = page_of(tmp_path, rows)
    assert "| model | `raw` | `production` |" in page
    assert re.search(
        r"^\| `m` \| 30/40 \(60–86 %\), p95 [\d,]+ ms \| 40/40 \(91–100 %\), p95 [\d,]+ ms \|$",
        page,
        re.MULTILINE,
    )
    assert re.search(
        r"^- `production` against `raw`: \+25\.0 points \[\+\d.*\], 40 pairs; "
        r"`better over all \(p = 0\.002\); better in s 30/40 → 40/40`$",
        page,
        re.MULTILINE,
    )


def test_simulated_models_are_marked(tmp_path: Path) -> None:
    """Wherever their name or rate is."""
    rows = [row(model="zoo:a", simulated=True), row(model="b", index=1)]
    page = page_of(tmp_path, rows)
    assert "| `zoo:a` *simulated* |" in page
    assert "| `b` |" in page
    assert "right *partly simulated*\n" in page
    assert "> Some models here are *simulated*" in page


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    """Nobody takes a part for the whole."""
    page = page_of(tmp_path, [row()], units=1200, status="interrupted")
    assert "**unfinished**, 1 of 1,200 trials" in page


def test_controls_are_not_in_the_rate(tmp_path: Path) -> None:
    """They have a figure of their own."""
    rows = [row(ok=False), row(index=1, scenario="chat_only", control=True)]
    page = page_of(tmp_path, rows)
    assert "### Tool calls: 0/1 (0–79 %) right" in page
    assert "controls without tools 1/1 (21–100 %)" in page
    assert "chat_only" not in page


def test_calls_that_the_model_did_not_make_are_told_in_bold(tmp_path: Path) -> None:
    """They must not happen, so they must not be missed."""
    page = page_of(tmp_path, [row(fabrications=3)])
    assert "**3 calls ran with something the model did not send.**" in page


def test_the_most_common_failures_come_first(tmp_path: Path) -> None:
    """With how often, where, and a trial to look at."""
    rows = [row(ok=False, index=n, trial=n + 1, reason="B" if n else "A") for n in range(3)]
    page = page_of(tmp_path, rows)
    assert "| why 3 trials failed | trials | example |" in page
    first = page.index(
        "| behaviour: `B`, at least one call ran | 2 | trial 1: `draft is not as asked` |"
    )
    assert first < page.index(
        "| behaviour: `A`, at least one call ran | 1 | trial 0: `draft is not as asked` |"
    )


def test_the_worst_models_are_shown_when_there_are_too_many(tmp_path: Path) -> None:
    """What is left out is not worse."""
    rows = [
        row(model=f"m{n}", index=n * 20 + trial, trial=trial, ok=trial <= n)
        for n in range(15)
        for trial in range(1, 16)
    ]
    page = page_of(tmp_path, rows)
    shown = re.findall(r"^\| `m(\d+)` \|", page, re.MULTILINE)
    assert shown == [str(n) for n in range(10)]
    assert "| 5 more, none of them worse | | |" in page


def test_hostile_names_cannot_become_markup(tmp_path: Path) -> None:
    """No tag, mention, cell or line comes out of a name."""
    rows = [row(model=HOSTILE, scenario=HOSTILE, ok=False, reason=HOSTILE, strategy=HOSTILE)]
    page = page_of(tmp_path, rows)
    outside = re.sub(r"(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", page)
    assert "@everyone" in page
    assert "@everyone" not in outside
    assert "<x" not in outside
    assert not re.search(r"[\x00-\x08\x1b\u202e]", page)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_a_code_span_is_one_span_on_one_line(text: str) -> None:
    """The fence occurs at both ends only, and no bar is bare."""
    span = code_span(text)
    fence = re.match("`+", span)
    assert fence is not None
    inside = span[len(fence[0]) : -len(fence[0])]
    assert span.startswith(fence[0])
    assert span.endswith(fence[0])
    assert inside
    assert fence[0] not in inside
    assert len(span.splitlines()) == 1
    assert re.search(r"(?<!\\)\|", inside) is None
