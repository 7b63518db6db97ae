"""Faults of connections, statuses and bodies: no reply where one should be, or an odd one."""

import tomllib
import zlib
from gzip import compress
from importlib import resources
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.limits import MIB
from surecall.faults.answers import (
    Answer,
    Ending,
    Flood,
    Pause,
    edit_json_body,
    error_answer,
    json_answer,
    with_body,
)
from surecall.faults.replies import Occasion

from .fault import FaultTable

_BOMB_BLOCKS: Final = 64
_SLOW_DOWN: Final = "Slow down."
_PROXIES: Final = "broken proxies"
_BUSY: Final = "servers under load"
_HOSTILE: Final = "servers under load, and hostile ones"
_BOMBS: Final = "hostile servers; it has taken gateways down"
_WITH_CHOICES: Final = ("chat_completions", "gemini")
_USAGE: Final = {
    "chat_completions": ("usage", "prompt_tokens"),
    "gemini": ("usageMetadata", "promptTokenCount"),
}
_PAGE: Final = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head></html>"

_USUAL: Final = "any provider or proxy, sometimes"
TRANSPORT: Final = FaultTable("transport", seen=_USUAL)
BODY: Final = FaultTable("body", seen="proxies, login pages and servers under load")


def _halve(answer: Answer, ending: Ending) -> Answer:
    """Send half of the body and end like this; a length still claims all of it."""
    body = answer.body
    half = body[: max(1, len(body) // 2)]
    declared = len(body) if answer.framing == "length" else None
    return replace(answer, pieces=(half,), declared_bytes=declared, ending=ending)


@TRANSPORT.on_wire(every=2)
def reset_once(answer: Answer, _: Occasion) -> Answer:
    """Breaks the first connection of every request; the second works."""
    return replace(answer, before="reset")


@TRANSPORT.on_wire(code=Code.CONNECTION_RESET)
def reset(answer: Answer, _: Occasion) -> Answer:
    """Breaks the connection before it answers."""
    return replace(answer, before="reset")


@TRANSPORT.on_wire(code=Code.CONNECTION_RESET)
def closed(answer: Answer, _: Occasion) -> Answer:
    """Closes the connection without an answer."""
    return replace(answer, before="close")


@TRANSPORT.on_wire(code=Code.CONNECTION_RESET, seen="proxies and load balancers")
def reset_in_body(answer: Answer, _: Occasion) -> Answer:
    """Breaks the connection in the middle of the body."""
    return _halve(answer, "reset")


@TRANSPORT.on_wire(code=Code.UPSTREAM_TRUNCATED_BODY, seen=_PROXIES)
def body_cut(answer: Answer, _: Occasion) -> Answer:
    """Closes the connection in the middle of the body."""
    return _halve(answer, "close")


@TRANSPORT.on_wire(code=Code.UPSTREAM_BAD_FRAMING, seen=_PROXIES, reach="whole")
def length_too_short(answer: Answer, _: Occasion) -> Answer:
    """Claims half of the length that the body has, and sends all of it."""
    return replace(answer, declared_bytes=len(answer.body) // 2, ending="close")


@TRANSPORT.on_wire(seen=_PROXIES)
def length_and_chunks(answer: Answer, _: Occasion) -> Answer:
    """Frames the body in two ways that contradict each other."""
    return replace(answer, framing="both")


@TRANSPORT.on_wire()
def framed_by_close(answer: Answer, _: Occasion) -> Answer:
    """Ends the body by closing the connection."""
    return replace(answer, framing="close", ending="close")


@TRANSPORT.on_wire()
def gzip(answer: Answer, _: Occasion) -> Answer:
    """Compresses the body, as it may."""
    return with_body(answer, compress(answer.body, mtime=0), content_encoding="gzip")


@TRANSPORT.on_wire(code=Code.UPSTREAM_ENCODING)
def gzip_lie(answer: Answer, _: Occasion) -> Answer:
    """Says gzip, and sends plain text."""
    return with_body(answer, answer.body, content_encoding="gzip")


@TRANSPORT.on_wire(code=Code.UPSTREAM_TRUNCATED_BODY)
def gzip_cut(answer: Answer, _: Occasion) -> Answer:
    """Ends in the middle of its gzip data."""
    packed = compress(answer.body, mtime=0)
    return with_body(answer, packed[: len(packed) // 2], content_encoding="gzip")


@TRANSPORT.on_wire()
def encoding_unasked(answer: Answer, _: Occasion) -> Answer:
    """Names a content encoding that was not asked for, and sends plain text."""
    return with_body(answer, answer.body, content_encoding="br")


def _bomb(answer: Answer, _: Occasion) -> Answer:
    """Send gzip data that expands a thousandfold: one block, packed once and repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    bombed = with_body(answer, head, content_encoding="gzip")
    return replace(bombed, pieces=(head, Flood(block, _BOMB_BLOCKS)), framing="chunked")


TRANSPORT.add(
    "gzip_bomb",
    f"Sends {_BOMB_BLOCKS} MiB in a thousandth of the size.",
    wire=_bomb,
    code=Code.UPSTREAM_TOO_LARGE,
    seen=_BOMBS,
    reach="whole",
)
TRANSPORT.add(
    "gzip_bomb_stream",
    f"Streams {_BOMB_BLOCKS} MiB in a thousandth of the size.",
    wire=_bomb,
    code=Code.STREAM_TOO_LARGE,
    seen=_BOMBS,
    reach="stream",
)


@TRANSPORT.on_wire()
def slow_bytes(answer: Answer, _: Occasion) -> Answer:
    """Sends the body in small pieces with pauses."""
    body, size = answer.body, max(1, len(answer.body) // 20)
    starts = range(0, len(body), size)
    pieces = (part for at in starts for part in (Pause(0.002), body[at : at + size]))
    return replace(answer, pieces=tuple(pieces))


@TRANSPORT.on_wire(code=Code.TOTAL_TIMEOUT, seen=_HOSTILE)
def bytes_forever(answer: Answer, _: Occasion) -> Answer:
    """Sends one blank after the other and never an answer."""
    return replace(answer, pieces=(Flood(b" ", pause_s=0.02),), framing="chunked")


@TRANSPORT.on_wire(code=Code.FIRST_BYTE_TIMEOUT, seen=_BUSY)
def stall(answer: Answer, _: Occasion) -> Answer:
    """Takes the request and never answers."""
    return replace(answer, before="stall")


@TRANSPORT.on_wire(code=Code.IDLE_TIMEOUT, seen=_HOSTILE)
def stall_in_body(answer: Answer, _: Occasion) -> Answer:
    """Stops in the middle of the body."""
    return _halve(answer, "stall")


class _ErrorRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault that answers with an error."""

    name: str
    status: int
    message: str
    does: str = ""
    code: Code | None = None
    kind: str | None = None
    headers: dict[str, str] = {}
    seen: str = _USUAL
    every: int = 1

    @property
    def fields(self) -> dict[str, Any]:
        """The fault, as a table takes it."""
        does = self.does or f"Answers {self.status}."
        rest = {"code": self.code, "seen": self.seen, "every": self.every}
        return {"name": self.name, "does": does, "wire": self._answer, **rest}

    def _answer(self, _: Answer, occasion: Occasion) -> Answer:
        return error_answer(
            occasion, self.status, self.message, kind=self.kind, headers=self.headers
        )


_ERRORS: Final = resources.files("surecall.faults.catalog").joinpath("errors.toml")
for _row in msgspec.convert(tomllib.loads(_ERRORS.read_text("utf-8"))["errors"], list[_ErrorRow]):
    TRANSPORT.add(**_row.fields)


@TRANSPORT.on_wire(code=Code.UPSTREAM_REDIRECT, seen="moved or hijacked addresses")
def redirect(_: Answer, __: Occasion) -> Answer:
    """Redirects to another host."""
    return Answer(status=307, headers={"location": "http://127.0.0.1:9/elsewhere"}, pieces=(b"",))


def _page(status: int) -> Answer:
    headers = {"content-type": "text/html; charset=utf-8"}
    return Answer(status=status, headers=headers, pieces=(_PAGE,))


def _raw(body: bytes) -> Answer:
    return Answer(headers={"content-type": "application/json"}, pieces=(body,))


def _choices(occasion: Occasion, value: Any) -> Answer:
    """Answer with a whole reply whose list of choices is this."""
    name = occasion.protocol.traits.choices_key or "choices"
    return json_answer({"id": "x", name: value})


def _error_in_200(occasion: Occasion, status: int, message: str) -> Answer:
    return replace(error_answer(occasion, status, message), status=200)


@BODY.on_wire(code=Code.UPSTREAM_HTML)
def html_200(_: Answer, __: Occasion) -> Answer:
    """Answers 200 with a web page."""
    return _page(200)


@BODY.on_wire(code=Code.UPSTREAM_HTML)
def html_502(_: Answer, __: Occasion) -> Answer:
    """Answers 502 with a web page."""
    return _page(502)


@BODY.on_wire(code=Code.UPSTREAM_EMPTY)
def empty(_: Answer, __: Occasion) -> Answer:
    """Answers 200 with nothing."""
    return _raw(b"")


@BODY.on_wire(code=Code.UPSTREAM_INVALID_JSON, reach="whole")
def invalid_json(_: Answer, __: Occasion) -> Answer:
    """Answers with something that is not JSON."""
    return _raw(b"upstream connect error or disconnect")


@BODY.on_wire(code=Code.UPSTREAM_INVALID_JSON, reach="whole")
def not_utf8(_: Answer, __: Occasion) -> Answer:
    """Answers in another character encoding."""
    return _raw('{"choices": "é"}'.encode("latin-1"))


@BODY.on_wire(code=Code.UPSTREAM_NOT_A_REPLY, codes={"gemini": Code.UPSTREAM_NO_CHOICES})
def array(_: Answer, __: Occasion) -> Answer:
    """Answers with a list."""
    return json_answer([{"choices": []}])


@BODY.on_wire(code=Code.UPSTREAM_NO_CHOICES, protocols=_WITH_CHOICES)
def choices_null(_: Answer, occasion: Occasion) -> Answer:
    """Answers with `choices: null`."""
    return _choices(occasion, None)


@BODY.on_wire(code=Code.UPSTREAM_NO_CHOICES, protocols=_WITH_CHOICES)
def choices_empty(_: Answer, occasion: Occasion) -> Answer:
    """Answers with no choices."""
    return _choices(occasion, [])


@BODY.on_wire(code=Code.UPSTREAM_ERROR_BODY, codes={"gemini": Code.UPSTREAM_5XX})
def error_200(_: Answer, occasion: Occasion) -> Answer:
    """Answers 200 with an error inside."""
    return _error_in_200(occasion, 500, "Internal error, try again.")


@BODY.on_wire(code=Code.RATE_LIMIT)
def error_429_in_200(_: Answer, occasion: Occasion) -> Answer:
    """Answers 200 with a rate limit inside."""
    return _error_in_200(occasion, 429, _SLOW_DOWN)


@BODY.on_wire(seen="DeepSeek and OpenRouter under load", reach="whole")
def blank_lines_before(answer: Answer, _: Occasion) -> Answer:
    """Sends blank lines before the JSON to keep the line alive."""
    return with_body(answer, b"\n\n   \n" + answer.body)


@BODY.on_wire(seen="text that went through an editor or another encoding", reach="whole")
def bom_before(answer: Answer, _: Occasion) -> Answer:
    """Sends a byte order mark before the JSON."""
    return with_body(answer, b"\xef\xbb\xbf" + answer.body)


@BODY.on_wire(seen="OpenAI-compatible servers", reach="whole")
def usage_odd(answer: Answer, occasion: Occasion) -> Answer:
    """Counts tokens with nulls and texts."""
    key, count = _USAGE.get(occasion.protocol.name, ("usage", "input_tokens"))
    return edit_json_body(answer, lambda body: {**body, key: {count: None, "x": "many"}})


@BODY.on_wire(seen="most OpenAI-compatible servers", reach="whole")
def unknown_fields(answer: Answer, _: Occasion) -> Answer:
    """Adds unknown fields."""
    unknown = {"x_groq": {"id": "1"}, "service_tier": None, "timings": '{"ms":1}'}
    return edit_json_body(answer, lambda body: {**body, **unknown})
