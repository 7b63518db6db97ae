"""Text to SQL in four stages, on small real databases, with known answers."""

from .cases import AgentCase, AgentsSuite
from .judging import AGENT_REASONS, AgentReason

__all__ = ["AGENT_REASONS", "AgentCase", "AgentReason", "AgentsSuite"]
