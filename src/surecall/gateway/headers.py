"""Headers of requests and of answers: who may come in, what is passed on, and how errors look.

One walk over the headers finds everything. Only headers that are listed here go to an upstream,
and only those that are listed here come back.
"""

import re
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import (
    Code,
    ProviderError,
    ProviderStatusError,
    RequestError,
    SurecallError,
)
from surecall.base.redaction import Secret, excerpt, redact_name
from surecall.exchange.policy import (
    OUTCOME_HEADER,
    RECEIPTS_HEADER,
    REFUSED_CALLS_HEADER,
    STEPS,
    RefusedCalls,
    StepName,
    is_agent,
    read_refused_calls,
)
from surecall.models.transport.retry import parse_retry_after
from surecall.serving import RawHeaders
from surecall.serving.admission import LOOPBACK_NAMES, Refusal, check_admission, list_hosts
from surecall.text import encode
from surecall.wire import WireProtocol
from surecall.wire.errors import SHOULD_RETRY_HEADER

# The headers of surecall's own.
_WISHES_NAME: Final = b"x-surecall"
_PROMPT_NAME: Final = b"x-surecall-prompt"
CSRF: Final = b"x-surecall-csrf"
OUTCOME: Final = OUTCOME_HEADER.encode()
RECEIPTS: Final = RECEIPTS_HEADER.encode()
REQUEST_ID: Final = b"x-surecall-request-id"
UPSTREAM: Final = b"x-surecall-upstream"
ATTEMPTS: Final = b"x-surecall-attempts"
DEFECTS: Final = b"x-surecall-defects"

TRACEPARENT: Final = "traceparent"
_SHOULD_RETRY: Final = SHOULD_RETRY_HEADER.encode()
_JSON: Final = b"application/json"
_AUTH: Final = frozenset({b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key"})
_BEARER: Final = b"bearer "
_NOT_IN_PROMPTS: Final = re.compile(r"[^A-Za-z0-9._:/-]+")
_SUSPECT: Final = frozenset(
    {
        *(b"origin", b"sec-fetch-site", b"upgrade"),
        *(b"sec-websocket-key", b"sec-websocket-protocol", b"sec-websocket-version"),
    }
)
"""Headers that programs do not send: then everything is looked at closely."""
_PASSED: Final = frozenset(
    {
        *(b"accept", b"idempotency-key", TRACEPARENT.encode(), b"tracestate", b"user-agent"),
        b"x-client-request-id",
    }
)
_PASSED_OF_FORMAT: Final = frozenset(
    {
        *(b"anthropic-beta", b"anthropic-dangerous-direct-browser-access", b"anthropic-version"),
        *(b"http-referer", b"openai-beta", b"openai-organization", b"openai-project"),
        *(b"x-goog-api-client", b"x-goog-user-project", b"x-title"),
    }
)
"""Passed on where the upstream speaks the client's format."""
_RETURNED: Final = frozenset(
    {
        *(b"content-type", b"request-id", b"x-request-id"),
        *(b"openai-model", b"openai-organization", b"openai-processing-ms", b"openai-version"),
        *(b"retry-after", b"retry-after-ms", _SHOULD_RETRY),
    }
)
_RETURNED_STARTS: Final = (b"x-ratelimit-", b"anthropic-ratelimit-")

# What a header that matters is.
_HOST, _TYPE, _KEY, _PASS, _FORMAT, _LENGTH, _WISH, _ENCODING, _PROMPT, _REFUSED, _STRANGE = range(
    11
)
_WISHES: Final = {_WISH: b"", _REFUSED: b"refused-calls="}
"""What precedes the words of a header in those of `x-surecall`."""
_KINDS: Final[Mapping[bytes, int]] = {
    b"host": _HOST,
    b"content-type": _TYPE,
    b"content-length": _LENGTH,
    b"content-encoding": _ENCODING,
    _WISHES_NAME: _WISH,
    REFUSED_CALLS_HEADER.encode(): _REFUSED,
    _PROMPT_NAME: _PROMPT,
    **dict.fromkeys(_AUTH, _KEY),
    **dict.fromkeys(_PASSED, _PASS),
    **dict.fromkeys(_PASSED_OF_FORMAT, _FORMAT),
    **dict.fromkeys(_SUSPECT, _STRANGE),
}

PLACEHOLDERS: Final = frozenset(
    {
        *("", "-", "dummy", "ignored", "key", "no-key", "none", "not-needed"),
        *("sk-none", "surecall", "unused", "x"),
    }
)
"""What people write where a client insists on a key and they have none."""


class Wishes(Struct, frozen=True):
    """What the header `x-surecall` asks for."""

    off: bool = False
    observe: bool = False
    receipts: bool = False
    without: frozenset[StepName] = frozenset()
    refused_calls: RefusedCalls | None = None


_NO_WISHES: Final = Wishes()


class Head:
    """What the headers of one request say."""

    __slots__ = (
        "_is_agent",
        "auth",
        "encoding",
        "formal",
        "is_json",
        "length",
        "passed",
        "prompt",
        "refusal",
        "token",
        "wish",
        "written",
    )

    def __init__(
        self, headers: RawHeaders, hosts: frozenset[bytes], plain_hosts: frozenset[str]
    ) -> None:
        self.token = ""
        """The key that the client presents, in whatever header."""
        self.auth: list[tuple[str, str]] = []
        """The headers with that key, as they came."""
        self.passed: list[tuple[str, str]] = []
        self.formal: list[tuple[str, str]] = []
        """Headers that only the client's own format knows."""
        self.length = -1
        self.encoding = b""
        self.wish = b""
        self.prompt = ""
        """What the client calls its prompt."""
        self.is_json = False
        self.written: dict[tuple[Any, ...], Any] = {}
        """What was written of it for upstreams before, since the next request may have the same."""
        self._is_agent: bool | None = None
        has_host = is_strange = False
        kinds = _KINDS
        for name, value in headers:
            kind = kinds.get(name)
            if kind is None:
                continue
            if kind == _PASS:
                self.passed.append((name.decode("ascii"), value.decode("latin-1")))
            elif kind == _HOST:
                is_strange = is_strange or has_host or value not in hosts
                has_host = True
            elif kind == _TYPE:
                self.is_json = value == _JSON or value.partition(b";")[0].strip().lower() == _JSON
            elif kind == _KEY:
                self._take_key(name, value)
            elif kind == _LENGTH:
                self.length = int(value) if value.isdigit() and len(value) < 16 else -1
            elif kind == _FORMAT:
                self.formal.append((name.decode("ascii"), value.decode("latin-1")))
            elif kind == _STRANGE:
                is_strange = True
            else:
                self._take_rare(kind, value)
        self.refusal: Refusal | None = None
        if is_strange or not has_host:
            # Bodies are looked at by whoever takes them.
            plain = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
            self.refusal = check_admission("GET", plain, plain_hosts)

    def _take_rare(self, kind: int, value: bytes) -> None:
        if kind in _WISHES:
            value = _WISHES[kind] + value
            self.wish = value if not self.wish else b"%b,%b" % (self.wish, value)
        elif kind == _PROMPT:
            self.prompt = redact_name(_NOT_IN_PROMPTS.sub("_", value.decode("latin-1"))[:64])
        else:
            self.encoding = value

    def _take_key(self, name: bytes, value: bytes) -> None:
        self.auth.append((name.decode("ascii"), value.decode("latin-1")))
        if value[:7].lower() == _BEARER:
            value = value[7:]
        if not self.token:
            self.token = value.strip().decode("latin-1")

    @property
    def repeats_422(self) -> bool:
        """Whether LangChain JS asks, which sends a request with such an answer six times more."""
        return any(item[0] == "user-agent" and "langchainjs" in item[1] for item in self.passed)

    @property
    def is_agent(self) -> bool:
        """Whether a known agent program asks."""
        if self._is_agent is None:
            self._is_agent = is_agent([*self.passed, *self.formal])
        return self._is_agent

    @property
    def key(self) -> str:
        """The key of the client, empty when it has none or only a stand-in for one."""
        return "" if self.token.lower() in PLACEHOLDERS else self.token

    def wishes(self) -> Wishes:
        """Return what the client asks of the gateway itself.

        Raises:
            RequestError: A word that is not known.
        """
        return _read_wishes(self.wish) if self.wish else _NO_WISHES


@lru_cache(maxsize=64)
def _read_wishes(text: bytes) -> Wishes:
    off = observe = receipts = False
    refused_calls = None
    without: set[StepName] = set()
    steps: dict[str, StepName] = {f"no-{step}": step for step in STEPS}
    for raw in text.decode("latin-1").split(","):
        word = raw.strip().lower()
        if word == "off":
            off = True
        elif word == "observe":
            observe = True
        elif word == "receipts":
            receipts = True
        elif word in steps:
            without.add(steps[word])
        elif word.startswith("refused-calls="):
            refused_calls = read_refused_calls(word.partition("=")[2])
        elif word:
            raise RequestError(
                Code.INVALID_REQUEST,
                f"The header {_WISHES_NAME.decode()} has the word {excerpt(word, 40)!r}.",
                hint=f"It may have: off, observe, receipts, {', '.join(steps)}.",
            )
    return Wishes(off, observe, receipts, frozenset(without), refused_calls)


class Hosts:
    """Which values of `Host` are the gateway's own.

    Args:
        names: Names and addresses it is known by, besides those of this machine.
        allowed: Whole values that are allowed as they are, such as `llm.lan:8787`.
    """

    def __init__(self, names: Iterable[str], allowed: Iterable[str]) -> None:
        self._names = tuple(names)
        self._allowed = frozenset(item.lower() for item in allowed)
        self._known: dict[Any, tuple[frozenset[bytes], frozenset[str]]] = {}

    def at(
        self, address: "tuple[str, int | None] | None"
    ) -> tuple[frozenset[bytes], frozenset[str]]:
        """Return the values for the address that a client connected to."""
        found = self._known.get(address)
        if found is None:
            host, port = address if address is not None else ("", 0)
            plain = list_hosts(port or 0, (*LOOPBACK_NAMES, *self._names, host)) | self._allowed
            found = (frozenset(item.encode("latin-1") for item in plain), plain)
            if len(self._known) < 64:
                self._known[address] = found
        return found


def returned_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an upstream that go to the client."""
    return [
        item for item in headers if item[0] in _RETURNED or item[0].startswith(_RETURNED_STARTS)
    ]


def returned_plain(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an upstream that go to the client, but for the type of the body."""
    return [
        item
        for item in returned_headers(
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        )
        if item[0] != b"content-type"
    ]


@lru_cache(maxsize=256)
def hide_key(token: str) -> Secret | None:
    """Make a client's key known as a secret while it is in use, and some time after."""
    return Secret(token) if token else None


class ClientLeft(Exception):  # noqa: N818 - a signal
    """The client left before its request was complete."""


async def read_body(receive: Any, head: Head, limit: int) -> bytes:
    """Return the body of a request.

    Raises:
        ProviderStatusError: `REQUEST_TOO_LARGE`.
        ClientLeft: It never came in full.
    """
    if head.length > limit:
        raise too_large(limit)
    pieces: list[bytes] = []
    size, has_more = 0, True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        pieces.append(message["body"])
        size += len(message["body"])
        if size > limit:
            raise too_large(limit)
        has_more = message["more_body"]
    return b"".join(pieces)


def too_large(limit: int) -> ProviderStatusError:
    """Return the refusal of a body that has more bytes than are taken."""
    return ProviderStatusError(
        Code.REQUEST_TOO_LARGE,
        f"The body has more than {limit} bytes.",
        hint="Send less, or raise limits.max_request_bytes.",
        status=413,
    )


AnswerHeaders = list[tuple[bytes, bytes]]
_NO_RETRY: Final = (_SHOULD_RETRY, b"false")
_MAX_CLIENT_WAIT_S: Final = 60.0
"""The longest wait of official clients; asked for more, some do not wait at all."""


async def respond(
    send: Any,
    status: int,
    body: bytes,
    *,
    content_type: str = "application/json",
    extra: AnswerHeaders | None = None,
    cache: bytes = b"no-store",
) -> None:
    """Send a whole answer."""
    headers = [
        (b"content-type", content_type.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", cache),
        (b"x-content-type-options", b"nosniff"),
        *(extra or ()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def status_of_refusal(refusal: Refusal) -> ProviderStatusError:
    """Return the error that a refused request is answered with."""
    return ProviderStatusError(refusal.code, refusal.message, status=refusal.status)


def render_error(protocol: WireProtocol, error: SurecallError) -> tuple[int, bytes]:
    """Return the status and the body of an error in the format of a client."""
    wire = protocol.render_error(error)
    status = wire.status
    if isinstance(error, ProviderStatusError) and error.status in {403, 413, 415, 429, 503}:
        status = error.status
    return status, encode(wire.body)


def may_repeat(error: SurecallError, headers: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Tell whether a client may repeat a request that failed, as it would without a gateway.

    Not where the upstream answered 200 with something that is no reply: for that the gateway has
    asked again, and clients alone would not.
    """
    if not isinstance(error, ProviderError) or not error.retryable:
        return False
    is_whole = error.code != Code.UPSTREAM_TRUNCATED_BODY
    is_answer = is_whole and error.status is not None and error.status < 400
    waits_s = error.retry_after_s or parse_retry_after(headers, time.time()) or 0.0
    return waits_s <= _MAX_CLIENT_WAIT_S and not is_answer and error.code != Code.QUOTA_EXCEEDED


def retry_headers(error: SurecallError) -> AnswerHeaders:
    """Say when a client may repeat what has failed, or that repeating does not help."""
    waits_s = error.retry_after_s if isinstance(error, ProviderError) else None
    after = [] if waits_s is None else [(b"retry-after", str(max(1, round(waits_s))).encode())]
    return after if may_repeat(error) else [*after, _NO_RETRY]


def end_retries(headers: AnswerHeaders) -> AnswerHeaders:
    """Say that another try does not help."""
    kept = [item for item in headers if item[0] != _SHOULD_RETRY]
    return [*kept, _NO_RETRY]
