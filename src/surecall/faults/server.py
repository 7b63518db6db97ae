"""The faulty provider over HTTP.

It listens on loopback unless it is given another address, and serves programs only: what a page of
another web site causes is refused. Answers have no date and no name of a server: the same seed
gives the same bytes.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final, Self, cast

from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.base.records import WireRequest
from surecall.serving.admission import LOOPBACK_NAMES, Refusal, check_admission, list_hosts
from surecall.text import decode
from surecall.wire import ChatCompletions, WireProtocol, find_protocol

from .answers import Answer, json_answer, refusal_answer
from .behaviours import ZOO_PREFIX, zoo
from .catalog import CLEAN, FAULTS
from .http import (
    Head,
    RequestRefused,
    ServerLimits,
    discard_rest,
    perform_answer,
    receive_body,
    receive_head,
)
from .provider import FAULT_PREFIX, FaultyProvider, find_endpoint

_DEFAULT_LIMITS: Final = ServerLimits()
_DEFAULT_FORMAT: Final[WireProtocol] = ChatCompletions()


class FaultServer:
    """Serves a faulty provider; use it as `async with FaultServer(provider) as server`.

    It answers `POST /v1/chat/completions`, `/v1/responses`, `/v1/messages` and
    `/v1beta/models/MODEL:generateContent`, whole and streamed, and `GET /v1/models` with every name
    that a request may carry as its model. `GET /faults` says what is served and how often each
    fault was met.

    Args:
        provider: Who answers.
        host: The address to listen on.
        port: The port; any free one if 0.
        allow_hosts: Values of `Host` that are taken besides loopback names and the address the
            client connected to, such as `box.lan:8123`.
        limits: How long a client may take, and how much it may send.
    """

    def __init__(
        self,
        provider: FaultyProvider,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        allow_hosts: Iterable[str] = (),
        limits: ServerLimits = _DEFAULT_LIMITS,
    ) -> None:
        self.provider = provider
        self._host = host
        self._port = port
        self._allow_hosts = frozenset(name.lower() for name in allow_hosts)
        self._limits = limits
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def url(self) -> str:
        """The address to point a client at."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, self._host, self._port, limit=self._limits.max_header_bytes
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        # From Python 3.12 on, `wait_closed` would wait for clients that do not read.
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        is_full = len(self._tasks) >= self._limits.max_connections
        self._tasks.add(task)
        try:
            if is_full:
                await _refuse(_DEFAULT_FORMAT, _FULL, reader, writer)
            elif await self._answer_one(reader, writer, is_first=True):
                while await self._answer_one(reader, writer):
                    pass
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()  # the client has left, or does not keep up
        except asyncio.CancelledError:
            # The server stops. Raised again, asyncio would report it as an error; and to close
            # would be to wait for a client that does not read.
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer_one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_first: bool = False
    ) -> bool:
        """Serve one request; return whether the connection can be used again."""
        protocol = _DEFAULT_FORMAT
        try:
            head = await receive_head(reader, self._limits, is_first=is_first)
            if head is None:
                return False
            protocol = _choose_format(head.path)
            address, port = writer.get_extra_info("sockname")[:2]
            hosts = list_hosts(port, (*LOOPBACK_NAMES, self._host, address)) | self._allow_hosts
            refusal = check_admission(head.method, head.headers, hosts)
            if refusal is not None:
                raise RequestRefused(refusal)
            body = await receive_body(reader, writer, head, self._limits)
        except RequestRefused as refused:
            await _refuse(protocol, refused.refusal, reader, writer)
            return False
        answer = self._answer(head, body)
        return await perform_answer(answer, reader, writer) and not head.is_last

    def _answer(self, head: Head, body: bytes) -> Answer:
        if head.method == "GET":
            return self._answer_get(head)
        protocol = find_endpoint(head.path)
        if head.method != "POST" or protocol is None:
            return _answer_not_found(head)
        if protocol.name == "gemini" and _lacks_events(head):
            return refusal_answer(protocol, _EVENTS_ONLY)
        try:
            value = decode(body)
        except JSONTextError as error:
            return refusal_answer(protocol, Refusal(400, Code.INVALID_REQUEST, str(error)))
        if not isinstance(value, dict):
            return refusal_answer(protocol, _NOT_AN_OBJECT)
        fields = cast("dict[str, Any]", value)
        wire = WireRequest(path=head.path, body=fields, stream=fields.get("stream") is True)
        return self.provider.answer(protocol, wire)

    def _answer_get(self, head: Head) -> Answer:
        match head.path.rstrip("/"):
            case "/v1/models" | "/v1beta/models" | "/models":
                return json_answer(_list_models(head))
            case "/faults":
                return json_answer(self._describe_state())
            case _:
                return _answer_not_found(head)

    def _describe_state(self) -> dict[str, Any]:
        provider = self.provider
        return {
            "seed": provider.seed,
            "plan": provider.plan,
            "model": None if provider.behaviour is None else provider.behaviour.name,
            "requests": provider.requests,
            "by_model": provider.by_model,
            "by_fault": provider.by_fault,
        }


_FULL: Final = Refusal(503, Code.OVERLOADED, "There are too many connections.")
_EVENTS_ONLY: Final = Refusal(
    400, Code.INVALID_REQUEST, "Streams are served as events only: add ?alt=sse."
)
_NOT_AN_OBJECT: Final = Refusal(400, Code.INVALID_REQUEST, "The body is not a JSON object.")


def model_names() -> list[str]:
    """List the names that a request may carry as its model."""
    faults = [f"{FAULT_PREFIX}{name}" for name in (CLEAN, *(fault.name for fault in FAULTS))]
    return [*faults, *(f"{ZOO_PREFIX}{behaviour.name}" for behaviour in zoo())]


async def _refuse(
    protocol: WireProtocol,
    refusal: Refusal,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    answer = replace(refusal_answer(protocol, refusal), ending="close")
    await perform_answer(answer, reader, writer)
    await discard_rest(reader, writer)


def _answer_not_found(head: Head) -> Answer:
    """Answer 404 in the shape of the format that the path belongs to; then close."""
    refusal = Refusal(404, Code.NOT_FOUND, f"There is nothing at {head.method} {head.path}.")
    return replace(refusal_answer(_choose_format(head.path), refusal), ending="close")


def _choose_format(path: str) -> WireProtocol:
    """Return the format in which a path is refused, also one where nothing is."""
    protocol = find_endpoint(path)
    if protocol is not None:
        return protocol
    return find_protocol("gemini") if path.startswith("/v1beta") else _DEFAULT_FORMAT


def _lacks_events(head: Head) -> bool:
    return head.path.endswith(":streamGenerateContent") and "alt=sse" not in head.query.split("&")


def _list_models(head: Head) -> dict[str, Any]:
    """List the models as the client expects it, who is known by the headers of its provider."""
    names = model_names()
    if head.values("anthropic-version"):
        made = {"created_at": "1970-01-01T00:00:00Z"}
        rows = [{"type": "model", "id": name, "display_name": name, **made} for name in names]
        return {"data": rows, "has_more": False, "first_id": names[0], "last_id": names[-1]}
    if head.path.startswith("/v1beta") or head.values("x-goog-api-key"):
        methods = {"supportedGenerationMethods": ["generateContent", "streamGenerateContent"]}
        google = ({"name": f"models/{name}", "displayName": name, **methods} for name in names)
        return {"models": list(google)}
    usual = {"object": "model", "created": 0, "owned_by": "surecall"}
    return {"object": "list", "data": [{"id": name, **usual} for name in names]}
