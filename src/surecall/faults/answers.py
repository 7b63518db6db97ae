"""What goes over the wire: an answer as data, down to how its connection behaves."""

from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from surecall.jsontext import encode, encode_text, render_event

__all__ = [
    "Answer",
    "Ending",
    "Flood",
    "Framing",
    "Pause",
    "Piece",
    "event_stream",
    "json_answer",
    "with_body",
]

Ending = Literal["keep", "close", "reset", "stall"]
"""`keep` ends as the framing says, `close` ends the connection there (FIN), `reset` breaks it
(RST), `stall` sends nothing more and waits."""

Framing = Literal["length", "chunked", "close", "both"]
"""How the end of the body is told; `both` names a length and chunks, which is ambiguous."""

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"


class Pause(Struct, frozen=True):
    """Nothing is sent for a while."""

    seconds: float


class Flood(Struct, frozen=True):
    """The same bytes again and again: `times` times, or until the client leaves."""

    data: bytes
    times: int | None = None
    pause_s: float = 0.0


Piece = bytes | Pause | Flood


class Answer(Struct, frozen=True, kw_only=True):
    """One answer: its head, the pieces of its body, and how it ends."""

    status: int = 200
    headers: dict[str, str] = {}
    pieces: tuple[Piece, ...] = ()
    framing: Framing = "length"
    declared_bytes: int | None = None
    """The length the head claims, when it is not the true one."""
    before: Ending = "keep"
    """What happens in place of the head; anything but `keep` leaves the client without one."""
    ending: Ending = "keep"

    @property
    def body(self) -> bytes:
        """The bytes of the body that come to an end by themselves."""
        return b"".join(
            piece if isinstance(piece, bytes) else piece.data * (piece.times or 0)
            for piece in self.pieces
            if not isinstance(piece, Pause)
        )


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Return a whole answer with a JSON body."""
    return Answer(
        status=status,
        headers={"content-type": _JSON, **(headers or {})},
        pieces=(encode(value),),
    )


def event_stream(events: list[Any] | list[bytes]) -> Answer:
    """Return a streamed answer, one piece for each event; values are encoded."""
    pieces = [event if isinstance(event, bytes) else _rendered(event) for event in events]
    headers = {"content-type": _EVENTS, "cache-control": "no-cache"}
    return Answer(headers=headers, pieces=tuple(pieces), framing="chunked")


def with_body(answer: Answer, body: bytes, **headers: str) -> Answer:
    """Return the answer with another body; `_` in the name of a header stands for `-`."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return replace(answer, pieces=(body,), headers={**answer.headers, **given})


def _rendered(event: Any) -> bytes:
    return render_event(event if isinstance(event, str) else encode_text(event))
