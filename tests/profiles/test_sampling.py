"""Sampling profiles."""

import datetime

import pytest

from surecall.base.errors import ConfigError
from surecall.models.profiles import Catalog, SamplingProfile, select_profiles
from surecall.models.profiles.resolve import applicable

V32 = "deepseek/deepseek-v3.2*"
CHAT = "deepseek/deepseek-chat-v3-*"
FLASH = "google/gemini-2.5-flash*"
GLM = "z-ai/glm-4.7:nitro"
GLM_FLASH = "z-ai/glm-4.7-flash*"

PROFILES: tuple[tuple[str, str, dict[str, float], str], ...] = (
    ("default", "*", {}, "default baseline"),
    (
        "deepseek_v3_2_local_recommended",
        V32,
        {"temperature": 1.0, "top_p": 0.95},
        "deepseek v3_2 recommended",
    ),
    (
        "deepseek_v3_2_general_conversation",
        V32,
        {"temperature": 1.3, "top_p": 0.95},
        "deepseek v3_2 conversation",
    ),
    (
        "deepseek_v3_2_creative_writing",
        V32,
        {"temperature": 1.5, "top_p": 0.95},
        "deepseek v3_2 creative",
    ),
    ("deepseek_chat_t0_8", CHAT, {"temperature": 0.8}, "deepseek chat"),
    ("deepseek_chat_t1_0", CHAT, {"temperature": 1.0}, "deepseek chat"),
    ("grok_default", "x-ai/grok-*", {"temperature": 0.3}, "x_ai grok recommended"),
    ("gemini_2_5_flash_default", FLASH, {"temperature": 1.0}, "google gemini"),
    ("gemini_2_5_flash_creative", FLASH, {"temperature": 1.5}, "google gemini creative"),
    (
        "minimax_m2_1_recommended",
        "minimax/minimax-m2.1*",
        {"temperature": 1.0, "top_p": 0.95, "top_k": 40},
        "minimax recommended",
    ),
    (
        "qwen_recommended",
        "qwen/qwen3-*",
        {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": 0},
        "qwen recommended",
    ),
    ("glm_4_7_recommended", GLM, {"temperature": 1.0, "top_p": 0.95}, "z_ai glm recommended"),
    ("glm_4_7_t0_85", GLM, {"temperature": 0.85, "top_p": 0.95}, "z_ai glm"),
    ("glm_4_7_flash_general", GLM_FLASH, {"temperature": 1.0, "top_p": 0.95}, "z_ai glm flash"),
    (
        "glm_4_7_flash_tool_calling",
        GLM_FLASH,
        {"temperature": 0.7, "top_p": 1.0},
        "z_ai glm flash tool_calling",
    ),
    (
        "kimi_k2_5_instant",
        "moonshotai/kimi-k2.5*",
        {"temperature": 0.6, "top_p": 0.95},
        "moonshot kimi recommended",
    ),
)


def test_the_profiles_in_order() -> None:
    """Every row of the table with its exact parameters."""
    rows = tuple(
        (profile.id, *profile.applies_to, profile.params, " ".join(profile.tags))
        for profile in Catalog.builtin().sampling
    )
    assert rows == PROFILES


@pytest.mark.parametrize(
    ("expression", "model", "chosen"),
    [
        ("", "qwen/qwen3-30b:nitro", ["default", "qwen_recommended"]),
        ("recommended", "qwen/qwen3-30b:nitro", ["qwen_recommended"]),
        ("recommended", "z-ai/glm-4.7:nitro", ["glm_4_7_recommended"]),
        ("recommended", "openai/gpt-5.2:nitro", ["default"]),
        ("glm_4_7_t0_85", "z-ai/glm-4.7-flash:nitro", ["default"]),
        ("glm*,!tool_calling", "z-ai/glm-4.7-flash:nitro", ["glm_4_7_flash_general"]),
        ("default", "x-ai/grok-4.1-fast", ["default"]),
    ],
)
def test_only_profiles_meant_for_the_model_are_chosen(
    expression: str, model: str, chosen: list[str]
) -> None:
    """A model for which none is meant gets `default`."""
    assert [profile.id for profile in select_profiles(expression, model)] == chosen


def test_applicability_can_be_switched_off() -> None:
    """Then everything the filter chooses is returned."""
    chosen = select_profiles("grok,kimi", "openai/gpt-5.2", enforce_applicability=False)
    assert [profile.id for profile in chosen] == ["grok_default", "kimi_k2_5_instant"]


def test_applicable_ignores_case_and_keeps_order() -> None:
    """Globs are compared with the whole name in lower case."""
    found = applicable(Catalog.builtin().sampling, "X-AI/Grok-4.1-fast")
    assert [profile.id for profile in found] == ["default", "grok_default"]


def test_an_unknown_profile_is_an_error() -> None:
    """A filter that chooses nothing never falls back silently."""
    with pytest.raises(ConfigError) as caught:
        select_profiles("grokk", "x-ai/grok-4.1-fast")
    assert caught.value.code == "NOTHING_SELECTED"


def test_without_a_default_profile_nothing_is_invented() -> None:
    """A catalog of one's own may have no `default`."""
    catalog = Catalog(sampling=Catalog.builtin().sampling[1:])
    with pytest.raises(ConfigError) as caught:
        select_profiles("recommended", "openai/gpt-5.2", catalog=catalog)
    assert caught.value.code == "NOTHING_SELECTED"


@pytest.mark.parametrize("key", ["model", "messages", "tools", "tool_choice", "response_format"])
def test_reserved_parameters_are_refused(key: str) -> None:
    """A profile cannot take over the request."""
    with pytest.raises(ConfigError) as caught:
        SamplingProfile(
            id="mine",
            applies_to=("*",),
            params={"temperature": 1, key: None},
            date=datetime.date(2026, 3, 1),
            source="own",
            evidence="own",
        )
    assert caught.value.code == "RESERVED_KEY"
