"""`surecall run`: a question, a model, your tools, and an answer."""

import asyncio
import contextlib
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import click

from surecall.base.errors import ConfigError, SurecallError
from surecall.base.files import explain_write_errors
from surecall.base.records import Event
from surecall.loop import RunResult, Session, Trace, save_trace
from surecall.loop.options import fold_parameters
from surecall.models.config import Config, load_config

from .console import ExitCode, Output, select_fields
from .event_lines import Progress
from .flags import check_options, flag, invalid_option, parse_options, pass_output, settings_flags
from .suggestions import complete_presets
from .tool_files import load_tools

if TYPE_CHECKING:
    from surecall.faults import SimulatedTransport


class _Places(NamedTuple):
    """Where a run leaves its files."""

    run_id: str
    journal: str | None
    trace: Path | None


def _choose_places(config: Config, journal: str | None, trace: str | None) -> _Places:
    run_id = uuid4().hex
    if journal is None and config.journal_dir is not None:
        journal = str(config.journal_dir / f"{run_id}.jsonl")
    if trace is None and config.trace_dir is not None:
        trace = str(config.trace_dir / f"{run_id}.json")
    return _Places(run_id, journal, Path(trace) if trace is not None else None)


@click.command
@click.argument("question")
@flag("--tools FILE.py", "File with tools; may be repeated.", to="tool_files", multiple=True)
@flag(
    "--mcp TARGET",
    "MCP server with tools: a command in quotes, or a URL.",
    to="servers",
    multiple=True,
)
@flag("--mcp-pins FILE", "File of approved digests of MCP tools.")
@settings_flags("model", "base_url", "provider", "protocol", "profile")
@flag("--system", "System text.", type=str)
@flag(
    "--preset",
    "Preset; `auto` by default. [SURECALL_PRESET]",
    multiple=True,
    complete=complete_presets,
)
@flag(
    "--option KEY=VALUE",
    "Any option of a run. [SURECALL_OPTIONS__KEY]",
    to="options",
    multiple=True,
)
@flag("--stream/--no-stream", "Stream every turn. [SURECALL_STREAM]", default=None)
@flag("--max-turns", "Stop the run after this many requests.", type=int)
@flag("--temperature", "How varied replies may be.", type=float)
@flag("--max-tokens", "How long one reply may be.", type=int)
@flag("--seed", "For replies that can be repeated, where that is possible.", type=int)
@flag("--stop", "Text at which a reply ends; may be repeated.", multiple=True)
@flag(
    "--header NAME=VALUE", "Header of every request; may be repeated.", to="headers", multiple=True
)
@flag(
    "--timeout SECONDS",
    "How long one request may take.",
    type=click.FloatRange(min=0, min_open=True),
)
@flag("--journal FILE", "Record the run, so that it can be resumed.")
@flag("--trace FILE", "Save a trace for `surecall replay`.")
@pass_output
def run(
    output: Output,
    *,
    question: str,
    tool_files: tuple[str, ...],
    servers: tuple[str, ...],
    mcp_pins: str | None,
    system: str | None,
    preset: tuple[str, ...],
    options: tuple[str, ...],
    max_turns: int | None,
    temperature: float | None,
    max_tokens: int | None,
    seed: int | None,
    stop: tuple[str, ...],
    headers: tuple[str, ...],
    timeout: float | None,
    journal: str | None,
    trace: str | None,
    **settings: Any,
) -> ExitCode:
    """Ask a model QUESTION and let it use your tools; `-` reads the question from input.

    The answer goes to standard output, progress to standard error. Settings come from
    surecall.toml, then SURECALL_* variables; flags win.
    """
    config = load_config(
        overrides={
            **settings,
            "preset": list(preset) or None,
            "headers": _parse_headers(headers),
            "deadlines": {"total_s": timeout},
        }
    )
    named = {
        "max_turns": max_turns,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "seed": seed,
        "stop": list(stop) or None,
    }
    given = parse_options(options)
    given |= {name: value for name, value in named.items() if value is not None}
    check_options(fold_parameters(given))
    prompt = _read_question(question)
    tools: list[Any] = [tool for file in tool_files for tool in load_tools(file)]
    tools += _open_servers(output, servers, mcp_pins)
    places = _choose_places(config, journal, trace)
    listener, end_progress = _listener(output)

    transport = _simulate(config)

    async def ask() -> RunResult:
        async with Session(
            config=config, tools=tools, system=system, transport=transport
        ) as session:
            return await session.run(
                prompt, on_event=listener, journal=places.journal, run_id=places.run_id, **given
            )

    try:
        with contextlib.redirect_stdout(output.stderr):
            try:
                result = asyncio.run(ask())
            finally:
                end_progress()
    except SurecallError as error:
        _save(output, getattr(error, "trace", None), places.trace)
        raise
    except KeyboardInterrupt:
        return _report_interrupt(output, places.journal)
    saved = _save(output, result.trace, places.trace)
    _answer(output, result, saved)
    if result.empty:
        return ExitCode.NO_ANSWER
    return ExitCode.PARTIAL if places.trace and not saved else ExitCode.OK


def _simulate(config: Config) -> "SimulatedTransport | None":
    """Return a simulated model for `zoo:NAME` and `faults:NAME`, unless a server has them."""
    kind, _, name = (config.model or "").partition(":")
    if config.base_url or kind not in {"zoo", "faults"}:
        return None
    from surecall.faults import SimulatedTransport, find_behaviour, find_fault

    _ = find_behaviour(name) if kind == "zoo" else find_fault(name)
    return SimulatedTransport()


def _open_servers(output: Output, servers: tuple[str, ...], pins: str | None) -> list[Any]:
    if not servers:
        if pins is not None:
            raise click.UsageError("--mcp-pins is for the tools of --mcp.")
        return []
    from surecall.tools.mcp import mcp_tools, silence_sdk

    if not output.debug:
        silence_sdk()
    return [mcp_tools(target, pins=pins) for target in servers]


def _read_question(question: str) -> str:
    prompt = sys.stdin.read() if question == "-" else question
    if not prompt.strip():
        raise invalid_option(
            "the question is empty.",
            'For example: surecall run "What is new?"; `-` reads it from standard input.',
        )
    return prompt


def _parse_headers(headers: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for header in headers:
        name, equals, value = header.partition("=")
        if not equals or not name.strip():
            raise invalid_option(
                f"--header {header!r} has no name and value.", "Write it like NAME=VALUE."
            )
        found[name.strip()] = value.strip()
    return found


def _listener(output: Output) -> tuple[Callable[[Event], None] | None, Callable[[], None]]:
    if output.json:
        return output.data, lambda: None
    if output.quiet:
        return None, lambda: None
    progress = Progress(output.people(), live=output.stderr.isatty(), tells_end=False)
    return progress, progress.stop


def _save(output: Output, trace: Trace | None, place: Path | None) -> str | None:
    if trace is None or place is None:
        return None
    try:
        with explain_write_errors(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        save_trace(trace, place)
    except ConfigError as error:
        output.problem(error.code, f"the trace was not saved: {error.message}", error.hint)
        return None
    return str(place)


def _answer(output: Output, result: RunResult, saved: str | None) -> None:
    if output.json:
        output.data(render_result(result) | {"trace_file": saved})
        return
    if not output.quiet:
        progress = Progress(output.people())
        for key in result.trace.ignored_overrides:
            what = f"request_overrides.{key}: surecall sets this itself"
            progress.say("!", "ignored", what, "yellow")
        progress.show_losses(result.trace.schema_losses)
        if result.empty:
            progress.say("!", "empty", "the answer has no text", "yellow")
        if result.cut:
            progress.say("!", "cut", "the answer stopped at a token limit", "yellow")
        if result.receipts:
            changes = f"{len(result.receipts)} in what the model sent"
            progress.say("~", "changes", changes, "yellow")
        if saved:
            progress.say("·", "trace", saved, crop=False)
    output.text(result.text)


def render_result(result: RunResult) -> dict[str, Any]:
    """Return the last line of a run as JSON: the answer, and every call with its outcome."""
    calls = [
        {
            **select_fields(call, "id", "name", "arguments", "sent", "changed_by", "receipts"),
            **select_fields(answer, "ok", "executed", "elapsed_ms"),
            "errors": answer.envelope.errors,
        }
        for call, answer in zip(result.calls, result.results, strict=True)
    ]
    own = ("text", "run_id", "turns", "usage", "finish_reason", "cut", "empty", "elapsed_ms")
    return {
        "type": "result",
        **select_fields(result, *own),
        **select_fields(result.trace, "fingerprint", "ignored_overrides", "schema_losses"),
        "calls": calls,
        "changes": len(result.receipts),
    }


def _report_interrupt(output: Output, journal: str | None) -> ExitCode:
    resume = f"the same command with --journal {shlex.quote(journal)}" if journal else None
    if output.json:
        output.data({"type": "interrupted", "journal_file": journal, "resume": resume})
        return ExitCode.INTERRUPTED
    progress = Progress(output.people())
    how = f"to resume: {resume}" if resume else "without --journal it cannot be resumed"
    progress.say("✗", "stopped", "interrupted", "red", detail=how, crop=False)
    return ExitCode.INTERRUPTED
