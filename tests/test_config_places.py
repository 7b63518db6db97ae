"""Where a model is asked: by its name, by the name of a provider, or by an address."""

from pathlib import Path

import pytest

from surecall.base.errors import ConfigError
from surecall.models.config import load_config

OPENAI = "https://api.openai.com/v1"
OPENROUTER = "https://openrouter.ai/api/v1"
LOCAL = "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("model", "name", "url"),
    [
        ("gpt-5", "gpt-5", OPENAI),
        ("o3-mini", "o3-mini", OPENAI),
        ("claude-x-1", "claude-x-1", "https://api.anthropic.com"),
        ("gemini-2.5-pro", "gemini-2.5-pro", "https://generativelanguage.googleapis.com"),
        ("openrouter:vendor/model", "vendor/model", OPENROUTER),
        ("openrouter:vendor/model:free", "vendor/model:free", OPENROUTER),
        ("Groq:llama-3.3-70b", "llama-3.3-70b", "https://api.groq.com/openai/v1"),
        ("ollama:mistral:7b", "mistral:7b", "http://127.0.0.1:11434/v1"),
        (f"my-model@{LOCAL}", "my-model", LOCAL),
        ("user@host@http://h:1/v1", "user@host", "http://h:1/v1"),
        ("vendor/model:free", "vendor/model:free", None),
        ("qwen3:8b", "qwen3:8b", None),
        ("nobody-knows", "nobody-knows", None),
        ("embedded:smollm2-135m", "embedded:smollm2-135m", None),
    ],
)
def test_a_name_says_where_the_model_is(
    tmp_path: Path, model: str, name: str, url: str | None
) -> None:
    """A provider before a colon, an address behind an @, or a name that one provider has."""
    config = load_config(cwd=tmp_path, environ={}, overrides={"model": model})
    assert (config.model, config.base_url) == (name, url)


@pytest.mark.parametrize("provider", ["openrouter", "open-router", "OPENROUTER"])
def test_a_provider_implies_its_address_and_key(tmp_path: Path, provider: str) -> None:
    """The key of that provider is used, and no other."""
    environ = {"OPENROUTER_API_KEY": "router", "OPENAI_API_KEY": "open"}
    config = load_config(
        cwd=tmp_path, environ=environ, overrides={"provider": provider, "model": "a/b"}
    )
    assert config.base_url == OPENROUTER
    assert config.api_key is not None
    assert config.api_key.reveal() == "router"
    assert config.origins["base_url"] == "provider:openrouter"


def test_one_key_and_a_model_are_enough(tmp_path: Path) -> None:
    """Hello world needs nothing else."""
    config = load_config(
        cwd=tmp_path, environ={"OPENAI_API_KEY": "open"}, overrides={"model": "gpt-5"}
    )
    assert (config.base_url, config.origins["api_key"]) == (OPENAI, "OPENAI_API_KEY")


def test_a_key_never_goes_to_a_provider_it_is_not_of(tmp_path: Path) -> None:
    """A name that looks like another provider's host does not help."""
    environ = {"GROQ_API_KEY": "groq", "OPENAI_API_KEY": "open"}
    for url in ("https://api.groq.com.example/v1", "https://notopenai.com/v1", LOCAL):
        config = load_config(cwd=tmp_path, environ=environ, overrides={"base_url": url})
        assert config.api_key is None


def test_an_address_given_with_the_model_decides(tmp_path: Path) -> None:
    """Colons in a name are the server's own business then."""
    given = {"model": "mistral:7b", "base_url": LOCAL}
    config = load_config(cwd=tmp_path, environ={}, overrides=given)
    assert (config.model, config.base_url) == ("mistral:7b", LOCAL)
    config = load_config(
        cwd=tmp_path, environ={}, overrides={"model": "mistral:7b", "provider": "ollama"}
    )
    assert (config.model, config.base_url) == ("mistral:7b", "http://127.0.0.1:11434/v1")


def test_a_model_that_is_named_later_than_the_address_wins(tmp_path: Path) -> None:
    """A flag with a provider in it overrides the address of a file or a variable."""
    environ = {"SURECALL_BASE_URL": LOCAL}
    config = load_config(cwd=tmp_path, environ=environ, overrides={"model": "openrouter:a/b"})
    assert (config.model, config.base_url) == ("a/b", OPENROUTER)
    config = load_config(cwd=tmp_path, environ=environ, overrides={"model": "gpt-5"})
    assert (config.model, config.base_url) == ("gpt-5", LOCAL)


def test_an_unknown_provider_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    """A typo is not a provider without facts."""
    with pytest.raises(ConfigError, match="Did you mean 'openrouter'") as refused:
        load_config(cwd=tmp_path, environ={}, overrides={"provider": "opnrouter"})
    assert refused.value.code == "UNKNOWN_PROVIDER"
