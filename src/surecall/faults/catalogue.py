"""Every named fault, and how to find one."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from surecall.errors import Code, ConfigError, did_you_mean

from .argument_faults import ARGUMENT_FAULTS, SIZE_FAULTS
from .body_faults import BODY_FAULTS
from .capability_faults import CAPABILITY_FAULTS, TOOL_CHOICE_FAULTS
from .records import GROUPS, Fault
from .shape_faults import ID_FAULTS, MULTI_CALL_FAULTS, SHAPE_FAULTS
from .stream_faults import STREAM_FAULTS
from .text_faults import EMPTY_FINAL_FAULTS, REASONING_FAULTS, TEXT_FORMAT_FAULTS
from .wire_faults import TRANSPORT_FAULTS

__all__ = ["CLEAN", "FAULTS", "find_fault", "find_faults"]

CLEAN: Final = "clean"
"""The name that stands for no fault at all."""

FAULTS: Final[tuple[Fault, ...]] = (
    *SHAPE_FAULTS,
    *ARGUMENT_FAULTS,
    *ID_FAULTS,
    *MULTI_CALL_FAULTS,
    *EMPTY_FINAL_FAULTS,
    *SIZE_FAULTS,
    *TEXT_FORMAT_FAULTS,
    *REASONING_FAULTS,
    *TOOL_CHOICE_FAULTS,
    *TRANSPORT_FAULTS,
    *STREAM_FAULTS,
    *BODY_FAULTS,
    *CAPABILITY_FAULTS,
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
            hint=did_you_mean(wanted, [*_by_name(), CLEAN]),
        )
    return fault


def find_faults(group: str) -> tuple[Fault, ...]:
    """Return the faults of a group."""
    if group not in GROUPS:
        raise ConfigError(
            Code.UNKNOWN_FAULT,
            f"there is no group of faults {group!r}.",
            hint=did_you_mean(group, GROUPS),
        )
    return tuple(fault for fault in FAULTS if fault.group == group)


@cache
def _by_name() -> Mapping[str, Fault]:
    return {fault.name: fault for fault in FAULTS}
