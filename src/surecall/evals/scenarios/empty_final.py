"""Work that is done and then not answered."""

from collections.abc import Iterable
from typing import ClassVar

from surecall.evals.records import Reason

from .base import Scenario
from .evidence import Evidence
from .texts import ANSWER, ARGUMENTS, INTRO, NO_COMMIT, ON_ERROR, PATCH, READ_FIRST, instructions

__all__ = ["EmptyFinal"]


class EmptyFinal(Scenario):
    """Silence is asked for while working, and a word at the end."""

    name: ClassVar[str] = "empty_final"
    asks: ClassVar[str] = "As `happy_path`, without a word beside the calls, but with an answer."
    strict: ClassVar[str] = "The answer is not empty."
    system: ClassVar[str] = instructions(
        INTRO,
        READ_FIRST,
        PATCH,
        "While you work you say nothing: each reply is one call without any text.",
        ON_ERROR,
        NO_COMMIT,
        "The user is waiting for word that it is done, so never end with an empty reply.",
        ANSWER,
        ARGUMENTS,
    )

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Find nothing more: every scenario looks for an answer."""
        return ()
