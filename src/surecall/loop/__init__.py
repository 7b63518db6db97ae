"""The tool loop: decides purely, acts through a driver, and records every decision."""

from .journal import FileJournal, Journal, MemoryJournal
from .options import Options, resolve_options
from .paused import approve, deny
from .plan import Plan, make_plan
from .prompt_runner import PromptResult, PromptRunner
from .replay import Replay, replay_trace, resend_turn
from .result import RunResult, RunStream
from .session import Arguments, Session, resume, run, run_sync, stream
from .trace import Trace, TurnTrace, load_trace, save_trace

__all__ = [
    "Arguments",
    "FileJournal",
    "Journal",
    "MemoryJournal",
    "Options",
    "Plan",
    "PromptResult",
    "PromptRunner",
    "Replay",
    "RunResult",
    "RunStream",
    "Session",
    "Trace",
    "TurnTrace",
    "approve",
    "deny",
    "load_trace",
    "make_plan",
    "replay_trace",
    "resend_turn",
    "resolve_options",
    "resume",
    "run",
    "run_sync",
    "save_trace",
    "stream",
]
