"""What a run returns."""

from html import escape

from msgspec import Struct

from surecall.records import Message, Receipt, ToolCall, ToolResult, Usage, clip

from .trace import Trace

__all__ = ["RunResult"]


class RunResult(Struct, frozen=True, kw_only=True):
    """The answer of a run, and everything that led to it."""

    text: str
    history: tuple[Message, ...]
    """The conversation after the run; pass it on to continue."""
    trace: Trace
    usage: Usage
    finish_reason: str | None = None
    elapsed_ms: float = 0.0

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.trace.run_id

    @property
    def turns(self) -> int:
        """How many times the model was asked."""
        return len(self.trace.turns)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every accepted call, in order."""
        return tuple(call for turn in self.trace.turns for call in turn.calls)

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The result of every accepted call, in the same order."""
        return tuple(result for turn in self.trace.turns for result in turn.results)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Every change made to what the model said."""
        return self.trace.receipts

    @property
    def cut(self) -> bool:
        """Whether the answer stopped at a token limit."""
        return self.finish_reason in {"length", "max_tokens"}

    @property
    def empty(self) -> bool:
        """Whether the answer has no text; what the tools did stands all the same."""
        return not self.text.strip()

    def __repr__(self) -> str:
        lines = [f"<RunResult {clip(self.text, 80)!r}: {self._summary()}>"]
        for call, result in zip(self.calls, self.results, strict=True):
            mark = "ok" if result.ok else " ".join(result.envelope.error_codes)
            lines.append(f"  {call.name}({_arguments_text(call)}) -> {mark}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(call.name)}</td><td><code>{escape(_arguments_text(call))}</code></td>"
            f"<td>{'ok' if result.ok else escape(' '.join(result.envelope.error_codes))}</td>"
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

    def _summary(self) -> str:
        return (
            f"{_count(self.turns, 'turn')}, {_count(len(self.calls), 'call')}, "
            f"{self.usage.total_tokens} tokens, {self.elapsed_ms:.0f} ms"
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _arguments_text(call: ToolCall) -> str:
    if call.arguments is None:
        return clip(str(call.raw), 60)
    return ", ".join(f"{key}={clip(repr(value), 40)}" for key, value in call.arguments.items())
