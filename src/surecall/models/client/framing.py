"""The frame of a request, and that of its reply: bytes go in, the bytes of the body come out.

The head of a request is rendered so that nothing in it can end it early. No input or output happens
here. llhttp, which is strict, parses heads and chunks; a body with a length is counted. Whatever
could be read in two ways is refused; where a length comes with chunks, chunks count, and the
connection is not used again.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from surecall.base.errors import Code, ProviderError, RequestError
from surecall.base.redaction import excerpt

from .bodies import ACCEPT_ENCODING
from .failures import bad_framing, cut_body, map_failure
from .network import ClientLimits

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


_VERSION: Final = b"HTTP/1."
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length"
_TRANSFER: Final = b"transfer-encoding"
_ENCODING: Final = b"content-encoding"
_NOTED: Final = frozenset({_LENGTH, _TRANSFER, _ENCODING})
_MAX_LENGTH_DIGITS: Final = 18
_LINE_FEED: Final = 10

# What the body of a reply is delimited by.
_BY_LENGTH: Final = 1
_BY_CHUNKS: Final = 2
_BY_CLOSE: Final = 3


class ReplyFrame:
    """The framing of one reply, from its first byte to its last.

    `feed` takes what arrived and returns the part of it that belongs to the body, still in its
    content encoding. Once `is_complete`, nothing more is taken; `is_reusable` then says whether
    the connection is clean.
    """

    __slots__ = (
        "_body_kind",
        "_chunks",
        "_has_ended",
        "_head_bytes",
        "_left_bytes",
        "_limits",
        "_parser",
        "_partial",
        "_quiet_bytes",
        "_tail",
        "_without_body",
        "encoding",
        "has_head",
        "has_started",
        "has_surplus",
        "headers",
        "is_complete",
        "is_reusable",
        "length",
        "on_body",
        "status",
    )

    on_status = on_chunk_header = on_chunk_complete = None
    """Said outright: for a name that is missing the parser makes and drops an exception."""

    def __init__(self, limits: ClientLimits, is_head: bool = False) -> None:
        self._limits = limits
        self._without_body = is_head
        self._head_bytes = 0
        self._partial = bytearray()
        self._tail = b""
        self._parser: HttpResponseParser | None = None
        self._has_ended = False
        self._body_kind = 0
        self._left_bytes = 0
        self._chunks: list[bytes] = []
        self.on_body = self._chunks.append
        self.headers: list[tuple[bytes, bytes]] = []
        self.encoding = b""
        self.length = -1
        self.status = 0
        self.has_started = False
        self.has_head = False
        self.has_surplus = False
        self.is_complete = False
        self.is_reusable = False

    def feed(self, data: bytes) -> bytes:
        """Return the bytes of the body in what arrived."""
        if not self.has_head:
            self.has_started = True
            data = self._feed_head(data)
            if self.is_complete or not data:
                return b""
        kind = self._body_kind
        if kind == _BY_CHUNKS:
            return self._feed_chunks(data)
        if kind == _BY_LENGTH:
            left_bytes = self._left_bytes = self._left_bytes - len(data)
            if left_bytes > 0:
                return data
            self.is_complete = True
            if left_bytes < 0:
                self.is_reusable = False
                self.has_surplus = bool(data[left_bytes:].strip())
                return data[:left_bytes]
            return data
        return data

    def end(self) -> ProviderError | None:
        """Take the end of the connection; return the error if it came too early."""
        self.is_reusable = False
        if self.is_complete:
            return None
        if not self.has_head:
            return map_failure(None)
        if self._body_kind != _BY_CLOSE:
            return cut_body(self.status)
        self.is_complete = True
        return None

    def _feed_head(self, data: bytes) -> bytes:
        """Take the head, those of interim replies before it too; return what follows it."""
        partial = self._partial
        while True:
            if partial:  # an unfinished head is kept and parsed when its end is there
                searched = max(0, len(partial) - len(_HEAD_END) + 1)
                partial += data
                at = partial.find(_HEAD_END, searched)
                data = bytes(partial) if at >= 0 else b""
            else:
                at = data.find(_HEAD_END)
                if at < 0:
                    partial += data
            size = at + len(_HEAD_END) if at >= 0 else len(partial)
            if self._head_bytes + size > self._limits.max_header_bytes:
                raise bad_framing("has more bytes of headers than are read")
            if at < 0:
                if not _VERSION.startswith(partial[: len(_VERSION)]):
                    raise _not_http()
                return b""
            partial.clear()
            self._head_bytes += size
            self._parse_head(data[:size])
            data = data[size:]
            if self.is_complete:
                self.is_reusable = self.is_reusable and not data
            if self.has_head or not data:
                return data

    def _parse_head(self, head: bytes) -> None:
        if not head.startswith(_VERSION):
            raise _not_http()
        self._parser = parser = HttpResponseParser(self)
        parser.set_dangerous_leniencies(lenient_chunked_length=True)  # both are seen to here
        try:
            parser.feed_data(head)
        except HttpParserUpgrade:
            raise bad_framing("switches to another protocol") from None
        except HttpParserError as error:
            raise self._refuse(error) from None
        if self._body_kind != _BY_CHUNKS or self.is_complete:
            self._parser = None
        if not self.has_head:  # it was an interim reply
            self.headers, self.length, self.encoding = [], -1, b""
            self._body_kind, self._has_ended = 0, False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header; called by the parser, also for trailers."""
        if self.has_head:
            return  # a trailer cannot change what was delivered
        name = name.lower()
        self.headers.append((name, value))
        if name in _NOTED:
            self._note(name, value)

    def _note(self, name: bytes, value: bytes) -> None:
        if name == _ENCODING:
            self.encoding = b", ".join((self.encoding, value)) if self.encoding else value
            return
        if self._body_kind if name == _TRANSFER else self.length >= 0:
            raise bad_framing("says more than once where it ends")
        if name == _TRANSFER:
            if value.strip().lower() != b"chunked":
                shown = excerpt(value.decode("latin-1"), 40)
                raise bad_framing(f"uses the transfer encoding {shown!r}")
            self._body_kind = _BY_CHUNKS
            return
        digits = value.strip()
        if not digits.isdigit() or len(digits) > _MAX_LENGTH_DIGITS:
            raise bad_framing("has a length that is not a number")
        self.length = int(digits)

    def on_headers_complete(self) -> None:
        """Decide where the body ends; called by the parser."""
        parser = self._parser
        assert parser is not None
        status = self.status = parser.get_status_code()
        if status < 200:
            if status == 101 or status < 100:
                raise bad_framing(f"has the status {status}")
            return
        if len(self.headers) > self._limits.max_headers:
            raise bad_framing("has more headers than are read")
        self.has_head = True
        has_both = self._body_kind == _BY_CHUNKS and self.length >= 0
        if has_both:  # chunks win, and nothing else is read from this connection (RFC 9112, 6.3)
            self.length = -1
            self.headers = [field for field in self.headers if field[0] != _LENGTH]
        if self._without_body or status in {204, 304} or self.length == 0:
            self.is_complete = True
            self.encoding = b""  # of the body that is not there
        elif self._body_kind == _BY_CHUNKS:
            if parser.get_http_version() != "1.1":
                raise bad_framing("is in chunks, which HTTP/1.0 does not have")
            parser.set_dangerous_leniencies(lenient_chunked_length=False)  # none in trailers
            self._quiet_bytes = 0
        elif self.length > 0:
            self._left_bytes = self.length
            self._body_kind = _BY_LENGTH
        else:
            self._body_kind = _BY_CLOSE
            return
        self.is_reusable = parser.should_keep_alive() and not has_both

    def on_message_complete(self) -> None:
        """Note the end of a message; called by the parser, also for interim replies."""
        self._has_ended = self.has_head

    def on_message_begin(self) -> None:
        """Refuse a second message; called by the parser."""
        if self._has_ended:
            raise bad_framing("is followed by another")

    def _feed_chunks(self, data: bytes) -> bytes:
        parser, chunks = self._parser, self._chunks
        assert parser is not None
        try:
            parser.feed_data(data)
        except HttpParserError as error:
            if not self._has_ended:
                raise self._refuse(error) from None
            self.is_reusable = False
        tail = self._tail = data if len(data) >= 5 else self._tail[-5:] + data
        if self._has_ended:
            self.is_complete = True
            self._parser = None
            # The parser skips empty lines behind the end: they are noticed here.
            if tail[-4:] != _HEAD_END or tail[-5] == _LINE_FEED:
                self.is_reusable = False
        if not chunks:
            self._quiet_bytes += len(data)
            if self._quiet_bytes > self._limits.max_header_bytes and not self._has_ended:
                raise bad_framing("has more bytes between its chunks than are read")
            return b""
        self._quiet_bytes = 0
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        return body

    def drop(self) -> None:
        """Let go of the parser, which knows this object."""
        self._parser = None

    def _refuse(self, error: HttpParserError) -> ProviderError:
        self._parser = None
        ours = error.__context__
        if isinstance(ours, ProviderError):
            return ours
        return bad_framing(f"is not valid HTTP ({excerpt(str(error), 80)})")


def _not_http() -> ProviderError:
    return bad_framing("is not HTTP/1.1")
