"""How the outside is reached: addresses, proxies, trusted certificates, deadlines and limits.

Network(https_proxy="http://user:password@proxy.example:3128", no_proxy="localhost,.corp.example")
Network(ca_file="/etc/ssl/company.pem")
"""

import ipaddress
import os
import ssl
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from math import isfinite
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from msgspec import Struct
from msgspec.structs import asdict

from surecall.base.errors import ConfigError, invalid_config
from surecall.base.limits import MAX_BODY_BYTES, MIB
from surecall.base.redaction import Secret, excerpt

_KEPT: Final = "/%:@!$&'()*+,;=~-._"
"""What the path of a URL may have as it is; escapes are not escaped again."""


def split_base_url(base_url: str) -> SplitResult:
    """Return the parts of a usable base URL; raise `ConfigError` for any other.

    Messages never repeat the URL: it may hold a password or a key.
    """
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in base_url):
        raise _refusal("contains a space or a control character", "Remove it.")
    try:
        parts = urlsplit(base_url)
        port_is_usable = parts.port != 0
        ascii_host(parts)
    except ValueError:
        raise _refusal("is not a URL", "Write it like https://api.example.com/v1.") from None
    if parts.scheme not in {"http", "https"}:
        raise _refusal(
            "does not begin with http:// or https://", "Write it like http://127.0.0.1:8000."
        )
    if "@" in parts.netloc:
        raise _refusal(
            "contains user information",
            "Give the key apart from it; it is sent in a header.",
        )
    if not parts.hostname or not port_is_usable:
        raise _refusal("has no usable host or port", "Write it like https://api.example.com/v1.")
    if "?" in base_url or "#" in base_url:
        raise _refusal(
            "contains a query or a fragment",
            "Leave it off; what the provider needs with every request goes into headers.",
        )
    return parts


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    name = host.strip("[]").lower()
    return name in {"localhost", "::1"} or name.startswith("127.")


def ascii_host(parts: SplitResult) -> str:
    """Return the host of a URL as it is looked up and sent; raise `ValueError` for none."""
    host = parts.hostname or ""
    return host if host.isascii() else host.encode("idna").decode("ascii")


def split_url(url: str) -> tuple[str, str]:
    """Return the origin of a URL and the target of a request there, all of it in ASCII."""
    parts = urlsplit(url)
    target = quote(parts.path or "/", safe=_KEPT) + (f"?{parts.query}" if parts.query else "")
    return f"{parts.scheme}://{parts.netloc}", target


def join_url(
    base_url: str, api_prefix: str | None, path: str, *, default_prefix: str = "/v1"
) -> str:
    """Return the URL of `path` below the provider's prefix.

    Without a prefix given (`None`), the default is used for a base URL that has no path, and the
    base URL's own path otherwise. A base URL that already ends in the prefix keeps it once.
    """
    parts = split_base_url(base_url)
    base_path = parts.path.rstrip("/")
    tail = "/" + path.strip("/")
    if tail != "/" and base_path.endswith(tail):
        raise _refusal(f"already ends in {tail}", f"Leave {tail} off; it is added for you.")
    if api_prefix is None:
        prefix = "" if base_path else default_prefix
    else:
        prefix = _clean_prefix(api_prefix)
    if prefix and (base_path == prefix or base_path.endswith(prefix)):
        prefix = ""
    return f"{parts.scheme}://{parts.netloc}{base_path}{prefix}{tail.rstrip('/')}"


def _clean_prefix(api_prefix: str) -> str:
    if any(ord(char) <= 0x20 or char in "?#" for char in api_prefix) or "//" in api_prefix:
        raise invalid_config(
            f"The API prefix {api_prefix!r} is not a plain path.",
            "Write it like /v1, or '' for none.",
        )
    trimmed = api_prefix.strip("/")
    return f"/{trimmed}" if trimmed else ""


def _refusal(problem: str, hint: str) -> ConfigError:
    return invalid_config(f"The base URL {problem}.", hint)


_PROXY_PORTS: Final = {"http": 3128, "https": 443}


class Network(Struct, frozen=True, kw_only=True):
    """Proxies and certificates; without any, servers are reached directly and verified as usual."""

    http_proxy: str = ""
    """Proxy for `http` addresses, which forwards requests."""
    https_proxy: str = ""
    """Proxy for `https` addresses, which only passes bytes on (CONNECT)."""
    no_proxy: str = ""
    """Hosts that are reached directly: names with their subdomains, addresses, networks, or `*`."""
    cert_file: str = ""
    """Authorities to trust instead of the system's."""
    cert_dir: str = ""
    ca_file: str = ""
    """Authorities to trust besides."""
    client_cert_file: str = ""
    """Our own certificate, for servers that ask for one."""
    client_key_file: str = ""
    """Its key, unless it is in the same file."""

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if getattr(self, name)]
        return f"Network({', '.join(f'{name}=...' for name in names)})"  # a proxy has a password

    def proxy_for(self, scheme: str, host: str, port: int) -> "Proxy | None":
        """Return the proxy to an address, or `None` where there is none.

        Raises:
            ConfigError: The proxy that is set cannot be used.
        """
        given = self.https_proxy if scheme == "https" else self.http_proxy
        if not given or _is_direct(self.no_proxy, host, port):
            return None
        return _parse_proxy(given, f"{scheme.upper()}_PROXY")

    def tls_context(self) -> ssl.SSLContext:
        """Return what secure connections are made with; it always verifies.

        Raises:
            ConfigError: A file cannot be used.
        """
        files = (self.cert_file, self.ca_file, self.client_cert_file, self.client_key_file)
        stamps = tuple(os.stat(file).st_mtime_ns if _is_file(file) else 0 for file in files)
        return _make_context(self, stamps)


class Proxy(Struct, frozen=True):
    """A proxy: where it is, and what it is told about who asks."""

    host: str
    port: int
    is_secure: bool
    """Whether the connection to the proxy itself is encrypted."""
    auth: Secret | None = None
    """User and password, as they are sent."""
    password: Secret | None = None
    """Known while the proxy is, so that it is taken out of everything."""

    @property
    def address(self) -> str:
        """Host and port, for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """What is sent to the proxy alone."""
        return (("Proxy-Authorization", self.auth.reveal()),) if self.auth is not None else ()


def _parse_proxy(given: str, variable: str) -> Proxy:
    text = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _refuse_proxy(variable, "is not an address") from None
    if parts.scheme not in _PROXY_PORTS:
        raise _refuse_proxy(
            variable, f"is a {excerpt(parts.scheme, 20)} proxy, which is not supported"
        )
    if not host or port == 0 or not text.isprintable() or " " in text or not host.isascii():
        raise _refuse_proxy(variable, "is not an address")
    auth = password = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        auth = Secret(f"Basic {b64encode(pair.encode()).decode()}")
        password = Secret(unquote(parts.password or ""))
    return Proxy(host, port or _PROXY_PORTS[parts.scheme], parts.scheme == "https", auth, password)


def _refuse_proxy(variable: str, problem: str) -> ConfigError:
    return invalid_config(
        f"The proxy in {variable} {problem}.",
        "Write it like http://proxy.example:3128 or http://user:password@proxy.example:3128.",
    )


def _is_direct(no_proxy: str, host: str, port: int) -> bool:
    """Tell whether a host is among those that are reached without a proxy."""
    host = host.lower().rstrip(".")
    address = _parse_address(host)
    for entry in no_proxy.lower().replace(",", " ").split():
        name, is_named = entry.rpartition("://")[2], True
        if name == "*":
            return True
        head, colon, tail = name.rpartition(":")
        if colon and tail.isdigit() and (head.endswith("]") or ":" not in head):
            name, is_named = head, int(tail) == port
        name = name.strip("[]")
        if not is_named or not name:
            continue
        if address is not None:
            try:
                if address in ipaddress.ip_network(name, strict=False):
                    return True
            except ValueError:
                pass
            continue
        name = name.removeprefix("*").strip(".")
        if name and (host == name or host.endswith(f".{name}")):
            return True
    return False


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@lru_cache(maxsize=8)
def _make_context(network: Network, _stamps: tuple[int, ...]) -> ssl.SSLContext:
    context = ssl.create_default_context(
        cafile=_require(network.cert_file, "SSL_CERT_FILE", _is_file) or None,
        capath=_require(network.cert_dir, "SSL_CERT_DIR", os.path.isdir) or None,
    )
    if network.ca_file:
        file = _require(network.ca_file, "ca_file", _is_file)
        try:
            context.load_verify_locations(cafile=file)
        except (ssl.SSLError, OSError):
            raise _bad_file("ca_file", "has no certificates in PEM form") from None
    if network.client_cert_file:
        cert = _require(network.client_cert_file, "client_cert_file", _is_file)
        key = _require(network.client_key_file, "client_key_file", _is_file)
        try:
            context.load_cert_chain(cert, key or None, password=_refuse_password)
        except (ssl.SSLError, OSError):
            problem = "and its key cannot be used: they are not in PEM form, or do not fit"
            raise _bad_file("client_cert_file", problem) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def _is_file(path: str) -> bool:
    return bool(path) and os.path.isfile(path)


def _require(path: str, name: str, is_there: Callable[[str], bool]) -> str:
    if path and not is_there(path):
        raise _bad_file(name, "is not there")
    return path


def _refuse_password() -> str:
    raise _bad_file("client_cert_file", "has a key with a password, which nobody is asked for")


def _bad_file(name: str, problem: str) -> ConfigError:
    return invalid_config(
        f"{name} names a file or folder that {problem}."
        if problem == "is not there"
        else f"The file in {name} {problem}.",
        "Check the path; certificates and keys are files in PEM form.",
    )


KIB = 1024


class Deadlines(Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds, for each part of one attempt.

    Every deadline holds for one attempt; what is spent between attempts is bounded by
    `RetryPolicy.max_wait_s`. A deadline that passed is not tried again.
    """

    connect_s: float = 5.0
    """Name resolution, all addresses of the host together, and the TLS handshake."""
    first_byte_s: float = 60.0
    """From the request being sent until the response headers are there."""
    idle_s: float = 60.0
    """Between two arrivals of body bytes."""
    total_s: float = 600.0
    """From the start of the attempt until the last byte."""

    def __post_init__(self) -> None:
        _check_positive(self)


class WireLimits(Struct, frozen=True, kw_only=True):
    """How large an answer may be, counted after decompression."""

    max_body_bytes: int = MAX_BODY_BYTES
    max_stream_bytes: int = 128 * MIB
    max_error_body_bytes: int = 512 * 1024
    """How much of an error answer is read; the rest is left unread."""
    max_ratio: int = 100
    """Decoded bytes per compressed byte, once `ratio_free_bytes` have been decoded."""
    ratio_free_bytes: int = MIB

    def __post_init__(self) -> None:
        _check_positive(self)


def _check_positive(settings: Struct) -> None:
    for name, value in asdict(settings).items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            problem = f"is {type(value).__name__}, not a number"
        elif not (isfinite(value) and value > 0):
            problem = f"is {value}"
        else:
            continue
        raise invalid_config(
            f"{type(settings).__name__}.{name} {problem}.", "Give a finite number above zero."
        )


class ClientLimits(WireLimits, frozen=True, kw_only=True):
    """How many connections there are to one upstream, and how large its replies may be.

    Sizes of bodies are counted after decompression.
    """

    max_connections: int = 256
    max_waiting: int = 128
    """Requests that wait for a connection when all are in use; more are refused at once."""
    max_wait_s: float = 5.0
    max_idle_s: float = 30.0
    """How long an unused connection is kept."""
    max_header_bytes: int = 64 * KIB
    """Status line and headers, those of interim replies included; also trailers."""
    max_headers: int = 256
    max_unread_bytes: int = 256 * KIB
    """How much of a body is taken off the wire before somebody reads it."""
