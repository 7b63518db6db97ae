"""`surecall models`, `surecall models presets` and `surecall docs`."""

import sys

import pytest

from surecall.base.errors import Code
from surecall.cli import ExitCode
from surecall.cli.manual import find_page
from surecall.models.profiles import Catalog
from surecall.reading.transforms import BUILTIN, BuiltIn

from .harness import document, invoke


def test_models_are_listed_with_source_and_date() -> None:
    """Every model of the catalog is there, and every claim has its source below."""
    result = invoke("models")
    known = Catalog.builtin().models
    assert result.exit_code == 0
    assert [entry.id for entry in known if entry.id not in result.stdout] == []
    assert known[0].date.isoformat() in result.stdout
    assert f"[1] {known[0].source}" in result.stdout


def test_a_filter_chooses_models() -> None:
    """Names, patterns and exclusions work as everywhere."""
    found = document(invoke("models", "qwen*,!qwen/qwen3-30b*", "--json"))
    ids = [entry["id"] for entry in found["models"]]
    assert ids
    assert all(name.startswith("qwen/") for name in ids)
    assert not any(name.startswith("qwen/qwen3-30b") for name in ids)
    assert {"date", "source", "evidence", "workarounds"} <= found["models"][0].keys()


def test_nothing_selected_is_exit_code_5() -> None:
    """A filter that matches nothing says what there is."""
    result = invoke("models", "no-such-model")
    assert result.exit_code == ExitCode.NOTHING_SELECTED
    assert "NOTHING_SELECTED" in result.stderr


def test_presets_are_listed() -> None:
    """Every preset is there with what it sets."""
    names = [preset.name for preset in Catalog.builtin().presets]
    result = invoke("models", "presets", "list")
    assert [name for name in names if name not in result.stdout] == []
    found = document(invoke("models", "presets", "list", "--json"))
    assert [preset["name"] for preset in found["presets"]] == names


def test_a_models_options_are_shown_with_their_origin() -> None:
    """Each value, and each item of a list, says which preset it came from."""
    model = "deepseek/deepseek-v3.2:nitro"
    found = document(
        invoke("--json", "models", "presets", "show", model, "--provider", "openrouter")
    )
    item = "message_transforms.assistant_tool_calls_reasoning_content_empty_if_missing"
    assert found["origins"][item] == "preset:deepseek_openrouter_compat"
    routing = "structured_request_overrides.provider.require_parameters"
    assert found["origins"][routing] == "preset:openrouter"
    assert found["known_model"] is True
    shown = invoke("models", "presets", "show", model, "--provider", "openrouter").stdout
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert f"{routing} = true preset:openrouter" in lines
    assert "tool_use_mode = relaxed preset:default_tool_calling" in lines
    wanted = "assistant_tool_calls_reasoning_content_empty_if_missing"
    assert f"{wanted} preset:deepseek_openrouter_compat" in lines


def test_the_provider_of_the_settings_is_used() -> None:
    """Without --provider the configured address tells which presets apply."""
    words = ("--json", "models", "presets", "show", "unknown/model")
    found = document(invoke(*words, SURECALL_BASE_URL="https://openrouter.ai/api/v1"))
    assert found["provider"] == "openrouter"
    assert found["known_model"] is False


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("openrouter:vendor/model", "openrouter", "vendor/model"),
        ("m@https://openrouter.ai/api/v1", "openrouter", "m"),
        ("embedded:smollm2-135m", "embedded", "embedded:smollm2-135m"),
        ("gpt-5", "openai", "gpt-5"),
    ],
)
def test_presets_are_those_of_a_run_with_this_name(model: str, provider: str, name: str) -> None:
    """A model is named as everywhere else."""
    found = document(invoke("--json", "models", "presets", "show", model))
    assert (found["provider"], found["model"]) == (provider, name)


@pytest.mark.parametrize("name", ["temperature", "max_tokens", "seed", "stop"])
def test_common_parameters_are_explained(name: str) -> None:
    """They can be set like options, and say with what they are the same."""
    found = document(invoke("--json", "docs", "explain", name))
    assert (found["kind"], found["name"]) == ("option", name)
    assert found["details"]["same as"] == f"request_overrides.{name}"


@pytest.mark.parametrize("transform", BUILTIN, ids=lambda one: one.name)
def test_every_transform_is_explained_and_on_its_page(transform: BuiltIn) -> None:
    """With what it does and the receipt that it leaves."""
    found = document(invoke("--json", "docs", "explain", transform.name, "--kind", "transform"))
    assert (found["name"], found["title"]) == (transform.name, transform.does)
    assert (transform.rule or "None") in found["details"]["receipt"]
    assert f"| `{transform.name}` |" in find_page("transforms").text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("enforced", "value"),
        ("production", "strategy"),
        ("happy_path", "scenario"),
        ("kimi_k2_5_instant", "profile"),
        ("OPENROUTER_JOBS", "word"),
        ("ignored_tool_calls_count", "word"),
        ("summary_by_scenario.json", "word"),
        ("state_get", "word"),
    ],
)
def test_words_of_the_original_experiment_are_explained(name: str, kind: str) -> None:
    """Its variables, scenarios, strategies, profiles, files and values of options."""
    found = document(invoke("--json", "docs", "explain", name))
    assert (found["name"], found["kind"]) == (name, kind)
    assert found["title"]


def test_a_code_is_explained_in_any_case() -> None:
    """Title, cause, fix and reaction are there, as words and as JSON."""
    shown = invoke("docs", "explain", "arguments_truncated").stdout
    found = document(invoke("docs", "explain", "Arguments-Truncated", "--json"))
    assert shown.splitlines()[0] == "ARGUMENTS_TRUNCATED"
    assert found["title"] in shown
    told = {"code", "title", "seen", "why", "fix", "reaction", "page"}
    assert set(found) == {"schema_version", "type", *told}


def test_all_codes_are_listed() -> None:
    """The list has every code with its title."""
    found = document(invoke("docs", "explain", "--list", "--json"))
    assert {entry["code"] for entry in found["codes"]} == set(Code)
    assert all(entry["title"] for entry in found["codes"])
    shown = invoke("docs", "explain", "--list").stdout
    assert [code for code in Code if code not in shown] == []


def test_tags_have_room_in_the_table_of_models() -> None:
    """A tag is never broken into pieces, in a wide terminal or a narrow one."""
    tags = {tag for entry in Catalog.builtin().models for tag in entry.tags if len(tag) <= 14}
    for columns in ("100", "60"):
        words = invoke("models", COLUMNS=columns).stdout.replace(",", " ").split()
        assert tags - set(words) == set()


@pytest.mark.parametrize("group", ["faults", "models presets"])
def test_a_group_without_a_command_shows_its_commands(group: str) -> None:
    """The help is what is asked for, and the exit code says that nothing was done."""
    result = invoke(*group.split())
    assert result.exit_code == ExitCode.USAGE
    assert f" {group} [OPTIONS] COMMAND" in result.stdout.splitlines()[0]
    assert "Commands:" in result.stdout
    assert result.stderr == ""
    told = document(invoke("--json", *group.split()))
    assert (told["type"], told["code"]) == ("error", "INVALID_OPTION")
    assert "\n" not in told["message"]


def test_an_unknown_code_names_the_command_that_lists_them() -> None:
    """Where nothing is close, the list is one command away."""
    assert document(invoke("docs", "explain", "ZZZ", "--json"))["hint"].endswith(
        "surecall docs explain --list"
    )


def test_an_error_before_the_flags_are_read_is_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that cannot even be loaded still answers in the form that was asked for."""
    monkeypatch.setitem(sys.modules, "surecall.cli.demo", None)  # type: ignore[arg-type]
    told = document(invoke("demo", "--json"))
    assert (told["type"], told["code"]) == ("error", "INTERNAL_ERROR")
