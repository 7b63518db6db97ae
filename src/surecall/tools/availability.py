"""When a tool may be used: decided by the application, from its own state or from the run."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, ToolDefinitionError, did_you_mean
from surecall.base.records import ToolResult, ToolSpec
from surecall.base.redaction import open_log

_log = open_log("surecall.tools")


class RunProgress(Struct, frozen=True):
    """The progress of a run."""

    results: tuple[ToolResult, ...] = ()
    """The results of all calls of this run, in order."""

    @property
    def succeeded(self) -> frozenset[str]:
        """The names of the tools that have succeeded."""
        return frozenset(result.name for result in self.results if result.ok)


Guard = Callable[[RunProgress], bool]
"""Decides whether a tool may be used now."""


def make_guard(tool_name: str, function: Any) -> Guard | None:
    """Return the guard that a function is; it may take nothing, or the progress of the run."""
    if function is None:
        return None
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise _refuse_guard(tool_name, "not a function that answers at once")
    ask = cast("Callable[..., bool]", function)
    try:
        signature = inspect.signature(ask)
    except (TypeError, ValueError):  # some built-in functions do not say what they take
        return ask
    for arguments in ((), (RunProgress(),)):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return ask if arguments else lambda progress: ask()
    raise _refuse_guard(tool_name, "a function of more than one argument")


def _refuse_guard(tool_name: str, what: str) -> ToolDefinitionError:
    return ToolDefinitionError(
        Code.INVALID_OPTION,
        f"The tool {tool_name} has an available_when that is {what}.",
        hint="Give a plain function that takes nothing, or the progress of the run.",
    )


def find_closed(guards: Mapping[str, Guard], progress: RunProgress) -> frozenset[str]:
    """Return the tools that may not be used now; a guard that fails keeps its tool closed."""
    return frozenset(name for name, guard in guards.items() if not _is_open(name, guard, progress))


def _is_open(name: str, guard: Guard, progress: RunProgress) -> bool:
    try:
        return bool(guard(progress))
    except Exception:
        _log.warning("available_when of %s failed, so the tool is not available", name)
        _log.debug("available_when of %s failed", name, exc_info=True)
        return False


def check_required(required: tuple[str, ...], tools: tuple[ToolSpec, ...]) -> None:
    """Refuse required tools that do not exist, or that nothing could ever make available."""
    names = [tool.name for tool in tools]
    for name in required:
        if name not in names:
            raise ConfigError(
                Code.INVALID_OPTION,
                f"required_tools names {name!r}, which is not a tool of this run.",
                hint=did_you_mean(name, names),
            )
    reachable: set[str] = set()
    found = -1
    while found < len(reachable):
        found = len(reachable)
        reachable |= {tool.name for tool in tools if set(tool.requires) <= reachable}
    for name in required:
        if name not in reachable:
            raise ConfigError(
                Code.INVALID_OPTION,
                f"required_tools names {name!r}, which could never be called: what it requires "
                "is not a tool of this run, or requires it in turn.",
                hint="Look at `requires` of the tool and of those it names.",
            )
