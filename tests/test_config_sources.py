"""Settings: sources, their precedence, the origins they leave, and how they are shown."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.settings import CANARY, load, write
from surecall.base.errors import ConfigError
from surecall.base.redaction import Secret
from surecall.models.config import SETTINGS, load_config

# ---------------------------------------------------------------- files and flags


def test_without_any_source_every_setting_is_a_default(tmp_path: Path) -> None:
    """No file and no variable leave all settings unset and say so."""
    config = load(tmp_path)
    assert config.model is None
    assert config.stream is False
    assert config.deadlines == {}
    assert config.retry == {}
    assert config.path is None
    assert set(config.origins.values()) == {"default"}


def test_a_file_sets_every_kind_of_key(tmp_path: Path) -> None:
    """All keys of a file arrive with their types, and each names its place."""
    write(
        tmp_path,
        """
        model = "m"
        base_url = "http://localhost:8000/v1"
        api_prefix = "/v1"
        provider = "vllm"
        preset = ["a", "b"]
        profile = "calm"
        stream = true
        journal_dir = "runs"
        [deadlines]
        connect_s = 1
        total_s = 30.5
        [retry]
        max_retries = 0
        max_wait_s = 2
        [options]
        max_turns = 4
        tool_choice = { type = "function" }
        [capabilities]
        tools = false
        [headers]
        X-Title = "demo"
        """,
    )
    config = load(tmp_path)
    assert config.model == "m"
    assert config.base_url == "http://localhost:8000/v1"
    assert config.api_prefix == "/v1"
    assert config.preset == ("a", "b")
    assert config.stream is True
    assert config.journal_dir == tmp_path / "runs"
    assert config.deadlines == {"connect_s": 1.0, "total_s": 30.5}
    assert config.retry == {"max_retries": 0, "max_wait_s": 2.0}
    assert config.options == {"max_turns": 4, "tool_choice": {"type": "function"}}
    assert config.capabilities == {"tools": False}
    assert config.headers == {"X-Title": "demo"}
    assert config.path == tmp_path / "surecall.toml"
    assert config.origins["options.max_turns"] == "surecall.toml: options.max_turns"
    assert config.origins["deadlines.total_s"] == "surecall.toml: deadlines.total_s"
    assert config.origins["deadlines.idle_s"] == "default"


def test_stronger_sources_win_and_the_origin_follows(tmp_path: Path) -> None:
    """A flag beats a variable, a variable beats the file."""
    write(tmp_path, 'model = "file"\nprovider = "groq"\nprofile = "file"')
    environ = {"SURECALL_MODEL": "variable", "SURECALL_PROVIDER": "together"}
    config = load(tmp_path, environ, overrides={"model": "flag"})
    assert (config.model, config.origins["model"]) == ("flag", "flag")
    assert (config.provider, config.origins["provider"]) == ("together", "SURECALL_PROVIDER")
    assert (config.profile, config.origins["profile"]) == ("file", "surecall.toml: profile")


def test_free_tables_merge_key_by_key(tmp_path: Path) -> None:
    """A variable for one option leaves the other options of the file in place."""
    write(tmp_path, "[options]\nmax_turns = 4\nstream = true")
    config = load(
        tmp_path,
        {"SURECALL_OPTIONS__MAX_TURNS": "8"},
        overrides={"options": {"deadline_s": 3}},
    )
    assert config.options == {"max_turns": 8, "stream": True, "deadline_s": 3}
    assert config.origins["options.max_turns"] == "SURECALL_OPTIONS__MAX_TURNS"
    assert config.origins["options.deadline_s"] == "flag"


def test_overrides_may_be_dotted_and_none_means_not_given(tmp_path: Path) -> None:
    """Flags that were not given change nothing, and dotted keys reach into tables."""
    write(tmp_path, 'model = "file"')
    config = load(
        tmp_path, overrides={"model": None, "deadlines.idle_s": 9, "trace_dir": Path("t")}
    )
    assert config.model == "file"
    assert config.deadlines["idle_s"] == 9.0
    assert config.trace_dir == tmp_path / "t"


def test_the_nearest_parent_with_a_file_is_used(tmp_path: Path) -> None:
    """The search goes upwards and stops at the first file, named relative to the start."""
    write(tmp_path, 'model = "far"')
    write(tmp_path / "a", 'model = "near"')
    start = tmp_path / "a" / "b" / "c"
    start.mkdir(parents=True)
    config = load(start)
    assert config.model == "near"
    assert config.origins["model"] == str(Path("..", "..", "surecall.toml")) + ": model"


def test_pyproject_is_read_only_without_a_file_of_our_own(tmp_path: Path) -> None:
    """`[tool.surecall]` counts, but a `surecall.toml` beside it replaces it."""
    write(tmp_path, '[tool.surecall]\nmodel = "project"', "pyproject.toml")
    config = load(tmp_path)
    assert config.model == "project"
    assert config.origins["model"] == "pyproject.toml: tool.surecall.model"
    write(tmp_path, 'provider = "groq"')
    assert load(tmp_path).model is None


def test_a_pyproject_without_our_table_does_not_end_the_search(tmp_path: Path) -> None:
    """A project that does not mention surecall inherits from its parents."""
    write(tmp_path, 'model = "parent"')
    write(tmp_path / "project", '[project]\nname = "x"', "pyproject.toml")
    assert load(tmp_path / "project").model == "parent"


def test_a_named_file_is_read_instead_of_searching(tmp_path: Path) -> None:
    """`path` wins over the file in the folder and is relative to it."""
    write(tmp_path, 'model = "found"')
    write(tmp_path / "other", 'model = "named"\ntrace_dir = "t"', "mine.toml")
    config = load(tmp_path, path="other/mine.toml")
    assert config.model == "named"
    assert config.trace_dir == tmp_path / "other" / "t"


def test_folders_in_variables_are_relative_to_the_current_folder(tmp_path: Path) -> None:
    """Only folders named in a file are relative to that file."""
    write(tmp_path, "")
    start = tmp_path / "sub"
    start.mkdir()
    assert load(start, {"SURECALL_JOURNAL_DIR": "j"}).journal_dir == start / "j"


# ---------------------------------------------------------------- variables


@dataclass(frozen=True)
class Variable:
    id: str
    name: str
    raw: str
    key: str
    value: Any


VARIABLES = [
    Variable("text", "SURECALL_MODEL", "gpt-x", "model", "gpt-x"),
    Variable("text that looks like a number", "SURECALL_MODEL", "4", "model", "4"),
    Variable("text with quotes stays", "SURECALL_MODEL", '"m"', "model", '"m"'),
    Variable("flag", "SURECALL_STREAM", "true", "stream", True),
    Variable("list", "SURECALL_PRESET", '["a", "b"]', "preset", ("a", "b")),
    Variable("one name", "SURECALL_PRESET", "a", "preset", ("a",)),
    Variable("comma list", "SURECALL_PRESET", "a, b,", "preset", ("a", "b")),
    Variable("seconds", "SURECALL_DEADLINES__TOTAL_S", "30", "deadlines", {"total_s": 30.0}),
    Variable("count", "SURECALL_RETRY__MAX_RETRIES", "3", "retry", {"max_retries": 3}),
    Variable("option", "SURECALL_OPTIONS__MAX_TURNS", "8", "options", {"max_turns": 8}),
    Variable("option text", "SURECALL_OPTIONS__A", "auto", "options", {"a": "auto"}),
    Variable("option list", "SURECALL_OPTIONS__A", "[1]", "options", {"a": [1]}),
    Variable(
        "date stays text", "SURECALL_OPTIONS__A", "2026-01-01", "options", {"a": "2026-01-01"}
    ),
    Variable("lines stay text", "SURECALL_OPTIONS__A", "1\nb = 2", "options", {"a": "1\nb = 2"}),
    Variable("deep stays text", "SURECALL_OPTIONS__A", "[" * 9000, "options", {"a": "[" * 9000}),
    Variable(
        "inside an option",
        "SURECALL_OPTIONS__REQUEST_OVERRIDES__TEMPERATURE",
        "0.5",
        "options",
        {"request_overrides": {"temperature": 0.5}},
    ),
    Variable(
        "capability", "SURECALL_CAPABILITIES__TOOLS", "false", "capabilities", {"tools": False}
    ),
    Variable("header", "SURECALL_HEADERS__X_TITLE", "1", "headers", {"x-title": "1"}),
    Variable("blank is unset", "SURECALL_MODEL", "  ", "model", None),
]


@pytest.mark.parametrize("case", VARIABLES, ids=lambda case: case.id)
def test_variables_are_read_by_the_type_of_their_key(case: Variable, tmp_path: Path) -> None:
    """Text stays text; everything else is read as a TOML value when it is one."""
    config = load(tmp_path, {case.name: case.raw})
    assert getattr(config, case.key) == case.value


def test_a_variable_inside_a_table_of_the_file_keeps_its_neighbours(tmp_path: Path) -> None:
    """Setting one entry inside an option keeps the entries the file gave it."""
    write(tmp_path, "[options.request_overrides]\ntop_p = 1\nstop = { a = 1 }")
    environ = {
        "SURECALL_OPTIONS__REQUEST_OVERRIDES__SEED": "7",
        "SURECALL_OPTIONS__REQUEST_OVERRIDES__STOP__B": "2",
    }
    expected = {"request_overrides": {"top_p": 1, "seed": 7, "stop": {"a": 1, "b": 2}}}
    assert load(tmp_path, environ).options == expected


def test_other_variables_are_left_alone(tmp_path: Path) -> None:
    """Only the prefix SURECALL_ is ours."""
    assert load(tmp_path, {"MODEL": "x", "SURECALLER": "y", "PATH": "z"}).model is None


# ---------------------------------------------------------------- settings and values


def test_a_wire_format_is_set_like_its_neighbours(tmp_path: Path) -> None:
    """In the file, by a variable, or given; the strongest wins."""
    write(tmp_path, 'protocol = "responses"')
    assert load(tmp_path).protocol == "responses"
    config = load(tmp_path, {"SURECALL_PROTOCOL": "gemini"})
    assert (config.protocol, config.origins["protocol"]) == ("gemini", "SURECALL_PROTOCOL")
    assert config.with_values({"protocol": "messages"}).protocol == "messages"


@pytest.mark.parametrize(
    ("environ", "place", "origin"),
    [
        ({}, "~/.cache/surecall", "default"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/surecall", "XDG_CACHE_HOME"),
        ({"XDG_CACHE_HOME": "relative"}, "~/.cache/surecall", "default"),
        (
            {"XDG_CACHE_HOME": "/x", "SURECALL_CACHE_DIR": "/own"},
            "/own",
            "SURECALL_CACHE_DIR",
        ),
    ],
    ids=["default", "of the platform", "not absolute", "own"],
)
def test_the_cache_folder_has_a_place(
    environ: dict[str, str], place: str, origin: str, tmp_path: Path
) -> None:
    """Our own variable wins over that of the platform, and there is always a folder."""
    config = load(tmp_path, environ)
    assert config.cache_dir == Path(place).expanduser()
    assert config.origins["cache_dir"] == origin


def test_a_wait_policy_of_the_user_is_left_alone(tmp_path: Path) -> None:
    """Threads of an embedded model wait as the user said, where the user said it."""
    assert load(tmp_path).local == {}
    said = load(tmp_path, {"OMP_WAIT_POLICY": "active"})
    assert said.local["passive_wait"] is False
    assert said.origins["local.passive_wait"] == "OMP_WAIT_POLICY"


def test_a_search_can_be_left_out(tmp_path: Path) -> None:
    """Without a search no file is read, variables still are."""
    write(tmp_path, 'model = "file"\nprovider = "file"')
    config = load(tmp_path, {"SURECALL_MODEL": "variable"}, search=False)
    assert (config.model, config.provider, config.path) == ("variable", None, None)


def test_given_values_win_over_a_loaded_config(tmp_path: Path) -> None:
    """`with_values` keeps the rest with its origins and leaves the original as it was."""
    write(tmp_path, 'model = "file"\npreset = "a"\n[deadlines]\nidle_s = 2\n[options]\nx = 1')
    config = load(tmp_path, {"SURECALL_API_KEY": "k"})
    changed = config.with_values({"model": "given", "options.y": 2, "api_key": "other"})
    assert (changed.model, changed.origins["model"]) == ("given", "flag")
    assert changed.options == {"x": 1, "y": 2}
    assert changed.preset == ("a",)
    assert changed.deadlines == {"idle_s": 2.0}
    assert changed.origins["options.x"] == "surecall.toml: options.x"
    assert changed.api_key == Secret("other")
    assert (config.model, config.options, config.api_key) == ("file", {"x": 1}, Secret("k"))
    assert config.with_values({}) == config


def test_render_lists_every_key_with_value_and_origin(tmp_path: Path) -> None:
    """The list for people has all keys, set or not, in the order of the settings."""
    write(tmp_path, 'model = "m"\npreset = "a,b"\n[deadlines]\ntotal_s = 2\n[options]\nx = [1]')
    rows = load(tmp_path, {"OPENAI_API_KEY": CANARY}).render()
    by_key = {row.key: row for row in rows}
    plain = [key for key in SETTINGS if not key.endswith(".*")]
    assert [row.key for row in rows] == [*plain, "api_key", "options.x"]
    assert by_key["model"] == ("model", "m", "surecall.toml: model")
    assert by_key["preset"].value == "a, b"
    assert by_key["stream"] == ("stream", "false", "default")
    assert by_key["deadlines.total_s"].value == "2.0"
    assert by_key["provider"].value == "-"
    assert by_key["api_key"] == ("api_key", "set", "OPENAI_API_KEY")
    assert by_key["options.x"].value == "[1]"


def test_the_process_environment_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without arguments the current folder and the variables of the process are read."""
    write(tmp_path, 'provider = "groq"')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SURECALL_MODEL", "from-process")
    config = load_config()
    assert (config.model, config.provider) == ("from-process", "groq")


def test_a_change_of_the_environment_is_seen_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that are used again are those of the same variables, folder and overrides."""

    def look() -> tuple[Any, ...]:
        config = load_config(overrides={"profile": "p"}, search=False)
        return config.model, config.cache_dir, config.api_key and config.api_key.reveal()

    home = tmp_path / ".cache" / "surecall"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("SURECALL_API_KEY_ENV", "MY_KEY")
    assert look() == (None, home, None)
    monkeypatch.setenv("SURECALL_MODEL", "one")
    assert look() == ("one", home, None)
    monkeypatch.setenv("MY_KEY", "key-1")
    assert look() == ("one", home, "key-1")
    monkeypatch.setenv("MY_KEY", "key-2")
    monkeypatch.setenv("SURECALL_CACHE_DIR", "here")
    assert look() == ("one", tmp_path / "here", "key-2")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert look() == ("one", tmp_path / "below" / "here", "key-2")
    assert load_config(search=False).profile is None


def test_a_folder_that_may_not_be_looked_at_has_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service may run where it can read nothing."""

    def refuse(path: object, **_: object) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "stat", refuse)
    assert load_config(cwd=tmp_path, environ={}).path is None


def test_a_folder_that_is_gone_is_named_as_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder can be removed under a running shell."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(ConfigError, match="current folder is gone") as caught:
        load_config(environ={})
    assert caught.value.hint
