"""Settings: what is refused, where keys are found, and that no secret is shown."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.settings import CANARY, load, write
from surecall.base.errors import ConfigError
from surecall.base.redaction import Secret


def refused(folder: Path, environ: dict[str, str] | None = None, **more: Any) -> ConfigError:
    """Load and return the error it must raise."""
    with pytest.raises(ConfigError) as caught:
        load(folder, environ, **more)
    return caught.value


# ---------------------------------------------------------------- refusals


@dataclass(frozen=True)
class Refusal:
    id: str
    code: str
    says: tuple[str, ...]
    file: str = ""
    environ: dict[str, str] = field(default_factory=dict[str, str])
    overrides: dict[str, Any] = field(default_factory=dict[str, Any])


REFUSALS = [
    Refusal(
        "unknown key in file",
        "UNKNOWN_CONFIG_KEY",
        ("'modle'", "surecall.toml: modle", "'model'"),
        file='modle = "x"',
    ),
    Refusal(
        "unknown key in table",
        "UNKNOWN_CONFIG_KEY",
        ("'deadlines.totl_s'", "'total_s'"),
        file="[deadlines]\ntotl_s = 1",
    ),
    Refusal(
        "unknown table",
        "UNKNOWN_CONFIG_KEY",
        ("'option'", "'options'"),
        file="[option]\nmax_turns = 1",
    ),
    Refusal(
        "unknown variable",
        "UNKNOWN_CONFIG_KEY",
        ("SURECALL_MODLE", "Did you mean SURECALL_MODEL"),
        environ={"SURECALL_MODLE": "x"},
    ),
    Refusal(
        "unknown variable in table",
        "UNKNOWN_CONFIG_KEY",
        ("SURECALL_DEADLINES__TOTAL", "Did you mean SURECALL_DEADLINES__TOTAL_S"),
        environ={"SURECALL_DEADLINES__TOTAL": "1"},
    ),
    Refusal(
        "misspelt key variable",
        "UNKNOWN_CONFIG_KEY",
        ("SURECALL_APIKEY", "SURECALL_API_KEY"),
        environ={"SURECALL_APIKEY": CANARY},
    ),
    Refusal(
        "variable with an empty part",
        "UNKNOWN_CONFIG_KEY",
        ("SURECALL_OPTIONS__",),
        environ={"SURECALL_OPTIONS__": "1"},
    ),
    Refusal(
        "unknown flag",
        "UNKNOWN_CONFIG_KEY",
        ("'strem'", "Did you mean 'stream'?"),
        overrides={"strem": True},
    ),
    Refusal("number for string", "INVALID_CONFIG", ("model", "string"), file="model = 3"),
    Refusal("blank string", "INVALID_CONFIG", ("model", "string"), file='model = ""'),
    Refusal(
        "text for a flag",
        "INVALID_CONFIG",
        ("stream", "SURECALL_STREAM", "true or false"),
        environ={"SURECALL_STREAM": "yes"},
    ),
    Refusal(
        "negative seconds",
        "INVALID_CONFIG",
        ("deadlines.total_s", "above 0"),
        file="[deadlines]\ntotal_s = -1",
    ),
    Refusal(
        "endless seconds",
        "INVALID_CONFIG",
        ("deadlines.total_s", "finite"),
        file="[deadlines]\ntotal_s = inf",
    ),
    Refusal("nan", "INVALID_CONFIG", ("retry.max_wait_s",), file="[retry]\nmax_wait_s = nan"),
    Refusal(
        "flag for a count",
        "INVALID_CONFIG",
        ("retry.max_retries", "whole number"),
        file="[retry]\nmax_retries = true",
    ),
    Refusal("value for a table", "INVALID_CONFIG", ("options", "table"), file="options = 3"),
    Refusal("broken file", "INVALID_CONFIG", ("surecall.toml", "TOML"), file="model = "),
    Refusal("not an address", "INVALID_CONFIG", ("base_url",), file='base_url = "localhost:1"'),
    Refusal("ftp", "INVALID_CONFIG", ("base_url",), file='base_url = "ftp://h/"'),
    Refusal("bad port", "INVALID_CONFIG", ("base_url",), file='base_url = "http://h:x/"'),
    Refusal(
        "password in the address",
        "INVALID_CONFIG",
        ("base_url", "api_key_env"),
        file=f'base_url = "https://user:{CANARY}@h/v1"',
    ),
    Refusal(
        "key in a file",
        "INVALID_CONFIG",
        ("api_key", "secret", "api_key_env"),
        file=f'api_key = "{CANARY}"',
    ),
    Refusal(
        "key among the options",
        "INVALID_CONFIG",
        ("options.api_key", "api_key_env"),
        environ={"SURECALL_OPTIONS__API_KEY": CANARY},
    ),
    Refusal(
        "key in place of its variable",
        "INVALID_CONFIG",
        ("api_key_env", "not a key"),
        file=f'api_key_env = "{CANARY}"',
    ),
    Refusal(
        "key with underscores in place of its variable",
        "INVALID_CONFIG",
        ("api_key_env", "not a key"),
        file='api_key_env = "gsk_abcdefghijklmnop0123"',
    ),
    Refusal(
        "secret header in a file",
        "INVALID_CONFIG",
        ("headers.Authorization", "SURECALL_HEADERS__AUTHORIZATION"),
        file=f'[headers]\nAuthorization = "Bearer {CANARY}"',
    ),
    Refusal(
        "line break in a header",
        "INVALID_CONFIG",
        ("headers.X-A",),
        file='[headers]\nX-A = "1\\r\\nX-B: 2"',
    ),
    Refusal("bad header name", "INVALID_CONFIG", ("headers.x y",), file='[headers]\n"x y" = "1"'),
    Refusal(
        "broken key",
        "INVALID_CONFIG",
        ("SURECALL_API_KEY",),
        environ={"SURECALL_API_KEY": f"{CANARY}\r\nX: 1"},
    ),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_what_cannot_be_used_is_refused_by_name(case: Refusal, tmp_path: Path) -> None:
    """Each refusal has its code, names key and origin, and never shows a secret."""
    write(tmp_path, case.file)
    error = refused(tmp_path, case.environ, overrides=case.overrides)
    assert error.code == case.code
    for part in case.says:
        assert part in str(error)
    assert CANARY not in str(error)


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """Nothing else is read in its place."""
    error = refused(tmp_path, path="absent.toml")
    assert error.code == "INVALID_CONFIG"
    assert "absent.toml" in str(error)


def test_a_file_in_another_encoding_is_an_error(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are reported as a broken file."""
    (tmp_path / "surecall.toml").write_bytes(b'model = "\xff"')
    assert refused(tmp_path).code == "INVALID_CONFIG"


def test_a_table_of_the_wrong_type_in_pyproject_is_an_error(tmp_path: Path) -> None:
    """`tool.surecall = 1` is not taken for an absent table."""
    write(tmp_path, "[tool]\nsurecall = 1", "pyproject.toml")
    assert "tool.surecall must be a table" in str(refused(tmp_path))


def test_a_wire_format_that_is_none_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    """A misspelt one is never taken for the default."""
    error = refused(tmp_path, {"SURECALL_PROTOCOL": "chat_completion"})
    assert error.code == "INVALID_CONFIG"
    assert "SURECALL_PROTOCOL" in error.message
    assert error.hint == "Did you mean 'chat_completions'?"


def test_given_values_are_checked_like_any_other(tmp_path: Path) -> None:
    """A misspelt or unusable value is refused there too."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path).with_values({"modle": "x"})
    assert caught.value.code == "UNKNOWN_CONFIG_KEY"


# ---------------------------------------------------------------- address and key


def test_the_address_of_openai_clients_is_used_when_there_is_no_other(tmp_path: Path) -> None:
    """OPENAI_BASE_URL is the weakest source of an address."""
    environ = {"OPENAI_BASE_URL": "http://localhost:1/v1"}
    config = load(tmp_path, environ)
    assert config.base_url == "http://localhost:1/v1"
    assert config.origins["base_url"] == "OPENAI_BASE_URL"
    write(tmp_path, 'base_url = "http://localhost:2/v1"')
    assert load(tmp_path, environ).base_url == "http://localhost:2/v1"


@dataclass(frozen=True)
class KeyCase:
    id: str
    environ: dict[str, str]
    origin: str
    value: str | None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


ROUTER = {"base_url": "https://openrouter.ai/api/v1"}
KEYS = [
    KeyCase("none", {}, "default", None),
    KeyCase(
        "ours first", {"SURECALL_API_KEY": "a", "OPENAI_API_KEY": "b"}, "SURECALL_API_KEY", "a"
    ),
    KeyCase("then openai", {"OPENAI_API_KEY": "b"}, "OPENAI_API_KEY", "b"),
    KeyCase(
        "blank is unset", {"SURECALL_API_KEY": " ", "OPENAI_API_KEY": "b"}, "OPENAI_API_KEY", "b"
    ),
    KeyCase("stripped", {"OPENAI_API_KEY": "b\n"}, "OPENAI_API_KEY", "b"),
    KeyCase(
        "openai elsewhere",
        {"OPENAI_API_KEY": "b"},
        "default",
        None,
        {"base_url": "http://127.0.0.1:8000/v1"},
    ),
    KeyCase(
        "openai look-alike",
        {"OPENAI_API_KEY": "b"},
        "default",
        None,
        {"base_url": "https://notopenai.com/v1"},
    ),
    KeyCase(
        "openai at home",
        {"OPENAI_API_KEY": "b"},
        "OPENAI_API_KEY",
        "b",
        {"base_url": "https://api.openai.com/v1"},
    ),
    KeyCase(
        "openai where its address points",
        {"OPENAI_API_KEY": "b", "OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"},
        "OPENAI_API_KEY",
        "b",
    ),
    KeyCase("router elsewhere", {"OPENROUTER_API_KEY": "r"}, "default", None),
    KeyCase(
        "router at home",
        {"OPENROUTER_API_KEY": "r", "OPENAI_API_KEY": "b"},
        "OPENROUTER_API_KEY",
        "r",
        ROUTER,
    ),
    KeyCase(
        "router look-alike",
        {"OPENROUTER_API_KEY": "r"},
        "default",
        None,
        {"base_url": "https://openrouter.ai.example.org/v1"},
    ),
    KeyCase("anthropic elsewhere", {"ANTHROPIC_API_KEY": "c"}, "default", None),
    KeyCase(
        "anthropic at home",
        {"ANTHROPIC_API_KEY": "c", "OPENAI_API_KEY": "b", "GOOGLE_API_KEY": "g"},
        "ANTHROPIC_API_KEY",
        "c",
        {"base_url": "https://api.anthropic.com"},
    ),
    KeyCase(
        "anthropic look-alike",
        {"ANTHROPIC_API_KEY": "c"},
        "default",
        None,
        {"base_url": "https://api.anthropic.com.example.org"},
    ),
    KeyCase(
        "gemini before google",
        {"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": "e", "ANTHROPIC_API_KEY": "c"},
        "GEMINI_API_KEY",
        "e",
        {"base_url": "https://generativelanguage.googleapis.com"},
    ),
    KeyCase(
        "google at home",
        {"GOOGLE_API_KEY": "g"},
        "GOOGLE_API_KEY",
        "g",
        {"base_url": "https://generativelanguage.googleapis.com/v1beta"},
    ),
    KeyCase(
        "google elsewhere",
        {"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": "e"},
        "default",
        None,
        {"base_url": "https://notgoogleapis.com"},
    ),
    KeyCase("named", {"MINE": "m", "OPENAI_API_KEY": "b"}, "MINE", "m", {"api_key_env": "MINE"}),
    KeyCase(
        "named but missing",
        {"OPENAI_API_KEY": "b"},
        "MINE (not set)",
        None,
        {"api_key_env": "MINE"},
    ),
    KeyCase("given", {"OPENAI_API_KEY": "b"}, "flag", "g", {"api_key": "g"}),
    KeyCase("given as a secret", {}, "flag", "g", {"api_key": Secret("g")}),
    KeyCase("given blank means none", {"OPENAI_API_KEY": "b"}, "flag", None, {"api_key": ""}),
]


@pytest.mark.parametrize("case", KEYS, ids=lambda case: case.id)
def test_the_key_comes_from_the_right_variable(case: KeyCase, tmp_path: Path) -> None:
    """A key is only looked for where it may be, and only its variable's name is kept."""
    config = load(tmp_path, case.environ, overrides=case.settings)
    assert (config.api_key.reveal() if config.api_key else None) == case.value
    assert config.origins["api_key"] == case.origin


def test_a_router_key_does_not_follow_to_another_address(tmp_path: Path) -> None:
    """A key found for one host is dropped when the address changes to another."""
    config = load(tmp_path, {"OPENROUTER_API_KEY": "r"}, overrides=ROUTER)
    assert config.api_key == Secret("r")
    moved = config.with_values({"base_url": "https://example.org/v1"})
    assert (moved.api_key, moved.origins["api_key"]) == (None, "default")


def test_no_text_form_shows_a_secret(tmp_path: Path) -> None:
    """Neither `repr`, nor `render`, nor rich's form has a byte of a key."""
    environ = {
        "OPENAI_API_KEY": CANARY,
        "SURECALL_HEADERS__X_API_KEY": CANARY,
        "SURECALL_HEADERS__X_NOTE": CANARY,
        "SURECALL_OPTIONS__NOTE": CANARY,
        "SURECALL_OPTIONS__REQUEST_OVERRIDES__TOKEN": "plain-but-secret",
    }
    config = load(tmp_path, environ)
    shown = repr(config) + str(config) + str(config.render()) + str(config.__rich_repr__())
    assert CANARY not in shown
    assert "plain-but-secret" not in shown
    assert config.headers["x-api-key"] == CANARY
