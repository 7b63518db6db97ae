"""`surecall faults`."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from surecall.cli import ExitCode
from surecall.faults import FAULTS, zoo
from surecall.wire import PROTOCOLS

from .harness import document, invoke


def test_faults_are_listed_with_what_comes_of_them() -> None:
    """Every fault is there, as words and as JSON."""
    result = invoke("faults", "list", COLUMNS="200")
    assert result.exit_code == 0
    assert [fault.name for fault in FAULTS if fault.name not in result.stdout] == []
    found = document(invoke("faults", "list", "--json"))
    assert [row["name"] for row in found["faults"]] == [fault.name for fault in FAULTS]
    row = next(row for row in found["faults"] if row["name"] == "cut_at_limit")
    assert (row["repairable"], row["code"], row["told"]) == (
        False,
        None,
        "ARGUMENTS_TRUNCATED",
    )
    assert set(row["protocols"]) == set(PROTOCOLS)


def test_the_formats_of_a_fault_are_listed() -> None:
    """Whoever picks a fault sees where it can be asked for, and what a format changes."""
    rows = {
        line.split()[0]: line
        for line in invoke("faults", "list", COLUMNS="250").stdout.splitlines()
        if line.strip()
    }
    assert " all " in rows["rate_limit"]
    assert " chat_completions, gemini " in rows["second_choice"]
    shown = invoke("faults", "show", "stream_error").stdout
    assert "ends with UPSTREAM_5XX" in shown
    assert "ends with STREAM_ERROR" in shown


def test_a_group_can_be_listed_alone() -> None:
    """Only its faults are shown; an unknown one is answered with the closest."""
    found = document(invoke("faults", "list", "--group", "ids", "--json"))
    assert {row["group"] for row in found["faults"]} == {"ids"}
    wrong = invoke("faults", "list", "--group", "id")
    assert wrong.exit_code == ExitCode.USAGE
    assert "UNKNOWN_FAULT" in wrong.stderr


def test_one_fault_is_explained() -> None:
    """What it does, where it is seen, what a run makes of it, and what is true."""
    shown = invoke("faults", "show", "reasoning-echo-needed").stdout
    assert shown.splitlines()[0].split() == ["reasoning_echo_needed", "capability"]
    assert "needs_reasoning_echo = true" in shown
    assert "does the right thing" in shown
    told = invoke("faults", "show", "cut_at_limit").stdout
    assert "the model reads ARGUMENTS_TRUNCATED" in told
    assert "ends with a note that the call was not executed" in told


def test_simulated_models_are_listed() -> None:
    """Each with what it does."""
    found = document(invoke("faults", "models", "--json"))
    assert [row["name"] for row in found["models"]] == [model.name for model in zoo()]
    assert "stubborn" in invoke("faults", "models").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--fault", "arguments_fence"], "arguments_fenced"),
        (["--plan", "none.toml"], "none.toml"),
        (["--model", "stuborn"], "stubborn"),
        (["--script", "none.toml"], "none.toml"),
        (["--fault", "reset", "--model", "steady"], "--plan"),
        (["--host", "192.0.2.1"], "192.0.2.1:0: Cannot assign requested address"),
        (["--host", "192.0.2.1"], "Choose a --host"),
    ],
)
def test_serving_does_not_begin_with_a_mistake(words: list[str], told: str) -> None:
    """What is wrong is said, with what was probably meant."""
    result = invoke("faults", "serve", *words)
    assert result.exit_code == ExitCode.USAGE
    assert told in result.stderr
    assert result.stdout == ""


def ask(url: str, model: str, **fields: Any) -> dict[str, Any]:
    """Send one chat completion and return its message."""
    tool: dict[str, Any] = {"type": "function", "function": {"name": "save", "parameters": {}}}
    said = {"role": "user", "content": "go"}
    body: dict[str, Any] = {"model": model, "messages": [said], "tools": [tool]}
    request = urllib.request.Request(
        f"{url}/chat/completions",
        json.dumps(body | fields).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=100) as answer:
        return json.load(answer)["choices"][0]["message"]


def test_it_serves_until_it_is_interrupted(own_folder: Path) -> None:
    """The address is printed first, replies have the fault, and Ctrl-C is a clean end."""
    (own_folder / "script.toml").write_text('[[steps]]\ncall = "save"\narguments = { a = 1 }\n')
    words = ["faults", "serve", "--fault", "arguments_fenced", "--script", "script.toml"]
    server = subprocess.Popen(
        [sys.executable, "-m", "surecall", *words, "--seed", "3", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=own_folder,
    )
    try:
        assert server.stdout is not None
        first = json.loads(server.stdout.readline())
        assert (first["type"], first["seed"]) == ("serving", 3)
        message = ask(first["url"], "any")
        assert message["tool_calls"][0]["function"]["arguments"] == '```json\n{"a":1}\n```'
        clean = ask(first["url"], "faults:clean")
        assert clean["tool_calls"][0]["function"]["arguments"] == '{"a":1}'
        server.send_signal(signal.SIGINT)
        output, errors = server.communicate(timeout=100)
    finally:
        server.kill()
        server.communicate()
    last = json.loads(output)
    assert (server.returncode, errors) == (0, "")
    assert (last["type"], last["requests"]) == ("stopped", 2)
    assert last["by_fault"] == {"arguments_fenced": 1}
