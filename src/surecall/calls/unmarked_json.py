"""Whether JSON without markers may count as calls: shape, known name, fitting arguments."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from msgspec import structs

from surecall.base.errors import JSONTextError
from surecall.base.limits import MAX_VALUE_DEPTH
from surecall.base.records import Receipt
from surecall.text import decode, repair_json

from .formats import Found, TextCall, text_receipt
from .json_shapes import (
    ARGUMENT_KEYS,
    BESIDE,
    LIST_KEYS,
    NAME_KEYS,
    ONE_KEYS,
    TEXT_KEYS,
    JsonCalls,
    describes_parameters,
    find_calls,
    read_json_calls,
)
from .names import PLACEHOLDERS, ToolNames, parameter_names
from .source import Source

_CODE_TOOLS: Final = frozenset({
    "code", "code_interpreter", "execute_code", "execute_python", "interpreter", "ipython",
    "python", "python_interpreter", "run_code", "run_python",
})  # fmt: skip


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
    return text_receipt("only_parameter", text, only, why, lossless=False)


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


def read_code(source: Source, at: int, stops: Collection[str], name: str = "") -> Found | None:
    """Read raw code up to a stop, for the one tool that runs code, if it has the name given.

    It may stand in a code fence, or be a JSON string, as Functionary writes it.
    """
    known = code_call(source.tools, "")
    if known is None or (name and source.tools.resolve(name) != known.name):
        return None
    end, _ = source.find_any(stops, at)
    is_ended = end >= 0
    end = end if is_ended else len(source.text)
    written = code = source.text[at:end].strip("\n").rstrip()
    rule, why = "strip_code_fence", "it was inside the markers"
    if fenced := _FENCED_CODE.fullmatch(written):
        code = fenced[1]
    elif written.startswith('"'):
        rule, why = "decode_nested_text", "the code was written as a JSON string"
        code = unquote(written)
    call = code_call(source.tools, code, is_ended=is_ended)
    if call is not None and code != written:
        call = structs.replace(call, receipts=(text_receipt(rule, written, code, why),))
    return call and Found(end=end, calls=(call,))


def unquote(text: str) -> str:
    """Return the text that a JSON string holds; other text is returned as it is."""
    try:
        value = decode(text)
    except JSONTextError:
        return text
    return value if isinstance(value, str) else text


_FENCED_CODE: Final = re.compile(r"```(?:python|py)?+\n((?:[^\n]++|\n(?!```\Z))*+)\n```")
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

KNOWN_KEYS: Final = frozenset({
    *NAME_KEYS, *ARGUMENT_KEYS, *LIST_KEYS, *ONE_KEYS, *TEXT_KEYS, *BESIDE, "role",
})  # fmt: skip
"""Keys one of which an object that stands for calls begins with, unless a tool's name does."""


def gate_value(
    value: Any,
    tools: ToolNames,
    receipts: tuple[Receipt, ...] = (),
    *,
    is_whole: bool = True,
) -> JsonCalls | None:
    """Return the calls that a value stands for, or `None` when any part of it is not a call.

    Args:
        value: A JSON value.
        tools: The tools that may be called.
        receipts: What was changed to read the value.
        is_whole: Whether the value is complete; otherwise arguments may be missing still.
    """
    found = find_calls(value, receipts, tools=tools)
    if found.others or found.is_odd or len(found.calls) > _MAX_CALLS:
        return None
    calls: list[TextCall] = []
    content = found.content
    for call in found.calls:
        if call.name.strip().lower() == _FINAL and isinstance(call.arguments, str):
            content += call.arguments
            continue
        passed = _pass_call(call, tools, is_whole=is_whole)
        if passed is None:
            return None
        calls.append(passed)
    is_empty = not calls and not content
    return None if is_empty else found._replace(calls=tuple(calls), content=content)


def _pass_call(call: TextCall, tools: ToolNames, *, is_whole: bool) -> TextCall | None:
    """Return a call that fits a tool, without anything left over."""
    parameters, arguments = tools.parameters(call.name), call.arguments
    if parameters is None or call.doubt or call.name.strip().lower() in PLACEHOLDERS:
        return None
    if isinstance(arguments, str) and arguments:
        return _pass_text(call, arguments, parameters)
    if arguments is None and is_whole and has_required(parameters):
        return None
    given: Any = arguments or {}
    if not isinstance(given, dict):
        return None
    record = cast("dict[str, Any]", given)
    is_call = fits(parameters, record) and not _is_definition(record, parameters)
    return structs.replace(call, arguments=record) if is_call else None


def _pass_text(call: TextCall, text: str, parameters: dict[str, Any]) -> TextCall | None:
    """Return a call whose arguments are text: JSON once more, or the value of one parameter."""
    try:
        value = decode(text)
    except JSONTextError:
        value = repair_json(text, ended=True).value if text.lstrip()[:1] == "{" else None
    if isinstance(value, dict):
        return call if fits(parameters, cast("dict[str, Any]", value)) else None
    if single_parameter(parameters) is None:
        return None
    only = name_lone_text(parameters, text)
    if only is None:
        return call
    if any(receipt.rule == _BARE_TEXT for receipt in call.receipts):
        return None  # words without quotes are no value
    receipts = (*call.receipts, note_only(text, only))
    return structs.replace(call, arguments={only: text}, receipts=receipts)


def _is_definition(arguments: dict[str, Any], parameters: dict[str, Any] | None) -> bool:
    """Tell whether the arguments are a schema: a tool that was described, not called."""
    if describes_parameters(arguments):
        return True
    return (
        arguments.get("type") == "object"
        and isinstance(arguments.get("properties"), dict)
        and "properties" not in parameter_names(parameters)
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


def gate_row(source: Source, row: JsonRow) -> JsonCalls | None:
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
    return JsonCalls(tuple(calls), 0, "".join(content), "\n".join(filter(None, reasoning)))


def _gate_text(source: Source, text: str, *, is_cut: bool) -> JsonCalls | None:
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
    return gated._replace(calls=calls)


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
