"""The view of a registry that one run may use: what is sent is what can be executed."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from surecall.errors import Code, ConfigError, did_you_mean
from surecall.records import ToolSpec

from .define import Tool
from .registry import ToolRegistry

__all__ = ["MaskedRegistry"]


class MaskedRegistry:
    """The tools of a registry that a model may see and call; fixed when it is made.

    `allow` keeps only the tools it names, then `deny` takes away those it names; an empty list
    does nothing. Tools that are not exposed are never in the view, whatever `allow` says.
    """

    __slots__ = ("_tools",)

    def __init__(
        self,
        registry: "ToolRegistry | MaskedRegistry",
        allow: Iterable[str] | str = (),
        deny: Iterable[str] | str = (),
    ) -> None:
        known = {tool.name for tool in registry}
        allowed = _names("allow", allow, known)
        denied = _names("deny", deny, known)
        self._tools: dict[str, Tool[..., Any]] = {
            tool.name: tool
            for tool in registry
            if tool.spec.exposed
            and (not allowed or tool.name in allowed)
            and tool.name not in denied
        }

    def find(self, name: str) -> Tool[..., Any] | None:
        """Return the visible tool with exactly this name."""
        return self._tools.get(name)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return what is sent to the model, in the order of registration."""
        return tuple(tool.spec for tool in self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the visible tools, in the order of registration."""
        return tuple(self._tools)

    def __iter__(self) -> Iterator[Tool[..., Any]]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __repr__(self) -> str:
        return f"MaskedRegistry({', '.join(self._tools)})"


def _names(option: str, given: Any, known: set[str]) -> frozenset[str]:
    names: list[Any] = [given] if isinstance(given, str) else list(cast("Iterable[Any]", given))
    for name in names:
        if not isinstance(name, str):
            raise ConfigError(
                Code.INVALID_OPTION,
                f"{option} holds {type(name).__name__}, not the name of a tool.",
                hint="Give a list of tool names.",
            )
        if "," in name:
            raise ConfigError(
                Code.INVALID_OPTION,
                f"{option} holds {name!r}; names are not split at commas.",
                hint="Give a list with one name in each place.",
            )
        if name not in known:
            raise ConfigError(
                Code.INVALID_OPTION,
                f"{option} names {name!r}, which is not a registered tool.",
                hint=did_you_mean(name, known),
            )
    return frozenset(names)
