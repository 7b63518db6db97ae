"""`surecall replay`: the same decisions, or the differences."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.upstream import FaultyUpstream, http_response, reply
from surecall import run
from surecall.cli import ExitCode
from surecall.loop import save_trace
from surecall.models.transport import ScriptedTransport, assistant, tool_call

from .harness import document, invoke


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Record the run of the demo."""
    path = tmp_path / "trace.json"
    assert invoke("demo", "--json", "--trace", str(path)).exit_code == 0
    return path


def change(path: Path, turn: int, **fields: Any) -> None:
    """Change the recorded message of one turn."""
    recorded = json.loads(path.read_text("utf-8"))
    recorded["turns"][turn]["raw"]["message"] |= fields
    path.write_text(json.dumps(recorded), "utf-8")


def test_a_run_replays_the_same(trace: Path) -> None:
    """Every turn is shown with its calls, changes and outcome, and nothing is different."""
    result = invoke("replay", str(trace))
    assert result.exit_code == 0
    assert "every decision is as recorded" in result.stdout
    for words in (
        "~ changed   assign_call_id",
        "~ changed   strip_code_fence",
        "✗ refused   ARGUMENTS_TRUNCATED",
        'refund(number="A-17", cents=4500)',
        "finish_reason length",
        "answer   Order A-17 is refunded",
    ):
        assert words in result.stdout


def test_another_decision_is_exit_code_1(trace: Path) -> None:
    """A reply that no longer reads as recorded is a difference, with its turn."""
    change(trace, 4, tool_calls=[])
    result = invoke("replay", str(trace))
    assert result.exit_code == ExitCode.NO_ANSWER
    assert "✗ different turn 4" in result.stdout
    found = document(invoke("replay", "--json", str(trace)))
    assert found["same"] is False
    assert any("turn 4" in difference for difference in found["differences"])


def test_replay_as_json_has_every_turn(trace: Path) -> None:
    """The document has calls with receipts and results with codes."""
    found = document(invoke("replay", str(trace), "--json"))
    assert (found["type"], found["same"], found["code"]) == ("replay", True, "")
    assert len(found["turns"]) == 7
    assert [receipt["rule"] for receipt in found["turns"][1]["calls"][0]["receipts"]] == [
        "strip_code_fence",
        "decode_nested_text",
    ]
    assert found["turns"][2]["results"][0]["error_codes"] == ["ARGUMENTS_INVALID"]


@pytest.mark.parametrize("content", [None, "{}", "not json"])
def test_what_is_no_trace_is_exit_code_4(content: str | None, tmp_path: Path) -> None:
    """A file that is missing or holds something else is refused with a code."""
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(content)
    result = invoke("replay", str(path))
    assert result.exit_code == ExitCode.USAGE
    assert "INVALID_TRACE" in result.stderr


async def test_a_turn_is_sent_again_and_both_replies_are_shown(trace: Path) -> None:
    """The request of that turn goes out, no tool runs, and the calls stand side by side."""
    function = {"name": "refund", "arguments": '{"number": "A-17", "cents": 1}'}
    call = {"id": "n1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    async with FaultyUpstream([reply(message, finish_reason="tool_calls")]) as upstream:
        words = ("replay", str(trace), "--send", "--turn", "4", "--base-url", upstream.url)
        result = await asyncio.to_thread(invoke, *words)
        as_json = document(await asyncio.to_thread(invoke, *words, "--json"))
        sent = upstream.requests[0].json
    assert result.exit_code == 0, result.stderr
    assert "cents=4500" in result.stdout
    assert "cents=1" in result.stdout
    assert "not the recorded calls" in result.stdout
    assert as_json["same_calls"] is False
    assert as_json["new"]["calls"][0]["arguments"] == {"number": "A-17", "cents": 1}
    assert [message["role"] for message in sent["messages"]].count("tool") == 4


async def test_calls_that_the_run_ignored_are_not_other_calls(tmp_path: Path) -> None:
    """The new reply is held to the same limit, and what is ignored is shown as such."""
    calls = [tool_call("look", {"at": number}, f"c{number}") for number in (1, 2)]
    message = assistant(None, *calls)

    def look(at: int) -> str:
        """Look."""
        return str(at)

    result = await run(
        "hi",
        model="m",
        tools=[look],
        transport=ScriptedTransport([message, "done"]),
        max_tool_calls_per_turn=1,
    )
    path = tmp_path / "trace.json"
    save_trace(result.trace, path)
    async with FaultyUpstream([reply(message, finish_reason="tool_calls")] * 2) as upstream:
        words = ("replay", str(path), "--send", "--base-url", upstream.url)
        shown = await asyncio.to_thread(invoke, *words)
        as_json = document(await asyncio.to_thread(invoke, *words, "--json"))
    assert "the same calls" in shown.stdout
    assert shown.stdout.count("ignored: look(at=2)") == 2
    assert as_json["same_calls"] is True
    assert len(as_json["new"]["calls"]) == len(as_json["new"]["ignored_calls"]) == 1


async def test_sending_again_reports_the_provider(trace: Path) -> None:
    """A refusal of the provider is exit code 6, a turn that is not there exit code 4."""
    async with FaultyUpstream([http_response(b"{}", 403)]) as upstream:
        words = ("replay", str(trace), "--send", "--base-url", upstream.url)
        refused = await asyncio.to_thread(invoke, *words)
        absent = await asyncio.to_thread(invoke, *words, "--turn", "99")
    assert (refused.exit_code, absent.exit_code) == (ExitCode.PROVIDER, ExitCode.USAGE)
    assert "FORBIDDEN" in refused.stderr


@pytest.mark.parametrize("words", [("--turn", "0"), ("--base-url", "http://127.0.0.1:9")])
def test_what_is_for_sending_needs_send(trace: Path, words: tuple[str, ...]) -> None:
    """A flag is never ignored."""
    result = invoke("replay", str(trace), *words, "--json")
    assert result.exit_code == ExitCode.USAGE
    assert "--send" in document(result)["message"]


def test_a_file_that_is_no_trace_is_told(tmp_path: Path) -> None:
    """Whether it is missing or something else, in one sentence and without another code in it."""
    place = tmp_path / "trace.json"
    missing = document(invoke("replay", str(place), "--json"))
    assert missing["message"] == f"the trace {place} cannot be read: No such file or directory."
    place.write_text("{", "utf-8")
    broken = document(invoke("replay", str(place), "--json"))
    assert (missing["code"], broken["code"]) == ("INVALID_TRACE", "INVALID_TRACE")
    assert broken["message"].startswith(f"the file {place} is not a trace: the text ends")
    assert "INVALID_JSON" not in broken["message"]
