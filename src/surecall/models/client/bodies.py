"""Bodies decoded piece by piece, never larger than allowed; every door to a provider uses this.

Only `identity`, `gzip` and `deflate` are read: other codings can burst in a single decoder step.
A plain body under the name of another coding is read as it is.
"""

import zlib
from functools import lru_cache
from typing import Final

from surecall.base.errors import Code, ProviderReplyError
from surecall.base.redaction import excerpt, open_log

from .network import WireLimits

ACCEPT_ENCODING: Final = "gzip, identity"
"""What is asked for; `deflate` is read where it comes unasked."""

_log = open_log("surecall.models")
_PLAIN_STARTS: Final = (b"{", b"[", b"data:", b"event:", b"id:", b"retry:", b":")
_DEFLATED: Final = frozenset({"deflate", "gzip", "x-gzip"})
_STEP_OUT_BYTES: Final = 256 * 1024
_STEP_IN_BYTES: Final = 16 * 1024
_GZIP: Final = 31  # zlib: the largest window, gzip header and trailer required
_ZLIB: Final = 15  # `deflate`, as it is meant: with the header and trailer of zlib
_RAW: Final = -15  # `deflate`, as some servers send it: without


class _PlainDecoder:
    """Passes bytes through and counts them.

    A `label` names an encoding that nobody asked for; the bytes must begin as JSON or events do.
    """

    __slots__ = ("_code", "_label", "_max_bytes", "_pending", "_total_bytes")

    def __init__(self, max_bytes: int, code: Code, label: str = "") -> None:
        self._max_bytes, self._code, self._label = max_bytes, code, label
        self._pending = b""
        self._total_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take bytes off the wire."""
        if self._label and (start := data.lstrip()):
            if not any(start.startswith(one) or one.startswith(start) for one in _PLAIN_STARTS):
                raise _bad_encoding(f"uses the content encoding {excerpt(self._label, 40)!r}")
            _log.warning("A provider labels plain answers %r; they are read.", self._label[:40])
            self._label = ""
        self._total_bytes += len(data)
        if self._total_bytes > self._max_bytes:
            raise too_large(self._code, self._max_bytes)
        self._pending = data

    def step(self) -> bytes:
        """Return what was fed."""
        data, self._pending = self._pending, b""
        return data

    def close(self) -> None:
        """Nothing can be missing."""


class _Inflater:
    """Inflates one gzip member, or one deflate stream, within the limits of size and ratio."""

    __slots__ = (
        "_code",
        "_fed_bytes",
        "_inflater",
        "_limits",
        "_max_bytes",
        "_name",
        "_pending",
        "_total",
    )

    def __init__(self, name: str, max_bytes: int, code: Code, limits: WireLimits) -> None:
        self._name = name
        self._inflater = zlib.decompressobj(_GZIP if name == "gzip" else _ZLIB)
        self._max_bytes = max_bytes
        self._code = code
        self._limits = limits
        self._pending: memoryview = memoryview(b"")
        self._fed_bytes = 0
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take compressed bytes off the wire."""
        if not data:
            return
        if self._inflater.eof:
            raise _bad_encoding(f"has bytes after the end of its {self._name} data")
        if not self._fed_bytes and self._name == "deflate" and data[0] & 0x0F != zlib.DEFLATED:
            self._inflater = zlib.decompressobj(_RAW)
        self._pending = memoryview(data)

    def step(self) -> bytes:
        """Return the next inflated piece, or nothing when more input is needed."""
        inflater = self._inflater
        while self._pending or inflater.unconsumed_tail:
            taken = inflater.unconsumed_tail
            if not taken:
                taken, self._pending = (
                    self._pending[:_STEP_IN_BYTES],
                    self._pending[_STEP_IN_BYTES:],
                )
                self._fed_bytes += len(taken)
                if self._fed_bytes > 2 * self._max_bytes:  # much of it, and nothing in it
                    raise too_large(self._code, self._max_bytes)
            try:
                piece = inflater.decompress(taken, _STEP_OUT_BYTES)
            except zlib.error as error:
                raise _bad_encoding(f"is not valid {self._name} ({error})") from None
            if inflater.eof and (inflater.unused_data or self._pending):
                raise _bad_encoding(f"has bytes after the end of its {self._name} data")
            if piece:
                self._count(len(piece))
                return piece
        return b""

    def close(self) -> None:
        """Raise when the compressed data has not come to its end."""
        if self._fed_bytes and not self._inflater.eof:
            raise ProviderReplyError(
                Code.UPSTREAM_TRUNCATED_BODY,
                f"The provider's compressed answer ended before its {self._name} data did.",
                retryable=True,
            )

    def _count(self, size: int) -> None:
        self._total += size
        if self._total > self._max_bytes:
            raise too_large(self._code, self._max_bytes)
        limits = self._limits
        if (
            self._total > limits.ratio_free_bytes
            and self._total > self._fed_bytes * limits.max_ratio
        ):
            raise ProviderReplyError(
                self._code,
                f"The provider's answer expands more than {limits.max_ratio} times "
                "when decompressed.",
                hint="An honest answer does not; if this one is, raise WireLimits.max_ratio.",
            )


BodyDecoder = _PlainDecoder | _Inflater
"""Turns bytes off the wire into bytes of the body, in bounded steps: `feed`, `step`, `close`."""


def open_decoder(encoding: str, limits: WireLimits, *, max_bytes: int, code: Code) -> BodyDecoder:
    """Return the decoder for a `Content-Encoding`; plain bytes may have any name."""
    named = encoding.strip().lower()
    if named in _DEFLATED:
        return _Inflater(named.removeprefix("x-"), max_bytes, code, limits)
    return _PlainDecoder(max_bytes, code, "" if named == "identity" else named)


@lru_cache(maxsize=64)
def limit_encodings(accepted: str) -> str:
    """Return an `Accept-Encoding` without the codings that are not read here."""
    items = [item.strip() for item in accepted.split(",")]
    known = [item for item in items if item.partition(";")[0].strip().lower() in _DEFLATED]
    return ", ".join(known) or "identity"


def too_large(code: Code, max_bytes: int) -> ProviderReplyError:
    """Return the error for an answer above its limit."""
    return ProviderReplyError(
        code,
        f"The provider's answer is larger than {max_bytes} bytes.",
        hint="If such answers are expected, raise the limit in WireLimits.",
    )


def _bad_encoding(problem: str) -> ProviderReplyError:
    return ProviderReplyError(
        Code.UPSTREAM_ENCODING,
        f"The provider's answer {problem}.",
        hint=f"Only what the request accepts is read: {ACCEPT_ENCODING}.",
    )
