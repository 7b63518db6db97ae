"""Requests to a real provider, with deadlines, limits and few retries."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    invalid_config,
)
from surecall.base.records import WireReply, WireRequest
from surecall.base.redaction import Secret, excerpt, redact, secrets_in_headers
from surecall.models.client.bodies import ACCEPT_ENCODING, BodyDecoder, open_decoder
from surecall.models.client.limits import Deadlines, WireLimits
from surecall.models.client.urls import join_url
from surecall.text import encode
from surecall.wire import ChatCompletions, WireProtocol
from surecall.wire.errors import check_body, kept_headers

from .base import Closing
from .limits import Watch
from .retry import RetryPolicy, parse_retry_after, run_attempts

if TYPE_CHECKING:
    from yarl import URL

    from .exchange import Answer, Wire

ErrorParser = Callable[[int, Mapping[str, str], bytes], ProviderError]
"""Turns an HTTP error answer into an exception."""

_YIELD_EVERY_BYTES: Final = 1024 * 1024
_OWN_HEADERS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_MAX_REQUEST_SECRETS: Final = 64


class HttpTransport(Closing):
    """Sends requests to one provider over HTTP.

    Use it as an async context manager or call `aclose()`. Connections belong to the event
    loop of the first request; after `aclose()` the next request opens new ones in its own.

    Args:
        base_url: Where the provider is, such as `https://api.example.com/v1`.
        api_key: Sent as the wire format has it, a bearer token by default, and only there.
        api_prefix: Path below the base URL; `None` means that of the wire format, such as `/v1`,
            if the base URL has no path.
        headers: Sent with every request.
        deadlines: How long each part of an attempt may take.
        limits: How large an answer may be.
        retry: How often a failed attempt is made again, before any of its answer is used.
        protocol: The wire format that the provider speaks; chat completions by default.
        parse_error: Reads an error answer of this provider, instead of the wire format.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | Secret | None = None,
        api_prefix: str | None = None,
        headers: Mapping[str, str] | None = None,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
        limits: WireLimits = WireLimits(),  # noqa: B008 - frozen
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
        protocol: WireProtocol | None = None,
        parse_error: ErrorParser | None = None,
    ) -> None:
        protocol = protocol or ChatCompletions()
        self._base_url = base_url
        self._api_prefix = api_prefix
        self._default_prefix = protocol.default_prefix
        self._shown_url = self._url_of("")
        self._deadlines = deadlines
        self._limits = limits
        self._retry = retry
        self._parse_error = parse_error or protocol.parse_error
        own = {name.title(): value for name, value in check_headers(headers or {}).items()}
        # Keys are known, and taken out of everything, while somebody holds them.
        self._secrets = secrets_in_headers(own)
        self._request_secrets: deque[Secret] = deque(maxlen=_MAX_REQUEST_SECRETS)
        if isinstance(api_key, str):
            api_key = Secret(api_key)
        if api_key:
            for name, value in check_headers(protocol.render_auth(api_key.reveal())).items():
                own[name.title()] = value
            self._secrets.append(api_key)
        self._has_key = bool(api_key) or "Authorization" in own
        self._headers = {
            "Accept": "application/json",
            "User-Agent": "surecall",
            **own,
            "Accept-Encoding": ACCEPT_ENCODING,
            "Content-Type": "application/json",
        }
        self._urls: dict[str, URL] = {}
        self._wire: Wire | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        key = "'***'" if self._has_key else "None"
        return f"HttpTransport({redact(self._shown_url)!r}, api_key={key})"

    async def aclose(self) -> None:
        """Give up all connections."""
        wire, self._wire, self._loop = self._wire, None, None
        if wire is not None:
            await wire.aclose()

    async def send(self, request: WireRequest) -> WireReply:
        """Send the request and return the whole answer (status below 300)."""
        started = time.perf_counter()
        answer, attempts = await self._open(request)
        try:
            body = await answer.read_all(self._limits)
            problem = check_body(answer.headers, body, status=answer.status)
            if problem is not None:
                raise problem
        except ProviderError as error:
            _complete(error, answer, attempts)
            raise
        finally:
            answer.close()
        return WireReply(
            status=answer.status,
            headers=answer.headers,
            body=body,
            elapsed_ms=(time.perf_counter() - started) * 1000,
            attempts=attempts,
        )

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator["HttpStream", None]:
        """Open a streamed answer; leaving the context closes the connection."""
        answer, attempts = await self._open(request)
        try:
            stream = HttpStream(answer, attempts, self._limits)
            await stream.start()
            yield stream
        finally:
            answer.close()

    async def _open(self, request: WireRequest) -> tuple["Answer", int]:
        url = self._urls.get(request.path) or self._join(request.path)
        data = encode(request.body)
        headers = self._take_headers(request.headers) if request.headers else None
        wire = self._wire
        if wire is None or self._loop is not asyncio.get_running_loop():
            wire = await self._open_wire()
        return await run_attempts(self._retry, partial(self._attempt, wire, url, data, headers))

    async def _attempt(
        self,
        wire: "Wire",
        url: "URL",
        data: bytes,
        headers: Mapping[str, str] | None,
        number: int,
    ) -> tuple["Answer", int]:
        try:
            answer = await wire.post(url, data, headers, Watch(self._deadlines))
        except (ProviderConnectionError, ProviderTimeoutError) as error:
            error.message = f"{error.message.removesuffix('.')} ({url.host}:{url.port})."
            raise
        if 200 <= answer.status < 300:
            error = answer.check_framing()
            if error is None:
                return answer, number
            _complete(error, answer, number)
        else:
            try:
                start = await answer.read_start(self._limits)
            finally:
                answer.close()
            error = self._parse_error(answer.status, answer.headers, start)
            if error.retry_after_s is None:
                error.retry_after_s = parse_retry_after(answer.headers, time.time())
        answer.close()
        raise error

    def _join(self, path: str) -> "URL":
        from yarl import URL

        url = URL(self._url_of(path))
        self._urls[path] = url
        return url

    def _url_of(self, path: str) -> str:
        return join_url(self._base_url, self._api_prefix, path, default_prefix=self._default_prefix)

    async def _open_wire(self) -> "Wire":
        from .exchange import Wire

        if self._loop is not None and not self._loop.is_closed():
            raise invalid_config(
                "This HttpTransport is in use in another event loop.",
                "Call aclose() there first, or use one transport for each loop.",
            )
        await self.aclose()
        self._wire = wire = Wire(self._headers)
        self._loop = asyncio.get_running_loop()
        return wire

    def _take_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Check the headers of one request; keys among them stay known while this lives."""
        for secret in secrets_in_headers(headers):
            if secret not in self._request_secrets:
                self._request_secrets.append(secret)
        return check_headers(headers)


class HttpStream:
    """An open, successful streamed answer."""

    def __init__(self, answer: "Answer", attempts: int, limits: WireLimits) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self.attempts = attempts
        self._answer = answer
        self._limits = limits
        self._decoder: BodyDecoder | None = None
        self._unyielded_bytes = 0

    async def start(self) -> None:
        """Refuse an answer that cannot be a stream."""
        try:
            if "text/html" in self.headers.get("content-type", "").lower():
                page = await self._answer.read_start(self._limits)
                problem = check_body(self.headers, page, status=self.status)
                if problem is not None:
                    raise problem
            self._decoder = open_decoder(
                self.headers.get("content-encoding", ""),
                self._limits,
                max_bytes=self._limits.max_stream_bytes,
                code=Code.STREAM_TOO_LARGE,
            )
            self._answer.pause()
        except ProviderError as error:
            _complete(error, self._answer, self.attempts)
            raise

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await self._next_piece()
        except ProviderError as error:
            self._answer.close()
            _complete(error, self._answer, self.attempts)
            raise
        if not piece:
            raise StopAsyncIteration
        return piece

    async def _next_piece(self) -> bytes:
        decoder = self._decoder
        if decoder is None:
            return b""
        piece = decoder.step()
        while not piece:
            data = await self._answer.wait_raw()
            self._unyielded_bytes = 0
            if not data:
                self._decoder = None
                decoder.close()
                return b""
            decoder.feed(data)
            piece = decoder.step()
        self._unyielded_bytes += len(piece)
        if self._unyielded_bytes >= _YIELD_EVERY_BYTES:
            self._unyielded_bytes = 0
            await asyncio.sleep(0)
        return piece


def _complete(error: ProviderError, answer: "Answer", attempts: int) -> None:
    """Add to an error what is known about the answer it came from."""
    error.attempts = attempts
    if error.status is None:
        error.status = answer.status
    if not error.headers:
        error.headers = kept_headers(answer.headers)
    if error.request_id is None:
        error.request_id = error.headers.get("x-request-id") or error.headers.get("request-id")


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers that can be sent with a request; the refusal of others repeats no value."""
    for name, value in headers.items():
        usable = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not usable or name.lower() in _OWN_HEADERS:
            raise invalid_config(
                f"The header {excerpt(name, 60)!r} cannot be set.",
                "Headers that frame the message are set by the transport.",
            )
        is_text = isinstance(value, str) and value.isascii() and value.isprintable()
        if not is_text or value != value.strip():
            raise invalid_config(
                f"The value of the header {name!r} has characters that cannot be sent.",
                "Check for a line break or a space at its end.",
            )
    return dict(headers)
