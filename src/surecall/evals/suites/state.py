"""The suite `state`: a workspace that is read, patched and guarded."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from surecall.evals.cases import Case
from surecall.evals.scenarios import SCENARIOS, Scenario, find_scenario, select_scenarios
from surecall.jsontext import canonical_hash

__all__ = ["StateSuite"]

_REVISION: Final = 1
"""To be raised when verdicts change in a way that the texts and tools do not show."""
_HASH_CHARS: Final = 12


class StateSuite:
    """The scenarios on a workspace, each with one case."""

    name: Final = "state"

    @cached_property
    def version(self) -> str:
        """A number, and a hash over every text, tool and option of the scenarios."""
        surface = [_surface(scenario) for scenario in SCENARIOS]
        return f"{_REVISION}-{canonical_hash(surface)[:_HASH_CHARS]}"

    def scenarios(self) -> Sequence[str]:
        """Name the scenarios, in order."""
        return tuple(scenario.name for scenario in SCENARIOS)

    def cases(self, scenario: str) -> Sequence[Case]:
        """Return the one case of a scenario."""
        return (find_scenario(scenario),)

    def select(self, expression: str = "") -> tuple[str, ...]:
        """Return the scenarios that an expression of names and presets chooses."""
        return select_scenarios(expression)


def _surface(scenario: Scenario) -> dict[str, Any]:
    prepared = scenario.prepare(0)
    return {
        "name": scenario.name,
        "system": prepared.system,
        "messages": prepared.messages,
        "tools": prepared.tools.specs(),
        "options": prepared.options,
        "verdicts": [scenario.loose, scenario.strict],
    }
