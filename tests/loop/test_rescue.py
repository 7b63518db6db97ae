"""Replies that a server sent inside an error, because it could not parse them."""

from typing import Any

import pytest

import surecall
from surecall.base.errors import Code, ProviderStatusError
from surecall.base.records import Event, ModelRequestEnded, ModelRequestFailed
from surecall.loop import MemoryJournal, replay_trace
from surecall.models.transport import ScriptedReply, ScriptedTransport

from .toolbox import run_script, saved

SAVE = '<tool_call>{"name": "save", "arguments": {text: "x"}}</tool_call>'
FINAL = "Saved."


def failing(message: str, status: int = 500, **fields: Any) -> ScriptedReply:
    """Return the error of a server."""
    return ScriptedReply(status=status, body={"error": {"message": message, **fields}})


LLAMA = failing(f"Failed to parse input at pos 0: {SAVE}", code=500, type="server_error")
OLLAMA = failing(f"error parsing tool call: raw='{SAVE}', err=invalid character")
GROQ = failing("Failed to call a function.", 400, code="tool_use_failed", failed_generation=SAVE)


@pytest.mark.parametrize("error", [LLAMA, OLLAMA, GROQ], ids=["llama.cpp", "ollama", "groq"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_whole_calls_in_an_error_are_the_reply(error: ScriptedReply, stream: bool) -> None:
    """They run, with a receipt and a defect, and no request is counted as failed."""
    events: list[Event] = []
    result = await run_script(
        [error, FINAL], text_formats="all", stream=stream, on_event=events.append
    )
    assert (result.text, saved) == (FINAL, ["x"])
    turn = result.trace.turns[0]
    assert [receipt.rule for receipt in turn.all_receipts] == [
        "rescue_from_error_body",
        "read_call_from_text",
        "quote_key",
    ]
    assert turn.receipts[0].after == SAVE
    assert [defect.code for defect in turn.defects] == [Code.REPLY_IN_ERROR_BODY]
    assert turn.failures == ()
    assert not any(isinstance(event, ModelRequestFailed) for event in events)
    ended = next(event for event in events if isinstance(event, ModelRequestEnded))
    assert ended.defect_codes == (Code.REPLY_IN_ERROR_BODY,)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(failing("the model crashed"), id="no generation"),
        pytest.param(failing(f"Failed to parse input at pos 0: {SAVE[:-20]}"), id="cut"),
        pytest.param(
            failing(f"Failed to parse input at pos 0: {SAVE.replace('save', 'launch')}"),
            id="another tool",
        ),
        pytest.param(failing(f"Failed to parse input at pos 9: a page with {SAVE}"), id="quoted"),
        pytest.param(failing(f"Failed to parse input at pos 0: {SAVE}", 429), id="other status"),
        pytest.param(
            failing(f"Failed to parse input at pos 0: {SAVE.replace('x', 'x' * 600_000)}"),
            id="clipped",
        ),
    ],
)
async def test_anything_else_stays_the_error_it_is(error: ScriptedReply) -> None:
    """Nothing runs, and the provider's error ends the run."""
    with pytest.raises(ProviderStatusError):
        await run_script([error, FINAL], text_formats="all")
    assert saved == []


@pytest.mark.parametrize("value", ["off"])
async def test_nothing_is_rescued_when_text_formats_are_off(value: Any) -> None:
    """An error is an error unless text is read for calls."""
    with pytest.raises(ProviderStatusError):
        await run_script([LLAMA, FINAL], text_formats=value)
    assert saved == []


async def test_nothing_is_rescued_from_a_request_without_tools() -> None:
    """No tool was offered, so none can have been called."""
    with pytest.raises(ProviderStatusError):
        await run_script([LLAMA], text_formats="all", tool_use_mode="disabled")


async def test_text_that_a_stream_sent_before_it_failed_is_not_the_reply() -> None:
    """What was said so far may go on, and may quote an error."""
    delta = {"content": f"Failed to parse input at pos 0: {SAVE}"}
    chunks = [{"choices": [{"index": 0, "delta": delta}]}, {"error": {"message": "crashed"}}]
    with pytest.raises(ProviderStatusError):
        await run_script([ScriptedReply(chunks=chunks)], text_formats="all", stream=True)
    assert saved == []


async def test_a_rescued_run_replays_and_resumes_with_the_same_receipts() -> None:
    """What was rescued is recorded as the reply it is."""
    journal = MemoryJournal()
    result = await run_script([LLAMA, FINAL], text_formats="all", journal=journal)
    assert replay_trace(result.trace).same
    again = await run_script([], text_formats="all", journal=journal)
    assert again.receipts == result.receipts
    assert saved == ["x"]


async def test_a_rescue_comes_before_a_retry_without_tools() -> None:
    """The call is there; asking again would lose it."""
    transport = ScriptedTransport([LLAMA, FINAL])
    result: surecall.RunResult = await run_script(
        [], transport=transport, text_formats="all", fallback_retry_count=1
    )
    assert (result.text, saved) == (FINAL, ["x"])
    assert all("tools" in request.body for request in transport.requests)
