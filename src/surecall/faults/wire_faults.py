"""Faults of connections and statuses."""

import zlib
from collections.abc import Callable
from gzip import compress
from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import Code

from .answers import Answer, Ending, Flood, Pause, with_body
from .drafts import Occasion
from .errors import error_answer
from .records import Fault

__all__ = ["TRANSPORT_FAULTS"]

WireEdit = Callable[[Answer, Occasion], Answer]

_BLOCK_BYTES: Final = 1024 * 1024
_BOMB_BLOCKS: Final = 64
_RATES: Final = "providers that limit rates; the wait is written in many ways"


def _status(status: int, message: str, *, kind: str | None = None, **headers: str) -> WireEdit:
    given = {name.replace("_", "-"): value for name, value in headers.items()}

    def apply(_: Answer, occasion: Occasion) -> Answer:
        return error_answer(
            occasion.protocol,
            status,
            message,
            kind=kind,
            headers=given,
            request_id=occasion.request_id,
        )

    return apply


def _instead(ending: Ending) -> WireEdit:
    return lambda answer, _: replace(answer, before=ending)


def _half(ending: Ending) -> WireEdit:
    """Send half of the body and end like this; a length still claims all of it."""

    def apply(answer: Answer, _: Occasion) -> Answer:
        body = answer.body
        half = body[: max(1, len(body) // 2)]
        declared = len(body) if answer.framing == "length" else None
        return replace(answer, pieces=(half,), declared_bytes=declared, ending=ending)

    return apply


def _short_length(answer: Answer, _: Occasion) -> Answer:
    return replace(answer, declared_bytes=len(answer.body) // 2, ending="close")


def _both_framings(answer: Answer, _: Occasion) -> Answer:
    return replace(answer, framing="both")


def _closed_framing(answer: Answer, _: Occasion) -> Answer:
    return replace(answer, framing="close", ending="close")


def _gzipped(answer: Answer, _: Occasion) -> Answer:
    return with_body(answer, compress(answer.body, mtime=0), content_encoding="gzip")


def _gzip_cut(answer: Answer, _: Occasion) -> Answer:
    packed = compress(answer.body, mtime=0)
    return with_body(answer, packed[: len(packed) // 2], content_encoding="gzip")


def _says_encoding(name: str) -> WireEdit:
    return lambda answer, _: with_body(answer, answer.body, content_encoding=name)


def _bomb(answer: Answer, _: Occasion) -> Answer:
    """Send gzip data that expands a thousandfold: one block, packed once and repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(b" " * _BLOCK_BYTES) + packer.flush(zlib.Z_FULL_FLUSH)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    bombed = with_body(answer, head, content_encoding="gzip")
    return replace(bombed, pieces=(head, Flood(block, _BOMB_BLOCKS)), framing="chunked")


def _dripped(answer: Answer, _: Occasion) -> Answer:
    body, size = answer.body, max(1, len(answer.body) // 20)
    pieces = (
        part
        for start in range(0, len(body), size)
        for part in (Pause(0.002), body[start : start + size])
    )
    return replace(answer, pieces=tuple(pieces))


def _dripped_forever(answer: Answer, _: Occasion) -> Answer:
    return replace(answer, pieces=(Flood(b" ", pause_s=0.02),), framing="chunked")


def _stalled(answer: Answer, occasion: Occasion) -> Answer:
    return _half("stall")(answer, occasion)


def _redirect(_: Answer, __: Occasion) -> Answer:
    return Answer(status=307, headers={"location": "http://127.0.0.1:9/elsewhere"}, pieces=(b"",))


def _transport(name: str, does: str, wire: WireEdit, seen: str = "", **fields: Any) -> Fault:
    seen = seen or "any provider or proxy, sometimes"
    return Fault(name=name, group="transport", does=does, seen=seen, wire=wire, **fields)


def _ends(name: str, does: str, wire: WireEdit, code: Code, seen: str = "", **fields: Any) -> Fault:
    return _transport(name, does, wire, seen, repairable=False, code=code, **fields)


TRANSPORT_FAULTS: Final = (
    _transport(
        "reset_once",
        "Breaks the first connection of every request; the second works.",
        _instead("reset"),
        every=2,
    ),
    _ends(
        "reset",
        "Breaks the connection before it answers.",
        _instead("reset"),
        Code.CONNECTION_RESET,
    ),
    _ends(
        "closed",
        "Closes the connection without an answer.",
        _instead("close"),
        Code.CONNECTION_RESET,
    ),
    _ends(
        "reset_in_body",
        "Breaks the connection in the middle of the body.",
        _half("reset"),
        Code.CONNECTION_RESET,
        "proxies and load balancers",
    ),
    _ends(
        "body_cut",
        "Closes the connection in the middle of the body.",
        _half("close"),
        Code.UPSTREAM_TRUNCATED_BODY,
        "broken proxies",
    ),
    _ends(
        "length_too_short",
        "Claims half of the length that the body has, and sends all of it.",
        _short_length,
        Code.UPSTREAM_BAD_FRAMING,
        "broken proxies",
        reach="whole",
    ),
    _ends(
        "length_and_chunks",
        "Frames the body in two ways that contradict each other.",
        _both_framings,
        Code.UPSTREAM_BAD_FRAMING,
        "broken proxies",
    ),
    _transport("framed_by_close", "Ends the body by closing the connection.", _closed_framing),
    _transport("gzip", "Compresses the body, as it may.", _gzipped),
    _ends(
        "gzip_lie",
        "Says gzip, and sends plain text.",
        _says_encoding("gzip"),
        Code.UPSTREAM_ENCODING,
    ),
    _ends(
        "gzip_cut", "Ends in the middle of its gzip data.", _gzip_cut, Code.UPSTREAM_TRUNCATED_BODY
    ),
    _ends(
        "encoding_unasked",
        "Uses a content encoding that was not asked for.",
        _says_encoding("br"),
        Code.UPSTREAM_ENCODING,
    ),
    _ends(
        "gzip_bomb",
        f"Sends {_BOMB_BLOCKS} MiB in a thousandth of the size.",
        _bomb,
        Code.UPSTREAM_TOO_LARGE,
        "hostile servers; it has taken gateways down",
        reach="whole",
    ),
    _ends(
        "gzip_bomb_stream",
        f"Streams {_BOMB_BLOCKS} MiB in a thousandth of the size.",
        _bomb,
        Code.STREAM_TOO_LARGE,
        "hostile servers; it has taken gateways down",
        reach="stream",
    ),
    _transport("slow_bytes", "Sends the body in small pieces with pauses.", _dripped),
    _ends(
        "bytes_forever",
        "Sends one blank after the other and never an answer.",
        _dripped_forever,
        Code.TOTAL_TIMEOUT,
        "servers under load, and hostile ones",
    ),
    _ends(
        "stall",
        "Takes the request and never answers.",
        _instead("stall"),
        Code.FIRST_BYTE_TIMEOUT,
        "servers under load",
    ),
    _ends(
        "stall_in_body",
        "Stops in the middle of the body.",
        _stalled,
        Code.IDLE_TIMEOUT,
        "servers under load, and hostile ones",
    ),
    _transport(
        "rate_limit_seconds",
        "Answers 429 with a wait in seconds once per request.",
        _status(429, "Slow down.", retry_after="0.01"),
        _RATES,
        every=2,
    ),
    _transport(
        "rate_limit_ms",
        "Answers 429 with a wait in milliseconds once per request.",
        _status(429, "Slow down.", retry_after_ms="5"),
        _RATES,
        every=2,
    ),
    _transport(
        "rate_limit_date",
        "Answers 429 with a date that has passed once per request.",
        _status(429, "Slow down.", retry_after="Wed, 21 Oct 2015 07:28:00 GMT"),
        _RATES,
        every=2,
    ),
    _transport(
        "rate_limit_garbage",
        "Answers 429 with a wait that is no number once per request.",
        _status(429, "Slow down.", retry_after="-1e309"),
        _RATES,
        every=2,
    ),
    _ends(
        "rate_limit_long",
        "Answers 429 and asks to wait a day.",
        _status(429, "Slow down.", retry_after="86400"),
        Code.RATE_LIMIT,
        _RATES,
    ),
    _ends(
        "rate_limit",
        "Answers 429 to every request.",
        _status(429, "Slow down."),
        Code.RATE_LIMIT,
        _RATES,
    ),
    _ends(
        "quota",
        "Answers 429 because the money is spent.",
        _status(
            429,
            "You exceeded your current quota, check your plan and billing details.",
            kind="insufficient_quota",
        ),
        Code.QUOTA_EXCEEDED,
        "providers whose money or quota is spent",
    ),
    _ends(
        "payment_required",
        "Answers 402.",
        _status(402, "Insufficient credits."),
        Code.PAYMENT_REQUIRED,
        "providers whose money or quota is spent",
    ),
    _ends("auth", "Answers 401.", _status(401, "Incorrect API key provided."), Code.AUTH),
    _ends(
        "forbidden",
        "Answers 403, as a safety filter does.",
        _status(403, "Content violates usage guidelines. SAFETY_CHECK_TYPE_BIO"),
        Code.FORBIDDEN,
        "vibe_tavern study: grok answered 403 to a plain chat",
    ),
    _ends("not_found", "Answers 404.", _status(404, "The model does not exist."), Code.NOT_FOUND),
    _ends(
        "request_too_large",
        "Answers 413.",
        _status(413, "Request exceeds the maximum size."),
        Code.REQUEST_TOO_LARGE,
    ),
    _ends(
        "unprocessable",
        "Answers 422.",
        _status(422, "messages.1: field required"),
        Code.UNPROCESSABLE,
    ),
    _transport(
        "server_error_once",
        "Answers 500 to the first attempt of every request.",
        _status(500, "The server had an error."),
        every=2,
    ),
    _ends(
        "server_error",
        "Answers 500 to every request.",
        _status(500, "The server had an error."),
        Code.UPSTREAM_5XX,
        "servers under load",
    ),
    _ends(
        "overloaded",
        "Answers 529.",
        _status(529, "Overloaded"),
        Code.OVERLOADED,
        "Anthropic API",
    ),
    _ends(
        "redirect",
        "Redirects to another host.",
        _redirect,
        Code.UPSTREAM_REDIRECT,
        "moved or hijacked addresses",
    ),
)
