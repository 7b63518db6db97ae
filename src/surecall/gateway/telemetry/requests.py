"""The metrics of a gateway: every series with its unit, its labels, and what to divide it by."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final, get_args

from surecall.base.errors import Code
from surecall.reading.rules import RULES

from .metrics import SECONDS, Metrics
from .record import Outcome, RequestRecord

OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)
"""What may become of a request."""
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
        codes, rules = tuple(map(str, Code)), tuple(RULES)
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
            code=codes,
        )
        self.receipts = metrics.counter(
            "surecall_receipts_total",
            "Changes made to replies, by rule; divide by surecall_replies_total.",
            **where,
            rule=rules,
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
            code=codes,
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
        self.retries = metrics.counter(
            "surecall_upstream_retries_total",
            "Requests sent again before a first byte; divide by surecall_upstream_requests_total.",
            upstream=upstreams,
        )
        self.upstream_failures = metrics.counter(
            "surecall_upstream_failures_total",
            "Attempts that failed or were skipped; divide by surecall_upstream_requests_total.",
            upstream=upstreams,
            code=tuple(map(str, Code)),
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
        for defect in record.defects:
            self.defects.add(upstream, model, defect.code)
            if defect.code == Code.ANSWER_EMPTY:
                self.empty_finals.add(upstream, model)
        for receipt in record.receipts:
            self.receipts.add(upstream, model, receipt.rule)
        for step in record.steps:
            self.steps_used.add(step.name)
            if step.outcome == "rescued":
                self.steps_rescued.add(step.name)
        if record.parse_error is not None:
            self.parse_errors.add(upstream, model, record.parse_error.mode)
        if record.retries:
            self.retries.add_many(record.retries, upstream)
        if record.client_closed:
            self.clients_left.add(upstream)
        if record.error_code:
            self.errors.add(upstream, record.error_code)
            waited_for = STALLS.get(record.error_code)
            if waited_for is not None:
                self.upstream_stalls.add(upstream, waited_for)
