"""`surecall config init`, `surecall config` and `surecall docs` of other names."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from surecall.cli.console import ExitCode
from surecall.cli.topics import KINDS, list_topics
from surecall.models.config import SETTINGS

from .harness import document, invoke


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_init_finds_a_key_by_its_name_and_never_writes_it(tmp_path: Path) -> None:
    """The provider whose key is set is chosen; the file is valid and checks."""
    found = document(
        invoke("config", "init", "--json", OPENROUTER_API_KEY="sk-or-v1-secret0123456789")
    )
    assert found["keys"] == ["OPENROUTER_API_KEY"]
    text = (tmp_path / "surecall.toml").read_text()
    assert tomllib.loads(text) == {"provider": "openrouter"}
    assert "OPENROUTER_API_KEY (openrouter)" in text
    assert "secret0123456789" not in text
    assert invoke("config", "check").exit_code == ExitCode.OK


def test_every_line_that_is_commented_out_can_be_used(tmp_path: Path) -> None:
    """Without its marks, the file has every setting there is, and no other."""
    assert 'next: surecall run "hi"' in invoke("config", "init", "--model", "gpt-5").stderr
    file = tmp_path / "surecall.toml"
    text = re.sub(r"^# (?=[\w.-]+ = |\[)", "", file.read_text(), flags=re.MULTILINE)
    file.write_text(text)
    written = tomllib.loads(text)
    for key in SETTINGS:
        table, _, name = key.partition(".")
        assert table in written
        assert name in {"", "*"} or name in written[table]
    result = invoke("config", "check")
    assert result.exit_code == ExitCode.OK, result.stderr


def test_init_replaces_a_file_only_when_told(tmp_path: Path) -> None:
    """What a person wrote is not lost."""
    (tmp_path / "surecall.toml").write_text('model = "mine"\n')
    assert invoke("config", "init").exit_code == ExitCode.USAGE
    assert tomllib.loads((tmp_path / "surecall.toml").read_text()) == {"model": "mine"}
    assert invoke("config", "init", "--force", "--model", "other").exit_code == ExitCode.OK


def test_init_replaces_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """The one that is to be replaced has no say in what replaces it."""
    (tmp_path / "surecall.toml").write_text("model = [")
    assert invoke("config", "init", "--force", "--model", "gpt-5").exit_code == ExitCode.OK
    assert tomllib.loads((tmp_path / "surecall.toml").read_text()) == {"model": "gpt-5"}


@pytest.mark.parametrize(
    ("words", "next_command"),
    [
        (("--model", "gpt-5"), 'surecall run "hi"'),
        (("--model", "embedded:smollm2-135m"), 'surecall run "hi"'),
        (("--model", "mine"), 'surecall run "hi" --base-url http://127.0.0.1:8000/v1'),
        (("--provider", "openai"), 'surecall run "hi" --model MODEL'),
        ((), 'surecall run "hi" --model MODEL@http://127.0.0.1:8000/v1'),
    ],
)
def test_init_says_a_command_that_has_all_it_needs(
    words: tuple[str, ...], next_command: str
) -> None:
    """A model whose place nobody knows needs an address."""
    assert invoke("config", "init", *words).stderr == f"next: {next_command}\n"


def test_show_names_the_origin_of_every_value(tmp_path: Path) -> None:
    """A file, a variable and a key each say where they came from, and the key stays hidden."""
    (tmp_path / "surecall.toml").write_text('model = "from-file"\n')
    variables = {
        "SURECALL_BASE_URL": "http://127.0.0.1:1/v1",
        "SURECALL_API_KEY": "sk-hidden0123456789",
    }
    shown = invoke("config", "show", "--origin", **variables).stdout
    found = {
        row["key"]: row
        for row in document(invoke("config", "show", "--json", **variables))["settings"]
    }
    assert found["model"] == {
        "key": "model",
        "value": "from-file",
        "origin": "surecall.toml: model",
    }
    assert found["base_url"]["origin"] == "SURECALL_BASE_URL"
    assert "SURECALL_API_KEY" in shown
    assert "hidden0123456789" not in shown


def test_check_says_what_is_wrong(tmp_path: Path) -> None:
    """A typo in a key, an option or a preset is found before a run."""
    for text, code in (
        ('modle = "x"', "UNKNOWN_CONFIG_KEY"),
        ("[options]\nmax_turn = 3", "UNKNOWN_OPTION"),
        ('preset = ["nope"]', "UNKNOWN_PRESET"),
    ):
        (tmp_path / "surecall.toml").write_text(text)
        result = invoke("config", "check", "--json")
        assert (result.exit_code, document(result)["code"]) == (ExitCode.USAGE, code)


def schema() -> dict[str, Any]:
    """Return the schema as it is printed."""
    return json.loads(invoke("config", "schema").stdout)


@pytest.mark.parametrize(
    ("settings", "is_valid"),
    [
        ({"model": "m", "options": {"max_turns": 3}, "headers": {"X-A": "b"}}, True),
        ({"deadlines": {"connect_s": 3}}, True),
        ({"deadlines": {"connect_s": 0}}, False),
        ({"modle": "m"}, False),
        ({"options": {"max_turn": 3}}, False),
        ({"probe": "sometimes"}, False),
        ({"options": {"temperature": 0.5, "stop": ["a"]}}, True),
        ({"options": {"temperature": "hot"}}, False),
        ({"capabilities": {"streaming": False}}, True),
        ({"capabilities": {"streeming": False}}, False),
        ({"capabilities": {"streaming": "no"}}, False),
    ],
)
def test_the_schema_tells_right_from_wrong(settings: dict[str, Any], is_valid: bool) -> None:
    """An editor sees the same mistakes as `config check`."""
    validator: Any = jsonschema.Draft202012Validator(schema())
    errors = list(validator.iter_errors(settings))
    assert (errors == []) is is_valid


def test_every_setting_is_in_the_schema() -> None:
    """Each key has its place and its words."""
    properties = schema()["properties"]
    for key in SETTINGS:
        table, _, name = key.partition(".")
        place = properties[table]
        if name and name != "*":
            place = place["properties"][name]
        assert place.get("description") or name == "*"
    assert properties["options"]["properties"]["max_turns"]["description"]


@pytest.mark.parametrize("kind", KINDS)
def test_everything_with_a_name_is_explained(kind: Any) -> None:
    """Each kind has names, each name a sentence, and the command finds the first and the last."""
    topics = list_topics(kind)
    assert [topic.name for topic in topics if not topic.title] == []
    for topic in (topics[0], topics[-1]):
        shown = invoke("docs", "explain", topic.name, "--kind", kind, COLUMNS="200").stdout
        assert topic.name in shown.splitlines()[0]


def test_every_preset_says_what_it_is_for() -> None:
    """No two presets share a sentence."""
    titles = [topic.title for topic in list_topics("preset")]
    assert len(set(titles)) == len(titles)


def test_a_setting_is_explained_in_plain_words_with_its_variable() -> None:
    """Nothing of the Markdown of the page of settings is left."""
    by_name = {topic.name: topic for topic in list_topics("setting")}
    assert [name for name, topic in by_name.items() if "](" in topic.title] == []
    assert by_name["base_url"].details["variable"] == "SURECALL_BASE_URL"
    assert by_name["deadlines.total_s"].details["variable"] == "SURECALL_DEADLINES__TOTAL_S"


@pytest.mark.parametrize("kind", ["behaviour", "fault"])
def test_what_is_simulated_names_commands_that_exist(kind: Any) -> None:
    """The commands that are shown for trying it out can be parsed."""
    topic = list_topics(kind)[0]
    commands = [words for words in topic.details.values() if words.startswith("surecall ")]
    assert commands
    for command in commands:
        assert invoke(*command.split()[1:], "--help").exit_code == ExitCode.OK


def test_a_name_of_two_things_shows_both() -> None:
    """An option and a setting of the same name are told apart."""
    found = document(invoke("docs", "explain", "stream", "--json"))
    assert {found["kind"], *(other["kind"] for other in found["others"])} == {"option", "setting"}
    assert "Did you mean" in document(invoke("docs", "explain", "max_turn", "--json"))["hint"]
