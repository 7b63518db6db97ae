"""What an experiment is made of: equal manifests may be continued and compared trial by trial."""

import platform
from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib.metadata import version
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from surecall.jsontext import canonical_hash, encode_text

from .records import Unit

__all__ = ["Manifest", "hash_of", "make_manifest"]

_TOLD: Final = ("command", "engine", "places", "simulated")
"""Fields that are kept for the reader and do not make an experiment another one."""
_SHOWN_CHARS: Final = 60
_HASH_CHARS: Final = 16


class Manifest(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that decides what the trials of a run mean."""

    axes: dict[str, Any] = {}
    """What was asked for: models, profiles, strategies, fallbacks, scenarios, trials, seed."""
    units: int
    """How many trials there are."""
    units_hash: str = ""
    """Hash of every trial's cell, case, number and seed, in order."""
    suites: dict[str, str] = {}
    """The version of each suite."""
    contenders: dict[str, Any] = {}
    """What each model's name stands for: model, provider, address."""
    catalog: str = ""
    """Hash of the catalog of models, presets and profiles."""
    options: dict[str, Any] = {}
    """Options that hold for every trial, such as the time one may take."""
    package: str = ""
    python: str = ""
    command: str = ""
    """The command that began the run."""
    engine: str = "local"
    places: dict[str, str] = {}
    """The suites that are files, each with the name by which it is found from any folder."""
    simulated: tuple[str, ...] = ()
    """The models that are simulated, and none that anybody serves."""

    @cached_property
    def hash(self) -> str:
        """The same for experiments whose trials are interchangeable."""
        return hash_of(self._compared())

    def differences(self, other: "Manifest") -> list[str]:
        """Say, field by field, what another experiment has that this one has not."""
        mine, theirs = dict(_flat(self._compared())), dict(_flat(other._compared()))
        names = [*mine, *(name for name in theirs if name not in mine)]
        return [
            f"{name}: {_shown(mine, name)} → {_shown(theirs, name)}"
            for name in names
            if mine.get(name) != theirs.get(name)
        ]

    def _compared(self) -> dict[str, Any]:
        fields = msgspec.to_builtins(self)
        return {name: value for name, value in fields.items() if name not in _TOLD}


def make_manifest(
    units: Iterable[Unit],
    *,
    axes: Any,
    suites: Mapping[str, str],
    contenders: Mapping[str, Any] | None = None,
    catalog: str = "",
    options: Mapping[str, Any] | None = None,
    command: str = "",
    engine: str = "local",
    places: Mapping[str, str] | None = None,
    simulated: Iterable[str] = (),
) -> Manifest:
    """Describe an experiment that is about to be run with this version of surecall."""
    planned = [msgspec.structs.astuple(unit) for unit in units]
    return Manifest(
        axes=msgspec.to_builtins(axes),
        units=len(planned),
        units_hash=hash_of(planned),
        suites=dict(suites),
        contenders=dict(contenders or {}),
        catalog=catalog,
        options=dict(options or {}),
        package=version("surecall"),
        python=".".join(platform.python_version_tuple()[:2]),
        command=command,
        engine=engine,
        places=dict(places or {}),
        simulated=tuple(simulated),
    )


def hash_of(value: Any) -> str:
    """Return a short hash of any plain value."""
    return canonical_hash(msgspec.to_builtins(value))[:_HASH_CHARS]


def _flat(table: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _flat(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _shown(table: dict[str, Any], name: str) -> str:
    if name not in table:
        return "(not there)"
    value = table[name]
    text = value if isinstance(value, str) else encode_text(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
