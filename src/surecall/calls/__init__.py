"""Tool calls written as text: one file a family, one linear scan for all of them."""

from .families import FORMATS, TAUGHT_FORMATS
from .formats import CallFormat, Found, Grade, TextCall, Thinking
from .names import ToolNames
from .openers import find_openers, finds_opener, may_hold_call, openers_of
from .pieces import CallPiece, Piece, TextPiece
from .reader import TextReader
from .source import NeedMore, Source
from .thinking import REASONING

__all__ = [
    "FORMATS", "REASONING", "TAUGHT_FORMATS", "CallFormat", "CallPiece", "Found", "Grade",
    "NeedMore", "Piece", "Source", "TextCall", "TextPiece", "TextReader", "Thinking", "ToolNames",
    "find_openers", "finds_opener", "may_hold_call", "openers_of",
]  # fmt: skip
