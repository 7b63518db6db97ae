"""Two ways to the same model: a script inside the process, and a server at the end of a socket."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import surecall
from support.completion_server import CompletionServer
from surecall.loop import RunResult
from surecall.models.config import Config
from surecall.models.transport import HttpTransport, RetryPolicy, ScriptedTransport, Transport

__all__ = ["MODEL", "ORIGINAL", "Door"]

MODEL = "test-model"
ORIGINAL: dict[str, Any] = {"text_formats": "off", "likely_calls": "never"}
"""What the original did not have is off."""


class Door:
    """Runs a prompt against a list of replies, and shows what the provider was sent."""

    def __init__(self, kind: Literal["scripted", "http"]) -> None:
        self.kind = kind
        self.requests: list[dict[str, Any]] = []
        """The body of every request, as the provider received it."""
        self.paths: list[str] = []

    async def run(
        self, replies: Sequence[Any], prompt: Any = "Please begin.", **arguments: Any
    ) -> RunResult:
        """Run to the answer; every reply of the script must have been asked for."""
        given = {"model": MODEL, "config": Config(), **ORIGINAL, **arguments}
        async with self.open(replies) as transport:
            result = await surecall.run(prompt, transport=transport, **given)
        assert len(self.requests) == len(replies)
        return result

    @asynccontextmanager
    async def open(self, replies: Sequence[Any]) -> AsyncIterator[Transport]:
        """Give a transport that leads to these replies."""
        if self.kind == "scripted":
            scripted = ScriptedTransport(replies)
            try:
                yield scripted
            finally:
                # Through JSON, because that is what a provider would get to see.
                self.requests = [json.loads(json.dumps(r.body)) for r in scripted.requests]
                self.paths = [f"/v1{request.path}" for request in scripted.requests]
            return
        async with CompletionServer(replies) as server:
            retry = RetryPolicy(max_retries=0)
            try:
                async with HttpTransport(server.url, retry=retry) as transport:
                    yield transport
            finally:
                self.requests, self.paths = server.bodies, server.paths

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the last request."""
        return self.requests[-1]["messages"]

    @property
    def roles(self) -> list[str]:
        """Who speaks in the last request."""
        return [message["role"] for message in self.messages]

    @property
    def answers(self) -> list[dict[str, Any]]:
        """What the tools answered, as the model reads it in the last request."""
        return [json.loads(m["content"]) for m in self.messages if m["role"] == "tool"]

    @property
    def tool_names(self) -> list[str]:
        """The tools that the first request offered."""
        return [tool["function"]["name"] for tool in self.requests[0].get("tools", [])]
