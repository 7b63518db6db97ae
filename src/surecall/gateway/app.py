"""The gateway as an ASGI application: what it serves, to whom, and its life from start to end."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import parse_qs, unquote

from msgspec import Struct

from surecall.errors import Code, ProviderStatusError, StoreError, SurecallError
from surecall.exchange import EchoCache, Policy
from surecall.jsontext import encode
from surecall.protocols import WireProtocol, find_protocol
from surecall.redaction import open_log
from surecall.telemetry import CONTENT_TYPE, Metrics, RequestMetrics

from .gates import Gate, RetryBudget, overloaded
from .heads import Head, Hosts
from .jobs import Job, render_error, status_of_refusal
from .keys import Caller, Counts, Keyring, SharedCounts, forbidden, unauthorized
from .records import Retention, RequestRecord, StoreCounts
from .relay import RelayJob, list_models
from .settings import GatewaySettings, PolicySettings, Role, UpstreamEntry
from .strategy import Strategies
from .upstreams import Router, Target, Upstream

if TYPE_CHECKING:
    from .records import RecordStore

_log = open_log("surecall.gateway")

BUDGETS_FILE: Final = "budgets.db"
_MAX_NAMED: Final = 100
_MAX_NAME_CHARS: Final = 100
_PRUNE_EVERY_S: Final = 600.0
_STALL_EVERY_S: Final = 0.1
_GEMINI: Final = re.compile(
    r"/v1(?:beta|alpha)?/(?:models|tunedModels)/(?P<model>[^?#]+):"
    r"(?P<method>generateContent|streamGenerateContent)"
)
_PREFIXES: Final = ("/v1/", "/v1beta/", "/v1alpha/")
_UNSAFE_PATH: Final = re.compile(r"\.\.|//|\\|%2e|%2f|%5c|[\x00-\x20\x7f]", re.IGNORECASE)
_ENDPOINTS: Final[Mapping[str, str]] = {
    "/v1/chat/completions": "chat_completions",
    "/v1/messages": "messages",
    "/v1/responses": "responses",
}
_RELAYED_METHODS: Final = frozenset({"DELETE", "GET", "PATCH", "POST", "PUT"})

Kind = Literal["model", "models", "relay", "health", "ready", "metrics", "reload"]


class Endpoint(Struct, frozen=True):
    """Something the gateway serves."""

    method: str
    path: str
    """With `{model}` and `{path}` for what may be anything."""
    role: Role | None
    """The role that a virtual key needs; `None` is for everybody."""
    kind: Kind


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
)
"""Everything that is served; the test of keys walks through it."""
_PLAIN: Final = {(item.method, item.path): item for item in ENDPOINTS if "{" not in item.path}
_PLAIN_PATHS: Final = frozenset(path for _, path in _PLAIN)
_MODEL: Final = Endpoint("POST", "", "call", "model")
_RELAY: Final = Endpoint("", "", "call", "relay")


class State:
    """The settings in force, and everything that is made of them."""

    def __init__(
        self,
        settings: GatewaySettings,
        upstreams: Mapping[str, Upstream],
        counts: Counts,
        *,
        facts: Path | None = None,
    ) -> None:
        self.settings = settings
        self.upstreams = upstreams
        self.router = Router(settings, upstreams)
        self.strategies = Strategies(settings, facts=facts)
        self.keyring = Keyring(settings.keys, counts)
        self.hosts = Hosts((settings.server.host,), settings.server.allow_hosts)
        self._policy = _make_policy(settings.policy)
        self._policies = {
            name: _make_policy(item.policy)
            for name, item in settings.models.items()
            if item.policy is not None
        }

    def policy_for(self, target: Target) -> Policy:
        """Return what may be done for requests to a model."""
        if self._policies and (found := self._policies.get(target.model)) is not None:
            return found
        return self._policy


def _make_policy(settings: PolicySettings) -> Policy:
    return Policy(
        **{name: getattr(settings, name) for name in settings.__struct_fields__}  # the same names
    )


class NoRecords:
    """Keeps nothing."""

    def __init__(self) -> None:
        self.counts = StoreCounts()

    async def add(self, record: RequestRecord) -> None:
        """Keep nothing."""

    def add_soon(self, record: RequestRecord) -> None:
        """Keep nothing."""

    async def prune(self, retention: Retention) -> int:
        """Remove nothing."""
        return 0

    async def close(self) -> None:
        """Nothing is open."""


class Gateway:
    """Serves clients; give it to a server after `open`.

    Args:
        settings: What it is told.
        store: Where requests are recorded; nothing is by default.
        worker: The number of this process among several.
        read_settings: Reads the settings anew, for `reload`.
        shared: A folder where workers meet, for budgets.
        facts: The file with what probes found out; by default that of all commands.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        *,
        store: "RecordStore | NoRecords | None" = None,
        worker: int = 0,
        read_settings: Callable[[], GatewaySettings] | None = None,
        shared: Path | None = None,
        facts: Path | None = None,
    ) -> None:
        self.store: Any = store if store is not None else NoRecords()
        self.worker = worker
        self.live: set[Job | RelayJob] = set()
        self.is_draining = False
        self.echoes = EchoCache()
        limits = settings.limits
        self.gate = Gate(
            limits.max_in_flight, limits.max_waiting, limits.max_wait_s, "The gateway"
        )
        self.budget = RetryBudget(settings.retry.budget_share, settings.retry.budget_floor)
        self._read_settings = read_settings
        self._counts = Counts()
        self._shared = SharedCounts(shared / BUDGETS_FILE, self._counts) if shared else None
        self._facts = facts
        self._tasks: set[asyncio.Task[Any]] = set()
        self._reloading = asyncio.Lock()
        upstreams = self._make_upstreams(settings, {})
        self.state = State(settings, upstreams, self._counts, facts=facts)
        self.metrics = Metrics()
        self.request_metrics = RequestMetrics(
            self.metrics, upstreams=tuple(upstreams), models=self._known_models(settings)
        )
        self._named = set(self._known_models(settings))
        self._spans: Any = None
        if settings.telemetry.otel:
            from surecall.telemetry import RequestSpans

            self._spans = RequestSpans(content=settings.telemetry.otel_content)
        self.reload_error: SurecallError | None = None
        """Why the last change of the settings was not taken."""

    @property
    def settings(self) -> GatewaySettings:
        """The settings in force."""
        return self.state.settings

    def _known_models(self, settings: GatewaySettings) -> tuple[str, ...]:
        names = [*settings.aliases, *settings.routes, *settings.models]
        for entry in settings.upstreams.values():
            names += [name for name in entry.settings.models if "*" not in name]
            if entry.embedded:
                names += [entry.embedded, f"embedded:{entry.embedded}"]
        return tuple(dict.fromkeys(names))

    # life

    async def open(self) -> None:
        """Get ready to serve: load embedded models, and begin what goes on in the background."""
        start = getattr(self.store, "start", None)
        if start is not None:
            await start()
        for upstream in self.state.upstreams.values():
            await upstream.open()
        if self._shared is not None and self.state.keyring.has_limits:
            await self._shared.open()
        self._spawn(self._prune_regularly())
        self._spawn(self._watch_loop())

    async def close(self) -> None:
        """End everything; what is still under way is cut."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.state.strategies.close()
        if self._shared is not None and self.state.keyring.has_limits:
            await self._shared.close()
        for upstream in self.state.upstreams.values():
            await upstream.close()
        await self.store.close()

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def begin_drain(self) -> None:
        """Take no new work."""
        self.is_draining = True

    def cut_all(self) -> None:
        """End what is still under way, each with an error its client understands."""
        for job in list(self.live):
            job.cut()

    def reload_soon(self) -> None:
        """Read the settings anew, in the background; what SIGHUP does."""
        self._spawn(self.reload())

    async def reload(self) -> SurecallError | None:
        """Read the settings anew; return why the old ones stay, if they do.

        Requests under way go on with the settings they began with.
        """
        if self._read_settings is None:
            return None
        async with self._reloading:
            fresh: dict[str, Upstream] = {}
            try:
                settings = await asyncio.to_thread(self._read_settings)
                fresh = self._make_upstreams(settings, self.state.upstreams)
                for upstream in fresh.values():
                    await upstream.open()
                state = State(settings, fresh, self._counts, facts=self._facts)
            except SurecallError as error:
                for name, upstream in fresh.items():
                    if self.state.upstreams.get(name) is not upstream:
                        await upstream.close()
                self.reload_error = error
                _log.error("the settings were not taken, the old ones stay: %s", error)
                return error
            old, self.state = self.state, state
            self.reload_error = None
            await old.strategies.close()
            for upstream in old.upstreams.values():
                if upstream not in fresh.values():
                    upstream.retire()
            limits = settings.limits
            self.gate.limit, self.gate.max_waiting = limits.max_in_flight, limits.max_waiting
            self.gate.max_wait_s = limits.max_wait_s
            self._declare(settings.upstreams, self._known_models(settings))
            _log.warning("the settings were read anew")
            return None

    def _declare(self, upstreams: Iterable[str], models: Iterable[str]) -> None:
        """Count more upstreams and models apart."""
        for series in vars(self.request_metrics).values():
            labels = getattr(series, "labels", ())
            if "upstream" in labels:
                series.allow("upstream", upstreams)
            if "model" in labels:
                series.allow("model", models)

    def _make_upstreams(
        self, settings: GatewaySettings, old: Mapping[str, Upstream]
    ) -> dict[str, Upstream]:
        """Return the upstreams; those whose settings are the same keep their connections."""
        limits = settings.limits

        def make(entry: UpstreamEntry) -> Upstream:
            had = old.get(entry.name)
            if had is not None and had.entry == entry:
                return had
            return Upstream(entry, limits.max_waiting, limits.max_wait_s)

        return {name: make(entry) for name, entry in settings.upstreams.items()}

    async def _prune_regularly(self) -> None:
        while True:
            store = self.settings.store
            age_s = None if store.max_age_days is None else store.max_age_days * 86_400
            try:
                await self.store.prune(Retention(max_age_s=age_s, max_records=store.max_records))
            except StoreError as error:
                _log.warning("old requests were not removed: %s", error)
            await asyncio.sleep(_PRUNE_EVERY_S)

    async def _watch_loop(self) -> None:
        """Measure how late the event loop is."""
        observe = self.request_metrics.loop_stalls.observe
        clock = time.perf_counter
        while True:
            began_s = clock()
            await asyncio.sleep(_STALL_EVERY_S)
            observe(max(0.0, clock() - began_s - _STALL_EVERY_S))

    # what jobs use

    def observe(self, record: RequestRecord) -> None:
        """Count a request that is over."""
        if record.status == 200 and record.model_asked not in self._named:
            self._declare_model(record.model_asked)
        self.request_metrics.observe(record)
        if self._spans is not None:
            self._spans.observe(record)

    def _declare_model(self, name: str) -> None:
        """Count a model apart that an upstream has answered for, as long as these are few."""
        if len(self._named) < _MAX_NAMED and len(name) <= _MAX_NAME_CHARS:
            self._named.add(name)
            self._declare((), (name,))

    def count_shed(self, reason: str) -> None:
        """Count a request that was refused at the entrance."""
        self.request_metrics.shed.add(reason)

    async def wait_at(self, gate: Gate) -> None:
        """Enter a gate that was not free at once."""
        try:
            await gate.enter()
        except ProviderStatusError:
            self.count_shed("overload")
            raise

    # requests

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        state = self.state
        path: str = scope["path"]
        method: str = scope["method"]
        name = _ENDPOINTS.get(path)
        protocol: WireProtocol | None = None
        hosts, plain = state.hosts.at(scope["server"])
        head = Head(scope["headers"], hosts, plain)
        caller: Caller | None = None
        try:
            if head.refusal is not None:
                raise status_of_refusal(head.refusal)
            named: tuple[str, bool] | None = None
            if name is not None and method == "POST":
                endpoint, protocol = _MODEL, _protocol(name)
            else:
                endpoint, protocol, named = _find_endpoint(method, path, scope["raw_path"])
            if endpoint.role is not None and state.keyring:
                caller = self._admit(state, head, endpoint.role, scope)
            if self.is_draining and endpoint.role is not None:
                self.count_shed("draining")
                raise overloaded("The gateway is being stopped.", 5.0)
        except SurecallError as error:
            await self._refuse(send, protocol or _guess_protocol(path, head), error)
            return
        if endpoint.kind == "model":
            assert protocol is not None
            if named is not None and named[1] and not _wants_events(scope):
                await self._refuse(send, protocol, _EVENTS_ONLY)
                return
            asgi = (scope, receive, send)
            await Job(self, state, protocol, head, caller, asgi, named).run()
            return
        await self._serve_other(endpoint.kind, state, head, caller, scope, receive, send)

    def _admit(self, state: State, head: Head, role: Role, scope: Any) -> Caller:
        if not head.token and scope["query_string"]:
            given = parse_qs(scope["query_string"].decode("latin-1")).get("key")
            head.token = given[0] if given else ""
        caller = state.keyring.find(head.token)
        if caller is None:
            raise unauthorized(
                "There is no such key." if head.token else "The request has no key."
            )
        if not caller.may(role):
            raise forbidden(f"The key {caller.id!r} has the role {caller.settings.role}.")
        return caller

    async def _serve_other(
        self,
        kind: Kind,
        state: State,
        head: Head,
        caller: Caller | None,
        scope: Any,
        receive: Any,
        send: Any,
    ) -> None:
        if kind == "health":
            await respond(send, 200, encode({"status": "ok"}))
        elif kind == "ready":
            await self._answer_ready(send)
        elif kind == "metrics":
            await respond(send, 200, self.render_metrics(), content_type=CONTENT_TYPE)
        elif kind == "reload":
            await self._answer_reload(send, head)
        elif kind == "models":
            await list_models(self, state, head, caller, scope, send)
        else:
            protocol = _guess_protocol(scope["path"], head)
            await RelayJob(self, state, protocol, head, caller, (scope, receive, send)).run()

    async def _answer_ready(self, send: Any) -> None:
        waiting = [name for name, item in self.state.upstreams.items() if not item.is_ready]
        is_ready = not waiting and not self.is_draining
        status = "draining" if self.is_draining else "ready" if is_ready else "loading"
        await respond(send, 200 if is_ready else 503, encode({"status": status}))

    async def _answer_reload(self, send: Any, head: Head) -> None:
        if not self.state.keyring:
            # Without keys anybody on this machine could; there it takes a signal.
            await self._refuse(
                send, _protocol("chat_completions"), forbidden("Reloading needs an admin key.")
            )
            return
        error = await self.reload()
        if error is not None:
            await respond(send, 400, encode({"status": "kept", "error": str(error)}))
            return
        await respond(send, 200, encode({"status": "reloaded"}))

    def render_metrics(self) -> bytes:
        """Return all metrics in the text form of Prometheus."""
        metrics = self.request_metrics
        metrics.in_flight.set(self.gate.inside)
        waiting = self.gate.waiting + sum(u.gate.waiting for u in self.state.upstreams.values())
        metrics.waiting.set(waiting)
        counts = self.store.counts
        for result in ("stored", "spooled", "dropped"):
            metrics.records.cell(result)[0] = getattr(counts, result)
        spool = getattr(self.store, "spool", None)
        if spool is not None:
            metrics.spool_bytes.set(spool.size_bytes)
        text = self.metrics.render()
        return text.encode() if isinstance(text, str) else text

    async def _refuse(self, send: Any, protocol: WireProtocol, error: SurecallError) -> None:
        status, body = render_error(protocol, error)
        extra: list[tuple[bytes, bytes]] = [(b"x-should-retry", b"false")]
        if isinstance(error, ProviderStatusError):
            if error.status in {404, 405}:
                status = error.status
            if error.retry_after_s is not None:
                extra = [(b"retry-after", str(max(1, round(error.retry_after_s))).encode())]
        if status == 401:
            extra.append((b"www-authenticate", b"Bearer"))
        if self.is_draining:
            extra.append((b"connection", b"close"))
        await respond(send, status, body, extra=extra)


_EVENTS_ONLY: Final = ProviderStatusError(
    Code.INVALID_REQUEST, "Streams are served as events only: add ?alt=sse.", status=400
)
_protocols: dict[str, WireProtocol] = {}


def _protocol(name: str) -> WireProtocol:
    found = _protocols.get(name)
    if found is None:
        found = _protocols[name] = find_protocol(name)
    return found


def _find_endpoint(
    method: str, path: str, raw_path: bytes
) -> tuple[Endpoint, WireProtocol | None, tuple[str, bool] | None]:
    """Return what is at a path, in which format, and what the path itself says."""
    plain = _PLAIN.get((method, path))
    if plain is not None:
        return plain, None, None
    if path in _PLAIN_PATHS:
        raise ProviderStatusError(
            Code.NOT_FOUND, f"{method} is not served at {path}.", status=405
        )
    found = _GEMINI.fullmatch(path)
    if found is not None and method == "POST":
        named = (unquote(found["model"]), found["method"] == "streamGenerateContent")
        return _MODEL, _protocol("gemini"), named
    if method in _RELAYED_METHODS and path.startswith(_PREFIXES):
        if _UNSAFE_PATH.search(raw_path.decode("latin-1")):
            raise ProviderStatusError(Code.NOT_FOUND, "The path is not usable.", status=404)
        return _RELAY, None, None
    raise ProviderStatusError(Code.NOT_FOUND, "There is nothing at this path.", status=404)


def _guess_protocol(path: str, head: Head) -> WireProtocol:
    """Return the format in which a path is answered that has none of its own."""
    if path in _ENDPOINTS:
        return _protocol(_ENDPOINTS[path])
    if path.startswith(("/v1beta", "/v1alpha")):
        return _protocol("gemini")
    if path.startswith("/v1/messages") or any(n == "anthropic-version" for n, _ in head.formal):
        return _protocol("messages")
    return _protocol("responses" if path.startswith("/v1/responses") else "chat_completions")


def _wants_events(scope: Any) -> bool:
    return b"alt=sse" in scope["query_string"].split(b"&")


async def respond(
    send: Any,
    status: int,
    body: bytes,
    *,
    content_type: str = "application/json",
    extra: "list[tuple[bytes, bytes]] | None" = None,
) -> None:
    """Send a whole answer."""
    headers = [
        (b"content-type", content_type.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *(extra or ()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
