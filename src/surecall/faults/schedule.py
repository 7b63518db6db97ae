"""Which fault a request meets: always one, one after the other, or by chance."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

from msgspec import Struct

from surecall.base.errors import Code, ConfigError

from .catalog import CLEAN, Fault, find_fault
from .toml_files import load_table, parse_table

_HINT: Final = "`surecall docs test-against-a-faulty-provider` has what a plan holds."


class PlanStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One or more requests in a row that meet the same fault."""

    fault: str
    times: int = 1


class PlanChance(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault that a request meets with a probability."""

    fault: str
    probability: float


class FaultPlan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steps come first, each for the next request; then chances, or what `after` says."""

    steps: tuple[PlanStep, ...] = ()
    after: Literal["clean", "repeat", "stay"] = "clean"
    """When the steps are used up: no fault, the steps again, or the last step for ever."""
    chances: tuple[PlanChance, ...] = ()
    """Each is drawn by itself, so that several may meet."""
    always: str | None = None
    """One fault for every request that it can touch."""
    seed: int | None = None

    def __post_init__(self) -> None:
        for item in (*self.steps, *self.chances):
            _find(item.fault)
        if self.always is not None:
            _find(self.always)
        if any(not 0 <= chance.probability <= 1 for chance in self.chances):
            raise ValueError("a probability must be between 0 and 1")
        if any(step.times < 1 for step in self.steps):
            raise ValueError("times must be 1 or more")

    @classmethod
    def of(cls, name: str) -> "FaultPlan":
        """Return the plan that meets every request with one fault."""
        fault = _find(name)
        return cls(always=None if fault is None else fault.name)

    @classmethod
    def load(cls, path: str | Path) -> "FaultPlan":
        """Read a plan from a TOML file."""
        return load_table(path, cls, f"the plan {path}", _HINT)

    @classmethod
    def parse(cls, table: Mapping[str, Any], where: str = "a plan") -> "FaultPlan":
        """Read a plan from a table; anything unknown in it is an error."""
        return parse_table(table, cls, where, _HINT)

    def faults_for(
        self, number: int, random: Random, *, stream: bool, protocol: str = "chat_completions"
    ) -> tuple[Fault, ...]:
        """Return the faults that the request of this number meets, in order.

        Raises:
            ConfigError: `FAULT_NOT_APPLICABLE`, when the one fault of every request means nothing
                in this wire format.
        """
        if self.always is not None:
            fault = _find(self.always)
            if fault is not None and protocol not in fault.protocols:
                raise ConfigError(
                    Code.FAULT_NOT_APPLICABLE,
                    f"the fault {fault.name!r} means nothing in the wire format {protocol}.",
                    hint=f"It applies to: {', '.join(fault.protocols)}.",
                )
            return (fault,) if fault is not None and fault.touches(number, stream=stream) else ()
        found = [_find(name) for name in self._names_for(number, random)]
        return tuple(
            fault
            for fault in found
            if fault is not None and fault.reaches(stream=stream, protocol=protocol)
        )

    def _names_for(self, number: int, random: Random) -> list[str]:
        planned = [step.fault for step in self.steps for _ in range(step.times)]
        if number <= len(planned):
            return [planned[number - 1]]
        if planned and self.after == "repeat":
            return [planned[(number - 1) % len(planned)]]
        if planned and self.after == "stay":
            return [planned[-1]]
        return [chance.fault for chance in self.chances if random.random() < chance.probability]


def _find(name: str) -> Fault | None:
    return None if name == CLEAN else find_fault(name)


CLEAN_PLAN: Final = FaultPlan()
"""A plan without any fault."""
