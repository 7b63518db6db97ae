"""How long records are kept, and the removal of those whose time is over."""

import time
from typing import Final, Protocol

from msgspec import Struct

from .record import first_id_at

_DAY_S: Final = 86_400.0


class Removable(Protocol):
    """A store whose oldest records can be removed."""

    async def find_latest(self, skipped: int) -> str:
        """Return the latest id but so many, of the records that are this store's to remove."""
        ...

    async def remove_some(self, last: str) -> tuple[int, bool]:
        """Remove some records below an id; return how many, and whether there may be more."""
        ...


class Retention(Struct, frozen=True, kw_only=True):
    """How long and how many records are kept; None means without limit."""

    max_age_s: float | None = 30 * _DAY_S
    max_records: int | None = 1_000_000

    async def prune(self, store: Removable) -> int:
        """Remove what need not be kept any more, and return how many records that were."""
        last = ""
        if self.max_age_s is not None:
            last = first_id_at(time.time() - self.max_age_s)
        if self.max_records is not None:
            beyond = await store.find_latest(max(self.max_records, 0))
            last = max(last, f"{beyond}0" if beyond else "")
        removed, has_more = 0, bool(last)
        while has_more:
            count, has_more = await store.remove_some(last)
            removed += count
        return removed
