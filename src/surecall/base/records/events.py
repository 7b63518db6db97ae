"""Events: a run reports each step as it happens, to whoever listens.

Every event is a frozen record; `type` in its JSON form is the name in the table of
`docs/reference/events.md`. Events carry sizes and codes; what a model wrote is only in
text deltas and in the fields `call`, `receipts` and `errors`.
"""

from datetime import datetime
from typing import Any

from msgspec import Struct

from .calls import ToolCall
from .messages import Usage
from .receipts import ErrorDetail, Receipt


class CallSummary(Struct, frozen=True):
    """One call, without its arguments."""

    id: str
    name: str
    arguments_bytes: int


class Event(Struct, frozen=True, kw_only=True, tag_field="type"):
    """The fields of every event."""

    run_id: str = ""
    turn: int = 0
    at_ms: float = 0.0
    """Milliseconds since the run began."""


class RunStarted(Event, frozen=True, tag="run_start"):
    """A run begins, or is resumed from a journal."""

    model: str
    fingerprint: str
    tools: tuple[str, ...]
    resumed: bool = False


class ModelRequestStarted(Event, frozen=True, tag="llm_request_start"):
    """A request is about to be sent."""

    tool_use_mode: str
    tool_failure_policy: str
    tools_enabled: bool
    messages_count: int
    tools_count: int
    tool_choice: Any
    request_attempts_left: int
    prompt_mode: str = "native"
    """`native`, `strict`, `taught` or `constrained`."""


class ModelRequestFailed(Event, frozen=True, tag="llm_request_error"):
    """A request got no reply."""

    tools_enabled: bool
    code: str
    status: int | None
    error_class: str
    message: str
    elapsed_ms: float


class ModelRequestRetried(Event, frozen=True, tag="llm_request_retry"):
    """The request is sent again without tools."""

    tools_enabled: bool
    request_attempts_left: int


class ModelRequestEnded(Event, frozen=True, tag="llm_request_end"):
    """A reply was parsed and read."""

    tool_use_mode: str
    tool_failure_policy: str
    tools_enabled: bool
    elapsed_ms: float
    finish_reason: str | None
    assistant_content_bytes: int
    usage: Usage | None
    tool_calls_count: int
    ignored_tool_calls_count: int
    tool_calls: tuple[CallSummary, ...]
    request_id: str | None = None
    receipts_count: int = 0
    defect_codes: tuple[str, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    """Changes outside the calls; `tool_call_start` has the changes to its call."""


class TextDelta(Event, frozen=True, tag="text_delta"):
    """Text to show now; only when the turn is streamed."""

    text: str


class ReasoningDelta(Event, frozen=True, tag="reasoning_delta"):
    """Reasoning text as it arrives; only when the turn is streamed."""

    text: str


class TextRetracted(Event, frozen=True, tag="text_retracted"):
    """All text shown in this turn so far turned out to be reasoning, or to hold a call."""


class ToolCallStarted(Event, frozen=True, tag="tool_call_start"):
    """A call is about to run, with whatever was decided about it; or is refused."""

    tool_call_id: str
    name: str
    arguments_bytes: int
    parse_status: str
    """`ok`, `invalid_json`, `too_large`, `too_deep` or `cut`."""
    call: ToolCall | None = None
    """The call with the arguments that run, and the receipts of all that was changed in it."""


class ToolCallEnded(Event, frozen=True, tag="tool_call_end"):
    """A call has its result.

    For example:

        def show(event):
            if isinstance(event, surecall.ToolCallEnded):
                print(event.name, event.ok, event.elapsed_ms)

        transport = surecall.ScriptedTransport(["Hello."])
        surecall.run_sync("Hi", model="small", transport=transport, on_event=show)
    """

    tool_call_id: str
    name: str
    ok: bool
    elapsed_ms: float
    output_bytes: int
    output_replaced: bool
    error_codes: tuple[str, ...]
    executed: bool
    errors: tuple[ErrorDetail, ...] = ()
    call: ToolCall | None = None
    """The call as it ran, as in `ToolCallStarted`."""


class ApprovalRequested(Event, frozen=True, tag="approval_requested"):
    """A call, and so the run, is waiting for a decision; emitted once both are stored."""

    approval_id: str
    tool_call_id: str
    name: str
    arguments: Any
    expires_at: datetime


class ApprovalFailed(Event, frozen=True, tag="approval_failed"):
    """The application's code that decides about a call failed; without a clear yes nothing runs."""

    tool_call_id: str
    name: str
    code: str
    message: str


class CallRepeated(Event, frozen=True, tag="call_repeated"):
    """The model made the same call again and was warned."""

    name: str
    count: int


class ToolNotExecuted(Event, frozen=True, tag="tool_not_executed"):
    """The model wrote what looks like a call and was not read as one, or not run."""

    reason: str
    snippet: str
    retrying: bool
    """Whether the model is informed and asked again."""
    is_likely: bool = False
    """Whether the text probably makes this call; otherwise it cannot be read as one."""


class Escalated(Event, frozen=True, tag="escalated"):
    """The next request goes one step up, because plain asking did not help."""

    rung: str
    """`strict_tool`, `forced_choice`, `schema`, `taught`, or `list` for all calls at once."""
    tool: str | None
    step: int
    """How many steps were used so far in this run."""


class StepNudged(Event, frozen=True, tag="step_nudged"):
    """The model answered too early and is asked to go on."""

    missing: tuple[str, ...]
    """The required tools that have not succeeded; none where just any call is demanded."""
    held_by: str
    """How its next reply is held to a call: `schema`, `forced_choice` or `words`."""
    step: int
    """How many nudges were used so far in this run."""


class FitJudged(Event, frozen=True, tag="fit_judged"):
    """The model was asked whether a tool fits the request, before a call of it runs."""

    tool: str
    fits: bool
    score: float | None
    """Log-probability of yes less log-probability of no; unset after a plain answer."""
    threshold: float | None
    """The score from which a tool fits."""
    elapsed_ms: float


class FixEmptyFinal(Event, frozen=True, tag="fix_empty_final"):
    """The final answer was empty and is asked for once more."""

    disable_tools: bool
    user_text_bytes: int


class Final(Event, frozen=True, tag="final"):
    """The final answer is there."""

    assistant_content_bytes: int
    any_tool_calls_seen: bool
    any_tool_success_seen: bool


class RunEnded(Event, frozen=True, tag="run_end"):
    """The run is over, or waits for an approval; `code` is empty when it ended with an answer."""

    ok: bool
    code: str
    turns: int
    calls: int
    usage: Usage
    elapsed_ms: float


RunEvent = (
    RunStarted
    | ModelRequestStarted
    | ModelRequestFailed
    | ModelRequestRetried
    | ModelRequestEnded
    | TextDelta
    | TextRetracted
    | ReasoningDelta
    | ToolCallStarted
    | ToolCallEnded
    | ApprovalRequested
    | ApprovalFailed
    | CallRepeated
    | ToolNotExecuted
    | Escalated
    | StepNudged
    | FitJudged
    | FixEmptyFinal
    | Final
    | RunEnded
)
"""Every event of a run."""
