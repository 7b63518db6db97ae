"""What a stream costs on its way through the relay, in CPU time.

    python bench/exchange_streams.py [--rounds 200] [--out results.json]

One stream has 61 events: text only, text and a call, or a call alone, in each wire format. It
comes in one burst, in reads of 4 KiB, or event by event. Beside the relay stand the floor (the
bytes are passed on), splitting and decoding every event, and the stream folder that reads whole
replies. Reading the request is not part of a round.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec

from surecall.base.records import RawCall, Reply, Usage
from surecall.exchange.policy import Policy, Route
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.wire import find_protocol

FORMATS = ("chat_completions", "responses", "messages", "gemini")
EVENTS = 61
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 120},
        "body": {"type": "string"},
        "priority": {"type": "string", "enum": ["low", "normal", "high"]},
    },
    "required": ["title", "body", "priority"],
    "additionalProperties": False,
}
FUNCTION = {"name": "create_ticket", "description": "File a ticket.", "parameters": SCHEMA}
TEXT = "Checkout is timing out for customers in Europe since the deploy, so I file a ticket now. "
VALUES = {"title": "Checkout times out", "body": TEXT * 2, "priority": "high"}
USAGE = Usage(212, 86, 298)


def request_of(name: str) -> ClientRequest:
    said = [{"role": "user", "content": "File a ticket."}]
    body: dict[str, object] = {"model": "m", "stream": True, "messages": said}
    if name == "chat_completions":
        body["tools"] = [{"type": "function", "function": FUNCTION}]
    elif name == "responses":
        body = {"model": "m", "stream": True, "input": said}
        body["tools"] = [{"type": "function", **FUNCTION}]
    elif name == "messages":
        body |= {"max_tokens": 500, "tools": [{"name": "create_ticket", "input_schema": SCHEMA}]}
    else:
        body = {"contents": [{"role": "user", "parts": [{"text": "File a ticket."}]}]}
        body["tools"] = [{"functionDeclarations": [FUNCTION]}]
    return ClientRequest.parse(name, json.dumps(body).encode(), model="m", stream=True)


def pieces_of(text: str, count: int) -> list[str]:
    size = -(-len(text) // count)
    return [text[at : at + size] for at in range(0, len(text), size)]


def chat_call(count: int) -> list[bytes]:
    """Return a call in pieces, as providers of chat completions stream it."""
    head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    entries = [{"index": 0, "id": "call_7f3a9", "type": "function"}]
    entries[0]["function"] = {"name": "create_ticket", "arguments": ""}
    pieces = pieces_of(json.dumps(VALUES), count - 1)
    entries += [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    events = []
    for entry in entries:
        choice = {"index": 0, "delta": {"tool_calls": [entry]}, "finish_reason": None}
        events.append(b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n")
    return events


def stream_of(name: str, kind: str) -> list[bytes]:
    """Return the events of one reply, about 61 of them."""
    writer = find_protocol(name).open_writer(model="m", reply_id="c-1")
    calls = (RawCall("call_7f3a9", "create_ticket", json.dumps(VALUES)),) * (kind != "text")
    end = writer.end(Reply(calls=calls, finish_reason="tool_calls" if calls else "stop"))
    writer = find_protocol(name).open_writer(model="m", reply_id="c-1")
    written = [writer.begin()]
    texts = pieces_of(TEXT * 3, EVENTS - 4 if kind == "text" else 30)
    if kind != "call":
        written += [writer.text(text) for text in texts]
    if calls and name == "chat_completions":
        written += chat_call(EVENTS - 4 if kind == "call" else 28)
    elif calls:
        written += [writer.call(call) for call in calls]
    if calls and name == "chat_completions":
        written.append(end)
    else:
        finish = "tool_calls" if calls else "stop"
        written.append(writer.end(Reply(calls=calls, finish_reason=finish, usage=USAGE)))
    data = b"".join(written)
    return [event + b"\n\n" for event in data.split(b"\n\n")[:-1]]


def measure(work: Callable[[], object], rounds: int) -> float:
    """Return the CPU time of one round in microseconds, the lowest of 15 tries."""
    times = []
    for _ in range(15):
        start = time.process_time_ns()
        for _ in range(rounds):
            work()
        times.append((time.process_time_ns() - start) / rounds / 1000)
    return min(times)


def relay(request: ClientRequest, route: Route, policy: Policy, reads: Iterable[bytes]) -> bytes:
    stream = StreamRelay(request, route, policy, request_id="r-1")
    out = [stream.feed(chunk) for chunk in reads]
    ending = stream.finish()
    assert ending.outcome == "clean", ending
    return b"".join((*out, ending.data))


def fold(name: str, reads: Iterable[bytes]) -> object:
    protocol = find_protocol(name)
    folder = protocol.open_stream()
    for chunk in reads:
        folder.feed(chunk)
    return protocol.parse_message(folder.close())


def decode(data: bytes) -> None:
    for event in data.split(b"\n\n"):
        body = event[event.find(b"data: ") + 6 :]
        if body.startswith(b"{"):
            msgspec.json.decode(body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for name in FORMATS:
        request, policy = request_of(name), Policy()
        route = Route(protocol=find_protocol(name), model="m")
        other = request_of("messages" if name != "messages" else "chat_completions")
        for kind in ("text", "text and call", "call"):
            events = stream_of(name, kind)
            data = b"".join(events)
            assert relay(request, route, policy, [data]).startswith(data)
            split = [data[at : at + 4096] for at in range(0, len(data), 4096)]
            row: dict[str, object] = {"format": name, "stream": kind, "events": len(events)}
            same = partial(relay, request, route, policy)
            for label, work in (
                ("floor", partial(b"".join, events)),
                ("decoded", partial(decode, data)),
                ("folder, burst", partial(fold, name, [data])),
                ("folder, events", partial(fold, name, events)),
                ("relay, burst", partial(same, [data])),
                ("relay, 4 KiB", partial(same, split)),
                ("relay, events", partial(same, events)),
                ("translated, burst", partial(relay, other, route, policy, [data])),
            ):
                row[label] = round(measure(work, options.rounds), 1)
            rows.append(row)
            print("  ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
