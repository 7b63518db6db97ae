"""Count the files of the package whose code one broken reply runs through.

    python scripts/files_crossed.py [--fault NAME] [--list]

The same fault is met three times: by `surecall.run`, through the gateway with a whole reply, and
through the gateway with a streamed one. Each way is gone twice, and only functions that run the
second time are counted, so that nothing counts which is imported or made once. The provider that
misbehaves is a process of its own.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import surecall
from gateway.harness import make_settings, serve_gateway

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "surecall"
GOALS = {"run": 60, "gateway, whole": 50, "gateway, streamed": 50}
PROVIDER = """
import asyncio
from surecall.faults import FaultServer, FaultyProvider

async def serve():
    async with FaultServer(FaultyProvider()) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(serve())
"""
PROMPT = 'call save with {"title": "a", "count": 3}'
PARAMETERS = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["title", "count"],
}


@surecall.tool(effect="read")
def save(title: str, count: int) -> str:
    """Save a title."""
    return f"{title} {count}"


def main() -> int:
    """Count, print, and compare with the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", default="arguments_trailing_comma")
    parser.add_argument("--list", action="store_true", help="name the files")
    given = parser.parse_args()
    command = [sys.executable, "-c", PROVIDER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as provider:  # noqa: S603
        assert provider.stdout is not None
        try:
            found = asyncio.run(count(provider.stdout.readline().strip(), given.fault))
        finally:
            provider.terminate()
    for way, files in found.items():
        print(f"{way}: {len(files)} files (goal: at most {GOALS[way]})")
        if given.list:
            print(*(f"  {name}" for name in sorted(files)), sep="\n")
    return int(any(len(files) > GOALS[way] for way, files in found.items()))


async def count(url: str, fault: str) -> dict[str, set[str]]:
    """Return the files that each way runs through."""
    model = f"faults:{fault}"

    async def run_loop() -> None:
        result = await surecall.run(
            PROMPT, model=model, base_url=url, api_key="k", tools=[save], probe="off"
        )
        assert result.calls, result

    with tempfile.TemporaryDirectory() as folder:
        os.environ["SURECALL_CACHE_DIR"] = folder  # what was found out before is not looked at
        found = {"run": await trace(run_loop)}
        text = f'[upstreams.faults]\nurl = "{url}"\nprotocol = "chat_completions"\nprobe = "off"\n'
        settings = make_settings(Path(folder), text)
        async with serve_gateway(settings, facts=Path(folder) / "facts.db") as served:
            for way, is_stream in (("gateway, whole", False), ("gateway, streamed", True)):
                body = request_body(model, is_stream=is_stream)
                found[way] = await trace(lambda body=body: ask(served.port, body))
    return found


def request_body(model: str, *, is_stream: bool) -> bytes:
    """Return the request of a client."""
    function = {"name": "save", "parameters": PARAMETERS}
    said = [{"role": "user", "content": PROMPT}]
    fields = {"model": model, "messages": said, "stream": is_stream}
    return json.dumps({**fields, "tools": [{"type": "function", "function": function}]}).encode()


async def ask(port: int, body: bytes) -> None:
    """Send one request on a plain socket, as code of no package, and read the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    head += f"Content-Length: {len(body)}\r\n"
    head += "Content-Type: application/json\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await reader.read()
    writer.close()
    assert b"tool_calls" in answer, answer


async def trace(work: Callable[[], Awaitable[Any]]) -> set[str]:
    """Return the files of the package of which a function runs when work is done again."""
    await work()
    await asyncio.sleep(0.2)
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        await work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = (Path(name) for name in found if name.startswith(str(PACKAGE)))
    return {str(path.relative_to(PACKAGE)) for path in inside}


if __name__ == "__main__":
    sys.exit(main())
