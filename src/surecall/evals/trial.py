"""One trial: set up, run, judged and written down; whatever goes wrong is its result."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from surecall.config import Config
from surecall.errors import Code, ProviderError, SurecallError
from surecall.jsontext import mend_surrogates
from surecall.loop import RunResult, Session, Trace
from surecall.profiles import Catalog
from surecall.records import (
    Escalated,
    Event,
    FixEmptyFinal,
    Message,
    ModelRequestRetried,
    ToolNotExecuted,
    clip,
)
from surecall.redaction import Secret, redact

from .cases import Attempt, Case, Grades, Prepared, failed
from .contenders import Contender, OpenTransport, cost_of
from .facts import RunFacts, collect_facts
from .original import categorize
from .records import Reason, TrialBody, TrialRow, Unit, Verdict
from .strategies import Settled
from .taxonomy import is_timeout
from .transcript import write_body

__all__ = ["run_trial"]

_NO_CATALOG: Final = Catalog()
"""What is known of the model was settled before; nothing may be added."""
_NO_CACHE: Final = Path(os.devnull, "surecall")
"""No file can be there, so nothing that a probe stored is found."""
_MAX_SEED: Final = 2**31 - 1
_MAX_ERROR_CHARS: Final = 400
_MAX_TEXT_CHARS: Final = 1_000


async def run_trial(
    unit: Unit,
    case: Case,
    contender: Contender,
    open_transport: OpenTransport,
    settled: Settled,
    *,
    timeout_s: float | None = None,
    secrets: Iterable[Secret] = (),
) -> tuple[TrialRow, TrialBody]:
    """Run one trial and return what came of it; nothing is raised but cancellation.

    Args:
        unit: Which trial it is.
        case: What is tried.
        contender: Who is asked.
        open_transport: Opens a transport to the model; the time that takes is not counted.
        settled: What is in force.
        timeout_s: Seconds for the run; one that takes longer is censored at that time.
        secrets: Values that must not be kept.
    """
    secrets = tuple(secrets)
    started_at = time.time()
    ran = _Ran()
    try:
        await _run(ran, unit, case, contender, open_transport, settled, timeout_s)
    except Exception as error:
        if ran.result is None:  # what goes wrong after an answer says nothing about it
            ran.error = error
            ran.trace = getattr(error, "trace", None)
            ran.history = tuple(getattr(error, "history", ()))
    grades = _grade(ran, case)
    facts = _facts(ran, grades)
    row = _row(unit, case, contender, ran, grades, facts, started_at, secrets)
    return row, _body(unit, ran, settled, grades, timeout_s, secrets)


class _Ran(Struct):
    """What became of a trial, as far as it came."""

    prepared: Prepared | None = None
    settled: Settled | None = None
    result: RunResult | None = None
    error: Exception | None = None
    trace: Trace | None = None
    history: tuple[Message, ...] = ()
    stages: list[str] = []
    escalations: int = 0
    elapsed_ms: float = 0.0

    @property
    def text(self) -> str:
        return "" if self.result is None else self.result.text

    def note(self, event: Event) -> None:
        """Note which ways back from a mistake were taken, by the options that allow them."""
        match event:
            case FixEmptyFinal():
                self.stages.append("fix_empty_final")
            case Escalated():
                self.escalations += 1
                self.stages.append("max_escalations")
            case ModelRequestRetried():
                self.stages.append("fallback_retry_count")
            case ToolNotExecuted(retrying=True):
                self.stages.append("max_parse_retries")
            case _:
                pass


async def _run(
    ran: _Ran,
    unit: Unit,
    case: Case,
    contender: Contender,
    open_transport: OpenTransport,
    settled: Settled,
    timeout_s: float | None,
) -> None:
    prepared = ran.prepared = case.prepare(unit.seed)
    settled = ran.settled = settled.with_case(prepared.options)
    options = dict(settled.options)
    deadlines = [limit for limit in (timeout_s, options.get("deadline_s")) if limit is not None]
    if deadlines:
        options["deadline_s"] = min(deadlines)
    if contender.kind == "embedded":
        # A model of this machine repeats itself for the same seed; others may refuse the field.
        defaults: dict[str, Any] = options.get("request_defaults") or {}
        options["request_defaults"] = {"seed": unit.seed & _MAX_SEED, **defaults}
    async with open_transport(contender, unit, case) as transport:
        session = Session(
            tools=prepared.tools,
            system=prepared.system,
            transport=transport,
            protocol=settled.protocol,
            preset=(),
            capabilities=settled.capabilities,
            config=Config(
                model=contender.model,
                cache_dir=_NO_CACHE,
                probe="off",
                origins={"probe": "flag"},
            ),
            catalog=_NO_CATALOG,
            on_event=ran.note,
            **options,
        )
        started = time.perf_counter()
        try:
            result = ran.result = await session.run(prepared.messages)
            ran.trace, ran.history = result.trace, result.history
        finally:
            ran.elapsed_ms = (time.perf_counter() - started) * 1000


def _grade(ran: _Ran, case: Case) -> Grades:
    if ran.prepared is None or ran.settled is None:
        verdict = failed(_code_of(ran.error), str(ran.error))
        return Grades(original=verdict, strict=verdict)
    attempt = Attempt(
        prepared=ran.prepared,
        result=ran.result,
        error=ran.error,
        trace=ran.trace,
        text=ran.text,
        history=ran.history,
    )
    try:
        return case.grade(attempt)
    except Exception as error:
        ran.error = ran.error or error
        verdict = failed(Code.INTERNAL_ERROR, f"grading failed: {_describe_error(error)}")
        return Grades(original=verdict, strict=verdict)


def _facts(ran: _Ran, grades: Grades) -> RunFacts:
    if ran.trace is None or ran.prepared is None:
        return RunFacts()
    checkers = {tool.name: tool.checker for tool in ran.prepared.tools}
    try:
        return collect_facts(ran.trace, exact=grades.exact, stages=ran.stages, checkers=checkers)
    except Exception as error:
        ran.error = ran.error or error
        return RunFacts(turns=len(ran.trace.turns))


def _row(
    unit: Unit,
    case: Case,
    contender: Contender,
    ran: _Ran,
    grades: Grades,
    facts: RunFacts,
    started_at: float,
    secrets: tuple[Secret, ...],
) -> TrialRow:
    error, strict_ok, original_ok = ran.error, grades.strict.ok, grades.original.ok
    status = error.status if isinstance(error, ProviderError) else None
    # The requests of a run that an error ended are in the trace; how often each was sent is not.
    resent = error.attempts - 1 if isinstance(error, ProviderError) and ran.trace else 0
    message = None if error is None else _clean(_describe_error(error), _MAX_ERROR_CHARS, secrets)
    return TrialRow(
        index=unit.index,
        cell=unit.cell,
        case=unit.case,
        trial=unit.trial,
        seed=unit.seed,
        simulated=contender.simulated,
        control=case.control,
        original_ok=original_ok,
        strict_ok=strict_ok,
        original_reasons=_clean_reasons(grades.original, secrets),
        strict_reasons=_clean_reasons(grades.strict, secrets),
        outcome=facts.outcome,
        category=None if original_ok else categorize(error, ran.trace, ran.text),
        code=None if error is None else _code_of(error),
        error=message,
        error_status=status,
        cut_by_limit=facts.cut and not strict_ok,
        censored=is_timeout(error),
        elapsed_ms=ran.elapsed_ms,
        turns=facts.turns,
        requests=facts.requests,
        attempts=facts.attempts + resent,
        usage=facts.usage,
        cost_usd=None if contender.price is None else cost_of(facts.usage, contender.price),
        calls=facts.calls,
        rules=facts.rules,
        saved_by=facts.needed if strict_ok else (),
        fabrications=facts.fabrications,
        escalations=ran.escalations,
        text=_clean(ran.text, _MAX_TEXT_CHARS, secrets),
        started_at=started_at,
    )


def _body(
    unit: Unit,
    ran: _Ran,
    settled: Settled,
    grades: Grades,
    timeout_s: float | None,
    secrets: tuple[Secret, ...],
) -> TrialBody:
    config = {**(ran.settled or settled).record, "timeout_s": timeout_s}
    request: dict[str, Any] = {}
    if ran.prepared is not None:
        messages = msgspec.to_builtins(ran.prepared.messages)
        request = {"system": ran.prepared.system, "messages": messages}
    return write_body(
        unit.index,
        trace=ran.trace,
        config=config,
        request=request,
        state=grades.state,
        secrets=secrets,
    )


def _clean(text: str, limit: int, secrets: tuple[Secret, ...]) -> str:
    return mend_surrogates(clip(redact(text, secrets), limit))


def _clean_reasons(verdict: Verdict, secrets: tuple[Secret, ...]) -> tuple[Reason, ...]:
    return tuple(
        Reason(str(reason.code), _clean(reason.message, _MAX_ERROR_CHARS, secrets))
        for reason in verdict.reasons
    )


def _code_of(error: Exception | None) -> str:
    return error.code if isinstance(error, SurecallError) else str(Code.INTERNAL_ERROR)


def _describe_error(error: Exception) -> str:
    return str(error) if isinstance(error, SurecallError) else f"{type(error).__name__}: {error}"
