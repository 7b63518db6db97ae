"""Tool calls written as text: one file a family, one linear scan for all of them."""

from .base import CallFormat, Found, Grade, TextCall, Thinking
from .catalog import FORMATS, TAUGHT_FORMATS
from .names import ToolNames
from .pieces import CallPiece, Piece, TextPiece
from .reader import TextReader, finds_opener, openers_of
from .source import NeedMore, Source

__all__ = [
    "FORMATS",
    "TAUGHT_FORMATS",
    "CallFormat",
    "CallPiece",
    "Found",
    "Grade",
    "NeedMore",
    "Piece",
    "Source",
    "TextCall",
    "TextPiece",
    "TextReader",
    "Thinking",
    "ToolNames",
    "finds_opener",
    "openers_of",
]
