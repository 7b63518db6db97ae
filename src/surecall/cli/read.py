"""`surecall read`: one recorded reply explained, from bytes to execution."""

import asyncio
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args

import click
from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError, ProviderError
from surecall.base.limits import MIB
from surecall.base.records import Reading, Receipt, Reply, ToolCall, ToolResult
from surecall.base.redaction import mask_known
from surecall.calls import ToolNames
from surecall.models.config import know_keys
from surecall.reading import Accept, InputKind, parse_input, read_reply, tell_input
from surecall.text import encode_text
from surecall.tools import Dispatcher, MaskedRegistry, ToolContext

from .console import ExitCode, Output, select_fields
from .event_lines import Progress, count_of, describe_error, shorten_pair
from .flags import flag, invalid_option, pass_output
from .suggestions import complete_files, complete_protocols
from .terminal import bounded, escape_json, line_of, printable, save_svg, shown_value, styled
from .tool_files import load_offered_tools

MAX_INPUT_BYTES: Final = 10 * MIB

_MARK: Final = b"\xef\xbb\xbf"


class Arrival(Struct, frozen=True, kw_only=True):
    """Something that was recorded, and the reply in it or why there is none."""

    kind: InputKind
    protocol: str
    data: bytes
    reply: Reply | None = None
    error: ProviderError | None = None


def read_input(place: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`.

    Raises:
        ConfigError: The file cannot be read, is empty, or is too large.
    """
    shown = "Standard input" if place == "-" else f"The file {place}"
    try:
        if place == "-":
            data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        else:
            with Path(place).open("rb") as file:
                data = file.read(MAX_INPUT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        hint = "Name a file that can be read, or `-` for standard input."
        raise invalid_option(f"{shown} cannot be read: {reason}.", hint) from error
    if len(data) > MAX_INPUT_BYTES:
        size = f"{MAX_INPUT_BYTES // MIB} MiB"
        raise invalid_option(
            f"{shown} is larger than {size}.", "Give one reply, not a log of many."
        )
    if not data.removeprefix(_MARK).strip():
        raise invalid_option(f"{shown} is empty.", "Give what a model or provider sent.")
    know_keys()
    return mask_known(data)


def parse_arrival(data: bytes, protocol: str | None = None, choice: int | None = None) -> Arrival:
    """Find out what was recorded, and the reply in it.

    Raises:
        ConfigError: It is text that is not UTF-8, a message that no model wrote, or has no such
            choice.
    """
    found = tell_input(data, protocol)
    try:
        reply, error = parse_input(found, choice), None
    except ProviderError as problem:
        reply, error = None, problem
    return Arrival(kind=found.kind, protocol=found.protocol, data=data, reply=reply, error=error)


_WORDS: Final = {
    "would_run": "would run",
    "not_checked": "readable, not checked against tools",
    "refused": "refused",
}


class Outcome(Struct, frozen=True, kw_only=True):
    """The outcome of one call in a run."""

    call: ToolCall
    what: Literal["would_run", "refused", "not_checked"]
    codes: tuple[str, ...] = ()
    result: ToolResult | None = None
    """The result that the model would read, when the call is refused."""


class Verdict(Struct, frozen=True, kw_only=True):
    """The outcome of the whole reply in a run."""

    ok: bool
    """Whether nothing is refused."""
    is_checked: bool
    """Whether the tools were there to check against."""
    summary: str
    calls: int = 0
    would_run: int = 0
    refused: int = 0
    not_checked: int = 0
    codes: tuple[str, ...] = ()
    changes: int = 0
    lossy_changes: int = 0
    error: dict[str, Any] | None = None
    """Why there is no reply at all, when that is so."""


def grade_calls(reading: Reading, tools: MaskedRegistry) -> tuple[Outcome, ...]:
    """Send every call through the checks of a run; behind them is nothing that acts."""
    return asyncio.run(_dispatch(reading.calls, tools)) if reading.calls else ()


async def _dispatch(calls: tuple[ToolCall, ...], tools: MaskedRegistry) -> tuple[Outcome, ...]:
    dispatcher = Dispatcher(tools)
    outcomes: list[Outcome] = []
    for call in calls:
        result = await dispatcher.dispatch(call, ToolContext(call_id=call.id))
        codes = result.envelope.error_codes
        if result.executed:
            outcomes.append(Outcome(call=call, what="would_run"))
        elif not len(tools) and codes == (Code.TOOL_NOT_ALLOWED,):
            outcomes.append(Outcome(call=call, what="not_checked"))
        else:
            outcomes.append(Outcome(call=call, what="refused", codes=codes, result=result))
    return tuple(outcomes)


def grade_reading(reading: Reading, outcomes: tuple[Outcome, ...], *, has_tools: bool) -> Verdict:
    """Count what would happen, and say it in one line."""
    counts = {what: sum(outcome.what == what for outcome in outcomes) for what in _WORDS}
    codes = tuple(dict.fromkeys(str(code) for outcome in outcomes for code in outcome.codes))
    receipts = [*reading.receipts, *(item for call in reading.calls for item in call.receipts)]
    parts: list[str] = []
    for what, words in _WORDS.items():
        named = f"{words} ({', '.join(codes)})" if what == "refused" else words
        if counts[what]:
            parts.append(named if len(outcomes) == 1 else f"{counts[what]} {named}")
    calls = f"{count_of(len(outcomes), 'call')}: {', '.join(parts)}" if parts else "no calls"
    if not parts and not has_tools and reading.content:
        calls = "no calls; without tools, only markup was looked at"
    return Verdict(
        ok=not counts["refused"],
        is_checked=has_tools,
        summary=f"{calls}; {_changes_text(receipts)}",
        calls=len(outcomes),
        would_run=counts["would_run"],
        refused=counts["refused"],
        not_checked=counts["not_checked"],
        codes=codes,
        changes=len(receipts),
        lossy_changes=sum(not receipt.lossless for receipt in receipts),
    )


def _changes_text(receipts: list[Receipt]) -> str:
    if not receipts:
        return "no changes"
    lossy = sum(not receipt.lossless for receipt in receipts)
    if len(receipts) == 1:
        return "1 change, lossy" if lossy else "1 change, lossless"
    which = f"{lossy} of them lossy" if lossy else "all lossless"
    return f"{len(receipts)} changes, {which}"


def indent_json(value: Any, room: int) -> list[str]:
    """Return a JSON value as one line of at most `room` characters, or as indented lines."""
    try:
        whole = escape_json(encode_text(value, indent=0))
        if len(whole) <= room:
            return [whole]
        return escape_json(encode_text(value, indent=2)).split("\n")
    except JSONTextError:
        return [line_of(repr(value))]


STRUCTURED: Final = frozenset({"tool_calls", "function_call"})
"""Formats that are fields of the message, not text."""

_KINDS: Final = {
    "text": "plain text",
    "message": "an assistant message",
    "choice": "one choice",
    "body": "a whole reply",
    "stream": "a stream of events",
}
_OF: Final = {
    "chat_completions": "a chat completion",
    "gemini": "generated content",
    "messages": "a message",
    "responses": "a response",
}
_LABELS: Final = {"text": "text", "stream": "events"}
_MAX_ARRIVED_ROWS: Final = 8
_MAX_TEXT_ROWS: Final = 4
_MAX_ARGUMENT_ROWS: Final = 40
_MAX_ITEMS: Final = 50
_MIN_PAIR: Final = 32
_RUN_HINT: Final = "read where tools are offered, unless text_formats is off"


class ReadingPage(Progress):
    """Shows one reply step by step on a console."""

    def show_head(self) -> None:
        """Show what the page is about."""
        what = "  one reply, from bytes to execution; nothing is run"
        line = styled(("surecall read", "bold"), (what, "dim"))
        self._console.print(line, no_wrap=True, overflow="ellipsis")

    def show_arrival(self, arrival: Arrival, finish_reason: str | None) -> None:
        """Show the bytes that were given."""
        text = arrival.data.decode("utf-8", "backslashreplace").rstrip("\r\n")
        size = f"{len(arrival.data):,} {'byte' if len(arrival.data) == 1 else 'bytes'}"
        lines = count_of(text.count("\n") + 1, "line")
        finish = f"finish_reason {finish_reason}" if finish_reason else "no finish_reason"
        kind = _KINDS[arrival.kind]
        if arrival.kind != "text":
            kind = f"{kind} of {_OF[arrival.protocol]}"
        self._section(kind, "arrived", f"{size} · {lines} · {finish}")
        self._rows("←", _LABELS.get(arrival.kind, "json"), text, _MAX_ARRIVED_ROWS)

    def show_no_reply(self, error: ProviderError) -> None:
        """Show why there is no reply in what arrived."""
        self._section("not a reply", "reply")
        self.say("✗", "refused", error.code, "red", detail="nothing in it would be used")
        self._words("", error.message)
        if error.hint:
            self._words("", error.hint)

    def show_format(self, reading: Reading, tools: Sequence[str], prompt: str | None) -> None:
        """Show which format was seen, and the reasoning that was split off."""
        formats = dict.fromkeys(call.format for call in reading.calls)
        if not formats:
            not_searched = "without --tools, only calls in markup are found"
            self._section("none", "format", "no call was found" if tools else not_searched)
        else:
            structured = STRUCTURED.issuperset(formats)
            where = "the field for tool calls" if structured else "written as text"
            self._section(", ".join(formats), "format", where)
            if not structured:
                self.say("·", "in a run", "", detail=_RUN_HINT)
        if tools:
            self.say("·", "tools", bounded(", ".join(tools), self.room))
        if prompt:
            self.say("·", "prompt", bounded(prompt, self.room))
        if reading.reasoning:
            self._rows("·", "reasoning", reading.reasoning.strip(), _MAX_TEXT_ROWS)
        self._receipts(reading.receipts)

    def show_call(self, number: int, outcome: Outcome) -> None:
        """Show one call: its changes, its arguments, and what a run would do with it."""
        call = outcome.call
        self._section(call.name or "(no name)", f"call {number}", call.id)
        self._receipts(call.receipts)
        if call.arguments is not None:
            self._arguments(call.arguments)
        else:
            self._rows("?", "arguments", shown_value(call.raw), _MAX_TEXT_ROWS)
        if outcome.what == "would_run":
            self.say("✓", "would run", "complete, and the arguments fit the tool", "green")
        elif outcome.what == "not_checked":
            words = "complete; name and arguments are only checked with --tools"
            self.say("·", "readable", words)
        else:
            self._show_refusal(outcome)

    def show_content(self, text: str) -> None:
        """Show the text a user would see."""
        if not text.strip():
            return
        self._section("what a user would see", "content", count_of(len(text), "character"))
        self._rows("·", "text", text.strip("\n"), _MAX_ARRIVED_ROWS)

    def show_defects(self, reading: Reading) -> None:
        """Show what was unusual about the shape of the reply."""
        if not reading.defects:
            return
        self._section("unusual, but not refused", "defects")
        shown = reading.defects[:_MAX_ITEMS]
        column = max(len(defect.code) for defect in shown)
        for defect in shown:
            words = f"{defect.message}  {defect.place}".rstrip()
            if column + 2 + len(words) <= self.room:
                self.say("!", "defect", f"{defect.code:<{column}}", "yellow", detail=words)
            else:
                self.say("!", "defect", defect.code, "yellow", detail=defect.place)
                self._words("", defect.message)
        self._more(len(reading.defects) - _MAX_ITEMS, "defect")

    def show_verdict(self, verdict: Verdict, *, has_tools: bool) -> None:
        """Show the one line that counts, and where to go from here."""
        sign = ("✗ ", "bold red")
        if verdict.ok:
            sign = ("✓ ", "bold green") if verdict.is_checked else ("! ", "bold yellow")
        self._console.print()
        self._console.print(styled(sign, (line_of(verdict.summary), "bold")))
        ways = [(f"surecall docs {code}", "what the code means") for code in verdict.codes[:3]]
        if not has_tools and verdict.error is None:
            what = "check names and arguments" if verdict.calls else "find calls in text"
            ways.append(("surecall read … --tools FILE", what))
        if ways:
            self._console.print()
        for command, what in ways:
            line = styled("  ", (f"{command:<42}", "bold"), (what, "dim"))
            self._console.print(line, no_wrap=True, overflow="ellipsis")

    def _section(self, title: str, gutter: str, detail: str = "") -> None:
        self._console.print()
        self.title(title, gutter, detail=detail)

    def _rows(self, symbol: str, label: str, text: str, max_rows: int) -> None:
        rows = list(_rows_of(text, self.room, max_rows + 1))
        self.say_rows(symbol, label, rows[:max_rows] or [""])
        if len(rows) > max_rows:
            self.say(" ", "", "", detail="…")

    def _words(self, label: str, words: str) -> None:
        clipped = line_of(words.strip())
        for number, row in enumerate(textwrap.wrap(clipped, self.room, max_lines=6)):
            self.say(" ", "" if number else label, "", detail=row)

    def _more(self, number: int, noun: str) -> None:
        if number > 0:
            self.say(" ", "", "", detail=f"and {count_of(number, f'more {noun}')}")

    def _receipts(self, receipts: Sequence[Receipt]) -> None:
        shown = receipts[:_MAX_ITEMS]
        rules = max((len(receipt.rule) for receipt in shown), default=0)
        places = max((len(receipt.place) for receipt in shown), default=0)
        column = rules + (2 + places if places else 0)
        beside = self.room - column - 2 >= _MIN_PAIR
        indent = column + 2 if beside else 0
        for receipt in shown:
            style = "yellow" if receipt.lossless else "bold red"
            label = "lossless" if receipt.lossless else "lossy"
            pair = _pair(receipt, self.room - indent)
            if beside:
                head = f"{receipt.rule:<{rules}}  {receipt.place}"
                self.say("~", label, f"{head:<{column}}", style, detail=pair)
            else:
                self.say("~", label, f"{receipt.rule}  {receipt.place}".rstrip(), style)
                self.say(" ", "", "", detail=pair)
            if receipt.why:
                why = bounded(receipt.why, self.room - indent)
                self.say(" ", "", "", detail=" " * indent + why)
        self._more(len(receipts) - _MAX_ITEMS, "change")

    def _arguments(self, arguments: dict[str, Any]) -> None:
        rows = indent_json(arguments, self.room)
        shown = (bounded(row, self.room) for row in rows[:_MAX_ARGUMENT_ROWS])
        self.say_rows("=", "arguments", shown, "cyan")
        self._more(len(rows) - _MAX_ARGUMENT_ROWS, "line")

    def _show_refusal(self, outcome: Outcome) -> None:
        codes = ", ".join(dict.fromkeys(outcome.codes))
        reason = _reason(outcome)
        fits = len(codes) + 2 + len(reason) <= self.room
        self.say("✗", "refused", codes, "red", detail=reason if fits else "")
        if not fits:
            self._words("", reason)
        errors = outcome.result.envelope.errors if outcome.result is not None else ()
        for number, error in enumerate(errors[:_MAX_ITEMS]):
            self._words("" if number else "to model", describe_error(error))
            if error.hint:
                self._words("", error.hint)


def _rows_of(text: str, room: int, max_rows: int) -> Iterator[str]:
    """Yield the first lines of a text, safe for a terminal and folded to the room there is."""
    given = 0
    for line in printable(text[: room * max_rows]).split("\n"):
        for row in _fold(line.expandtabs(4), room):
            if given == max_rows:
                return
            given += 1
            yield row


def _fold(line: str, room: int) -> list[str]:
    """Break a line between words where there are any; every character is kept."""
    rows = textwrap.wrap(
        line, room, drop_whitespace=False, replace_whitespace=False, break_on_hyphens=False
    )
    return rows or [""]


def _pair(receipt: Receipt, room: int) -> str:
    before, after = receipt.before, receipt.after
    if isinstance(before, str) and isinstance(after, str):
        return shorten_pair(_visible(before), _visible(after), room)
    # As JSON, so that "3" and 3 do not look the same.
    return shorten_pair(_quote(before), _quote(after), room)


def _visible(text: str) -> str:
    return text if text.strip() else _quote(text) if text else "(nothing)"


def _quote(value: Any) -> str:
    try:
        return encode_text(value)
    except JSONTextError:
        return repr(value)


def _reason(outcome: Outcome) -> str:
    if outcome.call.state == "cut":
        return "the call was cut off, and a cut call never runs"
    if outcome.call.state == "unreadable":
        return "the arguments cannot be read, so it does not run"
    if Code.TOOL_NOT_ALLOWED in outcome.codes:
        return "no tool with this name was offered"
    return "complete, but it does not fit the tool, so it does not run"


_WIDTH: Final = 100
_MAX_EXCERPT_BYTES: Final = 2000


@click.command
@click.argument("file", shell_complete=complete_files)
@flag(
    "--tools FILE",
    "Tools that were offered: tool objects of any wire format in JSON, or a Python file.",
    to="tool_files",
    multiple=True,
)
@flag(
    "--protocol NAME", "The wire format, where FILE does not tell it.", complete=complete_protocols
)
@flag("--choice N", "Which of several choices, from 0.", type=int)
@flag(
    "--accept",
    "Whether to take calls that the text only probably makes.",
    default="certain",
    choices=get_args(Accept),
)
@flag("--finish-reason", "Why the model stopped; overrides FILE.", type=str)
@flag("--generation-prompt", "What the template already opened, such as `<think>`.", type=str)
@flag("--format-only", "Print only the format of the calls.")
@flag("--svg FILE", "Save a picture of the terminal as SVG.")
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
        outcomes = grade_calls(reading, tools)
    if format_only:
        return _tell_format(output, reading, has_tools=has_tools)
    verdict = grade_reading(reading, outcomes, has_tools=has_tools)
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
