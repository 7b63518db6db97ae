"""`surecall read`: one recorded reply explained, from bytes to execution."""

from typing import Any, Final, get_args

import click
from msgspec.structs import replace

from surecall.base.errors import ProviderError
from surecall.base.records import Reading
from surecall.calls import ToolNames
from surecall.reading import Accept, read_reply

from .flags import pass_output
from .output import ExitCode, Output, select_fields
from .progress import Progress
from .reading_page import STRUCTURED, ReadingPage
from .recorded import (
    Arrival,
    Outcome,
    Verdict,
    judge_calls,
    judge_reading,
    parse_arrival,
    read_input,
)
from .suggestions import complete_files, complete_protocols
from .terminal import save_svg
from .tool_files import load_offered_tools

_WIDTH: Final = 100
_MAX_EXCERPT_BYTES: Final = 2000


@click.command
@click.argument("file", shell_complete=complete_files)
@click.option(
    "--tools",
    "tool_files",
    multiple=True,
    metavar="FILE",
    shell_complete=complete_files,
    help="Tools that were offered: tool objects of any wire format in JSON, or a Python file.",
)
@click.option(
    "--protocol",
    metavar="NAME",
    shell_complete=complete_protocols,
    help="The wire format, where FILE does not tell it.",
)
@click.option("--choice", type=int, metavar="N", help="Which of several choices, from 0.")
@click.option(
    "--accept",
    type=click.Choice(get_args(Accept)),
    default="certain",
    help="Whether to take calls that the text only probably makes.",
)
@click.option("--finish-reason", help="Why the model stopped; overrides FILE.")
@click.option("--generation-prompt", help="What the template already opened, such as `<think>`.")
@click.option("--format-only", is_flag=True, help="Print only the format of the calls.")
@click.option(
    "--svg",
    metavar="FILE",
    shell_complete=complete_files,
    help="Save a picture of the terminal as SVG.",
)
@pass_output
def read(
    output: Output,
    *,
    file: str,
    tool_files: tuple[str, ...],
    protocol: str | None,
    choice: int | None,
    accept: Accept,
    finish_reason: str | None,
    generation_prompt: str | None,
    format_only: bool,
    svg: str | None,
) -> ExitCode:
    """Explain the reply in FILE, from bytes to execution; `-` reads standard input.

    FILE is the text a model wrote; or a message, a choice, a whole body or a recorded stream of a
    chat completion, a response, a message or generated content. Nothing is sent and no tool is
    run. Exits with 1 if anything would be refused.
    """
    if svg is not None and (output.json or format_only):
        words = "--svg is a picture of the page; leave out --json and --format-only."
        raise click.UsageError(words)
    tools = load_offered_tools(tool_files)
    has_tools = len(tools) > 0
    arrival = parse_arrival(read_input(file), protocol, choice)
    reading = Reading()
    outcomes: tuple[Outcome, ...] = ()
    if arrival.reply is not None:
        stopped = {"finish_reason": finish_reason} if finish_reason else {}
        reply = replace(arrival.reply, **stopped)
        names = ToolNames(tools.specs(), is_unknown=not has_tools)
        reading = read_reply(reply, tools=names, accept=accept, generation_prompt=generation_prompt)
        outcomes = judge_calls(reading, tools)
    if format_only:
        return _tell_format(output, reading, has_tools=has_tools)
    verdict = judge_reading(reading, outcomes, has_tools=has_tools)
    if arrival.error is not None:
        verdict = _no_reply(arrival.error)
    if output.json:
        output.data(_render(arrival, reading, outcomes, verdict, generation_prompt))
    else:
        console = output.page(record=svg is not None)
        console.width = min(console.width, _WIDTH) if svg is None else _WIDTH
        page = ReadingPage(console)
        _show(page, arrival, reading, outcomes, tools.names, generation_prompt)
        page.show_verdict(verdict, has_tools=has_tools)
        if svg is not None:
            save_svg(console, "surecall read", svg)
    return ExitCode.OK if verdict.ok else ExitCode.NO_ANSWER


def _no_reply(error: ProviderError) -> Verdict:
    return Verdict(
        ok=False,
        is_checked=False,
        summary=f"no reply ({error.code}); nothing in it would be used",
        codes=(error.code,),
        error=select_fields(error, "code", "message", "hint"),
    )


def _formats(reading: Reading) -> list[str]:
    return list(dict.fromkeys(call.format for call in reading.calls))


def _tell_format(output: Output, reading: Reading, *, has_tools: bool) -> ExitCode:
    names = _formats(reading)
    if output.json:
        output.data({"type": "format", "names": names, "is_checked": has_tools})
        return ExitCode.OK
    if not names and not has_tools and not output.quiet:
        words = "without --tools, only calls in markup are found"
        Progress(output.people()).say("!", "no tools", words, "yellow")
    output.text("\n".join(names) or "none")
    return ExitCode.OK


def _show(
    page: ReadingPage,
    arrival: Arrival,
    reading: Reading,
    outcomes: tuple[Outcome, ...],
    tools: tuple[str, ...],
    generation_prompt: str | None,
) -> None:
    page.show_head()
    page.show_arrival(arrival, reading.finish_reason)
    if arrival.error is not None:
        page.show_no_reply(arrival.error)
        return
    page.show_format(reading, tools, generation_prompt)
    for number, outcome in enumerate(outcomes, 1):
        page.show_call(number, outcome)
    page.show_content(reading.content)
    page.show_defects(reading)


def _render(
    arrival: Arrival,
    reading: Reading,
    outcomes: tuple[Outcome, ...],
    verdict: Verdict,
    generation_prompt: str | None,
) -> dict[str, Any]:
    names = _formats(reading)
    return {
        "type": "reading",
        "arrived": {
            "kind": arrival.kind,
            "protocol": None if arrival.kind == "text" else arrival.protocol,
            "bytes": len(arrival.data),
            "excerpt": arrival.data[:_MAX_EXCERPT_BYTES].decode("utf-8", "backslashreplace"),
            "finish_reason": reading.finish_reason,
        },
        "format": {
            "names": names,
            "in_text": bool(names) and not STRUCTURED.issuperset(names),
            "generation_prompt": generation_prompt,
        },
        "calls": [_render_call(outcome) for outcome in outcomes],
        **select_fields(reading, "content", "reasoning", "receipts", "defects", "seen"),
        "verdict": verdict,
    }


def _render_call(outcome: Outcome) -> dict[str, Any]:
    fields = ("id", "name", "format", "state", "arguments", "raw", "receipts")
    return {
        **select_fields(outcome.call, *fields),
        "outcome": outcome.what,
        "errors": outcome.result.envelope.errors if outcome.result is not None else (),
        "told": outcome.result.text if outcome.result is not None else None,
    }
