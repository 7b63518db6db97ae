"""A script: the steps a model takes when it makes no mistake, from a TOML file.

[[steps]]
call = "save"
arguments = { text = "a" }

[[steps]]
calls = [{ name = "look" }, { name = "save", arguments = { text = "b" } }]

[[steps]]
say = "Done."
"""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from surecall.errors import Code, ConfigError

from .actions import Action, CallTools, PlannedCall, Say
from .directives import StepsOracle
from .plan import read_toml

__all__ = ["load_script"]


class _Step(Struct, frozen=True, forbid_unknown_fields=True):
    call: str | None = None
    arguments: dict[str, Any] = {}
    calls: tuple[PlannedCall, ...] = ()
    say: str | None = None

    def __post_init__(self) -> None:
        if sum((self.call is not None, bool(self.calls), self.say is not None)) != 1:
            raise ValueError("a step has one of call, calls and say")

    @property
    def action(self) -> Action:
        if self.say is not None:
            return Say(self.say)
        if self.call is not None:
            return CallTools((PlannedCall(self.call, self.arguments),))
        return CallTools(self.calls)


class _Script(Struct, frozen=True, forbid_unknown_fields=True):
    steps: tuple[_Step, ...]


def load_script(path: str | Path) -> StepsOracle:
    """Read a script."""
    try:
        script = msgspec.convert(read_toml(Path(path)), _Script)
    except msgspec.ValidationError as error:
        raise ConfigError(
            Code.INVALID_CONFIG,
            f"the file {path} is no script: {error}.",
            hint="Write a list of [[steps]], each with call and arguments, calls, or say.",
        ) from error
    return StepsOracle([step.action for step in script.steps])
