"""Cases of one turn: what is asked, and whether the arguments are right."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any, Final

from msgspec import Struct

from surecall.evals.cases import (
    Attempt,
    Grades,
    Ideal,
    IdealCall,
    Prepared,
    assign_calls,
    failed,
    judge,
)
from surecall.evals.records import Reason, Verdict
from surecall.loop import Trace
from surecall.narrow import as_fields, as_list
from surecall.records import Message, ModelRequest, ToolCall, ToolSpec
from surecall.tools import ToolRegistry

from .plain_checks import check_plain_answer, list_attempts

FunctionDoc = Mapping[str, Any]
Answer = Mapping[str, Mapping[str, Sequence[Any]]]
Fold = Callable[[str], str]

_DROPPED: Final = str.maketrans({**dict.fromkeys(" ,./-_*^"), "'": '"'})
_PYTHON_TYPES: Final[dict[str, type]] = {
    "array": list,
    "boolean": bool,
    "dict": dict,
    "float": float,
    "integer": int,
    "list": list,
    "number": float,
    "object": dict,
    "string": str,
    "tuple": list,
}


def fold_text(text: str) -> str:
    """Return a text without what does not count when texts are compared."""
    return text.translate(_DROPPED).lower()


def check_calls(
    calls: Sequence[IdealCall],
    functions: Mapping[str, FunctionDoc],
    answers: Sequence[Answer],
    *,
    fold: Fold = fold_text,
) -> tuple[Reason, ...]:
    """Say why the calls are not the expected ones; nothing when they are.

    Args:
        calls: The calls that were made, under the functions' own names.
        functions: What is known of each function, by name.
        answers: The expected calls.
        fold: Makes texts alike that count as the same.
    """
    if not calls:
        return (Reason("no_call", f"{len(answers)} expected"),)
    if len(calls) != len(answers):
        return (Reason("wrong_count", f"{len(calls)} calls, {len(answers)} expected"),)
    reasons = [
        [check_call(call, functions.get(call.name, {}), answer, fold=fold) for call in calls]
        for answer in answers
    ]
    if len(answers) == 1:
        return reasons[0][0]
    used = assign_calls([[i for i, wrong in enumerate(row) if not wrong] for row in reasons])
    for index in range(len(answers)):
        if index not in used:
            name = next(iter(answers[index]))
            closest = min(reasons[index], key=len)
            return (Reason("no_match", f"no call is the expected {name}"), *closest)
    return ()


def check_call(
    call: IdealCall, function: FunctionDoc, answer: Answer, *, fold: Fold = fold_text
) -> tuple[Reason, ...]:
    """Say why a call is not the expected one; nothing when it is."""
    name, expected = next(iter(answer.items()))
    if call.name != name:
        return (Reason("wrong_function", f"{call.name} instead of {name}"),)
    parameters = function.get("parameters", {})
    known = parameters.get("properties", {})
    reasons = [
        Reason("missing", f"{key} is required")
        for key in parameters.get("required", ())
        if key not in call.arguments
    ]
    for key, value in call.arguments.items():
        if key not in known or key not in expected:
            reasons.append(Reason("unexpected", f"{key}={value!r}"))
        elif (reason := _check_value(key, value, known[key], expected[key], fold)) is not None:
            reasons.append(reason)
    reasons.extend(
        Reason("missing", f"{key} should be given")
        for key, values in expected.items()
        if key not in call.arguments
        and "" not in values
        and key not in parameters.get("required", ())
    )
    return tuple(reasons)


def _check_value(
    key: str, value: Any, declared: Mapping[str, Any], accepted: Sequence[Any], fold: Fold
) -> Reason | None:
    kind = _declared_type(declared)
    if kind is float and type(value) is int:
        value = float(value)
    if kind is not None and not _has_type(value, kind, declared, accepted):
        return Reason("wrong_type", f"{key}={value!r}, declared {declared.get('type')}")
    if kind is not None and type(value) is not kind:
        fold = str  # the name of a variable is taken literally
    if not any(_same(value, each, fold) for each in accepted if not _is_absent(each)):
        return Reason("wrong_value", f"{key}={value!r}, expected one of {list(accepted)!r}")
    return None


def _declared_type(declared: Mapping[str, Any]) -> type | None:
    name = declared.get("type")
    return _PYTHON_TYPES.get(name) if isinstance(name, str) else None


def _has_type(value: Any, kind: type, declared: Mapping[str, Any], accepted: Sequence[Any]) -> bool:
    given = [each for each in accepted if not _is_absent(each)]
    if given and type(given[0]) is not kind and type(value) is type(given[0]):
        return True
    if type(value) is not kind:
        return False
    items = declared.get("items")
    if kind is not list or not isinstance(items, dict):
        return True
    inner = as_fields(items)
    inner_kind = _declared_type(inner)
    if inner_kind is None:
        return True
    lists = [as_list(each) for each in given if isinstance(each, list)]
    elements = as_list(value)
    return not lists or any(
        all(_has_type(element, inner_kind, inner, each) for element in elements) for each in lists
    )


def _is_absent(value: Any) -> bool:
    return isinstance(value, str) and not value


def _same(value: Any, accepted: Any, fold: Fold) -> bool:
    if isinstance(value, str):
        return isinstance(accepted, str) and fold(value) == fold(accepted)
    if isinstance(value, list):
        mine, theirs = as_list(value), as_list(accepted)
        return (
            isinstance(accepted, list)
            and len(mine) == len(theirs)
            and all(_same(one, other, fold) for one, other in zip(mine, theirs, strict=True))
        )
    if isinstance(value, dict):
        return isinstance(accepted, dict) and _same_objects(
            as_fields(value), as_fields(accepted), fold
        )
    return isinstance(value, bool) == isinstance(accepted, bool) and value == accepted


def _same_objects(value: dict[str, Any], accepted: dict[str, Any], fold: Fold) -> bool:
    """Compare an object with one whose every value is the list of those that count as right."""
    if any(key not in accepted for key in value):
        return False
    for key, values in accepted.items():
        choices = as_list(values) if isinstance(values, list) else [values]
        if key not in value:
            if "" not in choices:
                return False
        elif not any(_same(value[key], each, fold) for each in choices):
            return False
    return True


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
    is_closed: bool = False
    """Whether no other call may be made in the whole run, not even one that does not run."""

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
        exact = tuple(self._is_expected(call) for _, call, _ in attempt.calls)
        if not self.answers:
            wrong = failed("called", ", ".join(call.name for call in calls))
            verdict = wrong if calls else Verdict(ok=True)
            reasons, loose = verdict.reasons, verdict
        else:
            reasons = check_calls(calls, self.functions, self.answers, fold=self.fold)
            if self.is_closed and not reasons:
                reasons = tuple(self._check_others(attempt, calls))
            loose = self._loose(calls)
        return judge(
            original=loose,
            state=None,
            process=reasons,
            answer=check_plain_answer(attempt, may_be_empty=True),
            exact=exact,
            kept=kept,
        )

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

    def _check_others(self, attempt: Attempt, right: list[IdealCall]) -> Iterator[Reason]:
        """Look for other calls beside or after the right ones; the same once more is forgiven."""
        for made in list_attempts(attempt):
            call = IdealCall(self.names.get(made.name, made.name), made.arguments)
            if call in right or (made.name in self.names and not made.executed):
                continue
            yield Reason("extra_call", call.name)

    def _loose(self, calls: list[IdealCall]) -> Verdict:
        wanted = {name for answer in self.answers for name in answer}
        if any(call.name in wanted for call in calls):
            return Verdict(ok=True)
        return failed("no_call", "no expected function was called")

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


def _plain(value: Any) -> Any:
    """Return an accepted value as one that can be sent: objects list choices for each key."""
    if isinstance(value, list):
        return [_plain(each) for each in as_list(value)]
    if not isinstance(value, dict):
        return value
    plain: dict[str, Any] = {}
    for key, choices in as_fields(value).items():
        first = next(iter(as_list(choices)), "") if isinstance(choices, list) else choices
        if first != "":
            plain[key] = _plain(first)
    return plain


_FILES: Final = {
    "one_tool": ("tools.toml", "prompts.toml"),
    "one_tool_fresh": ("fresh_tools.toml", "fresh_prompts.toml"),
}
"""The second forty were written without knowledge of the first or of how tools are put."""


def fold_case(text: str) -> str:
    """Return a text without case and without runs of spaces; all else counts."""
    return " ".join(text.split()).casefold()


class OneToolSuite:
    """Requests that one call answers; values must be right and nothing else may be sent."""

    name = "one_tool"

    @property
    def version(self) -> str:
        """Hash of the prompts and tools."""
        texts = b"".join(_text(name) for names in _FILES.values() for name in names)
        return sha256(texts).hexdigest()[:12]

    def scenarios(self) -> Sequence[str]:
        """Name the sets of requests."""
        return tuple(_FILES)

    def cases(self, scenario: str) -> Sequence[SingleTurnCase]:
        """Return the requests, in order."""
        return _cases(scenario) if scenario in _FILES else ()


@cache
def _cases(scenario: str) -> tuple[SingleTurnCase, ...]:
    described, asked = (tomllib.loads(_text(name).decode()) for name in _FILES[scenario])
    tools = {each["name"]: _tool(each) for each in described["tools"]}
    return tuple(_case(scenario, each, tools[each["tool"]]) for each in asked["prompts"])


def _tool(described: dict[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=described["name"],
        description=described["description"],
        parameters={
            "type": "object",
            "properties": described["properties"],
            "required": described["required"],
            "additionalProperties": False,
        },
    )


def _case(scenario: str, asked: dict[str, Any], tool: ToolSpec) -> SingleTurnCase:
    return SingleTurnCase(
        scenario=scenario,
        id=asked["id"],
        messages=(Message("user", asked["prompt"]),),
        tools=(tool,),
        functions={tool.name: {"name": tool.name, "parameters": tool.parameters}},
        names={tool.name: tool.name},
        answers=({tool.name: asked["arguments"]},),
        fold=fold_case,
        is_closed=True,
    )


def _text(name: str) -> bytes:
    return resources.files("surecall.evals.suites").joinpath("one_tool_data", name).read_bytes()
