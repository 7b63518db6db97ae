"""Cases of one turn: what is asked, and whether the arguments are right."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec
from surecall.evals.cases import (
    Attempt,
    Grades,
    Ideal,
    IdealCall,
    Prepared,
    assign_calls,
    failed,
    make_grades,
    run_failed,
)
from surecall.evals.made_calls import check_plain_answer, list_attempts, sample_value
from surecall.evals.records import Reason, Verdict
from surecall.loop import Trace, TurnTrace
from surecall.reading import ALL_RULES
from surecall.reading.rules import BYTE_ORDER_MARK
from surecall.schema import SchemaChecker
from surecall.text import decode
from surecall.tools import ToolRegistry

FunctionDoc = Mapping[str, Any]
Answer = Mapping[str, Mapping[str, Sequence[Any]]]
Fold = Callable[[str], str]
CheckCalls = Callable[
    [Sequence[IdealCall], Mapping[str, FunctionDoc], Sequence[Answer]], tuple[Reason, ...]
]
Wish = Literal["calls", "a_call", "no_call"]
"""What a request wants: the expected calls, any call at all, or none."""

_DROPPED: Final = str.maketrans({**dict.fromkeys(" ,./-_*^"), "'": '"'})
_PYTHON_TYPES: Final[dict[str, type]] = {
    **dict.fromkeys(("array", "list", "tuple"), list),
    **dict.fromkeys(("dict", "object"), dict),
    **dict.fromkeys(("float", "number"), float),
    "boolean": bool,
    "integer": int,
    "string": str,
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
    """One request and the calls that answer it.

    Calls are judged as they were made: those of the first reply of which any ran, the refused ones
    among them too. Replies before it count when their calls are right, though none could run. The
    run ends there, unless no call may follow. Where nothing helps the model, only its first reply
    counts, as everybody else counts it.
    """

    scenario: str
    id: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    functions: Mapping[str, FunctionDoc]
    """What the calls are checked against, by the functions' own names."""
    names: Mapping[str, str]
    """From the name of each tool to that of its function."""
    answers: tuple[Answer, ...]
    wish: Wish = "calls"
    fold: Fold = fold_text
    check: CheckCalls | None = None
    """The rule of the verdict; without it that of `check_calls`, which also judges each call."""
    control: bool = False
    drawn: bool = True
    is_closed: bool = False
    """Whether no other call may be made in the whole run, not even one that does not run."""
    is_once: bool = False
    """Whether the same call once more would do something once more, such as pay twice."""

    def prepare(self, seed: int) -> Prepared:
        """Set up tools that note each call and say that it is done."""
        ran: list[IdealCall] = []

        def note(name: str, arguments: dict[str, Any]) -> str:
            ran.append(IdealCall(self.names[name], arguments))
            return "Done."

        return Prepared(
            tools=ToolRegistry.from_executor(self.tools, note),
            messages=self.messages,
            options={"max_turns": _MAX_TURNS, "stop_after_calls": not self.is_closed},
            state=ran,
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Judge the calls; one that was tried counts as made where none should be."""
        judged = list(judged_turns(attempt.trace))
        trace = None if self.is_closed else attempt.trace
        if trace is not None and ALL_RULES in trace.options.disabled_rules:
            judged = judged[:1]
        calls = self._read_calls(judged[-1]) if judged else []
        kept = {"calls": [{"name": call.name, "arguments": call.arguments} for call in calls]}
        exact = tuple(self._is_expected(call) for _, call, _ in attempt.calls)
        if self.wish == "calls":
            strict, loose = self._grade_calls(attempt, judged), self._grade_loosely(calls)
            if self.is_closed and strict.ok:
                strict = Verdict.of(list(self._check_others(attempt, calls, judged[-1].turn)))
        else:
            strict = loose = self._grade_wish(attempt, judged)
        return make_grades(
            original=loose,
            state=None,
            process=strict.reasons,
            answer=check_plain_answer(attempt, may_be_empty=True) if attempt.text else None,
            exact=exact,
            kept=kept,
        )

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Make the expected calls, each with the first value that counts as right; then answer."""
        if self.wish == "no_call":
            return Ideal(text="None of the tools can do this.")
        if any(message.role == "tool" for message in request.messages):
            return Ideal(text="Done.")
        if self.wish == "a_call":
            return Ideal(calls=(self._first_tool(),))
        tool_names = {function: tool for tool, function in self.names.items()}
        return Ideal(calls=tuple(self._first(answer, tool_names) for answer in self.answers))

    def _first_tool(self) -> IdealCall:
        schema = self.tools[0].parameters
        properties = schema.get("properties", {})
        arguments = {
            name: sample_value(properties.get(name)) for name in schema.get("required", ())
        }
        return IdealCall(self.tools[0].name, arguments)

    def _first(self, answer: Answer, tool_names: Mapping[str, str]) -> IdealCall:
        name, parameters = next(iter(answer.items()))
        required = self.functions[name].get("parameters", {}).get("required", ())
        arguments: dict[str, Any] = {}
        for key, values in parameters.items():
            given = [each for each in values if each != ""]
            if key in required or (given and values[0] != ""):
                arguments[key] = _plain(given[0]) if given else ""
        return IdealCall(tool_names.get(name, name), arguments)

    def _check_others(
        self, attempt: Attempt, right: Sequence[IdealCall], turn: int
    ) -> Iterator[Reason]:
        """Look for other calls beside or after the right ones.

        A right one once more is forgiven where it does nothing more. So is what was refused before
        them and means nothing else: they are its correction.
        """
        if self.is_once and len(attempt.prepared.state) > len(self.answers):
            yield Reason("extra_call", "it was done more often than once")
        for made in list_attempts(attempt):
            call = IdealCall(self.names.get(made.name, made.name), made.arguments)
            is_refused = made.name in self.names and not made.executed and made.turn < turn
            is_corrected = is_refused and not self._contradicts(call)
            if call not in right and not is_corrected and not self._is_right(call):
                yield Reason("extra_call", call.name)

    def _is_right(self, call: IdealCall) -> bool:
        function = self.functions.get(call.name, {})
        return any(not check_call(call, function, each, fold=self.fold) for each in self.answers)

    def _contradicts(self, call: IdealCall) -> bool:
        """Tell whether a call has a value that is sound in form and not the right one."""
        known = self.functions.get(call.name, {}).get("parameters", {}).get("properties", {})
        choices = {
            key: as_list(values)
            for answer in self.answers
            for key, values in answer.get(call.name, {}).items()
        }
        return any(
            SchemaChecker(known[key]).is_valid(value)
            and not any(_same(value, each, self.fold) for each in choices[key])
            for key, value in call.arguments.items()
            if key in known and key in choices
        )

    def _grade_calls(self, attempt: Attempt, judged: Sequence[TurnTrace]) -> Verdict:
        reasons: tuple[Reason, ...] = ()
        for turn in judged:
            reasons = self._check_turn(turn)
            if not reasons:
                return Verdict(ok=True)
        if judged or attempt.error is None:
            return Verdict.of(reasons or self._check([]))
        return Verdict.of([run_failed(attempt.error)])

    def _check_turn(self, turn: TurnTrace) -> tuple[Reason, ...]:
        unreadable = [call.name for call in turn.calls if call.arguments is None]
        if unreadable:
            return (Reason("unreadable", ", ".join(unreadable)),)
        return self._check(self._read_calls(turn))

    def _check(self, calls: Sequence[IdealCall]) -> tuple[Reason, ...]:
        if self.check is not None:
            return self.check(calls, self.functions, self.answers)
        return check_calls(calls, self.functions, self.answers, fold=self.fold)

    def _grade_wish(self, attempt: Attempt, judged: Sequence[TurnTrace]) -> Verdict:
        readable = [turn for turn in judged if all(map(_is_decodable, turn.calls))]
        if self.wish == "a_call":
            return Verdict(ok=True) if readable else failed("no_call", "no call was made")
        if readable:
            return failed("called", ", ".join(call.name for call in readable[0].calls))
        return Verdict.of([] if attempt.error is None else [run_failed(attempt.error)])

    def _grade_loosely(self, calls: Sequence[IdealCall]) -> Verdict:
        wanted = {name for answer in self.answers for name in answer}
        if any(call.name in wanted for call in calls):
            return Verdict(ok=True)
        return failed("no_call", "no expected function was called")

    def _read_calls(self, turn: TurnTrace) -> list[IdealCall]:
        return [
            IdealCall(self.names.get(call.name, call.name), call.arguments or {})
            for call in turn.calls
        ]

    def _is_expected(self, call: ToolCall) -> bool:
        name = self.names.get(call.name, call.name)
        function, made = self.functions.get(name, {}), IdealCall(name, call.arguments or {})
        return call.arguments is not None and any(
            not check_call(made, function, answer, fold=self.fold)
            and (self.check is None or not self.check([made], self.functions, [answer]))
            for answer in self.answers
        )


def _is_decodable(call: ToolCall) -> bool:
    """Tell whether a call has an object as its arguments, also one with NaN in it."""
    if call.arguments is not None or not isinstance(call.raw, str):
        return call.arguments is not None
    if call.raw.startswith(BYTE_ORDER_MARK):
        return False
    try:
        return isinstance(decode(call.raw), dict)
    except JSONTextError as error:
        return error.code != Code.INVALID_JSON and call.raw.lstrip(" \t\r\n").startswith("{")


def judged_turns(trace: Trace | None) -> Iterator[TurnTrace]:
    """Yield the turns with calls, up to the first in which any ran.

    Calls of which none was accepted, because no tool was offered, were made as well.
    """
    for turn in () if trace is None else drop_withdrawn(trace).turns:
        if turn.ignored_calls and not turn.calls:
            yield replace(turn, calls=turn.ignored_calls)
        if turn.calls:
            yield turn
            if any(result.executed for result in turn.results):
                return


def drop_withdrawn(trace: Trace) -> Trace:
    """Return a trace without the turns whose calls the model itself took back.

    It said, when asked, that the tool does not fit, or which calls it makes instead of this one.
    """
    unfit: set[str] = set()
    kept: list[TurnTrace] = []
    for turn, later in zip(trace.turns, (*trace.turns[1:], None), strict=True):
        is_replaced = later is not None and later.request.lists_calls
        unfit |= {check.tool for check in turn.fit_checks if not check.fits}
        names = _resolve_names(turn)
        if not is_replaced and (not names or not unfit.issuperset(names)):
            kept.append(turn)
    return trace if len(kept) == len(trace.turns) else replace(trace, turns=tuple(kept))


def _resolve_names(turn: TurnTrace) -> list[str]:
    """Return the tool that each call of a turn stands for, whatever the model called it."""
    found = {result.call_id: result.name for result in turn.results if result.name}
    return [found.get(call.id, call.name) for call in turn.calls]


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
