"""What streams cost that try to hold up the event loop or to fill the memory.

    python bench/streams.py [--seconds 5] [--only NAME] [--out results.json]

A server in a process of its own sends each shape without end, or one long line. A run of surecall
reads it until it refuses it or is out of time, in a process of its own; raw aiohttp reads the same
bytes and does nothing with them: that is the floor. A ticker in the same event loop measures the
longest stall, in CPU time between two of its turns, and how far the resident memory grows.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ticket_stub import machine

HERE = Path(__file__).resolve()
MIB = 1024 * 1024
BLOCK_BYTES = 64 * 1024
MAX_SENT_BYTES = 160 * MIB
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
STALL_LIMIT_MS = {"long line": 100}
DEFAULT_STALL_LIMIT_MS = 50
MEMORY_LIMIT_MB = 20


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def chat(delta: object) -> bytes:
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def chat_calls(call: dict) -> bytes:
    return chat({"tool_calls": [call]})


def messages_delta(kind: str, key: str, text: str) -> bytes:
    delta = {"type": f"{kind}_delta", key: text}
    return event({"type": "content_block_delta", "index": 0, "delta": delta})


def gemini(*parts: object) -> bytes:
    return event({"candidates": [{"content": {"role": "model", "parts": list(parts)}}]})


def numbered(make: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """Make blocks whose events differ, with a number each."""

    def block(number: int) -> bytes:
        return b"".join(make(number * 200 + n) for n in range(200))

    return block


def same(data: bytes) -> Callable[[int], bytes]:
    block = data * max(1, BLOCK_BYTES // len(data))
    return lambda number: block


EIGHT = "eight ch"
# name: (wire format, what is sent first, what is sent again and again)
SHAPES: dict[str, tuple[str, bytes, Callable[[int], bytes]]] = {
    "blank lines": ("chat_completions", b"", same(b"\n")),
    "blank lines, CRLF": ("chat_completions", b"", same(b"\r\n")),
    "comments": ("chat_completions", b"", same(b":\n\n")),
    "comment lines": ("chat_completions", b"", same(b":\n")),
    "tiny events": ("chat_completions", b"", same(b"data:{}\n\n")),
    "named events": ("chat_completions", b"", same(b"event: x\nid: 1\ndata: {}\n\n")),
    "empty deltas": ("chat_completions", b"", same(chat({"content": ""}))),
    "one endless event": ("chat_completions", b"", same(b"data: ab\n")),
    "one endless line": ("chat_completions", b"data: ", same(b"a")),
    "one endless comment": ("chat_completions", b":", same(b"a")),
    "spaces": ("chat_completions", b"", same(b" ")),
    "a plain body": ("chat_completions", b'{"a":"', same(b"a")),
    "text": ("chat_completions", b"", same(chat({"content": EIGHT}))),
    "text, looked through": ("chat_completions", b"", same(chat({"content": EIGHT}))),
    "blank text, looked through": ("chat_completions", b"", same(chat({"content": " "}))),
    "reasoning": ("chat_completions", b"", same(chat({"reasoning_content": EIGHT}))),
    "arguments": (
        "chat_completions",
        b"",
        same(chat_calls({"index": 0, "function": {"name": "t", "arguments": EIGHT}})),
    ),
    "calls": (
        "chat_completions",
        b"",
        numbered(lambda n: chat_calls({"index": n, "id": f"c{n}", "function": {"name": "t"}})),
    ),
    "names": (
        "chat_completions",
        b"",
        same(chat_calls({"index": 0, "function": {"name": "ab"}})),
    ),
    "fields": ("chat_completions", b"", numbered(lambda n: chat({f"k{n}": {"a": [n]}}))),
    "messages: pings": ("messages", b"", same(event({"type": "ping"}))),
    "messages: text": ("messages", b"", same(messages_delta("text", "text", EIGHT))),
    "messages: thoughts": ("messages", b"", same(messages_delta("thinking", "thinking", EIGHT))),
    "messages: blocks": (
        "messages",
        b"",
        numbered(
            lambda n: event(
                {
                    "type": "content_block_start",
                    "index": n,
                    "content_block": {"type": "tool_use", "id": f"t{n}", "name": "t", "input": {}},
                }
            )
        ),
    ),
    "responses: text": (
        "responses",
        b"",
        same(event({"type": "response.output_text.delta", "output_index": 0, "delta": EIGHT})),
    ),
    "responses: unknown": ("responses", b"", same(event({"type": "response.x"}))),
    "responses: items": (
        "responses",
        b"",
        numbered(
            lambda n: event(
                {
                    "type": "response.output_item.added",
                    "output_index": n,
                    "item": {"type": "function_call", "call_id": f"c{n}", "name": "t"},
                }
            )
        ),
    ),
    "gemini: text": ("gemini", b"", same(gemini({"text": EIGHT}))),
    "gemini: empty parts": ("gemini", b"", same(gemini({}))),
    "long line": ("chat_completions", b"", same(b"y")),
}


def answer(name: str, send: Callable[[bytes], None]) -> None:
    send(HEAD)
    if name == "long line":
        send(event({"choices": [], "padding": "y" * (15 * 1000 * 1000)}))
        finish = {"index": 0, "delta": {"content": "done"}, "finish_reason": "stop"}
        send(event({"choices": [finish]}) + b"data: [DONE]\n\n")
        return
    _, start, block = SHAPES[name]
    send(start)
    sent = number = 0
    while sent < MAX_SENT_BYTES:
        data = block(number)
        send(data)
        sent += len(data)
        number += 1


def serve() -> None:
    """Answer every connection with the shape that its path names, by number."""

    def handle(connection: socket.socket) -> None:
        with connection:
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536)
            length = int(request.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            while len(request.split(b"\r\n\r\n", 1)[1]) < length:
                request += connection.recv(65536)
            number = int(request.split(b"/shape", 1)[1].split(b"/")[0])
            try:
                answer(list(SHAPES)[number], connection.sendall)
            except OSError:  # the client has left
                return

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=handle, args=(connection,), daemon=True).start()


class Ticker:
    """Measures from inside the event loop."""

    def __init__(self) -> None:
        self.stall_ms = 0.0
        self.base = self.peak = rss_bytes()

    async def run(self) -> None:
        before = time.process_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.process_time()
            self.stall_ms = max(self.stall_ms, (now - before) * 1000)
            self.peak = max(self.peak, rss_bytes())
            before = time.process_time()


def rss_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def read_raw(base: str, seconds: float) -> str:
    import aiohttp

    async with aiohttp.ClientSession() as session, session.post(base, json={}) as response:
        try:
            async with asyncio.timeout(seconds):
                async for _ in response.content.iter_any():
                    pass
        except TimeoutError:
            return "out of time"
    return "read"


async def read_surecall(base: str, seconds: float, name: str) -> str:
    import surecall

    try:
        await surecall.run(
            "hi",
            model="m",
            preset=(),
            base_url=base,
            protocol=SHAPES[name][0],
            tools=[],
            stream=True,
            text_formats="looked" in name,
            skip_bad_events=True,
            deadline_s=seconds,
            on_event=lambda event: None,
        )
    except surecall.SurecallError as error:
        return str(error.code)
    return "answered"


async def measure(who: str, name: str, base: str, seconds: float) -> dict:
    import aiohttp  # noqa: F401 - loaded before the memory is looked at

    import surecall
    import surecall.models.client.pool

    transport = surecall.ScriptedTransport(["warm"])
    await surecall.run("hi", model="m", transport=transport, stream=True)
    ticker = Ticker()
    ticking = asyncio.create_task(ticker.run())
    await asyncio.sleep(0.01)
    ended = await (read_raw(base, seconds) if who == "raw" else read_surecall(base, seconds, name))
    await asyncio.sleep(0.01)  # the last stall is noticed, too
    ticking.cancel()
    return {
        "ended": ended,
        "stall_ms": ticker.stall_ms,
        "grown_mb": (ticker.peak - ticker.base) / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="for each shape and side")
    parser.add_argument("--only", help="shapes whose name has this in it")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
    elif options.one:
        who, name, base = options.one
        print(json.dumps(asyncio.run(measure(who, name, base, options.seconds))))
    else:
        compare(options)


def compare(options: argparse.Namespace) -> None:
    print(f"{machine()}, {options.seconds:g} s for each\n")
    print(f"{'':28}{'stall ms':>9}{'floor':>8}{'+MB':>7}{'floor':>7}  ended")
    server = subprocess.Popen(
        [sys.executable, str(HERE), "--serve"], stdout=subprocess.PIPE, text=True
    )
    table = {}
    try:
        port = int(server.stdout.readline())
        for number, name in enumerate(SHAPES):
            if options.only and options.only not in name:
                continue
            base = f"http://127.0.0.1:{port}/shape{number}/v1"
            raw, own = (one(who, name, base, options.seconds) for who in ("raw", "surecall"))
            table[name] = {"surecall": own, "raw_aiohttp": raw}
            limit = STALL_LIMIT_MS.get(name, DEFAULT_STALL_LIMIT_MS)
            over = own["stall_ms"] > limit or (
                own["grown_mb"] > MEMORY_LIMIT_MB and name != "long line"
            )
            print(
                f"{name:28}{own['stall_ms']:>9.1f}{raw['stall_ms']:>8.1f}{own['grown_mb']:>7.1f}"
                f"{raw['grown_mb']:>7.1f}  {own['ended']}{'  OVER' if over else ''}",
                flush=True,
            )
    finally:
        server.kill()
        server.wait()
    if options.out:
        options.out.write_text(json.dumps(table, indent=1))


def one(who: str, name: str, base: str, seconds: float) -> dict:
    command = [sys.executable, str(HERE), "--one", who, name, base, "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
