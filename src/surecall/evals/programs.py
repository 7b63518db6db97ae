"""A program of the user's own in a trial: it asks a recording endpoint, and is judged by its calls.

async with RecordingEndpoint(transport, model="m") as endpoint:
    said = await run_program("python agent.py", endpoint, prompt="Pay Bob.", timeout_s=60)

The program is started for each trial, with the address of the endpoint in its environment. It asks
in Chat Completions, whole or streamed, and runs its own tools. What it asked and what it was
answered is played again to the loop afterwards, so that calls, results and text are judged like
those of any other trial.
"""

import asyncio
import os
import shlex
import socket
from collections.abc import Mapping
from typing import Any, Final, Self, cast

from surecall.base.errors import Code, JSONTextError, ProviderError, SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import ToolSpec, WireRequest, clip
from surecall.models.config.load import all_variables
from surecall.models.transport import ScriptedTransport, Transport
from surecall.serving import HttpConnection, HttpServer, ServerLimits
from surecall.text import decode, encode
from surecall.tools import ToolFailed, ToolRegistry

_PATH: Final = "/v1/chat/completions"
_MAX_OUTPUT_CHARS: Final = 2_000
_LEAVE_S: Final = 2.0
OPTIONS: Final[dict[str, Any]] = {
    "tool_failure_policy": "tolerated",
    "tool_use_mode": "relaxed",
}
"""Under which a conversation is played again: the program has decided everything already."""


class RecordingEndpoint:
    """Passes requests on to a model, and keeps the replies and the results of tools.

    Args:
        transport: How the model is asked.
        model: What the provider calls it, whatever name a program asks for.
    """

    def __init__(self, transport: Transport, *, model: str) -> None:
        self._transport = transport
        self._model = model
        self._http = HttpServer(self._serve, ServerLimits(), HttpConnection)
        self.replies: list[dict[str, Any] | ProviderError] = []
        """Whole bodies in order; an error only where no reply came after it."""
        self.results: dict[str, str] = {}
        """What tools returned, by the id of the call."""
        self.tools: dict[str, ToolSpec] = {}
        self.url = ""

    async def __aenter__(self) -> Self:
        sock = socket.create_server(("127.0.0.1", 0))
        sock.settimeout(0)
        self.url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
        await self._http.listen(sock)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._http.cut()
        await asyncio.gather(*self._http.tasks, return_exceptions=True)

    def registry(self) -> ToolRegistry:
        """Return the tools that the program offered, answering what they answered then."""

        def answer(_name: str, _arguments: dict[str, Any], *, tool_call_id: str) -> str:
            if tool_call_id not in self.results:
                raise ToolFailed(Code.TOOL_NOT_EXECUTED, "The program sent no result.")
            return self.results[tool_call_id]

        return ToolRegistry.from_executor(self.tools.values(), answer)

    def replay(self, said: str) -> ScriptedTransport:
        """Return the replies again; what the program said itself ends a run that has no answer."""
        last = self.replies[-1] if self.replies else None
        is_open = last is None or (isinstance(last, dict) and _has_calls(last))
        return ScriptedTransport([*self.replies, *([said] if is_open else [])])

    async def _serve(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve one request; a function of ASGI."""
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            if not message["more_body"]:
                break
        path = scope["raw_path"].decode("latin-1").partition("?")[0]
        if (scope["method"], path) != ("POST", _PATH):
            error = {"message": f"Only POST {_PATH} is served here.", "code": Code.NOT_FOUND}
            await _send(send, 404, [encode({"error": error})])
            return
        try:
            fields = as_fields(decode(body))
        except JSONTextError as problem:
            error = {"message": str(problem), "code": Code.INVALID_REQUEST}
            await _send(send, 400, [encode({"error": error})])
            return
        await self._answer(fields, send)

    async def _answer(self, fields: dict[str, Any], send: Any) -> None:
        self._note(fields)
        streams = fields.pop("stream", False) is True
        fields.pop("stream_options", None)
        request = WireRequest(path="/chat/completions", body={**fields, "model": self._model})
        if self.replies and isinstance(self.replies[-1], ProviderError):
            self.replies.pop()  # it was asked again
        try:
            reply = await self._transport.send(request)
            whole = as_fields(decode(reply.body))
        except (ProviderError, JSONTextError) as problem:
            found = problem if isinstance(problem, ProviderError) else _unreadable(problem)
            self.replies.append(found)
            error = {"message": found.message, "code": found.code}
            await _send(send, found.status or 502, [encode({"error": error})])
            return
        self.replies.append(whole)
        if not streams:
            await _send(send, 200, [reply.body])
            return
        script = ScriptedTransport([whole])
        async with script.stream(WireRequest(path=request.path, body={}, stream=True)) as events:
            pieces = [piece async for piece in events]
        await _send(send, 200, pieces, kind=b"text/event-stream")

    def _note(self, fields: Mapping[str, Any]) -> None:
        """Note the tools of a request, and the results in its conversation."""
        for tool in as_list(fields.get("tools") or []):
            function = as_fields(as_fields(tool).get("function"))
            name = str(function.get("name"))
            self.tools[name] = ToolSpec(
                name=name,
                description=str(function.get("description") or ""),
                parameters=as_fields(function.get("parameters")) or {"type": "object"},
            )
        for message in map(as_fields, as_list(fields.get("messages") or [])):
            if message.get("role") == "tool":
                content = message.get("content")
                text = content if isinstance(content, str) else encode(content).decode()
                self.results.setdefault(str(message.get("tool_call_id")), text)


async def run_program(
    command: str, endpoint: RecordingEndpoint, *, prompt: str, timeout_s: float | None
) -> str:
    """Run a program to its end, and return what it printed.

    It finds the endpoint in `OPENAI_BASE_URL` and the prompt in `SURECALL_PROMPT`, and on its
    standard input; `{base_url}` and `{prompt}` in the command are replaced.

    Raises:
        SurecallError: `DEADLINE_EXCEEDED`, or `TOOL_ERROR` when it cannot start or fails.
    """
    values = {"{base_url}": endpoint.url, "{prompt}": prompt}
    words = [values.get(word, word) for word in shlex.split(command)]
    environment = {
        **all_variables(),
        "OPENAI_BASE_URL": endpoint.url,
        "OPENAI_API_KEY": "surecall",
        "SURECALL_PROMPT": prompt,
    }
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
        )
    except (OSError, ValueError) as problem:
        raise SurecallError(Code.TOOL_ERROR, f"{command!r} does not start: {problem}.") from None
    try:
        async with asyncio.timeout(timeout_s):
            out, err = await process.communicate(prompt.encode())
    except TimeoutError:
        words_of_limit = f"The program ran for {timeout_s:g} s."
        raise SurecallError(Code.DEADLINE_EXCEEDED, words_of_limit) from None
    finally:
        await _end(process)
    if process.returncode:
        tail = clip(err.decode("utf-8", "replace")[-_MAX_OUTPUT_CHARS:].strip(), 300)
        raise SurecallError(Code.TOOL_ERROR, f"The program ended with {process.returncode}: {tail}")
    return clip(out.decode("utf-8", "replace").strip(), _MAX_OUTPUT_CHARS)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program and whatever it started."""
    if process.returncode is not None:
        return
    try:
        os.killpg(process.pid, 9)
    except (AttributeError, ProcessLookupError, PermissionError):
        process.kill()
    async with asyncio.timeout(_LEAVE_S):
        await process.wait()


async def _send(
    send: Any, status: int, pieces: list[bytes], *, kind: bytes = b"application/json"
) -> None:
    headers = [(b"content-type", kind)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _has_calls(body: Mapping[str, Any]) -> bool:
    choices = as_list(body.get("choices") or [{}])
    return bool(as_fields(as_fields(choices[0]).get("message")).get("tool_calls"))


def _unreadable(problem: Exception) -> ProviderError:
    return ProviderError(Code.UPSTREAM_INVALID_JSON, cast("Any", str(problem)))
