"""What is passed on without being read: other paths of an upstream, and the list of models."""

import asyncio
import time
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, unquote_plus

from surecall.base.background import read_in_thread
from surecall.base.errors import (
    Code,
    JSONTextError,
    ProviderError,
    ProviderStatusError,
    SurecallError,
)
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.limits import MAX_INLINE_CHARACTERS
from surecall.base.redaction import StreamMask, excerpt, mask_error, mask_known
from surecall.gateway.endpoints import guess_protocol, may_relay
from surecall.gateway.headers import (
    OUTCOME,
    REQUEST_ID,
    UPSTREAM,
    Head,
    hide_key,
    render_error,
    respond,
    retry_headers,
    returned_headers,
)
from surecall.gateway.keys import Caller, forbidden
from surecall.gateway.state import State
from surecall.gateway.upstreams import Target, Upstream
from surecall.store.records.record import RequestRecord
from surecall.text import decode, encode
from surecall.wire import WireProtocol

from .client import ClientJob, find_usage

_LIST_S: Final = 10.0
_MAX_MODELS: Final = 10_000
_KEY_NAMES: Final = frozenset({"api_key", "key"})
_FAMILIES: Final = {"chat_completions": "openai", "responses": "openai"}


def family_of(protocol: str) -> str:
    """Return whose API a format belongs to: two of them are parts of one."""
    return _FAMILIES.get(protocol, protocol)


def _client_headers(
    upstream: Upstream,
    protocol: WireProtocol,
    head: Head,
    caller: Caller | None,
    passed: list[tuple[str, str]] | None = None,
) -> tuple[list[tuple[str, str]], bool]:
    """Return the headers for an upstream, and whether they have a key of the gateway."""
    is_same = family_of(upstream.entry.protocol) == family_of(protocol.name)
    headers = [*(passed or head.passed), *(head.formal if is_same else ())]
    own = upstream.own_auth
    if caller is not None or upstream.entry.embedded or (own is not None and not head.key):
        return headers + list(own or ()), own is not None
    if not head.token:
        return headers, False
    if is_same:
        return headers + head.auth, False
    return headers + list(upstream.protocol.render_auth(head.token).items()), False


class RelayJob(ClientJob):
    """One request to a path that the gateway does not read."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._model = ""
        self._named: list[str] = []
        self._target: Target | None = None
        self._has_asked = False
        self._mask: StreamMask | None = None
        """Takes the gateway's key out of a stream."""

    async def _serve(self) -> None:
        self._check_body()
        rest = self._rest()
        target = self._target = await read_in_thread(
            partial(self._find_target, rest), is_long=len(self._body) > MAX_INLINE_CHARACTERS
        )
        upstream = target.upstream
        if family_of(upstream.entry.protocol) != family_of(self._protocol.name):
            raise ProviderStatusError(
                Code.NOT_FOUND,
                f"The upstream {upstream.name} speaks {upstream.entry.protocol}, which has "
                f"nothing at {excerpt(self._asgi_scope['path'], 80)}.",
                hint="Only the endpoints for messages are translated.",
                status=404,
            )
        headers, is_ours = _client_headers(
            upstream, self._protocol, self._head, self._caller, self._passed
        )
        self._mask = StreamMask() if is_ours else None
        method = self._asgi_scope["method"]
        is_limited = is_ours or self._caller is not None
        if is_limited and not may_relay(method, rest, self._state.settings.relay_paths):
            raise forbidden(
                f"{method} {excerpt(rest, 80)!r} is not relayed with a key of the gateway."
            )
        if self._caller is not None:
            if rest == "batches" and method == "POST" and self._caller.counts_tokens:
                raise forbidden("The tokens of a batch cannot be counted for this key.")
            named = [*self._named, *_models_in_query(self._asgi_scope["query_string"])]
            if not self._head.is_json and self._body and self._caller.settings.models:
                raise forbidden("The body must be JSON, with this key for some models.")
            await read_in_thread(
                partial(self._caller.check_models, named, self._body),
                is_long=len(self._body) > MAX_INLINE_CHARACTERS,
            )
            if target.model:
                self._check_prices((target,))
            await self._begin_counting()
        gate = self._core.gate
        if not gate.try_enter():
            await self._core.wait_at(gate)
        try:
            if not upstream.gate.try_enter():
                await self._core.wait_at(upstream.gate)
            try:
                await self._relay(target, rest, headers)
            finally:
                upstream.leave()
        finally:
            gate.leave()

    def _check_body(self) -> None:
        head = self._head
        if self._body and not head.is_json and not head.token:
            # A form of another site can send any other type, but no key.
            raise ProviderStatusError(
                Code.UNSUPPORTED_CONTENT_TYPE, "The body must be application/json.", status=415
            )
        if head.encoding not in (b"", b"identity"):
            raise ProviderStatusError(
                Code.UNSUPPORTED_CONTENT_TYPE, "The body must not be compressed.", status=415
            )

    def _rest(self) -> str:
        raw = self._asgi_scope["raw_path"].decode("ascii")
        return raw.split("/", 2)[2]

    def _find_target(self, rest: str) -> Target:
        """Return where a path goes: by the model it names, or to the first of its family."""
        state = self._state
        self._named = _list_models(rest, self._body if self._head.is_json else b"")
        if self._named:
            self._model = self._named[0]
            return state.router.find(self._model)[0]
        family = family_of(self._protocol.name)
        for upstream in state.upstreams.values():
            if family_of(upstream.entry.protocol) == family:
                return Target(upstream, "")
        return Target(next(iter(state.upstreams.values())), "")

    async def _relay(self, target: Target, rest: str, headers: list[tuple[str, str]]) -> None:
        upstream, body = target.upstream, self._body
        if self._model and target.model != self._model:
            if self._head.is_json and body:
                from surecall.exchange.request import replace_model

                body = replace_model(body, target.model)
            if rest.startswith("models/"):
                _, colon, act = unquote(rest).partition(":")
                rest = f"models/{quote(target.model, safe='/')}{colon}{act}"
        kind = next(
            (value for name, value in self._asgi_scope["headers"] if name == b"content-type"), b""
        )
        if body:
            headers = [("content-type", kind.decode("latin-1")), *headers]
        query = _clean_query(self._asgi_scope["query_string"])
        path = upstream.relayed_path(rest) + (f"?{query}" if query else "")
        began_s = time.perf_counter()
        self._asked_bytes = len(body)
        self._has_asked = True
        answer = self._answer = await upstream.send(self._asgi_scope["method"], path, headers, body)
        shown = [
            *returned_headers(answer.raw_headers),
            (OUTCOME, b"relayed"),
            (UPSTREAM, upstream.name.encode()),
            (REQUEST_ID, self.id.encode()),
        ]
        is_stream = any(
            name == b"content-type" and value.startswith(b"text/event-stream")
            for name, value in shown
        )
        if not is_stream:
            reply = await self.read_whole(answer)
            self._answer = None
            self._upstream_s = time.perf_counter() - began_s
            if self._mask is not None:  # an upstream may repeat the gateway's key
                reply = mask_error(reply) if answer.status >= 400 else mask_known(reply)
            self._sent_bytes = len(reply)
            await self._keep(self._record(answer.status, reply))
            shown.append((b"content-length", str(len(reply)).encode()))
            await self._send(
                {"type": "http.response.start", "status": answer.status, "headers": shown}
            )
            await self._send({"type": "http.response.body", "body": reply, "more_body": False})
            return
        self._has_started = True
        await self._send({"type": "http.response.start", "status": answer.status, "headers": shown})
        await answer.pipe(self._pass_on)
        self._answer = None
        self._upstream_s = time.perf_counter() - began_s
        await self._keep(self._record(answer.status, None))
        last = b"" if self._mask is None else _as_bytes(self._mask.close())
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    def _pass_on(self, data: bytes) -> None:
        self._note_received(data)
        if self._mask is not None:
            data = _as_bytes(self._mask.feed(data.decode("utf-8", "surrogateescape")))
        if data:
            self._write(data)

    async def _fail(self, error: SurecallError) -> None:
        if self._has_started:
            await self._keep(self._record(200, None, str(error.code)))
            self._link.transport.close()
            return
        status, body = render_error(self._protocol, error)
        extra = [(REQUEST_ID, self.id.encode()), *retry_headers(error)]
        await self._keep(self._record(status, body, str(error.code)))
        await respond(self._send, status, body, extra=extra)

    def _record(self, status: int, reply: bytes | None, error_code: str = "") -> RequestRecord:
        usage = find_usage(reply) if reply is not None else None
        prices, is_failed = self._prices_of(self._target), bool(error_code) or status >= 400
        cost = self._charge(usage, prices, makes_text=False, is_failed=is_failed)
        total_s = time.perf_counter() - self._began_s
        upstream = None if self._target is None else self._target.upstream
        return RequestRecord(
            id=self.id,
            time=self.time,
            key_id=self._caller.id if self._caller is not None else "",
            client_protocol=self._protocol.name,
            upstream=upstream.name if upstream is not None else "",
            upstream_protocol=upstream.entry.protocol if upstream is not None else "",
            model_asked=self._model,
            status=status,
            outcome="failed" if error_code else "relayed",
            upstream_requests=int(self._has_asked),
            prompt_tokens=usage.input_tokens if usage is not None else 0,
            completion_tokens=usage.output_tokens if usage is not None else 0,
            cached_tokens=usage.cached_tokens if usage is not None else 0,
            cost=cost,
            upstream_ms=round(self._upstream_s * 1000, 3),
            added_ms=round(max(0.0, total_s - self._upstream_s) * 1000, 3),
            error_code=error_code,
            client_closed=error_code == Code.CLIENT_CLOSED,
            request_bytes=len(self._body),
            reply_bytes=self._sent_bytes,
        )

    def _describe_left(self) -> RequestRecord:
        return self._record(499, None, Code.CLIENT_CLOSED)


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _clean_query(query: bytes) -> str:
    """Return the query without keys."""
    parts = query.decode("latin-1").split("&") if query else []
    names = (unquote_plus(part.partition("=")[0]).casefold() for part in parts)
    return "&".join(part for part, name in zip(parts, names, strict=True) if name not in _KEY_NAMES)


# The list of models


async def list_models(
    state: State,
    head: Head,
    caller: Caller | None,
    scope: Any,
    send: Any,
) -> None:
    """List the names that a client may ask for, in the form that its format has for that."""
    protocol = guess_protocol(scope["path"], head)
    secret = hide_key(head.token)
    lists = await asyncio.gather(
        *(_fetch_names(item, protocol, head, caller) for item in state.upstreams.values())
    )
    names = list(
        dict.fromkeys([*state.router.names(), *(name for found in lists for name in found)])
    )
    if caller is not None:
        names = [name for name in names if caller.may_ask(name)]
    del secret
    is_google = protocol.traits.model_in_path or any(n == "x-goog-api-key" for n, _ in head.auth)
    await respond(send, 200, encode(_render_list(names, protocol, is_google=is_google)))


def _list_models(rest: str, body: bytes) -> list[str]:
    """Return every model that a request names: in its path first, then in its body."""
    kind, _, tail = rest.partition("/")
    named = [unquote(tail).partition(":")[0]] if kind == "models" and tail else []
    try:
        fields = as_fields(decode(body, surrogates="replace")) if body else {}
    except JSONTextError:
        fields = {}
    for entry in (fields, *as_list(fields.get("requests"))):
        if name := text_or_none(as_fields(entry).get("model")):
            named.append(name.removeprefix("models/") if named else name)
    return named


def _models_in_query(query: bytes) -> list[str]:
    """Return the models that a query names."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return [value for name, value in pairs if name.casefold() == "model"]


async def _fetch_names(
    upstream: Upstream, protocol: WireProtocol, head: Head, caller: Caller | None
) -> list[str]:
    """Return the models that an upstream lists; none when it does not answer in time."""
    if upstream.entry.embedded:
        return []
    if upstream.entry.settings.models and not any("*" in g for g in upstream.entry.settings.models):
        return []  # all names are known
    headers, _ = _client_headers(upstream, protocol, head, caller)
    try:
        async with asyncio.timeout(_LIST_S):
            answer = await upstream.send("GET", upstream.relayed_path("models"), headers, b"")
            body = await answer.read()
        document = as_fields(decode(body, surrogates="replace"))
    except (ProviderError, TimeoutError, SurecallError):
        return []
    rows = as_list(document.get("data")) or as_list(document.get("models"))
    found: list[str] = []
    for row in rows[:_MAX_MODELS]:
        fields = as_fields(row)
        name = text_or_none(fields.get("id")) or text_or_none(fields.get("name"))
        if name:
            found.append(name.removeprefix("models/"))
    return found


def _render_list(names: list[str], protocol: WireProtocol, *, is_google: bool) -> dict[str, Any]:
    if protocol.traits.has_typed_models:
        rows = [
            {
                "type": "model",
                "id": name,
                "display_name": name,
                "created_at": "1970-01-01T00:00:00Z",
            }
            for name in names
        ]
        ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
        return {"data": rows, "has_more": False, **ends}
    if is_google:
        methods = ["generateContent", "streamGenerateContent"]
        return {
            "models": [
                {
                    "name": f"models/{name}",
                    "displayName": name,
                    "supportedGenerationMethods": methods,
                }
                for name in names
            ]
        }
    usual = {"object": "model", "created": 0, "owned_by": "surecall"}
    return {"object": "list", "data": [{"id": name, **usual} for name in names]}
