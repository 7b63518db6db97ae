"""The same observations on the library's own loop: give an observer as `on_event` of a run."""

from collections.abc import Callable, Iterable
from typing import Final

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

from .metrics import Metrics
from .requests import STEPS, Findings

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
            code=("ok", *self.errors_codes()),
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

    @staticmethod
    def errors_codes() -> tuple[str, ...]:
        """Return every code that a run may end with."""
        from surecall.base.errors import Code

        return tuple(map(str, Code))

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
