"""Every turn can be streamed, and nothing else changes."""

from typing import Any

import msgspec
import pytest

import surecall
from surecall.base.records import TextDelta
from surecall.models.config import Config
from surecall.models.transport import ScriptedReply, assistant, tool_call

from .doors import MODEL, Door
from .sample_tools import Ledger, call_add, calls_add

USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
REPLIES = [
    ScriptedReply(
        message=assistant(
            "Let me see…",
            call_add(2, 3, id="c1"),
            tool_call("note", {"text": "größe 🙂"}, "c2"),
            tool_call("nope", "{}", "c3"),
        ),
        usage=USAGE,
    ),
    ScriptedReply(message="The sum is 5. 🙂", usage=USAGE),
]


async def test_streaming_gives_the_same_result(door: Door, ledger: Ledger) -> None:
    """Text, history, calls, answers, usage and receipts are equal, streamed or whole."""
    whole = await door.run(REPLIES, tools=ledger.tools)
    sent_whole = door.requests
    streamed = await door.run(REPLIES, tools=ledger.tools, stream=True)

    assert streamed.text == whole.text == "The sum is 5. 🙂"
    assert streamed.history == whole.history
    assert streamed.calls == whole.calls
    assert [r.text for r in streamed.results] == [r.text for r in whole.results]
    assert streamed.usage == whole.usage
    assert streamed.receipts == whole.receipts
    assert [body["messages"] for body in door.requests] == [body["messages"] for body in sent_whole]


OBJECT = {"a": 2, "b": 3}


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(assistant(None, tool_calls=call_add()), id="calls as an object"),
        pytest.param(
            assistant(None, function_call={"name": "add", "arguments": '{"a": 2, "b": 3}'}),
            id="the legacy field",
        ),
        pytest.param(
            assistant(None, {"id": "c1", "function": {"name": "add", "arguments": OBJECT}}),
            id="arguments as an object",
        ),
        pytest.param(
            assistant(None, call_add(id="same"), call_add(id="same")), id="an id used twice"
        ),
        pytest.param(assistant(None, call_add(id="")), id="a blank id"),
        pytest.param(assistant(None, tool_call("add", "what?")), id="arguments that are no JSON"),
        pytest.param(assistant(None, tool_call(" add ", OBJECT)), id="space around the name"),
        pytest.param(
            assistant(None, call_add(), reasoning_content="Let me think."), id="reasoning"
        ),
    ],
)
async def test_odd_replies_are_read_alike_streamed_or_whole(
    door: Door, ledger: Ledger, message: dict[str, Any]
) -> None:
    """Whatever shape a call has, streaming does not change what becomes of it."""
    whole = await door.run([message, "done"], tools=ledger.tools)
    sent_whole = door.messages
    streamed = await door.run([message, "done"], tools=ledger.tools, stream=True)

    assert [(c.id, c.name, c.arguments, c.state) for c in streamed.calls] == [
        (c.id, c.name, c.arguments, c.state) for c in whole.calls
    ]
    assert [r.text for r in streamed.results] == [r.text for r in whole.results]
    assert door.messages == sent_whole


async def test_every_turn_is_streamed_and_asks_for_usage(door: Door, ledger: Ledger) -> None:
    """Turns with tools are streamed too, and each request asks for the token counts."""
    await door.run([calls_add(), "5"], tools=ledger.tools, stream=True)

    assert [body["stream"] for body in door.requests] == [True, True]
    assert [body["stream_options"] for body in door.requests] == [{"include_usage": True}] * 2
    assert "tools" in door.requests[1]


async def test_nothing_about_streaming_is_sent_otherwise(door: Door) -> None:
    """A whole reply is asked for by saying nothing."""
    await door.run(["hello"])

    assert not {"stream", "stream_options"} & door.requests[0].keys()


async def test_text_is_told_as_it_arrives(door: Door) -> None:
    """The pieces that were told make up the text of the answer."""
    pieces: list[str] = []

    def listen(event: Any) -> None:
        if isinstance(event, TextDelta):
            pieces.append(event.text)

    result = await door.run(["The answer is forty-two."], stream=True, on_event=listen)

    assert len(pieces) > 1
    assert "".join(pieces) == result.text == "The answer is forty-two."


async def test_events_can_be_iterated(door: Door, ledger: Ledger) -> None:
    """`surecall.stream` hands out the events in order and has the result at the end."""
    async with door.open([calls_add(), "5"]) as transport:
        events = surecall.stream(
            "2 + 3?", model=MODEL, transport=transport, tools=ledger.tools, config=Config()
        )
        seen = [msgspec.to_builtins(event)["type"] async for event in events]

    assert events.result.text == "5"
    assert seen[0] == "run_start"
    assert seen[-2:] == ["final", "run_end"]
    assert "text_delta" in seen
