"""What passes events on within one format and what translates them have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from msgspec import Struct

from surecall.base.errors import SurecallError
from surecall.base.records import Reading, Receipt, Reply, ToolCall, Usage
from surecall.exchange.policy import Outcome
from surecall.wire import Stated


class Found(Struct, kw_only=True):
    """What a stream that came to its end holds."""

    reading: Reading | None = None
    """What was read; `None` when nothing about it has to change."""
    reply: Reply | None = None
    data: bytes = b""
    """The end as it came."""
    is_usual: bool = False
    """Whether clients understand the calls in it, if nothing about them has to change."""
    outcome: Outcome = "clean"
    calls: int = 0
    """How many calls are delivered as they came."""
    text: str | None = None
    """What comes in the place of held text; `None` leaves it as it is."""


class ClientStream(ABC):
    """One stream, on its way to the client."""

    is_tagged = False
    """Whether reasoning in tags began that only another side can pass on as reasoning."""

    has_begun: bool = False
    """Whether the client has the beginning of a call, which cannot be taken back."""

    pulses: int = 0
    """How many events without content were sent among those of the endpoint."""

    @property
    def stated(self) -> Stated | None:
        """Why there is no answer, in the words of the endpoint and in the client's own format."""
        return None

    @property
    def reply_id(self) -> str | None:
        """The id of the reply, where its end has to name it once more."""
        return None

    @property
    @abstractmethod
    def receipts(self) -> tuple[Receipt, ...]:
        """What was changed in events that were passed on."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether nothing more of what the endpoint sends is of use."""

    @property
    @abstractmethod
    def model(self) -> str | None:
        """The model that answered."""

    @property
    @abstractmethod
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""

    @property
    @abstractmethod
    def has_sent_text(self) -> bool:
        """Whether the client has any of the text; blanks do not count."""

    @abstractmethod
    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes and return those for the client."""

    @abstractmethod
    def pulse(self) -> bytes:
        """Return an event that says nothing if the client waits for what is held back."""

    def shift(self, data: bytes) -> bytes:
        """Return events of the endpoint numbered behind those that say nothing."""
        return data

    @abstractmethod
    def close(self, error: SurecallError | None) -> Found:
        """Return what came, or raise why it is not whole."""

    @abstractmethod
    def cut_short(self) -> bool:
        """End a reply that stops in a call as if it had come to its end; tell whether it does."""

    @abstractmethod
    def deliver(
        self,
        calls: Sequence[ToolCall],
        text: str | None,
        *,
        note: str = "",
        is_again: bool = False,
    ) -> bytes:
        """Return the end of the stream with these calls; without any it ends with a stop.

        Args:
            calls: The calls.
            text: What comes in the place of held text; `None` leaves it as it is.
            note: Lines about calls that are not delivered, which come behind all text.
            is_again: Whether all of it is from another reply, which came to its end.
        """

    def can_deliver(self, calls: Sequence[ToolCall]) -> bool:
        """Tell whether the end of the stream can have these calls."""
        return True

    @abstractmethod
    def leave(self) -> bytes:
        """Return the end of the stream as it came, whatever was read in it."""

    @abstractmethod
    def read_echoes(self) -> Reply | None:
        """Return the reply, which may have something that a client has to send back."""

    @abstractmethod
    def fail(self, error: SurecallError) -> bytes:
        """Break the stream off, in the way a client of the format notices."""
