"""The tools an application has, and the view of them that one run may use."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload, runtime_checkable

from surecall.base.errors import Code, ConfigError, ToolDefinitionError, did_you_mean
from surecall.base.records import ToolSpec

from .define import Tool, ToolContext, as_tool, tool


@runtime_checkable
class ToolProvider(Protocol):
    """A source of tools that are known only after connecting."""

    @property
    def is_open(self) -> bool:
        """Whether it is connected: opened, not closed by all who opened it, and not lost."""
        ...

    async def open(self) -> Sequence[Tool[..., Any]]:
        """Connect unless it is connected, and return the tools; they work until `aclose`."""
        ...

    async def aclose(self) -> None:
        """Take back one `open`; the connection ends with the last one."""
        ...


P = ParamSpec("P")
R = TypeVar("R")


class _Tools:
    """Tools by name, in the order in which they were registered."""

    __slots__ = ("_tools",)
    _tools: dict[str, Tool[..., Any]]

    def find(self, name: str) -> Tool[..., Any] | None:
        """Return the tool with exactly this name."""
        return self._tools.get(name)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the description of every tool."""
        return tuple(item.spec for item in self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(self._tools)

    def __iter__(self) -> Iterator[Tool[..., Any]]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._tools)})"


class ToolRegistry(_Tools):
    """Tools by name, in the order of registration, including hidden ones."""

    __slots__ = ()

    def __init__(self, tools: Iterable[Any] = ()) -> None:
        self._tools = {}
        for item in tools:
            self.add(item)

    @classmethod
    def from_executor(
        cls, specs: Iterable[ToolSpec], executor: Callable[..., Any]
    ) -> "ToolRegistry":
        """Make a registry in which one function runs every tool.

        It is called as `executor(name, arguments)`, with `tool_call_id=` as well if it takes
        that keyword; it may be a coroutine function.
        """
        takes_call_id = _takes_keyword(executor, "tool_call_id")
        return cls(_executed_tool(spec, executor, takes_call_id) for spec in specs)

    def add(self, obj: Any) -> Tool[..., Any]:
        """Register a tool, or what can be made one, and return the tool."""
        made = as_tool(obj)
        if made.name in self._tools:
            raise ToolDefinitionError(
                Code.DUPLICATE_TOOL,
                f"A tool named {made.name!r} is already registered.",
                hint="Give one of them another name: `@tool(name=...)`.",
            )
        self._tools[made.name] = made
        return made

    @overload
    def register(self, function: Callable[P, R], /) -> Tool[P, R]: ...
    @overload
    def register(self, /, **options: Any) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
    def register(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a decorator, bare or with the options of `tool`."""
        if function is None:
            return functools.partial(self.register, **options)
        return self.add(tool(**options)(function) if options else function)


def _executed_tool(
    spec: ToolSpec, executor: Callable[..., Any], takes_call_id: bool
) -> Tool[..., Any]:
    def bind(arguments: dict[str, Any], context: ToolContext) -> Callable[[], Any]:
        extra = {"tool_call_id": context.call_id} if takes_call_id else {}
        return functools.partial(executor, spec.name, arguments, **extra)

    made: Tool[..., Any] = Tool(spec, executor, binder=bind)
    made.checker.compile()
    return made


def _takes_keyword(function: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    if name in parameters:
        return parameters[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    return any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters.values())


class MaskedRegistry(_Tools):
    """The tools of a registry that a model may see and call; fixed when it is made.

    `allow` keeps only the tools it names, then `deny` takes away those it names; an empty list
    does nothing. Tools that are not exposed are never in the view, whatever `allow` says.
    """

    __slots__ = ()

    def __init__(
        self,
        registry: _Tools,
        allow: Iterable[str] | str = (),
        deny: Iterable[str] | str = (),
    ) -> None:
        known = {tool.name for tool in registry}
        allowed = _names("tool_allowlist", allow, known)
        denied = _names("tool_denylist", deny, known)
        self._tools = {
            tool.name: tool
            for tool in registry
            if tool.spec.exposed
            and (not allowed or tool.name in allowed)
            and tool.name not in denied
        }


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
