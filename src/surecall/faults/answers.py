"""What goes over the wire: an answer as data, down to how its connection behaves."""

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import Code, ProviderStatusError
from surecall.jsontext import encode, encode_text, render_event
from surecall.protocols import WireProtocol
from surecall.transport.admission import Refusal

from .inputs import parse_fields

Ending = Literal["keep", "close", "reset", "stall"]
"""`keep` ends as the framing says, `close` ends the connection there (FIN), `reset` breaks it
(RST), `stall` sends nothing more and waits."""

Framing = Literal["length", "chunked", "close", "both"]
"""How the end of the body is marked; `both` names a length and chunks, which is ambiguous."""

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"


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
    """What happens in place of the head; anything but `keep` leaves the client without one."""
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
    return Answer(
        status=status,
        headers={"content-type": _JSON, **(headers or {})},
        pieces=(encode(value),),
    )


def event_stream(events: list[Any] | list[bytes]) -> Answer:
    """Return a streamed answer, one piece for each event; values are encoded."""
    pieces = [event if isinstance(event, bytes) else _render(event) for event in events]
    headers = {"content-type": _EVENTS, "cache-control": "no-cache"}
    return Answer(headers=headers, pieces=tuple(pieces), framing="chunked")


def with_body(answer: Answer, body: bytes, **headers: str) -> Answer:
    """Return the answer with another body; `_` in the name of a header stands for `-`."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return replace(answer, pieces=(body,), headers={**answer.headers, **given})


def _render(event: Any) -> bytes:
    return render_event(event if isinstance(event, str) else encode_text(event))


_OPENAI_CODES: Final = {
    401: "invalid_api_key",
    404: "model_not_found",
    429: "rate_limit_exceeded",
}
_RESET: Final = "2026-01-01T00:00:00Z"
_RATE_HEADERS: Final[dict[str, dict[str, str]]] = {
    "chat_completions": {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1s",
    },
    "messages": {
        "anthropic-ratelimit-requests-limit": "60",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": _RESET,
    },
}
_RATE_HEADERS["responses"] = _RATE_HEADERS["chat_completions"]
_GOOGLE_TYPE: Final = "type.googleapis.com/google.rpc."


def edit_json_body(answer: Answer, edit: Callable[[dict[str, Any]], Any]) -> Answer:
    """Return a whole reply with its body edited; any other answer as it is."""
    if answer.framing == "chunked" or answer.status >= 300:
        return answer
    fields = parse_fields(answer.body)
    return replace(answer, pieces=(encode(edit(fields)),)) if fields else answer


def provider_headers(protocol: WireProtocol, request_id: str) -> dict[str, str]:
    """Return the headers that a provider of this format sends with every answer."""
    if protocol.name == "gemini":
        return {}
    name = "request-id" if protocol.name == "messages" else "x-request-id"
    return {name: request_id}


def error_answer(
    protocol: WireProtocol,
    status: int,
    message: str,
    *,
    kind: str | None = None,
    headers: dict[str, str] | None = None,
    request_id: str = "",
) -> Answer:
    """Return an error answer.

    Args:
        protocol: Whose shape it has.
        status: The HTTP status.
        message: What went wrong.
        kind: What OpenAI's `code` says; without one, what is usual for the status.
        headers: Headers that this error has besides the usual ones.
        request_id: The id under which the provider knows the request.
    """
    given = headers or {}
    body = _error_body(protocol, status, message, kind=kind)
    usual = provider_headers(protocol, request_id) if request_id else {}
    if request_id and protocol.name == "messages":
        body["request_id"] = request_id
    if status == 429:
        usual |= _RATE_HEADERS.get(protocol.name, {})
    wait = given.get("retry-after", "")
    if protocol.name == "gemini" and wait.replace(".", "", 1).isdigit():
        detail = {"@type": f"{_GOOGLE_TYPE}RetryInfo", "retryDelay": f"{wait}s"}
        body["error"]["details"] = [detail]
    return json_answer(body, status, {**usual, **given})


def refusal_answer(protocol: WireProtocol, refusal: Refusal) -> Answer:
    """Return the server's own refusal, with its code where the format has room for one."""
    body = _error_body(protocol, refusal.status, refusal.message, kind=refusal.code)
    if protocol.name == "messages":
        body["error"]["code"] = refusal.code
    elif protocol.name == "gemini":
        reason = {"@type": f"{_GOOGLE_TYPE}ErrorInfo", "reason": refusal.code, "domain": "surecall"}
        body["error"]["details"] = [reason]
    return json_answer(body, refusal.status)


def _error_body(
    protocol: WireProtocol, status: int, message: str, *, kind: str | None
) -> dict[str, Any]:
    error = ProviderStatusError(Code.HTTP_STATUS, message, status=status)
    body = dict(protocol.render_error(error).body)
    if "code" in body["error"] and protocol.name != "gemini":
        body["error"]["code"] = kind or _OPENAI_CODES.get(status)
        if kind == "insufficient_quota":
            body["error"]["type"] = kind
    return body
