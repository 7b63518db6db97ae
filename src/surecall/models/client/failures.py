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
_OUT_OF_DATE: Final = frozenset({9, 10})  # of OpenSSL: not valid yet, expired
_UNTRUSTED: Final = frozenset({18, 19, 20, 21})  # signed by itself or by an unknown authority
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
    """Return the error for a TLS connection that was not made, and what can be done about it."""
    number = getattr(failure, "verify_code", 0)
    problem = getattr(failure, "verify_message", "") or describe_failure(failure)
    reason = str(getattr(failure, "reason", "") or "")
    if number in _UNTRUSTED:
        hint = (
            "If your company signs certificates itself, set ca_file (or SURECALL_CA_FILE, "
            "SSL_CERT_FILE) to the file of its authority."
        )
    elif number in _OUT_OF_DATE:
        hint = "Its owner has to renew it; if the date is wrong, set the clock of this machine."
    elif "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason:
        hint = "The server may ask for a client certificate: set client_cert_file."
    elif "WRONG_VERSION" in reason or "RECORD_LAYER" in reason:
        hint = "The server does not speak TLS at this port: check the scheme and the port."
    else:
        hint = "Check that the base URL uses https and that its certificate is valid."
    return _unconnected(
        Code.TLS_FAILURE,
        f"No secure connection to the provider ({excerpt(' '.join(problem.split()), 160)})",
        hint,
        retryable=False,
    )


def proxy_auth(address: str, *, sent: bool, schemes: str) -> ProviderConnectionError:
    """Return the error for a proxy that wants to know who asks."""
    problem = "refuses the user or the password" if sent else "demands a user and a password"
    offered = schemes.lower()
    hint = "Write them into the proxy's address: http://user:password@HOST:PORT."
    if offered and "basic" not in offered:
        hint = f"It offers {excerpt(schemes, 60)!r}; only basic authentication is supported."
    return _unconnected(Code.PROXY_AUTH, f"The proxy {address} {problem}", hint, retryable=False)


def proxy_refused(address: str, problem: str, *, retryable: bool) -> ProviderConnectionError:
    """Return the error for a proxy that opens no way to the provider."""
    return _unconnected(
        Code.PROXY_REFUSED,
        f"The proxy {address} {problem}",
        "Ask who runs the proxy, or list the provider's host in NO_PROXY.",
        retryable=retryable,
    )


def blame_proxy(error: ProviderError, address: str) -> ProviderError:
    """Return an error about the way to the proxy, which is not the provider's."""
    error.message = error.message.replace("provider", f"proxy {address}", 1)
    if error.code != Code.TLS_FAILURE:
        error.hint = "Check HTTPS_PROXY and HTTP_PROXY; NO_PROXY lists hosts to reach directly."
    return error


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
