"""The one place where a request leaves and a reply comes back; usable alone for plain chat."""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import ProviderError
from surecall.profiles import Capabilities
from surecall.protocols import ChatCompletions, RawReply, StreamDelta, WireProtocol
from surecall.protocols.replies import DeltaMask, mask_reply
from surecall.reading import rescue_receipts
from surecall.records import ModelRequest, Receipt, Reply, WireRequest
from surecall.redaction import cut_secret_causes, mask_known
from surecall.transforms import TransformChain
from surecall.transport import Transport, ask_transport, fold_stream

from .history import parse_history
from .preflight import check_request, find_excess

__all__ = ["PromptResult", "PromptRunner"]

_CHAT: Final = ChatCompletions()
_TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls")
_REQUEST_ID_HEADERS = ("x-request-id", "request-id")


class PromptResult(Struct, frozen=True, kw_only=True):
    """One reply, and what it took to get it."""

    reply: Reply
    raw: RawReply
    """The reply before the transforms and before parsing the message, without known secrets."""
    receipts: tuple[Receipt, ...] = ()
    elapsed_ms: float = 0.0
    request_id: str | None = None
    attempts: int = 1


class PromptRunner:
    """Checks, renders, transforms and sends one request; parses one reply.

    Transforms of messages, tools and replies edit the chat completions shape; a protocol with
    another shape goes without them. Those of calls and results work with every protocol.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        protocol: WireProtocol | None = None,
        transforms: TransformChain | None = None,
        capabilities: Capabilities | None = None,
        skip_bad_events: bool = False,
    ) -> None:
        self.transport = transport
        self.protocol = protocol or _CHAT
        self.transforms = transforms or TransformChain()
        self.capabilities = capabilities or Capabilities()
        self.skip_bad_events = skip_bad_events

    def build(self, request: ModelRequest) -> WireRequest:
        """Check the request, render it and apply the outbound transforms."""
        check_request(request, self.capabilities)
        excess = find_excess(request, self.capabilities)
        wire = self.protocol.render_request(request)
        if self.protocol.takes_transforms:
            wire = self._transformed(wire)
            if excess is not None:  # a transform may have made it shorter
                excess = find_excess(self._as_sent(request, wire), self.capabilities)
        if excess is not None:
            raise excess
        return wire

    async def ask(
        self, request: ModelRequest, *, on_delta: Callable[[StreamDelta], None] | None = None
    ) -> PromptResult:
        """Send the request and return the reply."""
        wire = self.build(request)
        started = perf_counter()
        try:
            if request.stream:
                raw, headers, attempts = await ask_transport(
                    self.transport, partial(self._stream, wire, on_delta)
                )
            else:
                answer = await ask_transport(self.transport, partial(self.transport.send, wire))
                headers, attempts = answer.headers, answer.attempts
                raw = self.protocol.parse_body(answer.body, headers)
        except ProviderError as error:
            cut_secret_causes(error)
            raise
        elapsed_ms = (perf_counter() - started) * 1000
        result = self.read_raw(raw)
        return replace(
            result,
            elapsed_ms=elapsed_ms,
            request_id=_request_id(headers) or result.raw.id,
            attempts=attempts,
        )

    def read_raw(self, raw: RawReply) -> PromptResult:
        """Take known secrets out of a reply, apply the inbound transforms, parse its message."""
        raw = mask_reply(raw)
        rescued = rescue_receipts(raw)
        # What was rescued from an error is text, which every format reads as chat completions.
        protocol = _CHAT if rescued else self.protocol
        receipts: tuple[Receipt, ...] = ()
        changed = raw
        if protocol.takes_transforms:
            message, receipts = self.transforms.apply_reply(raw.message)
            changed = raw if message is raw.message else replace(raw, message=message)
        reply = protocol.parse_message(changed)
        calls, call_receipts = self.transforms.apply_calls(reply.calls)
        if calls is not reply.calls:
            reply = replace(reply, calls=calls)
        return PromptResult(reply=reply, raw=raw, receipts=rescued + receipts + call_receipts)

    def _as_sent(self, request: ModelRequest, wire: WireRequest) -> ModelRequest:
        """Return the request with what transforms made of it; tools they changed are left out."""
        if self.transforms.messages:
            request = replace(request, messages=parse_history(wire.body["messages"]))
        return replace(request, tools=()) if self.transforms.tools else request

    def _transformed(self, wire: WireRequest) -> WireRequest:
        body = dict(wire.body)
        body["messages"] = self.transforms.apply_messages(body["messages"])
        if "tools" in body:
            body["tools"] = self.transforms.apply_tools(body["tools"])
            if not body["tools"]:
                # Providers refuse an empty list, and settings for tools that are not there.
                for name in _TOOL_FIELDS:
                    body.pop(name, None)
        return replace(wire, body=body)

    async def _stream(
        self, wire: WireRequest, on_delta: Callable[[StreamDelta], None] | None
    ) -> tuple[RawReply, dict[str, str], int]:
        shown = None if on_delta is None else DeltaMask(on_delta)
        async with self.transport.stream(wire) as stream:
            folder = self.protocol.open_stream(stream.headers, skip_bad_events=self.skip_bad_events)
            try:
                raw = await fold_stream(stream, folder, None if shown is None else shown.feed)
            finally:
                if shown is not None:
                    shown.close()
            return raw, stream.headers, stream.attempts


def _request_id(headers: dict[str, str]) -> str | None:
    for name in _REQUEST_ID_HEADERS:
        if name in headers:
            return mask_known(headers[name])
    return None
