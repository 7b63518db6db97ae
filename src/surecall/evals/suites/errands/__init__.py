"""The suite `errands`: tasks of several dependent steps, each on tools of its own."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.evals.cases import Case
from surecall.text import canonical_hash

from .errand import Errand, Step
from .tasks import ERRANDS

__all__ = ["ERRANDS", "Errand", "ErrandsSuite", "Step"]

_REVISION: Final = 5
"""To be raised when verdicts change."""
_HASH_CHARS: Final = 12
_BY_NAME: Final = {errand.scenario: errand for errand in ERRANDS}


class ErrandsSuite:
    """The tasks of several dependent steps, each with one case."""

    name: Final = "errands"

    @cached_property
    def version(self) -> str:
        """A number, and a hash over every text and tool that a model is given."""
        surface = [
            [errand.scenario, prepared.system, prepared.messages, prepared.tools.specs()]
            for errand in ERRANDS
            for prepared in [errand.prepare(0)]
        ]
        return f"{_REVISION}-{canonical_hash(surface)[:_HASH_CHARS]}"

    def scenarios(self) -> Sequence[str]:
        """Name the tasks, in order."""
        return tuple(_BY_NAME)

    def cases(self, scenario: str) -> Sequence[Case]:
        """Return the one case of a task."""
        if scenario not in _BY_NAME:
            raise ConfigError(
                Code.UNKNOWN_SCENARIO,
                f"there is no errand {scenario!r}.",
                hint=did_you_mean(scenario, _BY_NAME),
            )
        return (_BY_NAME[scenario],)
