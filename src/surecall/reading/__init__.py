"""Any reply becomes calls: ready to be checked and run, or refused with reasons."""

from .answers import ValueCandidate, ValueReading, read_value
from .arguments import ArgumentsReading, read_arguments
from .calls import ReadingLimits
from .documents import find_generation, may_be_rescued, rescue_receipts, rescue_reply
from .final_text import LanguagePolicy, OutputTags
from .inputs import InputKind, parse_input, tell_input
from .reply import (
    Accept,
    CallRead,
    ReadEvent,
    ReasoningRead,
    ReplyReader,
    TextRead,
    TextWasReasoning,
    read_reply,
)
from .rules import (
    ALL_RULES,
    FIXED_RULES,
    IDENTITY_RULES,
    MOVING_RULES,
    READING_RULES,
    RULES,
    TRANSFORM_RULES,
    was_judged,
    was_text,
    without_rules,
)
from .taught import find_broken_attempt, find_broken_call, parse_object_reply
from .transforms import TransformRegistry

__all__ = [
    "ALL_RULES",
    "FIXED_RULES",
    "IDENTITY_RULES",
    "MOVING_RULES",
    "READING_RULES",
    "RULES",
    "TRANSFORM_RULES",
    "Accept",
    "ArgumentsReading",
    "CallRead",
    "InputKind",
    "LanguagePolicy",
    "OutputTags",
    "ReadEvent",
    "ReadingLimits",
    "ReasoningRead",
    "ReplyReader",
    "TextRead",
    "TextWasReasoning",
    "TransformRegistry",
    "ValueCandidate",
    "ValueReading",
    "find_broken_attempt",
    "find_broken_call",
    "find_generation",
    "may_be_rescued",
    "parse_input",
    "parse_object_reply",
    "read_arguments",
    "read_reply",
    "read_value",
    "rescue_receipts",
    "rescue_reply",
    "tell_input",
    "was_judged",
    "was_text",
    "without_rules",
]
