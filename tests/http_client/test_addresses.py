"""Which address is connected to, how long that may take, and over which TLS."""

import asyncio
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.certificates import Authority
from support.secure_upstream import SecureUpstream
from support.upstream import FaultyUpstream, http_response, unused_port
from surecall.base.errors import Code, ProviderError
from surecall.models.client import ClientLimits, Network, Origin
from surecall.models.transport import Deadlines

OK = http_response(b"{}")
SHORT = Deadlines(connect_s=0.15)


def answer_lookups(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[str, int]) -> list[str]:
    """Make every name resolve to these addresses; return the names that were looked up."""
    asked: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: object) -> list[Any]:
        if host[0].isdigit() or ":" in host:  # uvloop asks again about the address itself
            kind = socket.AF_INET6 if ":" in host else socket.AF_INET
            return [(kind, socket.SOCK_STREAM, 6, "", (host, port))]
        asked.append(host)
        if not addresses:
            await asyncio.sleep(5)
        kinds = [socket.AF_INET6 if ":" in ip else socket.AF_INET for ip, _ in addresses]
        return [
            (kind, socket.SOCK_STREAM, 6, "", target)
            for kind, target in zip(kinds, addresses, strict=True)
        ]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    return asked


async def ask(origin: Origin, deadlines: Deadlines = SHORT) -> bytes:
    """Send a request, read its answer, and close the origin."""
    try:
        return await (await origin.send("POST", "/", [], b"{}", deadlines=deadlines)).read()
    finally:
        await origin.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert origin.open_count == 0


async def fails(origin: Origin, deadlines: Deadlines = SHORT) -> str:
    """Return the code of the error that a request ends with."""
    with pytest.raises(ProviderError) as caught:
        await ask(origin, deadlines)
    assert caught.value.__cause__ is None
    return caught.value.code


async def test_a_port_that_nobody_listens_on() -> None:
    """It has its own code."""
    assert await fails(Origin(f"http://127.0.0.1:{unused_port()}")) == Code.CONNECTION_REFUSED


async def test_a_name_without_an_address() -> None:
    """It has its own code."""
    assert await fails(Origin("http://nowhere.invalid"), Deadlines()) == Code.DNS_FAILURE


async def test_a_slow_lookup_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connect deadline covers it."""
    answer_lookups(monkeypatch)
    assert await fails(Origin("http://slow.test")) == Code.CONNECT_TIMEOUT


async def test_a_name_is_looked_up_once_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later requests on it go to the same address, whatever the name says then."""
    async with FaultyUpstream([[OK]]) as upstream:
        asked = answer_lookups(monkeypatch, ("127.0.0.1", upstream.port))
        origin = Origin("http://name.test:1")
        await (await origin.send("POST", "/", [], b"{}")).read()
        answer_lookups(monkeypatch, ("127.0.0.1", 1))
        await ask(origin)
    assert asked == ["name.test"]
    assert upstream.requests[1].headers["host"] == "name.test:1"


async def test_other_addresses_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that refuses, or of a family that is not there, does not matter."""
    async with FaultyUpstream([[OK]]) as upstream:
        dead = ("127.0.0.1", unused_port())
        answer_lookups(monkeypatch, ("100::1", 9), dead, ("127.0.0.1", upstream.port))
        assert await ask(Origin("http://name.test"), Deadlines()) == b"{}"
        answer_lookups(monkeypatch, dead, dead)
        assert await fails(Origin("http://name.test")) == Code.CONNECTION_REFUSED


async def test_an_address_that_swallows_everything_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next address is tried beside it; the deadline covers all of them together."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as full:
        place = full.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(place)
        async with FaultyUpstream([[OK]]) as upstream:
            answer_lookups(monkeypatch, place, ("127.0.0.1", upstream.port))
            assert await ask(Origin("http://name.test"), Deadlines(connect_s=2)) == b"{}"
            answer_lookups(monkeypatch, place, place)
            assert await fails(Origin("http://name.test")) == Code.CONNECT_TIMEOUT
        for filler in fillers:
            filler.close()


async def test_cancelling_while_connecting_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a socket nor a place in the pool."""
    answer_lookups(monkeypatch)
    origin = Origin("http://name.test", limits=ClientLimits(max_connections=1))
    task = asyncio.ensure_future(ask(origin))
    await asyncio.sleep(0.01)
    assert origin.open_count == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert origin.open_count == 0


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate and its key for `name.test` and 127.0.0.1, signed by itself."""
    return Authority(tmp_path_factory.mktemp("tls"), "name.test").file


def secure(certificate: Path) -> SecureUpstream:
    """Return an upstream behind TLS."""
    return SecureUpstream([[OK]], certificate)


def trusting(certificate: Path) -> Network:
    """Return a network whose only further authority is the certificate."""
    return Network(ca_file=str(certificate))


async def test_requests_go_over_tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is sent and verified, and the connection is used again."""
    async with secure(certificate) as upstream:
        answer_lookups(monkeypatch, ("127.0.0.1", upstream.port))
        origin = Origin("https://name.test", network=trusting(certificate))
        for _ in range(2):
            assert await (await origin.send("POST", "/", [], b"{}" * 100_000)).read() == b"{}"
        answer = await origin.send("POST", "/", [], b"{}")
        pieces: list[bytes] = []
        await answer.pipe(pieces.append)
        assert pieces == [b"{}"]
        await origin.close()
        assert upstream.connections == 1
        assert upstream.names == ["name.test"]
        assert [len(sent.body) for sent in upstream.requests] == [200_000, 200_000, 2]


@pytest.mark.parametrize("case", ["unknown authority", "another name"])
async def test_a_certificate_that_does_not_fit_is_refused(
    case: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent."""
    async with secure(certificate) as upstream:
        answer_lookups(monkeypatch, ("127.0.0.1", upstream.port))
        name = "name.test" if case == "unknown authority" else "other.test"
        network = Network() if case == "unknown authority" else trusting(certificate)
        origin = Origin(f"https://{name}", network=network)
        assert await fails(origin, Deadlines()) == Code.TLS_FAILURE
        assert upstream.calls == 0


async def test_a_server_without_tls_is_refused() -> None:
    """It has the code of TLS."""
    async with FaultyUpstream([[OK]], greeting=[OK]) as upstream:
        origin = Origin(upstream.url.replace("http:", "https:"))
        assert await fails(origin, Deadlines()) == Code.TLS_FAILURE


async def test_a_handshake_that_does_not_end_is_bounded() -> None:
    """By the connect deadline, and by cancelling."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        url = f"https://127.0.0.1:{server.getsockname()[1]}"
        assert await fails(Origin(url)) == Code.CONNECT_TIMEOUT
        accepted, _ = server.accept()
        accepted.close()
        task = asyncio.ensure_future(ask(Origin(url), Deadlines()))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        accepted, _ = server.accept()
        with closing(accepted):
            accepted.settimeout(0.5)
            while accepted.recv(4096):  # its greeting, then the end
                pass


async def test_cancelling_closes_a_tls_connection_at_once(certificate: Path) -> None:
    """Without waiting for the other side's farewell."""
    async with secure(certificate) as upstream:
        upstream.scripts = [[b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab"]]
        url = f"https://127.0.0.1:{upstream.port}"
        origin = Origin(url, network=trusting(certificate))
        answer = await origin.send("POST", "/", [], b"{}")
        task = asyncio.ensure_future(answer.read())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await upstream.wait_departure(0.5)
        assert origin.open_count == 0
        await origin.close()
