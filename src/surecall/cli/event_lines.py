"""The events of a run, as calm lines for people: a symbol, a word, and what happened."""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from surecall.base.records import (
    CallRepeated,
    ErrorDetail,
    Event,
    FixEmptyFinal,
    ModelRequestEnded,
    ModelRequestFailed,
    ModelRequestRetried,
    ModelRequestStarted,
    ReasoningDelta,
    Receipt,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolCall,
    ToolCallEnded,
    ToolCallStarted,
    ToolNotExecuted,
)
from surecall.base.records import (
    Final as FinalAnswer,
)
from surecall.exchange.prompting import SchemaLoss

from .terminal import bounded, line_of, shown_value, styled

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

_GUTTER: Final = 7
_LABEL: Final = 9
_INDENT: Final = _GUTTER + _LABEL + 5
_MAX_ERRORS: Final = 3
_MAX_LINES: Final = 3
_MAX_CHANGES: Final = 3
_MAX_VALUE: Final = 60


class Progress:
    """A listener that shows each event worth seeing on a console.

    Args:
        console: Where to show it.
        live: Whether to show what is being waited for; only on a real terminal.
        brief: Whether to leave out lines that a demonstration does not need.
        tells_end: Whether to say why a run failed; a command that ends with the error does so
            itself.
    """

    def __init__(
        self, console: "Console", *, live: bool = False, brief: bool = False, tells_end: bool = True
    ) -> None:
        self._console = console
        self._live = live
        self._brief = brief
        self._tells_end = tells_end
        self._held: ModelRequestFailed | None = None
        self._status: Status | None = None
        self._calls: dict[str, ToolCall] = {}
        self._gutter = ""
        self._received = 0
        self._shows: Mapping[type[Event], Callable[[Any], None]] = {
            RunStarted: self._run_started,
            ModelRequestStarted: self._request_started,
            ModelRequestFailed: self._request_failed,
            ModelRequestRetried: self._request_retried,
            ModelRequestEnded: self._request_ended,
            TextDelta: self._text_arrived,
            ReasoningDelta: self._text_arrived,
            ToolCallStarted: self._call_started,
            ToolCallEnded: self._call_ended,
            CallRepeated: self._call_repeated,
            ToolNotExecuted: self._not_executed,
            FixEmptyFinal: self._final_empty,
            FinalAnswer: self._final,
            RunEnded: self._run_ended,
        }

    def __call__(self, event: Event) -> None:
        """Show the event."""
        if self._held is not None and not isinstance(event, RunEnded):
            self._show_failure(self._held, told=True)
        show = self._shows.get(type(event))
        if show is not None:
            show(event)

    @property
    def room(self) -> int:
        """How many characters of text fit on a line."""
        return max(self._console.width - _INDENT, 20)

    def title(self, text: str, gutter: str = "", *, detail: str = "") -> None:
        """Show a heading, and dimmed what goes with it."""
        self._gutter = gutter or self._gutter
        aside = f"  {line_of(detail)}" if detail else ""
        self._print(styled((line_of(text), "bold"), (aside, "dim")))

    def say(
        self,
        symbol: str,
        label: str,
        text: str,
        style: str = "",
        *,
        detail: str = "",
        crop: bool = True,
    ) -> None:
        """Show one line: a symbol, a word, what happened, and dimmed what goes with it."""
        head = f"{symbol} {label:<{_LABEL}} "
        aside = ("  " if text and detail else "") + line_of(detail)
        self._print(styled((head, style or "dim"), line_of(text), (aside, "dim")), crop=crop)

    def say_all(self, symbol: str, label: str, text: str) -> None:
        """Show the text on as many lines as it takes, up to a few."""
        room = self.room
        line = bounded(text, room * _MAX_LINES)
        rows = [line[start : start + room] for start in range(0, len(line), room)]
        self.say_rows(symbol, label, rows or [""])

    def say_rows(self, symbol: str, label: str, rows: Iterable[str], style: str = "") -> None:
        """Show lines of which only the first has the symbol and the word."""
        for row in rows:
            self.say(symbol, label, row, style)
            symbol, label = " ", ""

    def show_change(self, receipt: Receipt) -> None:
        """Show one change made to what the model sent."""
        where = f" {receipt.place}" if receipt.place else ""
        loss = "" if receipt.lossless else "  (may lose meaning)"
        head = f"{receipt.rule}{where}{loss}"
        room = self._console.width - _INDENT - len(head) - 5
        before, after = shown_value(receipt.before), shown_value(receipt.after)
        if room >= 2 * 16:
            pair = shorten_pair(before, after, room)
            self.say("~", "changed", head, "yellow", detail=pair)
        else:
            self.say("~", "changed", head, "yellow")
            pair = shorten_pair(before, after, self._console.width - _INDENT - 3)
            self.say(" ", "", "", detail=pair)

    def show_changes(self, receipts: Iterable[Receipt]) -> None:
        """Show the changes to one call; many by one rule on one line."""
        rest = list(receipts)
        counts = Counter(receipt.rule for receipt in rest)
        while rest:
            receipt = rest.pop(0)
            rule, count = receipt.rule, counts[receipt.rule]
            if count <= _MAX_CHANGES:
                self.show_change(receipt)
                continue
            lossy = sum(not item.lossless for item in (receipt, *rest) if item.rule == rule)
            loss = f"  ({lossy} may lose meaning)" if lossy else ""
            self.say("~", "changed", f"{rule} ×{count}{loss}", "yellow")
            rest = [item for item in rest if item.rule != rule]

    def show_losses(self, losses: Iterable[SchemaLoss]) -> None:
        """Show what schemas lost where a provider was to hold the model to them, by tool."""
        tools: dict[tuple[str, str], list[SchemaLoss]] = {}
        for loss in losses:
            tools.setdefault((loss.tool, loss.mode), []).append(loss)
        for (tool, mode), found in tools.items():
            kinds = Counter(loss.kind for loss in found)
            counts = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
            places = "; ".join(f"{loss.place or '/'} {loss.keyword}".rstrip() for loss in found)
            self.say("!", "schema", f"{tool}, {mode}: {counts}", "yellow", detail=places)

    def show_refusal(self, errors: Sequence[ErrorDetail], *, executed: bool) -> None:
        """Show why a call failed, or why its tool was not run."""
        label = "failed" if executed else "refused"
        aside = "the model is told why" if executed else "not run; the model is told why"
        for number, error in enumerate(errors[:_MAX_ERRORS]):
            self.say("✗", label, error.code, "red", detail="" if number else aside)
            self._say_details(describe_error(error))
        if len(errors) > _MAX_ERRORS:
            self.say(" ", "", f"and {count_of(len(errors) - _MAX_ERRORS, 'more error')}")

    def _say_details(self, text: str) -> None:
        line = bounded(text, self.room * _MAX_LINES)
        for row in textwrap.wrap(line, self.room, max_lines=_MAX_LINES, placeholder=" …"):
            self.say(" ", "", "", detail=row)

    def stop(self) -> None:
        """Take away what is shown while waiting."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _print(self, line: "Text", *, crop: bool = True) -> None:
        whole = styled((f"{self._gutter:<{_GUTTER}}  ", "bold cyan"), line)
        self._gutter = ""
        if crop:
            self._console.print(whole, no_wrap=True, overflow="ellipsis")
        else:
            self._console.print(whole, soft_wrap=True)

    def _wait_for(self, what: str) -> None:
        if not self._live:
            return
        text = styled((line_of(what), "dim"))
        if self._status is None:
            self._status = self._console.status(text, spinner="dots")
            self._status.start()
        else:
            self._status.update(text)

    # one method for each kind of event

    def _run_started(self, event: RunStarted) -> None:
        if self._brief:
            return
        tools = ", ".join(event.tools) or "no tools"
        resumed = "resumed from its journal" if event.resumed else ""
        self.say("·", "model", event.model, detail=f"{tools}  {resumed}".rstrip())

    def _request_started(self, event: ModelRequestStarted) -> None:
        if not self._brief:
            self._gutter = f"turn {event.turn}"
        self._received = 0
        self._wait_for(f"turn {event.turn}: waiting for the model …")

    def _text_arrived(self, event: TextDelta | ReasoningDelta) -> None:
        self._received += len(event.text)
        kind = "answer" if isinstance(event, TextDelta) else "reasoning"
        self._wait_for(f"turn {event.turn}: {kind}, {count_of(self._received, 'character')} …")

    def _request_failed(self, event: ModelRequestFailed) -> None:
        if self._tells_end:
            self._show_failure(event, told=True)
        else:
            self._held = event  # what follows decides whether it ended the run

    def _show_failure(self, event: ModelRequestFailed, *, told: bool) -> None:
        self._held = None
        status = f"status {event.status}, " if event.status else ""
        took = f"({status}{duration_text(event.elapsed_ms)})"
        words = f"{event.code}  {event.message}" if told else ""
        self.say("✗", "no reply", words, "red", detail=took, crop=False)

    def _request_retried(self, event: ModelRequestRetried) -> None:
        self.say("↻", "retry", "the request is sent again without tools", "yellow")

    def _request_ended(self, event: ModelRequestEnded) -> None:
        parts = [duration_text(event.elapsed_ms)]
        if event.tool_calls_count:
            parts.append(count_of(event.tool_calls_count, "call"))
        if event.usage is not None:
            parts.append(f"{event.usage.input_tokens} + {event.usage.output_tokens} tokens")
        cut = event.finish_reason not in {None, "stop", "tool_calls", "function_call"}
        if cut:
            parts.append(f"finish_reason {event.finish_reason}")
        if not self._brief:
            self.say("!" if cut else "·", "answered", " · ".join(parts), "yellow" if cut else "")
        if event.defect_codes:
            self.say("!", "defects", ", ".join(dict.fromkeys(event.defect_codes)), "yellow")
        self.show_changes(event.receipts)
        if event.ignored_tool_calls_count:
            ignored = count_of(event.ignored_tool_calls_count, "further call")
            self.say("!", "ignored", ignored, "yellow", detail="see the trace")

    def _call_started(self, event: ToolCallStarted) -> None:
        if event.call is not None:
            self._calls[event.tool_call_id] = event.call
        self._wait_for(f"running {event.name} …")

    def _call_ended(self, event: ToolCallEnded) -> None:
        call = self._calls.pop(event.tool_call_id, None)
        self.show_changes(call.receipts if call is not None else ())
        text = call_text(call) if call is not None else f"{event.name}(…)"
        self.say("→", "call", bounded(text, self._console.width - _INDENT), "cyan")
        if event.ok:
            self.say("✓", "ok", duration_text(event.elapsed_ms), "green")
        else:
            errors = event.errors or tuple(ErrorDetail(code, "") for code in event.error_codes)
            self.show_refusal(errors, executed=event.executed)

    def _call_repeated(self, event: CallRepeated) -> None:
        times = f"{event.name}, {event.count} times with the same arguments"
        self.say("!", "repeated", times, "yellow", detail="the model is warned")

    def _not_executed(self, event: ToolNotExecuted) -> None:
        aside = "the model is told why" if event.retrying else "the text is left as it is"
        self.say("!", "not run", line_of(event.snippet, self.room), "yellow")
        self._say_details(event.reason)
        self.say(" ", "", "", detail=aside)

    def _final_empty(self, event: FixEmptyFinal) -> None:
        without = ", without tools" if event.disable_tools else ""
        self.say("↻", "empty", f"the answer is empty; the model is asked again{without}", "yellow")

    def _final(self, event: FinalAnswer) -> None:
        self.say("✓", "answer", count_of(event.assistant_content_bytes, "byte"), "green")

    def _run_ended(self, event: RunEnded) -> None:
        self.stop()
        if self._held is not None:
            self._show_failure(self._held, told=False)
        if self._brief:
            return
        parts = [count_of(event.turns, "turn"), count_of(event.calls, "call")]
        if event.usage.total_tokens:
            parts.append(count_of(event.usage.total_tokens, "token"))
        parts.append(duration_text(event.elapsed_ms))
        self._gutter = "run"
        if event.ok and event.code:
            self.say("…", "waits", event.code, "yellow", detail=" · ".join(parts))
        elif event.ok:
            self.say("✓", "done", " · ".join(parts), "green")
        else:
            self.say(
                "✗", "ended", event.code if self._tells_end else "", "red", detail=" · ".join(parts)
            )


def call_text(call: ToolCall) -> str:
    """Return a call as people write it; unreadable arguments as they came."""
    if call.arguments is None:
        return f"{call.name}  ← {shown_value(call.raw)}"
    pairs = (f"{key}={_literal(value)}" for key, value in call.arguments.items())
    return f"{call.name}({', '.join(pairs)})"


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration_text(elapsed_ms: float) -> str:
    """Return a duration as people say it."""
    return f"{elapsed_ms:.0f} ms" if elapsed_ms < 10_000 else f"{elapsed_ms / 1000:.1f} s"


def _literal(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else shown_value(value)
    return bounded(text, _MAX_VALUE)


def describe_error(error: ErrorDetail) -> str:
    """Return what an error says, and where."""
    words = error.message.strip()
    return f"{error.path}: {words}" if error.path and error.path not in words else words


def shorten_pair(before: str, after: str, room: int) -> str:
    """Return both texts with an arrow between; a short one leaves its room to the other."""
    room = max(room - 3, 8)
    left, right = line_of(before, room), line_of(after, room)
    left = bounded(left, max(room // 2, room - len(right)))
    return f"{left} → {bounded(right, room - len(left))}"
