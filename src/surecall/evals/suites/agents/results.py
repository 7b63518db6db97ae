"""Whether two queries gave the same answer."""

import math
from collections.abc import Sequence
from typing import Any, Final

__all__ = ["same_rows"]

_MAX_OFF: Final = 0.005
"""Numbers are the same when they are at two decimals: half a cent."""
_MAX_OFF_SHARE: Final = 1e-6

Row = Sequence[Any]


def same_rows(wanted: Sequence[Row], found: Sequence[Row], *, is_ordered: bool) -> bool:
    """Tell whether rows are the same, each as often; names of columns do not count.

    Args:
        wanted: The rows of the known query.
        found: The rows of the query that is judged.
        is_ordered: Whether the order of the rows was asked for.
    """
    if len(wanted) != len(found):
        return False
    if is_ordered:
        return all(_same(mine, theirs) for mine, theirs in zip(wanted, found, strict=True))
    left = list(found)
    for row in wanted:
        place = next((place for place, other in enumerate(left) if _same(row, other)), None)
        if place is None:
            return False
        del left[place]
    return True


def _same(wanted: Row, found: Row) -> bool:
    return len(wanted) == len(found) and all(
        _same_value(mine, theirs) for mine, theirs in zip(wanted, found, strict=True)
    )


def _same_value(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, float) or isinstance(found, float):
        if not isinstance(wanted, int | float) or not isinstance(found, int | float):
            return False
        return math.isclose(wanted, found, rel_tol=_MAX_OFF_SHARE, abs_tol=_MAX_OFF)
    return type(wanted) is type(found) and wanted == found
