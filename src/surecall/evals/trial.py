"""One trial: set up, run, judged and written down; whatever goes wrong is its result."""

import os
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from surecall.base.errors import Code, ProviderError, SurecallError
from surecall.base.records import (
    Escalated,
    Event,
    FixEmptyFinal,
    Message,
    ModelRequestRetried,
    ReasoningDelta,
    StepNudged,
    TextDelta,
    ToolNotExecuted,
    clip,
)
from surecall.base.redaction import redact
from surecall.evals.cases import Contender, OpenTransport, cost_of
from surecall.evals.taxonomy import categorize
from surecall.loop import RunResult, Session, Trace
from surecall.models.config import Config
from surecall.models.profiles import Catalog
from surecall.models.transport import Transport
from surecall.text import repair_surrogates
from surecall.tools import ToolRegistry
from surecall.wire import WireProtocol, find_protocol

from .cases import Attempt, Case, Grades, Prepared, failed
from .facts import RunFacts, collect_facts
from .programs import OPTIONS as PLAYED_AGAIN
from .programs import RecordingEndpoint, run_program
from .records import Parts, Reason, TrialBody, TrialRow, Unit, Verdict
from .strategies import GUIDED, NAIVE, Settled, rescue_naively
from .taxonomy import blames_endpoint, is_timeout, refuses_request
from .transcript import write_body
from .transports import CachedTransport, TimedTransport

_NO_CATALOG: Final = Catalog()
"""What is known of the model was settled before; nothing may be added."""
_NO_CACHE: Final = Path(os.devnull, "surecall")
"""No file can be there, so nothing that a probe stored is found."""
_MIN_SECONDS: Final = 0.001
"""What a run of a conversation is given when there is no time left: it ends by its deadline."""
_MAX_SEED: Final = 2**31 - 1
_MAX_ERROR_CHARS: Final = 400
_MAX_TEXT_CHARS: Final = 1_000
_TOLD: Final = ("name", "code", "finish_reason", "error_codes")
_SIZES: Final = ("_count", "_bytes", "_ms")


async def run_trial(
    unit: Unit,
    case: Case,
    contender: Contender,
    open_transport: OpenTransport,
    settled: Settled,
    *,
    timeout_s: float | None = None,
    protocol: WireProtocol | None = None,
    verbose: int = 0,
    agent: str = "",
) -> tuple[TrialRow, TrialBody]:
    """Run one trial and return what came of it; nothing is raised but cancellation.

    Args:
        unit: Which trial it is.
        case: What is tried.
        contender: Who is asked.
        open_transport: Opens a transport to the model; the time that takes is not counted.
        settled: What is in force.
        timeout_s: Seconds for the run; one that takes longer is censored at that time.
        protocol: The wire format, when it is not the one that is in force.
        verbose: Whether a line for each event goes to standard error: 1, or 2 with sizes.
        agent: The command of a program that is run in place of the loop.
    """
    trial = _Trial(unit, case, contender, settled, timeout_s, protocol, verbose, agent)
    trial.tell("starts")
    try:
        await trial.run(open_transport)
    except Exception as error:
        trial.note_error(error)
    grades = trial.grade()
    row = trial.make_row(grades, trial.collect_facts(grades))
    trial.tell(f"{'OK' if row.original_ok else 'FAIL'}, {row.elapsed_ms:.0f} ms")
    return row, trial.make_body(grades)


def describe_event(event: Event, *, with_sizes: bool) -> str:
    """Return an event in a line; empty for one of which there may be very many.

    Its name is that of the original experiment, such as `tool_call_end`.
    """
    if isinstance(event, TextDelta | ReasoningDelta):
        return ""
    fields = msgspec.to_builtins(event)
    said = [f"turn {event.turn}", fields["type"]]
    said += [str(fields[name]) for name in _TOLD if fields.get(name)]
    sizes = (f"{name}={value}" for name, value in fields.items() if name.endswith(_SIZES))
    return " ".join([*said, *(sizes if with_sizes else ())])


class _Trial(Struct):
    """One trial, and what became of it as far as it came."""

    unit: Unit
    case: Case
    contender: Contender
    settled: Settled
    timeout_s: float | None
    protocol: WireProtocol | None
    verbose: int = 0
    agent: str = ""
    started_at: float = field(default_factory=time.time)
    prepared: Prepared | None = None
    is_settled: bool = False
    result: RunResult | None = None
    error: Exception | None = None
    trace: Trace | None = None
    history: tuple[Message, ...] = ()
    said: dict[int, tuple[Message, ...]] = {}
    """What the user said to an answer, by the turn that followed."""
    stages: list[str] = []
    escalations: int = 0
    elapsed_ms: float = 0.0
    cached_replies: int = 0
    times: TimedTransport | None = None

    @property
    def text(self) -> str:
        return "" if self.result is None else self.result.text

    def tell(self, words: str) -> None:
        """Write a line about the trial, if anybody wants to follow it."""
        if self.verbose and words:
            unit = self.unit
            cell = f"{unit.cell.model} {unit.cell.strategy} {unit.cell.profile}"
            line = f"{cell} {unit.cell.scenario} #{unit.trial}: {words}"
            print(_clean(line, _MAX_ERROR_CHARS), file=sys.stderr)

    def note_event(self, event: Event) -> None:
        """Note which ways back from a mistake were taken, by the options that allow them."""
        if self.verbose:
            self.tell(describe_event(event, with_sizes=self.verbose > 1))
        match event:
            case FixEmptyFinal():
                self.stages.append("fix_empty_final")
            case Escalated():
                self.escalations += 1
                self.stages.append("max_escalations")
            case StepNudged():
                self.stages.append("max_step_nudges")
            case ModelRequestRetried():
                self.stages.append("fallback_retry_count")
            case ToolNotExecuted(retrying=True, is_likely=is_likely):
                self.stages.append("likely_calls" if is_likely else "max_parse_retries")
            case _:
                pass

    def note_error(self, error: Exception) -> None:
        """Note what ended the run; what goes wrong after an answer says nothing about it."""
        if self.result is None:
            self.error = error
            self.add_trace(getattr(error, "trace", None))
            self.history = tuple(getattr(error, "history", ()))

    def add_trace(self, trace: Trace | None) -> None:
        """Add what happened in a run to what happened in the runs before it."""
        self.trace = join_traces(self.trace, trace) if self.trace and trace else trace or self.trace

    async def run(self, open_transport: OpenTransport) -> None:
        unit, contender = self.unit, self.contender
        prepared = self.prepared = self.case.prepare(unit.seed)
        settled = self.settled = self.settled.with_case(prepared.options, prepared.defaults)
        self.is_settled = True
        options = dict(settled.options)
        given = (self.timeout_s, options.get("deadline_s"))
        if deadlines := [limit for limit in given if limit is not None]:
            options["deadline_s"] = min(deadlines)
        if contender.kind == "embedded":
            # A model of this machine repeats itself for the same seed; others may refuse the field.
            defaults: dict[str, Any] = options.get("request_defaults") or {}
            options["request_defaults"] = {"seed": unit.seed & _MAX_SEED, **defaults}
        tools = prepared.tools
        if settled.strategy == GUIDED:
            declarations = prepared.declarations
            tools = declarations.declare_tools(tools)
            options["required_tools"] = declarations.required_tools
        protocol = self.protocol or find_protocol(settled.protocol)
        if settled.strategy == NAIVE:
            protocol = rescue_naively(protocol, [tool.name for tool in tools])
        started = 0.0
        async with open_transport(contender, unit, self.case) as transport:
            if self.agent:
                started = time.perf_counter()
                tools, transport = await self.run_program(transport, prepared)
                options |= PLAYED_AGAIN
            if options.get("stream"):
                self.times = TimedTransport(transport)
            session = Session(
                tools=tools,
                system=prepared.system,
                transport=self.times or transport,
                protocol=protocol,
                preset=(),
                capabilities=settled.capabilities,
                config=Config(
                    model=contender.model,
                    cache_dir=_NO_CACHE,
                    probe="off",
                    origins={"probe": "flag"},
                ),
                catalog=_NO_CATALOG,
                on_event=self.note_event,
            )
            if prepared.output is not None:
                options["output"] = prepared.output
            started = started or time.perf_counter()
            try:
                await self.converse(session, prepared, options, transport)
            finally:
                waited_s = getattr(transport, "waited_s", 0.0)
                self.elapsed_ms = (time.perf_counter() - started - waited_s) * 1000
                if isinstance(transport, CachedTransport):
                    self.cached_replies = transport.hits
                    self.elapsed_ms += transport.saved_ms - transport.opening_ms

    async def run_program(
        self, transport: Transport, prepared: Prepared
    ) -> tuple[ToolRegistry, Transport]:
        """Run the program, and return its tools and the replies it got, to be played again."""
        prompt = "\n".join(message.text for message in prepared.messages if message.role == "user")
        async with RecordingEndpoint(transport, model=self.contender.model) as endpoint:
            said = await run_program(self.agent, endpoint, prompt=prompt, timeout_s=self.timeout_s)
        prepared.tools = endpoint.registry()
        return prepared.tools, endpoint.replay(said)

    async def converse(
        self, session: Session, prepared: Prepared, options: dict[str, Any], transport: Transport
    ) -> None:
        """Run what the user says first, and then whatever the user says to each answer."""
        started, seconds = time.perf_counter(), options.get("deadline_s")
        messages = prepared.messages
        while messages:
            result = await session.run(messages, **options)
            self.add_trace(result.trace)
            self.result, self.history = result, result.history
            messages = () if prepared.reply is None else prepared.reply(result.text)
            if messages:
                self.result = None
                self.said[_next_turn(self.trace)] = messages
            if seconds is not None:
                waited_s = getattr(transport, "waited_s", 0.0)
                left = seconds - (time.perf_counter() - started - waited_s)
                options["deadline_s"] = max(left, _MIN_SECONDS)

    def grade(self) -> Grades:
        if self.prepared is None or not self.is_settled:
            verdict = failed(_code_of(self.error), str(self.error))
            return Grades(original=verdict, strict=verdict)
        attempt = Attempt(
            prepared=self.prepared,
            result=self.result,
            error=self.error,
            trace=self.trace,
            text=self.text,
            history=self.history,
        )
        try:
            return self.case.grade(attempt)
        except Exception as error:
            self.error = self.error or error
            verdict = failed(Code.INTERNAL_ERROR, f"grading failed: {_describe_error(error)}")
            return Grades(original=verdict, strict=verdict)

    def collect_facts(self, grades: Grades) -> RunFacts:
        if self.trace is None or self.prepared is None:
            return RunFacts()
        checkers = {tool.name: tool.checker for tool in self.prepared.tools}
        try:
            return collect_facts(
                self.trace, exact=grades.exact, stages=self.stages, checkers=checkers
            )
        except Exception as error:
            self.error = self.error or error
            return RunFacts(turns=len(self.trace.turns))

    def make_row(self, grades: Grades, facts: RunFacts) -> TrialRow:
        error, strict_ok, original_ok = self.error, grades.strict.ok, grades.original.ok
        code = None if error is None else _code_of(error)
        is_error = code is not None and blames_endpoint(code)
        is_refused = code is not None and refuses_request(code)
        if is_error or is_refused:  # whatever a case makes of the silence
            strict_ok = original_ok = False
        status, resent, price, times = None, 0, self.contender.price, self.times
        if isinstance(error, ProviderError):
            status = error.status
            # The requests of a run that an error ended are in the trace; how often each was sent
            # is not.
            resent = error.attempts - 1 if self.trace else 0
        return TrialRow(
            **asdict(self.unit),
            simulated=self.contender.simulated,
            control=self.case.control,
            drawn=getattr(self.case, "drawn", False),
            original_ok=original_ok,
            strict_ok=strict_ok,
            original_reasons=_clean_reasons(grades.original),
            strict_reasons=_clean_reasons(grades.strict),
            parts=None if is_error or is_refused else _clean_parts(grades),
            outcome="error" if is_error else "refused" if is_refused else facts.outcome,
            category=None if original_ok else categorize(error, self.trace, self.text),
            code=code,
            error=None if error is None else _clean(_describe_error(error), _MAX_ERROR_CHARS),
            error_status=status,
            cut_by_limit=facts.cut and not strict_ok,
            censored=is_timeout(error),
            elapsed_ms=self.elapsed_ms,
            first_token_ms=None if times is None else times.first_token_ms,
            tokens_per_s=(
                None if times is None else times.measure_speed(facts.usage.output_tokens)
            ),
            turns=facts.turns,
            requests=facts.requests,
            attempts=facts.attempts + resent,
            cached_replies=self.cached_replies,
            usage=facts.usage,
            cost_usd=None if price is None else cost_of(facts.usage, price),
            calls=facts.calls,
            rules=facts.rules,
            saved_by=facts.needed if strict_ok else (),
            fabrications=facts.fabrications,
            escalations=self.escalations,
            text=_clean(self.text, _MAX_TEXT_CHARS),
            started_at=self.started_at,
        )

    def make_body(self, grades: Grades) -> TrialBody:
        request: dict[str, Any] = {}
        config = {**self.settled.record, "timeout_s": self.timeout_s}
        if self.prepared is not None:
            if self.settled.strategy == GUIDED:
                config["declarations"] = self.prepared.declarations.describe()
            messages = msgspec.to_builtins(self.prepared.messages)
            request = {"system": self.prepared.system, "messages": messages}
        return write_body(
            self.unit.index,
            trace=self.trace,
            said=self.said,
            config=config,
            request=request,
            state=grades.state,
        )


def join_traces(first: Trace, later: Trace) -> Trace:
    """Return two runs of one conversation as one: it began as the first and ended as the later."""
    number = _next_turn(first)
    turns = (replace(turn, turn=turn.turn + number) for turn in later.turns)
    return replace(first, turns=(*first.turns, *turns), answer=later.answer, error=later.error)


def _next_turn(trace: Trace | None) -> int:
    return trace.turns[-1].turn + 1 if trace is not None and trace.turns else 0


def _clean(text: str, limit: int) -> str:
    return repair_surrogates(clip(redact(text), limit))


def _clean_reasons(verdict: Verdict) -> tuple[Reason, ...]:
    return tuple(
        Reason(str(reason.code), _clean(reason.message, _MAX_ERROR_CHARS))
        for reason in verdict.reasons
    )


def _clean_parts(grades: Grades) -> Parts:
    parts = grades.parts or Parts(process=grades.strict)
    found: dict[str, Verdict | None] = {
        name: getattr(parts, name) for name in Parts.__struct_fields__
    }
    return Parts(
        **{name: one and Verdict(one.ok, _clean_reasons(one)) for name, one in found.items()}
    )


def _code_of(error: Exception | None) -> str:
    return error.code if isinstance(error, SurecallError) else str(Code.INTERNAL_ERROR)


def _describe_error(error: Exception) -> str:
    return str(error) if isinstance(error, SurecallError) else f"{type(error).__name__}: {error}"
