"""surecall makes LLM tool calls reliable.

Whatever a model or a provider sends back, the application gets a correct, validated call with a
receipt for every change made to it, or a clear refusal that the model can act on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surecall.base.version import VERSION

if TYPE_CHECKING:
    from surecall.base.errors import (
        Code,
        ConfigError,
        ProviderError,
        RunError,
        SurecallError,
        ToolUseError,
    )
    from surecall.base.records import Message, ToolCall, ToolCallEnded
    from surecall.clients import async_http_client, http_client, wrap
    from surecall.exchange import Policy
    from surecall.loop import (
        FileJournal,
        Options,
        OutputResult,
        PausedResult,
        RunResult,
        Session,
        approve,
        deny,
        extract,
        resume,
        run,
        run_sync,
        stream,
    )
    from surecall.models.transport import ScriptedTransport, assistant, tool_call
    from surecall.reading import read_arguments, read_reply, read_value
    from surecall.store import SqliteStore
    from surecall.text import repair_json
    from surecall.tools import Tool, ToolContext, ToolFailed, tool
    from surecall.tools.mcp import mcp_tools
    from surecall.tools.openapi import openapi_tools

__version__ = VERSION

__all__ = [
    "Code",
    "ConfigError",
    "FileJournal",
    "Message",
    "Options",
    "OutputResult",
    "PausedResult",
    "Policy",
    "ProviderError",
    "RunError",
    "RunResult",
    "ScriptedTransport",
    "Session",
    "SqliteStore",
    "SurecallError",
    "Tool",
    "ToolCall",
    "ToolCallEnded",
    "ToolContext",
    "ToolFailed",
    "ToolUseError",
    "approve",
    "assistant",
    "async_http_client",
    "deny",
    "extract",
    "http_client",
    "mcp_tools",
    "openapi_tools",
    "read_arguments",
    "read_reply",
    "read_value",
    "repair_json",
    "resume",
    "run",
    "run_sync",
    "stream",
    "tool",
    "tool_call",
    "wrap",
]

# Names are loaded when first used, so that importing the package costs next to nothing.
_HOMES = {
    "base.errors": "Code ConfigError ProviderError RunError SurecallError ToolUseError",
    "base.records": "Message ToolCall ToolCallEnded",
    "clients": "async_http_client http_client wrap",
    "exchange": "Policy",
    "loop": (
        "FileJournal Options OutputResult PausedResult RunResult Session "
        "approve deny extract resume run run_sync stream"
    ),
    "models.transport": "ScriptedTransport assistant tool_call",
    "reading": "read_arguments read_reply read_value",
    "store": "SqliteStore",
    "text": "repair_json",
    "tools": "Tool ToolContext ToolFailed tool",
    "tools.mcp": "mcp_tools",
    "tools.openapi": "openapi_tools",
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            value = globals()[name] = getattr(import_module(f"surecall.{home}"), name)
            return value
    raise AttributeError(f"module 'surecall' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
