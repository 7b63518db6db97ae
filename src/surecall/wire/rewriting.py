"""Events of a stream that are held back, written again: with other calls, or with an end."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from surecall.base.errors import SurecallError
from surecall.base.records import ToolCall

from .events import EventReader, event_of, same_event
from .records import WireError


class EventParts(NamedTuple):
    """An event of text, parted into events of their own; each may be missing."""

    thought: bytes
    text: bytes
    rest: bytes
    """What the event brings besides text, such as a call or the finish."""


class CallPiece(NamedTuple):
    """What one event of the usual form brings of one call."""

    place: int
    """The number of the call, or of its item or block."""
    text: str
    """The piece of its arguments."""
    name: str = ""
    """The tool, in the event that begins the call."""
    call_id: str = ""
    item: dict[str, Any] | None = None
    """All that the event which begins the call says of it."""


class Begun(NamedTuple):
    """A call whose beginning was passed on, and what becomes of the rest."""

    place: int
    item: dict[str, Any]
    """All that the event which began the call says of it."""
    arguments: str
    """The arguments as a whole, which begin with what was passed on."""
    rest: str
    """What of them was not."""


def _is_never_other(name: Any, fields: Mapping[str, Any]) -> bool:
    return False


_Reader = TypeVar("_Reader", bound=EventReader)


class EventRewriter(ABC, Generic[_Reader]):
    """Writes among the events of one stream what the endpoint did not write.

    Args:
        reader: What has read the events.
        is_other: Tells whether a call, by its name and its other fields, is one of a tool that is
            not a function; such calls stay as they are.
    """

    parts_text: bool = False
    """Whether `part` can part an event: parts of the reply have no numbers."""
    error_name: str = ""
    """What the event of an error is called."""
    render_error: Callable[[SurecallError], WireError]

    def __init__(
        self,
        reader: _Reader,
        *,
        is_other: Callable[[Any, Mapping[str, Any]], bool] = _is_never_other,
    ) -> None:
        self._reader = reader
        self._is_other = is_other

    @abstractmethod
    def rewrite(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        note: str = "",
        begun: Begun | None = None,
    ) -> bytes:
        """Return the held events with these calls in the place of their own.

        Without any call the reply ends with a stop, whatever the events say.

        Args:
            held: The data of the events that were held back.
            calls: The calls that the client gets.
            text: What comes in the place of the held text; `None` leaves it as it is.
            note: What comes behind all text.
            begun: The call that goes on before these, if the beginning of one was passed on.
        """

    def read_piece(self, fields: dict[str, Any]) -> CallPiece | None:
        """Return what an event brings of a call, if it has the usual form and brings no more."""
        return None

    @abstractmethod
    def pulse(self, held: bytes) -> bytes:
        """Return an event that says nothing, and that the SDKs of the format hand on.

        Args:
            held: The data of the first event that is held back, which it comes before.
        """

    @abstractmethod
    def stop(self, held: bytes) -> bytes:
        """Return the events that end a reply whose own end did not come.

        Args:
            held: The data of the first event that is held back.
        """

    def part(self, data: bytes, thought: str, text: str) -> EventParts:
        """Part an event whose text turned out to be reasoning, all of it or its beginning.

        Args:
            data: The data of the event.
            thought: The reasoning in the place of its text.
            text: The text in its place.
        """
        return EventParts(b"", b"", same_event(data))

    def shift(self, data: bytes, count: int) -> bytes:
        """Return events with their numbers raised, where the format numbers them."""
        return data

    def fail(self, error: SurecallError, held: bytes | None) -> bytes:
        """Return the events that break the stream off.

        Args:
            error: Why.
            held: The data of the first event that was held back, in whose place they come.
        """
        stated = self._reader.stated
        if stated is not None and error is stated.error:
            return same_event(stated.data, self.error_name)
        return event_of(self.render_error(error).body, self.error_name)
