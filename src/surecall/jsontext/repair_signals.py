"""What stops the repairer: the text ended too soon, or says more than one thing."""

from typing import Final, Literal, TypeAlias

from surecall.errors import Code

__all__ = ["MAX_STEPS", "CutKind", "CutShortError", "RefusedError"]

MAX_STEPS: Final = 300_000
"""How many places in a text are looked at one by one before it is given up."""

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
