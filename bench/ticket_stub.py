"""What the benches of loops and evals share: a ticket tool, a stub model, and who is measured.

The stub is a process of its own, with as little Python as possible per request:

    python bench/ticket_stub.py CALLS FINAL

answers with one tool call as long as the request holds fewer than CALLS results, then with FINAL.
"""

import asyncio
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

__all__ = [
    "PARAMETERS",
    "TOOL",
    "create_ticket",
    "interpreter_of",
    "machine",
    "running_stub",
    "tell_missing",
]

ARGUMENTS = {
    "title": "Checkout times out in Europe",
    "body": "Since the deploy at 14:05 payment requests from Europe take over 30 seconds. " * 4,
    "priority": "high",
    "tags": ["checkout", "latency", "europe"],
    "due_days": 2,
}
PARAMETERS = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "body": {"type": "string"},
        "priority": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "due_days": {"type": "integer"},
    },
    "required": ["title", "body", "priority", "tags", "due_days"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "create_ticket",
        "description": "File a ticket in the tracker.",
        "parameters": PARAMETERS,
    },
}


def create_ticket(title: str, body: str, priority: str, tags: list[str], due_days: int) -> str:
    """File a ticket in the tracker."""
    return f"filed: {len(title)} {len(body)} {priority} {len(tags)} {due_days}"


def replies_of(calls: int, final: str) -> tuple[bytes, ...]:
    function = {"name": "create_ticket", "arguments": json.dumps(ARGUMENTS)}
    replies: list[bytes] = []
    for turn in range(calls):
        call = {"id": f"call_{turn}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        replies.append(reply_bytes(turn, message, "tool_calls"))
    return (*replies, reply_bytes(calls, {"role": "assistant", "content": final}, "stop"))


def reply_bytes(turn: int, message: Mapping[str, object], finish: str) -> bytes:
    body = json.dumps(
        {
            "id": f"chatcmpl-{turn}",
            "object": "chat.completion",
            "created": 1,
            "model": "stub",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 200, "completion_tokens": 90, "total_tokens": 290},
        }
    ).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class Stub(asyncio.Protocol):
    def __init__(self, replies: tuple[bytes, ...]) -> None:
        self.replies = replies

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lowered = head.lower()
        length = int(lowered[lowered.find(b"content-length:") + 15 :].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self.buffer = b""
        turn = body.count(b"tool_call_id")
        self.transport.write(self.replies[min(turn, len(self.replies) - 1)])


async def serve(replies: tuple[bytes, ...]) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Stub(replies), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def running_stub(calls: int, final: str) -> Generator[str, None, None]:
    """Run the stub server and give its address."""
    stub = subprocess.Popen(
        [sys.executable, __file__, str(calls), final], stdout=subprocess.PIPE, text=True
    )
    try:
        assert stub.stdout is not None
        yield f"http://127.0.0.1:{stub.stdout.readline().strip()}/v1"
    finally:
        stub.terminate()
        stub.wait()


def interpreter_of(name: str, module: str, peers: Path | None) -> str | None:
    """Find the interpreter that has a contender's module."""
    if peers is not None and (found := peers / name / "bin" / "python").exists():
        return str(found)
    return sys.executable if importlib.util.find_spec(module) else None


def machine() -> str:
    """Say when, with which Python and on how many cores this runs."""
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.python_implementation()} "
        f"{platform.python_version()}, {os.cpu_count()} cores"
    )


def tell_missing(pythons: Mapping[str, str | None]) -> None:
    """Name the contenders that were left out."""
    missing = sorted(name for name, python in pythons.items() if python is None)
    if missing:
        print(f"\nnot installed, left out: {', '.join(missing)}")


if __name__ == "__main__":
    asyncio.run(serve(replies_of(int(sys.argv[1]), sys.argv[2])))
