"""A provider on loopback that speaks any wire format, made of the format's own server side.

async with FamilyServer(Messages(), [Reply(content="hello", finish_reason="stop")]) as server:
    transport = HttpTransport(server.url, protocol=Messages())
    ...
assert server.requests[0].model == "m"
"""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from aiohttp import web

from surecall.base.errors import SurecallError
from surecall.base.records import ModelRequest, Reply, WireRequest
from surecall.text import decode, encode
from surecall.wire import WireProtocol

__all__ = ["FamilyServer", "render_stream"]


class FamilyServer:
    """Answers each request with the next reply, whole or streamed as the client asked."""

    def __init__(self, protocol: WireProtocol, replies: Iterable[Reply | SurecallError]) -> None:
        self._protocol = protocol
        self._replies = iter(replies)
        self._runner: web.AppRunner | None = None
        self.requests: list[ModelRequest] = []
        """Every request, as the format's server side understood it."""
        self.wires: list[WireRequest] = []
        """Every request, as it arrived."""
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        path = http.path_qs.removeprefix(self._protocol.default_prefix)
        headers = {name.lower(): value for name, value in http.headers.items()}
        wire = WireRequest(path=path, body=decode(await http.read()), headers=headers)
        self.wires.append(wire)
        try:
            request = self._protocol.parse_request(wire)
            self.requests.append(request)
            reply = next(self._replies)
            if isinstance(reply, SurecallError):
                raise reply
        except SurecallError as error:
            fault = self._protocol.render_error(error)
            body = encode(fault.body)
            return web.Response(body=body, status=fault.status, content_type="application/json")
        if not request.stream:
            body = encode(self._protocol.render_reply(reply))
            return web.Response(body=body, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        for piece in render_stream(self._protocol, reply, request.model):
            await response.write(piece)
        await response.write_eof()
        return response


def render_stream(protocol: WireProtocol, reply: Reply, model: str = "m") -> list[bytes]:
    """Write a reply as a stream, its text in two pieces."""
    writer = protocol.open_writer(model=model, reply_id=reply.id)
    pieces = [writer.begin()]
    pieces += [writer.reasoning(part) for part in _halves(reply.reasoning)]
    pieces.append(writer.reasoning("", reply.extra))
    say = writer.refusal if reply.is_refusal else writer.text
    pieces += [say(part) for part in _halves(reply.content)]
    pieces += [writer.call(call) for call in reply.calls]
    pieces.append(writer.end(reply))
    return [piece for piece in pieces if piece]


def _halves(text: str | None) -> list[str]:
    if not text:
        return []
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
