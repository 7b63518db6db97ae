"""Suites: families of cases that an experiment can try; each is loaded when it is asked for."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

from surecall.errors import Code, ConfigError, did_you_mean
from surecall.evals.cases import Suite

__all__ = ["BFCL", "CUSTOM", "SUITES", "load_suite", "locate_suite"]

CUSTOM: Final = "custom:"
"""The prefix of a suite that is a file of the user's own cases."""
BFCL: Final = "bfcl:"
"""The prefix of the leaderboard's suite when its data are in a wheel or folder."""

# The type checker does not take a `cached_property` for the property that `Suite` asks for.


def _load_state() -> Suite:
    from surecall.evals.scenarios import StateSuite

    return cast("Suite", StateSuite())


def _load_one_tool() -> Suite:
    from .single_turn import OneToolSuite

    return OneToolSuite()


def _load_agents() -> Suite:
    from .agents import AgentsSuite

    return cast("Suite", AgentsSuite())


def _load_bfcl(place: str | None = None) -> Suite:
    from .bfcl import BfclSuite

    return BfclSuite() if place is None else BfclSuite(place)


SUITES: Final[Mapping[str, Callable[[], Suite]]] = {
    "state": _load_state,
    "one_tool": _load_one_tool,
    "agents": _load_agents,
    "bfcl": _load_bfcl,
}
"""What loads each suite, in the order in which they are listed."""


def load_suite(name: str) -> Suite:
    """Return the suite of a name, or of a file as in `custom:cases.toml` or `bfcl:WHEEL`."""
    if name.startswith(CUSTOM):
        from .custom import load_custom

        return cast("Suite", load_custom(name.removeprefix(CUSTOM)))
    if name.startswith(BFCL):
        return _load_bfcl(name.removeprefix(BFCL))
    if name not in SUITES:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"there is no suite {name!r}.",
            hint=did_you_mean(name, (*SUITES, f"{BFCL}WHEEL", f"{CUSTOM}FILE")),
        )
    return SUITES[name]()


def locate_suite(name: str) -> str:
    """Return the name by which a suite is found from any folder: a file with its whole path."""
    for prefix in (CUSTOM, BFCL):
        if name.startswith(prefix) and name != prefix:
            return f"{prefix}{Path(name.removeprefix(prefix)).absolute()}"
    return name
