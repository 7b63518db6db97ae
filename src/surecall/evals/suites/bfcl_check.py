"""Whether calls are the expected ones, by the rules the leaderboard publishes.

An expected call names the function and, for each parameter, the values that count as right. An
empty text among them means that the parameter may be left out. The rules:

- every required parameter is there, and none that the expected call does not name;
- a value has the declared type, where a whole number counts as a float; or it has the type of the
  expected values, which stand for a variable then;
- texts are compared without case, spaces and `, . / - _ * ^`, and with one kind of quotes;
- lists are compared element by element, objects key by key;
- several calls may come in any order, each used for one expected call.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from surecall.evals.cases import IdealCall
from surecall.evals.records import Reason

__all__ = ["Answer", "FunctionDoc", "check_call", "check_calls", "fold_text"]

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
    reasons = [[_check(call, functions, answer, fold) for call in calls] for answer in answers]
    if len(answers) == 1:
        return reasons[0][0]
    used: dict[int, int] = {}
    for index in range(len(answers)):
        if not _match(index, reasons, used, set()):
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


def _check(
    call: IdealCall, functions: Mapping[str, FunctionDoc], answer: Answer, fold: Fold
) -> tuple[Reason, ...]:
    return check_call(call, functions.get(call.name, {}), answer, fold=fold)


def _match(
    answer: int,
    reasons: Sequence[Sequence[tuple[Reason, ...]]],
    used: dict[int, int],
    tried: set[int],
) -> bool:
    """Find a call for an expected one, moving others to another call where that helps."""
    for call, wrong in enumerate(reasons[answer]):
        if wrong or call in tried:
            continue
        tried.add(call)
        if call not in used or _match(used[call], reasons, used, tried):
            used[call] = answer
            return True
    return False


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
    if kind is not list or not isinstance(items, Mapping):
        return True
    inner = cast("Mapping[str, Any]", items)
    inner_kind = _declared_type(inner)
    if inner_kind is None:
        return True
    lists = [cast("list[Any]", each) for each in given if isinstance(each, list)]
    elements = cast("list[Any]", value)
    return not lists or any(
        all(_has_type(element, inner_kind, inner, each) for element in elements) for each in lists
    )


def _is_absent(value: Any) -> bool:
    return isinstance(value, str) and not value


def _same(value: Any, accepted: Any, fold: Fold) -> bool:
    if isinstance(value, str):
        return isinstance(accepted, str) and fold(value) == fold(accepted)
    if isinstance(value, list):
        return isinstance(accepted, list) and _same_lists(
            cast("list[Any]", value), cast("list[Any]", accepted), fold
        )
    if isinstance(value, dict):
        return isinstance(accepted, dict) and _same_objects(
            cast("dict[str, Any]", value), cast("dict[str, Any]", accepted), fold
        )
    return isinstance(value, bool) == isinstance(accepted, bool) and value == accepted


def _same_lists(value: list[Any], accepted: list[Any], fold: Fold) -> bool:
    return len(value) == len(accepted) and all(
        _same(mine, theirs, fold) for mine, theirs in zip(value, accepted, strict=True)
    )


def _same_objects(value: dict[str, Any], accepted: dict[str, Any], fold: Fold) -> bool:
    """Compare an object with one whose every value is the list of those that count as right."""
    if any(key not in accepted for key in value):
        return False
    for key, values in accepted.items():
        choices = cast("list[Any]", values) if isinstance(values, list) else [values]
        if key not in value:
            if "" not in choices:
                return False
        elif not any(_same(value[key], each, fold) for each in choices):
            return False
    return True
