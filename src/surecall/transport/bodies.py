"""Bodies decoded piece by piece, never larger than allowed.

Only `identity` and `gzip` are read: other codings can burst in a single decoder step.
"""

import zlib
from typing import Final

from surecall.errors import Code, ProviderReplyError
from surecall.records import clip

from .limits import WireLimits

ACCEPT_ENCODING: Final = "gzip, identity"

_STEP_OUT_BYTES: Final = 256 * 1024
_STEP_IN_BYTES: Final = 16 * 1024
_GZIP_ONLY: Final = 31  # zlib: the largest window, gzip header and trailer required


class _PlainDecoder:
    """Passes bytes through and counts them."""

    __slots__ = ("_code", "_max_bytes", "_pending", "_total_bytes")

    def __init__(self, max_bytes: int, code: Code) -> None:
        self._max_bytes = max_bytes
        self._code = code
        self._pending = b""
        self._total_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take bytes off the wire."""
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


class _GzipDecoder:
    """Inflates one gzip member within the limits of size and ratio."""

    __slots__ = ("_code", "_fed_bytes", "_inflater", "_limits", "_max_bytes", "_pending", "_total")

    def __init__(self, max_bytes: int, code: Code, limits: WireLimits) -> None:
        self._inflater = zlib.decompressobj(_GZIP_ONLY)
        self._max_bytes = max_bytes
        self._code = code
        self._limits = limits
        self._pending = memoryview(b"")
        self._fed_bytes = 0
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take compressed bytes off the wire."""
        if data and self._inflater.eof:
            raise _bad_encoding("has bytes after the end of its gzip data")
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
            try:
                piece = inflater.decompress(taken, _STEP_OUT_BYTES)
            except zlib.error as error:
                raise _bad_encoding(f"is not valid gzip ({error})") from None
            if inflater.eof and (inflater.unused_data or self._pending):
                raise _bad_encoding("has bytes after the end of its gzip data")
            if piece:
                self._count(len(piece))
                return piece
        return b""

    def close(self) -> None:
        """Raise when the gzip data has not come to its end."""
        if self._fed_bytes and not self._inflater.eof:
            raise ProviderReplyError(
                Code.UPSTREAM_TRUNCATED_BODY,
                "The provider's compressed answer ended before its gzip data did.",
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


BodyDecoder = _PlainDecoder | _GzipDecoder
"""Turns bytes off the wire into bytes of the body, in bounded steps: `feed`, `step`, `close`."""


def open_decoder(encoding: str, limits: WireLimits, *, max_bytes: int, code: Code) -> BodyDecoder:
    """Return the decoder for a `Content-Encoding`; raise for one that is not read."""
    named = encoding.strip().lower()
    if named in {"", "identity"}:
        return _PlainDecoder(max_bytes, code)
    if named in {"gzip", "x-gzip"}:
        return _GzipDecoder(max_bytes, code, limits)
    raise _bad_encoding(f"uses the content encoding {clip(encoding, 40)!r}")


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
