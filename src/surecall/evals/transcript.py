"""A trial as it is kept for looking at: what was asked, what arrived, what was changed."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from surecall.base.records import Envelope, Message, Receipt, ToolCall, ToolResult, ToolSpec, clip
from surecall.base.redaction import redact
from surecall.loop import Trace, TurnTrace
from surecall.text import decode_own
from surecall.tools.outputs import encode_kept

from .records import TrialBody

_MAX_RESULT_CHARS: Final = 20_000


def write_body(
    index: int,
    *,
    trace: Trace | None,
    said: Mapping[int, tuple[Message, ...]] | None = None,
    config: Mapping[str, Any],
    request: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
) -> TrialBody:
    """Write down a trial, without secrets and without anything empty.

    Args:
        index: The place of the trial.
        trace: What happened; None when the run never began.
        said: What the user said to an answer, by the turn that followed.
        config: What was in force; it is kept as it is.
        request: What would have been asked, when the trace does not say.
        state: What the case left behind.
    """
    turns = () if trace is None else trace.turns
    document: dict[str, Any] = {
        "request": _request(trace) if trace is not None else dict(request or {}),
        "transcript": [_turn(turn, (said or {}).get(turn.turn, ())) for turn in turns],
        "state": dict(state or {}),
    }
    clean = without_secrets(document)
    in_force = dict(config)
    if trace is not None:
        clean["request"]["tools"] = [_tool(tool) for tool in trace.tools]
        in_force["prompting"] = trace.strategy
        in_force["ignored_overrides"] = list(trace.ignored_overrides)
        if trace.schema_losses:
            in_force["schema_losses"] = msgspec.to_builtins(trace.schema_losses)
        in_force["fingerprint"] = trace.fingerprint
    return TrialBody(
        index=index,
        request=clean["request"],
        config=in_force,
        transcript=tuple(clean["transcript"]),
        state=clean["state"],
    )


def without_secrets(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without secrets; most have none and are returned as they are."""
    text = encode_kept(document).decode()
    clean = redact(text)
    return document if clean == text else decode_own(clean.encode())


def _request(trace: Trace) -> dict[str, Any]:
    return _drop_empty(
        {
            "system": trace.system,
            "messages": [_message(message) for message in trace.messages],
        }
    )


def _message(message: Message) -> dict[str, Any]:
    return _drop_empty(
        {
            "role": message.role,
            "content": message.content,
            "calls": [_call(call) for call in message.tool_calls],
            "tool_call_id": message.tool_call_id,
        }
    )


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return _pick(tool, "name", "description", "parameters", "effect")


def _turn(turn: TurnTrace, said: tuple[Message, ...]) -> dict[str, Any]:
    summary = turn.response_summary
    return _drop_empty(
        {
            "turn": turn.turn,
            "said": [_message(message) for message in said],
            "mode": turn.request.prompt_mode,
            "forced_tool": turn.request.forced_tool,
            "tools": turn.request.tools_count,
            "elapsed_ms": round(turn.elapsed_ms, 3),
            "attempts": turn.attempts if turn.attempts > 1 else None,
            "answered_by": turn.answered_by,
            "request_id": turn.request_id,
            "raw": None if turn.raw is None else turn.raw.message,
            "finish_reason": None if summary is None else summary.finish_reason,
            "usage": None if summary is None else msgspec.to_builtins(summary.usage),
            "failures": msgspec.to_builtins(list(turn.failures)),
            "defects": msgspec.to_builtins(list(turn.defects)),
            "receipts": [_receipt(receipt) for receipt in turn.receipts],
            "calls": [_call(call) for call in turn.calls],
            "ignored": [_call(call) for call in turn.ignored_calls],
            "results": [_result(result) for result in turn.results],
        }
    )


def _call(call: ToolCall) -> dict[str, Any]:
    plain = _pick(call, "id", "name", "format", "state", "raw", "arguments", "arguments_bytes")
    receipts = [_receipt(receipt) for receipt in call.receipts]
    return _drop_empty(
        {**plain, "receipts": receipts, "errors": msgspec.to_builtins(list(call.errors))}
    )


def _receipt(receipt: Receipt) -> dict[str, Any]:
    kept = _pick(receipt, "rule", "place", "before", "after", "lossless")
    return kept | {"why": receipt.why} if receipt.why else kept


def _result(result: ToolResult) -> dict[str, Any]:
    return _drop_empty(
        {
            **_pick(result, "call_id", "name", "ok", "executed"),
            "replaced": result.replaced or None,
            "elapsed_ms": round(result.elapsed_ms, 3),
            "envelope": _envelope(result.envelope),
            "text": clip(result.text, _MAX_RESULT_CHARS),
        }
    )


def _envelope(envelope: Envelope) -> dict[str, Any]:
    """Return the envelope without its data, which is in the text that the model was shown."""
    return _drop_empty(
        {
            **_pick(envelope, "ok", "tool_name"),
            "warnings": list(envelope.warnings),
            "errors": msgspec.to_builtins(list(envelope.errors)),
        }
    )


def _pick(record: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _drop_empty(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is unset or an empty list; an empty object may be what was sent."""
    return {name: value for name, value in fields.items() if value is not None and value != []}
