"""The variables of the original experiment, read as options of today."""

from typing import Any

import msgspec
import pytest

from support.eval_fakes import ORIGINAL_PROFILES
from surecall.base.errors import ConfigError
from surecall.evals.cases import Contender
from surecall.evals.original import (
    OriginalSettings,
    read_original_settings,
)
from surecall.evals.planning import Wanted
from surecall.evals.strategies import settle
from surecall.models.config import load_config


def read(**variables: str) -> OriginalSettings:
    """Read variables named without their prefix."""
    return read_original_settings(
        {f"OPENROUTER_{name}": value for name, value in variables.items()}
    )


def test_without_variables_nothing_is_said() -> None:
    """Defaults are those of surecall, not of the original; blanks and others are left alone."""
    assert read_original_settings({"OPENROUTER_TRIALS": " "}) == OriginalSettings()
    assert read_original_settings({"VERBOSE": "2"}) == OriginalSettings(verbose=2)
    assert read(API_KEY="sk-something") == OriginalSettings(has_key=True)


@pytest.mark.parametrize(
    ("variables", "axes"),
    [
        pytest.param({"TRIALS": "5"}, {"trials": 5}, id="trials"),
        pytest.param(
            {"MODEL_FILTER": "stable,!qwen"}, {"models": "openrouter:stable,!qwen"}, id="models"
        ),
        pytest.param({"SCENARIOS": "extreme"}, {"scenarios": "extreme"}, id="scenarios"),
        pytest.param({"STRATEGY_FILTER": "raw"}, {"strategies": "raw"}, id="strategies"),
        pytest.param(
            {"STRATEGY_MATRIX": "1", "STRATEGY_FILTER": "raw"},
            {"strategies": "baseline,production"},
            id="strategy matrix wins",
        ),
        pytest.param({"STRATEGY_MATRIX": "0"}, {}, id="no strategy matrix"),
        pytest.param({"SAMPLING_PROFILE_FILTER": "qwen"}, {"profiles": "qwen"}, id="profiles"),
        pytest.param(
            {"SAMPLING_PROFILE_ENFORCE_APPLICABILITY": "0"},
            {"enforce_applicability": False},
            id="applicability",
        ),
        pytest.param(
            {"ENABLE_CONTENT_TAG_TOOL_CALL_FALLBACK": "1"}, {"fallbacks": "on"}, id="fallback"
        ),
        pytest.param({"FALLBACK_MATRIX": "1"}, {"fallbacks": "both"}, id="fallback matrix"),
        pytest.param(
            {"EVAL_PRESET": "full", "TRIALS": "2"},
            {
                "trials": 2,
                "models": "openrouter:all",
                "profiles": ORIGINAL_PROFILES,
                "scenarios": "all",
                "strategies": "raw,baseline,production",
            },
            id="full fills what is unset",
        ),
    ],
)
def test_axes(variables: dict[str, str], axes: dict[str, Any]) -> None:
    """Each becomes a field of the axes, and can be used as such."""
    found = read(**variables)
    assert found.axes == axes
    assert msgspec.structs.asdict(Wanted(**found.axes)).items() >= axes.items()


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        pytest.param({"TOOL_USE_MODE": "Enforced"}, {"tool_use_mode": "enforced"}, id="mode"),
        pytest.param(
            {"TOOL_FAILURE_POLICY": "tolerated"}, {"tool_failure_policy": "tolerated"}, id="policy"
        ),
        pytest.param(
            {"TOOL_CALLING_FALLBACK_RETRY_COUNT": "2"}, {"fallback_retry_count": 2}, id="retries"
        ),
        pytest.param({"FIX_EMPTY_FINAL": "0"}, {"fix_empty_final": False}, id="empty final"),
        pytest.param({"TOOL_ALLOWLIST": "a, b"}, {"tool_allowlist": ["a", "b"]}, id="allowlist"),
        pytest.param({"TOOL_ALLOWLIST": "all"}, {}, id="no allowlist"),
        pytest.param(
            {"LLM_OPTIONS_DEFAULTS_JSON": '{"seed": 3, "top_k": 9}', "TEMPERATURE": "0.5",
             "TOP_K": "4", "TOP_P": "1", "MIN_P": "0.1"},
            {"request_defaults": {"seed": 3, "top_k": 4, "temperature": 0.5, "top_p": 1,
                                  "min_p": 0.1}},
            id="sampling",
        ),
        pytest.param(
            {"ROUTE": "fallback", "TRANSFORMS": "none", "PROVIDER_ONLY": "x,y",
             "REQUEST_OVERRIDES_JSON": '{"provider": {"sort": "price"}, "user": "u"}'},
            {"request_overrides": {"provider": {"sort": "price", "only": ["x", "y"]},
                                   "user": "u", "route": "fallback", "transforms": []}},
            id="routing",
        ),
        pytest.param({"TRANSFORMS": "auto"}, {}, id="automatic transforms"),
    ],
)  # fmt: skip
def test_options(variables: dict[str, str], options: dict[str, Any]) -> None:
    """Each becomes an option that a strategy accepts."""
    found = read(**variables)
    assert found.options == options
    settled = settle("production", Contender(label="m", model="m"), overrides=found.options)
    assert settled.strategy == "production"


def test_settings() -> None:
    """Address, headers and deadlines become settings; 0 leaves a deadline alone."""
    found = read(
        BASE_URL="https://gateway.example/api",
        HTTP_REFERER="https://example.com",
        X_TITLE="Trials",
        CLIENT_TIMEOUT="90",
        OPEN_TIMEOUT="2.5",
        READ_TIMEOUT="0",
        JOBS="4",
    )
    config = load_config(environ={}, overrides=found.settings, search=False)
    assert (config.base_url, config.api_prefix) == ("https://gateway.example/api/v1", None)
    assert config.headers == {"http-referer": "https://example.com", "x-title": "Trials"}
    assert (config.deadlines["total_s"], config.deadlines["connect_s"]) == (90, 2.5)
    assert "idle_s" not in config.deadlines
    documented = read(OPEN_TIMEOUT="3", READ_TIMEOUT="7", CLIENT_READ_TIMEOUT="8").settings
    deadlines = load_config(environ={}, overrides=documented, search=False).deadlines
    assert (deadlines["connect_s"], deadlines["idle_s"]) == (3, 8)
    assert found.concurrency == 4
    for address, prefix, wanted in (
        ("https://gateway.example/v1", None, "https://gateway.example/v1"),
        ("https://x.example/", "/v2", "https://x.example/v2"),
        ("https://x.example/api", "", "https://x.example/api"),
        (None, "/v1", "https://openrouter.ai/api/v1"),
    ):
        given = {"BASE_URL": address, "API_PREFIX": prefix}
        found = read(**{name: value for name, value in given.items() if value is not None})
        assert found.settings["base_url"] == wanted


def test_what_changes_nothing_is_told() -> None:
    """Variables without a meaning today are noted, not ignored in silence."""
    found = read(HTTP_ADAPTER="httpx", PRODUCTION_AUTO_SAMPLING_PROFILE="1")
    assert [note.split()[0] for note in found.notes] == [
        "OPENROUTER_HTTP_ADAPTER",
        "OPENROUTER_PRODUCTION_AUTO_SAMPLING_PROFILE",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRIALS", "0"),
        ("TRIALS", "many"),
        ("JOBS", "-1"),
        ("TOOL_USE_MODE", "forced"),
        ("TOOL_FAILURE_POLICY", "strict"),
        ("FIX_EMPTY_FINAL", "maybe"),
        ("TEMPERATURE", "hot"),
        ("TEMPERATURE", "true"),
        ("TOP_K", "1.5"),
        ("LLM_OPTIONS_DEFAULTS_JSON", "[1]"),
        ("REQUEST_OVERRIDES_JSON", "{"),
        ("CLIENT_TIMEOUT", "-1"),
        ("EVAL_PRESET", "half"),
        ("TOOL_CALLING_FALLBACK_RETRY_COUNT", "x"),
    ],
)
def test_a_value_that_cannot_be_used_is_an_error(name: str, value: str) -> None:
    """The original took some of these for another value; here each is refused by name."""
    with pytest.raises(ConfigError) as caught:
        read(**{name: value})
    assert caught.value.code == "INVALID_CONFIG"
    assert f"OPENROUTER_{name}" in caught.value.message


def test_the_variables_of_the_process_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a mapping the environment is read."""
    monkeypatch.setenv("OPENROUTER_TRIALS", "3")
    assert read_original_settings().axes["trials"] == 3
