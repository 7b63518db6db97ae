"""`surecall eval --agent`: a program of the user's own, started for each trial."""

import sys
from pathlib import Path

import pytest

from surecall.evals.store import RunStore

from .harness import document, documents, invoke

AGENT = """
import json, os, sys, urllib.request

STREAM = {stream}
TOOLS = [{{"type": "function", "function": {{"name": "get_weather", "parameters": {{
    "type": "object", "properties": {{"city": {{"type": "string"}}}}, "required": ["city"]}}}}}}]

def ask(messages):
    body = {{"model": "any", "messages": messages, "tools": TOOLS, "stream": STREAM}}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {{"content-type": "application/json"}},
    )
    text = urllib.request.urlopen(request).read().decode()
    if not STREAM:
        return json.loads(text)["choices"][0]["message"]
    message = {{"role": "assistant", "content": "", "tool_calls": []}}
    for line in text.splitlines():
        if line.startswith("data: {{"):
            delta = (json.loads(line[6:])["choices"] or [{{}}])[0].get("delta") or {{}}
            message["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls") or []:
                if call.get("id"):
                    message["tool_calls"].append(
                        {{"id": call["id"], "type": "function", "function": {{
                            "name": call["function"]["name"], "arguments": ""}}}})
                message["tool_calls"][-1]["function"]["arguments"] += (
                    call["function"].get("arguments") or "")
    return message

assert sys.stdin.read() == os.environ["SURECALL_PROMPT"]
messages = [{{"role": "user", "content": os.environ["SURECALL_PROMPT"]}}]
for turn in range(5):
    message = ask(messages)
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        {act}
        messages.append({{"role": "tool", "tool_call_id": call["id"], "content": "20 degrees"}})
"""
CASES = """
[[tools]]
name = "get_weather"
parameters = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }

[[cases]]
id = "paris"
prompt = "What is the weather in Paris?"
calls = [{ tool = "get_weather", arguments = { city = "Paris" } }]
checks = { text_contains = ["Done"] }
"""


@pytest.fixture
def cases() -> Path:
    """Write the cases into the current folder."""
    place = Path("cases.toml")
    place.write_text(CASES, "utf-8")
    return place


def command(*, stream: bool = False, act: str = "pass") -> str:
    """Write an agent and return how it is started."""
    Path("agent.py").write_text(AGENT.format(stream=stream, act=act), "utf-8")
    return f"{sys.executable} agent.py"


@pytest.mark.parametrize("stream", [False, True])
def test_a_program_is_judged_by_its_calls_and_text(cases: Path, stream: bool) -> None:
    """Its calls, their results and the last answer are those of the trial."""
    words = ("--agent", command(stream=stream), "--suite", f"custom:{cases}")
    found = documents(invoke("eval", *words, "--models", "zoo:steady", "--json"))
    summary = found[-1]
    assert (summary["overall"]["strict"]["k"], summary["overall"]["strict"]["n"]) == (1, 1)
    with RunStore(Path(".surecall/evals.db")) as store:
        (row,) = store.rows(summary["run"])
        body = store.body(summary["run"], 0)
    assert [call.name for call in row.calls] == ["get_weather"]
    assert row.cell.strategy == "raw"
    assert "20 degrees" in body.transcript[0]["results"][0]["text"]
    again = document(invoke("eval", "regrade", "--dry-run", "--json"))
    assert again["undecided"] == [0]


def test_a_program_that_does_not_run_its_tool_fails(cases: Path) -> None:
    """A call without a result did nothing."""
    words = ("--agent", command(act="continue"), "--suite", f"custom:{cases}")
    found = documents(invoke("eval", *words, "--models", "zoo:steady", "--json"))
    assert found[-1]["overall"]["strict"]["k"] == 0


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("no-such-program", "TOOL_ERROR"),
        (f"{sys.executable} -c 'raise SystemExit(3)'", "TOOL_ERROR"),
        (f"{sys.executable} -c 'import time; time.sleep(60)'", "DEADLINE_EXCEEDED"),
    ],
)
def test_a_program_that_fails_is_wrong_and_not_an_endpoint_error(
    cases: Path, program: str, code: str
) -> None:
    """It is the program that is judged."""
    words = ("--agent", program, "--suite", f"custom:{cases}", "--timeout", "3")
    found = documents(invoke("eval", *words, "--models", "zoo:steady", "--json"))
    overall = found[-1]["overall"]
    assert (overall["strict"]["k"], overall["strict"]["n"], overall["errors"]) == (0, 1, 0)
    assert found[-1]["overall"]["failures"][0]["code"] == code


def test_a_strategy_is_refused(cases: Path) -> None:
    """A program is run as it is."""
    words = ("--agent", "x", "--strategies", "production", "--suite", f"custom:{cases}")
    result = invoke("eval", *words, "--models", "zoo:steady")
    assert result.exit_code == 4
    assert "strategy raw" in result.stderr


def test_the_program_is_part_of_the_experiment(cases: Path) -> None:
    """Another command is another experiment, and a run is resumed with its own."""
    words = ("--suite", f"custom:{cases}", "--models", "zoo:steady", "--json")
    first = documents(invoke("eval", "--agent", command(), *words))[-1]
    other = documents(invoke("eval", "--agent", f"{command()} x", *words))[-1]
    assert first["run"] != other["run"]
    resumed = documents(invoke("eval", "--resume", first["run"], "--json"))
    assert resumed[-1]["run"] == first["run"]
