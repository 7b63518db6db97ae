"""The shapes in which models write calls as JSON."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

from surecall.base.records import Receipt, clip
from surecall.text import decode_plain, repair_json, scan_value_end

from .formats import TextCall, as_object, text_receipt
from .json_spans import Keys, Record, scan_records
from .leftovers import FLAT_ARGUMENTS, doubt_calls, return_members
from .names import ToolNames, parameter_names
from .source import spend_nothing

NAME_KEYS: Final = (
    "name", "tool_name", "function_name", "toolName", "functionName", "tool", "function", "action",
    "recipient_name", "api",
)  # fmt: skip
ARGUMENT_KEYS: Final = (
    "arguments", "parameters", "args", "input", "tool_input", "action_input", "params", "kwargs",
    "tool_args", "tool_parameters", "function_args", "tool_arguments", "toolInput", "toolArgs",
    "actionInput", "arguments_json",
)  # fmt: skip
LIST_KEYS: Final = (
    "tool_calls", "toolcalls", "toolCalls", "function_calls", "functionCalls", "calls",
    "functions", "tool_uses",
)  # fmt: skip
ONE_KEYS: Final = (
    "function", "function_call", "functionCall", "tool_call", "toolCall", "tool_use", "toolUse",
)  # fmt: skip
ID_KEYS: Final = ("id", "tool_call_id", "call_id", "toolCallId", "toolUseId")
THOUGHT_KEYS: Final = ("thought", "thoughts", "reasoning", "explanation")
TEXT_KEYS: Final = ("content", "response")
BESIDE: Final = frozenset({*ID_KEYS, *THOUGHT_KEYS, "type", "index"})
"""Keys that may stand beside a name and its arguments without making it something else."""
_TYPES: Final = frozenset({"function", "function_call", "tool_call", "tool_use", "tool"})
_ASIDE: Final = frozenset({*BESIDE, "role", "content"})
"""Keys that may stand beside a call, unless the tool has such a parameter."""
_RESULT_KEYS: Final = frozenset({"result", "output", "content", "tool_call_id"})
_JSON_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object", "null")
_SCHEMA_KEYS: Final = frozenset(
    {"type", "description", "default", "enum", "items", "properties", "required", "format", "title"}
    | {"example", "examples", "minimum", "maximum", "minLength", "maxLength", "pattern"}
)
PARALLEL: Final = frozenset({"multi_tool_use.parallel", "multi_tool_use", "parallel"})
_KEYS: Final = Keys(
    frozenset(NAME_KEYS), frozenset(ARGUMENT_KEYS), frozenset({*LIST_KEYS, *ONE_KEYS})
)
_NO_NAME: Final = frozenset('<>\n"')
_BETWEEN: Final = " \t\r\n[],;"
_BROKEN: Final = text_receipt(
    "drop_leftover", "", "", "the object around the call is damaged", lossless=False
)
_DAMAGED: Final = "The JSON around the arguments is damaged, so a part of them may be missing."
_NO_ARGUMENTS: Final = text_receipt(
    "missing_arguments", "", "{}", "no arguments can be read", lossless=False
)
_CHARACTERS_PER_MARK: Final = 8


class JsonCalls(NamedTuple):
    """The calls that JSON holds, and what in it is not a call."""

    calls: tuple[TextCall, ...]
    others: int
    """How many values beside the calls are something else."""
    content: str = ""
    """Text for a person that stands beside a list of calls."""
    reasoning: str = ""
    """Thoughts that stand beside calls."""
    is_odd: bool = False
    """Whether it has keys that calls have not, or only names of tools for keys."""


def read_json_calls(
    text: str,
    *,
    ended: bool = True,
    tools: ToolNames | None = None,
    spend: Callable[[int], None] = spend_nothing,
) -> tuple[TextCall, ...]:
    """Return the calls a JSON text holds: one object, an array, or several in a row.

    Args:
        text: The JSON text, as far as it goes.
        ended: Whether it is there to its end; otherwise its last call is cut.
        tools: The tools, to tell shapes apart that depend on them (see `calls_of_value`).
        spend: Receives what it costs, see `Source.spend_on_marks`.
    """
    spend(len(text) // _CHARACTERS_PER_MARK)
    if ended:
        repaired = repair_json(text, ended=True)
        if repaired.state == "whole":
            values = [repaired.value, *repaired.rest]
            found = find_calls(values, repaired.receipts, tools=tools)
            has_more = found.others > 0 and (found.calls or bool(repaired.rest))
            return doubt_calls(found.calls, _DAMAGED, _BROKEN) if has_more else found.calls
    records = scan_records(text, _KEYS, spend)
    calls = tuple(call for record in records for call in _calls_of_record(record, text, tools))
    return doubt_calls(calls, _DAMAGED, _BROKEN) if _holds_more(text, records) else calls


def _holds_more(text: str, records: list[Record]) -> bool:
    """Tell whether something stands between the objects that were found."""
    here = 0
    for record in records:
        if text[here : record.start].strip(_BETWEEN):
            return True
        here = len(text) if record.end is None else record.end
    return bool(text[here:].strip(_BETWEEN))


def _calls_of_record(record: Record, text: str, tools: ToolNames | None) -> tuple[TextCall, ...]:
    """Return what one object of a text that is not readable as a whole stands for."""
    if record.end is not None:
        repaired = repair_json(text[record.start : record.end], ended=True)
        if repaired.state == "whole":
            return calls_of_value(repaired.value, repaired.receipts, tools=tools)
    name = repair_json(record.name, ended=True).value
    if not _is_name(name):
        return ()
    written = record.arguments or ""
    if record.end is not None:
        receipts = (_BROKEN,) if written else (_BROKEN, _NO_ARGUMENTS)
        call = TextCall(name=name, arguments=written, doubt=_DAMAGED, receipts=receipts)
        return (call,)
    unclosed = written if _is_whole_object(written) else None
    return (TextCall(name=name, arguments=written, state="cut", unclosed=unclosed),)


def _is_whole_object(text: str) -> bool:
    if text[:1] != "{":
        return False
    return decode_plain(text) is not None or scan_value_end(text) == len(text)


def calls_of_value(
    value: Any, receipts: tuple[Receipt, ...] = (), *, tools: ToolNames | None = None
) -> tuple[TextCall, ...]:
    """Return the calls that a JSON value stands for, whatever shape it has (see `find_calls`)."""
    return find_calls(value, receipts, tools=tools).calls


def find_calls(
    value: Any,
    receipts: tuple[Receipt, ...] = (),
    *,
    tools: ToolNames | None = None,
    keyed: bool = False,
) -> JsonCalls:
    """Return the calls that a JSON value stands for, and how much of it is something else.

    Args:
        value: An object, or a list of them at any depth.
        receipts: What was changed to read the value; each call carries them.
        tools: The tools. With them, an object whose keys are names of tools is a call for each,
            and one that has its arguments beside the name is a call if all are parameters.
        keyed: Whether each key of an object is the name of a tool, known or not.
    """
    finder = _Finder(receipts, tools)
    finder.follow(value, keyed=keyed)
    content, reasoning = "".join(finder.content), "\n".join(finder.reasoning)
    return JsonCalls(tuple(finder.calls), finder.others, content, reasoning, finder.is_odd)


class _Finder:
    """Follows a value into its lists and wrappers, and notes what stands beside calls."""

    def __init__(self, receipts: tuple[Receipt, ...], tools: ToolNames | None) -> None:
        self._receipts = receipts
        self._tools = tools
        self.calls: list[TextCall] = []
        self.others = 0
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.is_odd = False

    def follow(self, value: Any, *, keyed: bool) -> None:
        """Take the calls that a value stands for."""
        waiting: list[tuple[Any, dict[str, Any]]] = [(value, {})]
        while waiting:
            item, beside = waiting.pop()
            if isinstance(item, list):
                entries = cast("list[Any]", item)
                self.others += not entries
                waiting.extend((_record_of(entry), beside) for entry in reversed(entries))
                continue
            record = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
            name_key = _name_key(record)
            used = next(filter(record.__contains__, ARGUMENT_KEYS), "")
            if not keyed and (inner := _inner_calls(record, name_key, used)):
                self._note(inner.beside, (*TEXT_KEYS, "role") if inner.is_list else ())
                waiting.append((inner.calls, {**beside, **inner.beside}))
                continue
            found = () if name_key and not keyed else self._keyed_calls(record, keyed=keyed)
            if not found and (call := self._call_of(record, name_key, used)):
                found = (call,)
            self.calls += [self._with_members(call, beside) for call in found] if beside else found
            self.others += not found

    def _note(self, members: dict[str, Any], expected: tuple[str, ...] = ()) -> None:
        """Take members of the object around a call."""
        for key, value in members.items():
            is_text = isinstance(value, str)
            if key in expected:
                self.content += (value,) if is_text and key in TEXT_KEYS else ()
                continue
            self.is_odd |= key not in BESIDE or (
                key == "type" and not (is_text and value in _TYPES)
            )
            self.reasoning += (value,) if is_text and key in THOUGHT_KEYS else ()

    def _parameters(self, name: str) -> frozenset[str]:
        tools = self._tools
        return frozenset(parameter_names(None if tools is None else tools.parameters(name)))

    def _with_members(self, call: TextCall, beside: dict[str, Any]) -> TextCall:
        """Return a call beside which other members stand than those that speak about it."""
        arguments: Any = call.arguments
        given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
        own = self._parameters(call.name)
        more = {
            key: value
            for key, value in beside.items()
            if key not in _ASIDE or (key in own and key not in given)
        }
        if not more:
            return call
        return return_members(call, more, self._tools, f"{', '.join(more)} beside the arguments")

    def _keyed_calls(self, record: dict[str, Any], *, keyed: bool) -> Sequence[TextCall]:
        """Return the calls of `{"name of a tool": {arguments}}`."""
        kinds = (dict, str) if keyed else dict
        if not all(value is None or isinstance(value, kinds) for value in record.values()):
            return ()
        tools = self._tools
        known = [key for key in record if tools is not None and tools.resolve(key)]
        if not keyed and len(known) < len(record):
            return ()
        named = known or list(record)
        self.is_odd |= len(named) > 1
        calls = (TextCall(name=it, arguments=record[it], receipts=self._receipts) for it in named)
        beside = _without(record, *named)
        return [self._with_members(call, beside) if beside else call for call in calls]

    def _call_of(self, record: dict[str, Any], name_key: str, used: str) -> TextCall | None:
        """Return the call that an object with a name is."""
        kind = record.get("type")
        if not name_key and isinstance(kind, str) and self._tools and self._tools.resolve(kind):
            name_key = "type"
        if not name_key or _is_definition_or_result(record, used):
            return None
        name, receipts = record[name_key], self._receipts
        beside = _without(record, name_key, used)
        if not used:
            own = self._parameters(name)
            given = {key: beside[key] for key in beside if key in own or key not in BESIDE}
            if not own.issuperset(given):
                return None
            self._note(_without(beside, *given))
            self.is_odd |= name_key == "type"
            if given:
                receipts = (*receipts, Receipt(FLAT_ARGUMENTS, "", list(given), "arguments"))
            return TextCall(
                name=name, arguments=given or None, id=_id_of(record), receipts=receipts
            )
        arguments = record[used]
        if isinstance(arguments, list):
            unwrapped = _unwrap_arguments(cast("list[Any]", arguments))
            if unwrapped is not None:
                before, arguments = clip(str(cast("list[Any]", arguments))), unwrapped
                receipts = (*receipts, Receipt("unwrap_argument_list", "", before, arguments))
        call = TextCall(name=name, arguments=arguments, id=_id_of(record), receipts=receipts)
        if not beside:
            return call
        self._note(beside)
        return self._with_members(call, beside)


def _record_of(entry: Any) -> Any:
    """Return an entry of a list; one that is the JSON text of an object, as that object."""
    record = as_object(entry)
    return entry if record is None else record


class _Inner(NamedTuple):
    """What a wrapper holds, and what stands beside it."""

    calls: Any
    beside: dict[str, Any]
    is_list: bool = True


def _inner_calls(record: dict[str, Any], name_key: str, used: str) -> _Inner | None:
    """Return what a wrapper holds: a list of calls, or one call under a key of its own."""
    if used and (not name_key or record[name_key] in PARALLEL):
        given = record[used]
        uses = cast("dict[str, Any]", given).get("tool_uses") if isinstance(given, dict) else None
        if isinstance(uses, list):
            return _Inner(uses, {})
    if used and name_key:
        return None
    for key in LIST_KEYS:
        if isinstance(record.get(key), list):
            return _Inner(record[key], _without(record, key))
    for key in ONE_KEYS:
        value = record.get(key)
        inner = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if _name_key(inner):
            own_id = _id_of(record)
            call = {"id": own_id, **inner} if own_id else inner
            return _Inner(call, _without(record, key), is_list=False)
    return None


def _without(record: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in keys}


def _is_definition_or_result(record: dict[str, Any], used: str) -> bool:
    """Tell whether an object describes a tool, or says what one returned."""
    parameters = record.get("parameters")
    if describes_parameters(parameters):
        return True
    if isinstance(parameters, dict) and "properties" in parameters:
        return cast("dict[str, Any]", parameters).get("type") == "object"
    if isinstance(record.get("description"), str) and used in ("", "parameters"):
        return True
    return not used and (record.get("role") == "tool" or not _RESULT_KEYS.isdisjoint(record))


def describes_parameters(arguments: Any) -> bool:
    """Tell whether each value only says of which type it would be, as in a tool's declaration."""
    if not isinstance(arguments, dict) or not arguments:
        return False
    return all(map(_is_schema, cast("dict[str, Any]", arguments).values()))


def _is_schema(value: Any) -> bool:
    record = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return record.get("type") in _JSON_TYPES and record.keys() <= _SCHEMA_KEYS


def _unwrap_arguments(arguments: list[Any]) -> dict[str, Any] | None:
    """Return the one object of a list, or what a list of names and values says."""
    if not arguments or not all(isinstance(entry, dict) for entry in arguments):
        return None
    entries = cast("list[dict[str, Any]]", arguments)
    for key in ("name", "key"):
        if all(entry.keys() == {key, "value"} for entry in entries):
            pairs = {entry[key]: entry["value"] for entry in entries if _is_name(entry[key])}
            return pairs if len(pairs) == len(entries) else None
    return entries[0] if len(entries) == 1 else None


def _name_key(record: dict[str, Any]) -> str:
    """Return the key that the name of a call stands under."""
    return next((key for key in NAME_KEYS if key in record and _is_name(record[key])), "")


def _is_name(value: Any) -> bool:
    """Tell whether a value can be a name; one in angle brackets is a gap in a template."""
    return isinstance(value, str) and bool(value.strip()) and _NO_NAME.isdisjoint(value)


def _id_of(record: dict[str, Any]) -> str | None:
    for key in filter(record.__contains__, ID_KEYS):
        value = record[key]
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None
