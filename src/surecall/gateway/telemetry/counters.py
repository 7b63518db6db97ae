"""The metrics of a gateway and of runs: what counts up the series of `series.toml`."""

import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

from surecall.base.errors import Code
from surecall.base.metrics import SECONDS, Metrics
from surecall.base.records import (
    Escalated,
    Event,
    FixEmptyFinal,
    ModelRequestEnded,
    ModelRequestFailed,
    RunEnded,
    RunStarted,
    StepNudged,
    ToolCallEnded,
    ToolCallStarted,
    ToolNotExecuted,
)
from surecall.base.redaction import open_log
from surecall.reading.rules import RULES
from surecall.store.records.record import Outcome, RequestRecord

OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)
"""What may become of a request."""
CODES: Final = tuple(map(str, Code))
MODES: Final = ("native", "taught")
STEPS: Final = ("repair", "coerce", "reask", "force", "taught")
SHED_REASONS: Final = ("overload", "rate_limit", "budget", "draining")
STALLS: Final[Mapping[str, str]] = {
    Code.CONNECT_TIMEOUT: "connect",
    Code.FIRST_BYTE_TIMEOUT: "first_byte",
    Code.IDLE_TIMEOUT: "idle",
    Code.TOTAL_TIMEOUT: "total",
}
"""Errors that mean waiting for an upstream in vain, and what was waited for."""
RESULTS: Final = ("stored", "spooled", "refused", "dropped")
"""What becomes of a record."""
TASKS: Final = ("records", "pruning", "pulse", "workers")
"""What goes on in the background of a gateway."""


class _Series(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `series.toml`."""

    name: str
    help: str
    kind: Literal["counter", "gauge", "histogram", "levels"] = "counter"
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] | None = None


@cache
def _list_series() -> dict[str, dict[str, _Series]]:
    text = files(__package__ or "").joinpath("series.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, dict[str, _Series]])


class Findings:
    """Series that a gateway and a run share: what was found in replies, changed, and done."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Every series of `series.toml` is an attribute, by the name of its table."""

    def __init__(self, metrics: Metrics, upstreams: Iterable[str], models: Iterable[str]) -> None:
        self._values: dict[str, tuple[str, ...]] = {
            "upstream": tuple(upstreams),
            "model": tuple(models),
            "mode": MODES,
            "outcome": OUTCOMES,
            "code": CODES,
            "rule": tuple(RULES),
            "step": STEPS,
            "direction": ("input", "output"),
            "waited_for": tuple(STALLS.values()),
            "reason": SHED_REASONS,
            "result": RESULTS,
            "task": TASKS,
        }
        self._open("shared", metrics)

    def _open(self, part: str, metrics: Metrics, **others: tuple[str, ...]) -> None:
        """Begin the series of a part; some labels may have other values there."""
        values = {**self._values, **others}
        for name, row in _list_series()[part].items():
            labels: dict[str, Any] = {label: values[label] for label in row.labels}
            if row.bounds is not None:
                labels["bounds"] = row.bounds
            setattr(self, name, getattr(metrics, row.kind)(row.name, row.help, **labels))


class RequestMetrics(Findings):
    """The series of a gateway.

    Args:
        metrics: Where they are kept.
        upstreams: Names of upstreams; others are counted as `other`.
        models: Names that clients may ask for; others are counted as `other`.
    """

    def __init__(
        self, metrics: Metrics, *, upstreams: Iterable[str] = (), models: Iterable[str] = ()
    ) -> None:
        self.metrics = metrics
        self._samples: dict[tuple[str, str, str, str], tuple[list[float], ...]] = {}
        super().__init__(metrics, upstreams, models)
        self._open("gateway", metrics)

    def observe(self, record: RequestRecord) -> None:
        """Count a request that is over."""
        key = (record.upstream, record.model_asked, record.outcome, record.strategy)
        samples = self._samples.get(key) or self._find_samples(*key)
        requests, replies, calls, sent, tokens_in, tokens_out, upstream_s, added_s = samples
        requests[0] += 1
        replies[0] += 1
        calls[0] += record.calls
        if record.attempts:
            self._observe_attempts(record)
        else:
            sent[0] += record.upstream_requests
        tokens_in[0] += record.prompt_tokens
        tokens_out[0] += record.completion_tokens
        seconds = record.upstream_ms / 1000
        upstream_s[bisect_left(SECONDS, seconds)] += 1
        upstream_s[-1] += seconds
        seconds = record.added_ms / 1000
        added_s[bisect_left(SECONDS, seconds)] += 1
        added_s[-1] += seconds
        if record.cost:
            self.cost.add_many(record.cost, record.upstream, record.model_asked)
        if record.stream and record.first_byte_ms is not None:
            self.first_byte_seconds.observe(record.first_byte_ms / 1000, record.upstream)
        if record.outcome != "clean" or record.defects or record.receipts or record.client_closed:
            self._observe_findings(record)

    def _find_samples(
        self, upstream: str, model: str, outcome: str, strategy: str
    ) -> tuple[list[float], ...]:
        """Return what a request of this kind counts up; only declared names are remembered."""
        is_read = outcome not in {"relayed", "failed"}
        samples = (
            self.requests.sample(upstream, model, outcome),
            self.replies.sample(upstream, model, strategy or "native") if is_read else [0.0],
            self.calls.sample(upstream, model, outcome),
            self.upstream_requests.sample(upstream),
            self.tokens.sample(upstream, "input"),
            self.tokens.sample(upstream, "output"),
            self.upstream_seconds.sample(upstream),
            self.added_seconds.sample(upstream),
        )
        if self.requests.declares(upstream, model, outcome):
            self._samples[upstream, model, outcome, strategy] = samples
        return samples

    def _observe_attempts(self, record: RequestRecord) -> None:
        """Count each attempt at its own upstream."""
        for attempt in record.attempts:
            if attempt.outcome != "skipped":
                self.upstream_requests.add(attempt.upstream)
            if attempt.error:
                self.upstream_failures.add(attempt.upstream, attempt.error)

    def _observe_findings(self, record: RequestRecord) -> None:
        upstream, model = record.upstream, record.model_asked
        defects, receipts, parse_error = self.defects, self.receipts, record.parse_error
        if record.observed:
            self.observed.add(upstream, model, record.observed)
            defects, receipts, parse_error = self.observed_defects, self.observed_receipts, None
        for defect in record.defects:
            defects.add(upstream, model, defect.code)
            if defect.code == Code.ANSWER_EMPTY and not record.observed:
                self.empty_finals.add(upstream, model)
        for receipt in record.receipts:
            receipts.add(upstream, model, receipt.rule)
        for step in record.steps:
            self.steps_used.add(step.name)
            if step.outcome == "rescued":
                self.steps_rescued.add(step.name)
        if parse_error is not None:
            self.parse_errors.add(upstream, model, parse_error.mode)
        if record.retries:
            self.retries.add_many(record.retries, upstream)
        if record.client_closed:
            self.clients_left.add(upstream)
        if record.error_code:
            self.errors.add(upstream, record.error_code)
            waited_for = STALLS.get(record.error_code)
            if waited_for is not None:
                self.upstream_stalls.add(upstream, waited_for)


Observer = Callable[[Event], object]
"""Is called with every event of a run."""

UPSTREAM: Final = "library"
"""What runs inside a program are counted under where a gateway names its upstream."""

_RUN_STEPS: Final = {
    "strict_tool": "force",
    "forced_choice": "force",
    "list": "force",
    "schema": "force",
}
"""Steps of a run by the names that a gateway has for them."""
_MAX_RUNS: Final = 10_000

_log = open_log("surecall.telemetry")


def observe(*observers: Observer) -> Observer:
    """Return one observer that calls all of them; what one raises does not keep the others.

    Use it as `on_event` of a session or a run.
    """

    def call_all(event: Event) -> None:
        for observer in observers:
            try:
                observer(event)
            except Exception:
                _log.debug("an observer failed on %s", type(event).__name__, exc_info=True)

    return call_all


class RunMetrics(Findings):
    """Counts what happens in runs, in the series of a gateway and some of its own.

    Args:
        metrics: Where they are kept.
        models: Names of models that are counted apart; those of runs are added as they come.
        tools: Names of tools that are counted apart; those of runs are added as they come.
    """

    def __init__(
        self, metrics: Metrics, *, models: Iterable[str] = (), tools: Iterable[str] = ()
    ) -> None:
        super().__init__(metrics, (UPSTREAM,), models)
        self._metrics = metrics
        self._models: dict[str, str] = {}
        results = ("ok", "error", "not_executed")
        self._open("run", metrics, code=("ok", *CODES), tool=tuple(tools), result=results)

    def __call__(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, RunStarted):
            self._metrics.allow("model", (event.model,))
            self._metrics.allow("tool", event.tools)
            while len(self._models) >= _MAX_RUNS:  # runs that never ended
                self._models.pop(next(iter(self._models)))
            self._models[event.run_id] = event.model
        elif isinstance(event, RunEnded):
            model = self._models.pop(event.run_id, "")
            self.runs.add(model, event.code or "ok")
            self.run_seconds.observe(event.elapsed_ms / 1000, model)
        else:
            self._count(event, self._models.get(event.run_id, ""))

    def _count(self, event: Event, model: str) -> None:
        if isinstance(event, ModelRequestEnded):
            self._count_reply(event, model)
        elif isinstance(event, ModelRequestFailed):
            self.upstream_requests.add(UPSTREAM)
            self.errors.add(UPSTREAM, event.code)
            self.upstream_seconds.observe(event.elapsed_ms / 1000, UPSTREAM)
        elif isinstance(event, ToolCallStarted):
            for receipt in event.call.receipts if event.call is not None else ():
                self.receipts.add(UPSTREAM, model, receipt.rule)
            repaired = event.call is not None and bool(event.call.receipts)
            outcome = "repaired" if repaired else "clean"
            self.calls.add(UPSTREAM, model, outcome if event.parse_status == "ok" else "refused")
        elif isinstance(event, ToolCallEnded):
            result = "ok" if event.ok else "error" if event.executed else "not_executed"
            self.tool_calls.add(event.name, result)
            if event.executed:
                self.tool_seconds.observe(event.elapsed_ms / 1000, event.name)
        elif isinstance(event, ToolNotExecuted):
            self.parse_errors.add(UPSTREAM, model, "native")
        elif isinstance(event, Escalated):
            step = _RUN_STEPS.get(event.rung, event.rung)
            self.steps_used.add(step if step in STEPS else "reask")
        elif isinstance(event, StepNudged):
            self.steps_used.add(_RUN_STEPS.get(event.held_by, "reask"))
        elif isinstance(event, FixEmptyFinal):
            self.empty_finals.add(UPSTREAM, model)

    def _count_reply(self, event: ModelRequestEnded, model: str) -> None:
        self.replies.add(UPSTREAM, model, "native")
        self.upstream_requests.add(UPSTREAM)
        self.upstream_seconds.observe(event.elapsed_ms / 1000, UPSTREAM)
        for code in event.defect_codes:
            self.defects.add(UPSTREAM, model, code)
        for receipt in event.receipts:
            self.receipts.add(UPSTREAM, model, receipt.rule)
        if event.usage is not None:
            self.tokens.add_many(event.usage.input_tokens, UPSTREAM, "input")
            self.tokens.add_many(event.usage.output_tokens, UPSTREAM, "output")
