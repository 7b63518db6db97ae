"""The least that helps a model which writes its calls as text: what every other help is held to."""

from collections.abc import Collection
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields
from surecall.base.records import RawCall, Reply
from surecall.text import decode, encode_text
from surecall.wire import RawReply, WireProtocol

NAIVE_FORMAT: Final = "outermost_braces"
"""The format of a call that was found this way."""
_NAMES: Final = ("name", "function")
_ARGUMENTS: Final = ("arguments", "parameters")


def find_naive_call(text: str, offered: Collection[str]) -> RawCall | None:
    """Return the call that the outermost braces of a text hold, if it names an offered tool."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        fields = as_fields(decode(text[start : end + 1]))
        name = next((fields[key] for key in _NAMES if key in fields), None)
        arguments = next((fields[key] for key in _ARGUMENTS if key in fields), None)
        written = arguments if isinstance(arguments, str) else encode_text(arguments)
    except JSONTextError:
        return None
    if arguments is None or not isinstance(name, str) or name not in offered:
        return None
    return RawCall(None, name, written, NAIVE_FORMAT)


class NaiveRescue:
    """A wire format that also reads a text without calls for one call."""

    def __init__(self, protocol: WireProtocol, offered: Collection[str]) -> None:
        self._protocol = protocol
        self._offered = frozenset(offered)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._protocol, name)

    def parse_message(self, raw: RawReply) -> Reply:
        """Understand the assistant message, and take its text for a call if it has no other."""
        reply = self._protocol.parse_message(raw)
        if reply.calls or not reply.content:
            return reply
        call = find_naive_call(reply.content, self._offered)
        return reply if call is None else replace(reply, calls=(call,), content=None)


def rescue_naively(protocol: WireProtocol, offered: Collection[str]) -> WireProtocol:
    """Return a wire format with the naive rescue added to it."""
    return cast("WireProtocol", NaiveRescue(protocol, offered))
