"""Wire formats: each renders requests and parses replies, and does no I/O."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from surecall.base.errors import Code, ConfigError, did_you_mean

from .chat_completions import ChatCompletions
from .protocol import WireProtocol
from .records import RawReply, Stated, StreamDelta, StreamFolder, StreamWriter, WireError

if TYPE_CHECKING:
    from .gemini import Gemini
    from .messages import Messages
    from .responses import Responses
    from .translate import (
        StreamTranslator,
        Translated,
        translate_asked,
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
    "Stated",
    "StreamDelta",
    "StreamFolder",
    "StreamTranslator",
    "StreamWriter",
    "Translated",
    "WireError",
    "WireProtocol",
    "find_protocol",
    "translate_asked",
    "translate_reply",
    "translate_request",
]

DEFAULT_PROTOCOL: Final = "chat_completions"
"""The wire format when nothing says otherwise."""

PROTOCOLS: Final[Mapping[str, str]] = {
    "chat_completions": "ChatCompletions",
    "gemini": "Gemini",
    "messages": "Messages",
    "responses": "Responses",
}
"""The name of every wire format, as used in settings, and of its class."""

# Loaded when first used: most programs speak one wire format only.
_HOMES = {
    "Gemini": "gemini",
    "Messages": "messages",
    "Responses": "responses",
    "StreamTranslator": "translate",
    "Translated": "translate",
    "translate_asked": "translate",
    "translate_reply": "translate",
    "translate_request": "translate",
}


def find_protocol(name: str) -> WireProtocol:
    """Return the wire format of this name.

    Raises:
        ConfigError: `UNKNOWN_PROTOCOL`, with the closest name there is.
    """
    if name not in PROTOCOLS:
        raise ConfigError(
            Code.UNKNOWN_PROTOCOL,
            f"there is no wire format {name!r}.",
            hint=did_you_mean(name, PROTOCOLS),
        )
    family: Any = import_module(f"{__name__}.{name}")
    return getattr(family, PROTOCOLS[name])()


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
