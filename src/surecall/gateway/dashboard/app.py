"""What `/ui` serves, and to whom: pages for everybody, figures for readers, acts for admins."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from msgspec import Struct

from surecall.errors import Code, ProviderStatusError, StoreError, SurecallError
from surecall.gateway.answers import respond
from surecall.gateway.core import Core, State
from surecall.gateway.endpoints import Endpoint
from surecall.gateway.heads import ClientLeft, Head, read_body
from surecall.gateway.keys import Caller, forbidden, unauthorized
from surecall.gateway.snippets import PLACEHOLDER_KEY, render_snippets
from surecall.jsontext import decode
from surecall.loop.stored import encode_kept
from surecall.narrow import as_fields, text_or_none
from surecall.redaction import open_log

from .cases import make_case
from .lists import list_requests, show_request
from .models import list_models, probe_again
from .overview import Overviews
from .replays import replay
from .sessions import (
    CSRF_HEADER,
    SESSION_S,
    begin_session,
    cookie_name,
    csrf_token,
    find_session,
    is_csrf_token,
    read_cookie,
)
from .shell import FOREVER, PAGE_HEADERS, list_assets, render_page

_log = open_log("surecall.gateway")

_MAX_BODY_BYTES: Final = 64 * 1024


class Visit(Struct, frozen=True):
    """One request to the dashboard."""

    endpoint: Endpoint
    state: State
    head: Head
    scope: Any
    receive: Any
    cookie: str
    caller: Caller | None

    @property
    def item(self) -> str:
        """What the path names where its pattern has a name in braces."""
        at = self.endpoint.path.split("/").index(
            "{id}" if "{id}" in self.endpoint.path else "{name}"
        )
        return self.scope["path"].split("/")[at]

    @property
    def query(self) -> dict[str, str]:
        """The query of the address; of a name that comes twice, the last."""
        text = self.scope["query_string"].decode("latin-1")
        found = parse_qs(text, keep_blank_values=False, max_num_fields=50, errors="replace")
        return {name: values[-1] for name, values in found.items()}

    @property
    def may_act(self) -> bool:
        """Whether whoever asks may do more than look; without keys, everybody on this machine."""
        return not self.state.keyring or (self.caller is not None and self.caller.may("admin"))


class Answer(Struct, frozen=True):
    """What is answered."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    cache: bytes = b"no-store"


Handler = Callable[[Visit], Awaitable[Answer]]


class Dashboard:
    """The pages of one gateway.

    Args:
        core: The gateway, with its store and its requests under way.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._overviews = Overviews(core)
        self._handlers: Mapping[tuple[str, str], Handler] = {
            ("GET", "/ui/assets/{name}"): self._send_asset,
            ("GET", "/ui/data/session"): self._show_session,
            ("POST", "/ui/data/session"): self._begin_session,
            ("POST", "/ui/data/session/end"): self._end_session,
            ("GET", "/ui/data/overview"): self._show_overview,
            ("GET", "/ui/data/requests"): self._list_requests,
            ("GET", "/ui/data/requests/{id}"): self._show_request,
            ("GET", "/ui/data/requests/{id}/case"): self._save_case,
            ("POST", "/ui/data/requests/{id}/replay"): self._replay,
            ("GET", "/ui/data/models"): self._list_models,
            ("POST", "/ui/data/models/probe"): self._probe,
        }

    async def serve(
        self, endpoint: Endpoint, state: State, head: Head, asgi: tuple[Any, Any, Any]
    ) -> None:
        """Serve one request, whose `Host` and origin were looked at."""
        scope, receive, send = asgi
        try:
            visit = self._admit(endpoint, state, head, scope, receive)
            handler = self._handlers.get((endpoint.method, endpoint.path), self._send_page)
            answer = await handler(visit)
        except ClientLeft:
            return
        except SurecallError as error:
            answer = _render_error(error)
        except Exception:
            _log.exception("the dashboard failed at %s", endpoint.path)
            answer = _render_error(SurecallError(Code.INTERNAL_ERROR, "The dashboard failed."))
        await respond(
            send,
            answer.status,
            answer.body,
            content_type=answer.content_type,
            extra=[*PAGE_HEADERS, *answer.headers],
            cache=answer.cache,
        )

    def _admit(
        self, endpoint: Endpoint, state: State, head: Head, scope: Any, receive: Any
    ) -> Visit:
        """Return the visit, or raise why it must not be made."""
        cookie = read_cookie(scope["headers"], _cookie_of(scope))
        caller, by_header = None, False
        if state.keyring:
            caller = state.keyring.find(head.token) if head.token else None
            by_header = caller is not None
            if not head.token:
                caller = find_session(cookie, state.keyring)
            if endpoint.role is not None:
                if caller is None:
                    raise unauthorized("Sign in with a key of this gateway.")
                if not caller.may(endpoint.role):
                    raise forbidden(f"The key {caller.id!r} has the role {caller.settings.role}.")
        if endpoint.method == "POST" and not by_header:
            # A page of another site cannot set a header, neither this one nor one with a key.
            token = dict(scope["headers"]).get(CSRF_HEADER, b"").decode("latin-1")
            if not is_csrf_token(token, cookie):
                raise ProviderStatusError(
                    Code.FOREIGN_ORIGIN,
                    "The request does not come from a page of this gateway.",
                    hint="Open the page again.",
                    status=403,
                )
        return Visit(endpoint, state, head, scope, receive, cookie, caller)

    async def _send_page(self, visit: Visit) -> Answer:
        return Answer(render_page(), content_type="text/html; charset=utf-8")

    async def _send_asset(self, visit: Visit) -> Answer:
        found = list_assets().get(visit.item)
        if found is None:
            raise not_found("There is no such file.")
        kind, body = found
        return Answer(body, content_type=kind, cache=FOREVER)

    # sessions

    async def _show_session(self, visit: Visit) -> Answer:
        settings, caller = visit.state.settings, visit.caller
        needs_key = bool(visit.state.keyring)
        body: dict[str, Any] = {
            "needs_key": needs_key,
            "key": caller.id if caller is not None else "",
            "may_look": not needs_key or (caller is not None and caller.may("read-only")),
            "may_act": visit.may_act,
            "csrf": csrf_token(visit.cookie),
        }
        if body["may_look"]:
            body |= {
                "upstreams": list(settings.upstreams),
                "models": visit.state.router.names(),
                "keys": [key.settings.id for key in settings.keys],
            }
        return _json(body)

    async def _begin_session(self, visit: Visit) -> Answer:
        body = await _read_fields(visit)
        presented = text_or_none(body.get("key")) or ""
        caller = visit.state.keyring.find(presented.strip())
        found = visit.state.keyring.find_named(caller.id) if caller is not None else None
        if caller is None or found is None:
            raise unauthorized("There is no such key.")
        if not caller.may("read-only"):
            raise forbidden(f"The key {caller.id!r} may ask models, and not look at this page.")
        return _json({}, headers=(_set_cookie(visit.scope, begin_session(caller, found[1])),))

    async def _end_session(self, visit: Visit) -> Answer:
        return _json({}, headers=(_set_cookie(visit.scope, ""),))

    # figures

    async def _show_overview(self, visit: Visit) -> Answer:
        shown = await self._overviews.show(visit.state, visit.query.get("range", ""))
        if not shown["has_any"]:
            shown["snippets"] = _list_snippets(visit)
        return _json(shown)

    async def _list_requests(self, visit: Visit) -> Answer:
        return _json(await list_requests(self._store, visit.query))

    async def _show_request(self, visit: Visit) -> Answer:
        return _json(await show_request(self._store, visit.item, visit.state.settings.store))

    async def _save_case(self, visit: Visit) -> Answer:
        record = await self._find_record(visit.item)
        document = make_case(record, visit.query.get("calls"))
        name = f'attachment; filename="case-{record.id}.json"'.encode()
        return _json(document, headers=((b"content-disposition", name),))

    async def _list_models(self, visit: Visit) -> Answer:
        store = self._core.store
        return _json(await list_models(visit.state, store if hasattr(store, "select") else None))

    # acts

    async def _replay(self, visit: Visit) -> Answer:
        await _read_fields(visit)
        record = await self._find_record(visit.item)
        return _json(await replay(self._core, visit.state, visit.caller, record))

    async def _probe(self, visit: Visit) -> Answer:
        body = await _read_fields(visit)
        upstream, model = (text_or_none(body.get(name)) or "" for name in ("upstream", "model"))
        return _json(await probe_again(visit.state, upstream, model))

    @property
    def _store(self) -> Any:
        store = self._core.store
        if not hasattr(store, "select"):
            raise not_found("Requests are not recorded here.", "Start the gateway with a store.")
        return store

    async def _find_record(self, record_id: str) -> Any:
        record = await self._store.get(record_id)
        if record is None:
            raise not_found("There is no such request, or it is not kept any more.")
        return record


def _list_snippets(visit: Visit) -> list[dict[str, str]]:
    """Return lines to paste, each with the client they are for."""
    host = dict(visit.scope["headers"]).get(b"host", b"").decode("latin-1")
    names = visit.state.router.names()
    text = render_snippets(
        f"http://{host}",
        names[0] if names else "YOUR_MODEL",
        "YOUR_KEY" if visit.state.keyring else PLACEHOLDER_KEY,
    )
    parts = (part.partition("\n") for part in text.split("\n\n"))
    return [{"title": title.removeprefix("# "), "text": lines} for title, _, lines in parts]


def not_found(message: str, hint: str | None = None) -> ProviderStatusError:
    """Return the refusal of something that is not there."""
    return ProviderStatusError(Code.NOT_FOUND, message, hint=hint, status=404)


def _json(body: Any, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    return Answer(encode_kept(body), status, headers=headers)


def _render_error(error: SurecallError) -> Answer:
    status = error.status if isinstance(error, ProviderStatusError) and error.status else 500
    if isinstance(error, StoreError):
        status = 404 if error.code == Code.RECORD_NOT_FOUND else 503
    shown = {"code": str(error.code), "message": error.message, "hint": error.hint}
    extra = ((b"www-authenticate", b"Bearer"),) if status == 401 else ()
    return _json({"error": shown}, status, headers=extra)


async def _read_fields(visit: Visit) -> dict[str, Any]:
    """Return the fields of a body, which must be JSON."""
    if not visit.head.is_json or visit.head.encoding not in (b"", b"identity"):
        raise ProviderStatusError(
            Code.UNSUPPORTED_CONTENT_TYPE, "The body must be application/json.", status=415
        )
    body = await read_body(visit.receive, visit.head, _MAX_BODY_BYTES)
    try:
        return as_fields(decode(body, max_bytes=_MAX_BODY_BYTES))
    except SurecallError as error:
        raise ProviderStatusError(Code.INVALID_REQUEST, "It is not JSON.", status=400) from error


def _cookie_of(scope: Any) -> str:
    address = scope["server"]
    return cookie_name(address[1] if address is not None else 0)


def _set_cookie(scope: Any, value: str) -> tuple[bytes, bytes]:
    """Return the header that sets the cookie, or takes it away."""
    origin = dict(scope["headers"]).get(b"origin", b"")
    parts = [
        f"{_cookie_of(scope)}={value}",
        "Path=/ui",
        "HttpOnly",
        "SameSite=Strict",
        f"Max-Age={SESSION_S if value else 0}",
        *(["Secure"] if origin.startswith(b"https:") else []),
    ]
    return b"set-cookie", "; ".join(parts).encode("latin-1")
