"""From what a user calls a model to who takes part, and the transport to it."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.records import ModelRequest
from surecall.evals.cases import Contender, Price, endpoint_of
from surecall.faults import (
    BUILTIN_ORACLES,
    CLEAN,
    Action,
    Behaviour,
    CallTools,
    PlannedCall,
    Say,
    SimulatedTransport,
    find_behaviour,
    find_fault,
    zoo,
)
from surecall.loop.resolve import EMBEDDED_PROVIDER, find_provider, make_transport
from surecall.models.config import Config, load_config
from surecall.models.profiles import (
    EMBEDDED_PREFIX,
    Catalog,
    ModelEntry,
    embedded_name,
    find_weights,
    is_weights_path,
    matches_glob,
    select,
)
from surecall.models.transport import EmbeddedTransport, HttpTransport, Transport
from surecall.wire import find_protocol

from .cases import Case
from .choosing import choose
from .original import read_original_settings
from .records import Unit
from .transports import MAX_WAIT_S, Pace, PacedTransport

SIMULATED: Final = "simulated:"
"""What the label begins with of a catalog model that is simulated."""

OPENROUTER: Final = "openrouter"
_OPENROUTER_URL: Final = "https://openrouter.ai/api/v1"
_ZOO: Final = "zoo:"
_FAULTS: Final = "faults:"
_ZOO_CATALOG: Final = "catalog"


def find_contenders(
    expression: str,
    *,
    config: Config | None = None,
    catalog: Catalog | None = None,
    prices: Mapping[str, Price] | None = None,
) -> tuple[Contender, ...]:
    """Return who an expression such as `zoo:catalog,embedded:smollm2-135m,!*qwen*` names.

    Args:
        expression: References separated by commas; `!` excludes by label, glob or tag.
        config: Settings in force; by default from the environment.
        catalog: What is known of models.
        prices: What models cost, by label or by the provider's name for them.

    Raises:
        ConfigError: Something does not exist, or nothing is left.
    """
    parser = _Parser(config or load_config(), catalog or Catalog.builtin())
    tokens = [token.strip() for token in expression.split(",") if token.strip()]
    found: dict[str, Contender] = {}
    for token in tokens:
        if not token.startswith("!"):
            found.update((item.label, item) for item in parser.parse(token))
    if not found:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            "no model is named.",
            hint="For example zoo:catalog, embedded:smollm2-135m or openrouter:stable.",
        )
    excluded = [token for token in tokens if token.startswith("!")]
    left = list(found.values())
    if excluded:
        left = list(choose(left, ",".join(excluded), "model"))
    known = prices or {}
    _refuse_unused(known, left)
    return tuple(replace(item, price=known.get(item.label, known.get(item.model))) for item in left)


def simulate_catalog(catalog: Catalog | None = None) -> tuple[Contender, ...]:
    """Return every catalog model for which there is a simulated one, in the catalog's order."""
    return tuple(
        _simulate_entry(entry, behaviour)
        for entry in (catalog or Catalog.builtin()).models
        if (behaviour := _behaviour_for(entry.id)) is not None
    )


class _Parser:
    """Reads references under one configuration."""

    def __init__(self, config: Config, catalog: Catalog) -> None:
        self._config = config
        self._catalog = catalog

    def parse(self, token: str) -> Iterable[Contender]:
        name, _, url = token.rpartition("@")
        if name and url.lower().startswith(("http://", "https://")):
            return [self._make_at(name, url, label=token)]
        lowered = token.lower()
        if lowered.startswith(EMBEDDED_PREFIX):
            return [self._make_embedded(token)]
        if lowered.startswith(_ZOO):
            return self._find_zoo(lowered.removeprefix(_ZOO))
        if lowered.startswith(SIMULATED):
            return [self._make_simulated(lowered)]
        if lowered.startswith(_FAULTS):
            return [_make_faulty(lowered.removeprefix(_FAULTS))]
        prefix, _, name = token.partition(":")
        if prefix.lower() == OPENROUTER:
            url = read_original_settings().settings.get("base_url", _OPENROUTER_URL)
            found = self._list_models_at(url, name, label=f"{OPENROUTER}:")
            return [replace(one, provider=OPENROUTER) for one in found]
        placed = self._config.with_values({"model": token})
        if placed.base_url and placed.base_url != self._config.base_url:
            return [self._make_at(placed.model or name, placed.base_url, label=token)]
        if not self._config.base_url:
            raise ConfigError(
                Code.UNKNOWN_MODEL,
                f"it is not known where {token!r} is served.",
                hint="Write PROVIDER:ID, ID@https://HOST/v1, embedded:NAME or zoo:NAME, "
                "or set SURECALL_BASE_URL.",
            )
        if self._catalog.provider_at(urlsplit(self._config.base_url).hostname or "") == OPENROUTER:
            return self._list_models_at(self._config.base_url, token, label="")
        return [self._make_at(token, self._config.base_url, label=token)]

    def _make_embedded(self, token: str) -> Contender:
        name = embedded_name(token) or ""
        if not is_weights_path(name):
            find_weights(name)
        entry = self._catalog.find(token)
        return Contender(
            label=f"{EMBEDDED_PREFIX}{name}",
            model=f"{EMBEDDED_PREFIX}{name}",
            provider=EMBEDDED_PROVIDER,
            kind="embedded",
            tags=("embedded", *(entry.tags if entry else ())),
        )

    def _find_zoo(self, name: str) -> tuple[Contender, ...]:
        if name == _ZOO_CATALOG:
            return simulate_catalog(self._catalog)
        if "*" in name:
            matching = [item for item in zoo() if matches_glob(name, item.name)]
            if not matching:
                find_behaviour(name)
            return tuple(map(_make_simulated, matching))
        return (_make_simulated(find_behaviour(name)),)

    def _make_simulated(self, label: str) -> Contender:
        known = {item.label.lower(): item for item in simulate_catalog(self._catalog)}
        if label not in known:
            raise ConfigError(
                Code.UNKNOWN_MODEL,
                f"{label!r} is not a simulated model.",
                hint=did_you_mean(label, known),
            )
        return known[label]

    def _list_models_at(self, url: str, name: str, *, label: str) -> list[Contender]:
        """Return the catalog models that a filter names, or the one model of this name."""
        served = [entry for entry in self._catalog.models if embedded_name(entry.id) is None]
        try:
            chosen = [entry.id for entry in select(served, name)]
        except ConfigError:
            if "/" not in name:  # a tag or a filter: all names of models there have a slash
                known = {word for entry in served for word in (entry.id, *entry.tags)}
                raise ConfigError(
                    Code.UNKNOWN_MODEL,
                    f"nothing at OpenRouter is called {name!r}.",
                    hint=did_you_mean(name, sorted(known)),
                ) from None
            chosen = [name]
        if "/" in name and "*" not in name:
            chosen = [name]  # a name, also when the catalog has it with another ending
        return [self._make_at(model, url, label=f"{label}{model}") for model in chosen]

    def _make_at(self, model: str, url: str, *, label: str) -> Contender:
        checked = self._config.with_values({"base_url": url, "model": model})
        provider = self._catalog.provider_at(urlsplit(checked.base_url or "").hostname or "")
        entry = self._catalog.find(model)
        contender = Contender(
            label=label,
            model=model,
            provider=provider,
            base_url=checked.base_url,
            tags=(model, *(entry.tags if entry else ()), *((provider,) if provider else ())),
        )
        if url != self._config.base_url:
            return contender
        return replace(
            contender,
            provider=find_provider(checked, self._catalog),
            protocol=checked.protocol,
            capabilities=checked.capabilities,
        )


def _refuse_unused(prices: Mapping[str, Price], contenders: Iterable[Contender]) -> None:
    named = {name: None for item in contenders for name in (item.label, item.model)}
    for name in prices:
        if name not in named:
            raise ConfigError(
                Code.UNKNOWN_MODEL,
                f"there is a price for {name!r}, which does not take part.",
                hint=did_you_mean(name, named),
            )


def _make_simulated(behaviour: Behaviour) -> Contender:
    name = f"{_ZOO}{behaviour.name}"
    return Contender(
        label=name,
        model=name,
        kind="simulated",
        behaviour=behaviour.name,
        tags=("simulated", "zoo", behaviour.name),
    )


def _simulate_entry(entry: ModelEntry, behaviour: Behaviour) -> Contender:
    vendor = entry.id.partition("/")[0]
    return Contender(
        label=f"{SIMULATED}{entry.id}",
        model=entry.id,
        provider=OPENROUTER,
        kind="simulated",
        behaviour=behaviour.name,
        tags=("simulated", entry.id, entry.id.partition(":")[0], vendor, *entry.tags),
    )


def _make_faulty(name: str) -> Contender:
    if name != CLEAN:
        find_fault(name)
    label = f"{_FAULTS}{name}"
    return Contender(label=label, model=label, kind="simulated", tags=("simulated", "faults", name))


def _behaviour_for(model: str) -> Behaviour | None:
    base = model.partition(":")[0]
    return next((item for item in zoo() if base in item.models), None)


class CaseOracle:
    """Tells a simulated model what would be right in one case."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def next_action(self, request: ModelRequest) -> Action | None:
        """Return what a good model would do, if the case knows."""
        ideal = self._case.ideal(request)
        if ideal is None:
            return None
        if ideal.calls:
            return CallTools(tuple(PlannedCall(call.name, call.arguments) for call in ideal.calls))
        return Say(ideal.text)


class TransportPool:
    """Opens transports; connections to a provider are kept for all trials of an event loop."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Kept]] = (
            WeakKeyDictionary()
        )
        self._paces: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Pace]] = (
            WeakKeyDictionary()
        )
        self.max_wait_s = MAX_WAIT_S

    @asynccontextmanager
    async def __call__(
        self, contender: Contender, unit: Unit, case: Case
    ) -> AsyncGenerator[Transport, None]:
        """Open a transport to a contender for one trial."""
        if contender.kind == "simulated":
            yield SimulatedTransport(
                contender.behaviour or None,
                seed=unit.seed,
                oracles=(CaseOracle(case), *BUILTIN_ORACLES),
            )
            return
        transport = await self._share(contender)
        if contender.kind == "embedded":
            yield transport
            return
        paces = self._paces.setdefault(asyncio.get_running_loop(), {})
        name = endpoint_of(contender)
        yield PacedTransport(transport, paces.setdefault(name, Pace(self.max_wait_s)))

    async def aclose(self) -> None:
        """Close what is open in the running event loop."""
        opened = self._kept.pop(asyncio.get_running_loop(), {}).values()
        for transport in await asyncio.gather(*opened, return_exceptions=True):
            if not isinstance(transport, BaseException):
                await transport.aclose()

    async def _share(self, contender: Contender) -> Transport:
        opened = self._kept.setdefault(asyncio.get_running_loop(), {})
        if contender.label not in opened:
            opened[contender.label] = asyncio.ensure_future(_open(contender))
        try:
            return await asyncio.shield(opened[contender.label])
        except Exception:
            opened.pop(contender.label, None)  # the next trial may have more luck
            raise


_Kept = asyncio.Future[HttpTransport | EmbeddedTransport]


open_transport: Final = TransportPool()
"""What executors open transports with."""


async def _open(contender: Contender) -> HttpTransport | EmbeddedTransport:
    """Open a transport; a model in this process is loaded now, so that no trial waits for it."""
    protocol = find_protocol(contender.protocol) if contender.protocol else None
    transport = make_transport(_config_for(contender), protocol)
    if isinstance(transport, EmbeddedTransport):
        await transport.open()
    return transport


def require_keys(contenders: Iterable[Contender]) -> None:
    """Refuse contenders whose provider is known to need a key, where none is set."""
    for contender in contenders:
        if contender.kind != "simulated":
            _config_for(contender).require_key()


def _config_for(contender: Contender) -> Config:
    """Return the settings for a contender: what is meant for one address goes to no other."""
    if contender.kind == "embedded":
        return load_config(overrides={"model": contender.model})
    given: dict[str, Any] = {"model": contender.model, "base_url": contender.base_url}
    original = read_original_settings().settings if contender.provider == OPENROUTER else {}
    if contender.base_url != original.get("base_url", _OPENROUTER_URL):
        original = {}
    config = load_config(overrides={**original, **given})
    if contender.base_url == load_config().base_url:
        return config
    headers = {
        name: value
        for name, value in config.headers.items()
        if config.origins.get(f"headers.{name}") == "flag"
    }
    return replace(config, headers=headers, api_prefix=None)
