"""The suite `agents`: from a question to the query that answers it, stage by stage."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import msgspec

from surecall.errors import Code, ConfigError, did_you_mean
from surecall.jsontext import canonical_hash

from .cases import PIPELINE, AgentCase
from .questions import load_questions
from .stages import STAGES, instruct_pipeline
from .workspaces import WORKSPACE_IDS, find_workspace

__all__ = ["AgentsSuite"]

_REVISION: Final = 1
"""To be raised when verdicts change in a way that the texts and data do not show."""
_HASH_CHARS: Final = 12
_SCENARIOS: Final = (*(stage.name for stage in STAGES), PIPELINE)


class AgentsSuite:
    """Forty questions at each of four stages, and through all of them.

    Args:
        every: Take only each n-th question, beginning with the first.
    """

    name = "agents"

    def __init__(self, *, every: int = 1) -> None:
        self._every = every

    @cached_property
    def version(self) -> str:
        """A number, a hash over every text, table, row and question, and the sampling."""
        surface = (
            load_questions(),
            STAGES,
            instruct_pipeline(),
            [find_workspace(name) for name in WORKSPACE_IDS],
        )
        step = f"/{self._every}" if self._every > 1 else ""
        return f"{_REVISION}-{canonical_hash(msgspec.to_builtins(surface))[:_HASH_CHARS]}{step}"

    def scenarios(self) -> Sequence[str]:
        """Name the stages, and the pipeline."""
        return _SCENARIOS

    def cases(self, scenario: str) -> Sequence[AgentCase]:
        """Return the questions, to be tried at this stage."""
        if scenario not in _SCENARIOS:
            raise ConfigError(
                Code.NOTHING_SELECTED,
                f"the suite agents has no scenario {scenario!r}.",
                hint=did_you_mean(scenario, _SCENARIOS),
            )
        questions = load_questions()[:: self._every]
        return tuple(AgentCase(scenario=scenario, question=question) for question in questions)
