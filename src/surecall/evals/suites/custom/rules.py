"""What a file of cases has to fulfil beyond its form: every case can be run and can be passed."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from surecall.base.errors import ConfigError, ToolDefinitionError, did_you_mean
from surecall.base.records import ToolSpec
from surecall.loop import resolve_options
from surecall.schema import SchemaChecker

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
