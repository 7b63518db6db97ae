"""What goes wrong between here and a provider, as our errors; whoever carries the bytes.

The errors are raised without a cause: the exceptions of HTTP clients carry the request headers,
and with them the key.
"""

import errno
import socket
import ssl
from typing import Final

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderError,
    ProviderReplyError,
    ProviderTimeoutError,
)
from surecall.base.redaction import excerpt

_RESETS: Final = frozenset(
    {errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED, errno.ENOTCONN, errno.ESHUTDOWN}
)
_AWAITED: Final = {
    Code.CONNECT_TIMEOUT: "no connection to the provider",
    Code.FIRST_BYTE_TIMEOUT: "no answer from the provider",
    Code.IDLE_TIMEOUT: "nothing more from the provider",
    Code.TOTAL_TIMEOUT: "the provider's answer was not complete",
}


def map_failure(failure: BaseException | None) -> ProviderError:
    """Return our error for what the operating system or TLS raised; `None` is a closed connection.

    An error without a number of its own, such as one of an event loop about a transport that was
    closed, counts as a closed connection if it is a `RuntimeError`.
    """
    if isinstance(failure, socket.gaierror):
        return no_address()
    if isinstance(failure, ssl.SSLError | ssl.CertificateError):
        return insecure(failure)
    number = getattr(failure, "errno", None)
    if number == errno.ECONNREFUSED:
        return _unconnected(
            Code.CONNECTION_REFUSED,
            "The provider's host refuses connections",
            "Check that the server runs and that the port is right.",
        )
    if number == errno.ETIMEDOUT or isinstance(failure, TimeoutError):
        return ProviderTimeoutError(
            Code.CONNECT_TIMEOUT,
            "The operating system gave up reaching the provider.",
            retryable=True,
        )
    closed = ConnectionError | RuntimeError | None
    if number in _RESETS or (number is None and isinstance(failure, closed)):
        return _unconnected(
            Code.CONNECTION_RESET,
            "The provider closed the connection before its answer was complete",
            "Whether it did the work is not known.",
        )
    return _unconnected(
        Code.CONNECTION_FAILED,
        f"The connection to the provider failed ({describe_failure(failure)})",
        "Check the network and the base URL.",
    )


def no_address() -> ProviderConnectionError:
    """Return the error for a host name that does not lead anywhere."""
    return _unconnected(
        Code.DNS_FAILURE, "The provider's host name has no address", "Check the base URL."
    )


def insecure(failure: BaseException) -> ProviderConnectionError:
    """Return the error for a TLS connection that was not made."""
    return _unconnected(
        Code.TLS_FAILURE,
        f"No secure connection to the provider ({describe_failure(failure)})",
        "Check that the base URL uses https and that its certificate is valid.",
        retryable=False,
    )


def bad_framing(problem: str) -> ProviderReplyError:
    """Return the error for an answer whose end or headers cannot be trusted."""
    return ProviderReplyError(
        Code.UPSTREAM_BAD_FRAMING,
        f"The provider's answer {problem}.",
        hint="A proxy in between may be broken; the answer cannot be trusted to be whole.",
    )


def cut_body(status: int) -> ProviderReplyError:
    """Return the error for an answer that ended before its announced end."""
    return ProviderReplyError(
        Code.UPSTREAM_TRUNCATED_BODY,
        "The provider closed the connection before its answer was complete.",
        status=status,
        retryable=True,
    )


def deadline_passed(code: Code, within_s: float) -> ProviderTimeoutError:
    """Return the error for a deadline."""
    return ProviderTimeoutError(
        code,
        f"After {within_s:g} s, {_AWAITED[code]}.",
        hint="Raise the deadline in Deadlines if such waits are expected.",
        retryable=True,
    )


def describe_failure(failure: BaseException | None) -> str:
    """Return a short reason that cannot hold a header or a URL."""
    reason = failure.strerror if isinstance(failure, OSError) else getattr(failure, "message", None)
    words = (
        f"{type(failure).__name__}: {reason}" if isinstance(reason, str) else type(failure).__name__
    )
    return excerpt(" ".join(words.split()), 160)


def _unconnected(
    code: Code, problem: str, hint: str, *, retryable: bool = True
) -> ProviderConnectionError:
    return ProviderConnectionError(code, f"{problem}.", hint=hint, retryable=retryable)
