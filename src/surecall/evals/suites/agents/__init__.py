"""Text to SQL in four stages, on small real databases, with known answers."""

from .cases import AgentCase
from .judging import AGENT_REASONS, AgentReason
from .suite import AgentsSuite

__all__ = ["AGENT_REASONS", "AgentCase", "AgentReason", "AgentsSuite"]
