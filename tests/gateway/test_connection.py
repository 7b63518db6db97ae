"""Requests on one connection: however their bytes come, each is served as if it came alone."""

import asyncio
import json
from pathlib import Path

import pytest

from .harness import Served, chat, completion, reply, serve_stubbed

CHAT = "/v1/chat/completions"
ANSWER = [reply(completion("Hello there."))]


def write(served: Served, *, path: str = CHAT, size: int = 0, **headers: str) -> bytes:
    """Return a request, with at least so many bytes of text."""
    data = json.dumps(chat("m", "x" * size)).encode()
    lines = [f"POST {path} HTTP/1.1", f"host: 127.0.0.1:{served.port}"]
    lines += ["content-type: application/json", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


async def read_status(reader: asyncio.StreamReader) -> int:
    """Read one answer, and return its status."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    lines = head.decode().lower().split("\r\n")
    size = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length"))
    await reader.readexactly(size)
    return int(lines[0].split()[1])


async def test_every_request_of_a_connection_goes_with_its_own_headers(tmp_path: Path) -> None:
    """What the last headers said is used again only for the very same headers."""
    async with serve_stubbed(tmp_path, ANSWER) as (served, stub):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        keys = ["one", "one", "two", "one"]
        for number, key in enumerate(keys):
            writer.write(write(served, size=number, authorization=f"Bearer key-{key}"))
            assert await read_status(reader) == 200
        writer.write(write(served, origin="http://elsewhere.example"))
        assert await read_status(reader) == 403
        writer.write(write(served))
        assert await read_status(reader) == 200
        writer.close()
        sent = [line for head in stub.heads for line in head.split("\r\n") if "Bearer" in line]
        assert sent == [f"authorization: Bearer key-{key}" for key in keys]
        assert len(stub.heads) == len(keys) + 1


@pytest.mark.parametrize("cut", [1, 30, 150, -20, -1])
async def test_a_request_may_come_in_two_reads(tmp_path: Path, cut: int) -> None:
    """Wherever it is cut, the upstream gets the same body, and the client its answer."""
    async with serve_stubbed(tmp_path, ANSWER) as (served, stub):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        data = write(served)
        for part in (data[:cut], data[cut:], data):
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)
        assert await read_status(reader) == await read_status(reader) == 200
        writer.close()
        assert stub.bodies == [data.partition(b"\r\n\r\n")[2]] * 2
        assert [record.status for record in served.store.records] == [200, 200]


async def test_requests_that_come_at_once_are_answered_in_order(tmp_path: Path) -> None:
    """The second waits for the answer to the first."""
    async with serve_stubbed(tmp_path, ANSWER) as (served, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(write(served, size=1) + write(served, size=2, content_encoding="gzip"))
        writer.write(write(served, size=3))
        found = [await read_status(reader) for _ in range(3)]
        writer.close()
        assert found == [200, 415, 200]


async def test_a_body_in_one_read_may_be_too_large(tmp_path: Path) -> None:
    """The limit holds however the body comes, and whether or not its length is named."""
    text = "[limits]\nmax_request_bytes = 2000\n"
    async with serve_stubbed(tmp_path, ANSWER, text=text) as (served, stub):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head, _, body = write(served, size=3000).partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n" + body)
        assert await read_status(reader) == 413
        lines = [line for line in head.split(b"\r\n") if b"content-length" not in line]
        chunked = b"\r\n".join([*lines, b"transfer-encoding: chunked", b"", b""])
        writer.write(chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        assert await read_status(reader) == 413
        writer.write(write(served))
        assert await read_status(reader) == 200
        writer.close()
        assert len(stub.bodies) == 1


async def test_a_connection_without_requests_is_closed(tmp_path: Path) -> None:
    """It is closed some time after the last answer, and not before."""
    text = "[limits]\nidle_s = 1.0\n"
    async with serve_stubbed(tmp_path, ANSWER, text=text) as (served, stub):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        for _ in range(2):
            writer.write(write(served))
            assert await read_status(reader) == 200
            await asyncio.sleep(0.7)
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
        assert len(stub.bodies) == 2
