"""The suite `state`: scenarios on a workspace, in the order of running, and their presets."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.evals.cases import Case, number_version
from surecall.evals.records import drop_defaults
from surecall.models.profiles.catalog import matches_glob, select

from .plain import DuplicateIds, HappyPath, HappyPathParallel, MultiStepPlan, SingleCall
from .recovery import (
    LongArgumentsGuard,
    MissingWorkspaceId,
    PartialSuccessFailure,
    ToolOutputTruncation,
    TruncatedArguments,
    TypeErrorRecovery,
    UnknownToolRecovery,
)
from .restraint import (
    AmbiguousRequest,
    ChatOnly,
    EmptyFinal,
    HiddenToolProbe,
    NoCallNeeded,
    PromptInjectionInResult,
    TextCallLeak,
)
from .scenario import Scenario

__all__ = [
    "DEFAULT_PRESET",
    "PRESETS",
    "SCENARIOS",
    "Scenario",
    "StateSuite",
    "find_scenario",
    "select_scenarios",
]

SCENARIOS: Final[tuple[Scenario, ...]] = (
    SingleCall(),
    HappyPath(),
    PartialSuccessFailure(),
    MissingWorkspaceId(),
    TypeErrorRecovery(),
    HappyPathParallel(),
    LongArgumentsGuard(),
    ToolOutputTruncation(),
    TruncatedArguments(),
    TextCallLeak(),
    EmptyFinal(),
    UnknownToolRecovery(),
    HiddenToolProbe(),
    DuplicateIds(),
    MultiStepPlan(),
    PromptInjectionInResult(),
    NoCallNeeded(),
    AmbiguousRequest(),
    ChatOnly(),
)
"""Every scenario, in order."""

DEFAULT_PRESET: Final = "default"
"""The scenarios that run when none are named."""

_DEFAULT: Final = (
    "happy_path",
    "missing_workspace_id",
    "type_error_recovery",
    "long_arguments_guard",
    "chat_only",
)
_ALL: Final = tuple(scenario.name for scenario in SCENARIOS)

PRESETS: Final[dict[str, tuple[str, ...]]] = {
    DEFAULT_PRESET: _DEFAULT,
    "smoke": _DEFAULT,
    "typical": _DEFAULT,
    "simple": ("happy_path", "chat_only"),
    "extreme": (
        "happy_path",
        "partial_success_failure",
        "missing_workspace_id",
        "type_error_recovery",
        "long_arguments_guard",
        "tool_output_truncation",
        "chat_only",
    ),
    "hard": (
        "partial_success_failure",
        "type_error_recovery",
        "long_arguments_guard",
        "tool_output_truncation",
        "truncated_arguments",
        "unknown_tool_recovery",
        "hidden_tool_probe",
        "duplicate_ids",
        "multi_step_plan",
        "prompt_injection_in_result",
        "ambiguous_request",
    ),
    "all": _ALL,
    "full": _ALL,
}
"""Names for several scenarios; `*` is all of them too."""

_BY_NAME: Final[dict[str, Scenario]] = {scenario.name: scenario for scenario in SCENARIOS}


class _Choice(Struct, frozen=True):
    id: str
    tags: tuple[str, ...]


_CHOICES: Final = tuple(
    _Choice(name, tuple(preset for preset, members in PRESETS.items() if name in members))
    for name in _ALL
)


def find_scenario(name: str) -> Scenario:
    """Return the scenario with this name.

    Raises:
        ConfigError: `UNKNOWN_SCENARIO`, with the closest names.
    """
    if name not in _BY_NAME:
        raise _refuse_unknown(name, _BY_NAME)
    return _BY_NAME[name]


def select_scenarios(expression: str = "") -> tuple[str, ...]:
    """Return the scenarios that an expression such as `typical,multi*,!chat_only` names.

    Names and presets are separated by commas, `*` stands for any characters and `!` excludes;
    nothing at all means the default preset. The order is always that of the catalog.

    Raises:
        ConfigError: `UNKNOWN_SCENARIO` for any name or pattern that fits nothing.
    """
    tokens = [token.strip().lower() for token in expression.split(",")]
    tokens = [token.removeprefix("!").strip() for token in tokens if token]
    known = {*_BY_NAME, *PRESETS}
    for token in tokens:
        if not any(matches_glob(token, name) for name in known):
            raise _refuse_unknown(token, known)
    chosen = select(_CHOICES, expression if tokens else DEFAULT_PRESET)
    return tuple(choice.id for choice in chosen)


def _refuse_unknown(name: str, known: Iterable[str]) -> ConfigError:
    return ConfigError(
        Code.UNKNOWN_SCENARIO,
        f"there is no scenario or preset {name!r}.",
        hint=did_you_mean(name, known),
    )


_REVISION: Final = 7
"""To be raised when verdicts change."""


class StateSuite:
    """The scenarios on a workspace, each with one case."""

    name: Final = "state"

    @cached_property
    def version(self) -> str:
        """A number, and a hash over every text, tool and option that a model is given."""
        surface = [_surface(scenario) for scenario in SCENARIOS]
        return number_version(_REVISION, surface)

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
        "messages": drop_defaults(prepared.messages),
        "tools": drop_defaults(prepared.tools.specs()),
        "options": {**prepared.defaults, **prepared.options},
    }
