"""What is sent: the head of a request, rendered so that nothing in it can end it early."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from surecall.base.errors import Code, RequestError
from surecall.base.redaction import excerpt

from .bodies import ACCEPT_ENCODING

_NAME_MARKS: Final = "!#$%&'*+-.^_`|~"
_FRAMING: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD"})
_MAX_KNOWN: Final = 512

_known_names: set[str] = set()
"""Names that were checked before; a bounded memory, since clients may send anything."""


class RequestHead(NamedTuple):
    """The head of a request, but for the length of its body: it can be sent with many bodies."""

    method: str
    start: bytes

    def end(self, size: int) -> bytes:
        """Return all of it, for a body of this size."""
        if size or self.method not in _WITHOUT_BODY:
            return b"%bContent-Length: %d\r\n\r\n" % (self.start, size)
        return self.start + b"\r\n"


def render_head(
    method: str, path: str, host: str, headers: Iterable[tuple[str, str]], *, before: str = ""
) -> RequestHead:
    """Return the request line and the headers, ready to be sent.

    Args:
        method: The method.
        path: The path, with its query.
        host: The value of `Host`.
        headers: All other headers.
        before: What a proxy is told before the path.

    Raises:
        RequestError: Something would break the framing of the request or change who it is for.
    """
    if method not in _METHODS:
        raise _refuse(f"The method {excerpt(method, 20)!r} is not sent.")
    if path[:1] != "/" or not path.isascii() or not path.isprintable() or " " in path:
        raise _refuse("The path has characters that cannot be sent.")
    lines = [
        f"{method} {before}{path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: {ACCEPT_ENCODING}"
    ]
    known = _known_names
    for name, value in headers:
        if name not in known:
            _check_name(name)
        if not (value.isascii() and value.isprintable()):
            raise _refuse(f"The value of the header {name!r} has characters that cannot be sent.")
        lines.append(f"{name}: {value}")
    lines.append("")
    return RequestHead(method, "\r\n".join(lines).encode("ascii"))


def _check_name(name: str) -> None:
    plain = name.isascii() and all(char.isalnum() or char in _NAME_MARKS for char in name)
    if not plain or not name:
        raise _refuse(f"The header {excerpt(name, 60)!r} has characters that cannot be sent.")
    if name.lower() in _FRAMING:
        raise _refuse(f"The header {name!r} is set by the client itself.")
    if len(_known_names) < _MAX_KNOWN and len(name) <= 64:
        _known_names.add(name)


def _refuse(problem: str) -> RequestError:
    return RequestError(Code.INVALID_REQUEST, problem, hint="Nothing was sent.")
