"""Any reply becomes calls: ready to be checked and run, or refused with reasons."""

from .arguments import ArgumentsReading, read_arguments
from .calls import ReadingLimits
from .reply import read_reply
from .rescue import find_generation, may_be_rescued, rescue_receipts, rescue_reply
from .stream import CallRead, ReadEvent, ReasoningRead, ReplyReader, TextRead, TextWasReasoning

__all__ = [
    "ArgumentsReading",
    "CallRead",
    "ReadEvent",
    "ReadingLimits",
    "ReasoningRead",
    "ReplyReader",
    "TextRead",
    "TextWasReasoning",
    "find_generation",
    "may_be_rescued",
    "read_arguments",
    "read_reply",
    "rescue_receipts",
    "rescue_reply",
]
