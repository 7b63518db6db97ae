"""The tool loop: decides purely, acts through a driver, and records every decision."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .journal import FileJournal, Journal, MemoryJournal
    from .options import Options, resolve_options
    from .output import OutputForm, OutputMode, OutputReading
    from .paused import approve, deny
    from .plan import Plan, make_plan
    from .prompt_runner import PromptRunner
    from .replay import Replay, replay_trace, resend_turn
    from .result import OutputResult, PausedResult, RunResult, RunStream
    from .session import Arguments, Session, extract, resume, run, run_sync, stream
    from .tool_loop import pause_deadline
    from .trace import Trace, TurnTrace, load_trace, save_trace

__all__ = [
    "Arguments",
    "FileJournal",
    "Journal",
    "MemoryJournal",
    "Options",
    "OutputForm",
    "OutputMode",
    "OutputReading",
    "OutputResult",
    "PausedResult",
    "Plan",
    "PromptRunner",
    "Replay",
    "RunResult",
    "RunStream",
    "Session",
    "Trace",
    "TurnTrace",
    "approve",
    "deny",
    "extract",
    "load_trace",
    "make_plan",
    "pause_deadline",
    "replay_trace",
    "resend_turn",
    "resolve_options",
    "resume",
    "run",
    "run_sync",
    "save_trace",
    "stream",
]

# Names are loaded when first used: what looks at single replies needs little of a run.
_HOMES = {
    "journal": "FileJournal Journal MemoryJournal",
    "options": "Options resolve_options",
    "output": "OutputForm OutputMode OutputReading",
    "paused": "approve deny",
    "plan": "Plan make_plan",
    "prompt_runner": "PromptRunner",
    "replay": "Replay replay_trace resend_turn",
    "result": "OutputResult PausedResult RunResult RunStream",
    "session": "Arguments Session extract resume run run_sync stream",
    "tool_loop": "pause_deadline",
    "trace": "Trace TurnTrace load_trace save_trace",
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
