"""Wire formats: each renders requests and parses replies, and does no I/O."""

from .base import RawReply, StreamDelta, StreamFolder, StreamWriter, WireFault, WireProtocol
from .chat_completions import ChatCompletions

__all__ = [
    "ChatCompletions",
    "RawReply",
    "StreamDelta",
    "StreamFolder",
    "StreamWriter",
    "WireFault",
    "WireProtocol",
]
