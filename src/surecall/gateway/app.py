"""The gateway as an ASGI application: what it serves, to whom, and its life from start to end."""

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from surecall.base.background import Supervised
from surecall.base.errors import ProviderStatusError, StoreError, SurecallError, explain
from surecall.base.metrics import CONTENT_TYPE
from surecall.base.redaction import open_log
from surecall.exchange.signatures import EchoCache
from surecall.store.records.ledger import Ledger, SqliteLedger
from surecall.store.records.retention import Retention
from surecall.store.remembered_signatures import ECHOES_FILE, KeptEchoes
from surecall.text import encode
from surecall.wire import WireProtocol

from .budgets import Budgets, overloaded
from .endpoints import (
    EVENTS_ONLY,
    MODEL_ENDPOINT,
    MODEL_PATHS,
    Kind,
    find_endpoint,
    guess_protocol,
    may_visit,
    protocol_of,
    wants_events,
)
from .headers import Head, render_error, respond, retry_headers, status_of_refusal
from .jobs import Job, RelayJob, list_models
from .keys import Caller, forbidden, unauthorized
from .log import log_refused
from .settings.load import GatewaySettings, UpstreamEntry
from .settings.tables import Role
from .state import Core, NoRecords, State
from .upstreams import Upstream
from .workers import WorkerMetrics

if TYPE_CHECKING:
    from surecall.store.records.store import RecordStore

    from .dashboard import Dashboard

_log = open_log("surecall.gateway")

BUDGETS_FILE: Final = "budgets.db"
_BEAT_S: Final = 0.025
_PRUNE_EVERY_S: Final = 600.0


class Gateway(Core):
    """Serves clients; give it to a server after `open`.

    Args:
        settings: What it is told.
        store: Where requests are recorded; nothing is by default.
        worker: The number of this process among several.
        read_settings: Reads the settings anew, for `reload`.
        shared: A folder where workers meet, for budgets, metrics and what providers want back.
        ledger: Where budgets are counted; by default in that folder.
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
        ledger: Ledger | None = None,
        facts: Path | None = None,
    ) -> None:
        super().__init__(settings, store if store is not None else NoRecords())
        self.worker = worker
        self._read_settings = read_settings
        if ledger is None and shared is not None:
            ledger = SqliteLedger(shared / BUDGETS_FILE)
        self._budgets = Budgets(ledger)
        self._kept_echoes: KeptEchoes | None = None
        if shared is not None:
            self._kept_echoes = KeptEchoes(shared / ECHOES_FILE)
            self.echoes = EchoCache(store=self._kept_echoes)
        self._workers: WorkerMetrics | None = None
        if shared is not None and settings.server.workers > 1:
            self._workers = WorkerMetrics(shared, worker, self.metrics)
        self._facts = facts
        self._beat: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._supervised: list[Supervised] = []
        self._reloading = asyncio.Lock()
        upstreams = self._make_upstreams(settings, {})
        self.state = State(settings, upstreams, self._budgets, facts=facts)
        self.reload_error: SurecallError | None = None
        """Why the last change of the settings was not taken."""

    @property
    def settings(self) -> GatewaySettings:
        """The settings in force."""
        return self.state.settings

    # life

    async def open(self) -> None:
        """Get ready to serve: load embedded models, and begin what goes on in the background."""
        start = getattr(self.store, "start", None)
        if start is not None:
            await start()
        for upstream in self.state.upstreams.values():
            await upstream.open()
        await self._budgets.open()
        if self._workers is not None:
            self._supervise("sharing metrics", "workers", self._workers.run)
        self._supervise("removing old records", "pruning", self._prune_regularly)
        self._supervise("sending signs of life", "pulse", self._pulse_regularly)
        self._watch_loop(asyncio.get_running_loop().time())

    def _watch_loop(self, due: float) -> None:
        """Measure how late the loop is, again and again."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._beat is not None:
            self.request_metrics.loop_stalls.observe(max(0.0, now - due))
        self._beat = loop.call_at(now + _BEAT_S, self._watch_loop, now + _BEAT_S)

    async def close(self) -> None:
        """End everything; what is still under way is cut."""
        if self._beat is not None:
            self._beat.cancel()
        for work in self._supervised:
            await work.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if "dashboard" in self.__dict__:
            await self.dashboard.close()
        await self.state.strategies.close()
        await self._budgets.close()
        for upstream in self.state.upstreams.values():
            await upstream.close()
        await self.store.close()
        if self._spans is not None:
            await asyncio.to_thread(self._spans.close)
        if self._kept_echoes is not None:
            self._kept_echoes.close()

    def _supervise(self, name: str, label: str, work: Callable[[], Any]) -> None:
        restarts = self.request_metrics.task_restarts
        supervised = Supervised(name, work, lambda: restarts.add(label))
        supervised.start()
        self._supervised.append(supervised)

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
                state = State(settings, fresh, self._budgets, facts=self._facts)
            except SurecallError as error:
                for name, upstream in fresh.items():
                    if self.state.upstreams.get(name) is not upstream:
                        await upstream.close()
                self.reload_error = error
                _log.error("The settings were not taken, the old ones stay. %s", explain(error))
                return error
            old, self.state = self.state, state
            self.reload_error = None
            await old.strategies.close()
            for upstream in old.upstreams.values():
                if upstream not in fresh.values():
                    upstream.retire()
            for upstream in fresh.values():
                upstream.take_limits(settings.limits, is_only=len(fresh) == 1)
            self.take_settings(settings)
            _log.warning("The settings were reloaded.")
            return None

    def _make_upstreams(
        self, settings: GatewaySettings, old: Mapping[str, Upstream]
    ) -> dict[str, Upstream]:
        """Return the upstreams; those whose settings are the same keep their connections."""
        is_only = len(settings.upstreams) == 1

        def make(entry: UpstreamEntry) -> Upstream:
            had = old.get(entry.name)
            if had is not None and had.entry == entry:
                return had
            return Upstream(entry, settings.limits, is_only=is_only)

        return {name: make(entry) for name, entry in settings.upstreams.items()}

    async def _prune_regularly(self) -> None:
        while True:
            store = self.settings.store
            age_s = None if store.max_age_days is None else store.max_age_days * 86_400
            try:
                kept = Retention(max_age_s=age_s, max_records=store.max_records)
                self.request_metrics.pruned.add_many(await kept.prune(self.store))
            except StoreError as error:
                _log.warning("Old requests were not removed: %s", explain(error))
            await asyncio.sleep(_PRUNE_EVERY_S)

    async def _pulse_regularly(self) -> None:
        while True:
            await asyncio.sleep(self.pulse_s)
            for job in list(self.live):
                if isinstance(job, Job):
                    job.pulse()

    # requests

    @cached_property
    def dashboard(self) -> "Dashboard":
        """The pages at `/ui`, which are loaded when somebody first asks for one."""
        from .dashboard import Dashboard

        return Dashboard(self)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        state = self.state
        path: str = scope["path"]
        method: str = scope["method"]
        name = MODEL_PATHS.get(path)
        protocol: WireProtocol | None = None
        if scope["query_string"]:  # which may have a key
            head = Head(scope["headers"], *state.hosts.at(scope["server"]))
        else:
            head = scope["surecall.link"].read_head(scope["headers"], state.hosts)
        caller: Caller | None = None
        try:
            if head.refusal is not None and not may_visit(
                head, scope, state.settings.server.allow_hosts
            ):
                raise status_of_refusal(head.refusal)
            named: tuple[str, bool] | None = None
            if name is not None and method == "POST":
                endpoint, protocol = MODEL_ENDPOINT, protocol_of(name)
            else:
                endpoint, protocol, named = find_endpoint(method, path, scope["raw_path"])
                if endpoint.kind == "dashboard":
                    await self.dashboard.serve(endpoint, state, head, (scope, receive, send))
                    return
            if endpoint.role is not None and state.keyring:
                caller = self._admit(state, head, endpoint.role, scope)
            if self.is_draining and endpoint.role is not None:
                self.count_shed("draining")
                raise overloaded("The gateway is being stopped.", 5.0)
        except SurecallError as error:
            await self._refuse(scope, send, protocol or guess_protocol(path, head), error)
            return
        if endpoint.kind == "model":
            assert protocol is not None
            if named is not None and named[1] and not wants_events(scope):
                await self._refuse(scope, send, protocol, EVENTS_ONLY)
                return
            job = Job(self, state, protocol, head, caller, (scope, receive, send))
            job.named = named
            await job.run()
            return
        await self._serve_other(endpoint.kind, state, head, caller, scope, receive, send)

    def _admit(self, state: State, head: Head, role: Role, scope: Any) -> Caller:
        if not head.token and scope["query_string"]:
            given = parse_qs(scope["query_string"].decode("latin-1")).get("key")
            head.token = given[0] if given else ""
        caller = state.keyring.find(head.token)
        if caller is None:
            raise unauthorized("There is no such key." if head.token else "The request has no key.")
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
            others = self._workers.read_others() if self._workers is not None else ()
            await respond(
                send,
                200,
                self.render_metrics(state.upstreams.values(), others),
                content_type=CONTENT_TYPE,
            )
        elif kind == "reload":
            await self._answer_reload(scope, send, head)
        elif kind == "models":
            await list_models(state, head, caller, scope, send)
        else:
            protocol = guess_protocol(scope["path"], head)
            await RelayJob(self, state, protocol, head, caller, (scope, receive, send)).run()

    async def _answer_ready(self, send: Any) -> None:
        waiting = [name for name, item in self.state.upstreams.items() if not item.is_ready]
        is_ready = not waiting and not self.is_draining
        status = "draining" if self.is_draining else "ready" if is_ready else "loading"
        await respond(send, 200 if is_ready else 503, encode({"status": status}))

    async def _answer_reload(self, scope: Any, send: Any, head: Head) -> None:
        if not self.state.keyring:
            # Without keys anybody on this machine could; there it takes a signal.
            await self._refuse(
                scope,
                send,
                protocol_of("chat_completions"),
                forbidden("Reloading needs an admin key."),
            )
            return
        error = await self.reload()
        if error is not None:
            await respond(send, 400, encode({"status": "kept", "error": str(error)}))
            return
        await respond(send, 200, encode({"status": "reloaded"}))

    async def _refuse(
        self, scope: Any, send: Any, protocol: WireProtocol, error: SurecallError
    ) -> None:
        status, body = render_error(protocol, error)
        extra = retry_headers(error)
        if isinstance(error, ProviderStatusError) and error.status in {404, 405}:
            status = error.status
        if status == 401:
            extra.append((b"www-authenticate", b"Bearer"))
        if self.is_draining:
            extra.append((b"connection", b"close"))
        if self.logs_requests:
            log_refused(scope["method"], scope["path"], status, error)
        await respond(send, status, body, extra=extra)
