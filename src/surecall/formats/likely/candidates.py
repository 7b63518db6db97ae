"""Texts that may be calls: a tool's name with arguments, in Python, JSON or XML, wherever it is."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import JSONTextError
from surecall.formats.base import TextCall
from surecall.formats.fitting import has_placeholder
from surecall.formats.names import ToolNames, parameter_names
from surecall.formats.shapes import ARGUMENT_KEYS, ID_KEYS, NAME_KEYS, find_calls
from surecall.jsontext import decode, repair_json, scan_value_end
from surecall.records import Receipt, clip
from surecall.schema import property_schema, type_text_value

from .loose_python import LooseCall, compute_number, read_loose_call

_SEPARATORS: Final = r"(?:\\?[-_. ])?"
_NAME_PARTS: Final = re.compile(r"[^\W_]++")
_CALL_KEYS: Final = frozenset({*NAME_KEYS, *ARGUMENT_KEYS, *ID_KEYS, "type", "index"})
_OPENERS: Final = re.compile(r"[{\[]")
_AFTER_NAME: Final = re.compile(r"[`\"'*]{0,3}+[ \t]?+\(")
_FIRST_ARGUMENT: Final = re.compile(r"\s*+(?:[\"'{\[)]|-?+\d++\s*+[,)]|\w++\s*+[=:])")
_MAX_CANDIDATES: Final = 256
_MAX_OPENERS: Final = 2_000
_MAX_NAME_DISTANCE: Final = 160
_SCANS_PER_CHARACTER: Final = 8
_TAG: Final = re.compile(r"<([^\W\d][\w.:-]*+)((?:[^<>\"'{]++|\"[^\"]*+\"|'[^']*+')*+)")
_ATTRIBUTE: Final = re.compile(
    r"\s*+([^\W\d][\w.:-]*+)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>{}/]++))"
)
_OBJECT_ATTRIBUTE: Final = re.compile(r"\s*+([^\W\d][\w.:-]*+)\s*+=\s*+(?=[{\[])")
_CHILD: Final = re.compile(r"\s*+<([^\W\d][\w.-]*+)>")
_WRAPPERS: Final = frozenset(
    {"tool_call", "toolcall", "function_call", "functioncall", "function", "tool", "invoke", "call"}
)
_DOUBLED: Final = "{{"
_BEFORE_NAME: Final = re.compile(
    r"(?:[\[({\s]*+\{\s*+[\"']?+(?:name|tool|tool_name|function|action)[\"']?+\s*+[:=]\s*+[\"']?+"
    r"|[\[(]\s*+[\"']?+|(?:assistant\s++)?+to=)\Z"
)
"""What may stand before a name whose arguments are an object behind it."""
_AFTER_ARGUMENTS: Final = re.compile(r"[\s)\]}]*+")
_NEXT_OBJECT: Final = re.compile(r"[\s,;]*+(?=\{)")
_YAML_HEAD: Final = re.compile(
    r"^(?:[*_]{0,2}+(?:name|tool|function|action)[*_]{0,2}+:[*_ ]{0,3}+)?+(?=[\w.-])", re.MULTILINE
)
_YAML_LABEL: Final = re.compile(
    r"[`*_]{0,3}+:?+[ \t]*+\n(?:(?:arguments|args|parameters|params|input):[ \t]*+\n)?+"
)
_YAML_LINE: Final = re.compile(
    r"[ \t]{1,12}+(?:-[ \t]++)?+([^\W\d][\w.-]*+):[ \t]++([^\n]++)(?:\n|\Z)"
)


class Candidate(Struct, frozen=True, kw_only=True):
    """Calls that a piece of text may stand for."""

    start: int
    end: int
    calls: tuple[TextCall, ...]
    format: str
    names: frozenset[str] = frozenset()
    """Words in it that may be the names of variables."""


@lru_cache(maxsize=64)
def _name_pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return a pattern that finds the names of tools in small letters, with any separators."""
    alternatives = [
        _SEPARATORS.join(map(re.escape, parts))
        for name in sorted(names, key=len, reverse=True)
        if (parts := _NAME_PARTS.findall(name.lower()))
    ]
    return re.compile(f"(?:{'|'.join(alternatives)})(?!\\w)") if alternatives else None


def _find_names(text: str, tools: ToolNames) -> list[tuple[int, int, str]]:
    """Return where names of tools begin and end, in any of their usual spellings."""
    pattern = _name_pattern(tools.names)
    lowered = text.lower()
    if pattern is None or len(lowered) != len(text):  # a few letters become two
        lowered = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    found: list[tuple[int, int, str]] = []
    for match in pattern.finditer(lowered) if pattern else ():
        start, end = match.span()
        if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            continue
        if name := tools.resolve_closely(text[start:end]):
            found.append((start, end, name))
            if len(found) == _MAX_CANDIDATES:
                break
    return found


def names_a_tool(text: str, tools: ToolNames) -> bool:
    """Tell whether a text names one of the tools, in any of its usual spellings."""
    return bool(_find_names(text, tools))


def find_candidates(text: str, tools: ToolNames) -> list[Candidate]:
    """Return what may be calls, in the order of the text; none lies inside another."""
    named = _find_names(text, tools)
    if not named:
        return []
    found = [
        *_find_json(text, tools, named),
        *_find_tags(text, tools),
        *_find_lines(text, tools, named),
        *_find_python(text, tools, named),
    ]
    found.sort(key=lambda candidate: (candidate.start, -candidate.end))
    kept: list[Candidate] = []
    for candidate in found:
        if not kept or candidate.start >= kept[-1].end:
            kept.append(candidate)
    return [it for it in kept if not any(has_placeholder(call.arguments) for call in it.calls)]


# Python


def _find_python(
    text: str, tools: ToolNames, named: list[tuple[int, int, str]]
) -> Iterator[Candidate]:
    done = 0
    for start, end, name in named:
        opened = _AFTER_NAME.match(text, end)
        if start < done or opened is None:
            continue
        if text[opened.end() - 2] in " \t" and not _FIRST_ARGUMENT.match(text, opened.end()):
            continue  # an aside, as in `email (or call) us`
        begun = _begin_of_name(text, start)
        if begun < start and tools.resolve(text[begun:end]) != name:
            continue
        call = read_loose_call(text, opened.end() - 1)
        if call is None:
            continue
        made = bind_arguments(name, call, tools)
        if made is not None:
            done = call.end
            yield Candidate(
                start=begun, end=call.end, calls=(made,), format="pythonic", names=call.names
            )


def _begin_of_name(text: str, start: int) -> int:
    """Return where a dotted name begins whose last part is the tool's."""
    least = max(0, start - _MAX_NAME_DISTANCE)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in "_."):
        start -= 1
    return start


def bind_arguments(name: str, call: LooseCall, tools: ToolNames) -> TextCall | None:
    """Return a call with its arguments by name; values without one go by the tool's signature."""
    declared = parameter_names(tools.parameters(name))
    if call.names and call.names <= set(declared):  # a signature, as in `search(query, limit)`
        return None
    arguments = dict(call.keywords)
    receipts = call.receipts
    for key in call.bare:
        schema = property_schema(tools.parameters(name) or {}, key) or {}
        wants_number = schema.get("type") in ("number", "integer")
        number = compute_number(arguments[key]) if wants_number else None
        if number is not None:
            why = "the value was written as a sum"
            before, arguments[key] = arguments[key], number
            receipts = (*receipts, Receipt("compute_value", "text", before, number, why=why))
    if call.positional:
        first = call.positional[0]
        if isinstance(first, dict) and len(call.positional) == 1 and not arguments:
            return TextCall(name=name, arguments=first, receipts=receipts)
        placed = dict(zip(declared, call.positional, strict=False))
        if len(declared) < len(call.positional) or placed.keys() & arguments.keys():
            return None
        why = "values without a keyword, in the order of the schema"
        before = clip(", ".join(map(repr, call.positional)))
        moved = Receipt("name_positional_arguments", "text", before, ", ".join(placed), why=why)
        arguments, receipts = {**placed, **arguments}, (*receipts, moved)
    return TextCall(name=name, arguments=arguments, receipts=receipts)


# JSON


def _find_json(
    text: str, tools: ToolNames, named: list[tuple[int, int, str]]
) -> Iterator[Candidate]:
    budget = _SCANS_PER_CHARACTER * len(text) + 4_096
    done = 0
    for number, opener in enumerate(_OPENERS.finditer(text)):
        start = opener.start()
        if start < done:
            continue
        if number > _MAX_OPENERS or budget <= 0:
            return
        end = scan_value_end(text, start)
        budget -= (len(text) if end is None else end) - start
        before = [
            (first, name)
            for begun, over, name in named
            if start - _MAX_NAME_DISTANCE < over <= start
            and ((first := _begin_of_name(text, begun)) == begun or tools.resolve(text[first:over]))
        ]
        inside = any(start < begun and over <= (end or len(text)) for begun, over, _ in named)
        if end is None or not (inside or before):
            continue
        candidate = _read_json(text, start, end, tools, before[-1] if before else None)
        if candidate is not None:
            done = candidate.end
            yield candidate


def _read_json(
    text: str, start: int, end: int, tools: ToolNames, named: tuple[int, str] | None
) -> Candidate | None:
    written = text[start:end]
    if written.startswith(_DOUBLED):
        written = written.replace("{{", "{").replace("}}", "}")
    repaired = repair_json(written, nested="keep")
    if repaired.state != "whole":
        return None
    calls = tuple(_calls_of(repaired.value, tools, repaired.receipts))
    if _is_name_alone(calls) and (following := _read_arguments_behind(text, end, calls[0], tools)):
        arguments, end = following
        calls = (replace(calls[0], arguments=arguments),)
    if not calls and named:
        begun, name = named
        value = _as_arguments(repaired.value)
        is_next = not text[begun:start].partition("\n")[2].strip()  # a name, and then its `{}`
        if (value or is_next) and _fits_exactly(value, tools.parameters(name)):
            calls = (TextCall(name=name, arguments=value, receipts=repaired.receipts),)
            opened = _BEFORE_NAME.search(text, max(0, begun - _MAX_NAME_DISTANCE), begun)
            start = opened.start() if opened else begun
            closed = _AFTER_ARGUMENTS.match(text, end) if opened else None
            end = closed.end() if closed else end
    if not calls:
        return None
    return Candidate(start=start, end=end, calls=calls, format="bare_json")


def _is_name_alone(calls: tuple[TextCall, ...]) -> bool:
    return len(calls) == 1 and not calls[0].arguments


def _read_arguments_behind(
    text: str, at: int, call: TextCall, tools: ToolNames
) -> tuple[dict[str, Any], int] | None:
    """Return the arguments of a call whose name is in an object of its own, and their end."""
    opened = _NEXT_OBJECT.match(text, at)
    end = scan_value_end(text, opened.end()) if opened else None
    if opened is None or end is None:
        return None
    value = _as_arguments(repair_json(text[opened.end() : end], nested="keep").value)
    return (value, end) if value and _fits_exactly(value, tools.parameters(call.name)) else None


def _as_arguments(value: Any) -> dict[str, Any]:
    """Return an object, or the one in it when all it has is its arguments."""
    record = _as_object(value) or {}
    if len(record) == 1 and (key := next(iter(record))) in ARGUMENT_KEYS:
        return _as_object(record[key]) or record
    return record


def _calls_of(value: Any, tools: ToolNames, receipts: tuple[Receipt, ...]) -> Iterator[TextCall]:
    """Yield the calls that a value stands for; what is none beside them is passed over."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(reversed(cast("list[Any]", item)))
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
    arguments = _as_object(call.arguments)
    declared = parameter_names(tools.parameters(call.name))
    if call.name not in record or not arguments or not declared:
        return True
    return not arguments.keys().isdisjoint(declared)


def _loose_record(
    record: dict[str, Any], tools: ToolNames, receipts: tuple[Receipt, ...]
) -> Iterator[TextCall]:
    """Yield calls of shapes that only the tools tell from other records."""
    name_key = next((key for key in NAME_KEYS if _is_tool(record.get(key), tools)), None)
    if name_key is not None:
        name = cast("str", record[name_key])
        flat = {key: value for key, value in record.items() if key not in _CALL_KEYS}
        declared = set(parameter_names(tools.parameters(name)))
        if flat.keys() & declared and not any(key in record for key in ARGUMENT_KEYS):
            moved = Receipt("nest_flat_arguments", "", list(flat), "arguments")
            yield TextCall(name=name, arguments=flat, receipts=(*receipts, moved))
        return
    for key, value in record.items():
        if not _is_tool(key, tools):
            continue
        arguments = _as_object(value)
        declared = set(parameter_names(tools.parameters(key)))
        if arguments is not None and (arguments.keys() & declared or not declared):
            yield TextCall(name=key, arguments=arguments, receipts=receipts)


def _as_object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = decode(value)
        except JSONTextError:
            return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _is_tool(name: Any, tools: ToolNames) -> bool:
    return isinstance(name, str) and tools.resolve(name) is not None


def _calls_in_text(text: str, tools: ToolNames) -> Iterator[TextCall]:
    """Yield the calls of an entry of a list that is a call written as text."""
    here = text.strip()
    name, opened, _ = here.partition("(")
    if not opened or not _is_tool(name, tools):
        return
    call = read_loose_call(here, len(name))
    if call is None or here[call.end :].strip(" ;,"):
        return
    made = bind_arguments(tools.resolve(name) or name, call, tools)
    if made is not None:
        why = "the call was written as a string in a list"
        receipt = Receipt("read_call_in_string", "text", clip(here), made.name, why=why)
        yield replace(made, receipts=(*made.receipts, receipt))


def _fits_exactly(value: Mapping[str, Any], parameters: dict[str, Any] | None) -> bool:
    required = (parameters or {}).get("required")
    wanted = set(cast("list[str]", required)) if isinstance(required, list) else set[str]()
    return value.keys() <= set(parameter_names(parameters)) and wanted <= value.keys()


# Lines


def _find_lines(
    text: str, tools: ToolNames, named: list[tuple[int, int, str]]
) -> Iterator[Candidate]:
    """Yield names with a line for each argument under them, as in YAML."""
    for begun, over, name in named:
        head = text.rfind("\n", 0, begun) + 1
        opened, label = _YAML_HEAD.match(text, head), _YAML_LABEL.match(text, over)
        if opened is None or opened.end() != begun or label is None:
            continue
        parameters = tools.parameters(name) or {}
        arguments: dict[str, Any] = {}
        end = label.end()
        while (line := _YAML_LINE.match(text, end)) and line[1] not in arguments:
            written = line[2].strip().strip("\"'")
            arguments[line[1]] = type_text_value(written, property_schema(parameters, line[1]))
            end = line.end()
        if arguments and _fits_exactly(arguments, parameters):
            why = "the arguments were lines under the name"
            receipt = Receipt("yaml_body", "text", clip(text[head:end]), name, why=why)
            call = TextCall(name=name, arguments=arguments, receipts=(receipt,))
            yield Candidate(start=head, end=end, calls=(call,), format="bare_json")


# XML


def _find_tags(text: str, tools: ToolNames) -> Iterator[Candidate]:
    done = 0
    for number, tag in enumerate(_TAG.finditer(text)):
        if number > _MAX_OPENERS:
            return
        name = tag[1]
        is_tool = tools.resolve(name) is not None
        if tag.start() < done or not (is_tool or name.lower() in _WRAPPERS):
            continue
        candidate = _read_tag(text, tag, tools, is_tool=is_tool)
        if candidate is not None:
            done = candidate.end
            yield candidate


def _read_tag(
    text: str, tag: re.Match[str], tools: ToolNames, *, is_tool: bool
) -> Candidate | None:
    attributes, here = _read_attributes(text, tag.end(1))
    if attributes is None:
        return None
    name: Any = tag[1]
    if not is_tool:
        key = next((key for key in ("name", "function", "tool") if key in attributes), None)
        name = attributes.pop(key) if key else None
    if not _is_tool(name, tools):
        return None
    given: Any = next((attributes.pop(key) for key in ARGUMENT_KEYS if key in attributes), None)
    body_end = here
    if text.startswith("/>", here):
        end = here + 2
    elif text.startswith(">", here):
        closing = text.find(f"</{tag[1]}", here)
        if closing < 0:
            return None
        body_end, over = closing, text.find(">", closing)
        end = over + 1 if over >= 0 else len(text)
        here += 1
    else:
        return None
    values = attributes or None
    body = text[here:body_end].strip()
    if given is None and values is None and body:
        given = body
    arguments = _tag_arguments(given, name, tools) if given is not None else values
    if arguments is None:
        arguments = {}
        if given is not None:
            return None
    parameters = tools.parameters(name)
    typed = {
        key: type_text_value(value, property_schema(parameters or {}, key))
        if isinstance(value, str)
        else value
        for key, value in arguments.items()
    }
    call = TextCall(name=name, arguments=typed)
    return Candidate(start=tag.start(), end=end, calls=(call,), format="name_tag")


def _read_attributes(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    attributes: dict[str, Any] = {}
    while True:
        if plain := _ATTRIBUTE.match(text, at):
            attributes[plain[1]] = next(part for part in plain.groups()[1:] if part is not None)
            at = plain.end()
        elif opened := _OBJECT_ATTRIBUTE.match(text, at):
            end = scan_value_end(text, opened.end())
            if end is None:
                return None, at
            attributes[opened[1]] = text[opened.end() : end]
            at = end
        else:
            break
    while at < len(text) and text[at].isspace():
        at += 1
    return attributes, at


def _tag_arguments(given: Any, name: str, tools: ToolNames) -> dict[str, Any] | None:
    text = str(given).replace("&quot;", '"').strip()
    if text.startswith("{"):
        repaired = repair_json(text)
        value = repaired.value if repaired.state == "whole" else None
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None
    children: dict[str, Any] = {}
    here = 0
    while child := _CHILD.match(text, here):
        closing = text.find(f"</{child[1]}>", child.end())
        if closing < 0 or child[1] in children:
            return None
        children[child[1]] = text[child.end() : closing].strip()
        here = closing + len(child[1]) + 3
    return children if children and not text[here:].strip() else None
