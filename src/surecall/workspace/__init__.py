"""A workspace that a model may work on: facts, a draft, locks, and tools that guard them."""

from .changes import APPLICATION, Author, Change
from .patches import OPERATIONS, apply_operations
from .proposals import FactDifference, Proposal, ProposedFact, ask_for
from .state import Part, WorkspaceState, new_state, patch_part
from .state_store import ApprovalUse, MemoryStore, WorkspaceStore
from .tools import EXPOSED_TOOLS, WORKSPACE_TOOLS, CallLog, LoggedCall, WorkspaceTools
from .workspace import Committed, Workspace

__all__ = [
    "APPLICATION",
    "EXPOSED_TOOLS",
    "OPERATIONS",
    "WORKSPACE_TOOLS",
    "ApprovalUse",
    "Author",
    "CallLog",
    "Change",
    "Committed",
    "FactDifference",
    "LoggedCall",
    "MemoryStore",
    "Part",
    "Proposal",
    "ProposedFact",
    "Workspace",
    "WorkspaceState",
    "WorkspaceStore",
    "WorkspaceTools",
    "apply_operations",
    "ask_for",
    "new_state",
    "patch_part",
]
