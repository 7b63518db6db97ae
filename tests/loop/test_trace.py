"""Traces: complete, and the same after saving and loading."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import BaseModel

import surecall
from surecall.base.errors import Code, ConfigError, ProviderStatusError, RunLimitError
from surecall.loop import load_trace, save_trace
from surecall.loop.trace import TRACE_VERSION
from surecall.models.transport import ScriptedReply
from surecall.text import decode, encode

from .toolbox import assistant, look, run_script, tool_call

REFUSED = ScriptedReply(status=404, message="no endpoints")
MESSY = [
    assistant("why", tool_call("look", '```{"what":"é\\u0000"}```', " a "), tool_call("nope")),
    assistant(None, tool_call("save", {"text": "x" * 3}, "a"), reasoning_content="hm"),
    ScriptedReply(message="done", usage={"prompt_tokens": 3, "total_tokens": 9}),
]


async def test_a_trace_is_the_same_after_saving_and_loading(tmp_path: Path) -> None:
    """Everything that explains a run survives the file."""
    result = await run_script(MESSY, system="s", max_turns=5, request_overrides={"model": "x"})
    save_trace(result.trace, tmp_path / "trace.json")
    loaded = load_trace(tmp_path / "trace.json")
    assert loaded == result.trace
    assert loaded.ignored_overrides == ("model",)
    assert loaded.origins["max_turns"] == "caller"
    assert loaded.receipts == result.receipts
    assert loaded.turns[0].calls[0].raw == '```{"what":"é\\u0000"}```'


async def test_the_trace_of_a_failed_run_is_saved_too(tmp_path: Path) -> None:
    """An error carries its trace, with the reason in it."""
    with pytest.raises(RunLimitError) as caught:
        await run_script([assistant(None, tool_call("look"))], max_turns=1)
    trace = caught.value.trace
    save_trace(trace, tmp_path / "trace.json")
    loaded = load_trace(tmp_path / "trace.json")
    assert loaded == trace
    assert loaded.error is not None
    assert loaded.error.code == Code.MAX_TURNS_REACHED


async def test_summaries_show_no_bodies() -> None:
    """Sizes, names and codes, but neither arguments nor results."""
    result = await run_script(MESSY)
    first = result.trace.turns[0]
    assert [(call.id, call.name) for call in first.tool_calls] == [
        ("a", "look"),
        ("call_1", "nope"),
    ]
    assert [(item.ok, item.error_codes, item.executed) for item in first.tool_results] == [
        (True, (), True),
        (False, ("TOOL_NOT_ALLOWED",), False),
    ]
    summary = first.response_summary
    assert summary is not None
    assert (summary.tool_calls_count, summary.assistant_content_sample) == (2, "why")
    assert first.request.messages_count == 1
    assert first.request.tools_count == 2
    assert result.trace.turns[1].request.messages_count == 4


async def test_refused_requests_are_in_the_trace_of_their_turn() -> None:
    """A request that was sent again without tools is on record with the turn it belongs to."""
    result = await run_script([REFUSED, "plain"], fallback_retry_count=1, system="s")
    (turn,) = result.trace.turns
    assert [(item.status, item.tools_enabled) for item in turn.failures] == [(404, True)]
    assert (turn.request.messages_count, turn.request.tools_count) == (2, 0)


async def test_a_request_that_ended_the_run_is_in_the_trace() -> None:
    """The turn that got no reply is counted as the others are, system text and tools alike."""
    with pytest.raises(ProviderStatusError) as caught:
        await run_script([assistant(None, tool_call("look")), REFUSED], system="s")
    trace = caught.value.trace
    lost = trace.turns[-1]
    assert (lost.turn, lost.raw, len(lost.failures)) == (1, None, 1)
    assert (lost.request.messages_count, lost.request.tools_count) == (4, 2)
    assert trace.error.code == caught.value.code
    assert [message.role for message in caught.value.history] == ["user", "assistant", "tool"]


class Point(BaseModel):
    """What a tool may return inside its answer."""

    x: int = 1


@surecall.tool(effect="read")
def locate() -> dict[str, Any]:
    """Return a model inside a dict."""
    return {"at": Point()}


async def test_results_that_are_not_plain_data_can_be_saved(tmp_path: Path) -> None:
    """A tool may return models; the file holds what they mean."""
    replies = [assistant(None, tool_call("locate")), "done"]
    result = await run_script(replies, tools=[locate])
    save_trace(result.trace, tmp_path / "trace.json")
    loaded = load_trace(tmp_path / "trace.json")
    assert loaded.turns[0].results[0].envelope.data == {"at": {"x": 1}}
    assert loaded.turns[0].results[0].text == result.results[0].text


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"not json", id="not JSON"),
        pytest.param(b"[]", id="not an object"),
        pytest.param(b'{"run_id": 1}', id="wrong type"),
        pytest.param(b"{}", id="nothing in it"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(content: bytes, tmp_path: Path) -> None:
    """The error names the file, whatever is in it."""
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_trace(path)
    assert caught.value.code == Code.INVALID_TRACE
    assert "trace.json" in caught.value.message


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """No file is no trace."""
    with pytest.raises(ConfigError, match="INVALID_TRACE"):
        load_trace(tmp_path / "none.json")


async def test_a_trace_of_another_version_is_refused(tmp_path: Path) -> None:
    """A trace that this version cannot replay is not read halfway."""
    result = await run_script(["x"], tools=[look])
    path = tmp_path / "trace.json"
    save_trace(replace(result.trace, version=TRACE_VERSION + 1), path)
    with pytest.raises(ConfigError, match=f"version {TRACE_VERSION + 1}"):
        load_trace(path)
    document = decode(path.read_bytes())
    path.write_bytes(encode({**document, "version": TRACE_VERSION}))
    assert load_trace(path) == result.trace
