"""Group commit: all records that come within one turn of the event loop are written together."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import repeat

from surecall.base.errors import StoreError
from surecall.base.redaction import open_log
from surecall.gateway.log import explain

from .record import StoredRow

_log = open_log("surecall.gateway")

Waiting = tuple[StoredRow, "asyncio.Future[None] | None"]


class WaitingRows:
    """Rows that are not written yet, with whoever waits for them."""

    __slots__ = ("_begin", "_is_begun", "_rows")

    def __init__(self, begin: Callable[[], object]) -> None:
        self._begin = begin
        """Called once, in the next turn of the loop, when there is something to write."""
        self._rows: list[Waiting] = []
        self._is_begun = False

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: StoredRow, *, waits: bool = True) -> "asyncio.Future[None] | None":
        """Add a row, and return what is done when it is durable."""
        loop = asyncio.get_running_loop()
        future = loop.create_future() if waits else None
        self._rows.append((row, future))
        if not self._is_begun:
            self._is_begun = True
            loop.call_soon(self._begin)
        return future

    def take(self) -> list[Waiting]:
        """Return everything that is waiting."""
        taken, self._rows, self._is_begun = self._rows, [], False
        return taken


def finish(taken: Sequence[Waiting], errors: Sequence[StoreError | None] = ()) -> None:
    """Tell everybody how it went; one who was cancelled meanwhile is passed over.

    Args:
        taken: Rows, with whoever waits for them.
        errors: What kept each row out; empty when all of them are stored.
    """
    for (_, future), error in zip(taken, errors or repeat(None), strict=False):
        if future is None:
            if error is not None:
                _log.warning("A request was not recorded: %s", explain(error))
        elif not future.done():
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
