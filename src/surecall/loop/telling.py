"""Telling listeners what happens: every event gets its run, its turn and its time."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from surecall.records import Event
from surecall.redaction import open_log

__all__ = ["Listener", "Teller", "combine_listeners"]

Listener = Callable[[Event], object]

_log = open_log("surecall.loop")


class Teller:
    """Tells one listener about one run; costs nothing when nobody listens."""

    def __init__(self, listener: Listener | None, run_id: str) -> None:
        self.run_id = run_id
        self.turn = 0
        self._listener = listener
        self._started = perf_counter()

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return self._listener is not None

    def now_ms(self) -> float:
        """Return the milliseconds since the run began."""
        return (perf_counter() - self._started) * 1000

    def tell(self, kind: type[Event], **fields: Any) -> None:
        """Tell about an event of this kind."""
        if self._listener is not None:
            event = kind(run_id=self.run_id, turn=self.turn, at_ms=self.now_ms(), **fields)
            self._pass_on(event)

    def tell_event(self, event: Event) -> None:
        """Tell about an event that was decided without knowing run, turn and time."""
        if self._listener is not None:
            self._pass_on(replace(event, run_id=self.run_id, turn=self.turn, at_ms=self.now_ms()))

    def _pass_on(self, event: Event) -> None:
        assert self._listener is not None
        try:
            self._listener(event)
        except Exception:
            _log.debug("a listener failed on %s", type(event).__name__, exc_info=True)


def combine_listeners(first: Listener | None, second: Listener | None) -> Listener | None:
    """Return a listener that tells both; the second is told even if the first fails."""
    if first is None or second is None:
        return first or second

    def tell(event: Event) -> None:
        try:
            first(event)
        finally:
            second(event)

    return tell
