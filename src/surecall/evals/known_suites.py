"""The suites there are, by name; each is loaded when it is asked for."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from surecall.errors import Code, ConfigError, did_you_mean

from .cases import Suite

__all__ = ["BFCL", "CUSTOM", "SUITES", "load_suite", "locate_suite"]

CUSTOM: Final = "custom:"
"""What the name of a suite begins with that is a file."""
BFCL: Final = "bfcl:"
"""What the name of the leaderboard's suite begins with when its data are in a wheel or folder."""

SUITES: Final[Mapping[str, str]] = {
    "state": "surecall.evals.suites.state:StateSuite",
    "one_tool": "surecall.evals.suites.one_tool:OneToolSuite",
    "agents": "surecall.evals.suites.agents:AgentsSuite",
    "bfcl": "surecall.evals.suites.bfcl:BfclSuite",
}
"""Where each suite is, in the order in which they are listed."""

_CUSTOM_SUITE: Final = "surecall.evals.suites.custom:load_custom"


def load_suite(name: str) -> Suite:
    """Return the suite of a name, or of a file as in `custom:cases.toml` or `bfcl:WHEEL`."""
    if name.startswith(CUSTOM):
        module, _, function = _CUSTOM_SUITE.partition(":")
        return getattr(import_module(module), function)(name.removeprefix(CUSTOM))
    path = name.removeprefix(BFCL) if name.startswith(BFCL) else None
    place = SUITES.get(name if path is None else BFCL[:-1])
    if place is None:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"there is no suite {name!r}.",
            hint=did_you_mean(name, (*SUITES, f"{BFCL}WHEEL", f"{CUSTOM}FILE")),
        )
    module, _, suite = place.partition(":")
    make = getattr(import_module(module), suite)
    return make() if path is None else make(path)


def locate_suite(name: str) -> str:
    """Return the name by which a suite is found from any folder: a file with its whole path."""
    for prefix in (CUSTOM, BFCL):
        if name.startswith(prefix) and name != prefix:
            return f"{prefix}{Path(name.removeprefix(prefix)).absolute()}"
    return name
