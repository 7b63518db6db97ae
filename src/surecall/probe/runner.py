"""Putting questions to a provider, one after the other."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple
from uuid import uuid4

from msgspec.structs import replace

from surecall.errors import Code, ConfigError, ProviderError
from surecall.protocols import WireProtocol
from surecall.records import ErrorDetail
from surecall.transport import Transport

from .asker import Asker, BudgetSpentError, Listing
from .facts import FactKey, FactStore, ProbedFact
from .findings import Cost, Finding, ProbeNote, ProbeReport, date_text, unclear
from .questions import ESSENTIAL, QUESTIONS, Question

__all__ = ["DEFAULT_MAX_REQUESTS", "Flights", "Patience", "ensure_probed", "probe_model"]

DEFAULT_MAX_REQUESTS: Final = 40

_HOPELESS: Final = frozenset(
    {
        Code.AUTH,
        Code.CONNECTION_REFUSED,
        Code.DNS_FAILURE,
        Code.FORBIDDEN,
        Code.NOT_FOUND,
        Code.PAYMENT_REQUIRED,
        Code.QUOTA_EXCEEDED,
        Code.TLS_FAILURE,
    }
)
"""What one request is told, all others will be."""
_MAX_FAILURES_IN_A_ROW: Final = 2


async def probe_model(
    transport: Transport,
    protocol: WireProtocol,
    model: str,
    *,
    questions: Iterable[Question] | None = None,
    store: FactStore | None = None,
    on_finding: Callable[[Finding], object] | None = None,
    address: str = "",
    listing: Listing | None = None,
    max_requests: int = DEFAULT_MAX_REQUESTS,
    clock: Callable[[], float] = time.time,
) -> ProbeReport:
    """Ask a provider what a model really does.

    A question that fails does not stop the others, unless the provider will refuse them all.

    Args:
        transport: How requests get there.
        protocol: The wire format.
        model: The model, as the provider names it.
        questions: What to ask; everything by default.
        store: Where to keep what was found out.
        on_finding: Called with every finding as it is made.
        address: Where the provider is; facts are only kept for a known address.
        listing: Fetches the provider's list of models, for the context window.
        max_requests: How many requests may be sent in all.
        clock: Tells the time, in seconds since the epoch.
    """
    asker = Asker(transport, protocol, model, max_requests=max_requests, listing=listing)
    asked_at = clock()
    findings: list[Finding] = []
    try:
        stopped = await _ask_all(
            QUESTIONS if questions is None else questions, asker, findings, on_finding
        )
    except asyncio.CancelledError:
        if store is not None and address:  # what was paid for is not lost
            with suppress(ConfigError):
                store.save(FactKey.of(address, protocol.name, model), findings)
        raise
    report = ProbeReport(
        address=address,
        protocol=protocol.name,
        model=model,
        asked_at=asked_at,
        findings=tuple(findings),
        error=stopped,
    )
    return await _kept(report, store) if store is not None and address else report


async def _ask_all(
    questions: Iterable[Question],
    asker: Asker,
    findings: list[Finding],
    on_finding: Callable[[Finding], object] | None,
) -> ErrorDetail | None:
    """Fill the list of findings; return what stopped the probe before its last question."""
    stopped: ErrorDetail | None = None
    failures = 0
    for question in questions:
        spent = asker.cost
        if stopped is not None:
            finding = unclear(f"not asked after {stopped.code}", stopped.code)
        else:
            finding, error = await _ask(question, asker)
            failures = failures + 1 if error is not None else 0
            if error and (failures >= _MAX_FAILURES_IN_A_ROW or error.code in _HOPELESS):
                stopped = ErrorDetail(error.code, error.message, error.hint)
        finding = replace(finding, question=question.name, cost=_difference(asker.cost, spent))
        findings.append(finding)
        if on_finding is not None:
            on_finding(finding)
    return stopped


async def _ask(question: Question, asker: Asker) -> tuple[Finding, ProviderError | None]:
    try:
        return await question.ask(asker), None
    except BudgetSpentError as error:
        return unclear(str(error), Code.PROBE_BUDGET_EXCEEDED), None
    except ProviderError as error:
        return unclear(error.message, error.code), error


def _difference(now: Cost, before: Cost) -> Cost:
    return Cost(
        now.requests - before.requests,
        now.input_tokens - before.input_tokens,
        now.output_tokens - before.output_tokens,
    )


async def _kept(report: ProbeReport, store: FactStore) -> ProbeReport:
    key = FactKey.of(report.address, report.protocol, report.model)
    try:
        await asyncio.to_thread(store.save, key, report.findings)
    except ConfigError as error:
        return replace(report, store_error=ErrorDetail(error.code, error.message, error.hint))
    return report


_MAX_REQUESTS: Final = 3
_NEEDED: Final = ("supports_tool_use",)


class Patience(NamedTuple):
    """How long things may take before a run goes on without an answer."""

    probe_s: float = 60.0
    """One probe in all."""
    wait_s: float = 75.0
    """Waiting for the probe of another process."""
    poll_s: float = 0.25
    remember_s: float = 300.0
    """How long a probe that failed is not tried again."""


class _Flight:
    def __init__(self, task: "asyncio.Task[ProbeNote]") -> None:
        self.task = task
        self.waiting = 0


class Flights:
    """The probes under way in this process, and those that failed a short time ago."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._under_way: dict[tuple[Any, ...], _Flight] = {}
        self._failed: dict[tuple[Any, ...], tuple[float, ProbeNote]] = {}

    async def join(
        self,
        key: tuple[Any, ...],
        start: Callable[[], Awaitable[ProbeNote]],
        remember_s: float,
    ) -> ProbeNote:
        """Wait for the probe of this key; start it when it is not under way.

        It is given up when the last one who waits for it has left.
        """
        failed_until, failed = self._failed.get(key, (0.0, None))
        if failed is not None and self._clock() < failed_until:
            return failed
        self._failed.pop(key, None)
        # A task belongs to its loop; another loop's probe is waited for through the store.
        own = (id(asyncio.get_running_loop()), *key)
        flight = self._under_way.get(own)
        if flight is None:
            flight = self._under_way[own] = _Flight(asyncio.ensure_future(start()))
        flight.waiting += 1
        try:
            note = await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                del self._under_way[own]
                if not flight.task.done():
                    flight.task.cancel()
                    with suppress(asyncio.CancelledError):
                        await flight.task
        if not note.ok and remember_s > 0:
            self._failed[key] = (self._clock() + remember_s, note)
        return note


_FLIGHTS: Final = Flights()


async def ensure_probed(
    transport: Transport,
    protocol: WireProtocol,
    model: str,
    *,
    store: FactStore | None = None,
    address: str = "",
    questions: Iterable[Question] = ESSENTIAL,
    needed: tuple[str, ...] = _NEEDED,
    max_requests: int = _MAX_REQUESTS,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    flights: Flights = _FLIGHTS,
) -> ProbeNote:
    """Make sure that the needed capabilities are known; ask at most once, whoever else asks.

    Nothing is raised for a provider or a store that fails: the note says so.

    Args:
        transport: How requests get there.
        protocol: The wire format.
        model: The model, as the provider names it.
        store: Where facts are kept and other processes are met.
        address: Where the provider is; without it facts are neither kept nor shared.
        questions: What to ask.
        needed: The capabilities that must be known; fresh facts about them end the matter.
        max_requests: How many requests may be sent.
        patience: How long things may take.
        flights: The probes under way in this process.
    """
    once = _Once(
        transport,
        protocol,
        model,
        store=store if address else None,
        address=address,
        questions=tuple(questions),
        needed=needed,
        max_requests=max_requests,
        patience=patience,
    )
    place = address or f"transport:{id(transport)}"
    key = (place, protocol.name, model, str(store.path) if store else "", needed)
    return await flights.join(key, once.run, patience.remember_s if address else 0.0)


class _Once:
    """One probe on behalf of everybody."""

    def __init__(
        self,
        transport: Transport,
        protocol: WireProtocol,
        model: str,
        *,
        store: FactStore | None,
        address: str,
        questions: tuple[Question, ...],
        needed: tuple[str, ...],
        max_requests: int,
        patience: Patience,
    ) -> None:
        self._transport = transport
        self._protocol = protocol
        self._model = model
        self._store = store
        self._address = address
        self._questions = questions
        self._needed = needed
        self._max_requests = max_requests
        self._patience = patience
        self._key = FactKey.of(address, protocol.name, model)
        self._holder = f"{os.getpid()}-{uuid4().hex}"

    async def run(self) -> ProbeNote:
        """Return what is known, after asking if it must be."""
        if self._store is None:
            return await self._probe()
        try:
            return await self._share(self._store)
        except ConfigError as error:
            if error.code != Code.FACTS_UNUSABLE:
                raise
            # Facts that cannot be kept are no reason to know nothing.
            note = await self._probe()
            detail = ErrorDetail(error.code, error.message, error.hint)
            return note if note.error else replace(note, error=detail)

    async def _share(self, store: FactStore) -> ProbeNote:
        """Probe, or wait for the process that does."""
        give_up = time.monotonic() + self._patience.wait_s
        while True:
            if note := await self._stored(store):
                return note
            lease = await asyncio.to_thread(
                store.take_lease, self._key, self._holder, self._patience.probe_s * 1.5
            )
            if lease.taken:
                return await self._probe_leased(store)
            if lease.failed is not None:
                return self._failed_note(lease.failed)
            if time.monotonic() >= give_up:
                waited = "another process is still asking the provider."
                return self._failed_note(ErrorDetail(Code.TOTAL_TIMEOUT, waited))
            await asyncio.sleep(self._patience.poll_s)

    async def _stored(self, store: FactStore) -> ProbeNote | None:
        known = await asyncio.to_thread(store.fresh, self._key)
        return _stored_note(known) if set(self._needed) <= {fact.field for fact in known} else None

    async def _probe_leased(self, store: FactStore) -> ProbeNote:
        failed: ErrorDetail | None = None
        try:
            # Whoever had the lease before may have found it out since we looked.
            note = await self._stored(store) or await self._probe()
            if not note.ok:
                failed = note.error or ErrorDetail(Code.TOTAL_TIMEOUT, "nothing was found out.")
            return note
        finally:
            with suppress(ConfigError):  # a lease that cannot be given back ends by itself
                store.end_lease(
                    self._key, self._holder, failed=failed, remember_s=self._patience.remember_s
                )

    async def _probe(self) -> ProbeNote:
        try:
            async with asyncio.timeout(self._patience.probe_s):
                report = await probe_model(
                    self._transport,
                    self._protocol,
                    self._model,
                    questions=self._questions,
                    store=self._store,
                    address=self._address,
                    max_requests=self._max_requests,
                )
        except TimeoutError:
            seconds = f"{self._patience.probe_s:g} s"
            return self._failed_note(
                ErrorDetail(Code.TOTAL_TIMEOUT, f"the probe took longer than {seconds}.")
            )
        return self._asked_note(report)

    def _asked_note(self, report: ProbeReport) -> ProbeNote:
        known = set(self._needed) <= report.fields.keys()
        error = report.error or report.store_error
        if error is None and not known:
            open_ones = [item for item in report.findings if item.verdict == "inconclusive"]
            why = "; ".join(f"{item.question}: {item.evidence}" for item in open_ones)
            code = next((item.code for item in open_ones if item.code), Code.PROBE_INCONCLUSIVE)
            error = ErrorDetail(code, f"the probe found out too little: {why or 'nothing'}")
        return ProbeNote(
            asked_at=date_text(report.asked_at),
            ok=known,
            fields=report.fields,
            findings={item.question: item.verdict for item in report.findings},
            requests=report.cost.requests,
            tokens=report.cost.tokens,
            error=error,
        )

    def _failed_note(self, error: ErrorDetail) -> ProbeNote:
        return ProbeNote(asked_at=date_text(time.time()), ok=False, error=error)


def _stored_note(known: tuple[ProbedFact, ...]) -> ProbeNote:
    return ProbeNote(
        asked_at=date_text(max(fact.asked_at for fact in known)),
        ok=True,
        source="stored",
        fields={fact.field: fact.value for fact in known},
    )
