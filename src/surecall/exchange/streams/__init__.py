"""Streams made reliable: text flows at once, calls go out when they are whole and checked."""

from .relay import Ending, StreamRelay
from .rescue import rescue_call

__all__ = ["Ending", "StreamRelay", "rescue_call"]
