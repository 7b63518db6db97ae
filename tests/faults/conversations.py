"""Requests in the middle of conversations, built by hand."""

from typing import Any

from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec
from surecall.faults import Answer, FaultyProvider
from surecall.text import decode, encode_text
from surecall.wire import find_protocol

__all__ = ["ask", "failed", "message_of", "request_of", "succeeded", "turn"]

SAVE = ToolSpec(
    name="save",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string"}, "tags": {"type": "array"}},
        "required": ["text"],
    },
)
LOOK = ToolSpec(name="look", parameters={"type": "object", "properties": {}})


def request_of(*messages: Message | str, **fields: Any) -> ModelRequest:
    """Return a request with two tools; plain text is the user's."""
    given = tuple(Message("user", item) if isinstance(item, str) else item for item in messages)
    return ModelRequest(**{"model": "m", "messages": given, "tools": (LOOK, SAVE), **fields})


def turn(name: str, envelope: dict[str, Any] | str, **arguments: Any) -> tuple[Message, Message]:
    """Return a call and its result."""
    call = ToolCall(id=f"call_{name}_{len(str(envelope))}", name=name, arguments=arguments)
    text = envelope if isinstance(envelope, str) else encode_text(envelope)
    return Message("assistant", None, (call,)), Message("tool", text, tool_call_id=call.id)


def succeeded(name: str, **arguments: Any) -> tuple[Message, Message]:
    """Return a call that went well."""
    return turn(name, {"ok": True, "tool_name": name, "data": {}}, **arguments)


def failed(name: str, **error: Any) -> tuple[Message, Message]:
    """Return a call that failed with one error."""
    return turn(name, {"ok": False, "tool_name": name, "errors": [error]}, text="a")


def ask(
    provider: FaultyProvider, request: ModelRequest, protocol: str = "chat_completions"
) -> Answer:
    """Return the answer of a provider."""
    spoken = find_protocol(protocol)
    return provider.answer(spoken, spoken.render_request(request))


def message_of(answer: Answer) -> dict[str, Any]:
    """Return the message of a whole answer."""
    return decode(answer.body)["choices"][0]["message"]
