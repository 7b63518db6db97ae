"""Requests to a real provider, with deadlines, limits and few retries; streams are folded."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import asdict

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    invalid_config,
)
from surecall.base.records import WireReply, WireRequest
from surecall.base.redaction import Secret, excerpt, redact, secrets_in_headers
from surecall.models.client.failures import bad_framing
from surecall.models.client.network import (
    ClientLimits,
    Deadlines,
    Network,
    WireLimits,
    join_url,
    split_url,
)
from surecall.models.config import read_network
from surecall.text import encode
from surecall.wire import ChatCompletions, WireProtocol
from surecall.wire.errors import check_body, find_request_id, kept_headers

from .interface import Closing
from .retry import RetryPolicy, parse_retry_after, run_attempts

if TYPE_CHECKING:
    from surecall.models.client import Answer, Origin, RequestHead

ErrorParser = Callable[[int, Mapping[str, str], bytes], ProviderError]
"""Turns an HTTP error answer into an exception."""

_YIELD_EVERY_BYTES: Final = 1024 * 1024
_MAX_REQUEST_SECRETS: Final = 64
_MAX_KNOWN_HEADS: Final = 64
_NO_LIMIT: Final = 1_000_000
"""Of connections: how many there are is for the caller to decide."""
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


class HttpTransport(Closing):
    """Sends requests to one provider over HTTP.

    Use it as an async context manager or call `aclose()`. Connections belong to the event
    loop of the first request; after `aclose()` the next request opens new ones in its own.

    Args:
        base_url: Where the provider is, such as `https://api.example.com/v1`.
        api_key: Sent as the wire format defines it, by default as a bearer token.
        api_prefix: Path below the base URL; `None` means the default of the wire format, such as
            `/v1`, if the base URL has no path.
        headers: Sent with every request.
        deadlines: How long each part of an attempt may take.
        limits: How large an answer may be.
        retry: How often to retry a failed attempt, before any of its answer is used.
        protocol: The wire format that the provider speaks; chat completions by default.
        parse_error: Reads an error answer of this provider, instead of the wire format.
        network: Proxies and certificates; by default those that the environment names.
        key_note: The origin of the key, for the message of a 401 or 403.
    """

    heeds_cancellation: ClassVar = True

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
        network: Network | None = None,
        key_note: str = "",
    ) -> None:
        protocol = protocol or ChatCompletions()
        self._base_url = base_url
        self._api_prefix = api_prefix
        self._default_prefix = protocol.default_prefix
        self._shown_url = self._url_of("")
        self._deadlines = deadlines
        self._limits = limits
        self._retry = retry
        self._key_note = key_note
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
            "Content-Type": "application/json",
        }
        self._network = read_network() if network is None else network
        self._heads: dict[str, RequestHead] = {}
        self._client_limits = ClientLimits(**asdict(limits), max_connections=_NO_LIMIT)
        self._origin: Origin | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        key = "'***'" if self._has_key else "None"
        return f"HttpTransport({redact(self._shown_url)!r}, api_key={key})"

    async def aclose(self) -> None:
        """Give up all connections."""
        origin, self._origin, loop, self._loop = self._origin, None, self._loop, None
        if origin is not None and loop is asyncio.get_running_loop():
            await origin.close()

    async def send(self, request: WireRequest) -> WireReply:
        """Send the request and return the whole answer (status below 300)."""
        started = perf_counter()
        answer, attempts = await self._open(request)
        headers = dict(answer.headers)
        try:
            body = await answer.read()
            problem = check_body(headers, body, status=answer.status)
            if answer.has_surplus:
                problem = bad_framing("is longer than its declared length")
            if problem is not None:
                raise problem
        except ProviderError as error:
            _complete(error, answer, attempts)
            raise
        return WireReply(
            status=answer.status,
            headers=headers,
            body=body,
            elapsed_ms=(perf_counter() - started) * 1000,
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
            answer.abort()

    async def _open(self, request: WireRequest) -> tuple["Answer", int]:
        origin = self._origin
        if origin is None or self._loop is not asyncio.get_running_loop():
            origin = await self._open_origin()
        data = encode(request.body)
        head = self._heads.get(request.path) if not request.headers else None
        if head is None:
            head = self._make_head(origin, request)
        return await run_attempts(self._retry, partial(self._attempt, origin, head, data))

    async def _attempt(
        self, origin: "Origin", head: "RequestHead", data: bytes, number: int
    ) -> tuple["Answer", int]:
        try:
            answer = await origin.send_with(head, data, self._deadlines)
        except (ProviderConnectionError, ProviderTimeoutError) as error:
            error.message = f"{error.message.removesuffix('.')} ({origin.address})."
            raise
        number += answer.attempts - 1
        if 200 <= answer.status < 300:
            return answer, number
        start = await answer.read_start(self._limits.max_error_body_bytes)
        headers = dict(answer.headers)
        error = self._parse_error(answer.status, headers, start)
        if error.retry_after_s is None:
            error.retry_after_s = parse_retry_after(headers, time.time())
        error.attempts = number
        if self._key_note and error.code in {Code.AUTH, Code.FORBIDDEN}:
            error.hint = " ".join(filter(None, (error.hint, self._key_note)))
        raise error

    def _make_head(self, origin: "Origin", request: WireRequest) -> "RequestHead":
        """Render the head of a request; keys among its headers stay known while this lives."""
        headers, given = self._headers, request.headers
        if given:
            for secret in secrets_in_headers(given):
                if secret not in self._request_secrets:
                    self._request_secrets.append(secret)
            given = check_headers(given)
            named = {name.title() for name in given}
            headers = {name: value for name, value in headers.items() if name not in named} | given
        _, target = split_url(self._url_of(request.path))
        head = origin.prepare("POST", target, headers.items())
        if not given and len(self._heads) < _MAX_KNOWN_HEADS:
            self._heads[request.path] = head
        return head

    def _url_of(self, path: str) -> str:
        return join_url(self._base_url, self._api_prefix, path, default_prefix=self._default_prefix)

    async def _open_origin(self) -> "Origin":
        from surecall.models.client.pool import Origin

        if self._loop is not None and not self._loop.is_closed():
            raise invalid_config(
                "This HttpTransport is in use in another event loop.",
                "Call aclose() there first, or use one transport for each loop.",
            )
        url, _ = split_url(self._shown_url)
        self._origin = origin = Origin(url, limits=self._client_limits, network=self._network)
        self._loop = asyncio.get_running_loop()
        return origin


class HttpStream:
    """An open, successful streamed answer."""

    def __init__(self, answer: "Answer", attempts: int, limits: WireLimits) -> None:
        self.status = answer.status
        self.headers = dict(answer.headers)
        self.attempts = attempts
        self._answer: Answer | None = answer
        self._limits = limits
        self._unyielded_bytes = 0

    async def start(self) -> None:
        """Refuse an answer that cannot be a stream."""
        answer = self._answer
        if answer is None or "text/html" not in self.headers.get("content-type", "").lower():
            return
        page = await answer.read_start(self._limits.max_error_body_bytes)
        problem = check_body(self.headers, page, status=self.status)
        if problem is not None:
            _complete(problem, answer, self.attempts)
            raise problem

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        answer = self._answer
        if answer is None:
            raise StopAsyncIteration
        if self._unyielded_bytes >= _YIELD_EVERY_BYTES:
            self._unyielded_bytes = 0
            await asyncio.sleep(0)
        try:
            piece = await answer.next_piece()
            if not piece and answer.has_surplus:
                raise bad_framing("is longer than its declared length")
        except ProviderError as error:
            self._answer = None
            _complete(error, answer, self.attempts)
            raise
        if not piece:
            self._answer = None
            raise StopAsyncIteration
        self._unyielded_bytes += len(piece)
        return piece


def _complete(error: ProviderError, answer: "Answer", attempts: int) -> None:
    """Add to an error what is known about the answer it came from."""
    error.attempts = attempts
    if error.status is None:
        error.status = answer.status
    if not error.headers:
        error.headers = kept_headers(dict(answer.headers))
    if error.request_id is None:
        error.request_id = find_request_id(error.headers)


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
