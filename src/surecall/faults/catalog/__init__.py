"""Every named fault, and how to find one."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from surecall.base.errors import Code, ConfigError, did_you_mean

from .arguments import ARGUMENTS, SIZE
from .capabilities import CAPABILITY, TOOL_CHOICE
from .fault import GROUPS, Fault, FaultGroup
from .reply_shapes import IDS, MULTI_CALL, SHAPE
from .streams import STREAM
from .texts import EMPTY_FINAL, REASONING, TEXT_FORMAT
from .wire import BODY, TRANSPORT

__all__ = ["CLEAN", "FAULTS", "GROUPS", "Fault", "FaultGroup", "find_fault", "find_faults"]

CLEAN: Final = "clean"
"""The name that stands for no fault at all."""

FAULTS: Final[tuple[Fault, ...]] = (
    *SHAPE,
    *ARGUMENTS,
    *IDS,
    *MULTI_CALL,
    *EMPTY_FINAL,
    *SIZE,
    *TEXT_FORMAT,
    *REASONING,
    *TOOL_CHOICE,
    *TRANSPORT,
    *STREAM,
    *BODY,
    *CAPABILITY,
)
"""All faults, by group."""


def find_fault(name: str) -> Fault:
    """Return the fault of this name, in any case and with `-` or `_`."""
    wanted = name.strip().lower().replace("-", "_")
    fault = _by_name().get(wanted)
    if fault is None:
        raise ConfigError(
            Code.UNKNOWN_FAULT,
            f"there is no fault {name!r}.",
            hint=did_you_mean(wanted, [*_by_name(), CLEAN], listed_by="surecall faults list"),
        )
    return fault


def find_faults(group: str) -> tuple[Fault, ...]:
    """Return the faults of a group."""
    if group not in GROUPS:
        raise ConfigError(
            Code.UNKNOWN_FAULT,
            f"there is no group of faults {group!r}.",
            hint=did_you_mean(group, GROUPS, listed_by="surecall faults list --help"),
        )
    return tuple(fault for fault in FAULTS if fault.group == group)


@cache
def _by_name() -> Mapping[str, Fault]:
    return {fault.name: fault for fault in FAULTS}
