"""What a provider's error answer means: which code, and whether trying again can help.

Errors take secrets out of what they are given; what is cut here is redacted before it is cut.
"""

from collections.abc import Mapping
from html import unescape
from typing import Any, Final
from urllib.parse import urlsplit

from surecall.base.errors import (
    Code,
    JSONTextError,
    ProviderError,
    ProviderReplyError,
    ProviderStatusError,
)
from surecall.base.json_values import as_fields, as_list
from surecall.base.redaction import excerpt, redact_start
from surecall.text import decode

_MAX_MESSAGE_CHARS: Final = 400
_MAX_BODY_CHARS: Final = 2000
_MAX_KEPT_BYTES: Final = 500_000
"""Less than a transport reads of an error, so that what was cut off can be told from a whole."""
_MAX_TITLE_CHARS: Final = 120
_MAX_PAGE_BYTES: Final = 64 * 1024

REQUEST_ID_HEADERS: Final = ("x-request-id", "request-id")
"""Headers in which a provider says under which id it knows a request."""
SHOULD_RETRY_HEADER: Final = "x-should-retry"
WAIT_MS_HEADERS: Final = ("retry-after-ms", "x-ms-retry-after-ms")
"""Headers that say in milliseconds how long to wait."""
_KEPT_HEADERS: Final = frozenset(
    {"content-type", "retry-after", *REQUEST_ID_HEADERS, *WAIT_MS_HEADERS, SHOULD_RETRY_HEADER}
)

CODES_BY_STATUS: Final[Mapping[int, Code]] = {
    400: Code.BAD_REQUEST,
    401: Code.AUTH,
    402: Code.PAYMENT_REQUIRED,
    403: Code.FORBIDDEN,
    404: Code.NOT_FOUND,
    408: Code.REQUEST_TIMEOUT,
    409: Code.CONFLICT,
    413: Code.REQUEST_TOO_LARGE,
    422: Code.UNPROCESSABLE,
    429: Code.RATE_LIMIT,
    529: Code.OVERLOADED,
}

# What providers write as `error.code` or `error.type` when the status does not tell.
_BY_KIND: Final[Mapping[str, Code]] = {
    "authentication_error": Code.AUTH,
    "billing_hard_limit_reached": Code.QUOTA_EXCEEDED,
    "billing_not_active": Code.QUOTA_EXCEEDED,
    "context_length_exceeded": Code.BAD_REQUEST,
    "insufficient_quota": Code.QUOTA_EXCEEDED,
    "invalid_api_key": Code.AUTH,
    "invalid_request_error": Code.BAD_REQUEST,
    "model_not_found": Code.NOT_FOUND,
    "not_found_error": Code.NOT_FOUND,
    "overloaded_error": Code.OVERLOADED,
    "permission_error": Code.FORBIDDEN,
    "rate_limit_error": Code.RATE_LIMIT,
    "rate_limit_exceeded": Code.RATE_LIMIT,
    "request_too_large": Code.REQUEST_TOO_LARGE,
}
_TRANSIENT_KINDS: Final = frozenset(
    {"api_error", "internal_error", "internal_server_error", "server_error", "timeout_error"}
)

# Whole phrases: a plain "billing" also occurs in links inside ordinary rate-limit messages.
_QUOTA_PHRASES: Final = (
    "billing details",
    "billing hard limit",
    "billing limit",
    "budget has been exceeded",
    "credit balance",
    "exceeded your current quota",
    "insufficient balance",
    "insufficient credit",
    "insufficient funds",
    "insufficient_quota",
    "more credits",
    "out of credits",
    "quota exceeded for your plan",
    "spend limit",
    "spending limit",
    "usage limit",
)
_NO_TOOL_USE_PHRASE: Final = "no endpoints found that support tool use"

_RETRYABLE: Final = frozenset(
    {
        Code.CONFLICT,
        Code.OVERLOADED,
        Code.RATE_LIMIT,
        Code.REQUEST_TIMEOUT,
        Code.UPSTREAM_5XX,
    }
)
_NEVER_RETRYABLE: Final = frozenset({Code.PAYMENT_REQUIRED, Code.QUOTA_EXCEEDED})

_HINTS: Final[Mapping[Code, str]] = {
    Code.AUTH: "Check the API key and that it belongs to this base URL.",
    Code.FORBIDDEN: "The key is known but may not do this; check its rights and the model.",
    Code.NOT_FOUND: "Check the model name, the base URL and the API prefix.",
    Code.NO_TOOL_USE_ENDPOINT: "No provider of this model supports tools; pick another model.",
    Code.OVERLOADED: "Try again later, or send less at once.",
    Code.PAYMENT_REQUIRED: "Add credit at the provider; trying again does not help.",
    Code.QUOTA_EXCEEDED: "Raise the quota or add credit; trying again does not help.",
    Code.REQUEST_TOO_LARGE: "Send fewer or shorter messages.",
    Code.UPSTREAM_HTML: "A proxy or web site answered; check the base URL and the API prefix.",
    Code.UPSTREAM_REDIRECT: "Redirects are not followed; use the final URL as the base URL.",
}


def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Return the error an answer with a status outside 200-299 stands for.

    Args:
        status: The HTTP status.
        headers: Response headers, names in lower case.
        body: The start of the body, decompressed.
    """
    if 300 <= status < 400:
        target = f"a redirect to {_origin(headers.get('location', ''))}, which was not followed."
        return _status_error(Code.UPSTREAM_REDIRECT, status, headers, target)
    if _is_page(headers, body):
        return _page_error(status, headers, body)
    try:
        value = decode(body, surrogates="replace")
    except JSONTextError:
        value = body.decode("utf-8", "replace").strip()
    error = parse_error_object(value, status, headers)
    error.body = _start_of(body)
    return error


def _start_of(body: bytes) -> str:
    """Return as much of a body as may hold a reply that is rescued from it, and say what is cut."""
    kept = body[:_MAX_KEPT_BYTES]
    return excerpt(body, len(kept.decode("utf-8", "replace")))


def check_body(
    headers: Mapping[str, str], body: bytes, *, status: int = 200
) -> ProviderError | None:
    """Return what is wrong with the body of a successful answer before it is read as JSON."""
    if body[:1] == b"{" and "html" not in headers.get("content-type", "").lower():
        return None
    if not body or (len(body) <= _MAX_PAGE_BYTES and not body.strip()):
        return ProviderReplyError(
            Code.UPSTREAM_EMPTY,
            f"The provider answered {status} with an empty body.",
            status=status,
            retryable=True,
            request_id=find_request_id(headers),
            headers=kept_headers(headers),
        )
    return _page_error(status, headers, body) if _is_page(headers, body) else None


def parse_error_object(
    value: Any,
    status: int,
    headers: Mapping[str, str],
    *,
    fallback: Code = Code.UPSTREAM_ERROR_BODY,
) -> ProviderStatusError:
    """Return the error that an error body, or an error event in a stream, stands for.

    Args:
        value: The decoded JSON, or the text when it was not JSON.
        status: The HTTP status it came with; may be 200.
        headers: Response headers, names in lower case.
        fallback: The code when the status is a success and the body names no known kind.
    """
    error = _error_part(value)
    text = _message(value, error)
    kinds = _kinds(value, error)
    code = _classify(status, kinds, text, fallback)
    shown = excerpt(text, _MAX_MESSAGE_CHARS) if text else ""
    return _status_error(
        code,
        status,
        headers,
        shown,
        retryable=code in _RETRYABLE
        or (code == fallback and not _TRANSIENT_KINDS.isdisjoint(kinds)),
        provider_code=kinds[0] if kinds else None,
        provider_message=shown or None,
        request_id=find_request_id(headers, value),
    )


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the response headers that may be kept in an error."""
    return {
        name: value
        for name, value in headers.items()
        if name in _KEPT_HEADERS or name.startswith("x-ratelimit-")
    }


def _classify(status: int, kinds: tuple[str, ...], text: str, fallback: Code) -> Code:
    stated = _status_among(kinds) if 200 <= status < 300 else status
    lowered = text[:_MAX_BODY_CHARS].lower()
    if _NO_TOOL_USE_PHRASE in lowered:
        return Code.NO_TOOL_USE_ENDPOINT
    named = next((_BY_KIND[kind] for kind in kinds if kind in _BY_KIND), None)
    if named is Code.QUOTA_EXCEEDED:
        return named
    if stated in {400, 403, 429, None} and any(phrase in lowered for phrase in _QUOTA_PHRASES):
        return Code.QUOTA_EXCEEDED
    if stated is None:
        return named or fallback
    if stated in CODES_BY_STATUS:
        return CODES_BY_STATUS[stated]
    return Code.UPSTREAM_5XX if 500 <= stated < 600 else Code.HTTP_STATUS


def _status_error(
    code: Code,
    status: int,
    headers: Mapping[str, str],
    text: str,
    *,
    retryable: bool = False,
    provider_code: str | None = None,
    provider_message: str | None = None,
    request_id: str | None = None,
) -> ProviderStatusError:
    stop = "" if text.endswith((".", "!", "?", "…")) else "."
    said = f": {text}{stop}" if text else " without saying why."
    return ProviderStatusError(
        code,
        f"The provider answered {status}{said}",
        hint=_HINTS.get(code),
        status=status,
        retryable=_should_retry(headers, code, retryable=retryable),
        provider_code=provider_code,
        provider_message=provider_message,
        request_id=request_id or find_request_id(headers),
        headers=kept_headers(headers),
    )


def _page_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderReplyError:
    title = _title(body)
    stated = f"titled {title!r}" if title else "without a title"
    code = CODES_BY_STATUS.get(status, Code.UPSTREAM_5XX if status >= 500 else Code.HTTP_STATUS)
    return ProviderReplyError(
        Code.UPSTREAM_HTML,
        f"The provider answered {status} with an HTML page {stated}.",
        hint=_HINTS[Code.UPSTREAM_HTML],
        status=status,
        retryable=_should_retry(headers, code, retryable=code in _RETRYABLE),
        provider_message=title or None,
        request_id=find_request_id(headers),
        headers=kept_headers(headers),
    )


def _origin(location: str) -> str:
    try:
        parts = urlsplit(location)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an unreadable place"
    host = parts.hostname
    return f"{parts.scheme}://{host}{port}" if parts.scheme and host else "another path"


def _should_retry(headers: Mapping[str, str], code: Code, *, retryable: bool) -> bool:
    wish = headers.get(SHOULD_RETRY_HEADER, "").strip().lower()
    if wish == "false" or code in _NEVER_RETRYABLE:
        return False
    return True if wish == "true" else retryable


def _error_part(value: Any) -> Any:
    """Return the part of an error body that describes the error."""
    for _ in range(3):
        fields = as_fields(value)
        nested = fields.get("error")
        inner = _first(value) or as_fields(nested) or _first(nested) or _first(fields.get("errors"))
        if not inner:
            break
        value = inner
    return value


def _message(value: Any, error: Any) -> str:
    text = _message_in(error) or _message_in(value)
    metadata = as_fields(as_fields(error).get("metadata"))
    name, raw = _text(metadata.get("provider_name")), _text(metadata.get("raw"))
    extra = f"{name}: {raw}" if name and raw else name or raw
    return f"{text} ({extra})" if extra and text else text or extra


def _message_in(value: Any) -> str:
    fields = as_fields(value)
    for name in ("message", "error", "detail", "title", "msg"):
        if text := _text(fields.get(name)):
            return text
    first = as_fields(_first(fields.get("detail")))
    return _text(value) or _text(first.get("msg")) or _text(first.get("message"))


def _text(value: Any) -> str:
    return redact_start(value, _MAX_BODY_CHARS).strip() if isinstance(value, str) else ""


def _first(value: Any) -> Any:
    return next(iter(as_list(value)), None)


def _kinds(value: Any, error: Any) -> tuple[str, ...]:
    """Return the codes and types an error names, as text, most specific first."""
    found: list[str] = []
    for part in (as_fields(error), as_fields(value)):
        for name in ("code", "type", "status"):
            kind = part.get(name)
            if isinstance(kind, int) and not isinstance(kind, bool) and abs(kind) < 10**9:
                found.append(str(kind))
            elif isinstance(kind, str) and kind not in {"", "error"}:
                found.append(excerpt(kind, 80))
    return tuple(dict.fromkeys(found))


def _status_among(kinds: tuple[str, ...]) -> int | None:
    numbers = (int(kind) for kind in kinds if len(kind) == 3 and kind.isascii() and kind.isdigit())
    return next((number for number in numbers if 400 <= number < 600), None)


def find_request_id(headers: Mapping[str, str], value: Any = None) -> str | None:
    """Return the id under which the provider knows a request, from a header or the body."""
    found = next((headers[name] for name in REQUEST_ID_HEADERS if headers.get(name)), None)
    found = found or _text(as_fields(value).get("request_id"))
    return excerpt(found, 200) if found else None


def _is_page(headers: Mapping[str, str], body: bytes) -> bool:
    content_type = headers.get("content-type", "").lower()
    if "text/html" in content_type or "application/xhtml" in content_type:
        return True
    return body[:256].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<"


def _title(body: bytes) -> str:
    body = body[:_MAX_PAGE_BYTES]
    page = body.decode("utf-8", "replace")
    lowered = page.lower()
    if len(lowered) != len(page):  # a few code points change length when lowered
        lowered = page
    start = lowered.find("<title")
    start = lowered.find(">", start) + 1 if start >= 0 else 0
    end = lowered.find("</title", start)
    if not start or end < 0:
        return ""
    words = unescape(page[start:end]).split()
    title = "".join(char for char in " ".join(words) if char.isprintable())
    return excerpt(title, _MAX_TITLE_CHARS)
