"""Answers on the wire: data, down to how the connection behaves."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ProviderStatusError
from surecall.serving.admission import Refusal
from surecall.text import encode
from surecall.wire import WireProtocol
from surecall.wire.errors import REQUEST_ID_HEADERS

from .replies import Occasion
from .toml_files import parse_fields

Ending = Literal["keep", "close", "reset", "stall"]
"""`keep` ends as the framing says, `close` ends the connection there (FIN), `reset` breaks it
(RST), `stall` sends nothing more and waits."""

Framing = Literal["length", "chunked", "close", "both"]
"""How the end of the body is marked; `both` names a length and chunks, which is ambiguous."""


class Pause(Struct, frozen=True):
    """Nothing is sent for a while."""

    seconds: float


class Flood(Struct, frozen=True):
    """The same bytes again and again: `times` times, or until the client leaves."""

    data: bytes
    times: int | None = None
    pause_s: float = 0.0


Piece = bytes | Pause | Flood


class Answer(Struct, frozen=True, kw_only=True):
    """One answer: its head, the pieces of its body, and how it ends."""

    status: int = 200
    headers: dict[str, str] = {}
    pieces: tuple[Piece, ...] = ()
    framing: Framing = "length"
    declared_bytes: int | None = None
    """The length the head claims, when it is not the true one."""
    before: Ending = "keep"
    """The event in place of the head; anything but `keep` leaves the client without one."""
    ending: Ending = "keep"

    @property
    def body(self) -> bytes:
        """The bytes of the body that come to an end by themselves."""
        return b"".join(
            piece if isinstance(piece, bytes) else piece.data * (piece.times or 0)
            for piece in self.pieces
            if not isinstance(piece, Pause)
        )


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Return a whole answer with a JSON body."""
    given = {"content-type": "application/json", **(headers or {})}
    return Answer(status=status, headers=given, pieces=(encode(value),))


def event_stream(events: Iterable[bytes]) -> Answer:
    """Return a streamed answer, one piece for each event."""
    headers = {"content-type": "text/event-stream", "cache-control": "no-cache"}
    return Answer(headers=headers, pieces=tuple(events), framing="chunked")


def with_body(answer: Answer, body: bytes, **headers: str) -> Answer:
    """Return the answer with another body; `_` in the name of a header stands for `-`."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return replace(answer, pieces=(body,), headers={**answer.headers, **given})


_OPENAI_CODES: Final = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
_OPENAI_RATES: Final = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "1s",
}
_ANTHROPIC_RATES: Final = {
    "anthropic-ratelimit-requests-limit": "60",
    "anthropic-ratelimit-requests-remaining": "0",
    "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:00Z",
}
_GOOGLE_TYPE: Final = "type.googleapis.com/google.rpc."


class _Manners(Struct, frozen=True):
    """How the answers of one provider differ from OpenAI's."""

    id_header: str = REQUEST_ID_HEADERS[0]
    rates: Mapping[str, str] = MappingProxyType(_OPENAI_RATES)
    states_id: bool = False
    """Whether the body of an error names the request."""
    has_details: bool = False
    """Whether an error says in details what others say in its code."""


_MANNERS: Final = {
    "gemini": _Manners(id_header="", rates={}, has_details=True),
    "messages": _Manners(id_header="request-id", rates=_ANTHROPIC_RATES, states_id=True),
}


def edit_json_body(answer: Answer, edit: Callable[[dict[str, Any]], Any]) -> Answer:
    """Return a whole reply with its body edited; any other answer as it is."""
    if answer.framing == "chunked" or answer.status >= 300:
        return answer
    fields = parse_fields(answer.body)
    return replace(answer, pieces=(encode(edit(fields)),)) if fields else answer


def provider_headers(occasion: Occasion) -> dict[str, str]:
    """Return the headers that a provider of this format sends with every answer."""
    name = _MANNERS.get(occasion.protocol.name, _Manners()).id_header
    return {name: occasion.request_id} if name else {}


def error_answer(
    occasion: Occasion,
    status: int,
    message: str,
    *,
    kind: str | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Answer:
    """Return an error answer.

    Args:
        occasion: The request, and the wire format whose shape the error has.
        status: The HTTP status.
        message: The error in words.
        kind: The `code` of OpenAI; without one, what is usual for the status.
        headers: Headers that this error has besides the usual ones.
    """
    protocol, manners = occasion.protocol, _MANNERS.get(occasion.protocol.name, _Manners())
    body = _error_body(protocol, status, message, kind=kind)
    usual = provider_headers(occasion)
    if manners.states_id:
        body["request_id"] = occasion.request_id
    if status == 429:
        usual |= manners.rates
    wait = headers.get("retry-after", "")
    if manners.has_details and wait.replace(".", "", 1).isdigit():
        detail = {"@type": f"{_GOOGLE_TYPE}RetryInfo", "retryDelay": f"{wait}s"}
        body["error"]["details"] = [detail]
    return json_answer(body, status, {**usual, **headers})


def refusal_answer(protocol: WireProtocol, refusal: Refusal) -> Answer:
    """Return the server's own refusal, with its code where the format has room for one."""
    body = _error_body(protocol, refusal.status, refusal.message, kind=refusal.code)
    manners = _MANNERS.get(protocol.name, _Manners())
    if manners.states_id:
        body["error"]["code"] = refusal.code
    elif manners.has_details:
        reason = {"@type": f"{_GOOGLE_TYPE}ErrorInfo", "reason": refusal.code, "domain": "surecall"}
        body["error"]["details"] = [reason]
    return json_answer(body, refusal.status)


def _error_body(
    protocol: WireProtocol, status: int, message: str, *, kind: str | None
) -> dict[str, Any]:
    error = ProviderStatusError(Code.HTTP_STATUS, message, status=status)
    body = dict(protocol.render_error(error).body)
    if "code" in body["error"] and not _MANNERS.get(protocol.name, _Manners()).has_details:
        body["error"]["code"] = kind or _OPENAI_CODES.get(status)
        if kind == "insufficient_quota":
            body["error"]["type"] = kind
    return body
