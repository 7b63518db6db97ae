"""The APIs of the leaderboard's conversations, rewritten: what they remember and what they do."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .arithmetic import ArithmeticWorld
from .base import Outcome, World
from .files import FileWorld
from .messages import MessageWorld
from .posts import PostWorld
from .tickets import TicketWorld
from .trading import TradingWorld
from .travel import TravelWorld
from .vehicle import VehicleWorld

__all__ = ["WORLDS", "Outcome", "World", "Worlds"]

WORLDS: Final[Mapping[str, type[World]]] = {
    "GorillaFileSystem": FileWorld,
    "MathAPI": ArithmeticWorld,
    "MessageAPI": MessageWorld,
    "TicketAPI": TicketWorld,
    "TradingBot": TradingWorld,
    "TravelAPI": TravelWorld,
    "TwitterAPI": PostWorld,
    "VehicleControlAPI": VehicleWorld,
}
"""The APIs that there are, by the leaderboard's names."""


class Worlds:
    """The APIs of one case, each in the state that it begins with.

    Args:
        names: The APIs, by the leaderboard's names.
        config: The state of each.
    """

    def __init__(self, names: Sequence[str], config: Mapping[str, Mapping[str, Any]]) -> None:
        self._worlds = {name: WORLDS[name].open(config.get(name, {})) for name in names}
        self._owners = {
            function: world for world in self._worlds.values() for function in world.functions()
        }

    @property
    def reads(self) -> frozenset[str]:
        """The functions that change nothing."""
        return frozenset(name for world in self._worlds.values() for name in world.reads.split())

    def call(self, function: str, arguments: Mapping[str, Any]) -> Outcome:
        """Call a function of any of them."""
        return self._owners[function].call(function, arguments)

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """Return a copy of the state of each."""
        return {name: world.snapshot() for name, world in self._worlds.items()}
