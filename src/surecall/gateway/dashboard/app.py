"""What `/ui` serves, and to whom: pages for everybody, figures for readers, acts for admins."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from string import Template
from typing import Any, Final

from surecall.base.errors import Code, ProviderStatusError, SurecallError
from surecall.base.json_values import text_or_none
from surecall.base.pages import SHARED_SCRIPTS, SHEET, hash_text, join_scripts, read_asset
from surecall.base.redaction import open_log
from surecall.gateway.dashboard.approvals import (
    MAX_DECISION_BYTES,
    ApprovalDesk,
    approve_one,
    commit_one,
    deny_one,
    list_approvals,
    name_of,
    show_approval,
)
from surecall.gateway.dashboard.lists import list_requests, make_case, replay, show_request
from surecall.gateway.dashboard.models import list_models, probe_again
from surecall.gateway.dashboard.overview import Overviews
from surecall.gateway.dashboard.visits import (
    Answer,
    Visit,
    begin_session,
    csrf_token,
    find_session,
    is_csrf_token,
    name_of_cookie,
    not_found,
    read_cookie,
    read_fields,
    render_error,
    render_json,
    set_cookie,
)
from surecall.gateway.endpoints import Endpoint
from surecall.gateway.headers import CSRF, ClientLeft, Head, respond
from surecall.gateway.keys import forbidden, unauthorized
from surecall.gateway.programs import GatewayAddress, render_snippets
from surecall.gateway.state import Core, State

SCRIPTS: Final = (
    "server.js",
    "frame.js",
    "charts.js",
    "overview.js",
    "requests.js",
    "request.js",
    "approvals.js",
    "approval.js",
    "proposal.js",
    "models.js",
    "main.js",
)
"""The dashboard's own pieces of script, in the order in which they are joined."""

_POLICY: Final = (
    b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    b"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
PAGE_HEADERS: Final = (
    (b"content-security-policy", _POLICY),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
FOREVER: Final = b"public, max-age=31536000, immutable"
"""How long an asset may be kept: its name changes with its content."""


@cache
def list_assets() -> Mapping[str, tuple[str, bytes]]:
    """Return the type and the bytes of each asset, by its name."""
    sheet = read_asset(SHEET)
    script = join_scripts(
        (
            *(read_asset(name) for name in SHARED_SCRIPTS),
            *(read_asset(name, __package__ or "") for name in SCRIPTS),
        )
    )
    return {
        f"surecall.{hash_text(sheet)}.css": ("text/css; charset=utf-8", sheet.encode()),
        f"dashboard.{hash_text(script)}.js": ("text/javascript; charset=utf-8", script.encode()),
    }


@cache
def render_page() -> bytes:
    """Return the page."""
    sheet, script = list_assets()
    text = read_asset("dashboard.html", __package__ or "")
    return Template(text).substitute(sheet=sheet, script=script).encode()


_log = open_log("surecall.gateway")


Handler = Callable[[Visit], Awaitable[Answer]]


class Dashboard:
    """The pages of one gateway.

    Args:
        core: The gateway, with its store and its requests under way.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._overviews = Overviews(core)
        self._desk = ApprovalDesk()
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
            ("GET", "/ui/data/approvals"): self._list_approvals,
            ("GET", "/ui/data/approvals/{id}"): self._show_approval,
            ("POST", "/ui/data/approvals/{id}/approve"): self._decide,
            ("POST", "/ui/data/approvals/{id}/deny"): self._decide,
            ("POST", "/ui/data/approvals/{id}/commit"): self._decide,
            ("GET", "/ui/data/models"): self._list_models,
            ("POST", "/ui/data/models/probe"): self._probe,
        }

    async def close(self) -> None:
        """Let go of what the pages have opened."""
        await self._desk.close()

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
            answer = render_error(error)
        except Exception:
            _log.exception("The dashboard failed at %s.", endpoint.path)
            answer = render_error(SurecallError(Code.INTERNAL_ERROR, "The dashboard failed."))
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
        cookie = read_cookie(scope["headers"], name_of_cookie(scope))
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
            token = dict(scope["headers"]).get(CSRF, b"").decode("latin-1")
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
                "waiting": await self._desk.count_waiting(settings.approvals),
            }
        return render_json(body)

    async def _begin_session(self, visit: Visit) -> Answer:
        body = await read_fields(visit)
        presented = text_or_none(body.get("key")) or ""
        caller = visit.state.keyring.find(presented.strip())
        found = visit.state.keyring.find_named(caller.id) if caller is not None else None
        if caller is None or found is None:
            raise unauthorized("There is no such key.")
        if not caller.may("read-only"):
            raise forbidden(f"The key {caller.id!r} may ask models, and not look at this page.")
        return render_json({}, headers=(set_cookie(visit.scope, begin_session(caller, found[1])),))

    async def _end_session(self, visit: Visit) -> Answer:
        return render_json({}, headers=(set_cookie(visit.scope, ""),))

    # figures

    async def _show_overview(self, visit: Visit) -> Answer:
        shown = await self._overviews.show(visit.state, visit.query.get("range", ""))
        if not shown["has_any"]:
            shown["snippets"] = _list_snippets(visit)
        return render_json(shown)

    async def _list_requests(self, visit: Visit) -> Answer:
        return render_json(await list_requests(self._store, visit.query))

    async def _show_request(self, visit: Visit) -> Answer:
        return render_json(await show_request(self._store, visit.item, visit.state.settings.store))

    async def _save_case(self, visit: Visit) -> Answer:
        record = await self._find_record(visit.item)
        document = make_case(record, visit.query.get("calls"))
        name = f'attachment; filename="case-{record.id}.json"'.encode()
        return render_json(document, headers=((b"content-disposition", name),))

    async def _list_models(self, visit: Visit) -> Answer:
        store = self._core.store
        return render_json(
            await list_models(visit.state, store if hasattr(store, "select") else None)
        )

    async def _list_approvals(self, visit: Visit) -> Answer:
        return render_json(await list_approvals(self._desk, visit.state.settings.approvals))

    async def _show_approval(self, visit: Visit) -> Answer:
        store = await self._desk.open(visit.state.settings.approvals)
        return render_json(await show_approval(store, visit.item))

    # acts

    async def _decide(self, visit: Visit) -> Answer:
        body = await read_fields(visit, MAX_DECISION_BYTES)
        store = await self._desk.open(visit.state.settings.approvals)
        match visit.endpoint.path.rpartition("/")[2]:
            case "approve":
                await approve_one(store, visit.item, name_of(visit), body)
            case "deny":
                await deny_one(store, visit.item, name_of(visit), body)
            case _:
                await commit_one(store, visit.item, body)
        return render_json(await show_approval(store, visit.item))

    async def _replay(self, visit: Visit) -> Answer:
        await read_fields(visit)
        record = await self._find_record(visit.item)
        return render_json(await replay(self._core, visit.state, visit.caller, record))

    async def _probe(self, visit: Visit) -> Answer:
        body = await read_fields(visit)
        upstream, model = (text_or_none(body.get(name)) or "" for name in ("upstream", "model"))
        return render_json(await probe_again(visit.state, upstream, model))

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
    at = GatewayAddress(
        f"http://{host}", names[0] if names else "YOUR_MODEL", visit.state.settings.example_key
    )
    return [{"title": title, "text": lines} for title, lines in render_snippets(at)]
