"""Streams through the relay: requests, recorded streams, and a faulty provider in the process."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from surecall.base.errors import ProviderConnectionError, ProviderTimeoutError, SurecallError
from surecall.base.records import RawCall, Reply, Usage, WireRequest
from surecall.exchange.policy import Ending, Policy, Route
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.faults import Answer, FaultyProvider
from surecall.reading import read_reply
from surecall.wire import find_protocol

__all__ = [
    "ARGUMENTS",
    "FORMATS",
    "LOOK",
    "PROMPT",
    "SAVE",
    "Relayed",
    "calls_in",
    "fold",
    "recorded",
    "relay",
    "relay_fault",
    "request_for",
    "route_to",
    "slow_stream",
    "stream_of",
    "text_call",
]

FORMATS = ("chat_completions", "responses", "messages", "gemini")
LOOK: dict[str, Any] = {"type": "object", "properties": {"what": {"type": "string"}}}
SAVE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "urgent": {"type": "boolean"},
    },
    "required": ["text", "count", "tags"],
    "additionalProperties": False,
}
ARGUMENTS: dict[str, Any] = {
    "text": "Zoë said: it's 5 < 6\nand left.",
    "count": 3,
    "tags": ["a"],
    "urgent": True,
}
PROMPT = f"call save with {json.dumps(ARGUMENTS, ensure_ascii=False)}"
_RECORDED = Path(__file__).parent.parent / "wire" / "recorded"
_ENDED = {
    "reset": ProviderConnectionError("CONNECTION_RESET", "The connection was reset."),
    "stall": ProviderTimeoutError("IDLE_TIMEOUT", "Nothing came for 60 seconds."),
}


def request_for(
    name: str, prompt: str = "hi", model: str = "m", *, tools: dict[str, Any] | None = None
) -> ClientRequest:
    """Return a request with two tools, in one of the formats."""
    schemas = {"look": LOOK, "save": SAVE} if tools is None else tools
    functions = [{"name": name, "description": "", "parameters": schemas[name]} for name in schemas]
    said = [{"role": "user", "content": prompt}]
    body: dict[str, Any] = {"model": model, "stream": True}
    if name == "chat_completions":
        body |= {"messages": said}
        body["tools"] = [{"type": "function", "function": entry} for entry in functions]
    elif name == "responses":
        body |= {"input": said, "tools": [{"type": "function", **entry} for entry in functions]}
    elif name == "messages":
        body |= {"max_tokens": 100, "messages": said}
        body["tools"] = [
            {"name": entry["name"], "input_schema": entry["parameters"]} for entry in functions
        ]
    else:
        body = {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
        body["tools"] = [{"functionDeclarations": functions}]
    return ClientRequest.parse(name, json.dumps(body).encode(), model=model, stream=True)


def route_to(name: str, model: str = "m") -> Route:
    """Return a route to an endpoint of a format."""
    return Route(protocol=find_protocol(name), model=model)


def recorded(name: str, kind: str) -> list[bytes]:
    """Return the events of a recorded stream."""
    document = json.loads((_RECORDED / name / f"stream_{kind}.json").read_text())
    events: list[bytes] = []
    for entry in document["events"]:
        item = entry if isinstance(entry, dict) else {"data": entry}
        data = item["data"] if isinstance(item["data"], str) else json.dumps(item["data"])
        named = f"event: {item['event']}\n" if item.get("event") else ""
        events.append(f"{named}data: {data}\n\n".encode())
    return events


def text_call(name: str, text: str, size: int = 4) -> list[bytes]:
    """Return the events of a reply that is nothing but text, in small pieces."""
    writer = find_protocol(name).open_writer(model="m", reply_id="r1")
    written = [writer.begin()]
    written += [writer.text(text[at : at + size]) for at in range(0, len(text), size)]
    written.append(writer.end(Reply(finish_reason="stop")))
    return [event + b"\n\n" for event in b"".join(written).split(b"\n\n")[:-1]]


def stream_of(
    name: str, *calls: RawCall, text: str = "", finish: str = "tool_calls"
) -> list[bytes]:
    """Return the events of a reply with text and calls."""
    writer = find_protocol(name).open_writer(model="m", reply_id="r1")
    written = [writer.begin()]
    written += [writer.text(word + " ") for word in text.split()]
    written += [writer.call(call) for call in calls]
    written.append(writer.end(Reply(calls=calls, finish_reason=finish, usage=Usage(3, 4, 7))))
    return [event + b"\n\n" for event in b"".join(written).split(b"\n\n")[:-1]]


def slow_stream(name: str, arguments: str, *, text: str = "", size: int = 5) -> list[bytes]:
    """Return the events of a reply whose call comes in small pieces, where the format has these."""
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    written: list[bytes] = []
    for event in stream_of(name, RawCall("c1", "save", arguments), text=text):
        head, _, data = event.rpartition(b"data: ")
        if data.startswith(b"[DONE]"):
            written.append(event)
            continue
        for document in _in_pieces(json.loads(data), pieces):
            if "sequence_number" in document:
                document["sequence_number"] = len(written)
            body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
            written.append(b"%bdata: %b\n\n" % (head, body))
    return written


def _in_pieces(document: dict[str, Any], pieces: list[str]) -> list[dict[str, Any]]:
    if document.get("type") == "response.function_call_arguments.delta":
        return [{**document, "delta": piece} for piece in pieces]
    delta = document.get("delta")
    if isinstance(delta, dict) and "partial_json" in delta:
        return [{**document, "delta": {**delta, "partial_json": piece}} for piece in pieces]
    choices = document.get("choices")
    if not choices or "tool_calls" not in choices[0]["delta"]:
        return [document]
    entry = choices[0]["delta"]["tool_calls"][0]
    begun = {**entry, "function": {**entry["function"], "arguments": ""}}
    more = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    deltas = [{"tool_calls": [item]} for item in (begun, *more)]
    return [{**document, "choices": [{**choices[0], "delta": delta}]} for delta in deltas]


class Relayed(NamedTuple):
    """What a client got of one stream."""

    flowed: bytes
    """What was sent before the end of the stream was known."""
    ending: Ending

    @property
    def sent(self) -> bytes:
        """Everything that was sent."""
        return self.flowed + self.ending.data


def relay(
    request: ClientRequest,
    route: Route,
    chunks: Iterable[bytes],
    *,
    policy: Policy | None = None,
    error: SurecallError | None = None,
) -> Relayed:
    """Pass the bytes of one stream through a relay; nothing is asked again."""
    policy = Policy(steps=("repair", "coerce")) if policy is None else policy
    stream = StreamRelay(request, route, policy, request_id="r-1")
    flowed = b"".join([stream.feed(chunk) for chunk in chunks])
    return Relayed(flowed, stream.finish(error))


def fold(name: str, data: bytes) -> Reply:
    """Read what a client got as the client does; raise `ProviderError` if it has no end."""
    protocol = find_protocol(name)
    folder = protocol.open_stream()
    folder.feed(data)
    return protocol.parse_message(folder.close())


def calls_in(reply: Reply) -> list[tuple[Any, Any]]:
    """Return the names and the arguments of the calls a client finds."""
    reading = read_reply(reply, text_formats=False)
    return [(call.name, call.arguments) for call in reading.calls]


def relay_fault(
    fault: str, client: str, upstream: str, prompt: str, policy: Policy | None = None
) -> Relayed:
    """Pass the answers of a faulty provider through a relay, asking again where that is due."""
    provider = FaultyProvider(seed=7)
    model = f"faults:{fault}"
    request = request_for(client, prompt, model)
    route = route_to(upstream, model)
    stream = StreamRelay(request, route, policy or Policy(), request_id="r-1")
    flowed: list[bytes] = []
    body, is_stream = stream.body, True
    while True:
        answer = _ask(provider, upstream, model, body, is_stream=is_stream)
        error: SurecallError | None = _ENDED.get(answer.ending)
        if answer.status >= 300:
            error = route.protocol.parse_error(answer.status, answer.headers, answer.body)
        else:
            for piece in answer.pieces:
                if isinstance(piece, bytes):
                    flowed.append(stream.feed(piece))
                elif hasattr(piece, "data"):
                    for _ in range(4):
                        flowed.append(stream.feed(piece.data))
                        if stream.done:
                            break
                if stream.done:
                    break
        ending = stream.finish(error)
        if ending.ask is None:
            return Relayed(b"".join(flowed), ending)
        body = ending.ask
        is_stream = upstream == "gemini" or json.loads(body).get("stream") is True


def _ask(
    provider: FaultyProvider, name: str, model: str, body: bytes, *, is_stream: bool
) -> Answer:
    protocol = find_protocol(name)
    path = "/chat"
    if name == "gemini":
        path = f"/models/{model}:streamGenerateContent"
    return provider.answer(
        protocol, WireRequest(path=path, body=json.loads(body), stream=is_stream)
    )
