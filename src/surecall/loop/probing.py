"""What probes found out about the model of a session, and asking when nobody knows."""

import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from surecall.config import Config
from surecall.errors import ConfigError
from surecall.profiles import embedded_name
from surecall.protocols import WireProtocol
from surecall.redaction import open_log
from surecall.transport import Transport, join_url

from .plan import Plan

if TYPE_CHECKING:
    from surecall.probe import FactStore, ProbedFact, ProbeNote

__all__ = ["FACTS_FILE", "ProbedModel", "fact_address"]

FACTS_FILE: Final = "facts.sqlite3"
"""Name of the file in `cache_dir`."""

_EMBEDDED: Final = "embedded"
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
        self._facts: tuple[ProbedFact, ...] | None = None
        self._asked: dict[str, Any] = {}
        self._asked_on = ""
        self.note: ProbeNote | None = None
        """What came of asking for this session."""

    @property
    def asks(self) -> bool:
        """Whether the provider is asked when nobody has said what the model can do."""
        if self._config.origins.get("probe", "default") == "default":
            return embedded_name(self._config.model) is not None
        return self._config.probe == "auto"

    @property
    def told(self) -> dict[str, Any] | None:
        """The note as the trace keeps it."""
        return None if self.note is None else msgspec.to_builtins(self.note)

    def known(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the capabilities that probes found out, and the date of each."""
        if self._facts is None:
            self._facts = self._load()
        if not self._facts and not self._asked:
            return {}, {}
        from surecall.probe import date_text

        now = time.time()
        fresh = [fact for fact in self._facts if now < fact.expires_at]
        fields = {fact.field: fact.value for fact in fresh}
        dates = {fact.field: date_text(fact.asked_at)[:_DATE_CHARS] for fact in fresh}
        return fields | self._asked, dates | dict.fromkeys(self._asked, self._asked_on)

    def is_unknown(self, plan: Plan) -> bool:
        """Tell whether a run should ask first: it sends tools, and nobody said that it may."""
        return (
            self.asks
            and self.note is None
            and plan.tools_allowed
            and plan.options.tool_prompting == "auto"
            and plan.capability_origins.get("supports_tool_use", "default") == "default"
        )

    async def ask(self, transport: Transport) -> None:
        """Ask the provider the essential questions; a failure is noted and not raised."""
        from surecall.probe import ensure_probed

        note = await ensure_probed(
            transport,
            self._protocol,
            self._config.model or "",
            store=self._store(),
            address=self._address,
        )
        self.note = note
        self._asked = dict(note.fields)
        self._asked_on = note.asked_at[:_DATE_CHARS]

    def _store(self) -> "FactStore":
        from surecall.probe import FactStore

        config = self._config
        return FactStore(config.cache_dir / FACTS_FILE, max_age_s=config.max_probe_age_s)

    def _load(self) -> "tuple[ProbedFact, ...]":
        # Most sessions have no facts; they should not pay for a database.
        if not self._address or not (self._config.cache_dir / FACTS_FILE).exists():
            return ()
        from surecall.probe import FactKey

        key = FactKey.of(self._address, self._protocol.name, self._config.model or "")
        try:
            return self._store().fresh(key)
        except ConfigError as error:
            _log.warning("what probes found out is not used: %s", error.message)
            return ()
