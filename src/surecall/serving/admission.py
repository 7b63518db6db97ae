"""Which requests a server on this machine takes: those of programs, not those of other web sites.

A page in a browser can send requests to a local address: straight away, as a form or a script, or
after its own name was made to point there (DNS rebinding). Nothing is parsed here that could be
parsed in two ways: a `Host` is one of the given texts, or it is foreign.
"""

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from surecall.base.errors import Code

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "::1")
"""Names by which a server on this machine is known."""

_DEFAULT_PORT: Final = 80
_OWN_SITES: Final = frozenset({"none", "same-origin"})
_WITH_BODY: Final = frozenset({"PATCH", "POST", "PUT"})
_JSON: Final = "application/json"
_SOCKET_HEADERS: Final = frozenset(
    {"sec-websocket-key", "sec-websocket-protocol", "sec-websocket-version"}
)


class Refusal(Struct, frozen=True):
    """Why a request is not taken, and how that is answered."""

    status: int
    code: Code
    message: str


def list_hosts(port: int, names: Iterable[str] = LOOPBACK_NAMES) -> frozenset[str]:
    """Return every `Host` under which a server at a port is known by these names or addresses."""
    hosts = {f"[{name}]" if ":" in name else name.lower() for name in names if name}
    found = {f"{host}:{port}" for host in hosts}
    return frozenset(found | hosts if port == _DEFAULT_PORT else found)


def check_admission(
    method: str, headers: Iterable[tuple[str, str]], hosts: Collection[str]
) -> Refusal | None:
    """Return why a request must be refused, or `None`.

    Args:
        method: The method, in capitals.
        headers: All headers as they arrived, names in any case; one that came twice is there twice.
        hosts: The only values of `Host` that are the server's own, as `list_hosts` returns them.
    """
    fields: dict[str, list[str]] = {}
    for name, value in headers:
        fields.setdefault(name.lower(), []).append(value.strip(" \t"))
    given = fields.get("host", [])
    host = given[0].lower() if len(given) == 1 and given[0].isascii() else ""
    if host not in hosts:
        return Refusal(403, Code.FOREIGN_HOST, _describe_host(given))
    if any(origin.lower() != f"http://{host}" for origin in fields.get("origin", ())):
        return Refusal(403, Code.FOREIGN_ORIGIN, "Pages of other sites are not served.")
    if not _OWN_SITES.issuperset(site.lower() for site in fields.get("sec-fetch-site", ())):
        return Refusal(403, Code.FOREIGN_ORIGIN, "Requests that another site caused are refused.")
    upgrades = " ".join(fields.get("upgrade", ())).lower()
    if _SOCKET_HEADERS & fields.keys() or "websocket" in upgrades:
        return Refusal(400, Code.INVALID_REQUEST, "WebSocket is not served here.")
    kinds = [kind.partition(";")[0].strip(" \t").lower() for kind in fields.get("content-type", ())]
    if method in _WITH_BODY and kinds != [_JSON]:
        return Refusal(415, Code.UNSUPPORTED_CONTENT_TYPE, f"The body must be {_JSON}.")
    return None


def _describe_host(given: list[str]) -> str:
    if not given:
        return "The request has no Host header."
    if len(given) > 1:
        return "The request has more than one Host header."
    return "The Host header does not name this server."
