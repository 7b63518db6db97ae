"""The catalog: what is in it, and what it refuses."""

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from surecall.base.errors import ConfigError
from surecall.models.profiles import Catalog
from surecall.reading.transforms import Family, TransformRegistry

DEEPSEEK = "deepseek_openrouter_compat"
GEMINI = "gemini_openrouter_compat"
TAGS = "content_tag_tool_call_fallback"

MODELS = (
    ("deepseek/deepseek-v3.2:nitro", (DEEPSEEK,), {"deepseek", "ds"}),
    ("deepseek/deepseek-chat-v3-0324:nitro", (DEEPSEEK,), {"deepseek", "ds", "chat"}),
    ("x-ai/grok-4.1-fast", (), {"x_ai", "grok"}),
    ("google/gemini-2.5-flash:nitro", (GEMINI,), {"stable", "google", "gemini"}),
    ("google/gemini-3-flash-preview:nitro", (GEMINI,), {"google", "gemini"}),
    ("google/gemini-3-pro-preview:nitro", (GEMINI,), {"google", "gemini"}),
    ("anthropic/claude-opus-4.6:nitro", (), {"stable", "anthropic", "claude"}),
    ("openai/gpt-5.2-chat:nitro", (), {"openai", "gpt"}),
    ("openai/gpt-5.2:nitro", (), {"stable", "openai", "gpt"}),
    ("minimax/minimax-m2-her", ("tool_use_disabled",), {"minimax"}),
    ("minimax/minimax-m2.1:nitro", (TAGS,), {"minimax"}),
    ("qwen/qwen3-30b-a3b-instruct-2507:nitro", (), {"stable", "qwen"}),
    ("qwen/qwen3-next-80b-a3b-instruct:nitro", (), {"stable", "qwen"}),
    ("qwen/qwen3-235b-a22b-2507:nitro", (TAGS,), {"stable", "qwen"}),
    ("z-ai/glm-4.7:nitro", (TAGS,), {"z_ai", "glm"}),
    ("z-ai/glm-4.7-flash:nitro", (TAGS,), {"z_ai", "glm"}),
    ("moonshotai/kimi-k2.5:nitro", (), {"moonshot", "kimi"}),
    (
        "embedded:smollm2-135m",
        ("constrained_tool_calls", "no_text_loops"),
        {"embedded", "local"},
    ),
    ("embedded:qwen2.5-coder-1.5b", (), {"embedded", "local"}),
)

FACT = """
date = 2026-03-01
source = "own measurement"
evidence = "20 of 20 runs ok"
"""


def write(path: Path, text: str) -> Path:
    """Write a catalog file."""
    file = path / "own.toml"
    file.write_text(text, "utf-8")
    return file


def test_the_models_in_order() -> None:
    """Every row of the table, in its order, with its workarounds and tags."""
    models = Catalog.builtin().models
    rows = tuple((model.id, model.workarounds, set(model.tags)) for model in models)
    assert rows == MODELS


def test_every_claim_has_a_date_a_source_and_evidence() -> None:
    """Nothing in the built-in catalog is undated or without a source."""
    catalog = Catalog.builtin()
    entries: list[Any] = [
        *catalog.models,
        *catalog.rules,
        *catalog.providers,
        *catalog.sampling,
        *catalog.presets,
    ]
    assert len(entries) == 19 + 25 + 26 + 16 + 16
    for entry in entries:
        assert datetime.date(2024, 1, 1) < entry.date < datetime.date(2100, 1, 1)
        assert entry.source.strip()
        assert entry.evidence.strip()


def test_every_transform_a_preset_names_exists() -> None:
    """Presets and transforms do not know each other, so their names are checked here."""
    registry = TransformRegistry.builtin()
    families: dict[str, Family] = {
        "message_transforms": "messages",
        "tool_transforms": "tools",
        "response_transforms": "replies",
        "tool_call_transforms": "calls",
        "tool_result_transforms": "results",
    }
    resolved = 0
    for preset in Catalog.builtin().presets:
        for field, family in families.items():
            names = preset.fields.get(field, [])
            resolved += len(registry.resolve(family, names))
    assert resolved == 5 * 4 + 3


def test_the_catalog_is_read_once() -> None:
    """The built-in catalog is the same object each time."""
    assert Catalog.builtin() is Catalog.builtin()


def test_importing_profiles_reads_no_file() -> None:
    """The TOML parser is imported, but nothing is parsed, until a catalog is asked for."""
    code = (
        "import tomllib; tomllib.loads = None\n"
        "import surecall.models.profiles\n"
        "try:\n    surecall.models.profiles.Catalog.builtin()\n"
        "except TypeError:\n    print('asked')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "asked\n"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("qwen/qwen3-235b-a22b-2507:nitro", "qwen/qwen3-235b-a22b-2507:nitro"),
        ("qwen/qwen3-235b-a22b-2507", "qwen/qwen3-235b-a22b-2507:nitro"),
        ("Qwen/Qwen3-235B-A22B-2507:free", "qwen/qwen3-235b-a22b-2507:nitro"),
        ("z-ai/glm-4.7", "z-ai/glm-4.7:nitro"),
        ("qwen/qwen3-235b", None),
    ],
)
def test_finding_a_model(name: str, found: str | None) -> None:
    """The id decides; what follows the colon may differ."""
    entry = Catalog.builtin().find(name)
    assert (entry.id if entry else None) == found


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("openrouter.ai", "openrouter"),
        ("API.OpenAI.com.", "openai"),
        ("evil-openrouter.ai", None),
        ("127.0.0.1", None),
    ],
)
def test_a_provider_is_recognised_by_its_host(host: str, provider: str | None) -> None:
    """Only the exact host counts."""
    assert Catalog.builtin().provider_at(host) == provider


def test_own_entries_are_added_and_replace(tmp_path: Path) -> None:
    """A new id goes to the end; a known id is replaced in its place."""
    text = f"""
[[models]]
id = "acme/one"
tags = ["own"]
{FACT}
[[models]]
id = "x-ai/grok-4.1-fast"
workarounds = ["content_tag_fallback"]
{FACT}
"""
    catalog = Catalog.load([write(tmp_path, text)])
    assert [model.id for model in catalog.models] == [row[0] for row in MODELS] + ["acme/one"]
    assert catalog.models[2].workarounds == ("content_tag_fallback",)
    assert Catalog.builtin().models[2].workarounds == ()


@pytest.mark.parametrize("missing", ["date", "source", "evidence"])
def test_a_claim_without_date_source_or_evidence_is_refused(missing: str, tmp_path: Path) -> None:
    """The error names the entry and what it lacks."""
    lines = [line for line in FACT.splitlines() if not line.startswith(missing)]
    text = '[[models]]\nid = "acme/one"\n' + "\n".join(lines)
    with pytest.raises(ConfigError, match=rf"\(acme/one\) has no {missing}") as caught:
        Catalog.load([write(tmp_path, text)])
    assert caught.value.code == "INVALID_CONFIG"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        pytest.param(
            f'[[models]]\nid = "a"\n{FACT.replace("own measurement", " ")}',
            "INVALID_CONFIG",
            "blank source",
            id="blank-source",
        ),
        pytest.param(
            f'[[models]]\nid = "a"\n{FACT.replace("2026-03-01", chr(34) + "lately" + chr(34))}',
            "INVALID_CONFIG",
            "not valid",
            id="no-date",
        ),
        pytest.param(
            f'[[model]]\nid = "a"\n{FACT}', "UNKNOWN_CONFIG_KEY", "'models'", id="unknown-table"
        ),
        pytest.param(
            f'[[models]]\nid = "a"\ntag = []\n{FACT}', "UNKNOWN_CONFIG_KEY", "'tags'", id="key"
        ),
        pytest.param(
            f'[[models]]\nid = "a"\n{FACT}[[models]]\nid = "A"\n{FACT}',
            "INVALID_CONFIG",
            "twice",
            id="twice",
        ),
        pytest.param(
            f'[[models]]\nid = "a"\nworkarounds = ["gemini_compt"]\n{FACT}',
            "UNKNOWN_PRESET",
            "gemini_compt",
            id="unknown-workaround",
        ),
        pytest.param(
            f'[[models]]\nid = "a"\ncapabilities = {{ streamin = true }}\n{FACT}',
            "INVALID_CONFIG",
            "Did you mean 'streaming'",
            id="unknown-capability",
        ),
        pytest.param(
            f'[[models]]\nid = "a"\ncapabilities = {{ streaming = "yes" }}\n{FACT}',
            "INVALID_CONFIG",
            "wrong type",
            id="capability-type",
        ),
        pytest.param(
            f'[[presets]]\nname = "p"\nfields = {{ tool_use_mod = "x" }}\n{FACT}',
            "INVALID_CONFIG",
            "Did you mean 'tool_use_mode'",
            id="unknown-preset-field",
        ),
        pytest.param(
            f'[[presets]]\nname = "p"\nfields.request_overrides = {{ model = "x" }}\n{FACT}',
            "RESERVED_KEY",
            "sets model",
            id="reserved-in-preset",
        ),
        pytest.param(
            f'[[presets]]\nname = "p"\naliases = ["open-router"]\nfields = {{}}\n{FACT}',
            "INVALID_CONFIG",
            "two presets are called 'open_router'",
            id="alias-taken",
        ),
        pytest.param(
            f'[[sampling]]\nid = "s"\napplies_to = ["*"]\nparams = {{ tools = [] }}\n{FACT}',
            "RESERVED_KEY",
            "sets tools",
            id="reserved-in-profile",
        ),
        pytest.param("models = 3", "INVALID_CONFIG", "[[models]]", id="not-a-list"),
        pytest.param("models = [3]", "INVALID_CONFIG", "not a table", id="not-a-table"),
        pytest.param("= 3", "INVALID_CONFIG", "cannot be read", id="not-toml"),
    ],
)
def test_bad_files_are_refused(text: str, code: str, says: str, tmp_path: Path) -> None:
    """Every mistake has a code and a message that names it."""
    with pytest.raises(ConfigError) as caught:
        Catalog.load([write(tmp_path, text)])
    assert caught.value.code == code
    assert says in str(caught.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """The path is in the message."""
    with pytest.raises(ConfigError, match=r"absent\.toml cannot be read"):
        Catalog.load([tmp_path / "absent.toml"])
