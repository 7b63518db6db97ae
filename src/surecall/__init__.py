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
        OutputError,
        ProviderError,
        RunError,
        RunLimitError,
        SetupError,
        SurecallError,
        ToolUseError,
    )
    from surecall.base.records import Envelope, Event, Message, Receipt, ToolCall, ToolResult, Usage
    from surecall.clients import async_http_client, http_client, wrap
    from surecall.loop import (
        FileJournal,
        Options,
        OutputForm,
        OutputResult,
        PausedResult,
        RunResult,
        RunStream,
        Session,
        approve,
        deny,
        extract,
        load_trace,
        resume,
        run,
        run_sync,
        save_trace,
        stream,
    )
    from surecall.loop.directives import (
        Directive,
        DirectiveRegistry,
        DirectResult,
        direct,
    )
    from surecall.models.config import load_config
    from surecall.models.transport import HttpTransport, ScriptedTransport
    from surecall.reading import ReplyReader, read_arguments, read_reply, read_value
    from surecall.text import repair_json
    from surecall.tools import (
        Approval,
        ApprovalDecision,
        ApprovalRequest,
        MemoryApprovals,
        Tool,
        ToolContext,
        ToolFailed,
        ToolProvider,
        ToolRegistry,
        tool,
    )
    from surecall.tools.mcp import McpTools, mcp_tools
    from surecall.tools.openapi import openapi_tools
    from surecall.workspace import Workspace, WorkspaceTools

__version__ = VERSION

__all__ = [
    "Approval",
    "ApprovalDecision",
    "ApprovalRequest",
    "Code",
    "ConfigError",
    "DirectResult",
    "Directive",
    "DirectiveRegistry",
    "Envelope",
    "Event",
    "FileJournal",
    "HttpTransport",
    "McpTools",
    "MemoryApprovals",
    "Message",
    "Options",
    "OutputError",
    "OutputForm",
    "OutputResult",
    "PausedResult",
    "ProviderError",
    "Receipt",
    "ReplyReader",
    "RunError",
    "RunLimitError",
    "RunResult",
    "RunStream",
    "ScriptedTransport",
    "Session",
    "SetupError",
    "SurecallError",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFailed",
    "ToolProvider",
    "ToolRegistry",
    "ToolResult",
    "ToolUseError",
    "Usage",
    "Workspace",
    "WorkspaceTools",
    "approve",
    "async_http_client",
    "deny",
    "direct",
    "extract",
    "http_client",
    "load_config",
    "load_trace",
    "mcp_tools",
    "openapi_tools",
    "read_arguments",
    "read_reply",
    "read_value",
    "repair_json",
    "resume",
    "run",
    "run_sync",
    "save_trace",
    "stream",
    "tool",
    "wrap",
]

# Names are loaded when first used, so that importing the package costs next to nothing.
_HOMES = {
    "clients": "async_http_client http_client wrap",
    "models.config": "load_config",
    "loop.directives": "DirectResult Directive DirectiveRegistry direct",
    "base.errors": (
        "Code ConfigError OutputError ProviderError RunError RunLimitError SetupError "
        "SurecallError ToolUseError"
    ),
    "text": "repair_json",
    "loop": (
        "FileJournal Options OutputForm OutputResult PausedResult RunResult RunStream "
        "Session approve deny extract load_trace resume run run_sync save_trace stream"
    ),
    "tools.mcp": "McpTools mcp_tools",
    "tools.openapi": "openapi_tools",
    "reading": "ReplyReader read_arguments read_reply read_value",
    "base.records": "Envelope Event Message Receipt ToolCall ToolResult Usage",
    "tools": (
        "Approval ApprovalDecision ApprovalRequest MemoryApprovals Tool ToolContext ToolFailed "
        "ToolProvider ToolRegistry tool"
    ),
    "models.transport": "HttpTransport ScriptedTransport",
    "workspace": "Workspace WorkspaceTools",
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            value = globals()[name] = getattr(import_module(f"surecall.{home}"), name)
            return value
    raise AttributeError(f"module 'surecall' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
