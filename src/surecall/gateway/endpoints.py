"""What is served, where, and which role a virtual key needs for it."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import unquote

from msgspec import Struct

from surecall.base.errors import Code, ProviderStatusError
from surecall.wire import WireProtocol, find_protocol

from .headers import Head
from .settings.tables import RELAYED_PATHS, Role

_GEMINI: Final = re.compile(
    r"/v1(?:beta|alpha)?/(?:models|tunedModels)/(?P<model>[^?#]+):"
    r"(?P<method>generateContent|streamGenerateContent)"
)
_PREFIXES: Final = ("/v1/", "/v1beta/", "/v1alpha/")
_UNSAFE_PATH: Final = re.compile(r"\.\.|//|\\|%2e|%2f|%5c|[\x00-\x20\x7f]", re.IGNORECASE)
_PART: Final = re.compile(r"[A-Za-z0-9_.-]{1,200}")
MODEL_PATHS: Final[Mapping[str, str]] = {
    "/v1/chat/completions": "chat_completions",
    "/v1/messages": "messages",
    "/v1/responses": "responses",
}
_RELAYED_METHODS: Final = frozenset({"DELETE", "GET", "PATCH", "POST", "PUT"})

Kind = Literal["model", "models", "relay", "health", "ready", "metrics", "reload", "dashboard"]


class Endpoint(Struct, frozen=True):
    """Something the gateway serves."""

    method: str
    path: str
    """With `{model}` and `{path}` for what may be anything."""
    role: Role | None
    """The role that a virtual key needs; `None` is for everybody."""
    kind: Kind


DASHBOARD: Final = (
    *(
        Endpoint("GET", path, None, "dashboard")
        for path in (
            "/ui",
            "/ui/requests",
            "/ui/requests/{id}",
            "/ui/approvals",
            "/ui/approvals/{id}",
            "/ui/models",
        )
    ),
    Endpoint("GET", "/ui/assets/{name}", None, "dashboard"),
    Endpoint("GET", "/ui/data/session", None, "dashboard"),
    Endpoint("POST", "/ui/data/session", None, "dashboard"),
    Endpoint("POST", "/ui/data/session/end", None, "dashboard"),
    Endpoint("GET", "/ui/data/overview", "read-only", "dashboard"),
    Endpoint("GET", "/ui/data/requests", "read-only", "dashboard"),
    Endpoint("GET", "/ui/data/requests/{id}", "read-only", "dashboard"),
    Endpoint("GET", "/ui/data/requests/{id}/case", "read-only", "dashboard"),
    Endpoint("POST", "/ui/data/requests/{id}/replay", "admin", "dashboard"),
    Endpoint("GET", "/ui/data/approvals", "read-only", "dashboard"),
    Endpoint("GET", "/ui/data/approvals/{id}", "read-only", "dashboard"),
    Endpoint("POST", "/ui/data/approvals/{id}/approve", "admin", "dashboard"),
    Endpoint("POST", "/ui/data/approvals/{id}/deny", "admin", "dashboard"),
    Endpoint("POST", "/ui/data/approvals/{id}/commit", "admin", "dashboard"),
    Endpoint("GET", "/ui/data/models", "read-only", "dashboard"),
    Endpoint("POST", "/ui/data/models/probe", "admin", "dashboard"),
)
"""Pages and their script are for everybody, since they hold nothing; what they show is not."""
ENDPOINTS: Final = (
    Endpoint("POST", "/v1/chat/completions", "call", "model"),
    Endpoint("POST", "/v1/responses", "call", "model"),
    Endpoint("POST", "/v1/messages", "call", "model"),
    Endpoint("POST", "/v1beta/models/{model}:generateContent", "call", "model"),
    Endpoint("POST", "/v1beta/models/{model}:streamGenerateContent", "call", "model"),
    Endpoint("GET", "/v1/models", "call", "models"),
    Endpoint("GET", "/v1beta/models", "call", "models"),
    *(Endpoint(method, "/v1/{path}", "call", "relay") for method in sorted(_RELAYED_METHODS)),
    *(Endpoint(method, "/v1beta/{path}", "call", "relay") for method in sorted(_RELAYED_METHODS)),
    Endpoint("GET", "/healthz", None, "health"),
    Endpoint("GET", "/readyz", None, "ready"),
    Endpoint("GET", "/metrics", "read-only", "metrics"),
    Endpoint("POST", "/admin/reload", "admin", "reload"),
    *DASHBOARD,
)
"""Everything that is served; the test of keys walks through it."""
_PLAIN: Final = {(item.method, item.path): item for item in ENDPOINTS if "{" not in item.path}
_PLAIN_PATHS: Final = frozenset(path for _, path in _PLAIN)
MODEL_ENDPOINT: Final = Endpoint("POST", "", "call", "model")
_NO_PAGES: Final = ("/ui/data/", "/ui/assets/")
_RELAY: Final = Endpoint("", "", "call", "relay")
_DASHBOARD_PATTERNS: Final = tuple(
    (re.compile(re.sub(r"\{\w+\}", r"[\\w.-]{1,100}", item.path), re.ASCII), item)
    for item in DASHBOARD
    if "{" in item.path
)

_MODEL_METHODS: Final[Mapping[str, str]] = {
    "": "GET",
    "batchEmbedContents": "POST",
    "countTokens": "POST",
    "embedContent": "POST",
}
"""What may be done with a model by its name, with a key of the gateway."""

EVENTS_ONLY: Final = ProviderStatusError(
    Code.INVALID_REQUEST, "Streams are served as events only: add ?alt=sse.", status=400
)
_protocols: dict[str, WireProtocol] = {}


def protocol_of(name: str) -> WireProtocol:
    """Return a format; there is one of each."""
    found = _protocols.get(name)
    if found is None:
        found = _protocols[name] = find_protocol(name)
    return found


def may_relay(method: str, rest: str, listed: Collection[str]) -> bool:
    """Tell whether a path below the prefix is relayed with a key of the gateway.

    Args:
        method: The method of the request.
        rest: The path as it came, without the prefix and the query.
        listed: The paths of the settings, such as `batches`, for reading and adding, or with their
            method, such as `DELETE files/*`. What is listed by default only takes POST, unless it
            has a method. `*` is one part of a path, such as an id.
    """
    kind, _, tail = rest.partition("/")
    if kind == "models" and tail:
        return _MODEL_METHODS.get(unquote(tail).partition(":")[2]) == method
    plain = ("POST",) if rest in RELAYED_PATHS else ("GET", "POST")
    if f"{method} {rest}" in listed or (method in plain and rest in listed):
        return True
    parts = f"{method} {rest}".split("/")
    return any("*" in item and _fits(item.split("/"), parts) for item in listed)


def _fits(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    return len(pattern) == len(parts) and all(
        wanted == part or (wanted == "*" and _PART.fullmatch(part))
        for wanted, part in zip(pattern, parts, strict=True)
    )


def find_endpoint(
    method: str, path: str, raw_path: bytes
) -> tuple[Endpoint, WireProtocol | None, tuple[str, bool] | None]:
    """Return what is at a path, in which format, and what the path itself says."""
    plain = _PLAIN.get((method, path))
    if plain is not None:
        return plain, None, None
    if path in _PLAIN_PATHS:
        raise ProviderStatusError(Code.NOT_FOUND, f"{method} is not served at {path}.", status=405)
    if path.startswith("/ui/"):
        for pattern, item in _DASHBOARD_PATTERNS:
            if item.method == method and pattern.fullmatch(path):
                return item, None, None
    found = _GEMINI.fullmatch(path)
    if found is not None and method == "POST":
        named = (unquote(found["model"]), found["method"] == "streamGenerateContent")
        return MODEL_ENDPOINT, protocol_of("gemini"), named
    if method in _RELAYED_METHODS and path.startswith(_PREFIXES):
        if _UNSAFE_PATH.search(raw_path.decode("latin-1")):
            raise ProviderStatusError(Code.NOT_FOUND, "The path is not usable.", status=404)
        return _RELAY, None, None
    raise ProviderStatusError(Code.NOT_FOUND, "There is nothing at this path.", status=404)


def may_visit(head: Head, scope: Any, own_names: Collection[str]) -> bool:
    """Tell whether a refused request may still visit the dashboard.

    A link of another site may lead to a page: pages hold nothing, and what they show they ask for
    themselves. And where TLS ends in front of the gateway, the origin of its own pages has another
    scheme; `own_names` are the values of `Host` that the settings allow there.
    """
    path: str = scope["path"]
    if head.refusal is None or head.refusal.code != Code.FOREIGN_ORIGIN:
        return False
    if path != "/ui" and not path.startswith("/ui/"):
        return False
    headers = {name: value.decode("latin-1").lower() for name, value in scope["headers"]}
    origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site", "same-origin")
    if origin is None:
        is_page = scope["method"] == "GET" and not path.startswith(_NO_PAGES)
        follows = headers.get(b"sec-fetch-mode") == "navigate"
        return is_page and follows and headers.get(b"sec-fetch-dest") == "document"
    host = headers.get(b"host", "")
    return site == "same-origin" and host in own_names and origin == f"https://{host}"


def guess_protocol(path: str, head: Head) -> WireProtocol:
    """Return the format in which a path is answered that has none of its own."""
    if path in MODEL_PATHS:
        return protocol_of(MODEL_PATHS[path])
    if path.startswith(("/v1beta", "/v1alpha")):
        return protocol_of("gemini")
    if path.startswith("/v1/messages") or any(n == "anthropic-version" for n, _ in head.formal):
        return protocol_of("messages")
    return protocol_of("responses" if path.startswith("/v1/responses") else "chat_completions")


def wants_events(scope: Any) -> bool:
    """Tell whether a client of Gemini's format asks for a stream of events."""
    return b"alt=sse" in scope["query_string"].split(b"&")
