"""surecall makes LLM tool calls sure.

Whatever a model or a provider sends back, the application gets a correct, validated call with a
receipt for every change made to it, or a clear refusal that the model can act on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surecall.config import load_config
    from surecall.errors import (
        Code,
        ConfigError,
        ProviderError,
        RunError,
        RunLimitError,
        SetupError,
        SurecallError,
        ToolUseError,
    )
    from surecall.jsontext import repair_json
    from surecall.loop import (
        FileJournal,
        Options,
        RunResult,
        RunStream,
        Session,
        load_trace,
        run,
        run_sync,
        save_trace,
        stream,
    )
    from surecall.reading import ReplyReader, read_arguments, read_reply
    from surecall.records import Envelope, Event, Message, Receipt, ToolCall, ToolResult, Usage
    from surecall.tools import (
        ApprovalDecision,
        ApprovalRequest,
        Tool,
        ToolContext,
        ToolFailed,
        ToolRegistry,
        tool,
    )
    from surecall.transport import HttpTransport, ScriptedTransport

__all__ = [
    "ApprovalDecision",
    "ApprovalRequest",
    "Code",
    "ConfigError",
    "Envelope",
    "Event",
    "FileJournal",
    "HttpTransport",
    "Message",
    "Options",
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
    "ToolRegistry",
    "ToolResult",
    "ToolUseError",
    "Usage",
    "load_config",
    "load_trace",
    "read_arguments",
    "read_reply",
    "repair_json",
    "run",
    "run_sync",
    "save_trace",
    "stream",
    "tool",
]

# Names are loaded when first used, so that importing the package costs next to nothing.
_HOMES = {
    "ApprovalDecision": "surecall.tools",
    "ApprovalRequest": "surecall.tools",
    "Code": "surecall.errors",
    "ConfigError": "surecall.errors",
    "Envelope": "surecall.records",
    "Event": "surecall.records",
    "FileJournal": "surecall.loop",
    "HttpTransport": "surecall.transport",
    "Message": "surecall.records",
    "Options": "surecall.loop",
    "ProviderError": "surecall.errors",
    "Receipt": "surecall.records",
    "ReplyReader": "surecall.reading",
    "RunError": "surecall.errors",
    "RunLimitError": "surecall.errors",
    "RunResult": "surecall.loop",
    "RunStream": "surecall.loop",
    "ScriptedTransport": "surecall.transport",
    "Session": "surecall.loop",
    "SetupError": "surecall.errors",
    "SurecallError": "surecall.errors",
    "Tool": "surecall.tools",
    "ToolCall": "surecall.records",
    "ToolContext": "surecall.tools",
    "ToolFailed": "surecall.tools",
    "ToolRegistry": "surecall.tools",
    "ToolResult": "surecall.records",
    "ToolUseError": "surecall.errors",
    "Usage": "surecall.records",
    "load_config": "surecall.config",
    "load_trace": "surecall.loop",
    "read_arguments": "surecall.reading",
    "read_reply": "surecall.reading",
    "repair_json": "surecall.jsontext",
    "run": "surecall.loop",
    "run_sync": "surecall.loop",
    "save_trace": "surecall.loop",
    "stream": "surecall.loop",
    "tool": "surecall.tools",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("surecall")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'surecall' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
