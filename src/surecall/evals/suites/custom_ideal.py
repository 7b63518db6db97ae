"""What a good model would do in a case of a user's file, as far as the file says it."""

from collections.abc import Mapping
from typing import Any, Final, cast

from surecall.evals.cases import Ideal, IdealCall
from surecall.evals.scenarios.conversation import Conversation
from surecall.records import ModelRequest, ToolSpec

from .custom_document import CallDoc, CaseDoc, ChecksDoc
from .custom_match import CalledTool, matched_places

__all__ = ["next_step"]

_BY_TYPE: Final[dict[str, Any]] = {
    "array": [],
    "boolean": True,
    "integer": 1,
    "null": None,
    "number": 1,
    "object": {},
}


def next_step(case: CaseDoc, tools: Mapping[str, ToolSpec], request: ModelRequest) -> Ideal:
    """Return the next expected calls, or the text that ends the run."""
    seen = Conversation(request)
    made = [CalledTool(name=call.name, arguments=call.arguments) for call in seen.calls]
    done = matched_places(case, made)
    left = [call for place, call in enumerate(case.calls or ()) if place not in done]
    calls = [_ideal_call(call, tools) for call in left]
    calls = [call for call in calls if call.name in seen.offered]
    if not calls:
        return Ideal(text=_text(case.checks))
    # One at a time where the order counts, because results may have to be read in between.
    return Ideal(calls=tuple(calls if case.order == "any" else calls[:1]))


def _ideal_call(call: CallDoc, tools: Mapping[str, ToolSpec]) -> IdealCall:
    if call.any_of:
        return _ideal_call(call.any_of[0], tools)
    arguments = {**call.arguments, **{key: values[0] for key, values in call.one_of.items()}}
    if call.match == "subset":
        schema = tools[call.tool].parameters
        for name in schema.get("required", ()):
            if name not in arguments and name not in call.absent:
                arguments[name] = _sample(schema.get("properties", {}).get(name, {}))
    return IdealCall(call.tool, arguments)


def _sample(schema: Any) -> Any:
    """Return a value for an argument of which the case says nothing."""
    if not isinstance(schema, dict):
        return "sample"
    fields = cast("dict[str, Any]", schema)
    for key in ("const", "default"):
        if key in fields:
            return fields[key]
    for key in ("enum", "examples"):
        if fields.get(key):
            return fields[key][0]
    kind = fields.get("type")
    if kind in ("integer", "number"):
        return max(1, fields.get("minimum", 1))
    return _BY_TYPE.get(kind, "sample") if isinstance(kind, str) else "sample"


def _text(checks: ChecksDoc) -> str:
    if checks.text_equals is not None:
        return checks.text_equals
    if checks.text_one_of:
        return checks.text_one_of[0]
    return " ".join(checks.text_contains) or "Done."
