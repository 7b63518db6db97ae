"""Whether JSON without markers may count as calls: shape, known name, fitting arguments."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct, structs

from surecall.base.errors import JSONTextError
from surecall.base.limits import MAX_VALUE_DEPTH
from surecall.base.records import Receipt, clip
from surecall.text import decode, repair_json

from .formats import TextCall
from .names import PLACEHOLDERS, ToolNames, parameter_names
from .shapes import (
    ARGUMENT_KEYS,
    FLAT_ARGUMENTS,
    ID_KEYS,
    LIST_KEYS,
    NAME_KEYS,
    ONE_KEYS,
    PARALLEL,
    THOUGHT_KEYS,
    describes_parameters,
    read_json_calls,
)
from .source import Source

_CODE_TOOLS: Final = frozenset(
    {
        "code",
        "code_interpreter",
        "execute_code",
        "execute_python",
        "interpreter",
        "ipython",
        "python",
        "python_interpreter",
        "run_code",
        "run_python",
    }
)


def has_required(parameters: dict[str, Any] | None) -> bool:
    """Tell whether a call without arguments would lack something."""
    return bool((parameters or {}).get("required"))


def fits(parameters: dict[str, Any] | None, keys: Iterable[str]) -> bool:
    """Tell whether a tool has parameters of these names, or says that it takes others too.

    A schema that is silent about further keys is read as taking none: bare text must fit exactly.
    """
    schema = parameters or {}
    if not isinstance(schema.get("properties"), dict):
        return True
    if schema.get("additionalProperties") or schema.get("patternProperties"):
        return True
    return set(keys) <= set(parameter_names(schema))


def is_tool(name: Any, tools: ToolNames) -> bool:
    """Tell whether a value names a tool."""
    return isinstance(name, str) and tools.resolve(name) is not None


def fits_exactly(value: Mapping[str, Any], parameters: dict[str, Any] | None) -> bool:
    """Tell whether arguments are all declared, and all that are required are there."""
    required = (parameters or {}).get("required")
    wanted = set(cast("list[str]", required)) if isinstance(required, list) else set[str]()
    return value.keys() <= set(parameter_names(parameters)) and wanted <= value.keys()


def single_parameter(parameters: dict[str, Any] | None) -> str | None:
    """Return the one parameter that plain text can be meant for, if there is exactly one."""
    names = parameter_names(parameters)
    if len(names) == 1:
        return names[0]
    required = (parameters or {}).get("required")
    if isinstance(required, list):
        wanted = [name for name in cast("list[Any]", required) if name in names]
        return wanted[0] if len(wanted) == 1 else None
    return None


def name_lone_text(parameters: dict[str, Any] | None, text: str) -> str | None:
    """Return the parameter that plain text is the value of, if it can be meant for one only.

    JSON that is broken, a word for nothing, and values with names of their own are not plain.
    """
    if _NOT_PLAIN.match(text):
        return None
    named = _NAMED_VALUE.match(text)
    known = {name.lower() for name in parameter_names(parameters)}
    return None if named and named[1].lower() in known else single_parameter(parameters)


def note_only(text: str, only: str) -> Receipt:
    """Return the receipt of plain text that is taken as the value of the one parameter."""
    why = "it stands in the place of the arguments"
    return Receipt("only_parameter", "text", clip(text), only, lossless=False, why=why)


def code_call(tools: ToolNames, code: str, *, is_ended: bool = True) -> TextCall | None:
    """Return raw code as a call of the one tool that runs code, if there is exactly one.

    Code has no end of its own, so without a marker behind it (`is_ended`) it is whole only if the
    message came to its end.
    """
    able = [name for name in tools.names if name.lower() in _CODE_TOOLS]
    if len(able) != 1:
        return None
    names = parameter_names(tools.parameters(able[0])) or ("code",)
    if len(names) != 1:
        return None
    arguments = {names[0]: code}
    if is_ended:
        return TextCall(name=able[0], arguments=arguments)
    return TextCall(
        name=able[0], arguments=arguments, state="cut", unclosed=arguments, may_go_on=True
    )


_TEXT_KEYS: Final = ("content", "response")
_BESIDE: Final = frozenset({*ID_KEYS, *THOUGHT_KEYS, "type", "index"})
"""Keys that may stand beside a name and its arguments without making it something else."""
_TYPES: Final = frozenset({"function", "function_call", "tool_call", "tool_use", "tool"})
_FINAL: Final = "final answer"
_BARE_TEXT: Final = "quote_bare_text"
_MAX_CALLS: Final = 128

_NOT_PLAIN: Final = re.compile(
    r"(?:\s|<[^<>]{1,40}+>|[>=:])*+(?:\Z|\{|\[\s*+[\[\]{\"'\d-]|(?i:null|none)\s*+\Z)"
)
_NAMED_VALUE: Final = re.compile(r"[\s\"'*`-]*+([^\W\d][\w-]{0,60}+)[\"'*`]*+\s*+[=:]")

_FILL_IN: Final = re.compile(
    r"\s*+(?:\.{3}|…|<\.{3}>|\{\{[^{}]{0,60}+\}\}|YOUR[_ -][A-Z_ -]{1,40}+|[A-Z_]{1,40}?_HERE"
    r"|x{3,8}+|X{3,8}+|_{3,20}+|TBD|FIX[M]E"
    r"|(?i:your|insert|enter)[ _][\w -]{1,40}+(?<=[ _]here))\s*+"
)
_NAMED_PLACE: Final = re.compile(r"\s*+[<{\[]([A-Za-z][\w .-]{0,60}+)[>}\]]\s*+")
_ANY_VALUE: Final = frozenset(
    {"value", "string", "str", "text", "number", "your", "insert", "some"}
)
_TYPE_NAMES: Final = frozenset(
    {"string", "str", "integer", "int", "number", "float", "boolean", "bool", "array", "object"}
)
_PLACEHOLDER_MEMBER: Final = re.compile(r":\s*+\"(?:\.\.\.|…|<\.\.\.>)\"")

KNOWN_KEYS: Final = frozenset(
    {
        *NAME_KEYS,
        *ARGUMENT_KEYS,
        *LIST_KEYS,
        *ONE_KEYS,
        *_TEXT_KEYS,
        *_BESIDE,
        "role",
    }
)
"""Keys one of which an object that stands for calls begins with, unless a tool's name does."""


class Gated(Struct, frozen=True):
    """Calls that passed, and the text that stood beside them."""

    calls: tuple[TextCall, ...] = ()
    content: str = ""
    reasoning: str = ""


class _Refused(Exception):  # noqa: N818 - a signal, not an error
    """Something in the value is not a call."""


def gate_value(
    value: Any,
    tools: ToolNames,
    receipts: tuple[Receipt, ...] = (),
    *,
    is_whole: bool = True,
) -> Gated | None:
    """Return the calls that a value stands for, or `None` when any part of it is not a call.

    Args:
        value: A JSON value.
        tools: The tools that may be called.
        receipts: What was changed to read the value.
        is_whole: Whether the value is complete; otherwise arguments may be missing still.
    """
    try:
        return _Gate(tools, receipts, is_whole=is_whole).pass_value(value)
    except _Refused:
        return None


class _Gate:
    def __init__(self, tools: ToolNames, receipts: tuple[Receipt, ...], *, is_whole: bool) -> None:
        self._tools = tools
        self._receipts = receipts
        self._is_whole = is_whole
        self._calls: list[TextCall] = []
        self._content: list[str] = []
        self._reasoning: list[str] = []

    def pass_value(self, value: Any) -> Gated:
        waiting: list[Any] = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, list):
                items = cast("list[Any]", item)
                if not items or len(items) + len(self._calls) > _MAX_CALLS:
                    raise _Refused
                waiting.extend(reversed(items))
            elif isinstance(item, dict):
                inner = self._pass_record(cast("dict[str, Any]", item))
                if inner is not None:
                    waiting.append(inner)
            else:
                raise _Refused
        if not self._calls and not self._content:
            raise _Refused
        return Gated(tuple(self._calls), "".join(self._content), "\n".join(self._reasoning))

    def _pass_record(self, record: dict[str, Any]) -> Any:
        """Take a call, or return what a wrapper holds."""
        if len(record) == 1:
            name, arguments = next(iter(record.items()))
            if name in self._tools.names and isinstance(arguments, dict):
                self._take(name, cast("dict[str, Any]", arguments), None)
                return None
        for key in LIST_KEYS:
            if isinstance(record.get(key), list):
                self._pass_beside(record, key, *_TEXT_KEYS, "role")
                return record[key]
        for key in ONE_KEYS:
            if isinstance(record.get(key), dict):
                self._pass_beside(record, key)
                inner = cast("dict[str, Any]", record[key])
                own_id = _id_of(record)
                return {"id": own_id, **inner} if own_id else inner
        return self._pass_call(record)

    def _pass_call(self, record: dict[str, Any]) -> Any:
        name_key = next((key for key in NAME_KEYS if isinstance(record.get(key), str)), None)
        held = [key for key in ARGUMENT_KEYS if key in record]
        # The type of other records may be named like a tool; what has arguments is no record.
        if name_key is None and held and record.get("type") in self._tools.names:
            name_key = "type"
        if name_key is None:
            raise _Refused
        name = cast("str", record[name_key])
        if len(held) > 1:
            raise _Refused
        arguments = record[held[0]] if held else None
        if name.strip().lower() == _FINAL and isinstance(arguments, str):
            self._content.append(arguments)
            return None
        if name in PARALLEL and self._tools.resolve(name) is None:
            self._pass_beside(record, name_key, *held)
            return _uses_of(arguments)
        parameters = self._tools.parameters(name)
        if parameters is None or name.strip().lower() in PLACEHOLDERS:
            raise _Refused
        if held:
            self._pass_beside(record, name_key, held[0])
            self._pass_arguments(name, arguments, parameters, _id_of(record))
        else:
            self._pass_flat(name, name_key, record, parameters)
        return None

    def _pass_flat(
        self, name: str, name_key: str, record: dict[str, Any], parameters: dict[str, Any]
    ) -> None:
        """Take arguments that stand beside the name, without a container."""
        known = parameter_names(parameters)
        rest = {key: value for key, value in record.items() if key != name_key}
        flat = {key: value for key, value in rest.items() if key in known}
        self._pass_beside({key: rest[key] for key in rest if key not in flat})
        if not flat and self._is_whole and has_required(parameters):
            raise _Refused
        if "description" in rest and "description" not in known:
            raise _Refused
        own_id = _id_of(record) if "id" not in flat else None
        moved = (Receipt(FLAT_ARGUMENTS, "", list(flat), "arguments"),) if flat else ()
        self._take(name, flat, own_id, *moved)

    def _pass_arguments(
        self, name: str, arguments: Any, parameters: dict[str, Any], own_id: str | None
    ) -> None:
        if isinstance(arguments, list) and len(cast("list[Any]", arguments)) == 1:
            arguments = cast("list[Any]", arguments)[0]
            if not isinstance(arguments, dict) and len(parameter_names(parameters)) != 1:
                raise _Refused  # a value by its position
        if arguments is None or arguments == "":
            self._take(name, {}, own_id)
        elif isinstance(arguments, dict):
            self._take(name, cast("dict[str, Any]", arguments), own_id)
        elif isinstance(arguments, str):
            self._pass_text(name, arguments, parameters, own_id)
        else:
            raise _Refused

    def _pass_text(
        self, name: str, text: str, parameters: dict[str, Any], own_id: str | None
    ) -> None:
        """Take arguments given as text: JSON once more, or the value of the one parameter."""
        try:
            value = decode(text)
        except JSONTextError:
            value = repair_json(text, ended=True).value if text.lstrip()[:1] == "{" else None
        if isinstance(value, dict):
            if not fits(parameters, cast("dict[str, Any]", value)):
                raise _Refused
            self._add(name, text, own_id)
            return
        if single_parameter(parameters) is None:
            raise _Refused
        only = name_lone_text(parameters, text)
        if only is None:
            self._add(name, text, own_id)
            return
        if any(receipt.rule == _BARE_TEXT for receipt in self._receipts):
            raise _Refused  # words without quotes are no value
        self._take(name, {only: text}, own_id, note_only(text, only))

    def _take(
        self, name: str, arguments: dict[str, Any], own_id: str | None, *receipts: Receipt
    ) -> None:
        parameters = self._tools.parameters(name)
        if not fits(parameters, arguments) or _is_definition(arguments, parameters):
            raise _Refused
        self._add(name, arguments, own_id, *receipts)

    def _add(self, name: str, arguments: Any, own_id: str | None, *receipts: Receipt) -> None:
        noted = (*self._receipts, *receipts)
        self._calls.append(TextCall(name=name, arguments=arguments, id=own_id, receipts=noted))

    def _pass_beside(self, record: dict[str, Any], *expected: str) -> None:
        """Check that nothing stands beside the expected keys that makes it something else."""
        for key, value in record.items():
            if key in expected:
                if key in _TEXT_KEYS and isinstance(value, str):
                    self._content.append(value)
                continue
            is_type = isinstance(value, str) and value in _TYPES
            if key not in _BESIDE or (key == "type" and not is_type):
                raise _Refused
            if key in THOUGHT_KEYS and isinstance(value, str):
                self._reasoning.append(value)


def _uses_of(arguments: Any) -> list[Any]:
    """Return the calls that a made-up tool for parallel calls was given."""
    if isinstance(arguments, dict):
        uses = cast("dict[str, Any]", arguments).get("tool_uses")
        if isinstance(uses, list):
            return cast("list[Any]", uses)
    raise _Refused


def _is_definition(arguments: dict[str, Any], parameters: dict[str, Any] | None) -> bool:
    """Tell whether the arguments are a schema: a tool that was described, not called."""
    if describes_parameters(arguments):
        return True
    return (
        arguments.get("type") == "object"
        and isinstance(arguments.get("properties"), dict)
        and "properties" not in parameter_names(parameters)
    )


def _id_of(record: dict[str, Any]) -> str | None:
    return next(
        (value for key in ID_KEYS if isinstance(value := record.get(key), str) and value), None
    )


def has_placeholder(arguments: Any) -> bool:
    """Tell whether a value is only the place of one, such as `...` or `<city>` for a city."""
    if isinstance(arguments, str):
        return bool(_PLACEHOLDER_MEMBER.search(arguments))
    if not isinstance(arguments, dict):
        return False
    record = cast("dict[str, Any]", arguments)
    if any(isinstance(it, str) and _is_placeholder(key, it) for key, it in record.items()):
        return True
    return bool(record) and all(_is_type(key, it) for key, it in record.items())


def _is_type(key: str, value: Any) -> bool:
    """Tell whether a value only says what a value would be, as in `city="string"`."""
    return isinstance(value, str) and value in _TYPE_NAMES and "type" not in key.lower()


def _is_placeholder(key: str, value: str) -> bool:
    if _FILL_IN.fullmatch(value):
        return True
    named = _NAMED_PLACE.fullmatch(value)
    if named is None:
        return False
    inner, key = named[1].lower().replace("_", " "), key.lower().replace("_", " ")
    words = set(inner.split())
    return not words.isdisjoint(key.split()) or not _ANY_VALUE.isdisjoint(words) or key in inner


_MAX_KEY: Final = 80

_MAX_VALUES: Final = 64

_NEAR: Final = 4096

_TOO_DEEP: Final = -1

_NO_MORE: Final = -1

_QUOTES: Final = {'"': '"', "'": "'", "“": "”"}

_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")

_OPENERS_ONLY: Final = re.compile(
    rf'(?:(?:[^"{{}}\[\]]++|"(?:[^"\\]++|\\.)*+")*+[{{\[]){{{MAX_VALUE_DEPTH + 1}}}', re.DOTALL
)
"""As many brackets as are too many, and none that closes one: the usual way to be too deep."""

_MARKS: Final = re.compile(r'[{}\[\]]|"(?:[^"\\]++|\\.)*+"?+', re.DOTALL)


class JsonRow(NamedTuple):
    """Where values stand in a row, and whether the text ended in the last one."""

    spans: tuple[tuple[int, int], ...]
    end: int
    is_cut: bool


def begins_like_call(source: Source, at: int) -> bool:
    """Tell whether the object, or the first one of the array, begins with a key of a call."""
    here = at
    if source.char(here) == "[":
        here = source.skip_space(here + 1)
    if source.char(here) != "{":
        return False
    here = source.skip_space(here + 1)
    if source.char(here) == "{":
        here = source.skip_space(here + 1)
    key = _read_key(source, here)
    return key in KNOWN_KEYS or key in source.tools.names


def read_row(source: Source, at: int) -> JsonRow | None:
    """Return the values that follow each other from `at` on; `None` when they cannot be calls."""
    spans: list[tuple[int, int]] = []
    here = at
    while True:
        if len(spans) == _MAX_VALUES:
            return None
        end, following = source.once(_read_value, here)
        if end == _TOO_DEEP:
            return None
        spans.append((here, end))
        if following is None:
            return JsonRow(tuple(spans), end, is_cut=True)
        if following == _NO_MORE:
            return JsonRow(tuple(spans), end, is_cut=False)
        here = following


def _read_value(source: Source, at: int) -> tuple[int, int | None]:
    """Return where a value ends and where the next begins; `None` when the text ends in it."""
    if _is_too_deep(source, at):
        return _TOO_DEEP, None
    end = source.value_end(at)
    if end is None:
        return len(source.text), None
    here = source.skip_space(end)
    if source.char(here) in (";", ","):
        here = source.skip_space(here + 1)
    return end, here if source.char(here) in ("{", "[") else _NO_MORE


def gate_row(source: Source, row: JsonRow) -> Gated | None:
    """Return the calls that the values stand for; all of them must be calls."""
    calls: list[TextCall] = []
    content: list[str] = []
    reasoning: list[str] = []
    for number, (start, end) in enumerate(row.spans, 1):
        last = number == len(row.spans)
        gated = _gate_text(source, source.text[start:end], is_cut=row.is_cut and last)
        if gated is None:
            return None
        calls += gated.calls
        content.append(gated.content)
        reasoning.append(gated.reasoning)
    return Gated(tuple(calls), "".join(content), "\n".join(filter(None, reasoning)))


def _gate_text(source: Source, text: str, *, is_cut: bool) -> Gated | None:
    tools, spend = source.tools, source.spend_on_marks
    if not is_cut:
        repaired = repair_json(text, ended=True)
        if repaired.state != "whole":
            return None
        return gate_value(repaired.value, tools, repaired.receipts)
    closed = repair_json(text, cut="close", ended=False)
    gated = gate_value(closed.value, tools, is_whole=False)
    if gated is None or not gated.calls:
        return None
    # Without its end an array may have lost calls, so none of them counts as whole.
    found = read_json_calls(text, ended=False, tools=tools, spend=spend)
    calls = tuple(_cut(call) for call in found)
    if not calls:
        calls = tuple(structs.replace(call, state="cut") for call in gated.calls)
    return Gated(calls, gated.content, gated.reasoning)


def _cut(call: TextCall) -> TextCall:
    if call.state == "cut":
        return call
    return structs.replace(call, state="cut", unclosed=call.arguments)


def _read_key(source: Source, at: int) -> str:
    """Return the key that stands here, or an empty text."""
    opener = source.char(at)
    window = source.text[at : at + _MAX_KEY]
    if opener in _QUOTES and opener:
        end = window.find(_QUOTES[opener], 1)
        if end < 0:
            source.at_end(at + _MAX_KEY - 1)
            return ""
        return window[1:end]
    match = _PLAIN_KEY.match(window)
    if match is None:
        return ""
    source.at_end(at + match.end())
    return match.group()


def _is_too_deep(source: Source, at: int) -> bool:
    """Tell whether a value is nested deeper than calls are.

    Where an unclosed value can hold only so many others, reading each of them to the end of the
    text costs a bounded number of looks at every character.
    """
    if _OPENERS_ONLY.match(source.text, at, at + _NEAR):
        return True
    depth = 0
    for number, mark in enumerate(_MARKS.finditer(source.text, at)):
        char = mark.group()[0]
        if char in "{[":
            depth += 1
            if depth > MAX_VALUE_DEPTH:
                source.spend(number)
                return True
        elif char in "}]":
            depth -= 1
            if depth <= 0:
                return False
    return False
