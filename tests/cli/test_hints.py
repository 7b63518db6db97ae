"""What a refusal advises: names as they were written, and commands that work."""

from pathlib import Path
from typing import NamedTuple

import pytest

from .harness import document, documents, invoke

ENDPOINT = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
PLAN = ("eval", "--models", "zoo:steady", "--dry-run")


class Refusal(NamedTuple):
    """A command that is refused, and what must be read then."""

    id: str
    command: tuple[str, ...]
    code: str
    message: str
    hint: str


REFUSALS = [
    Refusal("file", ("read", "nofile"), "INVALID_OPTION", "The file nofile cannot", "`-`"),
    Refusal("runs", ("eval", "runs"), "RUN_NOT_FOUND", "no runs", "surecall eval --models 'zoo:*'"),
    Refusal(
        "seconds",
        ("run", "hi", "--timeout", "soon"),
        "INVALID_OPTION",
        "'soon' is not a number",
        "surecall run --help",
    ),
    Refusal(
        "program",
        ("with", "goose"),
        "INVALID_CONFIG",
        "no command 'goose' on the PATH",
        "Install it",
    ),
    Refusal(
        "simulated model",
        ("run", "hi", "--model", "zoo:stedy"),
        "UNKNOWN_MODEL",
        "no simulated model 'stedy'",
        "'steady'",
    ),
    Refusal(
        "simulated fault",
        ("run", "hi", "--model", "faults:arguments_blnk"),
        "UNKNOWN_FAULT",
        "no fault 'arguments_blnk'",
        "'arguments_blank'",
    ),
    Refusal(
        "address without scheme",
        ("run", "hi", "--model", "m", "--base-url", "127.0.0.1:8000"),
        "INVALID_CONFIG",
        "base_url",
        "http://",
    ),
    Refusal(
        "address with a wrong port",
        ("run", "hi", "--model", "m", "--base-url", "http://127.0.0.1:99999"),
        "INVALID_CONFIG",
        "base_url",
        "65535",
    ),
    Refusal(
        "model at an address without scheme",
        ("run", "hi", "--model", "m@127.0.0.1:8000/v1"),
        "INVALID_CONFIG",
        "no provider address",
        "after @ begins with http:// or https://",
    ),
    Refusal(
        "header",
        ("run", "hi", *ENDPOINT, "--header", "a b=c"),
        "INVALID_CONFIG",
        "headers.a b",
        "hyphens",
    ),
    Refusal(
        "not a number",
        ("run", "hi", *ENDPOINT, "--temperature", "nan"),
        "INVALID_OPTION",
        "temperature",
        "finite",
    ),
    Refusal(
        "nearly auto",
        ("run", "hi", *ENDPOINT, "--preset", "autoo"),
        "UNKNOWN_PRESET",
        "'autoo'",
        "'auto'",
    ),
    Refusal(
        "folder of tools",
        ("run", "hi", *ENDPOINT, "--tools", "."),
        "INVALID_TOOL",
        "folder",
        "Python file",
    ),
    Refusal(
        "provider of presets",
        ("models", "presets", "show", "m", "--provider", "opnai"),
        "UNKNOWN_PROVIDER",
        "'opnai'",
        "'openai'",
    ),
    Refusal(
        "part of a setting",
        ("docs", "explain", "retry"),
        "UNKNOWN_CODE",
        "'retry'",
        "retry.max_wait",
    ),
    Refusal(
        "name of a kind",
        ("docs", "explain", "zzz", "--kind", "rule"),
        "UNKNOWN_CODE",
        "not a rule",
        "--kind rule",
    ),
    Refusal(
        "probe of nobody",
        ("config", "init", "--probe"),
        "INVALID_OPTION",
        "no provider",
        "--provider",
    ),
    Refusal(
        "eval of a word", ("eval", "vendor"), "INVALID_OPTION", "Did you mean 'vendors'?", "--help"
    ),
    Refusal(
        "eval of a model", ("eval", "zoo:steady"), "INVALID_OPTION", "--models names", "--help"
    ),
    Refusal(
        "profile",
        ("run", "hi", *ENDPOINT, "--profile", "nope"),
        "INVALID_OPTION",
        "there is no sampling profile 'nope'",
        "kimi_k2_5_instant",
    ),
    Refusal(
        "allowlist",
        ("run", "hi", *ENDPOINT, "--option", 'tool_allowlist=["nope"]'),
        "INVALID_OPTION",
        "tool_allowlist names 'nope'",
        "None are defined",
    ),
    Refusal("timeout", ("run", "hi", "--timeout", "0"), "INVALID_OPTION", "--timeout", "run"),
    Refusal(
        "errors in words", (*PLAN, "--max-errors", "foo"), "INVALID_OPTION", "'foo'", "such as 3"
    ),
    Refusal("errors below 0", (*PLAN, "--max-errors", "-1"), "INVALID_OPTION", "'-1'", "such as 3"),
    Refusal(
        "too many errors", (*PLAN, "--max-errors", "200%"), "INVALID_OPTION", "'200%'", "or 2%"
    ),
    Refusal(
        "strategy",
        (*PLAN, "--strategies", "nope"),
        "NOTHING_SELECTED",
        "no strategy 'nope'",
        "Known: ablate:NAME, baseline, gated, guided, naive, production, raw.",
    ),
    Refusal(
        "fault", ("faults", "show", "zzzz"), "UNKNOWN_FAULT", "'zzzz'", "`surecall faults list`"
    ),
    Refusal("page", ("docs", "zzzz"), "UNKNOWN_TOPIC", "'zzzz'", "`surecall docs` lists them all"),
    Refusal(
        "preset",
        ("run", "hi", *ENDPOINT, "--preset", "zzzz"),
        "UNKNOWN_PRESET",
        "'zzzz'",
        "`surecall models presets list`",
    ),
    Refusal(
        "plan",
        ("faults", "serve", "--plan", "plan.toml"),
        "INVALID_CONFIG",
        "plan.toml",
        "`surecall docs test-against-a-faulty-provider`",
    ),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_refusal_says_what_was_wrong_and_what_works(
    case: Refusal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names what the user wrote, and the hint something that can be typed."""
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text("nothing = 1\n")
    result = invoke(*case.command, "--json")
    found = documents(result)[-1]
    assert (found["code"], result.exit_code) == (case.code, 5 if "NOTHING" in case.code else 4)
    assert case.message in found["message"]
    assert case.hint in found["hint"]


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("cases.csv", "", "first row"),
        ("cases.jsonl", "\n", "one case a line"),
        ("cases.json", '{"cases": []}', 'list of "cases"'),
        ("cases.toml", "", "[[cases]]"),
        ("cases.py", "cases = []", "as a dict"),
    ],
)
def test_a_file_without_cases_is_advised_by_its_kind(
    name: str, text: str, hint: str, tmp_path: Path
) -> None:
    """How the first case is written depends on the kind of file."""
    place = tmp_path / name
    place.write_text(text)
    found = document(invoke(*PLAN, "--suite", f"custom:{place}", "--json"))
    assert found["code"] == "INVALID_CASE"
    assert hint in found["hint"]


@pytest.mark.parametrize("name", ["nofile", "model", "there"])
def test_a_name_of_the_user_keeps_its_letters(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a file that is called like the first word of a sentence."""
    monkeypatch.chdir(tmp_path)
    assert f"The file {name} cannot be read" in invoke("read", name).stderr


def test_a_setting_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that begins with the name of a setting begins with a small letter."""
    monkeypatch.chdir(tmp_path)
    assert "  stream (from SURECALL_STREAM)" in invoke("run", "x", SURECALL_STREAM="x").stderr


@pytest.mark.parametrize("group", ["eval runs", "requests", "approvals"])
def test_a_group_takes_the_store_for_its_commands(
    group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the hint about a missing store says works before the command, after it and without."""
    monkeypatch.chdir(tmp_path)
    for command in (
        (*group.split(), "--store", "other.db"),
        (*group.split(), "--store", "other.db", "list"),
        (*group.split(), "list", "--store", "other.db"),
        (*group.split(), "--store", "weaker.db", "list", "--store", "other.db"),
    ):
        found = document(invoke(*command, "--json"))
        assert "other.db does not exist" in found["message"]
        assert "--store" in found["hint"]


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (None, "No such file", "may read"),
        (b'model = "caf\xe9"', "not UTF-8 at byte 12", "UTF-8"),
        (b"model = gpt-5", "not valid TOML", "in quotes"),
        (b"[tool.surecall]", "no setting 'tool'", "pyproject.toml"),
        (b"deadlines = 3", "must be a table", "[deadlines]"),
        (b"[retry]\nmax_retries = -1", "0 or more", "surecall docs retry.max_retries"),
        (b"[options]\ntop_p = 1", "no option 'top_p'", "request_overrides.top_p"),
        (b"[capabilities]\nstreeming = true", "'streeming'", "'streaming'"),
        (b"[capabilities]\nstreaming = 3", "wrong type", "surecall docs capabilities"),
    ],
)
def test_a_file_of_settings_is_advised_about(
    content: bytes | None, message: str, hint: str, tmp_path: Path
) -> None:
    """Whatever is wrong with it, there is something to do."""
    place = tmp_path / "my.toml"
    if content is not None:
        place.write_bytes(content)
    result = invoke("config", "check", str(place), "--json")
    found = document(result)
    assert result.exit_code == 4
    assert message in found["message"]
    assert hint in found["hint"]


@pytest.mark.parametrize(
    "words", [("serve", "--config"), ("faults", "serve", "--plan"), ("faults", "serve", "--script")]
)
def test_every_toml_file_is_advised_about(words: tuple[str, ...], tmp_path: Path) -> None:
    """Also those of servers."""
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    found = document(invoke(*words, str(tmp_path / "bad.toml"), "--json"))
    assert "not UTF-8 at byte 0" in found["message"]
    assert found["hint"] == "Save it as text in UTF-8."


def test_broken_json_of_cases_is_told_as_to_people(tmp_path: Path) -> None:
    """What a model would be told about its JSON is not repeated inside the message."""
    (tmp_path / "cases.json").write_text('{"a": ')
    place = f"custom:{tmp_path / 'cases.json'}"
    message = document(invoke(*PLAN, "--suite", place, "--json"))["message"]
    assert "the text ends where a value should be" in message
    assert "INVALID_JSON" not in message
