"""Streams made reliable: text flows at once, calls go out when they are whole and checked."""

from .relay import PULSE_S, StreamRelay
from .rescue import rescue_call
from .several import ask_whole, is_several, write_several

__all__ = [
    "PULSE_S",
    "StreamRelay",
    "ask_whole",
    "is_several",
    "rescue_call",
    "write_several",
]
