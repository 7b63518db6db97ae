"""An argument that is to be left out."""

from collections.abc import Iterable
from typing import ClassVar

from surecall.evals.cases import Ideal
from surecall.evals.records import Reason

from .base import Scenario, reason
from .conversation import Conversation
from .evidence import Evidence
from .flow import read_patch_answer
from .reasons import ReasonCode
from .texts import ANSWER, INTRO, NO_COMMIT, ON_ERROR, ONE_BY_ONE, PATCH, READ_FIRST, instructions

__all__ = ["MissingWorkspaceId"]


class MissingWorkspaceId(Scenario):
    """The plain course of events, without naming the workspace."""

    name: ClassVar[str] = "missing_workspace_id"
    asks: ClassVar[str] = "As `happy_path`, but without `workspace_id` in any call."
    strict: ClassVar[str] = "No call carried `workspace_id`."
    system: ClassVar[str] = instructions(
        INTRO,
        READ_FIRST,
        PATCH,
        "Leave the argument workspace_id out of every call: the tools know which workspace is "
        "meant. The id in the user's message is not for you; above all, do not write it into "
        "/draft/foo.",
        ONE_BY_ONE,
        ON_ERROR,
        NO_COMMIT,
        ANSWER,
        "Arguments of state_get: {}\n"
        'Arguments of state_patch: {"request_id": "r1", '
        '"ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}',
    )

    def next_step(self, seen: Conversation) -> Ideal:
        """Read and patch without the id."""
        return read_patch_answer(seen, with_id=False)

    def check_strict(self, seen: Evidence) -> Iterable[Reason]:
        """Look for the id in every call."""
        if any("workspace_id" in made.arguments for made in seen.calls):
            yield reason(ReasonCode.ID_NOT_OMITTED)
