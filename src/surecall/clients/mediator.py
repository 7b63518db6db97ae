"""Answers to an HTTP client: requests for a model are made reliable, all others pass."""

import logging
import re
from collections.abc import AsyncIterator, Mapping
from time import monotonic
from typing import Any, Final
from urllib.parse import unquote

from msgspec.structs import replace

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderError,
    ProviderReplyError,
    RequestError,
    SurecallError,
)
from surecall.base.json_values import as_fields
from surecall.exchange.mediation import mediate
from surecall.exchange.policy import (
    OUTCOME_HEADER,
    RECEIPTS_HEADER,
    REFUSED_CALLS_HEADER,
    Delivered,
    Ending,
    Policy,
    Report,
    Route,
    Sent,
    is_agent,
    read_refused_calls,
)
from surecall.exchange.request import ClientRequest, add_members
from surecall.exchange.signatures import EchoCache
from surecall.exchange.streams import PULSE_S, StreamRelay, rescue_call
from surecall.models.profiles import Catalog, resolve_capabilities
from surecall.text import SSEEvent, SSEReader, decode, encode, render_event
from surecall.wire import WireProtocol, find_protocol
from surecall.wire.errors import SHOULD_RETRY_HEADER
from surecall.wire.gemini.requests import KEY_HEADER

from .library import Library, is_mediated, kept_headers

MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark, which is not part of a JSON text."""
_NAMED: Final = frozenset({"messages", "responses"})
"""Formats whose events have names."""


class PlainEvents:
    """Rewrites the events of a stream; what it holds and its order stay the same.

    Args:
        protocol: The name of the wire format.
    """

    def __init__(self, protocol: str) -> None:
        self._names = protocol in _NAMED
        self._reader = SSEReader()

    def feed(self, piece: bytes) -> bytes:
        """Return the events that a piece completes."""
        return b"".join([self._render(event) for event in self._reader.feed(piece)])

    def close(self) -> bytes:
        """Return the event that the end of the stream completes, if any."""
        try:
            return b"".join([render_event(event.data) for event in self._reader.close()])
        except ProviderReplyError:
            return b""

    def _render(self, event: SSEEvent) -> bytes:
        is_named = self._names and event.event != "message"
        return render_event(event.data, event=event.event if is_named else None)


_log = logging.getLogger("surecall.clients")
_MEMBER: Final = "surecall"
_EVENTS: Final = {"content-type": "text/event-stream; charset=utf-8"}
_JSON: Final = {"content-type": "application/json"}
_KEYS: Final = ("authorization", "x-api-key", "api-key", KEY_HEADER)
"""Headers that say who asks."""


class Mediator:
    """Answers the requests of one HTTP client."""

    def __init__(
        self,
        library: Library,
        policy: Policy | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        self.library = library
        self.policy = policy or Policy()
        self.echoes = EchoCache()
        self._recognizer = Recognizer(capabilities)

    async def answer(self, request: Any) -> Any:
        """Return the response to a request of the library."""
        url = request.url
        if is_mediated(request) or not self._recognizer.may_be_for_model(request.method, url.path):
            return await self.library.send(request)
        body = await self.library.read_request(request)
        found = self._recognizer.recognize(url.host, url.path, body)
        if found is None:
            return await self.library.send(request)
        try:
            exchange = _Exchange(self, request, *found)
        except RequestError as error:  # of a header that is meant for surecall
            wire = found[0].protocol.render_error(error)
            return self.library.respond(request, wire.status, None, _JSON, encode(wire.body), {})
        return await (exchange.stream() if found[0].stream else exchange.answer())


class _Exchange:
    """One request for a model."""

    def __init__(self, mediator: Mediator, http: Any, request: ClientRequest, route: Route) -> None:
        self._mediator = mediator
        self._library = mediator.library
        self._policy = mediator.policy
        self._http = http
        self._request = request
        self._route = route
        self._last: Any = None
        self._refused: tuple[Any, Sent] | None = None
        """The first response that is an error, and what it says."""
        self._failure: tuple[SurecallError, Exception] | None = None
        self._looked_s = monotonic()
        sent = dict(http.headers.items())
        self._scope = next((sent[name] for name in _KEYS if name in sent), "")
        wanted = self._policy.refused_calls
        if word := sent.get(REFUSED_CALLS_HEADER):
            wanted = read_refused_calls(word)
        if wanted == "auto" and is_agent(sent.items()):
            wanted = "deliver"
        if wanted != self._policy.refused_calls:
            self._policy = replace(self._policy, refused_calls=wanted)

    # Whole replies

    async def answer(self) -> Any:
        """Return the whole reply, made reliable."""
        return self._deliver(await self._mediate(self._request))

    async def _mediate(self, request: ClientRequest) -> Delivered:
        route, policy, echoes = self._route, self._policy, self._mediator.echoes
        return await mediate(request, route, policy, self._send, echoes=echoes, scope=self._scope)

    def _deliver(self, delivered: Delivered) -> Any:
        self._raise_failure(delivered.error)
        if self._refused is not None and delivered.outcome == "failed":
            response, sent = self._refused
            if getattr(delivered.error, "status", None) == sent.status:
                return self._pass_error_on(response, sent, delivered)
        body = delivered.body.removeprefix(MARK)
        if delivered.usage is None and delivered.error is None:
            body = _drop_unreadable_usage(body)
        report = delivered.describe()
        if delivered.outcome != "clean":
            _log.info("%s: %s", self._request.model, delivered.outcome)
            is_own = delivered.outcome == "failed"
            # Where the path names the model, the client refuses members that it does not know.
            if not is_own and not self._request.protocol.traits.model_in_path:
                body = add_members(body, {_MEMBER: report})
        headers = {**delivered.headers, **_JSON, **_tell(delivered)}
        if delivered.should_retry is not None:
            headers[SHOULD_RETRY_HEADER] = "true" if delivered.should_retry else "false"
        return self._library.respond(
            self._http, delivered.status, self._last, headers, body, {_MEMBER: report}
        )

    def _pass_error_on(self, response: Any, sent: Sent, delivered: Delivered | None = None) -> Any:
        """Return the endpoint's own error as it came: the client knows what to make of it."""
        told = {} if delivered is None else _tell(delivered)
        report = {} if delivered is None else {_MEMBER: delivered.describe()}
        return self._library.respond(self._http, sent.status, response, told, sent.body, report)

    # Streams

    async def stream(self) -> Any:
        """Return the reply as a stream; an error that comes before any text has its own status."""
        if self._request.streams_several:
            return await self._stream_several()
        relay = self._open_relay(self._route)
        try:
            response = await self._open(relay.body)
            if not _is_reply(response):
                sent = await self._read(response)
                return await self._answer_error(sent)
        except ProviderError as error:
            self._raise_failure(error)
            ending = Ending(outcome="failed", error=error)
            return self._deliver(_as_delivered(self._request, ending))
        relay.take_headers(kept_headers(response))
        return await self._respond(relay)

    async def _stream_several(self) -> Any:
        """Return several replies as a stream; they are asked for whole."""
        delivered = await self._mediate(self._request.as_whole())
        if delivered.error is not None and delivered.status >= 400:
            return self._deliver(delivered)
        data = self._request.write_events(delivered.body)
        return self._respond_events(data, delivered)

    def _respond_events(self, data: bytes, done: Report) -> Any:
        headers = {**_EVENTS, **_tell(done)}
        return self._library.respond(
            self._http, 200, self._last, headers, data, {_MEMBER: done.describe()}
        )

    def _open_relay(self, route: Route) -> StreamRelay:
        return StreamRelay(
            self._request, route, self._policy, echoes=self._mediator.echoes, scope=self._scope
        )

    async def _respond(self, relay: StreamRelay) -> Any:
        pieces = self._relay(relay)
        first = await anext(pieces)
        ending = first if isinstance(first, Ending) else None
        if ending is not None and ending.error is not None and not ending.is_reply:
            self._raise_failure(ending.error)
            return self._deliver(_as_delivered(self._request, ending))
        report: dict[str, Any] = {}
        joined = self._join(first, pieces, PlainEvents(self._request.protocol.name), report)
        stop = lambda: self._library.close(self._last)  # noqa: E731 - whichever is last then
        return self._library.respond(
            self._http, 200, self._last, _EVENTS, joined, {_MEMBER: report}, stop
        )

    async def _join(
        self,
        first: bytes | Ending,
        pieces: AsyncIterator[bytes | Ending],
        plain: PlainEvents,
        report: dict[str, Any],
    ) -> AsyncIterator[bytes]:
        """Yield bytes alone, and fill in the report when the stream has ended."""
        piece = first
        try:
            while not isinstance(piece, Ending):
                if data := plain.feed(piece):
                    yield data
                piece = await anext(pieces)
            report.update(piece.describe())
            self._raise_failure(piece.error)
            yield plain.feed(piece.data) + plain.close()
        finally:
            close: Any = getattr(pieces, "aclose", None)
            if close is not None:
                await close()

    async def _relay(self, relay: StreamRelay) -> AsyncIterator[bytes | Ending]:
        """Yield what goes to the client, and at last how it ends."""
        while True:
            failure: SurecallError | None = None
            try:
                async for piece in self._library.iterate(self._last):
                    if data := self._feed(relay, piece):
                        yield data
                    if relay.done:
                        break
            except ProviderError as error:
                failure = error
            except Exception as error:
                if not self._library.is_failure(error):
                    raise
                failure = self._fail(error)
            finally:
                await self._library.close(self._last)
            ending = relay.finish(None if relay.done else failure)
            while ending.ask is not None:
                try:
                    response = await self._open(ending.ask)
                    if _is_reply(response):
                        break
                    sent = await self._read(response)
                    error = self._route.protocol.parse_error(sent.status, sent.headers, sent.body)
                except ProviderError as refusal:
                    error = refusal
                ending = relay.finish(error)
            if ending.ask is None:
                yield ending
                return

    def _feed(self, relay: StreamRelay, piece: bytes) -> bytes:
        """Pass a piece on; from time to time the client hears something all the same."""
        data, now_s = relay.feed(piece), monotonic()
        if now_s - self._looked_s >= PULSE_S:
            self._looked_s = now_s
            data += relay.pulse()
        return data

    async def _answer_error(self, sent: Sent) -> Any:
        """Answer with the error that came in the place of a stream, or the call it holds."""
        route, policy = self._route, self._policy
        error = route.protocol.parse_error(sent.status, sent.headers, sent.body)
        if self._request.offers_tools and sent.status < 500:
            if error.code == Code.NO_TOOL_USE_ENDPOINT and policy.allows("taught"):
                if route.strategy == "native":
                    self._route = replace(route, strategy="taught")
                    return await self.stream()
            else:
                ending = await rescue_call(sent, self._request, route, policy)
                if ending is not None:
                    return self._respond_events(ending.data, ending)
        return self._pass_error_on(self._last, sent)

    # Asking

    async def _send(self, body: bytes) -> Sent:
        return await self._read(await self._open(body))

    async def _open(self, body: bytes) -> Any:
        try:
            self._last = await self._post(body)
        except Exception as error:
            raise self._fail(error) from error
        return self._last

    async def _post(self, body: bytes) -> Any:
        """Send a request, and once more if its connection breaks before anything is answered.

        Not every SDK does that: google-genai repeats only what could not be connected.
        """
        try:
            return await self._library.post(self._http, body)
        except Exception as error:
            if self._policy.max_requests < 2 or not self._library.is_break(error):
                raise
        return await self._library.post(self._http, body)

    async def _read(self, response: Any) -> Sent:
        try:
            data = await self._library.read(response)
        except ProviderError:
            raise
        except Exception as error:
            raise self._fail(error) from error
        finally:
            await self._library.close(response)
        sent = Sent(response.status_code, kept_headers(response), data)
        if self._refused is None and not _is_reply(response):
            self._refused = (response, sent)
        return sent

    def _fail(self, error: Exception) -> ProviderError:
        """Keep what was raised below, and return the error that stands for it here."""
        failed = ProviderConnectionError(
            Code.CONNECTION_FAILED, f"The connection failed: {type(error).__name__}."
        )
        self._failure = (failed, error)
        return failed

    def _raise_failure(self, error: SurecallError | None) -> None:
        """Raise the library's own error where that is why there is no reply."""
        if self._failure is not None and error is self._failure[0]:
            raise self._failure[1]


def _is_reply(response: Any) -> bool:
    return 200 <= response.status_code < 300


def _as_delivered(request: ClientRequest, ending: Ending) -> Delivered:
    """Return a stream that failed before it began as a reply that failed."""
    assert ending.error is not None
    wire = request.protocol.render_error(ending.error)
    return Delivered(
        status=ending.error_status or wire.status,
        body=ending.error_body or encode(wire.body),
        should_retry=False if ending.outcome == "refused" else None,
        **ending.report(),
    )


def _drop_unreadable_usage(body: bytes) -> bytes:
    """Return a completion without token counts that are not numbers, which some clients refuse."""
    if b'"usage"' not in body or b'"choices"' not in body:
        return body
    fields = as_fields(decode(body))
    if not fields.pop("usage", None):
        return body
    return encode(fields)


def _tell(done: Report) -> dict[str, str]:
    return {OUTCOME_HEADER: done.outcome, RECEIPTS_HEADER: str(len(done.receipts))}


_ENDINGS: Final[Mapping[str, str]] = {
    "/chat/completions": "chat_completions",
    "/messages": "messages",
    "/responses": "responses",
}
_GEMINI: Final = re.compile(
    r"/(?:models|tunedModels)/([^/]+):(generateContent|streamGenerateContent)$"
)
_VERTEX: Final = re.compile(
    r"/publishers/anthropic/models/(?!count-tokens:)([^/]+):(?:rawPredict|streamRawPredict)$"
)
"""Messages of a platform that names the model in the path."""
_MAX_ROUTES: Final = 256


class Recognizer:
    """Tells requests for a model from all others.

    Args:
        capabilities: The caller's facts about the models, which win over the catalog.
    """

    def __init__(self, capabilities: Mapping[str, Any] | None = None) -> None:
        self._capabilities = dict(capabilities or {})
        self._protocols: dict[str, WireProtocol] = {}
        self._routes: dict[tuple[str, str, str], Route] = {}

    def may_be_for_model(self, method: str, path: str) -> bool:
        """Tell whether a request goes where models are asked."""
        return method == "POST" and (
            path.endswith(tuple(_ENDINGS))
            or _GEMINI.search(path) is not None
            or _VERTEX.search(path) is not None
        )

    def recognize(self, host: str, path: str, body: bytes) -> tuple[ClientRequest, Route] | None:
        """Return what a request asks of a model, and of which; `None` when it asks nothing."""
        name = next((found for end, found in _ENDINGS.items() if path.endswith(end)), None)
        model = stream = None
        if found := _GEMINI.search(path):
            name, model, stream = "gemini", unquote(found[1]), found[2] == "streamGenerateContent"
        elif found := _VERTEX.search(path):
            name, model = "messages", unquote(found[1])
        if name is None:
            return None
        protocol = self._protocols.get(name)
        if protocol is None:
            protocol = self._protocols[name] = find_protocol(name)
        try:
            request = ClientRequest.parse(protocol, body, model=model, stream=stream)
        except RequestError:
            return None  # the endpoint says what is wrong with it
        return request, self._route(protocol, host, request.model)

    def _route(self, protocol: WireProtocol, host: str, model: str) -> Route:
        key = (protocol.name, host, model)
        route = self._routes.get(key)
        if route is None:
            provider = Catalog.builtin().provider_at(host)
            # The program wrote the request for an endpoint that it knows better than anybody.
            taken = {"request_fields": ("*",)} if provider is None else {}
            found = resolve_capabilities(provider, model, overrides={**taken, **self._capabilities})
            route = Route.of(protocol, model, found)
            if len(self._routes) >= _MAX_ROUTES:
                self._routes.pop(next(iter(self._routes)))
            self._routes[key] = route
        return route
