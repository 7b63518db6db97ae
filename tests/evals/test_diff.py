"""Two runs compared trial by trial."""

import re
from html.parser import HTMLParser

import msgspec
import pytest

from surecall.base.errors import Code, ConfigError
from surecall.evals.diff import DiffResult, TrialPair, diff_rows
from surecall.evals.diff_page import first_divergence, render_diff_html
from surecall.evals.records import TrialBody
from surecall.evals.stats import PairCounts, newcombe_paired

from .trial_rows import row, series


def test_every_failure_is_sorted_by_what_changed() -> None:
    """Newly failing, newly passing, another reason, still failing; what works is not listed."""
    before = [
        row(True, trial=1, index=1),
        row(True, trial=2, index=2),
        row(False, trial=3, index=3),
        row(False, trial=4, index=4, reason="DRAFT_WRONG"),
        row(False, trial=5, index=5, reason="DRAFT_WRONG"),
    ]
    now = [
        row(True, trial=1, index=11),
        row(False, trial=2, index=12, reason="READ_NOT_FIRST"),
        row(True, trial=3, index=13),
        row(False, trial=4, index=14, reason="READ_NOT_FIRST"),
        row(False, trial=5, index=15, reason="DRAFT_WRONG"),
    ]
    result = diff_rows(before, now)
    assert [(pair.change, pair.trial, pair.a.index, pair.b.index) for pair in result.pairs] == [
        ("newly_failing", 2, 2, 12),
        ("newly_passing", 3, 3, 13),
        ("changed_reason", 4, 4, 14),
        ("still_failing", 5, 5, 15),
    ]
    [worse] = result.having("newly_failing")
    assert (worse.a.ok, worse.b.ok, worse.a.failure) == (True, False, None)
    assert worse.b.failure is not None
    assert (worse.b.failure.code, worse.b.reason) == ("READ_NOT_FIRST", "draft is not as asked")


def test_the_difference_is_tested_on_pairs() -> None:
    """Counts, exact McNemar and Newcombe's interval belong to the same pairs."""
    overall = diff_rows(series("+" * 40), series("+" * 30 + "-" * 10)).overall
    assert overall.counts == PairCounts(both=30, only_a=10)
    assert round(overall.p, 3) == 0.002
    assert overall.interval == newcombe_paired(overall.counts)
    assert (overall.verdict, overall.needed) == ("worse", None)


def test_a_pair_with_an_endpoint_error_is_listed_and_wrong() -> None:
    """Whichever side it is on, as in a gate on the same pairs."""
    before, now = series("++++"), series("++-+")
    before[0] = msgspec.structs.replace(before[0], outcome="error", strict_ok=False)
    now[1] = msgspec.structs.replace(now[1], outcome="error", strict_ok=False)
    result = diff_rows(before, now)
    assert (result.overall.counts, result.errors) == (
        PairCounts(both=1, only_a=2, only_b=1),
        2,
    )
    assert [pair.trial for pair in result.pairs] == [before[0].trial, now[1].trial, now[2].trial]


def test_an_improvement_is_called_better() -> None:
    """The other way round."""
    assert diff_rows(series("-" * 12), series("+" * 12)).overall.verdict == "better"


def test_a_difference_on_too_few_trials_is_called_that() -> None:
    """36 of 40 against 40 of 40 cannot be told apart; about how many would be needed is said."""
    overall = diff_rows(series("+" * 40), series("+" * 36 + "-" * 4)).overall
    assert (overall.verdict, overall.needed) == ("undecided", 90)


def test_equal_results_show_no_difference() -> None:
    """Nothing changed, nothing is claimed."""
    overall = diff_rows(series("+-"), series("+-")).overall
    assert (overall.verdict, overall.p, overall.counts.difference) == (
        "no difference seen",
        1.0,
        0.0,
    )


def test_trials_without_a_partner_are_counted() -> None:
    """Only what both runs have is compared."""
    result = diff_rows(
        [*series("+++"), *series("+", model="gone")], [*series("-+"), *series("++", model="new")]
    )
    assert (result.overall.counts.n, result.only_a, result.only_b) == (2, 2, 2)


def test_controls_are_compared_apart() -> None:
    """They are listed and marked, and no rate of tools has them."""
    before = [*series("++"), *series("+", scenario="chat_only", control=True)]
    now = [*series("++"), *series("-", scenario="chat_only", control=True)]
    result = diff_rows(before, now)
    assert result.overall.counts == PairCounts(both=2)
    assert result.controls is not None
    assert result.controls.counts == PairCounts(only_a=1)
    assert [pair.control for pair in result.pairs] == [True]
    assert result.groups == ()
    assert diff_rows(series("+"), series("+")).controls is None


def test_groups_are_made_for_axes_with_several_values() -> None:
    """Two models give two groups; an axis with one value gives none."""
    before = [*series("++", model="x"), *series("++", model="y")]
    now = [*series("++", model="x"), *series("--", model="y")]
    groups = diff_rows(before, now).groups
    assert [(one.axis, one.value, one.counts.only_a) for one in groups] == [
        ("model", "x", 0),
        ("model", "y", 2),
    ]


def test_an_axis_can_be_set_aside() -> None:
    """Runs of two strategies are paired on everything else."""
    before, now = series("+-", strategy="raw"), series("++", strategy="production")
    result = diff_rows(before, now, across=("strategy",))
    assert result.overall.counts == PairCounts(both=1, only_b=1)
    assert result.across == ("strategy",)
    assert result.pairs[0].cell.strategy == "production"


def test_runs_without_a_common_trial_are_refused() -> None:
    """The message says what pairs are made of, the hint what to set aside."""
    with pytest.raises(ConfigError, match="no trial in common") as caught:
        diff_rows(series("+", model="x"), series("+", model="y"), a="k1", b="k2")
    assert caught.value.code == Code.RUNS_NOT_COMPARABLE
    assert "--across" in (caught.value.hint or "")


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_trial_with_several_partners_is_refused(side: str) -> None:
    """Setting aside an axis that has two values in one run would pair anything."""
    many = [*series("+", strategy="raw"), *series("+", strategy="production")]
    one = series("+", strategy="raw")
    rows = (many, one) if side == "a" else (one, many)
    with pytest.raises(ConfigError, match="several trials that look the same") as caught:
        diff_rows(*rows, across=("strategy",))
    assert caught.value.code == Code.RUNS_NOT_COMPARABLE


def test_an_unknown_axis_is_refused_with_a_suggestion() -> None:
    """Setting aside what does not exist is a slip."""
    with pytest.raises(ConfigError, match="Did you mean 'strategy'"):
        diff_rows(series("+"), series("+"), across=("stratgy",))


def test_the_loose_verdict_can_be_compared() -> None:
    """Its own reasons explain it."""
    before = [row(trial=1, strict_ok=False)]
    now = [row(False, trial=1, reason="TEXT_WRONG")]
    result = diff_rows(before, now, judged="original")
    [pair] = result.pairs
    assert (result.judged, pair.change) == ("original", "newly_failing")
    assert pair.b.failure is not None
    assert pair.b.failure.code == "TEXT_WRONG"
    assert diff_rows(before, now).pairs[0].change == "changed_reason"


def test_simulated_pairs_are_marked() -> None:
    """Where either side is simulated, so is the comparison."""
    result = diff_rows(series("++", simulated=True), series("++"))
    assert result.overall.simulated == "all"
    mixed = diff_rows(series("++"), [*series("+"), row(trial=2, simulated=True)])
    assert mixed.overall.simulated == "some"


def test_a_result_survives_json() -> None:
    """The whole can be written and read back."""
    result = diff_rows(series("+-"), series("-+"), config=["package: 1 → 2"])
    assert msgspec.json.decode(msgspec.json.encode(result), type=DiffResult) == result


# The page


class Page(HTMLParser):
    """Collects the tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_says_what_changed() -> None:
    """Figures, configuration and pairs are all on it."""
    result = diff_rows(
        series("+" * 40),
        series("+" * 30 + "-" * 10),
        a="k1",
        b="k2",
        config=["package: 0.1.0 → 0.2.0"],
    )
    page = Page(render_diff_html(result))
    assert "k1 → k2" in page.text
    assert "40/40" in page.text
    assert "30/40" in page.text
    assert "-25.0 [-40.2, -11.1]" in page.text
    assert "0.00195" in page.text
    assert "package: 0.1.0 → 0.2.0" in page.text
    assert "Newly failing: 10" in page.text
    assert "ok → DRAFT_WRONG" in page.text
    assert ("id", "pair-30-30") in page.attributes


def test_nothing_from_a_model_becomes_markup() -> None:
    """Hostile names and reasons are shown letter by letter, and the policy allows no script."""
    hostile = '"><script>alert(1)</script><img src=x onerror=alert(2)>\ud800'
    before = [row(trial=1, model=hostile, case=hostile)]
    now = [row(False, trial=1, model=hostile, case=hostile, error=hostile, reason=hostile)]
    result = diff_rows(before, now, a=hostile, b=hostile, config=[hostile])
    body = TrialBody(index=0, transcript=({"raw": {"content": hostile}},))
    text = render_diff_html(result, bodies=lambda _: (body, None))
    text.encode()
    page = Page(text)
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    assert not any(name.startswith("on") or name in {"src", "href"} for name, _ in page.attributes)
    assert "<script>alert(1)</script>" in page.text
    [policy] = re.findall(r"default-src 'none'; style-src 'sha256-[^']+'", text)
    assert policy


def test_simulated_figures_are_labelled_on_the_page() -> None:
    """Nobody takes a made-up model for a real one."""
    result = diff_rows(series("+", simulated=True), series("+", simulated=True))
    assert "all (simulated)" in Page(render_diff_html(result)).text


def turn(text: str, *calls: tuple[str, dict[str, object]], call_id: str = "c") -> dict[str, object]:
    """Return a turn of a transcript."""
    made = [{"id": call_id, "name": name, "arguments": arguments} for name, arguments in calls]
    return {"raw": {"content": text}, "calls": made, "elapsed_ms": len(call_id)}


def test_transcripts_stand_side_by_side_up_to_a_number() -> None:
    """The first difference is marked; later pairs are listed without."""
    asked: list[TrialPair] = []

    def bodies(pair: TrialPair) -> tuple[TrialBody, TrialBody]:
        asked.append(pair)
        same = turn("", ("state_get", {}))
        return (
            TrialBody(index=1, transcript=(same, turn("Done."))),
            TrialBody(index=2, transcript=(same, turn("Sorry."), turn("Really."))),
        )

    result = diff_rows(series("+++"), series("---"))
    page = Page(render_diff_html(result, bodies=bodies, max_transcripts=2))
    assert len(asked) == 2
    assert page.text.count("turn 2 first difference") == 4
    assert page.text.count("(no such turn)") == 2
    assert "Sorry." in page.text


@pytest.mark.parametrize(
    ("a", "b", "place"),
    [
        pytest.param([], [], None, id="nothing"),
        pytest.param([turn("x")], [turn("x")], None, id="equal"),
        pytest.param(
            [turn("", ("f", {"a": 1}), call_id="c1")],
            [turn("", ("f", {"a": 1}), call_id="call_2")],
            None,
            id="ids and times do not count",
        ),
        pytest.param([turn("x"), turn("y")], [turn("x"), turn("z")], 1, id="other text"),
        pytest.param([turn("", ("f", {"a": 1}))], [turn("", ("f", {"a": 2}))], 0, id="arguments"),
        pytest.param([turn("", ("f", {}))], [turn("", ("g", {}))], 0, id="another tool"),
        pytest.param([turn("x")], [turn("x"), turn("y")], 1, id="one goes on"),
        pytest.param([{}], [{"raw": "text"}], 0, id="any shape"),
    ],
)
def test_the_first_divergent_turn_is_found(
    a: list[dict[str, object]], b: list[dict[str, object]], place: int | None
) -> None:
    """What the model said and called decides."""
    assert first_divergence(a, b) == place
