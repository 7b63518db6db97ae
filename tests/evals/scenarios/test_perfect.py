"""A model that makes no mistakes passes every scenario, however the loop is set."""

from typing import Any

import pytest

from surecall.evals.scenarios import SCENARIOS, Scenario, find_scenario

from .playing import perfect, play

each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.name)

RAW = {
    "disabled_rules": ("*",),
    "text_formats": "off",
    "fix_empty_final": False,
    "tool_prompting": "native",
}


@each_scenario
@pytest.mark.parametrize("seed", [0, 1, 99])
async def test_a_perfect_model_passes_both_verdicts(scenario: Scenario, seed: int) -> None:
    """What is ideal is right, for every set-up that chance makes."""
    played = await play(scenario, perfect(scenario), seed=seed)
    assert (played.original_codes, played.strict_codes) == ([], [])
    assert played.grades.original.ok
    assert played.grades.strict.ok
    assert False not in played.grades.exact


@each_scenario
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(RAW, id="nothing is mended"),
        pytest.param({"stream": True}, id="streamed"),
        pytest.param({"tool_result_transforms": ["tool_result_compact_envelope"]}, id="compact"),
    ],
)
async def test_a_perfect_model_needs_no_help(scenario: Scenario, options: dict[str, Any]) -> None:
    """The verdicts do not depend on how the loop is set."""
    played = await play(scenario, perfect(scenario), **options)
    assert (played.original_codes, played.strict_codes) == ([], [])


@each_scenario
def test_the_same_seed_prepares_the_same_trial(scenario: Scenario) -> None:
    """Ids, words and keys follow from the seed; state is never shared."""
    one, same, other = scenario.prepare(5), scenario.prepare(5), scenario.prepare(6)
    assert one.messages == same.messages
    assert one.state.before == same.state.before
    assert one.state.before.id != other.state.before.id
    assert one.state.store is not same.state.store


@each_scenario
def test_a_scenario_says_what_it_is_about(scenario: Scenario) -> None:
    """Each has a text for every column of its page; no token limit starves anybody."""
    prepared = scenario.prepare(0)
    for text in (scenario.asks, scenario.loose, scenario.strict):
        assert text.endswith((".", ".`"))
    assert prepared.system
    sent = prepared.options.get("request_overrides", {})
    assert not {"max_tokens", "max_completion_tokens"} & set(sent)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("long_arguments_guard", {"max_tool_args_bytes": 300}),
        (
            "tool_output_truncation",
            {"max_tool_output_bytes": 5000, "tool_failure_policy": "tolerated"},
        ),
        ("happy_path_parallel", {"request_overrides": {"parallel_tool_calls": True}}),
        ("partial_success_failure", {"request_overrides": {"parallel_tool_calls": True}}),
        ("chat_only", {"tool_use_mode": "disabled"}),
        ("no_call_needed", {"tool_use_mode": "relaxed"}),
        ("happy_path", {"tool_use_mode": "enforced"}),
    ],
)
def test_options_are_those_of_the_original(name: str, options: dict[str, Any]) -> None:
    """Limits, parallel calls and modes are set where the scenario needs them."""
    prepared = find_scenario(name).prepare(0)
    assert options.items() <= {**prepared.defaults, **prepared.options}.items()


async def test_what_is_kept_of_the_state_is_small_and_telling() -> None:
    """The draft, the versions and the log are there; long texts are shortened."""
    scenario = find_scenario("tool_output_truncation")
    played = await play(scenario, perfect(scenario))
    kept = played.grades.state
    assert kept["draft"]["foo"] == "bar"
    assert len(kept["draft"]["big"]) < 300
    assert kept["versions"] == {"facts_etag": "facts:0", "draft_etag": "draft:1"}
    assert [(call["tool"], call["ok"]) for call in kept["log"]] == [
        ("state_get", True),
        ("state_patch", True),
    ]


def test_only_the_control_is_a_control() -> None:
    """Scenarios with tools count as such, also when no call is wanted."""
    assert [scenario.name for scenario in SCENARIOS if scenario.control] == ["chat_only"]
