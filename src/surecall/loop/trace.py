"""What happened in a run, turn by turn, kept whole so that the run can be replayed."""

from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from surecall.errors import Code, ConfigError, JSONTextError
from surecall.files import PRIVATE, explain_write_errors, write_whole
from surecall.jsontext import decode_own
from surecall.protocols import DEFAULT_PROTOCOL, RawReply
from surecall.records import (
    CallSummary,
    Defect,
    ErrorDetail,
    Message,
    Receipt,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from surecall.redaction import mask_known

from .options import Options
from .schema_losses import SchemaLoss
from .stored import encode_stored

__all__ = [
    "FailedRequest",
    "RequestSummary",
    "ResponseSummary",
    "ResultSummary",
    "Trace",
    "TurnTrace",
    "load_trace",
    "save_trace",
]

TRACE_VERSION: Final = 1


class RequestSummary(Struct, frozen=True, kw_only=True):
    """The request of a turn, without its bodies."""

    model: str
    messages_count: int
    tools_count: int
    tool_use_mode: str
    tool_failure_policy: str
    prompt_mode: str = "native"
    forced_tool: str | None = None
    history_changes: tuple[str, ...] = ()
    """What was changed in what is sent of the history, because the provider demands it:
    `split_calls`, `system_to_user`, `add_empty_reasoning`, `rewrite_call_ids`."""
    message_transforms: tuple[str, ...] = ()
    tool_transforms: tuple[str, ...] = ()
    response_transforms: tuple[str, ...] = ()
    tool_call_transforms: tuple[str, ...] = ()
    tool_result_transforms: tuple[str, ...] = ()


class ResponseSummary(Struct, frozen=True, kw_only=True):
    """The reply of a turn, without its bodies."""

    has_tool_calls: bool
    tool_calls_count: int
    ignored_tool_calls_count: int
    usage: Usage | None
    finish_reason: str | None
    assistant_content_stripped: bool = False
    assistant_content_sample: str | None = None


class ResultSummary(Struct, frozen=True):
    """One result, without its body."""

    id: str
    name: str
    ok: bool
    error_codes: tuple[str, ...]
    elapsed_ms: float = 0.0
    executed: bool = False


class FailedRequest(Struct, frozen=True):
    """A request of this turn that got no reply."""

    code: str
    message: str
    status: int | None
    elapsed_ms: float
    tools_enabled: bool


class TurnTrace(Struct, frozen=True, kw_only=True):
    """One turn: what was asked, what came back, what was changed, what was run."""

    turn: int
    started_ms: float
    """Milliseconds since the run began."""
    request: RequestSummary
    response_summary: ResponseSummary | None = None
    elapsed_ms: float = 0.0
    request_id: str | None = None
    attempts: int = 1
    answered_by: str | None = None
    """The model that answered, as the provider names it."""
    failures: tuple[FailedRequest, ...] = ()
    raw: RawReply | None = None
    """The reply exactly as it arrived."""
    calls: tuple[ToolCall, ...] = ()
    ignored_calls: tuple[ToolCall, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    """Changes outside the calls; those of a call are with the call."""
    defects: tuple[Defect, ...] = ()
    results: tuple[ToolResult, ...] = ()

    @property
    def tool_calls(self) -> tuple[CallSummary, ...]:
        """The accepted calls without their arguments."""
        return tuple(CallSummary(call.id, call.name, call.arguments_bytes) for call in self.calls)

    @property
    def tool_results(self) -> tuple[ResultSummary, ...]:
        """The results without their bodies."""
        return tuple(
            ResultSummary(
                result.call_id,
                result.name,
                result.ok,
                result.envelope.error_codes,
                result.elapsed_ms,
                result.executed,
            )
            for result in self.results
        )

    @property
    def all_receipts(self) -> tuple[Receipt, ...]:
        """Every change made to the reply of this turn."""
        return self.receipts + tuple(r for call in self.calls for r in call.receipts)


class Trace(Struct, frozen=True, kw_only=True):
    """What happened in a run: enough to explain it, and to replay it without a provider."""

    run_id: str
    fingerprint: str
    model: str
    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    options: Options
    origins: dict[str, str]
    capabilities: dict[str, Any]
    capability_origins: dict[str, str]
    ignored_overrides: tuple[str, ...] = ()
    strategy: dict[str, str] = {}
    """How tools were put to the model (`mode`), and why (`reason`)."""
    probe: dict[str, Any] | None = None
    """What the provider was asked before the run (`asked_at`, `ok`, `source`, `fields`,
    `findings`, `requests`, `tokens`, `error`); unset when it was not."""
    protocol: str = DEFAULT_PROTOCOL
    """Name of the wire format in which the replies came."""
    schema_losses: tuple[SchemaLoss, ...] = ()
    """What the schemas of the tools lost where a provider was to hold the model to them."""
    turns: tuple[TurnTrace, ...] = ()
    answer: str | None = None
    """The text the run ended with; unset when it ended without one, and in traces of before."""
    error: ErrorDetail | None = None
    """Why the run ended without an answer, if it did."""
    version: int = TRACE_VERSION

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Every change made to what the model said, in order."""
        return tuple(receipt for turn in self.turns for receipt in turn.all_receipts)


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write the trace as one JSON document, for its owner only.

    Raises:
        ConfigError: `DISK_FULL`, `FILE_WRITE_FAILED`, or `INVALID_OPTION` for a wrong place.
    """
    document = encode_stored(trace)
    with explain_write_errors(path), write_whole(path, mode=PRIVATE) as file:
        file.write(document)


def load_trace(path: str | Path) -> Trace:
    """Read a trace that `save_trace` wrote."""
    try:
        document = decode_own(mask_known(Path(path).read_bytes()))
        trace = msgspec.convert(document, Trace)
    except OSError as error:
        raise ConfigError(
            Code.INVALID_TRACE,
            f"the trace {path} cannot be read: {error.strerror or error}.",
            hint="Write one with `surecall run --trace FILE` or `result.trace`.",
        ) from error
    except (JSONTextError, msgspec.ValidationError) as error:
        problem = error.message if isinstance(error, JSONTextError) else f"{error}."
        raise ConfigError(
            Code.INVALID_TRACE,
            f"the file {path} is not a trace: {problem}",
            hint="Write one with `surecall run --trace FILE` or `result.trace`.",
        ) from error
    if trace.version != TRACE_VERSION:
        raise ConfigError(
            Code.INVALID_TRACE,
            f"{path} has trace version {trace.version}; this surecall reads {TRACE_VERSION}.",
            hint="Replay it with the version that wrote it.",
        )
    return trace
