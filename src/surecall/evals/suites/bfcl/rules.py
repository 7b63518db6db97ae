"""The leaderboard's own rule: which decoded calls count as the expected ones.

It is kept to what the published checker does, its quirks included, so that a rate here is a rate
there. Where it is loose, `single_turn.check_call` is stricter and is shown in a column of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from surecall.base.json_values import as_fields, as_list
from surecall.evals.cases import IdealCall
from surecall.evals.records import Reason
from surecall.evals.suites.single_turn import Answer, FunctionDoc, fold_text

_TYPES: Final[Mapping[str, type]] = {
    "any": str,
    "array": list,
    "boolean": bool,
    "dict": dict,
    "float": float,
    "integer": int,
    "string": str,
    "tuple": list,
}
_WITH_ITEMS: Final = frozenset({"array", "tuple"})
_ABSENT: Final = ""
"""Among the accepted values: the parameter may be left out, or sent empty."""


def check_calls(
    calls: Sequence[IdealCall], functions: Mapping[str, FunctionDoc], answers: Sequence[Answer]
) -> tuple[Reason, ...]:
    """Say why the calls are not the expected ones; nothing when they are.

    Each expected call takes the first call left that fits it, as the published checker does.

    Args:
        calls: The calls that were made, under the functions' own names.
        functions: What is known of each function, by name.
        answers: The expected calls.
    """
    if not calls:
        return (Reason("no_call", f"{len(answers)} expected"),)
    if len(calls) != len(answers):
        return (Reason("wrong_count", f"{len(calls)} calls, {len(answers)} expected"),)
    left = list(calls)
    for answer in answers:
        function = functions.get(next(iter(answer)), {})
        found = [check_call(call, function, answer) for call in left]
        if () not in found:
            return min(found, key=len)
        del left[found.index(())]
    return ()


def check_call(call: IdealCall, function: FunctionDoc, answer: Answer) -> tuple[Reason, ...]:
    """Say why a call is not the expected one; nothing when it is."""
    name, expected = next(iter(answer.items()))
    if call.name != name:
        return (Reason("wrong_function", f"{call.name} instead of {name}"),)
    parameters = function.get("parameters", {})
    known = parameters.get("properties", {})
    required = parameters.get("required", ())
    needed = dict.fromkeys(required, "is required")
    for key, accepted in expected.items():
        if _ABSENT not in accepted:
            needed.setdefault(key, "should be given")
    reasons = [
        Reason("missing", f"{key} {why}")
        for key, why in needed.items()
        if key not in call.arguments
    ]
    for key, value in call.arguments.items():
        if key not in known or key not in expected:
            reasons.append(Reason("unexpected", f"{key}={value!r}"))
        elif (code := _check_value(value, known[key], expected[key])) is not None:
            reasons.append(Reason(code, f"{key}={value!r}, expected one of {expected[key]!r}"))
    return tuple(reasons)


def _check_value(value: Any, declared: Mapping[str, Any], accepted: Sequence[Any]) -> str | None:
    name = declared.get("type")
    kind = _TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        return None if value in accepted else "wrong_value"
    if kind is float and type(value) is int:
        value = _as_float(value)
    items = as_fields(declared.get("items")).get("type") if name in _WITH_ITEMS else None
    item_kind = _TYPES.get(items) if isinstance(items, str) else None
    how = _find_comparison(value, kind, item_kind, accepted)
    if how is None:
        return "wrong_type"
    if how == "literal":
        is_right = value in accepted
    elif kind is dict:
        is_right = any(_is_same_object(value, each) for each in accepted)
    elif item_kind is dict:
        is_right = any(_are_same_objects(value, each) for each in accepted)
    elif kind is str:
        is_right = fold_text(value) in [_fold(each) for each in accepted]
    elif kind is list:
        is_right = _fold_items(value) in [_fold_items(each) for each in accepted]
    else:
        is_right = value in accepted
    return None if is_right else "wrong_value"


def _find_comparison(
    value: Any, kind: type, item_kind: type | None, accepted: Sequence[Any]
) -> str | None:
    """Return `folded` or `literal`, or nothing when the value has the wrong type.

    An accepted value of another type than declared is the name of a variable, taken literally.
    """
    answered = _find_type(accepted)
    if type(value) is not kind:
        return "literal" if type(value) is answered else None
    if item_kind is not None and not any(_fit_items(value, item_kind, each) for each in accepted):
        return None
    return "folded" if answered in (None, kind) else "literal"


def _find_type(accepted: Sequence[Any]) -> type[Any] | None:
    for each in accepted:
        if each != _ABSENT:
            return cast("type[Any]", type(each))
    return None


def _fit_items(value: list[Any], kind: type, accepted: Any) -> bool:
    if not isinstance(accepted, list):
        return True
    kinds = (kind, _find_type(as_list(accepted)))
    return all(type(item) in kinds for item in value)


def _is_same_object(value: Any, accepted: Any) -> bool:
    """Compare an object with one whose every value is the list of those that count as right.

    Objects within it are compared as they are: the data have choices on the first level only.
    """
    if not isinstance(value, dict) or not isinstance(accepted, dict):
        return False
    fields, choices = as_fields(value), as_fields(accepted)
    for key, item in fields.items():
        if key not in choices or _fold(item) not in map(_fold, _list_choices(choices[key])):
            return False
    return all(key in fields or _ABSENT in _list_choices(choices[key]) for key in choices)


def _are_same_objects(value: list[Any], accepted: Any) -> bool:
    if accepted == _ABSENT:
        return not value
    each = as_list(accepted) if isinstance(accepted, list) else [None]
    return len(value) == len(each) and all(map(_is_same_object, value, each))


def _list_choices(choices: Any) -> list[Any]:
    if isinstance(choices, str):
        return [*choices, _ABSENT]  # a text in place of a list is read letter by letter
    return as_list(choices) if isinstance(choices, list) else []


def _fold_items(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [_fold(letter) for letter in value]
    return [_fold(each) for each in as_list(value)] if isinstance(value, list) else [value]


def _fold(value: Any) -> Any:
    return fold_text(value) if isinstance(value, str) else value


def _as_float(value: int) -> Any:
    try:
        return float(value)
    except OverflowError:
        return value
