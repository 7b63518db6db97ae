"""The seam where a person or a policy may stop a call before it runs.

The hash covers the canonical arguments after repair, and the tool is given exactly those
arguments: what was approved is what runs. An approver that fails, or answers with anything
other than a decision, has denied the call.
"""

from typing import Any, Protocol

from msgspec import Struct

from surecall.records import ToolCall, ToolSpec

from .define import ToolContext

__all__ = ["ApprovalDecision", "ApprovalRequest", "Approver"]


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """One call that is about to run, and the hash that a decision binds to."""

    call: ToolCall
    spec: ToolSpec
    arguments: dict[str, Any]
    """A copy of the arguments to show; changing it changes nothing."""
    arguments_hash: str
    """SHA-256 of the canonical arguments that will run."""
    context: ToolContext


class ApprovalDecision(Struct, frozen=True):
    """Whether the call may run, and why not."""

    approved: bool
    reason: str = ""


class Approver(Protocol):
    """Decides whether a call may run."""

    async def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return the decision; raising denies the call."""
        ...
