"""The Anthropic endpoint, as the official SDK sees it."""

from typing import Any

import anthropic
import pytest

import surecall
from surecall.faults import FaultServer, FaultyProvider
from surecall.transport import HttpTransport, RetryPolicy

TOOLS: Any = [
    {
        "name": "save",
        "description": "Save a text.",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
    }
]
ASK: Any = [{"role": "user", "content": 'call save with {"text": "ü"} then say Saved.'}]


def client(server: FaultServer) -> anthropic.AsyncAnthropic:
    """Return a client without retries."""
    return anthropic.AsyncAnthropic(
        base_url=server.url.removesuffix("/v1"), api_key="test", max_retries=0
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_conversation_with_a_tool(stream: bool) -> None:
    """The SDK understands the call, sends the result, and gets the answer."""
    async with FaultServer(FaultyProvider()) as server, client(server) as api:

        async def ask(messages: Any) -> anthropic.types.Message:
            given: Any = {"model": "m", "max_tokens": 99, "messages": messages, "tools": TOOLS}
            if not stream:
                return await api.messages.create(**given)
            async with api.messages.stream(**given) as events:
                return await events.get_final_message()

        first = await ask(ASK)
        (call,) = [block for block in first.content if block.type == "tool_use"]
        assert (call.name, call.input, first.stop_reason) == ("save", {"text": "ü"}, "tool_use")
        assert first.usage.input_tokens > 0
        result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "saved"}
        turns: Any = [
            *ASK,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ]
        last = await ask(turns)
    assert [block.text for block in last.content if block.type == "text"] == ["Saved."]
    assert last.stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("overloaded", anthropic.APIStatusError),
        ("rate_limit", anthropic.RateLimitError),
        ("auth", anthropic.AuthenticationError),
        ("reset", anthropic.APIConnectionError),
        ("no_such_fault", anthropic.NotFoundError),
    ],
)
async def test_faults_of_the_wire_reach_the_sdk(fault: str, error: type[Exception]) -> None:
    """What is wrong on the wire is wrong for every client."""
    async with FaultServer(FaultyProvider()) as server, client(server) as api:
        with pytest.raises(error):
            await api.messages.create(
                model=f"faults:{fault}", max_tokens=99, messages=ASK, tools=TOOLS
            )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "model", ["faults:text_hermes", "faults:final_empty", "faults:server_error_once", "zoo:steady"]
)
async def test_a_run_over_messages_does_the_right_thing(model: str, stream: bool) -> None:
    """The loop repairs over this wire format what it repairs over the other."""
    saved: list[str] = []

    @surecall.tool(effect="write")
    def save(text: str) -> dict[str, Any]:
        """Save a text."""
        saved.append(text)
        return {"saved": True}

    async with FaultServer(FaultyProvider()) as server:
        transport = HttpTransport(server.url, retry=RetryPolicy(base_delay_s=0.001))
        async with transport:
            result = await surecall.run(
                ASK[0]["content"],
                model=model,
                tools=[save],
                transport=transport,
                protocol="messages",
                preset=(),
                stream=stream,
                text_formats=True,
            )
    assert (result.text, saved) == ("Saved.", ["ü"])
