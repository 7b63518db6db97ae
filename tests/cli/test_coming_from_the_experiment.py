"""The commands of the original experiment, as its page has them, against a fake OpenRouter."""

import json
import re
import shlex
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from surecall.evals.original import VARIABLES

from .harness import document, documents, invoke

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-the-experiment.md"
COMMANDS = re.findall(r"^\$ (OPENROUTER.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
MATRIX = next(line for line in COMMANDS if "SAMPLING_PROFILE_FILTER" in line)
KEY = "sk-or-v1-of-the-test"


class FakeOpenRouter(ThreadingHTTPServer):
    """Answers like a model that reads, patches and says that it is done."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    @property
    def address(self) -> str:
        """Where it listens, with a path in front as providers have it."""
        return f"http://127.0.0.1:{self.server_address[1]}/api"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeOpenRouter

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.path, headers, body))
        message = _answer(body)
        finish = "tool_calls" if "tool_calls" in message else "stop"
        reply = {
            "id": "g1",
            "model": body["model"],
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        }
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    offered = {tool["function"]["name"] for tool in body.get("tools") or ()}
    results = sum(message["role"] == "tool" for message in body["messages"])
    patch = {"ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}], "request_id": "r1"}
    calls = [("state_get", {}), ("state_patch", patch)]
    if results >= len(calls) or calls[results][0] not in offered:
        return {"role": "assistant", "content": "Done."}
    name, arguments = calls[results]
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"c{results}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@pytest.fixture
def openrouter() -> Iterator[FakeOpenRouter]:
    """Serve on a free port."""
    server = FakeOpenRouter()
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def parse(command: str) -> tuple[list[str], dict[str, str]]:
    """Split a command of the page into its arguments and its variables."""
    words = shlex.split(command)
    at = words.index("surecall")
    return words[at + 1 :], dict(word.split("=", 1) for word in words[:at])


def variables_of(command: str, server: FakeOpenRouter) -> dict[str, str]:
    """Return the variables of a command, with the key and the address of the test."""
    return parse(command)[1] | {
        "OPENROUTER_API_KEY": KEY,
        "OPENROUTER_BASE_URL": server.address,
        "COLUMNS": "300",
    }


def test_its_first_command_runs_the_stable_models(openrouter: FakeOpenRouter) -> None:
    """The key alone is enough; key, path and headers go to whatever address is set."""
    extra = {"OPENROUTER_X_TITLE": "Trials", "OPENROUTER_HTTP_REFERER": "https://example.org"}
    result = invoke(*parse(COMMANDS[0])[0], **variables_of(COMMANDS[0], openrouter), **extra)
    assert result.exit_code == 0, result.output
    assert "the stable models take part" in result.stderr
    path, headers, body = openrouter.seen[0]
    assert path == "/api/v1/chat/completions"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert (headers["x-title"], headers["http-referer"]) == ("Trials", "https://example.org")
    assert body["parallel_tool_calls"] is False
    assert {sent["model"] for _, _, sent in openrouter.seen} == {
        "anthropic/claude-opus-4.6:nitro",
        "google/gemini-2.5-flash:nitro",
        "openai/gpt-5.2:nitro",
        "qwen/qwen3-235b-a22b-2507:nitro",
        "qwen/qwen3-30b-a3b-instruct-2507:nitro",
        "qwen/qwen3-next-80b-a3b-instruct:nitro",
    }
    rows = [line.split() for line in result.stdout.splitlines() if "4/4" in line]
    assert rows[0][:5] == ["openai/gpt-5.2:nitro", "default", "4/4", "100.0%", "1/1"] or rows
    head = next(line for line in result.stdout.splitlines() if "tool_ok_rate" in line)
    assert head.split()[:6] == [
        *("model", "sampling_profile", "tool_ok", "tool_ok_rate", "control_ok", "p95_ms")
    ]


def test_its_matrix_has_its_29_rows(openrouter: FakeOpenRouter, tmp_path: Path) -> None:
    """One trial of each is enough to count the rows, on the terminal and in Markdown."""
    variables = variables_of(MATRIX, openrouter) | {"OPENROUTER_TRIALS": "1"}
    words = (*parse(MATRIX)[0], "--report", "md,json", "--out", str(tmp_path / "out"))
    result = invoke(*words, **variables)
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "out" / "experiment.md").read_text("utf-8").splitlines()
    end = lines.index("", 2)
    assert lines[2] == (
        "| model | sampling_profile | tool_ok | tool_ok_rate | control_ok | p95_ms "
        "| top tool failures |"
    )
    rows = [line.split(" | ") for line in lines[4:end]]
    assert len(rows) == 29
    right = [row for row in rows if "4/4" in row]
    (left,) = (row for row in rows if row not in right)
    assert left[0] == "| `minimax/minimax-m2-her`"  # its workaround switches tools off
    assert result.stdout.count("4/4") >= 28
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert len(summary["models"]) == 29
    assert summary["base_url"] == f"{openrouter.address}/v1"
    assert summary["tool_use_mode"] == "enforced"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_can_be_planned(openrouter: FakeOpenRouter, command: str) -> None:
    """Nothing in them is refused, and nothing in them changes nothing."""
    words, _ = parse(command)
    result = invoke(*words, "--dry-run", "--json", **variables_of(command, openrouter))
    found = documents(result)
    notes = [one["message"] for one in found if one["type"] == "note"]
    assert all("stable models take part" in note for note in notes)
    assert found[-1]["trials"] >= 10
    assert not openrouter.seen


def test_a_mode_reaches_every_scenario_that_needs_none_of_its_own(
    openrouter: FakeOpenRouter, tmp_path: Path
) -> None:
    """`relaxed` is in force in the trials and in the summary; `disabled` leaves chat_only."""
    variables = variables_of(COMMANDS[0], openrouter) | {
        "OPENROUTER_MODEL_FILTER": "openai/gpt-5.2:nitro",
        "OPENROUTER_TOOL_USE_MODE": "relaxed",
    }
    out = tmp_path / "out"
    result = invoke("eval", "--report", "json", "--out", str(out), **variables)
    assert result.exit_code == 0, result.output
    trials = [json.loads(file.read_text("utf-8")) for file in (out / "runs").iterdir()]
    modes = {trial["scenario"]: trial["tool_use_mode"] for trial in trials}
    assert modes.pop("chat_only") == "disabled"
    assert set(modes.values()) == {"relaxed"}
    assert json.loads((out / "summary.json").read_text("utf-8"))["tool_use_mode"] == "relaxed"
    variables["OPENROUTER_TOOL_USE_MODE"] = "disabled"
    plan = document(invoke("eval", "--dry-run", "--json", **variables))
    assert plan["trials"] == 1


def test_a_line_for_each_event_is_written_where_it_is_wanted(openrouter: FakeOpenRouter) -> None:
    """`VERBOSE=1` tells what happens, `VERBOSE=2` sizes as well."""
    variables = variables_of(COMMANDS[0], openrouter) | {
        "OPENROUTER_MODEL_FILTER": "openai/gpt-5.2:nitro",
        "OPENROUTER_SCENARIOS": "happy_path",
    }
    silent = invoke("eval", "--new", **variables)
    told = invoke("eval", "--new", **variables, VERBOSE="1")
    sized = invoke("eval", "--new", **variables, VERBOSE="2")
    assert "tool_call_end" not in silent.stderr
    assert "happy_path #1: turn 1 tool_call_end state_patch" in told.stderr
    assert "happy_path #1: OK, " in told.stderr
    assert "output_bytes=" in sized.stderr
    assert "output_bytes=" not in told.stderr
    quiet = invoke("eval", "--new", "-q", **variables, VERBOSE="2")
    assert quiet.stderr == ""


def test_an_unknown_variable_is_named() -> None:
    """A typo is not ignored in silence."""
    result = invoke(
        "eval", "--models", "zoo:steady", "--dry-run", OPENROUTER_TRAILS="3", OPENROUTER_FOO="x"
    )
    assert "OPENROUTER_TRAILS is not a variable" in result.stderr
    assert "did you mean OPENROUTER_TRIALS?" in result.stderr
    assert "OPENROUTER_FOO is not a variable" in result.stderr


@pytest.mark.parametrize("name", ["tool_ok_rate", "control_ok", "OPENROUTER_TOOL_USE_MODE"])
def test_its_words_are_explained(name: str) -> None:
    """Every old name has an explanation."""
    assert invoke("docs", name).exit_code == 0


def test_every_variable_is_on_the_page() -> None:
    """The page names what is read, and nothing else."""
    listed = re.findall(r"^\| `(OPENROUTER_\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert listed == [one.old for one in VARIABLES]
