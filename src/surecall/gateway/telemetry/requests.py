"""The metrics of a gateway: every series with its unit, its labels, and what to divide it by."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Final, get_args

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

_STALL_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Findings:
    """Series that a gateway and a run share: what was found in replies, changed, and done."""

    def __init__(self, metrics: Metrics, upstreams: Iterable[str], models: Iterable[str]) -> None:
        where = {"upstream": tuple(upstreams), "model": tuple(models)}
        self.replies = metrics.counter(
            "surecall_replies_total",
            "Replies that were read; what findings are divided by.",
            **where,
            mode=MODES,
        )
        self.calls = metrics.counter(
            "surecall_calls_total",
            "Tool calls by the outcome of their request; the sum over outcomes is all calls.",
            **where,
            outcome=OUTCOMES,
        )
        self.defects = metrics.counter(
            "surecall_defects_total",
            "Defects found in replies, by code; divide by surecall_replies_total.",
            **where,
            code=CODES,
        )
        self.receipts = metrics.counter(
            "surecall_receipts_total",
            "Changes made to replies, by rule; divide by surecall_replies_total.",
            **where,
            rule=tuple(RULES),
        )
        self.parse_errors = metrics.counter(
            "surecall_parse_errors_total",
            "Replies that could not be read as calls; divide by surecall_replies_total.",
            **where,
            mode=MODES,
        )
        self.empty_finals = metrics.counter(
            "surecall_empty_finals_total",
            "Final answers without text; divide by surecall_replies_total.",
            **where,
        )
        self.steps_used = metrics.counter(
            "surecall_steps_used_total",
            "Steps of the escalation that were taken; divide by surecall_requests_total.",
            step=STEPS,
        )
        self.steps_rescued = metrics.counter(
            "surecall_steps_rescued_total",
            "Steps that gave what was delivered; divide by surecall_steps_used_total.",
            step=STEPS,
        )
        self.upstream_requests = metrics.counter(
            "surecall_upstream_requests_total",
            "Requests sent to an upstream; divide by surecall_requests_total.",
            upstream=where["upstream"],
        )
        self.errors = metrics.counter(
            "surecall_errors_total",
            "Requests that ended with an error, by code; divide by surecall_requests_total.",
            upstream=where["upstream"],
            code=CODES,
        )
        self.tokens = metrics.counter(
            "surecall_tokens_total",
            "Tokens that upstreams reported.",
            upstream=where["upstream"],
            direction=("input", "output"),
        )
        self.upstream_seconds = metrics.histogram(
            "surecall_upstream_seconds",
            "Time spent waiting for the upstream, for each request.",
            upstream=where["upstream"],
        )


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
        upstreams, models = tuple(upstreams), tuple(models)
        self.metrics = metrics
        self._cells: dict[tuple[str, str, str, str], tuple[list[float], ...]] = {}
        self.requests = metrics.counter(
            "surecall_requests_total",
            "Requests of clients by outcome; what requests are divided by.",
            upstream=upstreams,
            model=models,
            outcome=OUTCOMES,
        )
        super().__init__(metrics, upstreams, models)
        self._open_observed(metrics, {"upstream": upstreams, "model": models})
        self.retries = metrics.counter(
            "surecall_upstream_retries_total",
            "Requests sent again before a first byte; divide by surecall_upstream_requests_total.",
            upstream=upstreams,
        )
        self.upstream_failures = metrics.counter(
            "surecall_upstream_failures_total",
            "Attempts that failed or were skipped; divide by surecall_upstream_requests_total.",
            upstream=upstreams,
            code=CODES,
        )
        self.upstream_down = metrics.levels(
            "surecall_upstream_down",
            "1 while an upstream has only failed, three times at least; added up over workers.",
            upstream=upstreams,
        )
        self.added_seconds = metrics.histogram(
            "surecall_added_seconds",
            "Time a request took beyond waiting for the upstream.",
            upstream=upstreams,
        )
        self.first_byte_seconds = metrics.histogram(
            "surecall_first_byte_seconds",
            "Time until the first byte of a streamed answer went to the client.",
            upstream=upstreams,
        )
        self.upstream_stalls = metrics.counter(
            "surecall_upstream_stalls_total",
            "Requests that waited for an upstream in vain; divide by surecall_requests_total.",
            upstream=upstreams,
            waited_for=tuple(STALLS.values()),
        )
        self.clients_left = metrics.counter(
            "surecall_clients_left_total",
            "Clients that left before their last byte; divide by surecall_requests_total.",
            upstream=upstreams,
        )
        self.shed = metrics.counter(
            "surecall_shed_total",
            "Requests refused at the door; divide by it plus surecall_requests_total.",
            reason=SHED_REASONS,
        )
        self.in_flight = metrics.gauge("surecall_in_flight", "Requests being answered now.")
        self.waiting = metrics.gauge("surecall_waiting", "Requests waiting for a place now.")
        self.loop_stalls = metrics.histogram(
            "surecall_loop_stall_seconds",
            "How late the event loop was, looked at several times a second.",
            bounds=_STALL_BOUNDS,
        )
        self.records = metrics.counter(
            "surecall_records_total",
            "Records of requests: stored, waiting on disk, in the dead-letter file, or dropped.",
            result=RESULTS,
        )
        self.pruned = metrics.counter(
            "surecall_records_pruned_total",
            "Records that were removed because of their age or number.",
        )
        self.store_away = metrics.gauge(
            "surecall_store_away", "1 while records wait on disk because their store fails."
        )
        self.store_reopened = metrics.counter(
            "surecall_store_reopened_total",
            "How often the store was opened again, after its server or its file had gone.",
        )
        self.task_restarts = metrics.counter(
            "surecall_task_restarts_total",
            "Background tasks that ended by an unexpected error and were started again.",
            task=TASKS,
        )
        self.spool_bytes = metrics.gauge(
            "surecall_spool_bytes", "Bytes of records that wait for their store."
        )

    def _open_observed(self, metrics: Metrics, where: Mapping[str, tuple[str, ...]]) -> None:
        self.cost = metrics.counter(
            "surecall_cost_total",
            "What requests cost at the prices of the settings, in their currency.",
            **where,
        )
        self.observed = metrics.counter(
            "surecall_observed_total",
            "Replies that were only observed, by what would have become of them.",
            **where,
            outcome=OUTCOMES,
        )
        self.observed_defects = metrics.counter(
            "surecall_observed_defects_total",
            "Defects found in observed replies, by code; divide by surecall_observed_total.",
            **where,
            code=CODES,
        )
        self.observed_receipts = metrics.counter(
            "surecall_observed_receipts_total",
            "Changes not made to observed replies, by rule; divide by surecall_observed_total.",
            **where,
            rule=tuple(RULES),
        )

    def observe(self, record: RequestRecord) -> None:
        """Count a request that is over."""
        key = (record.upstream, record.model_asked, record.outcome, record.strategy)
        cells = self._cells.get(key) or self._find_cells(*key)
        requests, replies, calls, sent, tokens_in, tokens_out, upstream_s, added_s = cells
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

    def _find_cells(
        self, upstream: str, model: str, outcome: str, strategy: str
    ) -> tuple[list[float], ...]:
        """Return what a request of this kind counts up; only declared names are remembered."""
        is_read = outcome not in {"relayed", "failed"}
        cells = (
            self.requests.cell(upstream, model, outcome),
            self.replies.cell(upstream, model, strategy or "native") if is_read else [0.0],
            self.calls.cell(upstream, model, outcome),
            self.upstream_requests.cell(upstream),
            self.tokens.cell(upstream, "input"),
            self.tokens.cell(upstream, "output"),
            self.upstream_seconds.cell(upstream),
            self.added_seconds.cell(upstream),
        )
        if self.requests.declares(upstream, model, outcome):
            self._cells[upstream, model, outcome, strategy] = cells
        return cells

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

_RUN_STEPS: Final = {"strict_tool": "force", "forced_choice": "force", "schema": "force"}
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
        self.runs = metrics.counter(
            "surecall_runs_total",
            "Runs by how they ended; what figures of runs are divided by.",
            model=tuple(models),
            code=("ok", *CODES),
        )
        self.run_seconds = metrics.histogram(
            "surecall_run_seconds", "How long runs took.", model=tuple(models)
        )
        self.tool_calls = metrics.counter(
            "surecall_tool_calls_total",
            "Calls in runs by result; the sum over results is all calls.",
            tool=tuple(tools),
            result=("ok", "error", "not_executed"),
        )
        self.tool_seconds = metrics.histogram(
            "surecall_tool_seconds", "How long tools took.", tool=tuple(tools)
        )

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
