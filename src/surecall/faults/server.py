"""The faulty provider over HTTP.

It listens on loopback unless it is given another address, and serves programs only: what a page of
another web site causes is refused. Answers have no date and no name of a server: the same seed
gives the same bytes.
"""

import asyncio
import socket
import struct
from collections.abc import Iterable
from http import HTTPStatus
from itertools import count
from typing import Any, Final, Self, cast

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError
from surecall.base.records import WireRequest
from surecall.serving import (
    LOOPBACK_NAMES,
    Exchange,
    HttpConnection,
    HttpServer,
    Refusal,
    ServerLimits,
    check_admission,
    list_hosts,
)
from surecall.text import decode
from surecall.wire import ChatCompletions, WireProtocol, find_protocol
from surecall.wire.gemini.requests import KEY_HEADER

from .answers import Answer, Ending, Flood, Pause, json_answer, refusal_answer
from .behaviours import ZOO_PREFIX, zoo
from .catalog import CLEAN, FAULTS
from .provider import FAULT_PREFIX, FaultyProvider, find_endpoint

_SEND_S: Final = 60.0


async def deliver_answer(answer: Answer, link: HttpConnection, exchange: Exchange) -> None:
    """Send an answer as it says, down to how its connection ends.

    Raises:
        ConnectionResetError: The client has left.
    """
    exchange.response_started = True
    if answer.before != "keep":
        await _end(answer.before, link, exchange)
        return
    link.transport.write(_render_head(answer, is_last=not exchange.keep_alive))
    is_chunked = answer.framing in {"chunked", "both"}
    for piece in answer.pieces:
        if isinstance(piece, Pause):
            await asyncio.sleep(piece.seconds)
        elif isinstance(piece, Flood):
            await _flood(piece, link, is_chunked=is_chunked)
        else:
            await _write(link, _frame(piece) if is_chunked else piece)
    if is_chunked and answer.ending == "keep":
        await _write(link, b"0\r\n\r\n")
    await _end(answer.ending, link, exchange)


async def _flood(flood: Flood, link: HttpConnection, *, is_chunked: bool) -> None:
    data = _frame(flood.data) if is_chunked else flood.data
    for _ in count() if flood.times is None else range(flood.times):
        await _write(link, data)
        await asyncio.sleep(flood.pause_s)


async def _write(link: HttpConnection, data: bytes) -> None:
    """Write, and wait for the client to keep up, but not for ever; raise when it has left."""
    if not link.is_gone:
        link.transport.write(data)
        async with asyncio.timeout(_SEND_S):
            await link.drain()
    if link.is_gone:
        raise ConnectionResetError("the client has left")


async def _end(ending: Ending, link: HttpConnection, exchange: Exchange) -> None:
    match ending:
        case "keep":
            link.end_answer(exchange)
        case "stall":
            link.read_on()
            await link.wait_departure()
            link.transport.abort()
        case "reset":
            await asyncio.sleep(0.02)  # bytes not yet read by the client die with the connection
            peer: socket.socket = link.transport.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.transport.abort()
        case "close":
            link.transport.close()


def _render_head(answer: Answer, *, is_last: bool) -> bytes:
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = "Unknown"
    headers = dict(answer.headers)
    if answer.framing in {"length", "both"}:
        declared = answer.declared_bytes
        headers["content-length"] = str(len(answer.body) if declared is None else declared)
    if answer.framing in {"chunked", "both"}:
        headers["transfer-encoding"] = "chunked"
    if is_last or answer.ending != "keep" or answer.framing == "close":
        headers["connection"] = "close"
    lines = [f"HTTP/1.1 {answer.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"


def _frame(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


class Head(Struct, frozen=True):
    """A request without its body."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    """In the order in which they arrived, names in lower case."""

    @classmethod
    def of(cls, scope: dict[str, Any]) -> "Head":
        """Return the head of a request, as the server has it."""
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        )
        query = scope["query_string"].decode("latin-1")
        return cls(scope["method"], scope["raw_path"].decode("latin-1"), query, headers)

    def values(self, name: str) -> list[str]:
        """Return all values of a header, in lower case."""
        return [value.lower() for key, value in self.headers if key == name]


class RequestRefused(Exception):  # noqa: N818 - a signal, answered with its status
    """A request that is not served."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class _Connection(HttpConnection):
    """A connection that refuses in the format of the path, and answers who has sent everything."""

    waits_for_answers = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a client, unless there are too many."""
        super().connection_made(transport)
        if len(self.keeper.connections) > self.limits.max_connections:
            self.refuse(503, "There are too many connections.")

    def render_refusal(self, status: int, message: str) -> tuple[bytes, bytes]:
        """Return the type and the body of a refusal."""
        code = _CODES.get(status, Code.INVALID_REQUEST)
        path = self.target.partition(b"?")[0].decode("latin-1")
        answer = refusal_answer(_choose_format(path), Refusal(status, code, message))
        return b"application/json", answer.body


_CODES: Final = {
    408: Code.REQUEST_TIMEOUT,
    431: Code.REQUEST_TOO_LARGE,
    503: Code.OVERLOADED,
}
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
        self._http: HttpServer | None = None

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
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        sock = socket.create_server((self._host, self._port), family=family, backlog=2048)
        sock.settimeout(0)
        self._port = sock.getsockname()[1]
        self._http = HttpServer(self._serve, self._limits, _Connection)
        await self._http.listen(sock)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._http is not None
        self._http.cut()
        await asyncio.gather(*self._http.tasks, return_exceptions=True)

    async def _serve(self, scope: dict[str, Any], receive: Any, _send: Any) -> None:
        """Serve one request; a function of ASGI, but that it writes its answers itself."""
        link: HttpConnection = scope["surecall.link"]
        exchange = cast("Exchange", link.current)
        head = Head.of(scope)
        protocol = _choose_format(head.path)
        address, port = link.address or ("", 0)
        hosts = list_hosts(port, (*LOOPBACK_NAMES, self._host, address)) | self._allow_hosts
        refusal = check_admission(head.method, head.headers, hosts)
        try:
            try:
                if refusal is not None:
                    raise RequestRefused(refusal)
                body = await _read_body(receive, head, self._limits.max_body_bytes)
                answer = self._answer(head, body)
            except RequestRefused as refused:
                exchange.keep_alive = False
                answer = refusal_answer(protocol, refused.refusal)
            await deliver_answer(answer, link, exchange)
        except (ConnectionResetError, TimeoutError):
            link.transport.abort()  # the client has left, or does not keep up

    def _answer(self, head: Head, body: bytes) -> Answer:
        if head.method == "GET":
            return self._answer_get(head)
        protocol = find_endpoint(head.path)
        if head.method != "POST" or protocol is None:
            return _answer_not_found(head)
        if protocol.traits.model_in_path and _lacks_events(head):
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


_EVENTS_ONLY: Final = Refusal(
    400, Code.INVALID_REQUEST, "Streams are served as events only: add ?alt=sse."
)
_NOT_AN_OBJECT: Final = Refusal(400, Code.INVALID_REQUEST, "The body is not a JSON object.")


def model_names() -> list[str]:
    """List the names that a request may carry as its model."""
    faults = [f"{FAULT_PREFIX}{name}" for name in (CLEAN, *(fault.name for fault in FAULTS))]
    return [*faults, *(f"{ZOO_PREFIX}{behaviour.name}" for behaviour in zoo())]


async def _read_body(receive: Any, head: Head, max_bytes: int) -> bytes:
    too_large = Refusal(413, Code.REQUEST_TOO_LARGE, f"A request may have {max_bytes} bytes.")
    lengths = [value for value in head.values("content-length") if value.isdigit()]
    if any(len(value) > 18 or int(value) > max_bytes for value in lengths):
        raise RequestRefused(too_large)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("the client has left")
        body += message["body"]
        if len(body) > max_bytes:
            raise RequestRefused(too_large)
        if not message["more_body"]:
            return bytes(body)


def _answer_not_found(head: Head) -> Answer:
    """Answer 404 in the shape of the format that the path belongs to."""
    refusal = Refusal(404, Code.NOT_FOUND, f"There is nothing at {head.method} {head.path}.")
    return refusal_answer(_choose_format(head.path), refusal)


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
    if head.path.startswith("/v1beta") or head.values(KEY_HEADER):
        methods = {"supportedGenerationMethods": ["generateContent", "streamGenerateContent"]}
        google = ({"name": f"models/{name}", "displayName": name, **methods} for name in names)
        return {"models": list(google)}
    usual = {"object": "model", "created": 0, "owned_by": "surecall"}
    return {"object": "list", "data": [{"id": name, **usual} for name in names]}
