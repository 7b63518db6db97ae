"""What became of a JSON text that needed repair, or did not."""

from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from surecall.errors import Code
from surecall.records import CallState, ErrorDetail, Receipt

__all__ = ["MAX_ARGUMENT_STEPS", "CutPolicy", "NonFinitePolicy", "Repaired", "repeated_key"]

MAX_ARGUMENT_STEPS: Final = 10_000
"""How many places of the arguments of one call a repair may look at one by one: some 25 ms."""

CutPolicy: TypeAlias = Literal["refuse", "close"]
"""What becomes of a value that the end of the text cut: refused, or closed with loss."""

NonFinitePolicy: TypeAlias = Literal["refuse", "null", "text"]
"""What becomes of NaN and the infinities: an error, null, or their name as text."""


class Repaired(Struct, frozen=True):
    """What became of one JSON text."""

    value: Any = None
    """The value; None (also) when it was refused, see `state`."""
    state: CallState = "whole"
    """`whole`, `cut` (the text ends inside the value) or `unreadable`."""
    receipts: tuple[Receipt, ...] = ()
    errors: tuple[ErrorDetail, ...] = ()
    rest: tuple[Any, ...] = ()
    """Values beside the one that was taken, in the order of the text."""


def repeated_key(pointer: str) -> ErrorDetail:
    """Return the error for a key with two values."""
    shown = pointer if len(pointer) <= 80 else pointer[:80] + "…"
    message = f"{shown!r} is given more than once, with differing values."
    return ErrorDetail(Code.DUPLICATE_KEY, message, "Send each key once.", pointer)
