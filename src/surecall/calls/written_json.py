"""Calls in JSON among text: objects with a tool's name, under it, or behind it."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import islice
from operator import attrgetter
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.records import Receipt
from surecall.text import repair_json, scan_value_end

from .formats import MAX_CANDIDATES, Candidate, TextCall, as_object, text_receipt
from .json_shapes import (
    ARGUMENT_KEYS,
    ID_KEYS,
    NAME_KEYS,
    describes_parameters,
    find_calls,
)
from .names import MAX_NAME_DISTANCE, Name, ToolNames, begin_of_name, parameter_names
from .unmarked_json import fits_exactly, is_tool
from .written_python import bind_arguments, read_loose_call

_NAME_KEYS: Final = (*NAME_KEYS, "call", "command", "method", "operation")
"""Keys under which a name is a tool's, if arguments that fit it are beside it."""
_CALL_KEYS: Final = frozenset({*_NAME_KEYS, *ARGUMENT_KEYS, *ID_KEYS, "type", "index"})
_BESIDE_CALLS: Final = frozenset({
    *ID_KEYS, "type", "index", "thought", "thoughts", "reasoning", "explanation", "content",
    "role",
})  # fmt: skip
_SCHEMA_KEYS: Final = frozenset({"type", "properties"})
_OPENERS: Final = re.compile(r"[{\[]")
_RECORD: Final = re.compile(r"(?:\[\s*+)?+\{\s*+[\"'“]?+[^\W\d]")
_MAX_OPENERS: Final = 2_000
_SCANS_PER_CHARACTER: Final = 8
_SCANS_OF_READING: Final = 3
"""Reading a value costs as much as looking so often for its end."""
_START, _END = attrgetter("start"), attrgetter("end")
_MAX_ARGUMENTS_BEHIND: Final = 8_192
_DOUBLED: Final = "{{"
_BEFORE_NAME: Final = re.compile(
    r"(?:[\[({\s]*+\{\s*+[\"']?+(?:name|tool|tool_name|function|action)[\"']?+\s*+[:=]\s*+[\"']?+"
    r"|[\[(]\s*+[\"']?+|(?:assistant\s++)?+to=|<?+(?:function|tool|invoke)[=(]"
    r"|<[\w:-]{1,40}+\s++[\w-]{1,20}+=[\"']?+|<[\w:-]{1,40}+>\s*+|<"
    r"|<[\w|]{1,40}+>\s*+(?:name|tool|function|action)\s*+[:=]\s*+[\"']?+"
    r"|(?<![ \w])(?:call:)?+(?:default_api|functions?)[:.]|(?<![ \w])call:)\Z"
)
"""What may stand before a name whose arguments are an object behind it."""
_AFTER_ARGUMENTS: Final = re.compile(r"[\s)\]}]*+(?:[\"']?+\s*+/?+>)?+")
_WORD: Final = re.compile(r"[^\W\d_]++")
_ARGUMENT_WORDS: Final = frozenset(
    {
        "action", "and", "are", "args", "argument", "arguments", "as", "be", "body", "call", "code",
        "constrain", "data", "following", "function", "here", "input", "inputs", "is", "it", "its",
        "json", "kwargs", "name", "object", "of", "param", "parameter", "parameters", "params",
        "payload", "the", "these", "this", "to", "tool", "type", "using", "value", "values", "with",
    }
)  # fmt: skip
"""Words between the name of a tool and the arguments of a call."""
_MAX_SENTENCES: Final = 600
_MIN_PART: Final = 4
_CLOSING_TAGS: Final = re.compile(r"(?:\s*+(?:<[/|][\w|:-]{1,40}+>|```))++\s*+\Z")
_CUT_STRING: Final = "close_cut_string"
_BETWEEN_CALLS: Final = re.compile(r"[\s,;]*+")
_NEXT_OBJECT: Final = re.compile(r"[\s,;]*+(?=\{)")


def find_json_calls(text: str, tools: ToolNames, names: list[Name]) -> Iterator[Candidate]:
    """Yield objects and lists that name a tool, or have its name before them."""
    budget = _SCANS_PER_CHARACTER * len(text) + 4_096
    done = 0
    is_mended = False
    for number, opener in enumerate(_OPENERS.finditer(text)):
        start = opener.start()
        if start < done:
            continue
        if number > _MAX_OPENERS or budget <= 0:
            return
        end = scan_value_end(text, start)
        budget -= (len(text) if end is None else end) - start
        if end is None:
            if not is_mended and _RECORD.match(text, start):
                is_mended = True
                if (call := repair_call(text[start:], tools)) is not None:
                    yield Candidate(start=start, end=len(text), calls=(call,), format="bare_json")
                    return
            continue
        before = _name_before(text, start, tools, names)
        if before is None and not _names_inside(start, end, names):
            continue
        budget -= _SCANS_OF_READING * (end - start)
        candidate = _read_json(text, start, end, tools, before)
        if candidate is None and _is_record(text[start:end]):
            done = end  # a record that holds a call among other things, such as an echoed request
        if candidate is not None:
            done = candidate.end
            yield candidate


def _name_before(text: str, at: int, tools: ToolNames, names: list[Name]) -> Name | None:
    """Return the last name of a tool that ends shortly before a place, from where it begins."""
    for name in reversed(names[: bisect_right(names, at, key=_END)]):
        if name.end <= at - MAX_NAME_DISTANCE:
            break
        first = begin_of_name(text, name.start)
        if first == name.start or tools.resolve(text[first : name.end]):
            return name._replace(start=first)
        if text[name.start - 1] == "." and text.startswith("\n", name.end):
            said = text[max(0, name.start - _MAX_SENTENCES) : name.start].lower()
            parts = _WORD.findall(name.tool.lower())
            if any(part in said for part in parts if len(part) >= _MIN_PART):
                return name  # glued to the sentence about it, as in `I search now.search`
    return None


def _names_inside(start: int, end: int, names: list[Name]) -> bool:
    following = bisect_left(names, start + 1, key=_START)
    return following < len(names) and names[following].end <= end


def _read_json(
    text: str, start: int, end: int, tools: ToolNames, before: Name | None
) -> Candidate | None:
    written = text[start:end]
    if written.startswith(_DOUBLED):
        written = written.replace("{{", "{").replace("}}", "}")
    repaired = repair_json(written, ended=True, nested="keep")
    if repaired.state != "whole":
        call = repair_call(written, tools) if _RECORD.match(written) else None
        return call and Candidate(start=start, end=end, calls=(call,), format="bare_json")
    calls = tuple(islice(_calls_of(repaired.value, tools, repaired.receipts), MAX_CANDIDATES))
    if _is_name_alone(calls) and (following := _read_arguments_behind(text, end, calls[0], tools)):
        arguments, end = following
        calls = (replace(calls[0], arguments=arguments),)
    if not calls and before and _leads_to_arguments(text[before.end : start]):
        begun, _, name = before
        value = _as_arguments(repaired.value)
        is_next = not text[begun:start].partition("\n")[2].strip()  # a name, and then its `{}`
        if (value or is_next) and fits_exactly(value, tools.parameters(name)):
            calls = (TextCall(name=name, arguments=value, receipts=repaired.receipts),)
            opened = _BEFORE_NAME.search(text, max(0, begun - MAX_NAME_DISTANCE), begun)
            start = opened.start() if opened else begun
            closed = _AFTER_ARGUMENTS.match(text, end) if opened else None
            end = closed.end() if closed else end
    if not calls:
        return None
    return Candidate(start=start, end=end, calls=calls, format="bare_json")


def repair_call(written: str, tools: ToolNames, name: str = "") -> TextCall | None:
    """Return the one call that damaged JSON can be guessed to be, if it fits its tool exactly.

    Its closers, or a tag behind it, show that the text did not end in the middle of it. Where the
    markup around it has the name of the tool, the JSON may be its arguments alone.
    """
    begun = _RECORD.search(written)
    closed = _CLOSING_TAGS.search(written, max(0, len(written) - MAX_NAME_DISTANCE))
    if begun is None:
        return None
    body = written[begun.start() : closed.start() if closed else None].rstrip()
    if not body or (closed is None and body[-1] not in "}]"):
        return None
    guessed = repair_json(body, ended=True, nested="keep", guess=True, cut="close")
    if guessed.state == "unreadable" or (guessed.state == "cut" and closed is None):
        return None
    if any(receipt.rule == _CUT_STRING for receipt in guessed.receipts):
        return None
    calls = tuple(islice(_calls_of(guessed.value, tools, guessed.receipts), 2))
    if name and not calls:
        calls = (TextCall(name=name, arguments=guessed.value, receipts=guessed.receipts),)
    arguments = as_object(calls[0].arguments) if len(calls) == 1 else None
    if arguments is None or not fits_exactly(arguments, tools.parameters(calls[0].name)):
        return None
    return replace(calls[0], arguments=arguments)


def _leads_to_arguments(between: str) -> bool:
    """Tell whether the words between a name and an object only say that it has the arguments."""
    return all(word.lower() in _ARGUMENT_WORDS for word in _WORD.findall(between))


def _is_record(written: str) -> bool:
    """Tell whether JSON has more members than a wrapper of calls would have."""
    return len((as_object(written) or {}).keys() - _BESIDE_CALLS) > 1


def _is_name_alone(calls: tuple[TextCall, ...]) -> bool:
    return len(calls) == 1 and not calls[0].arguments


def _read_arguments_behind(
    text: str, at: int, call: TextCall, tools: ToolNames
) -> tuple[dict[str, Any], int] | None:
    """Return the arguments of a call whose name is in an object of its own, and their end."""
    opened = _NEXT_OBJECT.match(text, at)
    if opened is None:
        return None
    written = text[opened.end() : opened.end() + _MAX_ARGUMENTS_BEHIND]
    length = scan_value_end(written, 0)
    if length is None:
        return None
    value = _as_arguments(repair_json(written[:length], ended=True, nested="keep").value)
    end = opened.end() + length
    return (value, end) if value and fits_exactly(value, tools.parameters(call.name)) else None


def _as_arguments(value: Any) -> dict[str, Any]:
    """Return an object, or the one in it when all it has is its arguments."""
    record = as_object(value) or {}
    if len(record) == 1 and (key := next(iter(record))) in ARGUMENT_KEYS:
        return as_object(record[key]) or record
    return record


def _calls_of(value: Any, tools: ToolNames, receipts: tuple[Receipt, ...]) -> Iterator[TextCall]:
    """Yield the calls that a value stands for; what is none beside them is passed over."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            items = cast("list[Any]", item)
            waiting.extend(reversed(items))
        elif isinstance(item, dict):
            record = cast("dict[str, Any]", item)
            found = find_calls(record, receipts, tools=tools).calls
            known = [call for call in found if _is_meant(call, record, tools)]
            if known:
                yield from known
            else:
                yield from _loose_record(record, tools, receipts)
        elif isinstance(item, str):
            yield from _calls_in_text(item, tools)


def _is_meant(call: TextCall, record: Mapping[str, Any], tools: ToolNames) -> bool:
    """Tell whether an object calls a known tool; settings under its name have other keys."""
    if tools.resolve(call.name) is None:
        return False
    arguments = as_object(call.arguments)
    declared = parameter_names(tools.parameters(call.name))
    if describes_parameters(arguments):
        return False
    if arguments and arguments.keys() >= _SCHEMA_KEYS and _SCHEMA_KEYS.isdisjoint(declared):
        return False  # what the tool is, and not a call of it
    if call.name not in record or not arguments or not declared:
        return True
    return not arguments.keys().isdisjoint(declared)


def _loose_record(
    record: dict[str, Any], tools: ToolNames, receipts: tuple[Receipt, ...]
) -> Iterator[TextCall]:
    """Yield calls of shapes that only the tools tell from other records."""
    name_key = next((key for key in _NAME_KEYS if is_tool(record.get(key), tools)), None)
    if name_key is not None:
        name = cast("str", record[name_key])
        given = next((record[key] for key in ARGUMENT_KEYS if key in record), None)
        if name_key not in NAME_KEYS:
            arguments = as_object(given) if record.keys() <= _CALL_KEYS else None
            if arguments is not None and fits_exactly(arguments, tools.parameters(name)):
                yield TextCall(name=name, arguments=arguments, receipts=receipts)
            return
        flat = {key: value for key, value in record.items() if key not in _CALL_KEYS}
        declared = set(parameter_names(tools.parameters(name)))
        if flat.keys() & declared and not any(key in record for key in ARGUMENT_KEYS):
            moved = Receipt("nest_flat_arguments", "", list(flat), "arguments")
            yield TextCall(name=name, arguments=flat, receipts=(*receipts, moved))
        return
    for key, value in record.items():
        if not is_tool(key, tools):
            continue
        arguments = as_object(value)
        declared = set(parameter_names(tools.parameters(key)))
        if arguments is not None and (arguments.keys() & declared or not declared):
            yield TextCall(name=key, arguments=arguments, receipts=receipts)


def _calls_in_text(text: str, tools: ToolNames) -> Iterator[TextCall]:
    """Yield the calls of an entry of a list that is nothing but calls written as text."""
    here = 0
    text = text.strip()
    found: list[TextCall] = []
    while here < len(text):
        name, opened, _ = text[here:].partition("(")
        if not opened or not is_tool(name, tools) or len(found) == MAX_CANDIDATES:
            return
        read = read_loose_call(text, here + len(name), tools.resolve(name) or name)
        made = bind_arguments(read[0], tools) if read else None
        if read is None or made is None:
            return
        why = "the call was written as a string in a list"
        receipt = text_receipt("read_call_in_string", text, made.name, why)
        found.append(replace(made, receipts=(*made.receipts, receipt)))
        following = _BETWEEN_CALLS.match(text, read[1])
        here = following.end() if following else read[1]
    yield from found
