"""Whether a case can be passed, and whether the calls that ran are those that it expects."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct

from surecall.base.errors import ConfigError, JSONTextError, ToolDefinitionError, did_you_mean
from surecall.base.records import ToolSpec, clip
from surecall.evals.cases import assign_calls
from surecall.evals.made_calls import states_number
from surecall.evals.records import Reason
from surecall.loop import resolve_options
from surecall.schema import SchemaChecker
from surecall.text import decode

from .document import CallDoc, CaseDoc, ChecksDoc, Document, KeyPath

_NO_CHECKS: Final = ChecksDoc()
_FIRST_CASE: Final = {
    ".csv": "Name the columns in the first row, such as id,prompt,tool; each row below is a case.",
    ".json": 'Write one into the list of "cases".',
    ".jsonl": 'Write one case a line, such as {"id": "greeting", "prompt": "Say hello."}.',
    ".py": "Put one into the list `cases`, as a dict.",
    ".toml": "Write one under [[cases]].",
}
"""How to begin, by the ending of the file."""
_NAME_HINT: Final = "Use letters, digits, '_', '-' and '.'."


def check_document(document: Document, tools: Mapping[str, ToolSpec]) -> None:
    """Refuse the first thing that is wrong.

    Raises:
        ConfigError: With the line and the key.
    """
    suite = document.suite
    if not suite.cases:
        hint = _FIRST_CASE.get(document.place.suffix)
        raise document.refusal(("cases",), "there are no cases.", hint)
    if suite.trials < 1:
        raise document.refusal(("trials",), f"there must be 1 or more, not {suite.trials}.")
    if suite.name is not None:
        _check_name(document, suite.name, ("name",))
    _check_options(document, suite.options, ("options",))
    seen: set[str] = set()
    for place, case in enumerate(suite.cases):
        path = ("cases", place)
        if case.id in seen:
            raise document.refusal((*path, "id"), f"{case.id!r} is there twice.")
        seen.add(case.id)
        _CaseRules(document, case, path, tools).check()


class _CaseRules:
    """The rules for one case."""

    def __init__(
        self, document: Document, case: CaseDoc, path: KeyPath, tools: Mapping[str, ToolSpec]
    ) -> None:
        self._document = document
        self._case = case
        self._path = path
        self._tools = tools

    def check(self) -> None:
        case, path = self._case, self._path
        _check_name(self._document, case.id, (*path, "id"))
        _check_name(self._document, case.scenario, (*path, "scenario"))
        self._check_messages()
        _check_options(self._document, case.options, (*path, "options"))
        for place, name in enumerate(case.tools or ()):
            self._require_tool(name, (*path, "tools", place), self._tools)
        for place, name in enumerate(case.absent):
            self._require_tool(name, (*path, "absent", place), self._tools)
        for place, result in enumerate(case.results):
            self._require_tool(result.tool, (*path, "results", place, "tool"), self._tools)
        for place, call in enumerate(case.calls or ()):
            self._check_call(call, (*path, "calls", place))
        self._check_patterns()
        if case.calls is None and not case.absent and case.checks == _NO_CHECKS:
            hint = "Say which calls are right, which tools must be absent, or what to check."
            raise self._document.refusal(path, "nothing is expected, so all would pass.", hint)

    def _check_messages(self) -> None:
        case, path = self._case, self._path
        if case.prompt is not None and case.messages:
            hint = "Put the prompt at the end of the messages."
            raise self._document.refusal(path, "it has both a prompt and messages.", hint)
        if case.prompt is None and not case.messages:
            raise self._document.refusal(path, "nothing is asked.", "Write a prompt.")
        if case.prompt is not None and not case.prompt.strip():
            raise self._document.refusal((*path, "prompt"), "it is empty.", "Write a prompt.")

    def _check_patterns(self) -> None:
        checks, path = self._case.checks, (*self._path, "checks")
        pattern = None if checks.text_matches is None else {"pattern": checks.text_matches}
        for key, schema in (("text_matches", pattern), ("text_schema", checks.text_schema)):
            try:
                SchemaChecker({} if schema is None else schema).check(None)
            except ToolDefinitionError as error:
                raise self._document.refusal((*path, key), error.message, error.hint) from error

    def _check_call(self, call: CallDoc, path: KeyPath) -> None:
        if call.any_of:
            if call != CallDoc(any_of=call.any_of):
                hint = "Move everything else into the alternatives."
                raise self._document.refusal(path, "any_of must be alone.", hint)
            for place, choice in enumerate(call.any_of):
                self._check_call(choice, (*path, "any_of", place))
            return
        offered = tuple(self._tools) if self._case.tools is None else self._case.tools
        self._require_tool(call.tool, (*path, "tool"), offered)
        self._document.check_json(call.arguments, (*path, "arguments"))
        self._document.check_json(call.one_of, (*path, "one_of"))
        if call.tool in self._case.absent:
            hint = "Take it out of one of them."
            message = f"{call.tool!r} is expected, and must be absent."
            raise self._document.refusal((*path, "tool"), message, hint)
        for key, values in call.one_of.items():
            self._check_one_of(call, key, values, path)
        for key in (*call.arguments, *call.one_of):
            if key in call.absent:
                message = f"{key!r} is expected, and must be absent."
                raise self._document.refusal((*path, "absent"), message, "Keep one of them.")
        self._check_arguments(call, path)

    def _check_one_of(
        self, call: CallDoc, key: str, values: Collection[Any], path: KeyPath
    ) -> None:
        if not values:
            message = "there is no value that would be right."
            raise self._document.refusal((*path, "one_of", key), message, "List one or more.")
        if key in call.arguments:
            message = f"{key!r} is in arguments as well."
            raise self._document.refusal((*path, "one_of", key), message, "Keep one of them.")

    def _check_arguments(self, call: CallDoc, path: KeyPath) -> None:
        """Refuse a call that the tool itself would refuse, because no model could pass it."""
        schema = self._tools[call.tool].parameters
        if call.match == "exact":
            given = {**call.arguments, **{key: call.one_of[key][0] for key in call.one_of}}
            found = SchemaChecker(schema).check(given)
            if found:
                first = found[0]
                message = f"{call.tool} would refuse this call: {first.message}"
                raise self._document.refusal((*path, "arguments"), message, first.hint)
            return
        if schema.get("additionalProperties") is not False:
            return
        known: dict[str, Any] = schema.get("properties", {})
        for key in (*call.arguments, *call.one_of):
            if key not in known:
                message = f"{call.tool} has no argument {key!r}."
                hint = did_you_mean(key, known)
                raise self._document.refusal((*path, "arguments", key), message, hint)

    def _require_tool(self, name: str, path: KeyPath, known: Collection[str]) -> None:
        if name not in known:
            message = f"there is no tool {name!r}." if name else "no tool is named."
            if name in self._tools:
                message = f"the tool {name!r} is not offered in this case."
            raise self._document.refusal(path, message, did_you_mean(name, known))


def _check_name(document: Document, name: str, path: KeyPath) -> None:
    if not name or not all(char.isalnum() or char in "_-." for char in name):
        raise document.refusal(path, f"{name!r} cannot be a name.", _NAME_HINT)


def _check_options(document: Document, options: Mapping[str, Any], path: KeyPath) -> None:
    for name, value in options.items():
        try:
            resolve_options({name: value})
        except ConfigError as error:
            raise document.refusal((*path, name), error.message, error.hint) from error


class CalledTool(Struct, frozen=True, kw_only=True):
    """A call that ran."""

    name: str
    arguments: dict[str, Any]
    ok: bool = True
    data: dict[str, Any] = {}
    """What the tool answered."""


def check_calls(case: CaseDoc, ran: Sequence[CalledTool]) -> list[Reason]:
    """Say why the calls that ran are not the expected ones; nothing when they are."""
    wanted = case.calls
    if wanted is None:
        return []
    used = match_places(case, ran)
    missing = [call for place, call in enumerate(wanted) if place not in used]
    taken = set(used.values())
    others = [call for place, call in enumerate(ran) if place not in taken]
    reasons = [Reason("CALL_MISSING", _compare(call, others)) for call in missing]
    if case.extra_calls == "refuse":
        reasons += (
            Reason("CALL_UNEXPECTED", _describe_call(call.name, call.arguments)) for call in others
        )
    return reasons


def match_places(case: CaseDoc, ran: Sequence[CalledTool]) -> dict[int, int]:
    """Return, for each expected call that was made, the place of the call that it is."""
    match = _match_any_order if case.order == "any" else _match_in_order
    return match(case.calls or (), ran)


def is_expected(case: CaseDoc, call: CalledTool) -> bool:
    """Tell whether a call is any of the expected ones."""
    return any(_is_right(wanted, call) for wanted in case.calls or ())


def check_text(checks: ChecksDoc, text: str) -> Iterator[Reason]:
    """Yield what is wrong with the final text; spaces around it do not count."""
    given = text.strip()
    text = _fold(given, checks)
    shown = clip(repr(text), 120)
    accepted = [*checks.text_one_of]
    if checks.text_equals is not None:
        accepted.append(checks.text_equals)
    if accepted and text not in [_fold(each.strip(), checks) for each in accepted]:
        yield Reason("TEXT_WRONG", f"{shown} is not {' or '.join(map(repr, accepted))}")
    for part in checks.text_contains:
        if _fold(part, checks) not in text:
            yield Reason("TEXT_WRONG", f"{part!r} is not in {shown}")
    for part in checks.text_lacks:
        if _fold(part, checks) in text:
            yield Reason("TEXT_WRONG", f"{part!r} is in {shown}")
    if checks.text_number is not None and not states_number(given, checks.text_number):
        yield Reason("TEXT_WRONG", f"{checks.text_number:g} is not in {shown}")
    if checks.text_matches is not None:
        pattern = {"type": "string", "pattern": checks.text_matches}
        if SchemaChecker(pattern).check(given):
            yield Reason("TEXT_WRONG", f"{shown} does not match {checks.text_matches}")
    if checks.text_schema is not None:
        yield from _check_schema(checks.text_schema, given)


def _check_schema(schema: dict[str, Any], text: str) -> Iterator[Reason]:
    try:
        value = decode(text)
    except JSONTextError as error:
        yield Reason("TEXT_WRONG", f"it is not JSON: {clip(str(error), 120)}")
        return
    for wrong in SchemaChecker(schema).check(value)[:1]:
        yield Reason("TEXT_WRONG", clip(wrong.message, 200))


def fits(when: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Tell whether a call has these arguments, whatever others it has."""
    return all(
        key in arguments and same_value(value, arguments[key]) for key, value in when.items()
    )


def same_value(wanted: Any, found: Any) -> bool:
    """Tell whether two JSON values are the same; 1 and 1.0 are, 1 and true are not."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            return False
        mine, theirs = cast("Mapping[str, Any]", wanted), cast("Mapping[str, Any]", found)
        return mine.keys() == theirs.keys() and fits(mine, theirs)
    if isinstance(wanted, list | tuple):
        if not isinstance(found, list | tuple):
            return False
        items, others = cast("Sequence[Any]", wanted), cast("Sequence[Any]", found)
        return len(items) == len(others) and all(map(same_value, items, others))
    return bool(wanted == found)


def _is_right(wanted: CallDoc, call: CalledTool) -> bool:
    if wanted.any_of:
        return any(_is_right(choice, call) for choice in wanted.any_of)
    given = call.arguments
    if call.name != wanted.tool or any(key in given for key in wanted.absent):
        return False
    if not fits(wanted.arguments, given):
        return False
    for key, choices in wanted.one_of.items():
        if key not in given or not any(same_value(choice, given[key]) for choice in choices):
            return False
    return wanted.match == "subset" or given.keys() == wanted.arguments.keys() | wanted.one_of


def _match_in_order(wanted: Sequence[CallDoc], ran: Sequence[CalledTool]) -> dict[int, int]:
    used: dict[int, int] = {}
    start = 0
    for place, call in enumerate(wanted):
        found = next((i for i in range(start, len(ran)) if _is_right(call, ran[i])), None)
        if found is not None:
            used[place], start = found, found + 1
    return used


def _match_any_order(wanted: Sequence[CallDoc], ran: Sequence[CalledTool]) -> dict[int, int]:
    right = [[i for i, made in enumerate(ran) if _is_right(call, made)] for call in wanted]
    return assign_calls(right)


def _compare(wanted: CallDoc, others: Sequence[CalledTool]) -> str:
    """Say which call was expected, and which of the same tool came in its place."""
    names = {choice.tool for choice in (wanted, *wanted.any_of)}
    got = [_describe_call(call.name, call.arguments) for call in others if call.name in names]
    return f"expected {_describe_wanted(wanted)}" + (f", got {got[0]}" if got else "")


def _describe_wanted(call: CallDoc) -> str:
    if call.any_of:
        return " or ".join(_describe_wanted(choice) for choice in call.any_of)
    arguments: dict[str, Any] = {**call.arguments}
    arguments |= {key: {"one_of": list(values)} for key, values in call.one_of.items()}
    return _describe_call(call.tool, arguments)


def _describe_call(name: str, arguments: Mapping[str, Any]) -> str:
    return clip(f"{name} {dict(arguments)!r}", 200)


def _fold(text: str, checks: ChecksDoc) -> str:
    return text.casefold() if checks.ignore_case else text
