"""Tools: how they are defined, which of them a model may use, and how their calls are run."""

from .approval import ApprovalDecision, ApprovalRequest, Approver
from .define import Tool, ToolContext, ToolFailed, as_tool, tool
from .dispatch import Dispatcher, ResultTransforms
from .envelopes import envelope_of, render_envelope
from .execution import run_calls
from .mask import MaskedRegistry
from .outputs import OutputLimits, OutputRejection, check_output
from .registry import ToolRegistry

__all__ = [
    "ApprovalDecision",
    "ApprovalRequest",
    "Approver",
    "Dispatcher",
    "MaskedRegistry",
    "OutputLimits",
    "OutputRejection",
    "ResultTransforms",
    "Tool",
    "ToolContext",
    "ToolFailed",
    "ToolRegistry",
    "as_tool",
    "check_output",
    "envelope_of",
    "render_envelope",
    "run_calls",
    "tool",
]
