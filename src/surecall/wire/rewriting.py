"""How a reply is changed in the client's own format: events that are held back, and whole bodies.

A clean body is found out quickly, so that its own bytes go on; calls that were put right, and
reasoning that a text began with, go where the format has a place for them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Meta, Struct

from surecall.base.errors import SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MAX_REPORTED_TOKENS
from surecall.base.records import Reading, Receipt, ToolCall, Usage
from surecall.text import decode_plain, encode_text

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
    """The part of them that was not."""


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


FINISH_RULE: Final = "set_finish_reason"
TYPE_RULE: Final = "add_call_type"

Tokens = Annotated[int, Meta(ge=0, le=MAX_REPORTED_TOKENS)]
"""Other counts are looked at closely, as whatever else is odd."""


class Clean(NamedTuple):
    """What is worth knowing of a clean reply."""

    model: str | None
    usage: Usage | None
    calls: int
    echoes: bool
    """Whether it may hold something that a client has to send back, such as reasoning."""


class Checks(Protocol):
    """What the calls and the text of a reply have to meet to go on as they are."""

    calls: int
    """How many calls were taken."""
    is_legacy: bool
    """Whether the client looks for a call in an older field."""
    is_named: bool
    """Whether one tool was demanded by its name."""

    def takes_call(self, call_id: str, name: str, arguments: str | bytes) -> bool:
        """Tell whether a call can be used as it is."""
        ...

    def takes_unnamed(self, name: str, arguments: str | bytes) -> bool:
        """Tell the same of a call in a format that has no ids."""
        ...

    def has_own_id(self, call_id: str, name: str) -> bool:
        """Tell whether a call has an id that calls of other conversations do not have."""
        ...

    def takes_words(self, text: str | None) -> bool:
        """Tell whether text beside calls surely does not begin with reasoning in tags."""
        ...

    def takes_text(self, text: str) -> bool:
        """Tell whether text, which came without calls, says something and is surely no call."""
        ...


def found_clean(
    body: bytes, model: str | None, usage: Usage | None, checks: Checks, *, echoes: bool = False
) -> Clean | None:
    """Return what is known of a clean reply; its bytes have to be text."""
    if not body.isascii():
        body.decode()  # parts that were passed over may not be text
    return Clean(model, usage, checks.calls, echoes)


class Patched(Struct, frozen=True):
    """A document for the client, and what else had to be changed in it."""

    document: dict[str, Any]
    receipts: tuple[Receipt, ...] = ()


class Plan(NamedTuple):
    """What the calls and the text of a document become."""

    calls: Sequence[ToolCall | None]
    """In the place of each call: what a client gets, if anything."""
    reading: Reading
    note: str
    is_other: Callable[[Any, Mapping[str, Any]], bool]
    """Tells whether a call, by its name and its other fields, is one of a tool that is not a
    function; such calls stay as they are."""
    is_legacy: bool = False
    """Whether the client looks for a call in an older field."""

    @property
    def own(self) -> list[ToolCall]:
        """The calls that a client gets."""
        return [call for call in self.calls if call is not None]

    @property
    def text(self) -> str:
        """The text that was read, and the note behind it."""
        return join_note(self.reading.content, self.note)


def join_note(text: str, note: str) -> str:
    """Return text with the lines about calls that are not delivered behind it."""
    return f"{text.rstrip()}\n\n{note}" if note and text.strip() else note or text


def is_from_text(reading: Reading) -> bool:
    """Tell whether the calls were written as text."""
    return bool(reading.calls) and reading.calls[0].format not in ("tool_calls", "function_call")


def arguments_text(call: ToolCall) -> str:
    """Return the arguments as text: the model's own where these are what will be used."""
    if isinstance(call.raw, str) and decode_plain(call.raw) == call.arguments:
        return call.raw
    return encode_text(call.arguments)


def note_finish(before: Any, after: str, place: str, *, has_calls: bool) -> tuple[Receipt, ...]:
    """Return the receipt for a finish reason that had to change, if it had to."""
    if before == after:
        return ()
    why = f"the reply has {'calls' if has_calls else 'no calls'}, and clients look for them by this"
    return (Receipt(FINISH_RULE, place, before, after, why=why),)


def note_type(number: int) -> Receipt:
    """Return the receipt for a call that came without its type."""
    why = "some clients take no call without it"
    return Receipt(TYPE_RULE, f"/tool_calls/{number}/type", None, "function", why=why)


def is_own(item: dict[str, Any], kind: str, plan: Plan) -> bool:
    """Tell whether an item is the call of a function."""
    return item.get("type") == kind and not plan.is_other(item.get("name"), item)


IsText = Callable[[dict[str, Any]], bool]


def list_found(parts: Any, is_found: IsText, is_call: IsText) -> list[dict[str, Any]]:
    """Return the parts up to the last that the provider's own tools left, without open calls."""
    fields = [as_fields(part) for part in as_list(parts)]
    end = max((place for place, part in enumerate(fields, 1) if is_found(part)), default=0)
    return [part for part in fields[:end] if not is_call(part)]


def texts_of(parts: list[Any], is_text: IsText) -> list[str]:
    """Return the texts among some parts."""
    return [str(part.get("text") or "") for part in map(as_fields, parts) if is_text(part)]


def divide(texts: list[str], left: str) -> Iterator[str]:
    """Yield what is left of each text: those that hold none of the reasoning stay as they are."""
    divided: list[str] = []
    for text in reversed(texts[1:]):
        stays = left.endswith(text)
        divided.append(text if stays else "")
        left = left.removesuffix(text) if stays else left
    yield left
    yield from reversed(divided)


def rewrite_texts(parts: list[Any], is_text: IsText, left: Iterator[str]) -> list[Any]:
    """Return the parts with what is left of their texts; a part without any is left out."""
    written: list[Any] = []
    for part in parts:
        fields = as_fields(part)
        if not is_text(fields):
            written.append(part)
        elif text := next(left, ""):
            written.append({**fields, "text": text})
    return written
