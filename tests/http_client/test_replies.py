"""What an upstream may answer: a table of good and bad behaviour, byte by byte."""

import gzip
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from support.upstream import (
    CLOSE,
    RESET,
    Drip,
    FaultyUpstream,
    Pause,
    Repeat,
    Script,
    chunked,
    gzip_bomb,
    gzipped,
    http_response,
)
from surecall.base.errors import Code, ProviderError
from surecall.models.client import Answer, ClientLimits, Origin
from surecall.models.transport import Deadlines

Reader = Callable[[Answer], Awaitable[bytes]]

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BODY = b'{"hello": "world"}'
FRAMING = Code.UPSTREAM_BAD_FRAMING
CUT = Code.UPSTREAM_TRUNCATED_BODY
RESET_CODE = Code.CONNECTION_RESET
BIG = Code.UPSTREAM_TOO_LARGE
ENCODING = Code.UPSTREAM_ENCODING
PATIENT = Deadlines(connect_s=20, first_byte_s=20, idle_s=20, total_s=20)
SHORT = {
    Code.FIRST_BYTE_TIMEOUT: replace(PATIENT, first_byte_s=0.1),
    Code.IDLE_TIMEOUT: replace(PATIENT, idle_s=0.1),
    Code.TOTAL_TIMEOUT: replace(PATIENT, total_s=0.3),
}
"""By the code that is expected: on a busy machine another deadline must not be first."""
SMALL = ClientLimits(max_body_bytes=200_000, max_stream_bytes=200_000, max_header_bytes=4096)


@dataclass(frozen=True)
class Good:
    """An answer that is taken, and whether its connection is used again."""

    id: str
    script: Script
    body: bytes = BODY
    status: int = 200
    reused: bool = True
    method: str = "POST"


@dataclass(frozen=True)
class Bad:
    """An answer that is refused with a code; its connection is never used again."""

    id: str
    script: Script
    code: Code
    limits: ClientLimits = field(default=SMALL)


def sized(body: bytes = BODY, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """Return a whole answer with a length and further headers."""
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
WHOLE = sized()
ZIPPED = sized(gzipped(BODY), b"Content-Encoding: gzip")

GOOD = [
    Good("length", [WHOLE]),
    Good("length, byte by byte", [Drip(WHOLE, size=1, pause_s=0)]),
    Good("length, head and body apart", [WHOLE[:-18], Pause(0.01), WHOLE[-18:]]),
    Good("length, head cut inside its end", [WHOLE[:-20], Pause(0.01), WHOLE[-20:]]),
    Good("length zero", [sized(b"")], body=b""),
    Good("a body that looks like a head", [sized(WHOLE)], body=WHOLE),
    Good("chunks", [CHUNKED + chunked(BODY[:3], BODY[3:])]),
    Good("chunks, byte by byte", [Drip(CHUNKED + chunked(BODY[:3], BODY[3:]), pause_s=0)]),
    Good("chunks with extensions", [CHUNKED + b"12;a=b;c\r\n" + BODY + b"\r\n0;end\r\n\r\n"]),
    Good(
        "chunks in capitals", [CHUNKED + b"1A\r\n" + b"x" * 26 + b"\r\n0\r\n\r\n"], body=b"x" * 26
    ),
    Good(
        "chunks with trailers",
        [CHUNKED + chunked(BODY, end=False) + b"0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n"],
    ),
    Good("no chunks at all", [CHUNKED + b"0\r\n\r\n"], body=b""),
    Good("last chunk late", [CHUNKED + chunked(BODY, end=False), Pause(0.01), b"0\r\n\r\n"]),
    Good("until the connection closes", [OK + b"\r\n" + BODY, CLOSE], reused=False),
    Good("nothing until it closes", [OK + b"\r\n", CLOSE], body=b"", reused=False),
    Good("HTTP/1.0", [WHOLE.replace(b"1.1", b"1.0", 1)], reused=False),
    Good(
        "HTTP/1.0 kept alive",
        [sized(BODY, b"Connection: keep-alive").replace(b"1.1", b"1.0", 1)],
    ),
    Good("connection: close", [sized(BODY, b"Connection: close")], reused=False),
    Good("connection: x, Close", [sized(BODY, b"connection: x, Close")], reused=False),
    Good("closes without saying so", [WHOLE, CLOSE], reused=False),
    Good("interim replies", [INTERIM + INTERIM + b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE]),
    Good("interim reply alone", [INTERIM, Pause(0.01), WHOLE]),
    Good("interim reply, byte by byte", [Drip(INTERIM + WHOLE, pause_s=0)]),
    Good("no reason phrase", [WHOLE.replace(b"200 OK", b"200 ", 1)]),
    Good(
        "redirect", [sized(BODY, b"Location: http://127.0.0.1:1/", status=b"302 Found")], status=302
    ),
    Good("error status", [sized(status=b"503 Busy")], status=503),
    Good("204", [b"HTTP/1.1 204 No\r\n\r\n"], body=b"", status=204),
    Good("204 with a length", [b"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n"], b"", 204),
    Good("204 with a body", [sized(status=b"204 No")], b"", 204, reused=False),
    Good("304", [b"HTTP/1.1 304 Same\r\nContent-Length: 18\r\n\r\n"], b"", 304),
    Good("HEAD", [b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n"], b"", method="HEAD"),
    Good(
        "HEAD about a large compressed body",
        [OK + b"Content-Length: 999999999\r\nContent-Encoding: br\r\n\r\n"],
        b"",
        method="HEAD",
    ),
    Good("HEAD in chunks", [CHUNKED], b"", method="HEAD"),
    Good("HEAD without a length", [OK + b"\r\n"], b"", method="HEAD", reused=False),
    Good("HEAD with a body", [WHOLE], b"", method="HEAD", reused=False),
    Good("longer than its length", [WHOLE + b"x"], reused=False),
    Good("an empty line behind it", [WHOLE + b"\r\n"], reused=False),
    Good("an empty line behind chunks", [CHUNKED + chunked(BODY) + b"\r\n"], reused=False),
    Good("bytes behind chunks", [CHUNKED + chunked(BODY) + b"garbage"], reused=False),
    Good("a second reply behind it", [WHOLE + sized(b"smuggled")], reused=False),
    Good(
        "a second reply behind chunks",
        [CHUNKED + chunked(BODY) + CHUNKED + chunked(b"smuggled")],
        reused=False,
    ),
    Good("a second reply a little later", [WHOLE, Pause(0.01), sized(b"smuggled")], reused=False),
    Good("gzip", [ZIPPED]),
    Good("gzip, byte by byte", [Drip(ZIPPED, pause_s=0)]),
    Good(
        "x-gzip in chunks",
        [
            OK + b"Transfer-Encoding: chunked\r\nContent-Encoding: x-gzip\r\n\r\n",
            chunked(gzipped(BODY)[:9], gzipped(BODY)[9:]),
        ],
    ),
    Good(
        "gzip until it closes",
        [OK + b"Content-Encoding: GZIP\r\n\r\n" + gzipped(BODY), CLOSE],
        reused=False,
    ),
    Good("identity", [sized(BODY, b"Content-Encoding: identity")]),
    Good(
        "honest large gzip",
        [sized(gzipped(b"ab" * 90_000), b"Content-Encoding: gzip")],
        body=b"ab" * 90_000,
    ),
    Good(
        "length and chunks",
        [OK + b"Content-Length: 18\r\n" + CHUNKED[17:] + chunked(BODY)],
        reused=False,
    ),
    Good(
        "chunks and length",
        [CHUNKED[:-2] + b"Content-Length: 3\r\n\r\n" + chunked(BODY)],
        reused=False,
    ),
    Good(
        "chunks and no length",
        [CHUNKED[:-2] + b"Content-Length: 0\r\n\r\n" + chunked(BODY)],
        reused=False,
    ),
    Good("500 chunks of one byte", [CHUNKED + chunked(*[b"a"] * 500)], body=b"a" * 500),
    Good("200 headers", [sized(BODY, *[b"X-%d: 1" % n for n in range(200)])]),
]

BOMB = gzip_bomb(64 * 1024 * 1024)
BAD = [
    Bad("chunks and two lengths", [CHUNKED[:-2] + b"Content-Length: 3\r\n" * 2 + b"\r\n"], FRAMING),
    Bad("two lengths that differ", [sized(BODY, b"Content-Length: 17")], FRAMING),
    Bad("two equal lengths", [sized(BODY, b"Content-Length: 18")], FRAMING),
    Bad("list of lengths", [OK + b"Content-Length: 18, 18\r\n\r\n" + BODY], FRAMING),
    Bad("signed length", [OK + b"Content-Length: +18\r\n\r\n" + BODY], FRAMING),
    Bad("negative length", [OK + b"Content-Length: -1\r\n\r\n" + BODY], FRAMING),
    Bad("hexadecimal length", [OK + b"Content-Length: 0x12\r\n\r\n" + BODY], FRAMING),
    Bad("empty length", [OK + b"Content-Length:\r\n\r\n" + BODY], FRAMING),
    Bad("endless length", [OK + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n"], FRAMING),
    Bad(
        "gzip, chunked", [OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked(BODY)], FRAMING
    ),
    Bad(
        "chunked twice",
        [CHUNKED[:-2] + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(BODY)],
        FRAMING,
    ),
    Bad(
        "unknown transfer encoding",
        [OK + b"Transfer-Encoding: xchunked\r\n\r\n" + BODY, CLOSE],
        FRAMING,
    ),
    Bad("chunks in HTTP/1.0", [CHUNKED.replace(b"1.1", b"1.0", 1) + chunked(BODY)], FRAMING),
    Bad("chunk size not hexadecimal", [CHUNKED + b"zz\r\n" + BODY], FRAMING),
    Bad("chunk size with a prefix", [CHUNKED + b"0x12\r\n" + BODY + b"\r\n0\r\n\r\n"], FRAMING),
    Bad("chunk size with a space", [CHUNKED + b"12 \r\n" + BODY + b"\r\n0\r\n\r\n"], FRAMING),
    Bad("chunk size too large", [CHUNKED + b"F" * 17 + b"\r\n" + BODY], FRAMING),
    Bad("chunk longer than its size", [CHUNKED + b"11\r\n" + BODY + b"\r\n0\r\n\r\n"], FRAMING),
    Bad("chunks with bare line feeds", [CHUNKED + b"12\n" + BODY + b"\n0\n\n"], FRAMING),
    Bad("endless chunk extension", [CHUNKED + b"12;", Repeat(b"x" * 4096)], FRAMING),
    Bad("endless trailers", [CHUNKED + b"0\r\n", Repeat(b"X: " + b"y" * 4000 + b"\r\n")], FRAMING),
    Bad("length in a trailer", [CHUNKED + b"0\r\nContent-Length: 4\r\n\r\n"], FRAMING),
    Bad("cut in a length", [WHOLE[:-1], CLOSE], CUT),
    Bad("cut before the body", [WHOLE[:-18], CLOSE], CUT),
    Bad("cut in a chunk", [CHUNKED + b"12\r\n" + BODY[:5], CLOSE], CUT),
    Bad("cut between chunks", [CHUNKED + chunked(BODY, end=False), CLOSE], CUT),
    Bad("cut in the last chunk", [CHUNKED + chunked(BODY)[:-2], CLOSE], CUT),
    Bad("cut in gzip", [OK + b"Content-Encoding: gzip\r\n\r\n" + gzipped(BODY)[:-6], CLOSE], CUT),
    Bad("reset in a length", [WHOLE[:-1], Pause(0.02), RESET], RESET_CODE),
    Bad(
        "reset in a body that only closing ends",
        [OK + b"\r\n" + BODY, Pause(0.02), RESET],
        RESET_CODE,
    ),
    Bad("closed before the answer", [CLOSE], RESET_CODE),
    Bad("reset before the answer", [RESET], RESET_CODE),
    Bad("closed in the head", [WHOLE[:20], CLOSE], RESET_CODE),
    Bad("not HTTP", [b"SSH-2.0-OpenSSH_9\r\n\r\n"], FRAMING),
    Bad("not HTTP, and no end", [b"220 smtp ready\r\n"], FRAMING),
    Bad("HTTP/2", [WHOLE.replace(b"1.1", b"2.0", 1)], FRAMING),
    Bad("HTTP/1.2", [WHOLE.replace(b"1.1", b"1.2", 1)], FRAMING),
    Bad("an empty line before it", [b"\r\n" + WHOLE], FRAMING),
    Bad("status of two digits", [WHOLE.replace(b"200", b"20", 1)], FRAMING),
    Bad("status of four digits", [WHOLE.replace(b"200", b"2000", 1)], FRAMING),
    Bad("status 099", [WHOLE.replace(b"200", b"099", 1)], FRAMING),
    Bad(
        "switches protocols",
        [b"HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + WHOLE],
        FRAMING,
    ),
    Bad("switches without saying to what", [b"HTTP/1.1 101 S\r\n\r\n" + WHOLE], FRAMING),
    Bad("endless interim replies", [Repeat(INTERIM * 50)], FRAMING),
    Bad("folded header", [OK + b"X: a\r\n b\r\n\r\n"], FRAMING),
    Bad("space before the colon", [OK + b"Content-Length : 18\r\n\r\n" + BODY], FRAMING),
    Bad("header without a name", [OK + b": x\r\n\r\n"], FRAMING),
    Bad("header without a colon", [OK + b"nonsense\r\n\r\n"], FRAMING),
    Bad("NUL in a header", [OK + b"X: a\0b\r\n\r\n"], FRAMING),
    Bad("carriage return in a header", [OK + b"X: a\rb\r\n\r\n"], FRAMING),
    Bad("bare line feeds", [WHOLE.replace(b"\r\n", b"\n"), CLOSE], RESET_CODE),
    Bad("bare line feed in a header", [OK + b"X: a\nContent-Length: 18\r\n\r\n" + BODY], FRAMING),
    Bad("one long header", [OK + b"X: " + b"y" * 5000 + b"\r\n\r\n"], FRAMING),
    Bad("endless header", [OK + b"X: ", Repeat(b"y" * 1000)], FRAMING),
    Bad("endless headers", [OK, Repeat(b"X: y\r\n" * 100)], FRAMING),
    Bad("300 headers", [sized(BODY, *[b"X: 1"] * 300)], FRAMING),
    Bad("too long by its own account", [OK + b"Content-Length: 200001\r\n\r\n"], BIG),
    Bad("too long in chunks", [CHUNKED, Repeat(chunked(b"x" * 4096, end=False))], BIG),
    Bad("too long until it closes", [OK + b"\r\n", Repeat(b"x" * 4096)], BIG),
    Bad(
        "too long when decompressed",
        [sized(gzipped(b"ab" * 100_001), b"Content-Encoding: gzip")],
        BIG,
    ),
    Bad("gzip bomb by size", [sized(BOMB, b"Content-Encoding: gzip")], BIG),
    Bad("gzip bomb by ratio", [sized(BOMB, b"Content-Encoding: gzip")], BIG, ClientLimits()),
    Bad("gzip that is none", [sized(BODY, b"Content-Encoding: gzip")], ENCODING),
    Bad("gzip with a tail", [sized(gzipped(BODY) + b"tail", b"Content-Encoding: gzip")], ENCODING),
    Bad("two gzip members", [sized(gzipped(BODY) * 2, b"Content-Encoding: gzip")], ENCODING),
    Bad(
        "gzip twice",
        [sized(gzip.compress(gzipped(BODY)), b"Content-Encoding: gzip, gzip")],
        ENCODING,
    ),
    Bad("gzip in two headers", [sized(gzipped(BODY), *[b"Content-Encoding: gzip"] * 2)], ENCODING),
    Bad("brotli", [sized(b"\x1b" + BODY, b"Content-Encoding: br")], ENCODING),
    Bad("zstd", [sized(b"\x28\xb5" + BODY, b"Content-Encoding: zstd")], ENCODING),
    Bad("deflate", [sized(BODY, b"Content-Encoding: deflate")], ENCODING),
    Bad("no answer", [Pause(5)], Code.FIRST_BYTE_TIMEOUT),
    Bad("half a head", [OK, Pause(5)], Code.FIRST_BYTE_TIMEOUT),
    Bad("interim replies for ever", [*[INTERIM, Pause(0.03)] * 20], Code.FIRST_BYTE_TIMEOUT),
    Bad("stops in the body", [WHOLE[:-1], Pause(5)], Code.IDLE_TIMEOUT),
    Bad("stops in gzip", [ZIPPED[:-1], Pause(5)], Code.IDLE_TIMEOUT),
    Bad("a byte now and then", [OK + b"\r\n", Drip(b"x" * 100, pause_s=0.03)], Code.TOTAL_TIMEOUT),
]


async def read_whole(answer: Answer) -> bytes:
    """Read a body at once."""
    return await answer.read()


async def read_pieces(answer: Answer) -> bytes:
    """Read a body piece by piece."""
    pieces: list[bytes] = []
    await answer.pipe(pieces.append)
    return b"".join(pieces)


@pytest.fixture
def reader(anyio_backend: tuple[str, dict[str, Any]]) -> Reader:
    """Read at once on one event loop and in pieces on the other, to save time."""
    return read_pieces if anyio_backend[1]["use_uvloop"] else read_whole


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.id)
async def test_a_usable_answer_is_read(case: Good, reader: Reader) -> None:
    """Status and body arrive as they were sent; only a clean connection is used again."""
    async with FaultyUpstream([case.script, [http_response(b"next")]]) as upstream:
        origin = Origin(upstream.url, limits=SMALL)
        answer = await origin.send(case.method, "/v1/x", [("x-a", "b")], b"{}", deadlines=PATIENT)
        body = await reader(answer)
        assert (answer.status, body, answer.attempts) == (case.status, case.body, 1)
        if case.id == "a second reply a little later":
            await upstream.wait_departure()
        following = await origin.send("POST", "/v1/y", [], b"{}", deadlines=PATIENT)
        assert await following.read() == b"next"
        await origin.close()
    assert [sent.connection for sent in upstream.requests] == ([1, 1] if case.reused else [1, 2])


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
async def test_an_unusable_answer_is_refused(case: Bad, reader: Reader) -> None:
    """It ends with its code, the request is sent once, and the connection is closed."""
    scripts: list[Script] = [case.script, [http_response(b"next")]]
    async with FaultyUpstream(scripts) as upstream:
        origin = Origin(upstream.url, limits=case.limits)
        deadlines = SHORT.get(case.code, PATIENT)
        with pytest.raises(ProviderError) as caught:
            await reader(await origin.send("POST", "/v1/x", [], b"{}", deadlines=deadlines))
        code = case.code
        if code is BIG and reader is read_pieces:
            code = Code.STREAM_TOO_LARGE
        assert (caught.value.code, caught.value.attempts) == (code, 1)
        assert caught.value.__cause__ is None
        assert origin.idle_count == 0
        following = await origin.send("POST", "/v1/y", [], b"{}", deadlines=PATIENT)
        assert await following.read() == b"next"
        assert origin.open_count == 1
        await origin.close()
    assert [sent.connection for sent in upstream.requests] == [1, 2]
