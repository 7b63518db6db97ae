"""Wire formats: each renders requests and parses replies, and does no I/O."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .base import RawReply, StreamDelta, StreamFolder, StreamWriter, WireFault, WireProtocol
from .chat_completions import ChatCompletions
from .registry import DEFAULT_PROTOCOL, PROTOCOLS, find_protocol

if TYPE_CHECKING:
    from .gemini import Gemini
    from .messages import Messages
    from .responses import Responses
    from .translate import (
        StreamTranslator,
        Translated,
        translate_reply,
        translate_request,
    )

__all__ = [
    "DEFAULT_PROTOCOL",
    "PROTOCOLS",
    "ChatCompletions",
    "Gemini",
    "Messages",
    "RawReply",
    "Responses",
    "StreamDelta",
    "StreamFolder",
    "StreamTranslator",
    "StreamWriter",
    "Translated",
    "WireFault",
    "WireProtocol",
    "find_protocol",
    "translate_reply",
    "translate_request",
]

# Loaded when first used: most programs speak one wire format only.
_HOMES = {
    "Gemini": "gemini",
    "Messages": "messages",
    "Responses": "responses",
    "StreamTranslator": "translate",
    "Translated": "translate",
    "translate_reply": "translate",
    "translate_request": "translate",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
