"""Answers of the gateway itself: whole bodies, and errors in the format of a client."""

from typing import Any, Final

from surecall.base.errors import Code, ProviderStatusError, SurecallError
from surecall.serving.admission import Refusal
from surecall.text import encode
from surecall.wire import WireProtocol

RawHeaders = list[tuple[bytes, bytes]]
_NO_RETRY: Final = (b"x-should-retry", b"false")


async def respond(
    send: Any,
    status: int,
    body: bytes,
    *,
    content_type: str = "application/json",
    extra: RawHeaders | None = None,
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


def retry_headers(error: SurecallError) -> RawHeaders:
    """Say when a client may repeat what the gateway refused, or that repeating does not help."""
    waits_s = error.retry_after_s if isinstance(error, ProviderStatusError) else None
    if waits_s is None:
        return [_NO_RETRY]
    after = (b"retry-after", str(max(1, round(waits_s))).encode())
    return [after, _NO_RETRY] if error.code == Code.QUOTA_EXCEEDED else [after]


def end_retries(headers: RawHeaders) -> RawHeaders:
    """Say that a client need not try again: the gateway has."""
    kept = [item for item in headers if item[0] != b"x-should-retry"]
    return [*kept, _NO_RETRY]
