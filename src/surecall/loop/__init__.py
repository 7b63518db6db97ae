"""The tool loop: decides purely, acts through a driver, and records every decision."""

from .journal import FileJournal, Journal, MemoryJournal
from .options import Options, resolve_options
from .output import OutputForm, OutputMode, OutputReading, OutputSpec
from .paused import approve, deny
from .plan import Plan, make_plan
from .prompt_runner import PromptResult, PromptRunner
from .replay import Replay, replay_trace, resend_turn
from .result import OutputResult, OutputStream, RunResult, RunStream
from .runs import Arguments, extract, resume, run, run_sync, stream
from .session import Session
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
    "OutputSpec",
    "OutputStream",
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
    "extract",
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
