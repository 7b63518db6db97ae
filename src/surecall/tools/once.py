"""Tools whose equal calls run at most once in a run, whatever the model repeats."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from surecall.base.errors import Code
from surecall.base.records import ToolResult
from surecall.text import canonical_hash

from .define import Tool, ToolContext

_UNKNOWN_CODES = frozenset({Code.OUTCOME_UNKNOWN, Code.TOOL_TIMEOUT})


class OnceLedger:
    """The first result of every call that may not be made twice; `None` when it is not known."""

    def __init__(self, results: Mapping[str, ToolResult | None] | None = None) -> None:
        self.results: dict[str, ToolResult | None] = dict(results or {})

    def begin(self, key: str) -> None:
        """Note that a call is about to run: until its end, its outcome is not known."""
        self.results[key] = None

    def end(self, key: str, result: ToolResult) -> None:
        """Note how a call ended; one whose code was never started may be made again."""
        if not _UNKNOWN_CODES.isdisjoint(result.envelope.error_codes):
            self.results.setdefault(key, None)
        elif result.executed:
            self.results[key] = result
        elif self.results.get(key, result) is None:
            del self.results[key]

    def recall(self, key: str, result: ToolResult) -> None:
        """Note the recorded result of a call that was made before this process."""
        if result.executed or Code.OUTCOME_UNKNOWN in result.envelope.error_codes:
            self.end(key, result)


def make_once_key(tool: Tool[..., Any], arguments: dict[str, Any], context: ToolContext) -> str:
    """Return the key that equal calls of a tool share in a run; empty when it may run again."""
    if tool.once is False:
        return ""
    said = arguments if tool.once is True else bind_rule(tool.once, arguments, context)()
    return f"{context.run_id}/{tool.name}/{canonical_hash(said)}"


def bind_rule(
    rule: Callable[..., Any], arguments: dict[str, Any], context: ToolContext
) -> Callable[[], Any]:
    """Return a call of a tool's rule, with the context if it takes two arguments."""
    try:
        inspect.signature(rule).bind(arguments, context)
    except (TypeError, ValueError):
        return functools.partial(rule, arguments)
    return functools.partial(rule, arguments, context)
