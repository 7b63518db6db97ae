"""Streams made reliable: text flows at once, calls go out when they are whole and checked."""

from .relay import Ending, StreamRelay, note_outcome
from .rescue import rescue_call
from .several import ask_whole, is_several, write_several

__all__ = [
    "Ending",
    "StreamRelay",
    "ask_whole",
    "is_several",
    "note_outcome",
    "rescue_call",
    "write_several",
]
