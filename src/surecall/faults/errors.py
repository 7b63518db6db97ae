"""Errors as the providers of each wire format answer them: body and headers."""

from typing import Any, Final

from surecall.errors import Code, ProviderStatusError
from surecall.protocols import WireProtocol
from surecall.transport.admission import Refusal

from .answers import Answer, json_answer

__all__ = ["error_answer", "provider_headers", "refusal_answer"]

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
    body = dict(protocol.render_fault(error).body)
    if "code" in body["error"] and protocol.name != "gemini":
        body["error"]["code"] = kind or _OPENAI_CODES.get(status)
        if kind == "insufficient_quota":
            body["error"]["type"] = kind
    return body
