"""Tools: how they are defined, which of them a model may use, and how their calls are run."""

from .approvals import Approval, ApprovalStore, Decision, MemoryApprovals, PausedRun
from .availability import Guard, RunProgress, check_required, find_closed
from .define import ApprovalRule, Tool, ToolContext, ToolFailed, as_tool, tool
from .dispatch import Dispatcher, ResultTransforms
from .outputs import OutputLimits, OutputRejection, check_output, envelope_of, render_envelope
from .permission import ApprovalDecision, ApprovalRequest, Approver, OnceLedger, Permission
from .running import run_calls
from .tool_registry import MaskedRegistry, ToolProvider, ToolRegistry

__all__ = [
    "Approval",
    "ApprovalDecision",
    "ApprovalRequest",
    "ApprovalRule",
    "ApprovalStore",
    "Approver",
    "Decision",
    "Dispatcher",
    "Guard",
    "MaskedRegistry",
    "MemoryApprovals",
    "OnceLedger",
    "OutputLimits",
    "OutputRejection",
    "PausedRun",
    "Permission",
    "ResultTransforms",
    "RunProgress",
    "Tool",
    "ToolContext",
    "ToolFailed",
    "ToolProvider",
    "ToolRegistry",
    "as_tool",
    "check_output",
    "check_required",
    "envelope_of",
    "find_closed",
    "render_envelope",
    "run_calls",
    "tool",
]
