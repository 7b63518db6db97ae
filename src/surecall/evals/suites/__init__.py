"""Suites: families of cases that an experiment can try; each is loaded when it is asked for."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.evals.cases import Suite

__all__ = ["SUITES", "load_suite", "locate_suite"]

CUSTOM: Final = "custom:"
"""The prefix of a suite that is a file of the user's own cases."""
BFCL: Final = "bfcl:"
"""The prefix of the leaderboard's suite when its data are in a wheel or folder."""

SUITES: Final[Mapping[str, str]] = {
    "state": "surecall.evals.scenarios:StateSuite",
    "one_tool": "surecall.evals.suites.one_tool:OneToolSuite",
    "errands": "surecall.evals.suites.errands:ErrandsSuite",
    "agents": "surecall.evals.suites.agents:AgentsSuite",
    "directives": "surecall.evals.suites.directives:DirectivesSuite",
    "bfcl": "surecall.evals.suites.bfcl:BfclSuite",
}
"""Where each suite is, in the order in which they are listed."""
_CUSTOM_SUITE: Final = "surecall.evals.suites.custom:load_custom"


def load_suite(name: str) -> Suite:
    """Return the suite of a name, or of a file as in `custom:cases.toml` or `bfcl:WHEEL`."""
    if name.startswith(CUSTOM):
        return _make_suite(_CUSTOM_SUITE, name.removeprefix(CUSTOM))
    if name.startswith(BFCL):
        return _make_suite(SUITES["bfcl"], name.removeprefix(BFCL))
    if name not in SUITES:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"there is no suite {name!r}.",
            hint=did_you_mean(name, (*SUITES, f"{BFCL}WHEEL", f"{CUSTOM}FILE")),
        )
    return _make_suite(SUITES[name])


def _make_suite(place: str, *arguments: str) -> Suite:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)(*arguments)


def locate_suite(name: str) -> str:
    """Return the name by which a suite is found from any folder: a file with its whole path."""
    for prefix in (CUSTOM, BFCL):
        if name.startswith(prefix) and name != prefix:
            return f"{prefix}{Path(name.removeprefix(prefix)).absolute()}"
    return name
