"""The simulated models that come with the package: one TOML file each, in `zoo`."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from surecall.errors import Code, ConfigError, did_you_mean

from .behaviours import Behaviour
from .plan import read_toml

__all__ = ["find_behaviour", "load_behaviour", "parse_behaviour", "zoo"]


@cache
def zoo() -> tuple[Behaviour, ...]:
    """Return all simulated models, by name."""
    folder = resources.files("surecall.faults").joinpath("zoo")
    with resources.as_file(folder) as path:
        return tuple(load_behaviour(file) for file in sorted(path.glob("*.toml")))


def find_behaviour(name: str) -> Behaviour:
    """Return the simulated model of this name."""
    wanted = name.strip().lower().replace("_", "-")
    for behaviour in zoo():
        if behaviour.name == wanted:
            return behaviour
    raise ConfigError(
        Code.UNKNOWN_MODEL,
        f"there is no simulated model {name!r}.",
        hint=did_you_mean(wanted, [behaviour.name for behaviour in zoo()]),
    )


def load_behaviour(path: str | Path) -> Behaviour:
    """Read a simulated model from a TOML file; its name is that of the file."""
    file = Path(path)
    return parse_behaviour({"name": file.stem, **read_toml(file)}, f"the file {file}")


def parse_behaviour(table: Mapping[str, Any], where: str = "a behaviour") -> Behaviour:
    """Read a simulated model from a table; anything unknown in it is an error."""
    try:
        return msgspec.convert(dict(table), Behaviour)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ConfigError):
            raise error.__cause__ from None
        raise ConfigError(
            Code.INVALID_CONFIG,
            f"{where} cannot be used: {error}.",
            hint="docs/how-to/test-against-a-faulty-provider.md says what a simulated model has.",
        ) from error
