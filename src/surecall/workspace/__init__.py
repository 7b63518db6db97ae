"""A workspace that a model may work on: facts, a draft, locks, and tools that guard them."""

from .patch import OPERATIONS, apply_operations
from .state import (
    Committed,
    ProposedFact,
    WorkspaceState,
    commit_facts,
    new_state,
    patch_draft,
    propose_facts,
)
from .tools import EXPOSED_TOOLS, WORKSPACE_TOOLS, WorkspaceTools
from .workspace import CallLog, LoggedCall, MemoryStore, Workspace, WorkspaceStore

__all__ = [
    "EXPOSED_TOOLS",
    "OPERATIONS",
    "WORKSPACE_TOOLS",
    "CallLog",
    "Committed",
    "LoggedCall",
    "MemoryStore",
    "ProposedFact",
    "Workspace",
    "WorkspaceState",
    "WorkspaceStore",
    "WorkspaceTools",
    "apply_operations",
    "commit_facts",
    "new_state",
    "patch_draft",
    "propose_facts",
]
