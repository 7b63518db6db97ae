"""Every question that can be asked of a provider, and asking them one after the other."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, ProviderError, did_you_mean
from surecall.base.records import ErrorDetail
from surecall.models.transport import Transport
from surecall.wire import WireProtocol

from .asker import TOKENS_PER_REQUEST, Asker, BudgetSpentError, Listing, Question
from .facts import FactKey, FactStore
from .findings import Finding, ProbeReport, unclear
from .listing import ask_context_window
from .questions import CALL_QUESTIONS, REPLY_QUESTIONS, ask_fit

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
