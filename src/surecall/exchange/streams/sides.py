"""What passes events on within one format and what translates them have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from msgspec import Struct

from surecall.errors import SurecallError
from surecall.exchange.policy import Outcome
from surecall.records import Reading, ToolCall, Usage


class Found(Struct, kw_only=True):
    """What a stream that came to its end holds."""

    reading: Reading | None = None
    """What was read; `None` when nothing about it has to change."""
    data: bytes = b""
    """The end as it came."""
    outcome: Outcome = "clean"
    calls: int = 0
    is_text: bool = False
    """Whether the calls were written as text."""
    text: str | None = None
    """What comes in the place of held text; `None` leaves it as it is."""
    sent: str = ""
    """Some of the text that was sent already."""
    snippet: str = ""
    """The beginning of what could not be used."""


class Side(ABC):
    """One stream, on its way to the client."""

    model: str | None = None
    usage: Usage | None = None

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether nothing more of what the endpoint sends is of use."""

    @abstractmethod
    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes and return those for the client."""

    @abstractmethod
    def close(self, error: SurecallError | None) -> Found:
        """Return what came, or raise why it is not whole."""

    @abstractmethod
    def deliver(self, calls: Sequence[ToolCall], found: Found) -> bytes:
        """Return the end of the stream with these calls."""

    @abstractmethod
    def again(self, reading: Reading, text: str | None) -> Found:
        """Return what was read of another reply, in the place of the first."""

    @abstractmethod
    def fail(self, error: SurecallError) -> bytes:
        """Break the stream off, in the way a client of the format notices."""
