"""Presets: what each sets, and which a model gets."""

from typing import Any

import pytest

from surecall.base.errors import ConfigError
from surecall.models.profiles import Catalog, find_preset, merge_presets, presets_for
from surecall.models.profiles.entries import PRESET_FIELDS

STRUCTURAL = {
    "response_transforms": [
        "assistant_function_call_to_tool_calls",
        "assistant_tool_calls_object_to_array",
        "assistant_tool_calls_arguments_json_string_if_hash",
    ],
    "tool_call_transforms": ["assistant_tool_calls_arguments_blank_to_empty_object"],
}
REASONING = {
    "message_transforms": ["assistant_tool_calls_reasoning_content_empty_if_missing"],
}
SIGNATURE = {
    "message_transforms": ["assistant_tool_calls_signature_skip_validator_if_missing"],
}
TAGS = {"response_transforms": ["assistant_content_tool_call_tags_to_tool_calls"]}

PRESETS: dict[str, dict[str, Any]] = {
    "default_tool_calling": {
        "tool_use_mode": "relaxed",
        "fix_empty_final": True,
        "fix_empty_final_disable_tools": True,
        "fallback_retry_count": 0,
        **STRUCTURAL,
    },
    "openai_compatible_reliability": STRUCTURAL,
    "openrouter": {
        **STRUCTURAL,
        "structured_request_overrides": {"provider": {"require_parameters": True}},
        "prompt_only_request_overrides": {"provider": {"require_parameters": False}},
    },
    "openai": STRUCTURAL,
    "volcano_engine": STRUCTURAL,
    "original": {"request_overrides": {"parallel_tool_calls": False}},
    "content_tag_tool_call_fallback": TAGS,
    "deepseek_openrouter_compat": REASONING,
    "gemini_openrouter_compat": SIGNATURE,
    "taught_tool_calls": {"tool_prompting": "taught", "max_parse_retries": 1},
    "constrained_tool_calls": {"tool_prompting": "constrained", "max_parse_retries": 1},
    "text_tool_calls": {"text_formats": "all"},
    "no_text_loops": {
        "request_defaults": {"dry_multiplier": 0.8, "dry_sequence_breakers": [":"]},
        "overrides_after_cut": {"temperature": 0.8},
    },
    "tool_use_disabled": {"tool_use_mode": "disabled"},
    "json_object_first": {"output_modes": ["json_object", "prompt_only"]},
    "prompt_only_output": {"output_modes": ["prompt_only"]},
}


def test_each_preset_sets_exactly_what_it_names() -> None:
    """No preset carries a mode or a retry count that is not its business."""
    assert {preset.name: preset.fields for preset in Catalog.builtin().presets} == PRESETS


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("deepseek_compat", "deepseek_openrouter_compat"),
        ("gemini_compat", "gemini_openrouter_compat"),
        ("content_tag_fallback", "content_tag_tool_call_fallback"),
        ("disable_tool_use", "tool_use_disabled"),
        ("tools_disabled", "tool_use_disabled"),
        ("open_router", "openrouter"),
        ("volcano", "volcano_engine"),
        ("volcanoengine", "volcano_engine"),
        (" Volcano-Engine ", "volcano_engine"),
    ],
)
def test_aliases(alias: str, name: str) -> None:
    """Other names lead to the same preset, whatever their case and hyphens."""
    assert find_preset(alias).name == name


def test_an_unknown_preset_is_an_error_with_a_suggestion() -> None:
    """A misspelt preset is never an empty one."""
    with pytest.raises(ConfigError, match="Did you mean 'tool_use_disabled'") as caught:
        find_preset("tool_use_disable")
    assert caught.value.code == "UNKNOWN_PRESET"


DEFAULT = "default_tool_calling"


@pytest.mark.parametrize(
    ("provider", "model", "names"),
    [
        (None, None, [DEFAULT]),
        ("acme", "acme/one", [DEFAULT]),
        ("openai", "gpt-5.2", [DEFAULT, "openai"]),
        ("volcano", "doubao", [DEFAULT, "volcano_engine"]),
        ("openrouter", "openai/gpt-5.2:nitro", [DEFAULT, "openrouter"]),
        (
            "openrouter",
            "deepseek/deepseek-v3.2:nitro",
            [DEFAULT, "openrouter", "deepseek_openrouter_compat"],
        ),
        ("openrouter", "deepseek/new", [DEFAULT, "openrouter", "deepseek_openrouter_compat"]),
        (None, "Deepseek-Reasoner", [DEFAULT, "deepseek_openrouter_compat"]),
        (None, "google/gemini-9", [DEFAULT, "gemini_openrouter_compat"]),
        (None, "google/gemma-3", [DEFAULT]),
        (None, "minimax/minimax-m2-her", [DEFAULT, "tool_use_disabled"]),
        (None, "minimax/minimax-m2-heron", [DEFAULT]),
        ("openrouter", "z-ai/glm-4.7", [DEFAULT, "openrouter", "content_tag_tool_call_fallback"]),
    ],
)
def test_which_presets_a_model_gets(
    provider: str | None, model: str | None, names: list[str]
) -> None:
    """The default, the provider's, then the workarounds by entry and by rule, each once."""
    assert [preset.name for preset in presets_for(provider, model)] == names


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        ("raw", []),
        ("baseline", [DEFAULT, "openrouter"]),
        ("production", [DEFAULT, "openrouter", "gemini_openrouter_compat"]),
    ],
)
def test_a_strategy_decides_which_presets_count(strategy: str, names: list[str]) -> None:
    """Raw is really raw, and baseline has no workarounds."""
    found = presets_for("openrouter", "google/gemini-2.5-flash:nitro", strategy=strategy)
    assert [preset.name for preset in found] == names


def test_an_unknown_strategy_is_an_error() -> None:
    """The closest name is suggested."""
    with pytest.raises(ConfigError, match="Did you mean 'baseline'"):
        presets_for(None, None, strategy="base-line")


@pytest.mark.parametrize("model", [model.id for model in Catalog.builtin().models])
def test_no_preset_turns_relaxed_into_enforced(model: str) -> None:
    """The mode comes from the default, or from the preset whose purpose it is."""
    merged = merge_presets(preset.layer for preset in presets_for("openrouter", model))
    disabled = model == "minimax/minimax-m2-her"
    assert merged.values["tool_use_mode"] == ("disabled" if disabled else "relaxed")
    origin = "tool_use_disabled" if disabled else "default_tool_calling"
    assert merged.origins["tool_use_mode"] == f"preset:{origin}"
    assert merged.origins["fix_empty_final"] == "preset:default_tool_calling"


@pytest.mark.parametrize("model", [model.id for model in Catalog.builtin().models])
def test_what_was_set_before_survives_a_workaround(model: str) -> None:
    """A workaround laid over own settings resets none of them."""
    own: dict[str, Any] = {"fix_empty_final": False, "fallback_retry_count": 2}
    workarounds = presets_for(None, model)[1:]
    merged = merge_presets([("own", own), *(preset.layer for preset in workarounds)])
    assert {name: merged.values[name] for name in own} == own
    assert {merged.origins[name] for name in own} == {"own"}


def test_the_fields_a_preset_may_set() -> None:
    """All options with a documented meaning can be named."""
    assert {
        "tool_use_mode",
        "tool_failure_policy",
        "tool_allowlist",
        "tool_denylist",
        "fix_empty_final",
        "fix_empty_final_user_text",
        "fix_empty_final_disable_tools",
        "fallback_retry_count",
        "max_tool_args_bytes",
        "max_tool_output_bytes",
        "max_tool_calls_per_turn",
        "tool_choice",
        "message_transforms",
        "tool_transforms",
        "response_transforms",
        "tool_call_transforms",
        "tool_result_transforms",
        "request_overrides",
        "skip_bad_events",
    } <= PRESET_FIELDS
