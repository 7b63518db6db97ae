"""Streams made reliable: text flows at once, calls go out when they are whole and checked."""

from .ending import Ending, note_outcome
from .relay import PULSE_S, StreamRelay
from .rescue import rescue_call
from .several import ask_whole, is_several, write_several

__all__ = [
    "PULSE_S",
    "Ending",
    "StreamRelay",
    "ask_whole",
    "is_several",
    "note_outcome",
    "rescue_call",
    "write_several",
]
