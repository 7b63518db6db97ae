"""What the events of every wire format are asked: what they bring, and how they are written."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from surecall.base.errors import (
    Code,
    JSONTextError,
    ProviderError,
    ProviderReplyError,
    SurecallError,
)
from surecall.base.json_values import as_fields, text_or_none
from surecall.base.records import RawCall, ToolCall, Usage
from surecall.base.redaction import excerpt
from surecall.exchange.request import NO_TOOLS
from surecall.exchange.thoughts import Split
from surecall.text import encode
from surecall.wire import WireProtocol
from surecall.wire.errors import parse_error_object
from surecall.wire.replies import decode_finite

PASS: Final = 0
"""Something else, which is passed on."""
TEXT: Final = 1
"""A piece of the text, which is in `piece`."""
THOUGHT: Final = 2
"""A piece of the reasoning."""
CALL: Final = 3
"""A piece of a call."""
END: Final = 4
"""What ends the reply: the finish, and what comes behind it."""
PING: Final = 5
"""A sign of life, which has no place among the other events."""
FRAME: Final = 6
"""The beginning of a reply that begins with text, of which nothing has come yet."""

NOTHING: Final = Raw()
_MAX_SNIPPET: Final = 200
_DONE: Final = b"[DONE]"
_NUMBERS: Final = ("index", "output_index", "content_index", "sequence_number")
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding an event of another form than expected raises."""


class EventParts(NamedTuple):
    """An event of text, parted into events of their own; each may be missing."""

    thought: bytes
    text: bytes
    rest: bytes
    """What the event brings besides text, such as a call or the finish."""


class Stated(NamedTuple):
    """Why there is no answer, in the words of the endpoint and in the client's own format."""

    error: ProviderError
    """What it stands for."""
    data: bytes
    """The data of the event that says so."""
    body: bytes | None = None
    """The same as the body of an answer that is an error; `None` if the event is a valid reply."""

    @property
    def status(self) -> int | None:
        """The status of such an answer, where the endpoint names one."""
        code = self.error.provider_code or ""
        is_status = len(code) == 3 and code.isascii() and code.isdigit()
        return int(code) if is_status and 400 <= int(code) < 600 else None


class Wire(ABC):
    """Reads the events of one stream as far as needed, and writes calls among them."""

    end_is = "a finish reason"
    """What a stream must have to be complete, in words."""
    parts_text = False
    """Whether `part` can part an event: parts of the reply have no numbers."""
    error_name = ""
    """What the event of an error is called."""
    blank_is_empty = False
    """Whether a call without arguments is written without any piece of them."""

    def __init__(self, protocol: WireProtocol, headers: Mapping[str, str]) -> None:
        self.protocol = protocol
        self._headers = headers
        self.events: int = 0
        self.piece = ""
        """The text of the last event."""
        self.finish: str | None = None
        """Why the model stopped, in the words of the format."""
        self.is_finished = False
        """Whether the reply came to its end."""
        self.done = False
        """Whether nothing more will come."""
        self.is_odd = False
        """Whether something came that only the whole reader of the format understands."""
        self.has_calls = False
        self.untyped: list[int] = []
        """The numbers of calls that came without their type, where the format has one."""
        self.begins_with_text = False
        """Whether text is the first part of the reply, where the format numbers these."""
        self.model: str | None = None
        self.stated: Stated | None = None
        """Why there is no answer, where the endpoint says so in a form that clients know."""
        self.tools = NO_TOOLS
        """The tools of the request; calls of those that are not functions stay as they are."""

    def take_text(self, event: bytes) -> str:
        """Take an event if it brings nothing but text, and return that.

        Args:
            event: One event with the blank line behind it; no line of it ends in another way.
        """
        return ""

    def take_texts(self, data: bytes) -> list[str]:
        """Take events at the beginning of these that bring nothing but text, all at once.

        Returns:
            Their texts; the events behind them, or all, are taken one by one.
        """
        return []

    def take_pieces(self, data: bytes) -> int:
        """Take events at the beginning of these that only go on with arguments, all at once.

        Returns:
            How many bytes they have; the events behind them, or all, are taken one by one.
        """
        return 0

    def take_piece(self, event: bytes) -> bool:
        """Take an event if it only goes on with arguments, and tell whether it was.

        What is taken like this has nothing either that a client would have to send back.

        Args:
            event: One event, of one line, with the blank line behind it.
        """
        return False

    def take_alike(self, event: bytes) -> bool:
        """Take an event if it differs from the last piece of arguments in these alone.

        Args:
            event: Any bytes; what is taken is one whole event.
        """
        return False

    @abstractmethod
    def take(self, data: bytes, name: bytes) -> int:
        """Take the data of the next event, and return what it brought.

        Raises:
            ProviderError: It is an error, or cannot be read.
        """

    def _take_unusual(self, data: bytes, name: bytes) -> int:
        """Take an event that is not in the usual form."""
        if data.startswith(_DONE) and data.strip() == _DONE:
            return self._take_done()
        if name == b"error":
            raise self._read_error(self._decode_whole(data, else_text=True))
        fields = self._decode_whole(data)
        if not isinstance(fields, dict):
            raise self._refuse(data, "it is not a JSON object.")
        return self._take_odd(as_fields(fields), data, name)

    @property
    def reply_id(self) -> str | None:
        """The id of the reply, where its end has to name it once more."""
        return None

    @property
    def has_ended(self) -> bool:
        """Whether the reply came to its end, now that nothing more will come."""
        return self.is_finished

    @property
    @abstractmethod
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""

    @abstractmethod
    def calls(self) -> list[RawCall] | None:
        """Return the calls if nothing about them is odd."""

    @abstractmethod
    def rewrite(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        note: str = "",
    ) -> bytes:
        """Return the held events with these calls in the place of their own.

        Without any call the reply ends with a stop, whatever the events say.

        Args:
            held: The data of the events that were held back.
            calls: The calls that the client gets.
            text: What comes in the place of the held text; `None` leaves it as it is.
            note: What comes behind all text.
        """

    def part(self, data: bytes, split: Split) -> EventParts:
        """Part an event whose text turned out to be reasoning, all of it or its beginning.

        Args:
            data: The data of the event.
            split: What takes the place of its text.
        """
        return EventParts(b"", b"", same_event(data))

    @abstractmethod
    def _take_odd(self, fields: dict[str, Any], data: bytes, name: bytes) -> int:
        """Take an event of another form."""

    def _take_done(self) -> int:
        """Take `[DONE]`, which says nothing in most formats."""
        return PASS

    def _decode_whole(self, data: bytes, *, else_text: bool = False) -> Any:
        try:
            return decode_finite(data)
        except JSONTextError as error:
            if else_text:
                return data.decode("utf-8", "replace")
            raise self._refuse(data, error.message) from None

    def _refuse(self, data: bytes, why: str) -> ProviderReplyError:
        """Return the error for an event that cannot be read."""
        message = f"Event {self.events} of the stream cannot be read: {why}"
        snippet = excerpt(data[: 4 * _MAX_SNIPPET], _MAX_SNIPPET)
        return ProviderReplyError(Code.UPSTREAM_BAD_EVENT, message, body=snippet)

    def _read_error(self, value: Any) -> ProviderError:
        """Return what an error event stands for; it goes on as it is if clients know its form."""
        error = self._parse_error(value)
        fields = as_fields(value)
        if text_or_none(as_fields(fields.get("error")).get("message")):
            data = encode({key: item for key, item in fields.items() if key != "choices"})
            self.stated = Stated(error, data, data)
        return error

    def _parse_error(self, value: Any) -> ProviderError:
        return parse_error_object(value, 200, self._headers, fallback=Code.STREAM_ERROR)

    @abstractmethod
    def pulse(self, held: bytes, passed: Sequence[bytes]) -> bytes:
        """Return an event that says nothing, and that the SDKs of the format hand on.

        Args:
            held: The data of the first event that is held back, which it comes before.
            passed: The events besides text that came before, some of which may be held as well.
        """

    @abstractmethod
    def stop(self, held: bytes, passed: Sequence[bytes]) -> bytes:
        """Return the events that end a reply whose own end did not come.

        Args:
            held: The data of the first event that is held back.
            passed: The events besides text that came before, some of which may be held as well.
        """

    def shift(self, data: bytes, count: int) -> bytes:
        """Return events with their numbers raised, where the format numbers them."""
        return data

    @property
    def goes_on(self) -> bool:
        """Whether the reply goes on without the stream, so that nothing is cut when that ends."""
        return False

    def fail(self, error: SurecallError, held: bytes | None) -> bytes:
        """Return the events that break the stream off.

        Args:
            error: Why.
            held: The data of the first event that was held back, in whose place they come.
        """
        if self.stated is not None and error is self.stated.error:
            return same_event(self.stated.data, self.error_name)
        return self.protocol.open_writer(model=self.model or "").fail(error)

    def truncated(self) -> ProviderReplyError:
        """Return the error of a stream that ended before its reply."""
        message = f"The stream ended without {self.end_is} after {self.events} events."
        return ProviderReplyError(Code.STREAM_TRUNCATED, message, retryable=False)


def fields_of(data: bytes) -> dict[str, Any]:
    """Return the object that an event carries, without numbers of parts that are none."""
    fields = as_fields(decode_finite(data))
    if any(isinstance(fields.get(name), list | dict) for name in _NUMBERS):
        odd = (list, dict)
        fields = {
            key: item
            for key, item in fields.items()
            if key not in _NUMBERS or not isinstance(item, odd)
        }
    return fields


def fields_or_none(data: bytes) -> dict[str, Any]:
    """Return the object that an event carries, and nothing where it carries none."""
    try:
        return fields_of(data)
    except JSONTextError:
        return {}


def is_there(raw: Raw) -> bool:
    """Tell whether a part was written, and is not null."""
    return raw is not NOTHING and bytes(raw) not in (b"", b"null")


def value_of(raw: Raw) -> Any:
    """Return the value of a part that was left as it was written, where it can be read."""
    written = bytes(raw)
    try:
        return decode_finite(written) if written else None
    except JSONTextError:
        return None


def event_of(value: Any, name: str = "") -> bytes:
    """Return one event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encode(value) + b"\n\n"


def same_event(data: bytes, name: str = "") -> bytes:
    """Return an event with the data it had."""
    lines = data.split(b"\n")
    head = f"event: {name}\n".encode() if name else b""
    return head + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"
