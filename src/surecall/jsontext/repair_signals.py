"""What stops the repairer: the text ended too soon, says more than one thing, or costs too much."""

from typing import Final, Literal, TypeAlias

from surecall.errors import Code

__all__ = ["CutKind", "CutShortError", "RefusedError", "Steps"]

_FREE_STEPS: Final = 10_000
_CHARACTERS_PER_STEP: Final = 8

CutKind: TypeAlias = Literal["entry", "after_entry", "member", "string", "word", "comment"]
"""What was being read when the text ended."""


class CutShortError(Exception):
    """The text ended inside a value."""

    def __init__(self, kind: CutKind, start: int, what: str, *, prefix: str = "") -> None:
        super().__init__(what)
        self.kind: CutKind = kind
        self.start = start
        """Where the piece begins that has no end."""
        self.what = what
        self.prefix_characters = len(prefix)
        """How much stands before the quote of a string, as in `r"\\d"`."""
        self.is_raw = prefix != "" and "r" in prefix.lower()


class RefusedError(Exception):
    """The text is not a value, or could be more than one."""

    def __init__(self, reason: str, position: int, code: Code = Code.INVALID_JSON) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.code = code


class Steps:
    """Counts the places in a text that are looked at one by one, and gives up after too many.

    One step takes up to about three microseconds. All that is read of one text shares one count.

    Args:
        text: The text; a longer one may take more steps.
        limit: How many it may take instead, at most.
    """

    __slots__ = ("left", "limit")

    def __init__(self, text: str, limit: int | None = None) -> None:
        allowed = _FREE_STEPS + len(text) // _CHARACTERS_PER_STEP
        self.left = self.limit = allowed if limit is None else min(limit, allowed)

    @property
    def taken(self) -> int:
        """How many steps were taken."""
        return self.limit - self.left

    def take(self, count: int, position: int) -> None:
        """Count steps.

        Raises:
            RefusedError: there were too many.
        """
        self.left -= count
        if self.left < 0:
            reason = "the text needs more repairs than the limit allows"
            raise RefusedError(reason, position, Code.REPAIR_BUDGET_EXCEEDED)
