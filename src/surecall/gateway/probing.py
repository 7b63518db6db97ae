"""How a model is asked: declared, or found out by a probe that is not too old.

What is declared wins, then facts of probes that are still believed, then the catalog. When nobody
knows whether a model takes tools, it is asked in the background, and only with a key of the
gateway: the requests of clients do not wait for that, and their keys are never used for it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from surecall.base.errors import ConfigError
from surecall.base.limits import MAX_EMBEDDED_TOKENS
from surecall.base.redaction import open_log
from surecall.exchange.policy import Route
from surecall.models.config import load_config
from surecall.models.profiles import (
    Catalog,
    ResolvedCapabilities,
    merge_presets,
    presets_for,
    resolve_capabilities,
)

from .settings.load import GatewaySettings
from .settings.tables import ModelSettings
from .upstreams import Known, Target, Upstream

if TYPE_CHECKING:
    from surecall.models.probe import FactKey, FactStore, ProbedFact, ProbeNote, ProbeReport
    from surecall.models.transport import Transport

T = TypeVar("T")

FACTS_FILE: Final = "facts.sqlite3"
_MAX_KNOWN: Final = 1024
_RECHECK_S: Final = 60.0
_NEEDED: Final = "supports_tool_use"
_TURNS: Final = ("takes_developer", "takes_repeated_roles", "takes_user_after_result")

_log = open_log("surecall.gateway")


class Strategies:
    """What is known about every model at every upstream.

    Args:
        settings: What is declared.
        facts: The file with the facts of probes; by default that of the other commands.
        max_age_s: How long a fact is believed.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        *,
        facts: Path | None = None,
        max_age_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        if facts is None or max_age_s is None:
            config = load_config(search=False)
            facts = facts or config.cache_dir / FACTS_FILE
            max_age_s = max_age_s or config.max_probe_age_s
        self._facts = facts
        self._max_age_s = max_age_s
        self._clock = clock
        self._known: dict[tuple[str, str], Known] = {}
        self._probes: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._notes: dict[tuple[str, str], tuple[bool, str]] = {}

    def model_settings(self, target: Target) -> ModelSettings | None:
        """Return what the settings say about a model."""
        found = self._settings.models.get(target.model)
        if found is None or found.upstream not in ("", target.upstream.name):
            return None
        return found

    def recall(self, target: Target) -> Known | None:
        """Return what is known, if it was looked up before and is still believed."""
        known = self._known.get((target.upstream.name, target.model))
        if known is None or known.expires_at <= self._clock():
            return None
        return known

    async def find(self, target: Target, *, with_tools: bool) -> Known:
        """Return what is known about a model; begin a probe when that is too little."""
        known = self.recall(target)
        if known is None:
            probed, dates, expires_at = await asyncio.to_thread(self._load_facts, target)
            known = self._resolve(target, probed, dates, expires_at)
            if len(self._known) >= _MAX_KNOWN:  # names of models come from clients
                self._known.pop(next(iter(self._known)))
            self._known[target.upstream.name, target.model] = known
        if with_tools and _NEEDED not in known.route.known:
            self._begin_probe(target)
        return known

    def _resolve(
        self, target: Target, probed: dict[str, Any], dates: dict[str, str], expires_at: float
    ) -> Known:
        entry, model = target.upstream.entry, self.model_settings(target)
        declared = {**entry.settings.capabilities, **(model.capabilities if model else {})}
        name = f"embedded:{entry.embedded}" if entry.embedded else target.model
        found = resolve_capabilities(
            entry.provider, name, overrides=declared, probed=probed, probed_on=dates
        )
        if _is_elsewhere(target):
            found = _forget_turns(found)
        if model is not None:  # what the settings put into requests is meant to arrive
            named = (*model.request_defaults, *model.request_overrides)
            taken = (*found.capabilities.request_fields, *named)
            found = found._replace(capabilities=replace(found.capabilities, request_fields=taken))
        ok, error = self._notes.get((target.upstream.name, target.model), (None, ""))
        route = Route.of(
            target.upstream.protocol,
            target.model,
            found,
            strategy=model.strategy if model else "auto",
            request_defaults={
                **(_embedded_defaults(name) if entry.embedded else {}),
                **(model.request_defaults if model else {}),
            },
        )
        return Known(
            route=route,
            knows_tools=_NEEDED in route.known or not target.upstream.entry.may_be_probed,
            expires_at=min(expires_at, self._clock() + _RECHECK_S),
            probe_ok=ok if ok is not None else (True if probed else None),
            probe_error=error,
        )

    def _load_facts(self, target: Target) -> tuple[dict[str, Any], dict[str, str], float]:
        """Return the facts that are still believed, their dates, and when the first expires."""
        forever = self._clock() + _RECHECK_S
        if not self._facts.exists():
            return {}, {}, forever
        from surecall.models.probe import FactKey, date_text

        upstream = target.upstream
        key = FactKey.of(upstream.fact_address, upstream.entry.protocol, target.model)
        try:
            facts = self._open_facts().fresh(key)
        except ConfigError as error:
            _log.warning("Facts of probes are not used: %s", error.message)
            return {}, {}, forever
        dates = {fact.field: date_text(fact.asked_at)[:10] for fact in facts}
        until = min((fact.expires_at for fact in facts), default=forever)
        return {fact.field: fact.value for fact in facts}, dates, until

    # Probes

    def _begin_probe(self, target: Target) -> None:
        key = (target.upstream.name, target.model)
        if key in self._probes or not target.upstream.entry.may_be_probed:
            return
        task = asyncio.get_running_loop().create_task(self._probe(target))
        self._probes[key] = task
        task.add_done_callback(lambda _: self._probes.pop(key, None))

    async def _probe(self, target: Target) -> None:
        note = await self.probe(target)
        if note is not None and not note.ok:
            _log.warning(
                "The probe of %s at %s failed: %s", target.model, target.upstream.name, note.error
            )

    async def probe(self, target: Target) -> "ProbeNote | None":
        """Ask an upstream what a model can do; `None` when that is not allowed."""
        from surecall.models.probe import ensure_probed

        return await self._run_probe(target, ensure_probed)

    async def _run_probe(self, target: Target, ask: Callable[..., Awaitable[T]]) -> T | None:
        """Ask with a connection of its own, and remember how that went."""
        upstream = target.upstream
        if not upstream.entry.may_be_probed:
            return None
        transport = await _open_transport(upstream)
        try:
            found: Any = await ask(
                transport,
                upstream.protocol,
                target.model,
                store=self._open_facts(),
                address=upstream.fact_address,
            )
        finally:
            await transport.aclose()
        place = (upstream.name, target.model)
        if len(self._notes) >= _MAX_KNOWN:
            self._notes.pop(next(iter(self._notes)))
        is_ok = getattr(found, "ok", found.error is None)
        self._notes[place] = (is_ok, str(found.error.code) if found.error else "")
        self._known.pop(place, None)
        return found

    def _open_facts(self) -> "FactStore":
        from surecall.models.probe import FactStore

        return FactStore(self._facts, max_age_s=self._max_age_s, clock=self._clock)

    def list_facts(self) -> "tuple[tuple[FactKey, ProbedFact], ...]":
        """Return everything that probes have found out, also what is not believed any more."""
        return self._open_facts().all()

    async def probe_again(self, target: Target) -> "ProbeReport | None":
        """Ask an upstream anew what is known about a model; `None` when that is not allowed."""
        from surecall.models.probe import ESSENTIAL, FactKey, probe_model, select_questions

        upstream = target.upstream
        key = FactKey.of(upstream.fact_address, upstream.entry.protocol, target.model)
        asked = {fact.question for other, fact in self.list_facts() if other == key}
        names = {question.name for question in ESSENTIAL} | {name for name in asked if name}
        ask = partial(probe_model, questions=select_questions(names))
        return await self._run_probe(target, ask)

    async def close(self) -> None:
        """Give up probes that are under way."""
        tasks = list(self._probes.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _embedded_defaults(name: str) -> dict[str, Any]:
    """Return what a model in this process is asked with: it may never find an end by itself."""
    layers = [preset.layer for preset in presets_for(None, name)]
    known = merge_presets(layers).values.get("request_defaults", {})
    return {"max_tokens": MAX_EMBEDDED_TOKENS, **known}


async def _open_transport(upstream: Upstream) -> "Transport":
    from surecall.models.profiles import find_weights, is_weights_path
    from surecall.models.transport import EmbeddedTransport, HttpTransport

    entry = upstream.entry
    if entry.embedded:
        config = load_config(search=False)
        name = entry.embedded
        model = name if is_weights_path(name) else find_weights(name)
        return EmbeddedTransport(model, cache_dir=config.cache_dir)
    return HttpTransport(
        entry.base,
        api_key=upstream.key,
        api_prefix="",
        headers=entry.settings.headers,
        deadlines=entry.deadlines,
        protocol=upstream.protocol,
        network=entry.network,
    )


def _is_elsewhere(target: Target) -> bool:
    """Tell whether an upstream is named after a provider, but is none of its hosts."""
    entry, catalog = target.upstream.entry, Catalog.builtin()
    provider = catalog.find_provider(entry.provider) if entry.provider else None
    host = urlsplit(entry.base).hostname or ""
    return bool(provider and provider.hosts) and catalog.provider_at(host) is None


def _forget_turns(found: ResolvedCapabilities) -> ResolvedCapabilities:
    """Return capabilities in which the turns that a provider's own servers take are only assumed.

    Another server may hand the messages to the template of any model.
    """
    origins = {
        name: "default" if name in _TURNS and origin.startswith("provider:") else origin
        for name, origin in found.origins.items()
    }
    return found._replace(origins=origins)
