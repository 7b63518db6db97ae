"""Whom the server serves: programs on this machine, and no page of another web site."""

from typing import Any

import pytest

from surecall.base.errors import Code
from surecall.faults import FaultServer, FaultyProvider
from surecall.serving.admission import check_admission, list_hosts

from .wire import BODIES, PATHS, exchange, head_of, split

JSON = "content-type: application/json"
OWN = "host: 127.0.0.1:PORT"

FOREIGN_HOSTS = [
    "localhost.attacker.com:PORT",
    "127.attacker.com:PORT",
    "127.0.0.1.nip.io:PORT",
    "attacker.com",
    "attacker.com:PORT",
    "attacker.com#localhost:PORT",
    "attacker.com/127.0.0.1:PORT",
    "attacker.com?localhost:PORT",
    "localhost@attacker.com:PORT",
    "user@127.0.0.1:PORT",
    "user:secret@localhost:PORT",
    "127.0.0.1:PORT@attacker.com",
    "127.0.0.1",
    "localhost",
    "localhost:1",
    "localhost:PORT0",
    "localhost:0PORT",
    "localhost:+PORT",
    "localhost:PORT,attacker.com",
    "localhost:PORT attacker.com",
    "localhost.:PORT",
    ".localhost:PORT",
    "xlocalhost:PORT",
    "127.0.0.1:",
    "0.0.0.0:PORT",
    "127.1:PORT",
    "127.0.0.2:PORT",
    "0x7f000001:PORT",
    "2130706433:PORT",
    "0177.0.0.1:PORT",
    "[::]:PORT",
    "[::ffff:127.0.0.1]:PORT",
    "[0:0:0:0:0:0:0:1]:PORT",
    "::1:PORT",
    "[::1%25lo]:PORT",
    "http://127.0.0.1:PORT",
    "\xedocalhost:PORT",
    "",
]
FOREIGN_ORIGINS = [
    "null",
    "http://attacker.com",
    "https://attacker.com",
    "http://localhost.attacker.com:PORT",
    "http://127.0.0.1:PORT.attacker.com",
    "http://127.0.0.1:PORT@attacker.com",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://localhost:PORT",
    "http://[::1]:PORT",
    "https://127.0.0.1:PORT",
    "http://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT http://attacker.com",
    "127.0.0.1:PORT",
    "file://",
    "chrome-extension://abcdef",
    "",
]
OTHER_TYPES = [
    "text/plain",
    "text/plain; application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=application/json",
    "text/json",
    "application/jsonx",
    "application/json, text/plain",
    "*/*",
    "",
]


def _case(name: str, status: int, code: Code, *headers: str) -> Any:
    return pytest.param(headers, status, code, id=name)


REFUSED = [
    *(_case(f"host {v}", 403, Code.FOREIGN_HOST, f"host: {v}", JSON) for v in FOREIGN_HOSTS),
    _case("no host", 403, Code.FOREIGN_HOST, JSON),
    _case("two hosts", 403, Code.FOREIGN_HOST, OWN, "host: attacker.com", JSON),
    _case("two hosts, own last", 403, Code.FOREIGN_HOST, "host: attacker.com", OWN, JSON),
    _case("the own host twice", 403, Code.FOREIGN_HOST, OWN, OWN, JSON),
    _case("forwarded", 403, Code.FOREIGN_HOST, "host: attacker.com", f"x-forwarded-{OWN}", JSON),
    *(
        _case(f"origin {v}", 403, Code.FOREIGN_ORIGIN, OWN, f"origin: {v}", JSON)
        for v in FOREIGN_ORIGINS
    ),
    _case(
        "two origins",
        403,
        Code.FOREIGN_ORIGIN,
        OWN,
        "origin: http://127.0.0.1:PORT",
        "origin: http://attacker.com",
        JSON,
    ),
    *(
        _case(f"site {v}", 403, Code.FOREIGN_ORIGIN, OWN, f"sec-fetch-site: {v}", JSON)
        for v in ("cross-site", "same-site", "Cross-Site", "none, cross-site", "")
    ),
    *(
        _case(f"type {v}", 415, Code.UNSUPPORTED_CONTENT_TYPE, OWN, f"content-type: {v}")
        for v in OTHER_TYPES
    ),
    _case("no type", 415, Code.UNSUPPORTED_CONTENT_TYPE, OWN),
    _case("two types", 415, Code.UNSUPPORTED_CONTENT_TYPE, OWN, JSON, "content-type: text/plain"),
    _case(
        "websocket",
        400,
        Code.INVALID_REQUEST,
        OWN,
        JSON,
        "connection: upgrade",
        "upgrade: webSocket",
    ),
    _case("websocket key", 400, Code.INVALID_REQUEST, OWN, JSON, "sec-websocket-key: x"),
]


def code_in(protocol: str, body: dict[str, Any]) -> str:
    """Return the code of a refusal, from where the format has it; its shape must be right."""
    error = body["error"]
    assert isinstance(error["message"], str)
    if protocol == "messages":
        assert body["type"] == "error"
        assert error["type"].endswith("_error")
        return error["code"]
    if protocol == "gemini":
        assert isinstance(error["code"], int)
        assert error["status"].isupper()
        return error["details"][0]["reason"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error["code"]


@pytest.mark.parametrize(("headers", "status", "code"), REFUSED)
async def test_what_another_site_can_send_is_refused_at_every_endpoint(
    headers: tuple[str, ...], status: int, code: Code
) -> None:
    """Each way in is closed with a code, in the shape of the endpoint, and nothing is asked."""
    async with FaultServer(FaultyProvider()) as server:
        for protocol, path in PATHS.items():
            data = b'{"model": "m"}'
            sent = head_of(f"POST {path}", *headers, f"content-length: {len(data)}", host=None)
            found, body = split(await exchange(server, sent + data))
            assert (found, code_in(protocol, body)) == (status, code)
        assert server.provider.requests == 0


@pytest.mark.parametrize("start", ["GET /v1/models", "GET /faults", "OPTIONS /v1/messages"])
@pytest.mark.parametrize(
    "headers",
    [
        ("host: attacker.com:PORT",),
        (OWN, "origin: http://attacker.com"),
        (OWN, "sec-fetch-site: cross-site"),
        (OWN, "upgrade: websocket"),
    ],
)
async def test_nothing_can_be_read_by_another_site_either(
    start: str, headers: tuple[str, ...]
) -> None:
    """What needs no body is closed to other sites too, and no answer allows any of them."""
    async with FaultServer(FaultyProvider()) as server:
        answer = await exchange(server, head_of(start, *headers, host=None))
    assert split(answer)[0] in {400, 403}
    assert b"access-control" not in answer.lower()


@pytest.mark.parametrize(
    "headers",
    [
        (OWN, JSON),
        ("Host: localhost:PORT", "Content-Type: application/json; charset=utf-8"),
        ("host: LocalHost:PORT", "content-type: Application/JSON"),
        ("host:[::1]:PORT", JSON),
        (OWN, JSON, "origin: http://127.0.0.1:PORT", "sec-fetch-site: same-origin"),
        (OWN, JSON, "sec-fetch-site: none"),
        (OWN, JSON, "connection: upgrade, http2-settings", "upgrade: h2c"),
        ("host: box.lan:80", JSON),
    ],
)
async def test_programs_and_own_pages_are_served(headers: tuple[str, ...]) -> None:
    """Every name of the server itself is taken, and any that was allowed."""
    async with FaultServer(FaultyProvider(), allow_hosts=["Box.lan:80"]) as server:
        for protocol, path in PATHS.items():
            data = str({"model": "m"} | BODIES[protocol]).replace("'", '"').encode()
            sent = head_of(f"POST {path}", *headers, f"content-length: {len(data)}", host=None)
            answer = await exchange(server, sent + data)
            assert answer.startswith(b"HTTP/1.1 200"), protocol


async def test_the_address_of_the_connection_is_a_name_of_the_server() -> None:
    """Bound to every address, it is known by the one that the client reached it at."""
    async with FaultServer(FaultyProvider(), host="0.0.0.0") as server:
        for host, status in (
            ("127.0.0.1:PORT", 200),
            ("0.0.0.0:PORT", 200),
            ("10.0.0.1:PORT", 403),
        ):
            answer = await exchange(server, head_of("GET /v1/models", host=host))
            assert split(answer)[0] == status


def test_without_a_port_only_the_usual_one_is_meant() -> None:
    """A host without a port is the server's own only where browsers leave it out."""
    pairs = [("Host", "localhost"), ("Origin", "http://localhost")]
    assert check_admission("GET", pairs, list_hosts(80)) is None
    refusal = check_admission("GET", pairs, list_hosts(8080))
    assert refusal is not None
    assert refusal.code == Code.FOREIGN_HOST
