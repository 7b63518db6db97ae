"""Where the sample server is, and how one that speaks HTTP is started."""

import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

SAMPLE = Path(__file__).with_name("sample_server.py")


@pytest.fixture
def command() -> list[str]:
    """Return the command that starts the sample server over stdio."""
    return [sys.executable, str(SAMPLE)]


@pytest.fixture
def plain() -> list[str]:
    """Return the command that starts the plain server."""
    return [sys.executable, str(SAMPLE.with_name("plain_server.py"))]


@pytest.fixture
def url() -> Iterator[str]:
    """Start the sample server over HTTP and return its address."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port: int = place.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(SAMPLE), str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_until_open(process, port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def serve(app: web.Application) -> AsyncGenerator[str]:
    """Serve an application on this machine, and give its address."""
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _wait_until_open(process: "subprocess.Popen[bytes]", port: int) -> None:
    while process.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the sample server has ended")
