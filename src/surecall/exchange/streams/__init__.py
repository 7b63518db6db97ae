"""Streams made reliable: text flows at once, calls go out when they are whole and checked."""

from .relay import PULSE_S, StreamRelay, rescue_call

__all__ = ["PULSE_S", "StreamRelay", "rescue_call"]
