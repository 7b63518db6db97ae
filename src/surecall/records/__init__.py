"""Plain frozen data that travels between the layers: no I/O, no policy."""

from .calls import CallState, Certainty, RawCall, ToolCall
from .defects import Defect
from .events import (
    CallRepeated,
    CallSummary,
    Escalated,
    Event,
    Final,
    FixEmptyFinal,
    ModelRequestEnded,
    ModelRequestFailed,
    ModelRequestRetried,
    ModelRequestStarted,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunStarted,
    TextDelta,
    TextRetracted,
    ToolCallEnded,
    ToolCallStarted,
    ToolNotExecuted,
)
from .messages import Message, Role
from .receipts import Receipt, clip
from .replies import Reading, Reply, WireReply
from .requests import ModelRequest, WireRequest
from .results import Envelope, ErrorDetail, ToolResult
from .tools import CoerceMode, Effect, ToolSpec
from .usage import Usage
from .weights import Weights, WeightsPart

__all__ = [
    "CallRepeated",
    "CallState",
    "CallSummary",
    "Certainty",
    "CoerceMode",
    "Defect",
    "Effect",
    "Envelope",
    "ErrorDetail",
    "Escalated",
    "Event",
    "Final",
    "FixEmptyFinal",
    "Message",
    "ModelRequest",
    "ModelRequestEnded",
    "ModelRequestFailed",
    "ModelRequestRetried",
    "ModelRequestStarted",
    "RawCall",
    "Reading",
    "ReasoningDelta",
    "Receipt",
    "Reply",
    "Role",
    "RunEnded",
    "RunEvent",
    "RunStarted",
    "TextDelta",
    "TextRetracted",
    "ToolCall",
    "ToolCallEnded",
    "ToolCallStarted",
    "ToolNotExecuted",
    "ToolResult",
    "ToolSpec",
    "Usage",
    "Weights",
    "WeightsPart",
    "WireReply",
    "WireRequest",
    "clip",
]
