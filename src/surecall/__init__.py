"""surecall makes LLM tool calls reliable.

Whatever a model or a provider sends back, the application gets a correct, validated call with a
receipt for every change made to it, or a clear refusal that the model can act on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surecall.config import load_config
    from surecall.directives import (
        Directive,
        DirectiveRegistry,
        DirectResult,
        direct,
    )
    from surecall.errors import (
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
    from surecall.jsontext import repair_json
    from surecall.loop import (
        FileJournal,
        Options,
        OutputForm,
        OutputResult,
        OutputStream,
        RunResult,
        RunStream,
        Session,
        extract,
        load_trace,
        run,
        run_sync,
        save_trace,
        stream,
    )
    from surecall.reading import ReplyReader, read_arguments, read_reply, read_value
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
    "DirectResult",
    "Directive",
    "DirectiveRegistry",
    "Envelope",
    "Event",
    "FileJournal",
    "HttpTransport",
    "Message",
    "Options",
    "OutputError",
    "OutputForm",
    "OutputResult",
    "OutputStream",
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
    "direct",
    "extract",
    "load_config",
    "load_trace",
    "read_arguments",
    "read_reply",
    "read_value",
    "repair_json",
    "run",
    "run_sync",
    "save_trace",
    "stream",
    "tool",
]

# Names are loaded when first used, so that importing the package costs next to nothing.
_HOMES = {
    "config": "load_config",
    "directives": "DirectResult Directive DirectiveRegistry direct",
    "errors": (
        "Code ConfigError OutputError ProviderError RunError RunLimitError SetupError "
        "SurecallError ToolUseError"
    ),
    "jsontext": "repair_json",
    "loop": (
        "FileJournal Options OutputForm OutputResult OutputStream RunResult RunStream Session "
        "extract load_trace run run_sync save_trace stream"
    ),
    "reading": "ReplyReader read_arguments read_reply read_value",
    "records": "Envelope Event Message Receipt ToolCall ToolResult Usage",
    "tools": "ApprovalDecision ApprovalRequest Tool ToolContext ToolFailed ToolRegistry tool",
    "transport": "HttpTransport ScriptedTransport",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("surecall")
    for home, names in _HOMES.items():
        if name in names.split():
            value = globals()[name] = getattr(import_module(f"surecall.{home}"), name)
            return value
    raise AttributeError(f"module 'surecall' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
