"""The wire formats by name; each is loaded when it is first asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, cast

from surecall.errors import Code, ConfigError, did_you_mean

from .base import WireProtocol

__all__ = ["DEFAULT_PROTOCOL", "PROTOCOLS", "find_protocol"]

DEFAULT_PROTOCOL: Final = "chat_completions"

PROTOCOLS: Final[Mapping[str, str]] = {
    "chat_completions": "ChatCompletions",
    "gemini": "Gemini",
    "messages": "Messages",
    "responses": "Responses",
}
"""The name of every wire format, as used in settings, and of its class."""


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
    family: Any = import_module(f"surecall.protocols.{name}")
    return cast("WireProtocol", getattr(family, PROTOCOLS[name])())
