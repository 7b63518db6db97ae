"""What a stream holds when it has come to its end: clean calls, nothing, or something to echo."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from surecall.base.limits import MIB
from surecall.base.records import RawCall, Reply
from surecall.exchange.request import ClientRequest
from surecall.reading import ReadingLimits
from surecall.reading.calls import read_clean_calls
from surecall.reading.truncation import came_to_its_end
from surecall.wire import WireProtocol

from .wire import Wire

_MAX_KEPT_BYTES: Final = MIB
_CALL_ENDS: Final = frozenset(
    {"tool_calls", "function_call", "tool_use", "MALFORMED_FUNCTION_CALL"}
)
_ECHO_MARKS: Final = (b'"reasoning', b"houghtSignature", b"hought_signature", b'"thinking_blocks')
_NO_ECHO: Final = b'"reasoning_tokens'
"""A figure of the usage, which only looks like one of these."""


class KeptEvents:
    """Events besides text that were passed on, for the whole reader of the format."""

    __slots__ = ("_bytes", "events")

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self._bytes = 0

    def add(self, event: bytes) -> None:
        """Keep an event, as long as these are not too many."""
        if self._bytes + len(event) <= _MAX_KEPT_BYTES:
            self.events.append(event)
            self._bytes += len(event)

    def fold(self, protocol: WireProtocol, headers: Mapping[str, str], data: bytes) -> Reply:
        """Read them and the end with the whole reader of the format; most of the text is out."""
        folder = protocol.open_stream(headers)
        folder.feed(b"".join(self.events))
        folder.feed(data)
        return protocol.parse_message(folder.close())

    def may_echo(self, held: Sequence[bytes]) -> bool:
        """Tell whether they, or events that are held, may have what a client has to send back."""
        written = b"".join((*self.events, *held)).replace(_NO_ECHO, b"")
        return any(mark in written for mark in _ECHO_MARKS)


def is_wanting(wire: Wire, request: ClientRequest, *, has_words: bool) -> bool:
    """Tell whether a reply without calls says nothing, or should have one."""
    if wire.finish in _CALL_ENDS:
        return True
    return request.offers_tools and (not has_words or request.choice.wanted == "call")


def count_clean_calls(wire: Wire, request: ClientRequest, limits: ReadingLimits) -> int | None:
    """Return how many calls there are if all of them can be delivered as they are."""
    calls = wire.calls()
    if calls is None or not came_to_its_end(wire.finish):
        return None
    names = request.tools.names
    checked: list[RawCall] = []
    for call in calls:
        name = call.name
        if name.__class__ is not str or (names and names.spec(name) is None):
            return None
        if not request.choice.takes(str(name)):
            return None
        if call.arguments == "" and wire.blank_is_empty:
            call = RawCall(call.id, name, "{}")
        if request.has_calls and call.id.__class__ is str and _is_used(call.id, request.body):
            return None
        checked.append(call)
    if len(checked) > 1 and request.one_call:
        return None
    clean = read_clean_calls(checked, names, (), limits)
    return None if clean is None else len(clean)


def _is_used(call_id: Any, body: bytes) -> bool:
    """Tell whether the conversation may have an earlier call with this id."""
    return len(call_id) > 1 and call_id.encode("utf-8", "replace") in body
