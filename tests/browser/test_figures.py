"""The statistics of the page are those of the package."""

from importlib import resources
from typing import Any

import pytest
from playwright.sync_api import Browser

from surecall.evals.stats import (
    PairCounts,
    mcnemar,
    newcombe_paired,
    pass_hat_k,
    survival_quantile,
    wilson,
)

SCRIPT = (
    resources.files("surecall.evals.report").joinpath("assets", "figures.js").read_text("utf-8")
)


def computed(browser: Browser, function: str, inputs: list[Any]) -> list[Any]:
    """Return what a function of the page's statistics says to each input."""
    page = browser.new_page()
    try:
        return page.evaluate(
            f"inputs => {{ {SCRIPT}\nreturn inputs.map((given) => {function}(...given)); }}", inputs
        )
    finally:
        page.close()


def test_wilson_intervals(browser: Browser) -> None:
    """Also at the ends, and for nothing at all."""
    inputs = [(k, n) for n in (0, 1, 2, 5, 10, 40, 1450) for k in {0, 1, n // 2, n} if k <= n]
    for (k, n), found in zip(inputs, computed(browser, "wilson", inputs), strict=True):
        expected = wilson(k, n)
        assert found == pytest.approx([expected.low, expected.high], abs=1e-12)


def test_published_intervals(browser: Browser) -> None:
    """40 of 40 is 91.2 to 100 percent, 36 of 40 is 76.9 to 96.0."""
    inputs = [(40, 40), (36, 40), (10, 10)]
    found = [[round(100 * end, 1) for end in ends] for ends in computed(browser, "wilson", inputs)]
    assert found == [[91.2, 100.0], [76.9, 96.0], [72.2, 100.0]]


def test_paired_differences(browser: Browser) -> None:
    """Interval and exact test of two strategies on the same trials."""
    inputs = [(30, 0, 10, 0), (12, 3, 5, 20), (0, 0, 7, 0), (5, 0, 0, 5), (100, 40, 2, 8)]
    found = computed(browser, "pairedDifference", inputs)
    for given, one in zip(inputs, found, strict=True):
        both, only_a, only_b, neither = given
        counts = PairCounts(both=both, only_a=only_a, only_b=only_b, neither=neither)
        span = newcombe_paired(counts)
        assert one["difference"] == pytest.approx(counts.difference)
        assert [one["low"], one["high"]] == pytest.approx([span.low, span.high], abs=1e-12)
        assert one["p"] == pytest.approx(mcnemar(only_a, only_b).p, rel=1e-9)


def test_exact_tests_of_many_pairs(browser: Browser) -> None:
    """Numbers that overflow when multiplied out are no trouble."""
    inputs = [(0, 0), (0, 10), (1, 1), (3, 11), (700, 812), (5, 1200)]
    found = computed(browser, "mcnemar", inputs)
    expected = [mcnemar(a, b).p for a, b in inputs]
    assert found == pytest.approx(expected, rel=1e-7)
    assert round(found[1], 3) == 0.002


def test_consistency(browser: Browser) -> None:
    """pass^k of every count of right trials."""
    inputs = [(n, c, k) for n in (1, 5, 10) for c in range(n + 1) for k in (1, 2, 5) if k <= n]
    expected = [pass_hat_k(*given) for given in inputs]
    assert computed(browser, "passHatK", inputs) == pytest.approx(expected)


def test_quantiles_of_times_that_were_cut_off(browser: Browser) -> None:
    """A run that was stopped counts as one that takes longer."""
    ended, stopped = [5.0, 1.0, 3.0, 3.0, 8.0, 2.0, 9.0], [4.0, 10.0, 10.0]
    runs = [
        *({"ms": ms, "censored": False} for ms in ended),
        *({"ms": ms, "censored": True} for ms in stopped),
    ]
    shares = [0.1, 0.25, 0.5, 0.6, 0.75, 0.95]
    found = computed(
        browser,
        "((runs, share) => quantile(survivalSteps(runs), share))",
        [(runs, s) for s in shares],
    )
    assert found == [survival_quantile(ended, stopped, share) for share in shares]
    assert found[-1] is None


def test_words_for_figures(browser: Browser) -> None:
    """Percentages without an empty decimal, large numbers in groups, times in their unit."""
    words = [
        ("percent", [1], "100 %"),
        ("percent", [0.8333], "83.3 %"),
        ("percent", [None], "–"),
        ("points", [-0.125], "−12.5"),
        ("count", [1234567], "1,234,567"),
        ("duration", [999.4], "999 ms"),
        ("duration", [0.2], "< 1 ms"),
        ("duration", [1234], "1.23 s"),
        ("duration", [120000], "120 s"),
        ("duration", [None], "over the limit"),
        ("pValue", [0.0004], "p < 0.001"),
        ("moment", [1790000000], "2026-09-21 14:13 UTC"),
        ("plural", [1, "trial"], "1 trial"),
        ("plural", [1450, "trial"], "1,450 trials"),
    ]
    known = "{ percent, points, count, duration, pValue, moment, plural }"
    named = f"((name, given) => ({known})[name](...given))"
    found = computed(browser, named, [(name, given) for name, given, _ in words])
    assert found == [expected for _, _, expected in words]
