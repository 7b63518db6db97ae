"""Choosing scenarios by name and preset, and the suite they make up."""

import re
from pathlib import Path

import pytest

from surecall.base.errors import Code, ConfigError
from surecall.evals import scenarios
from surecall.evals.scenarios import (
    PRESETS,
    SCENARIOS,
    StateSuite,
    find_scenario,
    select_scenarios,
)
from surecall.evals.taxonomy import MEANINGS

TYPICAL = (
    "happy_path",
    "missing_workspace_id",
    "type_error_recovery",
    "long_arguments_guard",
    "chat_only",
)
NAMES = tuple(scenario.name for scenario in SCENARIOS)


def test_all_scenarios_are_there_in_order() -> None:
    """Those of the original keep their order, and names are unique."""
    original = [
        "happy_path",
        "partial_success_failure",
        "missing_workspace_id",
        "type_error_recovery",
        "happy_path_parallel",
        "long_arguments_guard",
        "tool_output_truncation",
        "chat_only",
    ]
    assert [name for name in NAMES if name in original] == original
    assert len(set(NAMES)) == len(NAMES) == 19


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("", TYPICAL),
        (" , ", TYPICAL),
        ("default", TYPICAL),
        ("smoke", TYPICAL),
        ("Typical", TYPICAL),
        ("simple", ("happy_path", "chat_only")),
        ("extreme", PRESETS["extreme"]),
        ("all", NAMES),
        ("full", NAMES),
        ("*", NAMES),
        ("chat_only,all", NAMES),
        ("chat_only, happy_path,chat_only", ("happy_path", "chat_only")),
        ("simple,happy_path_parallel", ("happy_path", "happy_path_parallel", "chat_only")),
        ("happy*", ("happy_path", "happy_path_parallel")),
        ("typical,!chat_only", TYPICAL[:-1]),
        ("hard", PRESETS["hard"]),
    ],
)
def test_names_and_presets_mix(expression: str, chosen: tuple[str, ...]) -> None:
    """The order is always that of the catalogue, and nothing is chosen twice."""
    assert select_scenarios(expression) == chosen


@pytest.mark.parametrize("expression", ["hapy_path", "happy_path,nope", "!nope", "xyz*"])
def test_an_unknown_name_is_an_error(expression: str) -> None:
    """Nothing is left out silently, and the closest name is suggested."""
    with pytest.raises(ConfigError) as caught:
        select_scenarios(expression)
    assert caught.value.code == Code.UNKNOWN_SCENARIO
    if expression == "hapy_path":
        assert "'happy_path'" in str(caught.value.hint)


def test_presets_name_scenarios_in_order() -> None:
    """Every member exists."""
    for members in PRESETS.values():
        assert tuple(name for name in NAMES if name in members) == members


def test_a_scenario_is_found_by_its_name() -> None:
    """And only by that."""
    assert find_scenario("chat_only").control
    with pytest.raises(ConfigError, match="UNKNOWN_SCENARIO"):
        find_scenario("default")


def test_every_reason_has_a_meaning_in_one_sentence() -> None:
    """The page of scenarios can explain each of them."""
    for meaning in (text for suite in MEANINGS.values() for text in suite.values()):
        assert meaning.endswith(".")
        assert ". " not in meaning
        assert len(meaning) <= 120


def test_every_reason_that_a_suite_gives_is_in_its_table() -> None:
    """A code that is misspelt would have no meaning and another weight."""
    folder = Path(scenarios.__file__).parent
    used = {
        "state": folder.glob("*.py"),
        "agents": (folder.parent / "suites" / "agents").glob("*.py"),
        "custom": (folder.parent / "suites" / "custom").glob("*.py"),
    }
    for suite, files in used.items():
        text = "".join(file.read_text("utf-8") for file in files)
        found = set(re.findall(r'Reason\(\s*"([A-Z_]+)"', text))
        assert found
        assert found <= MEANINGS[suite].keys()


def test_the_suite_has_one_case_for_each_scenario() -> None:
    """It is what experiments are made from."""
    suite = StateSuite()
    assert suite.name == "state"
    assert tuple(suite.scenarios()) == NAMES
    (case,) = suite.cases("happy_path")
    assert (case.scenario, case.id, case.control) == ("happy_path", "", False)
    assert suite.select("simple") == ("happy_path", "chat_only")


def test_the_version_of_the_suite_follows_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed prompt makes another version; the same texts the same."""
    before = StateSuite().version
    assert before == StateSuite().version
    assert before.startswith("7-")
    monkeypatch.setattr(type(find_scenario("happy_path")), "system", "Something else.")
    assert StateSuite().version != before
