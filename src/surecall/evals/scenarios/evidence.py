"""What became of a run, as verdicts look at it."""

from collections.abc import Iterable
from typing import Any, Final, cast

from msgspec import Struct

from surecall.evals.cases import Attempt
from surecall.loop import TurnTrace
from surecall.records import ToolCall, ToolResult

from .scene import Scene

__all__ = ["Evidence", "MadeCall", "is_done", "shows_call"]

_LIMIT_REASONS: Final = frozenset({"length", "max_tokens", "model_length"})
_DONE: Final = frozenset({"done", "done.", "done!"})
_QUOTES: Final = "\"'` \t\r\n"
_CALL_MARKS: Final = (
    "<tool_call",
    "</tool_call",
    "<function",
    "<invoke",
    "<|tool",
    "<|python_tag|>",
    "[tool_calls]",
    "functools[",
    '"tool_calls"',
    '"arguments"',
    "```tool",
)


class MadeCall(Struct, frozen=True):
    """A call that was accepted, and its result."""

    turn: int
    call: ToolCall
    result: ToolResult | None

    @property
    def name(self) -> str:
        """The tool that it was taken for."""
        return self.call.name if self.result is None else self.result.name

    @property
    def arguments(self) -> dict[str, Any]:
        """Its arguments; empty when they could not be read."""
        return self.call.arguments or {}

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.result is not None and self.result.ok

    @property
    def executed(self) -> bool:
        """Whether the tool's own code ran."""
        return self.result is not None and self.result.executed

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the errors in its result."""
        return () if self.result is None else self.result.envelope.error_codes

    @property
    def operations(self) -> list[dict[str, Any]]:
        """The operations of a patch, as far as they are objects."""
        given: Any = self.arguments.get("ops")
        items = cast("list[Any]", given) if isinstance(given, list) else []
        return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


class Evidence:
    """An attempt with everything that verdicts ask about."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.scene = cast("Scene", attempt.prepared.state)
        self.error = attempt.error
        self.text = attempt.text
        turns: Iterable[TurnTrace] = () if attempt.trace is None else attempt.trace.turns
        self.turns = tuple(turns)
        self.calls = tuple(made for turn in self.turns for made in _made_calls(turn))
        self.ignored = tuple(call for turn in self.turns for call in turn.ignored_calls)

    def calls_of(self, name: str) -> list[MadeCall]:
        """Return the accepted calls of one tool, in order."""
        return [made for made in self.calls if made.name == name]

    @property
    def replies(self) -> list[list[MadeCall]]:
        """The accepted calls of each reply that had any."""
        return [_made_calls(turn) for turn in self.turns if turn.calls]

    def met(self, name: str, *codes: str) -> int | None:
        """Return the place of the first call of a tool that failed with one of the codes."""
        for place, made in enumerate(self.calls):
            if made.name == name and any(code in made.codes for code in codes):
                return place
        return None

    def succeeded_after(self, name: str, place: int) -> bool:
        """Tell whether a call of the tool succeeded after a place."""
        return any(made.ok and made.name == name for made in self.calls[place + 1 :])

    @property
    def is_cut(self) -> bool:
        """Whether a token limit ended the last reply, or a call that was not made up for."""
        limited = {turn.turn for turn in self.turns if _hit_limit(turn)}
        if self.turns and self.turns[-1].turn in limited:
            return True
        last = {made.name: made for made in self.calls}
        return any(made.call.state == "cut" and made.turn in limited for made in last.values())


def is_done(text: str) -> bool:
    """Tell whether a text is the one-word answer, whatever quotes stand around it."""
    return text.strip(_QUOTES).lower() in _DONE


def shows_call(text: str, tool_names: Iterable[str]) -> bool:
    """Tell whether a text for the user shows how a call is written, or names a tool."""
    lowered = text.lower()
    return any(mark in lowered for mark in _CALL_MARKS) or any(name in text for name in tool_names)


def _made_calls(turn: TurnTrace) -> list[MadeCall]:
    results = {result.call_id: result for result in turn.results}
    return [MadeCall(turn.turn, call, results.get(call.id)) for call in turn.calls]


def _hit_limit(turn: TurnTrace) -> bool:
    summary = turn.response_summary
    return summary is not None and (summary.finish_reason or "").lower() in _LIMIT_REASONS
