"""Where requests go: upstreams with their connections and limits, and which one a model belongs to.

Nothing a client sends decides about a host. A key of a client goes to the upstream that was chosen
for its request, and to no other one.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderError,
    ProviderStatusError,
    ProviderTimeoutError,
    SurecallError,
)
from surecall.base.redaction import Secret, excerpt
from surecall.exchange.policy import Route
from surecall.models.client.network import join_url
from surecall.models.config import load_config
from surecall.models.profiles import embedded_name, find_weights, is_weights_path, matches_glob
from surecall.wire import WireProtocol, find_protocol

from .budgets import Gate
from .evidence import Choice, Tally
from .health import OPEN_S, Breaker, Health
from .settings.load import GatewaySettings, UpstreamEntry
from .settings.tables import LimitSettings, RouteSettings, TargetSettings

if TYPE_CHECKING:
    from surecall.models.client import Answer, Origin, RequestHead
    from surecall.models.transport import Engine

Headers = Sequence[tuple[str, str]]

_MIN_CONNECTIONS: Final = 256
_ELSEWHERE: Final = frozenset(
    {
        Code.OVERLOADED,
        Code.RATE_LIMIT,
        Code.UPSTREAM_5XX,
        Code.UPSTREAM_BAD_FRAMING,
        Code.UPSTREAM_EMPTY,
        Code.UPSTREAM_ENCODING,
        Code.UPSTREAM_HTML,
        Code.UPSTREAM_INVALID_JSON,
        Code.UPSTREAM_NOT_A_REPLY,
        Code.UPSTREAM_NO_CHOICES,
        Code.UPSTREAM_REDIRECT,
        Code.UPSTREAM_TRUNCATED_BODY,
    }
)
"""Errors of one upstream that another may not have."""


class Upstream:
    """One endpoint at work: its connections, how much it takes at once, and how it does.

    Args:
        entry: Its settings.
        limits: What the worker takes on.
        is_only: Whether there is no other upstream.
    """

    def __init__(self, entry: UpstreamEntry, limits: LimitSettings, *, is_only: bool) -> None:
        self.entry = entry
        self.name = entry.name
        self.protocol: WireProtocol = find_protocol(entry.protocol)
        self.gate = Gate(0, 0, 0, f"The upstream {entry.name}")
        self.take_limits(limits, is_only=is_only)
        self.breaker = Breaker()
        self.tallies: defaultdict[str, Tally] = defaultdict(Tally)
        """How each model does here."""
        self.health = Health(entry.name, has_own_key=entry.key is not None)
        self.key: Secret | None = entry.key
        self.is_retired = False
        self._engine: Engine | None = None
        self._origin: Origin | None = None
        self._opening: asyncio.Lock | None = None
        self._prefix = ""
        self._fixed = tuple(self.protocol.fixed_headers.items())
        self._own = tuple(entry.settings.headers.items())
        self._auth: tuple[tuple[str, str], ...] | None = None
        if not entry.embedded:
            self._connect(entry.base)

    def take_limits(self, limits: LimitSettings, *, is_only: bool) -> None:
        """Follow what the worker takes on: one of several upstreams gets half of it."""
        share = limits.max_in_flight if is_only else max(limits.max_in_flight // 2, 1)
        self.gate.limit = self.entry.settings.max_in_flight or share
        self.gate.max_waiting, self.gate.max_wait_s = limits.max_waiting, limits.max_wait_s

    @property
    def is_ready(self) -> bool:
        """Whether it can take a request now; an embedded model has to be loaded first."""
        return self._origin is not None

    @property
    def base(self) -> str:
        """Where its endpoints are."""
        return self.entry.base

    @property
    def fact_address(self) -> str:
        """The place that facts of probes are kept for."""
        return "embedded" if self.entry.embedded else self.entry.base

    @property
    def own_auth(self) -> tuple[tuple[str, str], ...] | None:
        """The headers with the key of the gateway, if it has one for this upstream."""
        if self._auth is None and self.key is not None:
            self._auth = tuple(self.protocol.render_auth(self.key.reveal()).items())
        return self._auth

    def _connect(self, base: str) -> None:
        from surecall.models.client import ClientLimits, Origin

        parts = urlsplit(base)
        connections = self.entry.settings.max_connections
        limits = ClientLimits(max_connections=connections or max(self.gate.limit, _MIN_CONNECTIONS))
        network = self.entry.network
        self._origin = Origin(f"{parts.scheme}://{parts.netloc}", limits=limits, network=network)
        self._prefix = parts.path.rstrip("/")

    async def open(self) -> None:
        """Get ready; this loads an embedded model, which may take seconds."""
        if self._origin is not None:
            return
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._origin is None:
                self._engine = engine = await asyncio.to_thread(self._load_engine)
                self.key = engine.api_key
                self._connect(join_url(engine.address, None, ""))

    def _load_engine(self) -> "Engine":
        from surecall.models.transport import load_embedded

        config = load_config(search=False)
        name = self.entry.embedded
        model: Any = name if is_weights_path(name) else find_weights(name)
        return load_embedded(model, cache_dir=config.cache_dir, **config.local)

    async def close(self) -> None:
        """Give up its connections."""
        if self._origin is not None:
            await self._origin.close()

    def retire(self) -> None:
        """Close it once nothing is under way: the settings do not name it any more."""
        self.is_retired = True
        self._close_when_idle()

    def leave(self) -> None:
        """Note that a request is over."""
        self.gate.leave()
        if self.is_retired:
            self._close_when_idle()

    def _close_when_idle(self) -> None:
        if self.gate.inside == 0:
            asyncio.get_running_loop().create_task(self.close())

    def path_of(self, model: str, *, stream: bool) -> str:
        """Return the path of the endpoint that answers for a model."""
        return self._prefix + self.protocol.path_of(model, stream=stream)

    def relayed_path(self, rest: str) -> str:
        """Return the path for a part below the prefix of the upstream."""
        return f"{self._prefix}/{rest}"

    async def send(self, method: str, path: str, headers: Headers, body: bytes) -> "Answer":
        """Send a request and return its answer once the head is there.

        Raises:
            ProviderError: No answer came.
        """
        if self._origin is None:
            await self.open()
        return await self.send_with(self.prepare(method, path, headers), body)

    def prepare(self, method: str, path: str, headers: Headers) -> "RequestHead":
        """Return the head of a request, for `send_with`; the upstream must be ready."""
        assert self._origin is not None
        if self._fixed or self._own:
            sent = {name.lower() for name, _ in headers}
            extra = [item for item in (*self._fixed, *self._own) if item[0].lower() not in sent]
            headers = (*headers, *extra)
        return self._origin.prepare(method, path, headers)

    async def send_with(self, head: "RequestHead", body: bytes) -> "Answer":
        """Do what `send` does, with a head that was prepared."""
        assert self._origin is not None
        breaker = self.breaker
        if not breaker.begin():
            raise ProviderConnectionError(
                Code.CONNECTION_FAILED,
                f"The upstream {self.name} has failed too often just now.",
                hint="It is tried again in a moment.",
                retry_after_s=OPEN_S,
            )
        try:
            answer = await self._origin.send_with(head, body, self.entry.deadlines)
        except ProviderError as error:
            breaker.note(failed=isinstance(error, ProviderConnectionError | ProviderTimeoutError))
            raise
        except BaseException:
            breaker.release()
            raise
        breaker.note(failed=answer.status >= 500)
        return answer


class Target(Struct, frozen=True):
    """A model at an upstream."""

    upstream: Upstream
    model: str

    @property
    def tally(self) -> Tally:
        """How the model does there."""
        return self.upstream.tallies[self.model]


class Known(Struct, frozen=True, kw_only=True):
    """What is known about a model at an upstream, and until when that is believed."""

    route: Route
    expires_at: float
    knows_tools: bool = False
    """Whether it is known if the model takes tools, or is being found out."""
    probe_ok: bool | None = None
    """What the last probe came to, if there was one."""
    probe_error: str = ""


def unknown_model(model: str) -> ProviderStatusError:
    """Return the refusal of a name that leads nowhere."""
    return ProviderStatusError(
        Code.NOT_FOUND,
        f"No upstream serves the model {excerpt(model, 80)!r}.",
        hint="GET /v1/models lists the names that lead somewhere.",
        status=404,
    )


class Router:
    """Finds where the request for a model goes.

    An alias stands for another name. A route has targets with weights, and fallbacks in order.
    `UPSTREAM/MODEL` names both. Any other name goes to the first upstream that claims it, by the
    names it lists, or else to the first that lists none.
    """

    def __init__(self, settings: GatewaySettings, upstreams: Mapping[str, Upstream]) -> None:
        self._settings = settings
        self.upstreams = upstreams
        self._random = random.Random()  # noqa: S311 - only shares the load
        self._plain: dict[str, tuple[Target, ...]] = {}
        self.choices = {
            name: Choice(route.min_requests, route.trying)
            for name, route in settings.routes.items()
            if route.by == "evidence"
        }
        """The routes by evidence."""

    def find(self, name: str) -> tuple[Target, ...]:
        """Return the target of a name, and those to fall back on, in order.

        Raises:
            ProviderStatusError: `NOT_FOUND`.
        """
        found = self._plain.get(name)
        if found is not None:
            return found
        settings = self._settings
        wanted = settings.aliases.get(name, name)
        route = settings.routes.get(wanted)
        if route is not None:
            first = self._choose(wanted, route)
            rest = [self._target(item) for item in route.fallbacks]
            return (first, *(item for item in rest if item != first))
        found = (self._find_plain(wanted),)
        if len(self._plain) < 1024:
            self._plain[name] = found
        return found

    def list_targets(self, name: str) -> tuple[Target, ...]:
        """Return every target that a name may lead to, without choosing one.

        Raises:
            ProviderStatusError: `NOT_FOUND`.
        """
        route = self._settings.routes.get(self._settings.aliases.get(name, name))
        if route is None:
            return self.find(name)
        return tuple(map(self._target, (*route.targets, *route.fallbacks)))

    def _choose(self, name: str, route: RouteSettings) -> Target:
        usable = [item for item in route.targets if item.weight]
        healthy = [item for item in usable if not self.upstreams[item.upstream].breaker.is_open]
        chosen = healthy or usable
        if len(chosen) == 1:
            return self._target(chosen[0])
        weights = [item.weight for item in chosen]
        if (choice := self.choices.get(name)) is not None and chosen == usable:
            tallies = [self._target(item).tally for item in chosen]
            return self._target(chosen[choice.pick(tallies, weights, self._random)])
        return self._target(self._random.choices(chosen, weights)[0])

    def _target(self, item: TargetSettings) -> Target:
        return Target(self.upstreams[item.upstream], item.model)

    def _find_plain(self, name: str) -> Target:
        upstream, slash, model = name.partition("/")
        if slash and model and upstream in self.upstreams:
            return Target(self.upstreams[upstream], model)
        for item in self.upstreams.values():
            if any(matches_glob(glob, name) for glob in item.entry.settings.models):
                return Target(item, name)
        for item in self.upstreams.values():
            if item.entry.settings.models:
                continue
            if item.entry.embedded and not _is_embedded(name, item.entry.embedded):
                continue
            return Target(item, name)
        raise unknown_model(name)

    def names(self) -> list[str]:
        """List the names that the settings give out."""
        settings = self._settings
        plain = [
            name
            for upstream in self.upstreams.values()
            for name in (
                [f"embedded:{upstream.entry.embedded}"]
                if upstream.entry.embedded
                else upstream.entry.settings.models
            )
            if "*" not in name
        ]
        return list(dict.fromkeys((*settings.aliases, *settings.routes, *plain)))


def _is_embedded(name: str, embedded: str) -> bool:
    return (embedded_name(name) or name).lower() == embedded.lower()


def may_fall_back(error: SurecallError | None) -> bool:
    """Tell whether another upstream may do better."""
    if not isinstance(error, ProviderError):
        return False
    if isinstance(error, ProviderConnectionError | ProviderTimeoutError):
        return True
    return error.retryable or error.code in _ELSEWHERE
