"""What clients of chat completions find in a stream or a reply that was written anew."""

import json
from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from .streaming import Relayed, relay, request_for, route_to

DAMAGED = '{"text": "a", "count": "3", "tags": ["x"]}'


def chunks_of(*deltas: dict[str, Any], finish: str = "tool_calls") -> list[bytes]:
    """Return the events of a completion, one for each delta and one for its finish."""
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices[-1]["finish_reason"] = finish
    events = [{**head, "choices": [choice]} for choice in choices]
    return [b"data: %b\n\n" % json.dumps(item).encode() for item in events] + [b"data: [DONE]\n\n"]


def deltas_in(got: Relayed) -> list[dict[str, Any]]:
    """Return what the chunks bring that a client gets."""
    lines = [line[6:] for line in got.sent.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line)["choices"][0]["delta"] for line in lines]


def message_in(got: Relayed) -> Any:
    """Return the message that the official client puts together."""
    state: Any = ChatCompletionStreamState()
    for line in got.sent.split(b"\n"):
        if line.startswith(b"data: {"):
            state.handle_chunk(ChatCompletionChunk.model_validate_json(line[6:]))
    return state.get_final_completion().choices[0].message


def entry(arguments: str, **more: Any) -> dict[str, Any]:
    """Return a piece of a call."""
    return {"index": 0, "function": {"arguments": arguments, **more}}


BEGUN = {**entry("", name="save"), "id": "call_1", "type": "function"}
ROLE = {"role": "assistant"}


# The role


@pytest.mark.parametrize("size", [0, 1, 10**6], ids=["events", "bytes", "burst"])
@pytest.mark.parametrize(
    "deltas",
    [
        ({**ROLE, "content": None, "tool_calls": [{**BEGUN, **entry(DAMAGED, name="save")}]}, {}),
        (
            {**ROLE, "content": None, "tool_calls": [BEGUN]},
            {**ROLE, "tool_calls": [entry(DAMAGED[:9])]},
            {**ROLE, "tool_calls": [entry(DAMAGED[9:])]},
            {**ROLE, "content": ""},
        ),
        ({**ROLE, "content": ""}, {"tool_calls": [BEGUN]}, {"tool_calls": [entry(DAMAGED)]}, ROLE),
        ({"tool_calls": [BEGUN]}, {**ROLE, "tool_calls": [entry(DAMAGED)]}, {}),
    ],
    ids=["with the call", "in every chunk", "passed on", "late"],
)
def test_the_role_is_written_once(deltas: tuple[dict[str, Any], ...], size: int) -> None:
    """What is written anew names the role if nothing before it has, and never twice."""
    events = chunks_of(*deltas)
    data = b"".join(events)
    chunks = events if not size else [data[at : at + size] for at in range(0, len(data), size)]
    got = relay(request_for("chat_completions"), route_to("chat_completions"), chunks)
    assert got.ending.outcome == "repaired"
    assert sum("role" in delta for delta in deltas_in(got)) == 1
    message = message_in(got)
    assert message.role == "assistant"
    assert json.loads(message.tool_calls[0].function.arguments)["count"] == 3
