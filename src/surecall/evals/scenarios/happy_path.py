"""Read, patch, answer: the plain course of events."""

from collections.abc import Iterable
from typing import ClassVar

from surecall.evals.records import Reason

from .base import Scenario
from .evidence import Evidence
from .texts import ANSWER, ARGUMENTS, INTRO, NO_COMMIT, ON_ERROR, ONE_BY_ONE, PATCH, READ_FIRST
from .texts import instructions as join

__all__ = ["HappyPath"]


class HappyPath(Scenario):
    """Read the workspace, set one value, say so."""

    name: ClassVar[str] = "happy_path"
    asks: ClassVar[str] = "Read the workspace, set `/draft/foo` to `bar`, answer `Done.`"
    strict: ClassVar[str] = "Nothing beside what holds for all."
    system: ClassVar[str] = join(
        INTRO, READ_FIRST, PATCH, ONE_BY_ONE, ON_ERROR, NO_COMMIT, ANSWER, ARGUMENTS
    )

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Find nothing more."""
        return ()
