"""Cases that ask for calls once: a request, the tools offered, and the calls that are right."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from msgspec import Struct

from surecall.evals.cases import Attempt, Grades, Ideal, IdealCall, Prepared, failed
from surecall.evals.records import Reason, Verdict
from surecall.loop import Trace
from surecall.records import Message, ModelRequest, ToolCall, ToolSpec
from surecall.tools import ToolRegistry

from .bfcl_check import Answer, FunctionDoc, check_call, check_calls, fold_text

__all__ = ["SingleTurnCase", "calls_that_ran"]

_MAX_TURNS: Final = 4


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

    def prepare(self, seed: int) -> Prepared:
        """Set up tools that note each call and say that it is done."""
        ran: list[IdealCall] = []

        def note(name: str, arguments: dict[str, Any]) -> str:
            ran.append(IdealCall(self.names[name], arguments))
            return "Done."

        return Prepared(
            tools=ToolRegistry.from_executor(self.tools, note),
            messages=self.messages,
            options={"max_turns": _MAX_TURNS},
            state=ran,
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Judge the calls of the first reply of which any ran."""
        calls = calls_that_ran(attempt.trace, self.names)
        kept = {"calls": [{"name": call.name, "arguments": call.arguments} for call in calls]}
        exact = tuple(self._is_expected(call) for call in _calls_made(attempt.trace))
        if not self.answers:
            wrong = failed("called", ", ".join(call.name for call in calls))
            verdict = wrong if calls else Verdict(ok=True)
            return Grades(seed=verdict, strict=verdict, exact=exact, state=kept)
        reasons = check_calls(calls, self.functions, self.answers, fold=self.fold)
        strict = Verdict(ok=not reasons, reasons=reasons)
        return Grades(seed=self._loose(calls), strict=strict, exact=exact, state=kept)

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Make the expected calls, each with the first value that counts as right; then answer."""
        if not self.answers or any(message.role == "tool" for message in request.messages):
            return Ideal(text="Done." if self.answers else "None of the tools can do this.")
        tool_names = {function: tool for tool, function in self.names.items()}
        return Ideal(calls=tuple(self._first(answer, tool_names) for answer in self.answers))

    def _first(self, answer: Answer, tool_names: Mapping[str, str]) -> IdealCall:
        name, parameters = next(iter(answer.items()))
        required = self.functions[name].get("parameters", {}).get("required", ())
        arguments = {
            key: _plain(given[0])
            for key, values in parameters.items()
            if (given := [each for each in values if each != ""])
            and (key in required or values[0] != "")
        }
        return IdealCall(tool_names.get(name, name), arguments)

    def _loose(self, calls: list[IdealCall]) -> Verdict:
        wanted = {name for answer in self.answers for name in answer}
        if any(call.name in wanted for call in calls):
            return Verdict(ok=True)
        return Verdict(ok=False, reasons=(Reason("no_call", "no expected function was called"),))

    def _is_expected(self, call: ToolCall) -> bool:
        name = self.names.get(call.name, call.name)
        function, made = self.functions.get(name, {}), IdealCall(name, call.arguments or {})
        return call.arguments is not None and any(
            not check_call(made, function, answer, fold=self.fold) for answer in self.answers
        )


def calls_that_ran(trace: Trace | None, names: Mapping[str, str]) -> list[IdealCall]:
    """Return the calls that ran in the first turn in which any did, under the functions' names."""
    for turn in trace.turns if trace is not None else ():
        ran = {result.call_id: result.name for result in turn.results if result.executed}
        if ran:
            calls = (call for call in turn.calls if call.id in ran)
            return [
                IdealCall(names.get(ran[call.id], call.name), call.arguments or {})
                for call in calls
            ]
    return []


def _calls_made(trace: Trace | None) -> Iterator[ToolCall]:
    for turn in trace.turns if trace is not None else ():
        yield from turn.calls


def _plain(value: Any) -> Any:
    """Return an accepted value as one that can be sent: objects list choices for each key."""
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    plain: dict[str, Any] = {}
    for key, choices in cast("dict[str, Any]", value).items():
        first: Any = choices
        if isinstance(choices, list):
            first = next(iter(cast("list[Any]", choices)), "")
        if first != "":
            plain[key] = _plain(first)
    return plain
