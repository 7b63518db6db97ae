"""How much work something is, by a measure that no other program changes."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["count_calls"]


def count_calls(work: Callable[[], Any]) -> int:
    """Return how many calls of functions begin and end while something is done."""
    found = 0

    def count(_frame: FrameType, _event: str, _of: Any) -> None:
        nonlocal found
        found += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found
