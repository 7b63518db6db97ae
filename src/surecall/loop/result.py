"""What a run returns, and its events as an async iterator."""

import asyncio
import weakref
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
)
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any, Final, Generic, Never, NoReturn, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import ApprovalError, Code, JSONTextError
from surecall.base.json_values import as_fields
from surecall.base.records import (
    Certainty,
    ErrorDetail,
    Event,
    Message,
    ReasoningDelta,
    Receipt,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
    clip,
    name_changes,
)
from surecall.text import decode
from surecall.tools.approvals import Approval

from .output import OutputMode, OutputReading, T
from .trace import Trace

if TYPE_CHECKING:
    # What is here before Python 3.13 knows no defaults; type checkers know them without it.
    from typing_extensions import TypeVar as TypeVarWithDefault

    R_co = TypeVarWithDefault("R_co", bound="RunResult", covariant=True, default="RunResult")
    Pause_co = TypeVarWithDefault("Pause_co", bound="RunResult", covariant=True, default=Never)
else:
    R_co = TypeVar("R_co", covariant=True)
    Pause_co = TypeVar("Pause_co", covariant=True)


class RunResult(Struct, frozen=True, kw_only=True):
    """The answer of a run, and everything that led to it.

    For example:

        transport = surecall.ScriptedTransport(["Hello."])
        result = surecall.run_sync("Hi", model="small", transport=transport)
        isinstance(result, surecall.RunResult), result.text  # (True, 'Hello.')
    """

    text: str
    history: tuple[Message, ...]
    """The conversation after the run; pass it on to continue."""
    trace: Trace
    usage: Usage
    finish_reason: str | None = None
    pending: tuple[Approval, ...] = ()
    """Approvals that the run waits for: it has no answer, and `surecall.resume` continues it."""
    elapsed_ms: float = 0.0
    text_receipts: tuple[Receipt, ...] = ()
    """The changes of transforms to the text; history and trace have it as the model wrote it."""

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.trace.run_id

    @property
    def code(self) -> str:
        """`APPROVAL_PENDING` when the run waits for a decision; empty when it has its answer."""
        return str(Code.APPROVAL_PENDING) if self.pending else ""

    @property
    def problems(self) -> tuple[ErrorDetail, ...]:
        """Problems for a developer: calls that a limit dropped, an approver that failed."""
        found: list[ErrorDetail] = []
        for turn in self.trace.turns:
            found += [
                ErrorDetail(defect.code, defect.message)
                for defect in turn.defects
                if defect.code == Code.CALLS_IGNORED
            ]
            found += [result.problem for result in turn.results if result.problem is not None]
        return tuple(found)

    @property
    def turns(self) -> int:
        """How many times the model was asked."""
        return len(self.trace.turns)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every accepted call, in order, with the arguments that it ran with.

        `sent` of a call is what the model sent; `changed_by` and `receipts` say what changed it.
        """
        return tuple(call for turn in self.trace.turns for call in turn.calls)

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The result of every accepted call, in the same order."""
        return tuple(result for turn in self.trace.turns for result in turn.results)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Every change to what the model sent."""
        return self.trace.receipts

    @property
    def cut(self) -> bool:
        """Whether the answer stopped at a token limit."""
        return self.finish_reason in {"length", "max_tokens"}

    @property
    def empty(self) -> bool:
        """Whether the answer has no text; what the tools did still counts."""
        return not self.text.strip()

    def __repr__(self) -> str:
        lines = [f"<{type(self).__name__} {self._shown()}: {self._summary()}>"]
        for turn in self.trace.turns:
            for call, result in zip(turn.calls, turn.results, strict=False):
                lines.append(f"  {_call_text(call)} -> {_outcome(result)}{_tell_change(call)}")
            if any(defect.code == Code.CALLS_IGNORED for defect in turn.defects):
                lines += (
                    f"  {_call_text(call)} -> not run: {Code.CALLS_IGNORED}"
                    for call in turn.ignored_calls
                )
        lines += (f"  waits for a decision: {_waiting_text(each)}" for each in self.pending)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(call.name)}</td><td><code>{escape(_arguments_text(call))}</code>"
            f"{escape(_tell_change(call))}</td><td>{escape(_outcome(result))}</td>"
            f"<td>{len(call.receipts)}</td><td>{result.elapsed_ms:.0f} ms</td></tr>"
            for call, result in zip(self.calls, self.results, strict=True)
        )
        table = (
            "<table><thead><tr><th>call</th><th>arguments</th><th>result</th><th>changes</th>"
            f"<th>time</th></tr></thead><tbody>{rows}</tbody></table>"
        )
        return (
            f"<div><p>{escape(self.text)}</p><p><small>{self._summary()}</small></p>"
            f"{table if rows else ''}</div>"
        )

    def _shown(self) -> str:
        return repr(clip(self.text, 80))

    def _summary(self) -> str:
        return (
            f"{_count(self.turns, 'turn')}, {_count(len(self.calls), 'call')}, "
            f"{self.usage.total_tokens} tokens, {self.elapsed_ms:.0f} ms"
        )


class PausedResult(RunResult, frozen=True, kw_only=True):
    """The result of a run that waits for approvals: `pending` lists them.

    It has no answer and no value yet; `surecall.resume` continues it.

        @surecall.tool(approval="required")
        def pay(amount: int) -> str:
            'Pay an amount.'
            return "paid"

        asked = surecall.assistant(None, surecall.tool_call("pay", {"amount": 5}))
        store = surecall.SqliteStore("approvals.db")
        transport = surecall.ScriptedTransport([asked, "Done."])
        wiring = {"tools": [pay], "approvals": store, "transport": transport}
        paused = await surecall.run("Pay 5.", model="small", **wiring)
        [waiting] = paused.pending
        isinstance(paused, surecall.PausedResult), waiting.name  # (True, 'pay')
    """

    if not TYPE_CHECKING:  # for a type checker there is no value to ask for

        def __getattr__(self, name: str) -> NoReturn:
            if name not in _OF_A_VALUE:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            names = ", ".join(dict.fromkeys(each.name for each in self.pending))
            raise ApprovalError(
                Code.APPROVAL_PENDING,
                f"The run {self.run_id!r} has no value yet: {names} waits for a decision.",
                hint="Ask `isinstance(result, PausedResult)` before `result.output`. "
                "Decide with surecall.approve or surecall.deny, then call surecall.resume.",
            )


class OutputResult(RunResult, Generic[T], frozen=True, kw_only=True):
    """The result of a run that ends with a value.

    A run that was given a store for approvals may return a `PausedResult` instead, and a type
    checker demands that you look which it is, with `isinstance`.

        schema = {"type": "array", "items": {"type": "integer"}}
        transport = surecall.ScriptedTransport(["[1, 2]"])
        result = surecall.run_sync("Count", output=schema, model="small", transport=transport)
        isinstance(result, surecall.OutputResult), result.output  # (True, [1, 2])
    """

    output: T
    """The value, as an object of the type that was asked for, or as JSON."""
    value: Any
    """The same as JSON."""

    def _shown(self) -> str:
        return clip(repr(self.output), 200)

    @property
    def attempts(self) -> tuple[OutputReading, ...]:
        """The outcome of every reply that should have been the value; the last one was."""
        return tuple(turn.output for turn in self.trace.turns if turn.output is not None)

    @property
    def certainty(self) -> Certainty:
        """Whether the value was certain, or only likely."""
        return self._last_attempt.certainty

    @property
    def doubt(self) -> str:
        """Why the value is only likely; empty when it is certain."""
        return self._last_attempt.doubt

    @property
    def output_mode(self) -> OutputMode:
        """The way of asking that gave the value."""
        return self._last_attempt.mode

    @property
    def _last_attempt(self) -> OutputReading:
        return self.attempts[-1]


_OF_A_VALUE: Final = frozenset(name for name in vars(OutputResult) if not name.startswith("_"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _arguments_text(call: ToolCall) -> str:
    if call.arguments is None:
        return clip(str(call.raw), 60)
    return ", ".join(_item_texts(call.arguments))


def _item_texts(arguments: Mapping[str, Any]) -> Iterator[str]:
    return (f"{key}={clip(repr(value), 40)}" for key, value in arguments.items())


def _call_text(call: ToolCall) -> str:
    return f"{call.name}({_arguments_text(call)})"


def _waiting_text(approval: Approval) -> str:
    return f"{approval.name}({clip(repr(approval.payload), 60)}), {approval.id}"


def _outcome(result: ToolResult) -> str:
    return "ok" if result.ok else " ".join(result.envelope.error_codes)


def _tell_change(call: ToolCall) -> str:
    """Say what the model sent and who changed it, where the call ran with something else."""
    if not call.receipts or call.arguments is None:
        return ""
    sent = call.sent
    if isinstance(sent, str):
        with suppress(JSONTextError):
            sent = decode(sent)
    if sent == call.arguments and repr(sent) == repr(call.arguments):
        return ""
    shown = ", ".join(_item_texts(as_fields(sent))) or clip(str(sent), 60)
    return f" (the model sent {shown}; changed by {name_changes(call.receipts)})"


_MANY_EVENTS: Final = 256
_MAX_JOINED_CHARS: Final = 4096


class RunStream(Generic[R_co]):
    """The events of one run, as they happen; `result` is there when they have ended.

    Where the run ends with a value, it is a `RunStream[OutputResult[T]]`.

    Leaving the loop early, or `aclose()`, cancels the run.
    """

    def __init__(self, start: Callable[[Callable[[Event], object]], Awaitable[R_co]]) -> None:
        self._start = start
        self._result: R_co | None = None
        # Only the loop over the events keeps them alive: leaving it closes them.
        self._events: weakref.ref[AsyncGenerator[Event, None]] | None = None

    @property
    def result(self) -> R_co:
        """The result of the run."""
        if self._result is None:
            raise RuntimeError("the run has not ended; iterate over all its events first")
        return self._result

    def __aiter__(self) -> AsyncIterator[Event]:
        if self._events is None:
            events = self._iterate()
            self._events = weakref.ref(events)
            return events
        events = self._events()
        if events is None:
            raise RuntimeError("the events of a run can be iterated over only once")
        return events

    async def aclose(self) -> None:
        """Stop the run if it is still going."""
        events = self._events() if self._events is not None else None
        if events is not None:
            await events.aclose()

    async def _iterate(self) -> AsyncGenerator[Event, None]:
        waiting = _WaitingEvents()
        task = asyncio.ensure_future(self._start(waiting.put))
        task.add_done_callback(lambda _: waiting.put(None))
        try:
            while (event := await waiting.get()) is not None:
                yield event
            self._result = await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class _WaitingEvents:
    """Events that nobody has read yet; when there are many, pieces of text are joined.

    So a reader that is slower than the model holds little more than the text it has not read.
    """

    def __init__(self) -> None:
        self._events: deque[Event | None] = deque()
        self._arrived = asyncio.Event()

    def put(self, event: Event | None) -> None:
        last = self._events[-1] if len(self._events) >= _MANY_EVENTS else None
        if (
            isinstance(event, TextDelta | ReasoningDelta)
            and isinstance(last, TextDelta | ReasoningDelta)
            and (type(event), event.turn) == (type(last), last.turn)
            and len(last.text) < _MAX_JOINED_CHARS
        ):
            self._events[-1] = replace(last, text=last.text + event.text)
        else:
            self._events.append(event)
        self._arrived.set()

    async def get(self) -> Event | None:
        while not self._events:
            self._arrived.clear()
            await self._arrived.wait()
        return self._events.popleft()
