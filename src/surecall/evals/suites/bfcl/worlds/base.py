"""What an API of the leaderboard remembers, and how a call of one of its functions ends."""

from collections.abc import Mapping
from copy import deepcopy
from inspect import isfunction
from random import Random
from typing import Any, ClassVar, Final, Self, cast

from msgspec import Struct

from surecall.base.json_values import as_fields

__all__ = ["Outcome", "World"]

_ERROR: Final = "Error during execution: "
_PLAIN: Final = (str, int, float, bool, list, dict, type(None))


class Outcome(Struct, frozen=True):
    """What came of a call."""

    value: Any
    """What the model is shown: plain JSON, or a text."""
    text: str
    """What verdicts compare: the value as Python writes it."""


class World(Struct):
    """One API: its fields are the state, and the methods of each class are its functions.

    Fields with an underscore are not compared. Functions and parameters have the names that the
    leaderboard gives them.
    """

    seed: ClassVar[int] = 0
    """For what the API leaves to chance."""
    reads: ClassVar[str] = ""
    """The functions that change nothing and leave nothing to chance."""
    keys: ClassVar[Mapping[str, str]] = {}
    """Fields that the data write under another name."""

    _random: Random

    @classmethod
    def open(cls, config: Mapping[str, Any]) -> Self:
        """Return the API in the state that a case begins with."""
        random = Random(config.get("random_seed", cls.seed))  # noqa: S311 - can be repeated
        given = {
            name: deepcopy(config[key])
            for name in cls.__struct_fields__[1:]
            if (key := cls.keys.get(name, name)) in config
        }
        return cls(random, **given)

    @classmethod
    def functions(cls) -> frozenset[str]:
        """Return the names of what can be called."""
        return frozenset(
            name
            for name, each in vars(cls).items()
            if isfunction(each) and name[0] != "_" and not hasattr(World, name)
        )

    def call(self, function: str, arguments: Mapping[str, Any]) -> Outcome:
        """Call a function; whatever it raises is its result."""
        try:
            return _show(getattr(self, function)(**deepcopy(dict(arguments))))
        except Exception as error:
            return _show(f"{_ERROR}{error}")

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of the state that verdicts compare."""
        public = (name for name in self.__struct_fields__ if name[0] != "_")
        return {name: _copy(getattr(self, name)) for name in public}


def _copy(value: Any) -> Any:
    return sorted(cast("set[int]", value)) if isinstance(value, set) else deepcopy(value)


def _show(value: Any) -> Outcome:
    """Write a value down; one that is not plain JSON is shown as it is written."""
    text = str(value)
    is_plain = all(isinstance(each, _PLAIN) for each in as_fields(value).values())
    return Outcome(deepcopy(value) if is_plain else text, text)
