"""Whether what a provider wants back with a call returns to its own conversation, and only there.

    python scripts/foreign_signatures.py [--pairs 1000] [--ids none|one]

Each pair is two conversations under one key that say and call the same; the provider signs every
call anew and gives calls no ids, or all calls one id. All first turns are asked through `surecall
serve`, which is then killed and started again, and then all second turns, in another order. The
provider compares. Each line is a format of the client, whether the client keeps fields it does not
know, and a number of workers, with the signatures that came back to another conversation (foreign)
and those that did not come back (lost).
"""

import argparse
import asyncio
import json
import random
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import aiohttp
from aiohttp import web

PATHS = {
    "chat_completions": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}
ASKED = "What is the weather in Paris?"
NAME, ARGUMENTS = "get_weather", {"city": "Paris"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


class Provider:
    """Speaks Gemini's format, signs each call, and looks at the signatures that come back."""

    def __init__(self, ids: str) -> None:
        self.ids = ids
        self.seen: Counter[str] = Counter()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer with a signed call, or look at one that comes back."""
        contents = (await request.json())["contents"]
        parts = [part for item in contents for part in item["parts"]]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if results:
            own = results[0]["response"]
            said = json.dumps(own).partition("own=")[2].partition("=")[0]
            found = next(part.get("thoughtSignature") for part in parts if "functionCall" in part)
            self.seen["right" if found == said else "lost" if not found else "foreign"] += 1
            made: list[Any] = [{"text": "It is sunny."}]
        else:
            signature = token_urlsafe(random.choice((24, 2000)))  # noqa: S311
            call = {"name": NAME, "args": ARGUMENTS}
            call = call if self.ids == "none" else {"id": "call_1", **call}
            made = [
                {"text": f"own={signature}="},
                {"functionCall": call, "thoughtSignature": signature},
            ]
        candidate = {"content": {"role": "model", "parts": made}, "finishReason": "STOP"}
        body = {"candidates": [candidate], "modelVersion": "m"}
        if "stream" not in request.path:
            return web.json_response(body)
        data = b"data: " + json.dumps(body).encode() + b"\n\n"
        return web.Response(body=data, content_type="text/event-stream")


def first_request(client: str) -> dict[str, Any]:
    """Write the request with which every conversation begins."""
    function = {"name": NAME, "description": "", "parameters": SCHEMA}
    said = [{"role": "user", "content": ASKED}]
    if client == "chat_completions":
        tool = {"type": "function", "function": function}
        return {"model": "m", "messages": said, "tools": [tool]}
    if client == "responses":
        return {"model": "m", "input": said, "tools": [{"type": "function", **function}]}
    if client == "messages":
        tool = {"name": NAME, "input_schema": SCHEMA}
        return {"model": "m", "max_tokens": 100, "messages": said, "tools": [tool]}
    return {
        "contents": [{"role": "user", "parts": [{"text": ASKED}]}],
        "tools": [{"functionDeclarations": [function]}],
    }


def second_request(client: str, reply: dict[str, Any], *, keeps: bool) -> dict[str, Any]:
    """Write the request with the result, from a client that keeps unknown fields or drops them."""
    asked = first_request(client)
    if client == "chat_completions":
        message = reply["choices"][0]["message"]
        own = message["content"]
        call = message["tool_calls"][0]
        if not keeps:
            call = {name: call[name] for name in ("id", "type", "function")}
            message = {"role": "assistant", "content": own, "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": call["id"], "content": own}
        asked["messages"] += [message, result]
    elif client == "responses":
        items = reply["output"]
        call = next(item for item in items if item["type"] == "function_call")
        text = next(item for item in items if item["type"] == "message")
        own = text["content"][0]["text"]
        if not keeps:
            names = ("type", "call_id", "name", "arguments")
            items = [{"role": "assistant", "content": own}, {name: call[name] for name in names}]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": own}
        asked["input"] += [*items, result]
    elif client == "messages":
        blocks = reply["content"]
        call = next(block for block in blocks if block["type"] == "tool_use")
        own = next(block["text"] for block in blocks if block["type"] == "text")
        if not keeps:
            blocks = [{name: call[name] for name in ("type", "id", "name", "input")}]
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": own}
        asked["messages"] += [
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": [result]},
        ]
    else:
        content = reply["candidates"][0]["content"]
        own = content["parts"][0]["text"]
        response = {"functionResponse": {"name": NAME, "response": {"output": own}}}
        asked["contents"] += [content, {"role": "user", "parts": [response]}]
    return asked


@asynccontextmanager
async def serve(folder: Path, upstream: str, port: int, workers: int) -> Any:
    """Run a gateway until it is killed."""
    settings = folder / "gateway.toml"
    settings.write_text(f'[upstreams.up]\nurl = "{upstream}"\nprotocol = "gemini"\nprobe = "off"\n')
    words = ("serve", "--config", str(settings), "--port", str(port), "--workers", str(workers))
    store = ("--store", str(folder / "requests.sqlite3"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "surecall", *words, *store, cwd=folder, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        yield
    finally:
        process.kill() if workers == 1 else process.terminate()
        await process.communicate()


async def ask_all(url: str, client: str, asked: list[dict[str, Any]]) -> list[Any]:
    """Ask for every reply, sixteen at once, each over a connection of its own."""
    limit = asyncio.Semaphore(16)
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask(body: dict[str, Any]) -> Any:
            headers = {"authorization": "Bearer k"}
            async with limit, session.post(url + PATHS[client], json=body, headers=headers) as got:
                assert got.status == 200, await got.text()
                return await got.json()

        return await asyncio.gather(*map(ask, asked))


async def compare(client: str, *, keeps: bool, workers: int, pairs: int, ids: str) -> Counter[str]:
    """Ask both turns of all conversations, with a restart between, and return what came back."""
    provider = Provider(ids)
    app = web.Application()
    app.router.add_post("/{path:.*}", provider.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None  # type: ignore[attr-defined]
    upstream = f"http://127.0.0.1:{runner.addresses[0][1]}"
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as name:
        async with serve(Path(name), upstream, port, workers):
            replies = await ask_all(url, client, [first_request(client)] * (2 * pairs))
        random.shuffle(replies)
        async with serve(Path(name), upstream, port, workers):
            later = [second_request(client, reply, keeps=keeps) for reply in replies]
            await ask_all(url, client, later)
    await runner.cleanup()
    assert provider.seen.total() == 2 * pairs
    return provider.seen


def main() -> None:
    """Print a line for each kind of client."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--ids", choices=("none", "one"), default="none")
    options = parser.parse_args()
    foreign = 0
    print(f"{'client':18} {'fields':6} {'workers':>7} {'right':>7} {'foreign':>7} {'lost':>7}")
    for client in PATHS:
        for keeps in (True,) if client == "gemini" else (False, True):
            for workers in (1, 2):
                asking = compare(
                    client, keeps=keeps, workers=workers, pairs=options.pairs, ids=options.ids
                )
                seen = asyncio.run(asking)
                foreign += seen["foreign"]
                fields = "kept" if keeps else "dropped"
                figures = "".join(f"{seen[kind]:8}" for kind in ("right", "foreign", "lost"))
                print(f"{client:18} {fields:7} {workers:6}{figures}", flush=True)
    sys.exit(bool(foreign))


if __name__ == "__main__":
    main()
