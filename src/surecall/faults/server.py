"""The faulty provider over HTTP.

It listens on loopback unless told otherwise. Answers have no date and no name of a server: the
same seed gives the same bytes.
"""

import asyncio
from typing import Any, Self, cast

from surecall.errors import Code, JSONTextError, RequestError
from surecall.jsontext import decode
from surecall.records import WireRequest

from .answers import Answer, error_answer, json_answer
from .catalogue import CLEAN, FAULTS
from .http import Received, RequestRefused, perform_answer, receive_request
from .models import zoo
from .provider import FAULT_PREFIX, ZOO_PREFIX, FaultyProvider, find_endpoint

__all__ = ["FaultServer", "model_names"]


class FaultServer:
    """Serves a faulty provider; use it as `async with FaultServer(provider) as server`.

    It answers `POST /v1/chat/completions` and `POST /v1/messages`, whole and streamed, and
    `GET /v1/models` with every name that a request may carry as its model. `GET /faults` says what
    is served and how often each fault was met.
    """

    def __init__(self, provider: FaultyProvider, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.provider = provider
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def url(self) -> str:
        """The address to point a client of chat completions at."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._tasks.add(task)
        try:
            while await self._answer_one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client has left, or does not speak HTTP
        except asyncio.CancelledError:
            pass  # the server stops; asyncio would report a cancelled connection as an error
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            request = await receive_request(reader, writer)
        except RequestRefused as refused:
            await perform_answer(error_answer(refused.status, refused.message), reader, writer)
            return False
        if request is None:
            return False
        return await perform_answer(self._answer(request), reader, writer)

    def _answer(self, request: Received) -> Answer:
        if request.method == "GET":
            return self._look(request.path)
        protocol = find_endpoint(request.path)
        if request.method != "POST" or protocol is None:
            return error_answer(404, f"There is nothing at {request.method} {request.path}.")
        try:
            body = decode(request.body)
        except JSONTextError as error:
            return error_answer(400, str(error))
        if not isinstance(body, dict):
            fault = protocol.render_fault(
                RequestError(Code.INVALID_REQUEST, "The body is not a JSON object.")
            )
            return json_answer(fault.body, fault.status)
        fields = cast("dict[str, Any]", body)
        wire = WireRequest(
            path=request.path, body=fields, headers={}, stream=fields.get("stream") is True
        )
        return self.provider.answer(protocol, wire)

    def _look(self, path: str) -> Answer:
        match path.rstrip("/"):
            case "/v1/models" | "/models":
                rows = [{"id": name, "object": "model", "created": 0} for name in model_names()]
                return json_answer({"object": "list", "data": rows})
            case "/faults":
                return json_answer(self._state())
            case _:
                return error_answer(404, f"There is nothing at GET {path}.")

    def _state(self) -> dict[str, Any]:
        provider = self.provider
        return {
            "seed": provider.seed,
            "plan": provider.plan,
            "model": None if provider.behaviour is None else provider.behaviour.name,
            "requests": provider.requests,
            "by_model": dict(provider.by_model),
            "by_fault": dict(provider.by_fault),
        }


def model_names() -> list[str]:
    """List the names that a request may carry as its model."""
    faults = [f"{FAULT_PREFIX}{name}" for name in (CLEAN, *(fault.name for fault in FAULTS))]
    return [*faults, *(f"{ZOO_PREFIX}{behaviour.name}" for behaviour in zoo())]
