"""Which HTTP status a server answers an error with."""

from collections.abc import Mapping
from typing import Final

from surecall.errors import (
    Code,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    SetupError,
    SurecallError,
)

__all__ = ["error_text", "status_of"]

_BY_CODE: Final[Mapping[str, int]] = {
    Code.AUTH: 401,
    Code.BAD_REQUEST: 400,
    Code.CONFLICT: 409,
    Code.FORBIDDEN: 403,
    Code.NOT_FOUND: 404,
    Code.NO_TOOL_USE_ENDPOINT: 404,
    Code.OVERLOADED: 529,
    Code.PAYMENT_REQUIRED: 402,
    Code.PROMPT_BLOCKED: 400,
    Code.QUOTA_EXCEEDED: 429,
    Code.RATE_LIMIT: 429,
    Code.REQUEST_TIMEOUT: 408,
    Code.REQUEST_TOO_LARGE: 413,
    Code.UNPROCESSABLE: 422,
}


def status_of(error: SurecallError) -> int:
    """Return the status for an error: the client's fault, the provider's, or ours."""
    if isinstance(error, SetupError):
        return 400
    if not isinstance(error, ProviderError):
        return 500
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    if error.status is not None and 400 <= error.status < 600:
        return error.status
    if isinstance(error, ProviderTimeoutError):
        return 504
    return 503 if isinstance(error, ProviderConnectionError) else 502


def error_text(error: SurecallError) -> str:
    """Return what a client is told: what was wrong, and what to do."""
    return f"{error.message} {error.hint}" if error.hint else error.message
