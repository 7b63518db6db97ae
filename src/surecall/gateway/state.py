"""What all requests of a gateway share: settings in force, limits, the store, and counts."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from surecall.base.errors import ConfigError, ProviderStatusError
from surecall.base.metrics import Metrics, SeriesSnapshot
from surecall.base.redaction import open_log
from surecall.exchange import Policy
from surecall.exchange.reply_checker import EXCHANGE_RULES
from surecall.exchange.signatures import EchoCache
from surecall.exchange.streams import PULSE_S
from surecall.gateway.telemetry.counters import RESULTS, RequestMetrics
from surecall.gateway.telemetry.otel import names_collector
from surecall.reading import ReadingLimits
from surecall.serving import Exchange, HttpConnection, RawHeaders
from surecall.serving.http_connection import STATUS_LINES
from surecall.store.records.record import RequestRecord
from surecall.store.records.spool import SpooledRecords
from surecall.store.records.sqlite import SqliteRecords
from surecall.store.records.store import StoreCounts

from .budgets import Budgets, Gate, RecentFailures, RetryBudget, overloaded
from .headers import ATTEMPTS, OUTCOME, RECEIPTS, REQUEST_ID, TRACEPARENT, UPSTREAM, Head, Hosts
from .keys import Keyring
from .log import log_request
from .probing import Strategies
from .prompts import Prefixes
from .settings.load import GatewaySettings
from .settings.tables import PolicySettings, TelemetrySettings
from .upstreams import Router, Target, Upstream

if TYPE_CHECKING:
    from surecall.gateway.telemetry.otel import RequestSpans
    from surecall.store.records.store import RecordStore

_log = open_log("surecall.gateway")
_MAX_NAMED: Final = 100
_MAX_NAME_CHARS: Final = 100


class State:
    """The settings in force, and everything that is made of them."""

    def __init__(
        self,
        settings: GatewaySettings,
        upstreams: Mapping[str, Upstream],
        budgets: Budgets,
        *,
        facts: Path | None = None,
    ) -> None:
        self.settings = settings
        self.upstreams = upstreams
        self.router = Router(settings, upstreams)
        self.strategies = Strategies(settings, facts=facts)
        self.keyring = Keyring(settings.keys, budgets)
        self.hosts = Hosts((settings.server.host,), settings.server.allow_hosts)
        self._observes = {name for name, item in settings.models.items() if _observes(item.policy)}
        self._policy = _make_policy(settings.policy)
        self._policies = {
            name: _make_policy(item.policy)
            for name, item in settings.models.items()
            if item.policy is not None
        }

    def observes(self, target: Target) -> bool:
        """Tell whether replies of a model are passed on untouched, and only looked at."""
        return self.settings.policy.observe or target.model in self._observes

    def policy_for(self, target: Target) -> Policy:
        """Return what may be done for requests to a model."""
        if self._policies and (found := self._policies.get(target.model)) is not None:
            return found
        return self._policy


def _observes(settings: PolicySettings | None) -> bool:
    return settings is not None and settings.observe


def _make_policy(settings: PolicySettings) -> Policy:
    fields = {name: getattr(settings, name) for name in settings.__struct_fields__}
    limits = ReadingLimits(max_arguments_bytes=fields.pop("max_arguments_bytes"))
    del fields["observe"]
    return Policy(**fields, limits=limits)  # the others have the same names


_REPLY = (
    b"%%bcontent-type: application/json\r\ncontent-length: %%d\r\n%b: %%b\r\n"
    b"%b: %%b\r\n%b: %%d\r\n%b: %%b\r\n%b: %%b\r\n\r\n%%b"
) % (OUTCOME, REQUEST_ID, RECEIPTS, UPSTREAM, ATTEMPTS)
_MAX_SEEN_HEADERS = 64


class GatewayConnection(HttpConnection):
    """One connection of a client."""

    _seen: tuple[RawHeaders, Hosts, Head] | None = None
    """The last headers, whose they are compared with, and what they say."""

    def read_head(self, headers: RawHeaders, hosts: Hosts) -> Head:
        """Return what the headers of a request say; clients send the same ones again and again."""
        seen = self._seen
        if seen is not None and seen[1] is hosts and seen[0] == headers:
            return seen[2]
        head = Head(headers, *hosts.at(self.address))
        self._seen = (headers, hosts, head) if len(headers) <= _MAX_SEEN_HEADERS else None
        return head

    @property
    def is_crowded(self) -> bool:
        """Whether there are more connections than requests are taken from."""
        return len(self.keeper.connections) > self.limits.max_connections

    def take_body(self, exchange: Exchange) -> bytes | None:
        """Take the body of a request if all of it is there."""
        if not exchange.is_whole or self.is_lost:
            return None
        body, exchange.body = exchange.body, b""
        return bytes(body)

    def write_reply(
        self,
        exchange: Exchange,
        status: int,
        outcome: str,
        receipts: int,
        *,
        of: str,
        trail: tuple[bytes, bytes],
        body: bytes,
    ) -> None:
        """Write a whole reply with no headers but the usual ones.

        `of` is the id of the request; `trail` is the upstream that answered, and all attempts.
        """
        named = (outcome.encode(), of.encode(), receipts, *trail)
        usual = (STATUS_LINES[status], len(body), *named, body)
        self.write_answer(exchange, _REPLY % usual)


class NoRecords:
    """Keeps nothing."""

    def __init__(self) -> None:
        self.counts = StoreCounts()

    async def add(self, record: RequestRecord) -> None:
        """Keep nothing."""

    def add_soon(self, record: RequestRecord) -> None:
        """Keep nothing."""

    async def find_latest(self, skipped: int) -> str:
        """Find nothing."""
        return ""

    async def remove_some(self, last: str) -> tuple[int, bool]:
        """Remove nothing."""
        return 0, False

    async def close(self) -> None:
        """Nothing is open."""


class Core:
    """What requests need of their gateway, whatever its settings are at the moment.

    Args:
        settings: The settings it begins with.
        store: Where requests are recorded.
    """

    def __init__(self, settings: GatewaySettings, store: "RecordStore | NoRecords") -> None:
        self.store: Any = store
        self.live: set[Any] = set()
        """The requests under way."""
        self.is_draining = False
        self.pulse_s = PULSE_S
        """How often clients are looked after whose streams are silent."""
        self.echoes = EchoCache()
        self.prefixes = Prefixes()
        limits = settings.limits
        self.gate = Gate(limits.max_in_flight, limits.max_waiting, limits.max_wait_s, "The gateway")
        if isinstance(store, SpooledRecords) and isinstance(store.store, SqliteRecords):
            store.store.is_alone = self._is_alone
        self.failures = RecentFailures()
        self.budget = RetryBudget(settings.retry.budget_share, settings.retry.budget_floor)
        self._named = set(list_models_of(settings))
        self.metrics = Metrics()
        self.request_metrics = RequestMetrics(
            self.metrics, upstreams=tuple(settings.upstreams), models=tuple(self._named)
        )
        self.metrics.allow("rule", EXCHANGE_RULES)
        self.logs_requests = settings.log.requests
        self.refuses_when_full = settings.store.when_full == "refuse"
        self._spans: Any = None
        if settings.telemetry.otel or names_collector():
            self._spans = _open_spans(settings.telemetry)

    def _is_alone(self) -> bool:
        """Tell whether one request at most is under way."""
        return len(self.live) <= 1

    def take_settings(self, settings: GatewaySettings) -> None:
        """Follow a change of the settings."""
        limits = settings.limits
        self.gate.limit, self.gate.max_waiting = limits.max_in_flight, limits.max_waiting
        self.gate.max_wait_s = limits.max_wait_s
        self.logs_requests = settings.log.requests
        self.refuses_when_full = settings.store.when_full == "refuse"
        self._declare(settings.upstreams, list_models_of(settings))

    def begin_span(self, time: float, head: Head) -> Any:
        """Begin the span of a request, if spans are made; the upstream's become its children."""
        if self._spans is None:
            return None
        passed = dict(head.passed)
        span = self._spans.begin(time, passed.get(TRACEPARENT))
        return span, [*(passed | self._spans.headers_of(span)).items()]

    def observe(self, record: RequestRecord, span: Any = None) -> None:
        """Count a request that is over."""
        if record.status == 200 and record.model_asked not in self._named:
            self._declare_model(record.model_asked)
        self.request_metrics.observe(record)
        if self.logs_requests:
            log_request(record)
        if self._spans is not None:
            self._spans.observe(record, span)

    def count_shed(self, reason: str) -> None:
        """Count a request that was refused at the entrance."""
        self.request_metrics.shed.add(reason)

    def check_room(self, *, is_crowded: bool) -> None:
        """Make sure that there is room for another request, before anything is done for it.

        Raises:
            ProviderStatusError: `OVERLOADED`.
        """
        try:
            if is_crowded:
                raise overloaded("The gateway has too many connections.")
            if self.refuses_when_full and getattr(self.store, "is_full", False):
                raise overloaded("Records cannot be kept: the store is away and the spool full.", 5)
            self.gate.check_room()
        except ProviderStatusError:
            self.count_shed("overload")
            raise

    async def wait_at(self, gate: Gate) -> None:
        """Enter a gate that was not free at once.

        Raises:
            ProviderStatusError: `OVERLOADED`.
        """
        try:
            await gate.enter()
        except ProviderStatusError:
            self.count_shed("overload")
            raise

    def render_metrics(
        self,
        upstreams: Iterable[Upstream],
        others: Iterable[Iterable[SeriesSnapshot]] = (),
    ) -> bytes:
        """Return all metrics in the text form of Prometheus, those of other workers added."""
        metrics = self.request_metrics
        upstreams = tuple(upstreams)
        metrics.in_flight.set(self.gate.inside)
        metrics.waiting.set(self.gate.waiting + sum(item.gate.waiting for item in upstreams))
        for item in upstreams:
            metrics.upstream_down.sample(item.name)[0] = int(item.health.is_down)
        counts = self.store.counts
        for result in RESULTS:
            metrics.records.sample(result)[0] = getattr(counts, result)
        metrics.store_reopened.sample()[0] = counts.reopened
        metrics.task_restarts.sample("records")[0] = counts.restarts
        if isinstance(self.store, SpooledRecords):
            metrics.store_away.set(int(self.store.is_away))
            if self.store.spool is not None:
                metrics.spool_bytes.set(self.store.spool.size_bytes)
        return self.metrics.render(others)

    def _declare_model(self, name: str) -> None:
        """Count a model apart that an upstream has answered for, as long as these are few."""
        if len(self._named) < _MAX_NAMED and len(name) <= _MAX_NAME_CHARS:
            self._named.add(name)
            self._declare((), (name,))

    def _declare(self, upstreams: Iterable[str], models: Iterable[str]) -> None:
        """Count more upstreams and models apart."""
        self.metrics.allow("upstream", upstreams)
        self.metrics.allow("model", models)


def _open_spans(settings: TelemetrySettings) -> "RequestSpans | None":
    """Return what makes spans; without the extra, the environment alone does not stop a gateway."""
    from surecall.gateway.telemetry.otel import RequestSpans

    try:
        return RequestSpans(content=settings.otel_content)
    except ConfigError as error:
        if settings.otel:
            raise
        _log.warning("No traces are sent: %s %s", error.message, error.hint)
        return None


def list_models_of(settings: GatewaySettings) -> tuple[str, ...]:
    """Return the names of models that the settings have."""
    names = [*settings.aliases, *settings.routes, *settings.models]
    for entry in settings.upstreams.values():
        names += [name for name in entry.settings.models if "*" not in name]
        if entry.embedded:
            names += [entry.embedded, f"embedded:{entry.embedded}"]
    return tuple(dict.fromkeys(names))
