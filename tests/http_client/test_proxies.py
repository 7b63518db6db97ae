"""The way to a server: through proxies of all kinds, and only to whom it trusts."""

import asyncio
import subprocess
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from support.certificates import Authority
from support.proxy import ConnectProxy
from support.secure_upstream import SecureUpstream
from support.upstream import http_response, unused_port
from surecall.base.errors import Code, ConfigError, SurecallError
from surecall.models.client import Network, Origin
from surecall.models.client.network import Deadlines
from surecall.models.config import load_config, read_network

OK = http_response(b"{}")
PATIENT = Deadlines()
PASSWORD = "correct horse: battery@staple"
HOST = "api.test"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of a company."""
    return Authority(tmp_path_factory.mktemp("authority"))


def serve(
    certificate: Path | None = None, *, asks_for: Path | None = None, speaks_first: bool = False
) -> SecureUpstream:
    """Return an upstream behind TLS, or not."""
    greeting = [OK] if speaks_first and certificate is None else []
    return SecureUpstream([[OK]], certificate, asks_for=asks_for, greeting=greeting)


async def ask(
    url: str, network: Network, *, times: int = 1, deadlines: Deadlines = PATIENT
) -> bytes:
    """Send requests one after another and return the last body."""
    origin = Origin(url, network=network)
    body = b""
    try:
        for _ in range(times):
            answer = await origin.send("POST", "/v1/x?a=b", [], b"{}", deadlines=deadlines)
            body = await answer.read()
    finally:
        await origin.close()
        await asyncio.sleep(0.01)
        assert origin.open_count == 0
    return body


async def fails(url: str, network: Network, deadlines: Deadlines = PATIENT) -> SurecallError:
    """Return the error that a request ends with; no password is in it."""
    with pytest.raises(SurecallError) as caught:
        await ask(url, network, deadlines=deadlines)
    told = f"{caught.value} {caught.value.hint}"
    assert "horse" not in told
    assert "horse" not in repr(network)
    return caught.value


@pytest.mark.parametrize("proxy_has_tls", [False, True], ids=["http", "https"])
async def test_a_proxy_with_a_password_opens_one_way_for_many_requests(
    proxy_has_tls: bool, authority: Authority
) -> None:
    """Nothing but CONNECT reaches the proxy, and the name is verified behind it."""
    certificate = authority.issue("proxy.test") if proxy_has_tls else None
    async with (
        serve(authority.issue(HOST)) as upstream,
        ConnectProxy(
            {f"{HOST}:443": upstream.port}, password=PASSWORD, certificate=certificate
        ) as proxy,
    ):
        network = Network(https_proxy=proxy.url_with("user", PASSWORD), ca_file=str(authority.file))
        assert await ask(f"https://{HOST}", network, times=3) == b"{}"
        assert proxy.asked == [f"CONNECT {HOST}:443 HTTP/1.1"]
        assert (upstream.calls, upstream.connections) == (3, 1)
        assert all("proxy-authorization" not in sent.headers for sent in upstream.requests)


async def test_plain_requests_are_forwarded() -> None:
    """They name the whole address, and the password is for the proxy alone."""
    async with (
        serve() as upstream,
        ConnectProxy({f"{HOST}:8080": upstream.port}, password=PASSWORD) as proxy,
    ):
        network = Network(http_proxy=proxy.url_with("user", PASSWORD))
        assert await ask(f"http://{HOST}:8080", network, times=2) == b"{}"
        assert proxy.asked == [f"POST http://{HOST}:8080/v1/x?a=b HTTP/1.1"]
        assert upstream.requests[0].headers["host"] == f"{HOST}:8080"
        assert "proxy-authorization" not in upstream.requests[0].headers


@dataclass(frozen=True)
class Nasty:
    id: str
    proxy: dict[str, Any]
    code: Code
    says: str
    user: str = ""
    url: str = f"https://{HOST}"


NASTY = [
    Nasty("wants a password", {"password": PASSWORD}, Code.PROXY_AUTH, "demands a user"),
    Nasty("wrong password", {"password": "other"}, Code.PROXY_AUTH, "refuses the user", PASSWORD),
    Nasty(
        "another scheme",
        {"password": PASSWORD, "scheme": "NTLM"},
        Code.PROXY_AUTH,
        "only basic authentication",
        "other one",
    ),
    Nasty(
        "wants a password for a plain request",
        {"password": PASSWORD},
        Code.PROXY_AUTH,
        "demands a user",
        url=f"http://{HOST}",
    ),
    Nasty("refuses", {"mood": "refuses"}, Code.PROXY_REFUSED, "with status 403"),
    Nasty("hangs", {"mood": "hangs"}, Code.CONNECT_TIMEOUT, "through the proxy 127.0.0.1:"),
    Nasty("leaves", {"mood": "leaves"}, Code.PROXY_REFUSED, "no answer in HTTP"),
    Nasty("speaks something else", {"mood": "babbles"}, Code.PROXY_REFUSED, "no answer in HTTP"),
]


@pytest.mark.parametrize("case", NASTY, ids=lambda case: case.id)
async def test_a_proxy_in_the_way_is_named(case: Nasty) -> None:
    """The error says that it is the proxy, and nothing is sent past it."""
    async with (
        serve() as upstream,
        ConnectProxy({f"{HOST}:443": upstream.port, HOST: upstream.port}, **case.proxy) as proxy,
    ):
        url = proxy.url_with("user", case.user) if case.user else proxy.url
        deadlines = Deadlines(connect_s=0.3 if case.code == Code.CONNECT_TIMEOUT else 5)
        error = await fails(case.url, Network(https_proxy=url, http_proxy=url), deadlines)
        assert error.code == case.code
        assert case.says in f"{error} {error.hint}"
        assert str(proxy.port) in f"{error}"
        assert upstream.calls == 0


async def test_a_proxy_that_is_not_there_is_named() -> None:
    """It is not the provider that refuses connections."""
    port = unused_port()
    error = await fails(f"https://{HOST}", Network(https_proxy=f"http://127.0.0.1:{port}"))
    assert error.code == Code.CONNECTION_REFUSED
    assert f"proxy 127.0.0.1:{port}" in str(error)
    assert "NO_PROXY" in str(error.hint)


async def test_cancelling_leaves_the_proxy_at_once() -> None:
    """A way that is being opened is given up."""
    async with ConnectProxy({}, mood="hangs") as proxy:
        origin = Origin(f"https://{HOST}", network=Network(https_proxy=proxy.url))
        task = asyncio.ensure_future(origin.send("POST", "/", [], b"{}"))
        while not proxy.asked:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.01)
        assert origin.open_count == 0
        await origin.close()


@pytest.mark.parametrize("given", ["socks5://127.0.0.1:1080", "http://", "http://[::1", "a b"])
def test_a_proxy_that_cannot_be_used_is_refused_without_repeating_it(given: str) -> None:
    """The message names the variable."""
    network = Network(https_proxy=given)
    with pytest.raises(ConfigError) as caught:
        Origin(f"https://{HOST}", network=network)
    assert "HTTPS_PROXY" in str(caught.value)
    assert Origin(f"http://{HOST}", network=network)  # it is not asked


@pytest.mark.parametrize(
    ("no_proxy", "url", "is_direct"),
    [
        ("api.test", "https://api.test", True),
        (".test", "https://api.test", True),
        ("*.test", "https://api.test", True),
        ("api.test", "https://sub.api.test", True),
        ("api.test", "https://myapi.test", False),
        ("API.Test.", "https://api.test", True),
        ("other, api.test", "https://api.test", True),
        ("other api.test", "https://api.test", True),
        ("api.test:443", "https://api.test", True),
        ("api.test:8443", "https://api.test", False),
        ("*", "https://api.test", True),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.1.2.3:443", "https://10.1.2.3", True),
        ("::1", "https://[::1]:8443", True),
        ("[::1]:443", "https://[::1]:8443", False),
        ("", "https://api.test", False),
        (",,", "https://api.test", False),
    ],
)
def test_no_proxy_lists_who_is_reached_directly(no_proxy: str, url: str, is_direct: bool) -> None:
    """Names with their subdomains, addresses, networks, ports, or everything."""
    origin = Origin(url, network=Network(https_proxy="http://proxy.test:3128", no_proxy=no_proxy))
    host, _, port = origin.address.rpartition(":")
    proxy = Network(https_proxy="http://proxy.test", no_proxy=no_proxy).proxy_for(
        "https", host.strip("[]"), int(port)
    )
    assert (proxy is None) == is_direct


async def test_hosts_of_no_proxy_are_reached_without_it() -> None:
    """A proxy that is not there does no harm."""
    async with serve() as upstream:
        network = Network(http_proxy=f"127.0.0.1:{unused_port()}", no_proxy="127.0.0.0/8")
        assert await ask(f"http://127.0.0.1:{upstream.port}", network) == b"{}"


def test_the_environment_says_how_the_network_is_reached() -> None:
    """Small letters win, ALL_PROXY fills in, and a header of a web server is no proxy."""
    assert read_network({}) == Network()
    both = read_network({"HTTPS_PROXY": "upper:1", "https_proxy": "lower:1", "NO_PROXY": " a "})
    assert (both.https_proxy, both.http_proxy, both.no_proxy) == ("lower:1", "", "a")
    every = read_network({"ALL_PROXY": "all:1", "HTTP_PROXY": "plain:1"})
    assert (every.https_proxy, every.http_proxy) == ("all:1", "plain:1")
    assert read_network({"HTTP_PROXY": "evil:1", "REQUEST_METHOD": "GET"}) == Network()
    files = {"SSL_CERT_FILE": "/a", "SSL_CERT_DIR": "/b", "SURECALL_CA_FILE": "/c"}
    found = read_network(files)
    assert (found.cert_file, found.cert_dir, found.ca_file) == ("/a", "/b", "/c")


def test_settings_say_whom_to_trust(tmp_path: Path) -> None:
    """A file in `surecall.toml` is relative to it, and shows with its origin."""
    (tmp_path / "surecall.toml").write_text('ca_file = "ca.pem"\n')
    config = load_config(cwd=tmp_path, environ={"HTTPS_PROXY": f"http://user:{PASSWORD}@p:1"})
    assert config.network.ca_file == str(tmp_path / "ca.pem")
    assert config.network.https_proxy.endswith("@p:1")
    assert "horse" not in f"{config} {config.render()}"
    changed = config.with_values({"client_cert_file": "c.pem"}, cwd=tmp_path)
    assert changed.network.https_proxy.endswith("@p:1")
    assert changed.network.client_cert_file == str(tmp_path / "c.pem")


# certificates


@dataclass(frozen=True)
class Distrust:
    id: str
    certificate: Callable[[Authority], Path | None]
    says: str
    trusts: bool = True


DISTRUST = [
    Distrust("unknown authority", lambda a: a.issue(HOST), "set ca_file", trusts=False),
    Distrust("expired", lambda a: a.issue(HOST, days=-1), "certificate has expired"),
    Distrust("another name", lambda a: a.issue("other.test"), "not valid for"),
    Distrust("no TLS", lambda _: None, "does not speak TLS"),
]


@pytest.mark.parametrize("is_behind_a_proxy", [False, True], ids=["direct", "proxy"])
@pytest.mark.parametrize("case", DISTRUST, ids=lambda case: case.id)
async def test_a_server_that_cannot_be_trusted_gets_nothing(
    case: Distrust,
    is_behind_a_proxy: bool,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error says what is wrong with it, and what to do."""
    async with (
        serve(case.certificate(authority), speaks_first=True) as upstream,
        ConnectProxy({f"{HOST}:{upstream.port}": upstream.port}) as proxy,
    ):

        async def look_up(host: str, port: int, **_: object) -> list[Any]:
            address = "127.0.0.1" if host == HOST else host
            return [(2, 1, 6, "", (address, port))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
        network = Network(
            https_proxy=proxy.url if is_behind_a_proxy else "",
            ca_file=str(authority.file) if case.trusts else "",
        )
        error = await fails(f"https://{HOST}:{upstream.port}", network, Deadlines(connect_s=3))
        assert error.code == Code.TLS_FAILURE
        assert case.says in f"{error} {error.hint}"
        assert upstream.calls == 0


async def test_a_server_may_ask_who_we_are(authority: Authority) -> None:
    """With a certificate it answers; without one the error says what to set."""
    certificate = authority.issue("127.0.0.1")
    async with serve(certificate, asks_for=authority.file) as upstream:
        url = f"https://127.0.0.1:{upstream.port}"
        trusting = Network(ca_file=str(authority.file))
        own = Network(
            ca_file=str(authority.file), client_cert_file=str(authority.issue("client.test"))
        )
        assert await ask(url, own, deadlines=Deadlines()) == b"{}"
        error = await fails(url, trusting, Deadlines())
        assert error.code in {Code.TLS_FAILURE, Code.CONNECTION_RESET}


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("cert_file", "SSL_CERT_FILE"),
        ("cert_dir", "SSL_CERT_DIR"),
        ("ca_file", "ca_file"),
        ("client_cert_file", "client_cert_file"),
    ],
)
async def test_a_file_that_is_not_there_is_named(field: str, says: str, tmp_path: Path) -> None:
    """Instead of a complaint about the server's certificate."""
    network = Network(**{field: str(tmp_path / "missing.pem")})
    error = await fails("https://127.0.0.1:1", network)
    assert (error.code, says in str(error)) in {
        (Code.INVALID_CONFIG, True),
        (Code.CONNECTION_REFUSED, False),
    }
    with pytest.raises(ConfigError, match=says):
        network.tls_context()


def test_a_file_that_cannot_be_used_is_named(authority: Authority, tmp_path: Path) -> None:
    """Neither nonsense nor a key that wants a password is asked about later."""
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nothing")
    with pytest.raises(ConfigError, match="ca_file"):
        Network(ca_file=str(nonsense)).tls_context()
    with pytest.raises(ConfigError, match="client_cert_file"):
        Network(client_cert_file=str(nonsense)).tls_context()
    locked = authority.issue("client.test", password=b"secret")
    with pytest.raises(ConfigError, match="password"):
        Network(client_cert_file=str(locked)).tls_context()


def test_a_file_that_was_replaced_is_read_again(authority: Authority, tmp_path: Path) -> None:
    """A certificate that was renewed counts for the next connection."""
    file = tmp_path / "ca.pem"
    file.write_bytes(authority.file.read_bytes())
    network = Network(ca_file=str(file))
    first = network.tls_context()
    assert network.tls_context() is first
    file.write_text("nothing")
    with pytest.raises(ConfigError, match="ca_file"):
        network.tls_context()


# a proxy that others made


@pytest.fixture
def tinyproxy(tmp_path: Path) -> Generator[int]:
    """Run tinyproxy, which wants a password; return its port."""
    program = which("tinyproxy")
    if program is None:
        pytest.skip("tinyproxy is not installed")
    port = unused_port()
    settings = tmp_path / "tinyproxy.conf"
    settings.write_text(
        f"Port {port}\nListen 127.0.0.1\nTimeout 20\nMaxClients 20\nAllow 127.0.0.1\n"
        f'LogFile "{tmp_path / "log"}"\nBasicAuth user s3cret\n'
    )
    process = subprocess.Popen([program, "-d", "-c", str(settings)], stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(10)


async def test_tinyproxy_opens_ways_and_forwards(tinyproxy: int, authority: Authority) -> None:
    """Both schemes work with the password, and without it the error says so."""
    async with serve(authority.issue("x")) as secure, serve() as plain:
        for _ in range(1200):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", tinyproxy)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                break
        url = f"http://user:s3cret@127.0.0.1:{tinyproxy}"
        network = Network(https_proxy=url, http_proxy=url, ca_file=str(authority.file))
        patient = Deadlines()
        secure_url = f"https://127.0.0.1:{secure.port}"
        plain_url = f"http://127.0.0.1:{plain.port}"
        assert await ask(secure_url, network, times=2, deadlines=patient) == b"{}"
        assert await ask(plain_url, network, times=2, deadlines=patient) == b"{}"
        assert (secure.calls, plain.calls) == (2, 2)
        url = f"http://127.0.0.1:{tinyproxy}"
        network = Network(https_proxy=url, http_proxy=url, ca_file=str(authority.file))
        for target in (secure_url, plain_url):
            assert (await fails(target, network, patient)).code == Code.PROXY_AUTH
