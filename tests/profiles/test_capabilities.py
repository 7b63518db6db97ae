"""Capabilities and their origins."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from surecall.base.errors import ConfigError
from surecall.models.profiles import Capabilities, Catalog, Findings, resolve_capabilities

ALL = {"supports_parallel_tools": True, "json_schema": True}
NO_FORMAT = {"supports_parallel_tools": True, "json_object": False}


@dataclass(frozen=True)
class Case:
    id: str
    provider: str | None
    model: str | None
    differs: dict[str, Any] = field(default_factory=dict[str, Any])
    """Only what is not the default."""


FIELDS_OF_REQUESTS = {
    "request_fields",
    "takes_developer",
    "takes_repeated_roles",
    "takes_user_after_result",
}
"""What endpoints take of the requests of other clients; it has a test of its own."""
NEW_LIMIT = {"max_tokens_field": "max_completion_tokens"}
CASES = (
    Case("nothing-known", None, None),
    Case("unknown-provider", "acme", "acme/one"),
    Case("openai", "openai", "gpt-5.2", {**ALL, **NEW_LIMIT, "decision_model": "gpt-6-luna"}),
    Case("azure", "azure_openai", "my-deployment", NEW_LIMIT),
    Case("openrouter", "openrouter", "qwen/qwen3-30b", ALL),
    Case("alias", "Open-Router", "qwen/qwen3-30b", ALL),
    Case("no-model", "openrouter", None, ALL),
    Case("anthropic", "openrouter", "anthropic/claude-x", {"supports_parallel_tools": True}),
    Case("openai-over-openrouter", "openrouter", "openai/gpt-5.2:nitro", NO_FORMAT),
    Case(
        "minimax",
        "openrouter",
        "minimax/minimax-m2.1:nitro",
        {**NO_FORMAT, "text_formats": True},
    ),
    Case(
        "minimax-her",
        "open_router",
        "minimax/minimax-m2-her",
        {**NO_FORMAT, "supports_tool_use": False},
    ),
    Case("rules-of-another-provider", "acme", "minimax/minimax-m2-her"),
    Case("volcano", "volcanoengine", "doubao", {"supports_parallel_tools": True}),
    Case("gemini", "google", "gemini-x", {"json_schema": True}),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_the_catalog_says(case: Case) -> None:
    """Defaults, then the provider, then rules about the model."""
    found = resolve_capabilities(case.provider, case.model).capabilities
    default = Capabilities()
    names = [name for name in Capabilities.__struct_fields__ if name not in FIELDS_OF_REQUESTS]
    differs = {
        name: getattr(found, name)
        for name in names
        if getattr(found, name) != getattr(default, name)
    }
    assert differs == case.differs


@pytest.mark.parametrize(
    ("provider", "model", "taken", "fields"),
    [
        (None, "m", (False, False, False), {"top_k": True, "store": False, "user": True}),
        ("openai", "gpt-5", (True, True, True), {"top_k": False, "store": True, "metadata": True}),
        ("azure", "own", (True, True, True), {"top_k": False, "prompt_cache_key": True}),
        ("openrouter", "x/y", (False, True, True), {"cache_control": True, "store": False}),
        ("groq", "m", (False, False, False), {"top_k": False, "user": True}),
        ("mistral", "small", (False, False, False), {"metadata": True, "user": False}),
        ("ollama", "qwen3:4b", (False, False, True), {"store": False, "top_k": True}),
        ("vllm", "own", (False, False, False), {"cache_control": False}),
    ],
)
def test_what_endpoints_take_of_requests(
    provider: str | None, model: str, taken: tuple[bool, ...], fields: dict[str, bool]
) -> None:
    """Little where nothing is known, and all that is known to be taken."""
    found = resolve_capabilities(provider, model).capabilities
    turns = (found.takes_developer, found.takes_repeated_roles, found.takes_user_after_result)
    assert turns == taken
    assert {name: name in found.request_fields for name in fields} == fields


@pytest.mark.parametrize("model", ["mistral-small", "Ministral-3-14B", "x/mixtral-8x7b:free"])
def test_some_models_want_ids_of_their_own_and_turns_that_alternate(model: str) -> None:
    """Whoever serves them, their template is the same."""
    found = resolve_capabilities(None, model)
    assert found.capabilities.tool_id_pattern == "^[a-zA-Z0-9]{9}$"
    assert found.origins["takes_user_after_result"].startswith("rule:")


def test_the_defaults_are_conservative() -> None:
    """Tools, JSON objects and streaming are assumed; nothing else is."""
    assert Capabilities() == Capabilities(
        supports_tool_use=True,
        supports_parallel_tools=False,
        tool_id_pattern=None,
        allows_midturn_system=False,
        json_object=True,
        json_schema=False,
        streaming=True,
        context_window_tokens=None,
        reserved_response_tokens=0,
        text_formats=False,
        strict_tools=False,
        grammar=False,
        tool_choices=("auto",),
        stream_equals_whole=None,
        needs_reasoning_echo=None,
    )


def test_every_field_says_where_it_comes_from() -> None:
    """The last layer that names a field is its origin."""
    resolved = resolve_capabilities(
        "openrouter", "minimax/minimax-m2-her", {"context_window_tokens": 9000, "streaming": False}
    )
    assert resolved.origins == {
        "supports_tool_use": "rule:openrouter_minimax_m2_her",
        "supports_parallel_tools": "provider:openrouter",
        "tool_id_pattern": "default",
        "allows_midturn_system": "default",
        "json_stability": "default",
        "json_object": "rule:openrouter_minimax",
        "json_schema": "rule:openrouter_minimax",
        "streaming": "override",
        "context_window_tokens": "override",
        "reserved_response_tokens": "default",
        "text_formats": "default",
        "strict_tools": "default",
        "grammar": "default",
        "schema_field": "default",
        "tool_choices": "default",
        "honours_parallel_false": "default",
        "stream_equals_whole": "default",
        "unique_call_ids": "default",
        "empty_arguments": "default",
        "needs_reasoning_echo": "default",
        "false_call_rate": "default",
        "fit_separation": "default",
        "fit_threshold": "default",
        "decision_model": "default",
        "decision_path": "default",
        "max_tokens_field": "default",
        "takes_developer": "default",
        "takes_repeated_roles": "provider:openrouter",
        "takes_user_after_result": "rule:minimax_turns",
        "request_fields": "provider:openrouter",
        "unsupported_fields": "default",
    }
    assert resolved.capabilities.context_window_tokens == 9000


def test_a_model_entry_wins_over_its_provider(tmp_path: Path) -> None:
    """What is said about one model is nearer than what is said about all."""
    file = tmp_path / "own.toml"
    file.write_text(
        '[[models]]\nid = "openai/mini"\ncapabilities = { json_schema = true }\n'
        'date = 2026-03-01\nsource = "own"\nevidence = "own"\n',
        "utf-8",
    )
    resolved = resolve_capabilities("openrouter", "openai/mini", catalog=Catalog.load([file]))
    assert resolved.capabilities.json_schema is True
    assert resolved.origins["json_schema"] == "model:openai/mini"


def test_an_unknown_capability_is_an_error_with_a_suggestion() -> None:
    """A misspelt override is never ignored."""
    with pytest.raises(ConfigError, match="Did you mean 'json_schema'") as caught:
        resolve_capabilities("openai", "gpt", {"json_schemas": True})
    assert caught.value.code == "UNKNOWN_OPTION"


def test_an_override_of_a_wrong_type_is_an_error() -> None:
    """Text is not a truth value."""
    with pytest.raises(ConfigError, match="wrong type"):
        resolve_capabilities(None, None, {"streaming": "no"})


def test_a_probe_wins_over_the_catalog_and_the_caller_over_both() -> None:
    """What was seen is nearer than what was claimed; what the caller says is nearest."""
    resolved = resolve_capabilities(
        "openrouter",
        "minimax/minimax-m2-her",
        {"json_schema": True},
        probed={"supports_tool_use": True, "json_schema": False, "tool_choices": ["auto", "named"]},
        probed_on="2026-11-15",
    )
    assert resolved.capabilities.supports_tool_use is True
    assert resolved.capabilities.json_schema is True
    assert resolved.capabilities.tool_choices == ("auto", "named")
    assert resolved.origins["supports_tool_use"] == "probe:2026-11-15"
    assert resolved.origins["json_schema"] == "override"
    assert resolved.origins["json_object"] == "rule:openrouter_minimax"


def test_every_probed_field_may_have_its_own_date() -> None:
    """Answers of different days are told apart."""
    resolved = resolve_capabilities(
        None,
        None,
        probed={"grammar": True, "json_schema": True},
        probed_on={"grammar": "2026-11-14", "json_schema": "2026-11-15"},
    )
    assert resolved.origins["grammar"] == "probe:2026-11-14"
    assert resolved.origins["json_schema"] == "probe:2026-11-15"


def test_what_a_probe_cannot_have_seen_is_refused() -> None:
    """A field that no capability has is an error from a probe too."""
    with pytest.raises(ConfigError, match="a probe names 'gramar'"):
        resolve_capabilities(None, None, probed={"gramar": True})


def test_findings_are_kept_apart_from_what_decides() -> None:
    """Whoever names one, it is taken with its origin and is not a capability."""
    resolved = resolve_capabilities(
        "embedded",
        "embedded:smollm2-135m",
        {"unique_call_ids": False},
        probed={"empty_arguments": "blank"},
        probed_on="2026-11-15",
    )
    assert resolved.findings == Findings(
        json_stability="low", unique_call_ids=False, empty_arguments="blank"
    )
    assert not set(Findings.__struct_fields__) & set(Capabilities.__struct_fields__)
    assert resolved.origins["json_stability"] == "model:embedded:smollm2-135m"
    assert resolved.origins["unique_call_ids"] == "override"
    assert resolved.origins["empty_arguments"] == "probe:2026-11-15"
    assert resolved.origins["honours_parallel_false"] == "default"


def test_a_finding_of_a_wrong_type_is_an_error() -> None:
    """They are checked like capabilities."""
    with pytest.raises(ConfigError, match="wrong type"):
        resolve_capabilities(None, None, {"json_stability": "superb"})
