"""The filter grammar."""

import re
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import ConfigError
from surecall.models.profiles import STRATEGIES, Catalog, matches_glob, select


@dataclass(frozen=True)
class Item:
    id: str
    tags: tuple[str, ...] = ()


ITEMS = (
    Item("deepseek/v3.2:nitro", ("ds",)),
    Item("google/flash:nitro", ("gemini", "stable")),
    Item("qwen/qwen3-30b:nitro", ("stable",)),
    Item("qwen/qwen3-235b:nitro", ("Stable",)),
    Item("x-ai/grok"),
)


@dataclass(frozen=True)
class Case:
    id: str
    expression: str
    chosen: str
    """Positions in the list above."""


CASES = (
    Case("empty", "", "01234"),
    Case("blank", "  ", "01234"),
    Case("commas-alone", " , ", "01234"),
    Case("all", "all", "01234"),
    Case("full", "FULL", "01234"),
    Case("star", "*", "01234"),
    Case("full-id", "qwen/qwen3-30b:nitro", "2"),
    Case("id-before-colon", "qwen/qwen3-30b", "2"),
    Case("provider", "qwen", "23"),
    Case("tag", "ds", "0"),
    Case("tag-in-another-case", "STABLE", "123"),
    Case("list-order", "x-ai, ds", "04"),
    Case("trailing-comma", "ds,", "0"),
    Case("glob", "qwen/*", "23"),
    Case("glob-crosses-slashes", "*nitro", "0123"),
    Case("glob-inside", "*3*b*", "23"),
    Case("glob-on-tags", "gem*", "1"),
    Case("exclude-alone", "!qwen", "014"),
    Case("excludes-alone", "!qwen,!ds", "14"),
    Case("include-and-exclude", "stable,!qwen/qwen3-30b", "13"),
    Case("exclude-first", "!gemini,stable", "23"),
    Case("all-but", "all,!*nitro", "4"),
    Case("unknown-beside-known", "ds,nothing", "0"),
    Case("exclude-with-space", "stable, ! gemini", "23"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_grammar(case: Case) -> None:
    """Each expression chooses exactly these, in the order of the list."""
    assert select(ITEMS, case.expression) == tuple(ITEMS[int(index)] for index in case.chosen)


@pytest.mark.parametrize("expression", ["nothing", "ds,!deepseek", "!all", "qwen3", "nitro"])
def test_an_empty_choice_is_an_error_that_lists_the_ids(expression: str) -> None:
    """The error names everything there is to choose from."""
    with pytest.raises(ConfigError) as caught:
        select(ITEMS, expression)
    assert caught.value.code == "NOTHING_SELECTED"
    assert str(caught.value.hint).startswith("Known: deepseek/v3.2:nitro, google/flash:nitro")


@pytest.mark.parametrize("expression", ["!", "ds,!", "!!ds", "a!b", "ds gemini"])
def test_a_token_that_cannot_mean_anything_is_refused(expression: str) -> None:
    """A lone or doubled mark and a forgotten comma are errors."""
    with pytest.raises(ConfigError) as caught:
        select(ITEMS, expression)
    assert caught.value.code == "INVALID_FILTER"


def test_strategies_are_chosen_by_the_same_grammar() -> None:
    """Ids and tags work for anything that has them."""
    assert [strategy.id for strategy in select(STRATEGIES, "prod,base")] == [
        "baseline",
        "production",
    ]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("*", "", True),
        ("**", "x", True),
        ("a*b*c", "aXbYc", True),
        ("a*bc*c", "abc", False),
        ("a", "a", True),
        ("a", "ab", False),
        ("[a]", "a", False),
        ("?", "a", False),
    ],
)
def test_globs(pattern: str, text: str, expected: bool) -> None:
    """Only the star is special, and the whole text must fit."""
    assert matches_glob(pattern, text) is expected


def test_a_glob_of_many_stars_ends() -> None:
    """No pattern makes matching explode."""
    assert matches_glob("*a" * 5000 + "*b", "a" * 20_000) is False


@settings(max_examples=200, deadline=None)
@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_globs_agree_with_the_equivalent_expression(pattern: str, text: str) -> None:
    """The matcher accepts what a regular expression with `.*` accepts."""
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert matches_glob(pattern, text) == bool(re.fullmatch(expression, text))


TOKENS = ("stable", "qwen", "google", "*nitro", "gpt*", "minimax/minimax-m2-her", "all", "zzz")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(TOKENS)), max_size=5))
def test_a_choice_is_a_subsequence_of_the_catalog(tokens: list[tuple[bool, str]]) -> None:
    """Nothing is repeated, reordered or invented."""
    models = Catalog.builtin().models
    expression = ",".join(f"!{name}" if excluded else name for excluded, name in tokens)
    try:
        chosen = select(models, expression)
    except ConfigError:
        chosen = ()
    remaining = iter(models)
    assert all(any(item is model for model in remaining) for item in chosen)
