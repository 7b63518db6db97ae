"""Any reply becomes calls: ready to be checked and run, or refused with reasons."""

from .arguments import ArgumentsReading, read_arguments
from .calls import ReadingLimits
from .reply import (
    CallRead,
    ReadEvent,
    ReasoningRead,
    ReplyReader,
    TextRead,
    TextWasReasoning,
    read_reply,
)
from .rescue import find_generation, may_be_rescued, rescue_receipts, rescue_reply
from .rules import (
    ALL_RULES,
    FIXED_RULES,
    IDENTITY_RULES,
    MOVING_RULES,
    READING_RULES,
    RULES,
    TRANSFORM_RULES,
    Rule,
    was_judged,
    was_text,
    without_rules,
)
from .taught import find_broken_attempt, find_broken_call, parse_object_reply

__all__ = [
    "ALL_RULES",
    "FIXED_RULES",
    "IDENTITY_RULES",
    "MOVING_RULES",
    "READING_RULES",
    "RULES",
    "TRANSFORM_RULES",
    "ArgumentsReading",
    "CallRead",
    "ReadEvent",
    "ReadingLimits",
    "ReasoningRead",
    "ReplyReader",
    "Rule",
    "TextRead",
    "TextWasReasoning",
    "find_broken_attempt",
    "find_broken_call",
    "find_generation",
    "may_be_rescued",
    "parse_object_reply",
    "read_arguments",
    "read_reply",
    "rescue_receipts",
    "rescue_reply",
    "was_judged",
    "was_text",
    "without_rules",
]
