"""Every question to a provider, asked one after the other, and once for everybody who asks.

However many runs want to know, in this process or in others, one of them asks.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import uuid4

from msgspec import Struct, field
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, ProviderError, did_you_mean
from surecall.base.records import ErrorDetail
from surecall.models.transport import Transport
from surecall.wire import WireProtocol

from .asker import TOKENS_PER_REQUEST, Asker, BudgetSpentError, Listing, Question
from .facts import FactKey, FactStore
from .findings import Finding, ProbeNote, ProbeReport, date_text, unclear
from .questions import CALL_QUESTIONS, REPLY_QUESTIONS, ask_context_window, ask_fit

QUESTIONS: Final = (*CALL_QUESTIONS, *REPLY_QUESTIONS, ask_context_window)
"""In the order in which they are asked; where two decide the same, the later one wins."""

ON_REQUEST: Final = (ask_fit,)
"""Asked only by name, because of what they cost."""
ESSENTIAL: Final = tuple(item for item in QUESTIONS if item.name in {"tools", "tools_seen"})
"""What a run has to know before it can send tools: three requests at most."""
STRUCTURED: Final = tuple(item for item in QUESTIONS if item.name in {"json_object", "json_schema"})
"""What a run has to know that ends with a value: two requests at most."""
DEFAULT_MAX_REQUESTS: Final = 40
"""How many requests one probe may send."""

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
"""What one request is answered with, all others will be."""
_MAX_FAILURES_IN_A_ROW: Final = 2


def select_questions(names: Iterable[str]) -> tuple[Question, ...]:
    """Return the questions of these names, in the order in which they are asked."""
    wanted = set(names)
    known = {question.name for question in (*QUESTIONS, *ON_REQUEST)}
    for name in sorted(wanted - known):
        raise ConfigError(
            Code.UNKNOWN_QUESTION,
            f"there is no question {name!r} to ask a provider.",
            hint=did_you_mean(name, known, listed_by="surecall probe --list"),
        )
    return tuple(question for question in (*QUESTIONS, *ON_REQUEST) if question.name in wanted)


def total_cost(questions: Iterable[Question]) -> tuple[int, int]:
    """Return how many requests these take at most, and about how many tokens.

    One request more is counted: a plain one, to tell a refusal of one thing from a refusal of
    everything.
    """
    chosen = tuple(questions)
    requests = sum(question.max_requests for question in chosen) + 1
    return requests, sum(question.rough_tokens for question in chosen) + TOKENS_PER_REQUEST


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
    """
    asker = Asker(transport, protocol, model, max_requests=max_requests, listing=listing)
    asked_at = time.time()
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
    return await _keep(report, store) if store is not None and address else report


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
        finding = replace(finding, question=question.name, cost=asker.cost - spent)
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


async def _keep(report: ProbeReport, store: FactStore) -> ProbeReport:
    key = FactKey.of(report.address, report.protocol, report.model)
    try:
        await asyncio.to_thread(store.save, key, report.findings)
    except ConfigError as error:
        return replace(report, store_error=ErrorDetail(error.code, error.message, error.hint))
    return report


_MAX_REQUESTS: Final = 3
_TOOLS: Final = "supports_tool_use"


class Patience(NamedTuple):
    """How long things may take before a run continues without an answer."""

    probe_s: float = 60.0
    """One probe in all."""
    wait_s: float = 75.0
    """Waiting for the probe of another process."""
    poll_s: float = 0.25
    remember_s: float = 300.0
    """How long a probe that failed is not tried again."""


class _Flight(Struct):
    task: "asyncio.Task[ProbeNote]"
    waiting: int = 0


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
    needed: str = _TOOLS,
    questions: Sequence[Question] = ESSENTIAL,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    flights: Flights = _FLIGHTS,
) -> ProbeNote:
    """Make sure that what a run has to know is known; ask at most once, whoever else asks.

    Nothing is raised for a provider or a store that fails: the note says so.

    Args:
        transport: How requests get there.
        protocol: The wire format.
        model: The model, as the provider names it.
        store: Where facts are kept and other processes are met.
        address: Where the provider is; without it facts are neither kept nor shared.
        needed: The capability that must be known; a fresh fact about it ends the matter.
        questions: What is asked to find it out.
        patience: How long things may take.
        flights: The probes under way in this process.
    """
    store = store if address else None
    once = _Once(
        key=FactKey.of(address, protocol.name, model),
        ask=partial(
            probe_model,
            transport,
            protocol,
            model,
            questions=questions,
            store=store,
            address=address,
            max_requests=_MAX_REQUESTS,
        ),
        store=store,
        patience=patience,
        needed=needed,
    )
    place = address or f"transport:{id(transport)}"
    key = (place, protocol.name, model, str(store.path) if store else "", needed)
    return await flights.join(key, once.run, patience.remember_s if address else 0.0)


class _Once(Struct, frozen=True, kw_only=True):
    """One probe on behalf of everybody."""

    key: FactKey
    ask: Callable[[], Awaitable[ProbeReport]]
    store: FactStore | None
    patience: Patience
    needed: str = _TOOLS
    holder: str = field(default_factory=lambda: f"{os.getpid()}-{uuid4().hex}")

    async def run(self) -> ProbeNote:
        """Return what is known, after asking if it must be."""
        if self.store is None:
            return await self._probe()
        try:
            return await self._share(self.store)
        except ConfigError as error:
            if error.code != Code.FACTS_UNUSABLE:
                raise
            # Facts that cannot be kept are no reason to know nothing.
            note = await self._probe()
            detail = ErrorDetail(error.code, error.message, error.hint)
            return note if note.error else replace(note, error=detail)

    async def _share(self, store: FactStore) -> ProbeNote:
        """Probe, or wait for the process that does."""
        give_up = time.monotonic() + self.patience.wait_s
        while True:
            if note := await self._find_stored(store):
                return note
            lease = await asyncio.to_thread(
                store.take_lease, self.key, self.holder, self.patience.probe_s * 1.5
            )
            if lease.taken:
                return await self._probe_leased(store)
            if lease.failed is not None:
                return self._failed_note(lease.failed)
            if time.monotonic() >= give_up:
                waited = "another process is still asking the provider."
                return self._failed_note(ErrorDetail(Code.TOTAL_TIMEOUT, waited))
            await asyncio.sleep(self.patience.poll_s)

    async def _find_stored(self, store: FactStore) -> ProbeNote | None:
        known = await asyncio.to_thread(store.fresh, self.key)
        if not any(fact.field == self.needed for fact in known):
            return None
        return ProbeNote(
            asked_at=date_text(max(fact.asked_at for fact in known)),
            ok=True,
            source="stored",
            fields={fact.field: fact.value for fact in known},
        )

    async def _probe_leased(self, store: FactStore) -> ProbeNote:
        failed: ErrorDetail | None = None
        try:
            # Whoever had the lease before may have found it out since we looked.
            note = await self._find_stored(store) or await self._probe()
            if not note.ok:
                failed = note.error or ErrorDetail(Code.TOTAL_TIMEOUT, "nothing was found out.")
            return note
        finally:
            with suppress(ConfigError):  # a lease that cannot be given back ends by itself
                store.end_lease(
                    self.key, self.holder, failed=failed, remember_s=self.patience.remember_s
                )

    async def _probe(self) -> ProbeNote:
        try:
            async with asyncio.timeout(self.patience.probe_s):
                report = await self.ask()
        except TimeoutError:
            seconds = f"{self.patience.probe_s:g} s"
            return self._failed_note(
                ErrorDetail(Code.TOTAL_TIMEOUT, f"the probe took longer than {seconds}.")
            )
        return self._asked_note(report)

    def _asked_note(self, report: ProbeReport) -> ProbeNote:
        known = self.needed in report.fields
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
