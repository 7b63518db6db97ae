"""Cases that ask for calls once: a request, the tools offered, and the calls that are right."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from surecall.records import Message, ModelRequest, ToolSpec
from surecall.tools import ToolRegistry

from ..cases import Attempt, Grades, Ideal, IdealCall, Prepared, failed
from ..records import Reason, Verdict
from .bfcl_check import Answer, FunctionDoc, check_call, check_calls, fold_text

__all__ = ["SingleTurnCase", "calls_that_ran"]

_MAX_TURNS = 4


class SingleTurnCase(Struct, frozen=True, kw_only=True):
    """One request and the calls that answer it; without any, calling nothing is right."""

    scenario: str
    id: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    functions: Mapping[str, FunctionDoc]
    """What the calls are checked against, by the functions' own names."""
    names: Mapping[str, str]
    """From the name of each tool to that of its function."""
    answers: tuple[Answer, ...]
    fold: Callable[[str], str] = fold_text
    control: bool = False
    options: dict[str, Any] = {}

    def prepare(self, seed: int) -> Prepared:
        """Set up tools that note each call and say that it is done."""
        ran: list[IdealCall] = []

        def note(name: str, arguments: dict[str, Any]) -> str:
            ran.append(IdealCall(self.names[name], arguments))
            return "Done."

        return Prepared(
            tools=ToolRegistry.from_executor(self.tools, note),
            messages=self.messages,
            options={"max_turns": _MAX_TURNS, **self.options},
            state=ran,
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Judge the calls of the first reply of which any ran."""
        calls = [
            IdealCall(self.names.get(call.name, call.name), call.arguments)
            for call in calls_that_ran(attempt.trace)
        ]
        if not self.answers:
            wrong = failed("called", ", ".join(call.name for call in calls))
            verdict = wrong if calls else Verdict(ok=True)
            return Grades(seed=verdict, strict=verdict)
        reasons = check_calls(calls, self.functions, self.answers, fold=self.fold)
        return Grades(
            seed=self._loose(calls),
            strict=Verdict(ok=not reasons, reasons=reasons),
            exact=tuple(self._is_expected(call) for call in calls),
            state={"calls": [{"name": c.name, "arguments": c.arguments} for c in calls]},
        )

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Make the expected calls, each with the first value that counts as right; then answer."""
        if not self.answers or any(message.role == "tool" for message in request.messages):
            return Ideal(text="Done." if self.answers else "None of the tools can do this.")
        tool_names = {function: tool for tool, function in self.names.items()}
        return Ideal(calls=tuple(_first(answer, tool_names) for answer in self.answers))

    def _loose(self, calls: list[IdealCall]) -> Verdict:
        wanted = {name for answer in self.answers for name in answer}
        if any(call.name in wanted for call in calls):
            return Verdict(ok=True)
        return Verdict(ok=False, reasons=(Reason("no_call", "no expected function was called"),))

    def _is_expected(self, call: IdealCall) -> bool:
        function = self.functions.get(call.name, {})
        return any(
            not check_call(call, function, answer, fold=self.fold) for answer in self.answers
        )


def calls_that_ran(trace: Any) -> list[Any]:
    """Return the calls that ran in the first turn in which any did, as they were run."""
    for turn in trace.turns if trace is not None else ():
        ran = {result.call_id for result in turn.results if result.executed}
        if ran:
            return [call for call in turn.calls if call.id in ran]
    return []


def _first(answer: Answer, tool_names: Mapping[str, str]) -> IdealCall:
    name, parameters = next(iter(answer.items()))
    arguments = {
        key: _plain(values[0]) for key, values in parameters.items() if values and values[0] != ""
    }
    return IdealCall(tool_names.get(name, name), arguments)


def _plain(value: Any) -> Any:
    """Return an accepted value as one that can be sent: objects list choices for each key."""
    if isinstance(value, dict):
        return {
            key: _plain(choices[0] if isinstance(choices, list) and choices else choices)
            for key, choices in value.items()
            if choices != [""] and not (isinstance(choices, list) and choices[:1] == [""])
        }
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value
