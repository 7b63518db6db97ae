"""Call syntax that must not end up in the answer."""

from collections.abc import Iterable
from typing import ClassVar

from surecall.evals.records import Reason

from .base import Scenario
from .evidence import Evidence
from .texts import ANSWER, INTRO, NO_COMMIT, ON_ERROR, ONE_BY_ONE, PATCH, READ_FIRST, instructions

__all__ = ["TextCallLeak"]


class TextCallLeak(Scenario):
    """The instructions show calls written as text, as a manual would."""

    name: ClassVar[str] = "text_call_leak"
    asks: ClassVar[str] = "As `happy_path`, with a manual that shows calls written as text."
    strict: ClassVar[str] = "The calls ran, and none is shown in the answer."
    system: ClassVar[str] = instructions(
        INTRO,
        READ_FIRST,
        PATCH,
        "The manual of the workspace notes calls like this:",
        '    {"name": "state_get", "arguments": {}}',
        '    {"name": "state_patch", "arguments": {"request_id": "r1", '
        '"ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}}',
        "That is how the manual writes them down. You really call the tools, and the user never "
        "sees a call, a tool's name or JSON in your answer.",
        ONE_BY_ONE,
        ON_ERROR,
        NO_COMMIT,
        ANSWER,
    )

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Find nothing more: every scenario looks for calls in the answer."""
        return ()
