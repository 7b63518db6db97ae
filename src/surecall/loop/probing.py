"""What probes found out about the model of a session, and asking when nobody knows."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from surecall.base.errors import ConfigError, ProviderError
from surecall.base.redaction import open_log
from surecall.models.config import Config
from surecall.models.profiles import embedded_name
from surecall.models.transport import Transport, join_url
from surecall.wire import WireProtocol

from .plan import Plan

if TYPE_CHECKING:
    from surecall.models.probe import FactStore, ProbedFact, ProbeNote

FACTS_FILE: Final = "facts.sqlite3"
"""Name of the file in `cache_dir`."""

_REFUSED_FIELDS: Final = "unsupported_fields"
_EMBEDDED: Final = "embedded"
_TOOLS: Final = "supports_tool_use"
_FORM: Final = "json_schema"
_DATE_CHARS: Final = len("2026-01-01")

_log = open_log("surecall.loop")


def fact_address(config: Config, protocol: WireProtocol, transport: Transport | None = None) -> str:
    """Name the place that facts are kept for; nothing when a transport of one's own has none."""
    if transport is not None:
        address = getattr(transport, "address", "")
        return address if isinstance(address, str) else ""
    if embedded_name(config.model) is not None:
        return _EMBEDDED
    if not config.base_url:
        return ""
    prefix = protocol.default_prefix
    return join_url(config.base_url, config.api_prefix, "", default_prefix=prefix)


class ProbedModel:
    """The facts about one model that are still believed; loaded when they are first needed.

    Args:
        config: Settings in force: the model, its address, and whether to ask.
        protocol: The wire format.
        transport: A transport of the caller's own.
    """

    def __init__(
        self, config: Config, protocol: WireProtocol, transport: Transport | None = None
    ) -> None:
        self._config = config
        self._protocol = protocol
        self._address = fact_address(config, protocol, transport)
        self._stored: tuple[ProbedFact, ...] | None = None
        self._asked: tuple[ProbedFact, ...] = ()
        self._notes: dict[str, tuple[ProbeNote, float]] = {}
        """What came of asking, by the capability that had to be known, and until when it counts."""

    @property
    def asks(self) -> bool:
        """Whether the provider is asked when nobody has said what the model can do."""
        if self._config.origins.get("probe", "default") == "default":
            return embedded_name(self._config.model) is not None
        return self._config.probe == "auto"

    @property
    def note_record(self) -> dict[str, Any] | None:
        """What came of asking about tools for this session, as the trace keeps it."""
        note = self._find_note(_TOOLS)
        return None if note is None else msgspec.to_builtins(note)

    def known(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the capabilities that probes found out, and the date of each."""
        now = time.time()
        if self._stored is None or any(fact.expires_at <= now for fact in self._stored):
            # Another session may have asked again since these were loaded.
            self._stored = self._load()
        if not self._stored and not self._asked:
            return {}, {}
        from surecall.models.probe import date_text

        fresh = [fact for fact in (*self._stored, *self._asked) if now < fact.expires_at]
        fields = {fact.field: fact.value for fact in fresh}
        dates = {fact.field: date_text(fact.asked_at)[:_DATE_CHARS] for fact in fresh}
        return fields, dates

    def find_unknown(self, plan: Plan) -> tuple[str, ...]:
        """Name what a run should ask first: whether it may send tools, and how to get a value."""
        if not self.asks:
            return ()
        needed = {
            _TOOLS: plan.tools_allowed and plan.options.tool_prompting == "auto",
            _FORM: plan.output is not None and _FORM in (plan.options.output_modes or (_FORM,)),
        }
        return tuple(
            name
            for name, is_needed in needed.items()
            if is_needed
            and plan.capability_origins.get(name, "default") == "default"
            and self._find_note(name) is None
        )

    async def ask(self, needed: str, transport: Transport) -> None:
        """Ask the provider what must be known; a failure is noted and not raised."""
        from surecall.models.probe import ESSENTIAL, STRUCTURED, ensure_probed

        note = await ensure_probed(
            transport,
            self._protocol,
            self._config.model or "",
            store=self._store(),
            address=self._address,
            needed=needed,
            questions=STRUCTURED if needed == _FORM else ESSENTIAL,
        )
        self._notes[needed] = note, time.time() + self._config.max_probe_age_s
        self._stored = None
        if note.source != "stored":  # those are loaded, each with its own date
            self._keep(note.fields, datetime.fromisoformat(note.asked_at).timestamp())

    async def remember_refused(self, fields: Sequence[str], error: ProviderError) -> None:
        """Keep the names of fields that the provider refuses, so that no later run sends them."""
        from surecall.models.probe import FactKey, Finding

        known: Sequence[str] = self.known()[0].get(_REFUSED_FIELDS, ())
        value = [*known, *(field for field in fields if field not in known)]
        self._keep({_REFUSED_FIELDS: value}, time.time())
        if not self._address:
            return
        finding = Finding(
            question=_REFUSED_FIELDS,
            verdict="no",
            fields={_REFUSED_FIELDS: value},
            evidence=f"a run was refused: {error.message}",
        )
        key = FactKey.of(self._address, self._protocol.name, self._config.model or "")
        try:
            await asyncio.to_thread(self._store().save, key, (finding,))
        except ConfigError as found:
            _log.warning("that %s is refused could not be kept: %s", fields, found.message)

    def _find_note(self, needed: str) -> "ProbeNote | None":
        """Return what came of asking, unless it is as old as a fact may be."""
        note, expires_at = self._notes.get(needed, (None, 0.0))
        return note if time.time() < expires_at else None

    def _keep(self, fields: Mapping[str, Any], asked_at: float) -> None:
        from surecall.models.probe import ProbedFact

        expires_at = time.time() + self._config.max_probe_age_s
        self._asked += tuple(
            ProbedFact(field=field, value=value, asked_at=asked_at, expires_at=expires_at)
            for field, value in fields.items()
        )

    def _store(self) -> "FactStore":
        from surecall.models.probe import FactStore

        config = self._config
        path = config.cache_dir / FACTS_FILE
        return FactStore(path, max_age_s=config.max_probe_age_s, clock=time.time)

    def _load(self) -> "tuple[ProbedFact, ...]":
        # Most sessions have no facts; they should not pay for a database.
        if not self._address or not (self._config.cache_dir / FACTS_FILE).exists():
            return ()
        from surecall.models.probe import FactKey

        key = FactKey.of(self._address, self._protocol.name, self._config.model or "")
        try:
            return self._store().fresh(key)
        except ConfigError as error:
            _log.warning("what probes found out is not used: %s", error.message)
            return ()
