"""Keeping the trace of a run while it happens."""

from typing import Any, cast

from msgspec.structs import replace

from surecall.profiles import join_capabilities
from surecall.records import ErrorDetail, Reading, ToolResult

from .history import fit_history
from .plan import Plan
from .prompt_runner import PromptResult
from .schema_losses import SchemaLoss, find_losses
from .steps import Accepted, RunState
from .trace import FailedRequest, RequestSummary, ResponseSummary, Trace, TurnTrace

__all__ = ["TraceKeeper"]


class TraceKeeper:
    """Collects the turns of one run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._turns: list[TurnTrace] = []
        self._failures: list[FailedRequest] = []
        self._started_ms = 0.0

    @property
    def turns_count(self) -> int:
        """How many replies there were."""
        return len(self._turns)

    def begin_request(self, now_ms: float) -> None:
        """Note when a turn began; a request that follows a failed one belongs to the same turn."""
        if not self._failures:
            self._started_ms = now_ms

    def add_failure(self, failure: FailedRequest) -> None:
        """Note a request that got no reply."""
        self._failures.append(failure)

    def add_reply(
        self, state: RunState, asked: PromptResult, reading: Reading, accepted: Accepted
    ) -> TurnTrace:
        """Add the turn that a reply completes."""
        reply = asked.reply
        turn = TurnTrace(
            turn=state.turn,
            started_ms=self._started_ms,
            request=self._summarize_request(state),
            response_summary=ResponseSummary(
                has_tool_calls=bool(accepted.calls),
                tool_calls_count=len(accepted.calls),
                ignored_tool_calls_count=len(accepted.ignored),
                usage=reply.usage,
                finish_reason=reply.finish_reason,
                assistant_content_stripped=accepted.content_sample is not None,
                assistant_content_sample=accepted.content_sample,
            ),
            elapsed_ms=asked.elapsed_ms,
            request_id=asked.request_id,
            attempts=asked.attempts,
            answered_by=reply.model,
            failures=tuple(self._failures),
            raw=asked.raw,
            calls=accepted.calls,
            ignored_calls=accepted.ignored,
            receipts=asked.receipts + reading.receipts,
            defects=reading.defects + accepted.defects,
        )
        self._failures.clear()
        self._turns.append(turn)
        return turn

    def add_results(self, results: tuple[ToolResult, ...]) -> None:
        """Add the results of the calls of the last reply."""
        self._turns[-1] = replace(self._turns[-1], results=results)

    def trace(
        self, run_id: str, state: RunState, error: ErrorDetail | None, answer: str | None = None
    ) -> Trace:
        """Return the trace so far, with the answer or the reason why there is none."""
        plan, turns = self._plan, self._turns
        if self._failures:
            lost = TurnTrace(
                turn=state.turn,
                started_ms=self._started_ms,
                request=self._summarize_request(state),
                failures=tuple(self._failures),
            )
            turns = [*turns, lost]
        return Trace(
            run_id=run_id,
            fingerprint=plan.fingerprint,
            model=plan.model,
            system=plan.system,
            messages=plan.messages,
            tools=plan.tools,
            options=plan.options,
            origins=plan.origins,
            capabilities=_as_json(join_capabilities(plan.capabilities, plan.findings)),
            capability_origins=plan.capability_origins,
            ignored_overrides=plan.ignored_overrides,
            strategy={"mode": plan.mode, "reason": plan.mode_reason},
            probe=plan.probe,
            protocol=plan.protocol,
            schema_losses=self._find_losses(turns),
            turns=tuple(turns),
            answer=answer,
            error=error,
        )

    def _find_losses(self, turns: list[TurnTrace]) -> tuple[SchemaLoss, ...]:
        """Collect the losses of all ways in which the tools were put, each once."""
        ways = dict.fromkeys(
            (turn.request.prompt_mode, turn.request.forced_tool)
            for turn in turns
            if turn.request.tools_count
        )
        found: dict[SchemaLoss, None] = {}
        for mode, forced in ways:
            tools = (tool for tool in self._plan.tools if forced in (None, tool.name))
            found.update(dict.fromkeys(find_losses(tools, mode, self._plan.capabilities)))
        return tuple(found)

    def _summarize_request(self, state: RunState) -> RequestSummary:
        plan, options = self._plan, self._plan.options
        return RequestSummary(
            model=plan.model,
            messages_count=len(state.history) + (1 if plan.system else 0),
            history_changes=fit_history(state.history, plan.history_rules(state.mode))[1],
            tools_count=len(plan.tools) if state.tools_enabled else 0,
            tool_use_mode=options.tool_use_mode,
            tool_failure_policy=options.tool_failure_policy,
            prompt_mode=state.mode,
            forced_tool=state.forced_tool,
            message_transforms=options.message_transforms,
            tool_transforms=options.tool_transforms,
            response_transforms=options.response_transforms,
            tool_call_transforms=options.tool_call_transforms,
            tool_result_transforms=options.tool_result_transforms,
        )


def _as_json(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields as they are after saving and loading: JSON has no tuples."""
    return {
        name: list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
        for name, value in fields.items()
    }
