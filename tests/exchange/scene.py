"""A client, a faulty endpoint in this process, and what the client gets to see."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from surecall.base.records import Message, ModelRequest, Reply, ToolSpec, WireRequest
from surecall.exchange.mediation import mediate
from surecall.exchange.policy import Delivered, Policy, Route, Sent
from surecall.exchange.request import ClientRequest
from surecall.exchange.signatures import EchoCache
from surecall.faults.provider import FaultyProvider
from surecall.wire import find_protocol

SAVE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "count", "tags"],
}
PING: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS = (ToolSpec(name="save", parameters=SAVE), ToolSpec(name="ping", parameters=PING))
ARGUMENTS: dict[str, Any] = {"title": 'a "b"\nc', "count": 3, "tags": ["x"]}
ORDER = f"call save with {json.dumps(ARGUMENTS)} say All is saved."
FORMATS = ("chat_completions", "messages", "responses", "gemini")

LIST_KEYS = {name: find_protocol(name).open_conversation({}).key for name in FORMATS}
"""Where the conversation is in a request."""


def write_request(
    name: str, model: str, history: Sequence[Any] = (), *, text: str = ORDER, **params: Any
) -> bytes:
    """Write a client's request: the user's order, and messages that followed it."""
    protocol = find_protocol(name)
    asked = ModelRequest(
        model=model,
        messages=(Message("user", text), *history),
        tools=TOOLS,
        params=params,
    )
    return json.dumps(protocol.render_request(asked).body, ensure_ascii=False).encode()


def parse(name: str, body: bytes, model: str = "m") -> ClientRequest:
    """Parse."""
    return ClientRequest.parse(name, body, model=model)


def endpoint(provider: FaultyProvider, name: str, model: str) -> Callable[[bytes], Awaitable[Sent]]:
    """Endpoint."""
    protocol = find_protocol(name)
    path = f"/models/{model}:generateContent" if name == "gemini" else ""

    async def send(body: bytes) -> Sent:
        wire = WireRequest(path=path, body=json.loads(body))
        answer = provider.answer(protocol, wire)
        headers = {key.lower(): value for key, value in answer.headers.items()}
        return Sent(answer.status, headers, answer.body)

    return send


class Script:
    """An endpoint that answers with what a test gives it, and keeps what it was sent."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []

    async def __call__(self, body: bytes) -> Sent:
        self.bodies.append(body)
        self.asked.append(json.loads(body))
        answer = self._answers[min(len(self.asked), len(self._answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Sent):
            return answer
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return Sent(200, {"content-type": "application/json"}, data)


def completion(
    *calls: tuple[str, str, str],
    content: str | None = None,
    finish: str | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Write a chat completion with calls, each an id, a name and its arguments."""
    message: dict[str, Any] = {"role": "assistant", "content": content, **fields}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ]
    finish = finish or ("tool_calls" if calls else "stop")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": "m1",
        "choices": [choice],
        "usage": usage,
    }


GOOD = completion(("call_1", "save", json.dumps(ARGUMENTS)))
BAD = completion(("call_1", "save", '{"title": "a", "count": [], "tags": ["x"]}'))


async def ask(
    send: Any,
    *,
    client: str = "chat_completions",
    upstream: str = "chat_completions",
    policy: Policy = Policy(),  # noqa: B008 - frozen
    body: bytes | None = None,
    echoes: EchoCache | None = None,
    clock: Any = None,
    **route: Any,
) -> Delivered:
    """Ask."""
    request = parse(client, body or write_request(client, "m"))
    where = Route(protocol=find_protocol(upstream), **{"model": "m", **route})
    more = {} if clock is None else {"clock": clock}
    return await mediate(request, where, policy, send, echoes=echoes, **more)


def seen(name: str, delivered: Delivered) -> Reply:
    """Return the reply as a client of the format understands it."""
    protocol = find_protocol(name)
    return protocol.parse_message(protocol.parse_body(delivered.body))


def calls_in(name: str, delivered: Delivered) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that a client gets, with their arguments."""
    return [(call.name, _object(call.arguments)) for call in seen(name, delivered).calls]


def _object(arguments: Any) -> dict[str, Any]:
    return arguments if isinstance(arguments, dict) else json.loads(arguments)
