"""What each strategy has in force, and that nothing else gets in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from surecall.base.errors import ConfigError
from surecall.evals.cases import Contender
from surecall.evals.strategies import (
    OPTIONS_OFF,
    TRANSFORM_FIELDS,
    Settled,
    find_ablation,
    list_ablations,
    settle,
)
from surecall.evals.trial import run_trial
from surecall.loop import Options
from surecall.models.transport import ScriptedTransport, assistant, tool_call
from surecall.reading import ALL_RULES, IDENTITY_RULES, READING_RULES
from surecall.reading.rules import OBJECT_TO_ARGUMENTS
from surecall.text import encode_text

from .desk import DeskCase, attempt, contender, unit

ARGUMENTS = '{"text": "seven", "count": 7}'
FENCED = f"```json\n{ARGUMENTS}\n```"

GLM = Contender(
    label="glm",
    model="z-ai/glm-4.7:nitro",
    provider="openrouter",
    base_url="https://openrouter.ai/api/v1",
)
SMALL = Contender(
    label="small", model="embedded:smollm2-135m", provider="embedded", kind="embedded"
)


def differing(a: Settled, b: Settled) -> dict[str, tuple[Any, Any]]:
    """Return the options and capabilities in which two settlements differ."""
    found: dict[str, tuple[Any, Any]] = {}
    for part in ("options", "capabilities"):
        mine, theirs = a.record[part], b.record[part]
        found |= {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}
    return found


# raw


@dataclass(frozen=True)
class Help:
    """A reply that needs help to become a call."""

    id: str
    reply: Any
    rule: str


HELP = (
    Help("fenced", assistant(None, tool_call("note", FENCED)), "strip_code_fence"),
    Help(
        "double_encoded",
        assistant(None, tool_call("note", '"{\\"text\\": \\"seven\\", \\"count\\": 7}"')),
        "decode_nested_text",
    ),
    Help(
        "coerced",
        assistant(None, tool_call("note", '{"text": "seven", "count": "7"}')),
        "parse_number_text",
    ),
    Help(
        "text",
        f'<tool_call>{{"name": "note", "arguments": {ARGUMENTS}}}</tool_call>',
        "read_call_from_text",
    ),
    Help("name", assistant(None, tool_call("Note", ARGUMENTS)), "resolve_tool_name"),
    Help(
        "python",
        assistant(None, tool_call("note", "{'text': 'seven', 'count': 7}")),
        "replace_quotes",
    ),
)


@pytest.mark.parametrize("case", HELP, ids=lambda case: case.id)
async def test_raw_gives_no_help_and_production_does(case: Help) -> None:
    """The same reply runs nothing under raw, and one call under production, saved by one rule."""
    raw, _ = await attempt([case.reply, "Done."], "raw")
    assert raw.strict_ok is False
    assert [call.executed for call in raw.calls if call.executed] == []
    assert raw.outcome == "broke"
    assert raw.rules == ()

    helped, _ = await attempt([case.reply, "Done."], "production")
    assert helped.strict_ok is True
    assert helped.outcome == "called"
    assert case.rule in helped.saved_by
    assert helped.fabrications == 0


@pytest.mark.parametrize("who", [GLM, SMALL, contender()], ids=["glm", "small", "unknown"])
async def test_nothing_that_helps_is_in_force_under_raw(who: Contender) -> None:
    """No preset, transform, rule, text format, retry, escalation or profile is in force."""
    settled = settle("raw", who)
    options = settled.record["options"]
    assert settled.presets == ()
    assert options["disabled_rules"] == [ALL_RULES, OBJECT_TO_ARGUMENTS]
    assert {name: options[name] for name in OPTIONS_OFF} == dict(OPTIONS_OFF)
    assert [options[field] for field in TRANSFORM_FIELDS.values()] == [[]] * 6
    assert options["request_defaults"] == options["request_overrides"] == {}
    assert set(settled.record["capability_origins"].values()) == {"default"}

    _, body = await attempt(["Done."], "raw", who=who)
    assert body.config["prompting"]["mode"] == "native"
    assert body.config["options"] == options


PLAIN = (
    (
        "text for a number",
        '{"text": "seven", "count": "7"}',
        '/count must be an integer, got the string "7"',
    ),
    (
        "wrapped",
        '{"note": {"text": "seven", "count": 7}}',
        '/ is missing the required property "count"',
    ),
    ("null", '{"text": null, "count": 7}', "/text must be a string, got null"),
    ("double encoded", '"{}"', "The arguments are text ('{}'), not a JSON object."),
    ("blank", "", "The arguments are not valid JSON: the text is empty."),
)


@pytest.mark.parametrize("strategy", ["raw", "naive"])
@pytest.mark.parametrize(
    ("arguments", "error"), [case[1:] for case in PLAIN], ids=[case[0] for case in PLAIN]
)
async def test_a_refusal_without_help_is_the_one_that_a_plain_client_meets(
    strategy: str, arguments: str, error: str
) -> None:
    """JSON and the schema say what is wrong; no rule of ours is named to the model."""
    replies = [assistant(None, tool_call("note", arguments)), "Done."]
    row, body = await attempt(replies, strategy)
    said = encode_text(body.transcript)
    assert [call.executed for call in row.calls] == [False]
    assert error in body.transcript[0]["results"][0]["envelope"]["errors"][0]["message"]
    assert "switched off" not in said
    assert all(f'"{rule}"' not in said for rule in READING_RULES)


async def test_raw_takes_sound_json_as_a_plain_client_does() -> None:
    """The last of two keys, space around it, and a reply that says it was cut."""
    for arguments in (
        '{"text": "x", "text": "seven", "count": 7}',
        ' {"text": "seven", "count": 7}\n',
    ):
        row, _ = await attempt([assistant(None, tool_call("note", arguments)), "Done."], "raw")
        assert (row.strict_ok, row.fabrications, row.rules) == (True, 0, ())


@pytest.mark.parametrize("sent", ["same", ""])
async def test_raw_sends_ids_back_as_they_came(sent: str) -> None:
    """Two calls of one id stay that, and so does a call without one."""
    calls = [{**tool_call("note", ARGUMENTS), "id": sent} for _ in range(2)]
    transport = ScriptedTransport([assistant(None, *calls), "Done."])

    @asynccontextmanager
    async def opened(*_: Any) -> AsyncIterator[ScriptedTransport]:
        yield transport

    await run_trial(unit(), DeskCase(), contender(), opened, settle("raw", contender()))
    messages = transport.requests[1].body["messages"]
    assert [call["id"] for call in messages[-3]["tool_calls"]] == [sent, sent]
    assert [message["tool_call_id"] for message in messages[-2:]] == [sent, sent]


async def test_raw_does_not_ask_again_for_an_empty_answer() -> None:
    """An empty final answer is final, where production asks once more."""
    replies = [assistant(None, tool_call("note", ARGUMENTS)), "", "Done."]
    raw, _ = await attempt(replies, "raw")
    assert (raw.requests, raw.category) == (2, "EMPTY_ASSISTANT_TEXT")
    fixed, _ = await attempt(replies, "production")
    assert (fixed.requests, fixed.saved_by) == (3, ("fix_empty_final",))


def test_options_of_the_experiment_cannot_undo_raw() -> None:
    """What raw switches off stays off; the rest is taken over."""
    wishes = {"fix_empty_final": True, "text_formats": "all", "max_turns": 4}
    settled = settle("raw", GLM, "fallback_on", overrides=wishes)
    options = settled.record["options"]
    assert (options["fix_empty_final"], options["text_formats"]) == (False, "off")
    assert (options["max_turns"], settled.record["origins"]["max_turns"]) == (4, "experiment")


async def test_neither_the_environment_nor_stored_facts_reach_a_trial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Variables, a configuration file and a cache folder change nothing."""
    monkeypatch.setenv("SURECALL_OPTIONS__MAX_TURNS", "1")
    monkeypatch.setenv("SURECALL_PRESET", "text_tool_calls")
    monkeypatch.setenv("SURECALL_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("surecall.toml").write_text("[options]\nfix_empty_final = false\n")
    replies = [assistant(None, tool_call("note", ARGUMENTS)), "Done."]
    row, body = await attempt(replies, "production")
    assert row.strict_ok is True
    assert body.config["options"]["max_turns"] == 12
    assert body.config["options"]["fix_empty_final"] is True


# baseline and production


def test_baseline_and_production_differ_only_where_they_should() -> None:
    """Production adds the model's workaround, text formats, its prompting and escalations."""
    differences = differing(settle("baseline", GLM), settle("production", GLM))
    tags = "assistant_content_tool_call_tags_to_tool_calls"
    assert differences.pop("response_transforms")[1][-1] == tags
    assert differences == {
        "check_output": (False, True),
        "fit_gate": ("off", "auto"),
        "max_escalations": (0, 2),
        "likely_calls": ("never", "by_effect"),
        "text_formats": (False, True),
        "tool_prompting": ("native", "auto"),
    }


def test_production_puts_tools_as_the_model_needs_it() -> None:
    """A model that is shown no tools is asked for an object; baseline sends tools all the same."""
    production, baseline = settle("production", SMALL), settle("baseline", SMALL)
    assert "constrained_tool_calls" in production.presets
    assert production.record["options"]["tool_prompting"] == "constrained"
    assert production.record["capabilities"]["supports_tool_use"] is False
    assert baseline.record["options"]["tool_prompting"] == "native"
    assert baseline.record["capabilities"]["supports_tool_use"] is True
    assert baseline.record["capability_origins"]["supports_tool_use"] == "provider:embedded"


def test_every_option_has_its_origin() -> None:
    """The record names each option and capability, and where each value came from."""
    case = {"max_tool_args_bytes": 300}
    settled = settle("production", GLM, profile="glm_4_7_recommended", case_options=case)
    record = settled.record
    assert sorted(record["options"]) == sorted(Options.__struct_fields__)
    origins = record["origins"]
    assert {name: origins[name] for name in Options.__struct_fields__ if name in origins}
    assert origins["fix_empty_final"] == "preset:default_tool_calling"
    assert origins["text_formats"] == "strategy:production"
    assert origins["request_defaults.temperature"] == "profile:glm_4_7_recommended"
    assert "request_overrides.parallel_tool_calls" not in origins
    assert origins["max_tool_args_bytes"] == "scenario"
    assert origins["max_turns"] == "default"
    assert record["capability_origins"]["text_formats"] == "model:z-ai/glm-4.7:nitro"


def test_a_scenario_wins_over_everything_and_leaves_the_cell_alone() -> None:
    """Nested options are merged; the settlement of the cell stays as it was."""
    settled = settle("production", GLM, overrides={"max_turns": 4})
    wish = {"max_turns": 2, "request_overrides": {"parallel_tool_calls": True}}
    with_case = settled.with_case(wish)
    assert with_case.record["options"]["max_turns"] == 2
    assert with_case.options["request_overrides"] == {"parallel_tool_calls": True}
    assert settled.record["options"]["max_turns"] == 4
    assert settled.with_case(wish) is with_case
    assert with_case.with_case(wish) is with_case


async def test_what_is_recorded_is_what_ran() -> None:
    """The options in the record are those of the trace, also those of the scenario."""
    case = DeskCase(max_turns=3, tool_use_mode="enforced")
    _, body = await attempt(["Hello."], "baseline", case=case, who=GLM, timeout_s=30)
    options = body.config["options"]
    assert (options["max_turns"], options["tool_use_mode"]) == (3, "enforced")
    assert body.config["origins"]["max_turns"] == "scenario"
    assert body.config["timeout_s"] == 30


def test_secrets_in_options_are_not_recorded() -> None:
    """An override that looks like a key is used, but not kept."""
    key = "sk-" + "a1" * 16
    settled = settle("raw", GLM, overrides={"request_overrides": {"user": key}})
    assert settled.options["request_overrides"]["user"] == key
    assert settled.record["options"]["request_overrides"]["user"] == "[redacted]"


def test_fallback_on_and_off_differ_in_one_option() -> None:
    """Whether text is read is all that differs; the workaround for it is left out of both."""
    off, on = settle("production", GLM, "fallback_off"), settle("production", GLM, "fallback_on")
    assert differing(off, on) == {"text_formats": ("off", "all")}
    tags = "assistant_content_tool_call_tags_to_tool_calls"
    assert tags not in on.record["options"]["response_transforms"]
    assert tags in settle("production", GLM).record["options"]["response_transforms"]


def test_a_wire_format_of_another_shape_gets_no_transforms_of_chat_completions() -> None:
    """What cannot be applied is not in force, and the record says why."""
    claude = Contender(label="c", model="claude-x", provider="anthropic")
    name = "assistant_tool_calls_reasoning_content_empty_if_missing"
    settled = settle("production", claude, overrides={"message_transforms": [name]})
    assert settled.protocol == "messages"
    assert settled.record["options"]["message_transforms"] == []
    assert settled.record["origins"]["message_transforms"] == "protocol:messages"


def test_what_reading_repairs_is_repaired_in_every_wire_format() -> None:
    """The names of built-in repairs stay in force, since no shape is edited for them."""
    claude = Contender(label="c", model="claude-x", provider="anthropic")
    options = settle("production", claude).record["options"]
    assert "assistant_tool_calls_object_to_array" in options["response_transforms"]
    assert options["tool_call_transforms"] != []


# ablations


def test_an_ablated_rule_is_all_that_differs() -> None:
    """One rule is off, everything else is as in production."""
    differences = differing(settle("production", GLM), settle("ablate:strip_code_fence", GLM))
    assert differences == {"disabled_rules": ([], ["strip_code_fence"])}


def test_an_ablated_transform_is_all_that_differs() -> None:
    """One item is taken out of one list."""
    name = "assistant_tool_calls_object_to_array"
    production = settle("production", GLM)
    ((field, (before, after)),) = differing(production, settle(f"ablate:{name}", GLM)).items()
    assert field == "response_transforms"
    assert [item for item in before if item != name] == after


@pytest.mark.parametrize("name", OPTIONS_OFF)
def test_an_ablated_option_is_all_that_differs(name: str) -> None:
    """One option has its off value, or had it already."""
    differences = differing(settle("production", GLM), settle(f"ablate:{name}", GLM))
    assert set(differences) <= {name}
    assert settle(f"ablate:{name}", GLM).record["options"][name] == OPTIONS_OFF[name]


def test_without_its_prompting_a_model_is_sent_tools_all_the_same() -> None:
    """That it is known to see none goes with it, or the run would be refused."""
    differences = differing(settle("production", SMALL), settle("ablate:tool_prompting", SMALL))
    assert differences == {
        "supports_tool_use": (False, True),
        "tool_prompting": ("constrained", "native"),
    }


def test_an_ablated_preset_is_left_out() -> None:
    """Only what the preset alone set is gone."""
    ablated = settle("ablate:constrained_tool_calls", SMALL)
    differences = differing(settle("production", SMALL), ablated)
    assert differences == {"tool_prompting": ("constrained", "auto")}


@pytest.mark.parametrize("case", HELP, ids=lambda case: case.id)
async def test_the_rule_that_saved_a_trial_loses_it_when_ablated(case: Help) -> None:
    """Attribution and ablation agree."""
    without, _ = await attempt([case.reply, "Done."], f"ablate:{case.rule}")
    assert without.strict_ok is False
    assert not any(call.executed for call in without.calls)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        pytest.param("ablate:strip_code_fense", "strip_code_fence", id="rule"),
        pytest.param("prodution", "production", id="strategy"),
    ],
)
def test_an_unknown_strategy_is_an_error_with_a_suggestion(name: str, hint: str) -> None:
    """Nothing is ever ignored."""
    with pytest.raises(ConfigError) as caught:
        settle(name, GLM)
    assert caught.value.code == "INVALID_OPTION"
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("given", [{"fallback": "maybe"}, {"profile": "defualt"}])
def test_an_unknown_fallback_or_profile_is_an_error(given: dict[str, str]) -> None:
    """Nothing is ever ignored."""
    with pytest.raises(ConfigError, match="INVALID_OPTION"):
        settle("raw", GLM, **given)


def test_ablations_have_names_that_mean_one_thing() -> None:
    """No name stands for two; the rules about ids are not among them."""
    names = [ablation.name for ablation in list_ablations()]
    assert len(names) == len(set(names))
    assert not IDENTITY_RULES.intersection(names)
    assert find_ablation("Strip-Code-Fence").id == "ablate:strip_code_fence"
