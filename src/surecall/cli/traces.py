"""`surecall replay`: a recorded run decided again, or one of its requests sent again."""

import asyncio
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click
import msgspec

from surecall.base.records import ToolCall
from surecall.loop import Replay, Trace, TurnTrace, load_trace, replay_trace, resend_turn
from surecall.loop.replay import Resent
from surecall.loop.resolve import make_transport
from surecall.models.config import know_keys, load_config
from surecall.wire import find_protocol

from .console import ExitCode, Output, select_fields
from .event_lines import Progress, call_text, count_of, duration_text
from .flags import flag, pass_output, settings_flags
from .suggestions import complete_files
from .terminal import bounded, printable

if TYPE_CHECKING:
    from rich.console import Console


@click.command
@click.argument("trace_file", metavar="TRACE", shell_complete=complete_files)
@flag("--send", "Send the request of one turn to the provider again.")
@flag("--turn", "Which turn to send, counted from 0. [default: 0]", type=int)
@settings_flags("base_url")
@pass_output
def replay(
    output: Output, trace_file: str, send: bool, turn: int | None, base_url: str | None
) -> ExitCode:
    """Replay the decisions of the run in TRACE, without a provider and without running tools.

    Exits with 1 if any decision differs from the recorded one. With --send, one request is sent
    to the provider again and both replies are shown; no tool is run.
    """
    if not send and (turn is not None or base_url is not None):
        raise click.UsageError("--turn and --base-url are for --send.")
    know_keys()
    trace = load_trace(trace_file)
    if send:
        with output.waiting("waiting for the model"):
            resent = asyncio.run(_send(trace, turn or 0, base_url))
        return _show_resent(output, resent, turn or 0)
    replayed = replay_trace(trace)
    if output.json:
        output.data(_render_replay(trace, replayed))
    else:
        console = output.page()
        progress = Progress(console)
        for recorded in trace.turns:
            _show_turn(progress, recorded)
        progress.show_losses(trace.schema_losses)
        _show_ending(console, progress, trace, replayed)
    return ExitCode.OK if replayed.same else ExitCode.NO_ANSWER


async def _send(trace: Trace, turn: int, base_url: str | None) -> Resent:
    config = load_config(overrides={"base_url": base_url, "model": trace.model})
    protocol = find_protocol(trace.protocol)
    transport = make_transport(config, protocol)
    try:
        return await resend_turn(trace, turn, transport, protocol=protocol)
    finally:
        await transport.aclose()


def _show_turn(progress: Progress, turn: TurnTrace) -> None:
    summary = turn.response_summary
    finish = f"finish_reason {summary.finish_reason}" if summary else "no reply"
    progress.title(f"{finish}  {duration_text(turn.elapsed_ms)}", f"turn {turn.turn}")
    for failure in turn.failures:
        progress.say("✗", "no reply", failure.code, "red", detail=failure.message)
    if turn.defects:
        codes = dict.fromkeys(defect.code for defect in turn.defects)
        progress.say("!", "defects", ", ".join(codes), "yellow")
    for receipt in turn.receipts:
        progress.show_change(receipt)
    results = {result.call_id: result for result in turn.results}
    for call in turn.calls:
        for receipt in call.receipts:
            progress.show_change(receipt)
        progress.say("→", "call", bounded(call_text(call), 400), "cyan")
        result = results.get(call.id)
        if result is None:
            progress.say("!", "no result", "none was recorded", "yellow")
        elif result.ok:
            progress.say("✓", "ok", duration_text(result.elapsed_ms), "green")
        else:
            progress.show_refusal(result.envelope.errors, executed=result.executed)
    for call in turn.ignored_calls:
        progress.say("!", "ignored", bounded(call_text(call), 400), "yellow")


def _show_ending(console: "Console", progress: Progress, trace: Trace, replayed: Replay) -> None:
    console.print()
    if replayed.text is not None:
        lines = printable(replayed.text).splitlines() or [""]
        progress.title(lines[0], "answer")
        for line in lines[1:]:
            console.print(line)
        console.print()
    if trace.error is not None:
        progress.say("✗", "ended", trace.error.code, "red", detail=trace.error.message)
    count = count_of(replayed.turns, "turn")
    if replayed.same:
        progress.say("✓", "same", f"{count}: every decision is as recorded", "green")
        return
    for difference in replayed.differences:
        progress.say("✗", "different", difference, "red")


def _render_replay(trace: Trace, replayed: Replay) -> dict[str, Any]:
    turns = [
        {
            "turn": turn.turn,
            "finish_reason": turn.response_summary.finish_reason if turn.response_summary else None,
            "calls": _render_calls(turn.calls),
            "results": turn.tool_results,
            **select_fields(turn, "failures", "receipts", "defects"),
        }
        for turn in trace.turns
    ]
    return {
        "type": "replay",
        **msgspec.to_builtins(replayed),
        "schema_losses": trace.schema_losses,
        "turns": turns,
    }


def _render_calls(calls: tuple[ToolCall, ...]) -> list[dict[str, Any]]:
    fields = ("id", "name", "arguments", "sent", "changed_by", "state", "receipts", "errors")
    return [select_fields(call, *fields) for call in calls]


def _show_resent(output: Output, resent: Resent, turn: int) -> ExitCode:
    recorded, new, accepted = resent.recorded, resent.reading, resent.accepted
    same = _name_calls(recorded.calls) == _name_calls(accepted.calls)
    if output.json:
        output.data(
            {
                "type": "resent",
                "turn": turn,
                "same_calls": same,
                "recorded": {
                    "calls": _render_calls(recorded.calls),
                    "ignored_calls": _render_calls(recorded.ignored_calls),
                },
                "new": {
                    "calls": _render_calls(accepted.calls),
                    "ignored_calls": _render_calls(accepted.ignored),
                    **select_fields(new, "content", "finish_reason", "defects", "receipts"),
                },
                "elapsed_ms": resent.answer.elapsed_ms,
            }
        )
        return ExitCode.OK
    console = output.page()
    now = f"now, {duration_text(resent.answer.elapsed_ms)}"
    left = _list_calls(recorded.calls, recorded.ignored_calls)
    right = _list_calls(accepted.calls, accepted.ignored)
    if new.content.strip():
        right.append(bounded(new.content, 400))
    columns = {f"turn {turn}, recorded": "wide", now: "wide"}
    output.table(columns, zip_longest(left, right, fillvalue=""))
    console.print()
    progress = Progress(console)
    words = "the same calls" if same else "not the recorded calls"
    progress.say("✓" if same else "!", "same" if same else "different", words)
    made = (item for call in accepted.calls for item in call.receipts)
    for receipt in (*new.receipts, *made):
        progress.show_change(receipt)
    return ExitCode.OK


def _list_calls(calls: tuple[ToolCall, ...], ignored: tuple[ToolCall, ...]) -> list[str]:
    lines = [bounded(call_text(call), 400) for call in calls] or ["no call"]
    return lines + [f"ignored: {bounded(call_text(call), 400)}" for call in ignored]


def _name_calls(calls: tuple[ToolCall, ...]) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in calls]
