"""What a refusal advises: names as they were written, and commands that work."""

from pathlib import Path
from typing import NamedTuple

import pytest

from .harness import document, invoke

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
    Refusal("runs", ("runs",), "RUN_NOT_FOUND", "no runs", "surecall eval --models 'zoo:*'"),
    Refusal(
        "simulated model",
        ("run", "hi", "--model", "zoo:steady"),
        "INVALID_CONFIG",
        "no provider address",
        "surecall faults serve --model steady",
    ),
    Refusal(
        "simulated fault",
        ("run", "hi", "--model", "faults:arguments_blank"),
        "INVALID_CONFIG",
        "no provider address",
        "surecall faults serve --fault arguments_blank",
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
        "`surecall presets list`",
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
    found = document(result)
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


@pytest.mark.parametrize("group", ["runs", "requests", "approvals"])
def test_a_group_takes_the_store_for_its_commands(
    group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the hint about a missing store says works before the command, after it and without."""
    monkeypatch.chdir(tmp_path)
    for command in (
        (group, "--store", "other.db"),
        (group, "--store", "other.db", "list"),
        (group, "list", "--store", "other.db"),
        (group, "--store", "weaker.db", "list", "--store", "other.db"),
    ):
        found = document(invoke(*command, "--json"))
        assert "other.db does not exist" in found["message"]
        assert "--store" in found["hint"]
