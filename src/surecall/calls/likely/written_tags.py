"""Calls in tags and lines among text: elements of a tool's name, and names above arguments."""

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt, clip
from surecall.calls.families.name_tag import NAME_TAG
from surecall.calls.formats import TextCall
from surecall.calls.names import ToolNames
from surecall.calls.shapes import ARGUMENT_KEYS
from surecall.calls.source import Source, TooMuchWork
from surecall.schema import property_schema, type_text_value
from surecall.text import repair_json, scan_value_end

from .naming import MAX_CANDIDATES, Budget, Candidate, Name, fits_exactly, is_tool

_MAX_OPENERS: Final = 2_000
_TAG: Final = lazy_pattern(
    r"<([^\W\d][\w.:-]*+)(?:[^<>\"'{]++|\"[^\"]{0,1000}+\"|'[^']{0,1000}+')*+"
)
_ATTRIBUTE: Final = lazy_pattern(
    r"\s*+([^\W\d][\w.:-]*+)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>{}/]++))"
)
_OBJECT_ATTRIBUTE: Final = lazy_pattern(r"\s*+([^\W\d][\w.:-]*+)\s*+=\s*+(?=[{\[])")
_MAX_ATTRIBUTE: Final = 8_192
_CHILD: Final = lazy_pattern(r"\s*+<([^\W\d][\w.-]*+)>")
_WRAPPERS: Final = frozenset(
    {
        "tool_call", "toolcall", "tool-call", "tool_use", "function_call", "functioncall",
        "function", "tool", "invoke", "call", "action",
    }
)  # fmt: skip
_NAME_CHILDREN: Final = ("name", "tool_name", "function_name", "function", "tool")
_PAIR: Final = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
_YAML_HEAD: Final = lazy_pattern(
    r"^(?:[*_]{0,2}+(?:name|tool|function|action)[*_]{0,2}+:[*_ ]{0,3}+)?+(?=[\w.-])", re.MULTILINE
)
_YAML_LABEL: Final = lazy_pattern(
    r"[`*_]{0,3}+:?+[ \t]*+\n(?:(?:arguments|args|parameters|params|input):[ \t]*+\n)?+"
)
_YAML_LINE: Final = lazy_pattern(
    r"[ \t]{1,12}+(?:-[ \t]++)?+([^\W\d][\w.-]*+):[ \t]++([^\n]++)(?:\n|\Z)"
)


def find_tags(text: str, tools: ToolNames, budget: Budget) -> Iterator[Candidate]:
    """Yield elements that are named like a tool, or that name one in an attribute.

    The budget is that of questions about elements which turn out to be no call.
    """
    source = Source(text, tools, final=True)
    done = tried = 0
    for number, tag in enumerate(_TAG.finditer(text)):
        if number > _MAX_OPENERS:
            return
        name = tag[1]
        names_tool = tools.resolve(name) is not None
        if tag.start() < done or not (names_tool or name.lower() in _WRAPPERS):
            continue
        tried += 1
        if tried > MAX_CANDIDATES or budget.is_spent:
            return
        candidate = None
        if names_tool:
            candidate = _read_family(source, tag.start())
            budget.spend(0 if candidate else source.questions)
        candidate = candidate or _read_tag(text, tag, tools, names_tool=names_tool)
        if candidate is not None:
            done = candidate.end
            yield candidate


def _read_family(source: Source, at: int) -> Candidate | None:
    """Read an element as the family does whose tags are names of tools."""
    source.begin()
    try:
        found = NAME_TAG.read(source, at)
    except TooMuchWork:
        return None
    if found is None or any(call.state == "cut" for call in found.calls):
        return None
    return Candidate(start=at, end=found.end, calls=found.calls, format=NAME_TAG.name)


def _read_tag(
    text: str, tag: re.Match[str], tools: ToolNames, *, names_tool: bool
) -> Candidate | None:
    attributes, here = _read_attributes(text, tag.end(1))
    if attributes is None:
        return None
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
    body = text[here:body_end].strip()
    name: Any = tag[1]
    if not names_tool:
        if not attributes:
            attributes, body = _tag_arguments(body) or {}, ""
        key = next((key for key in _NAME_CHILDREN if key in attributes), None)
        name = attributes.pop(key) if key else None
    if not is_tool(name, tools):
        return None
    given: Any = next((attributes.pop(key) for key in ARGUMENT_KEYS if key in attributes), None)
    if given is None and not attributes and body:
        given = body
    arguments = _tag_arguments(given) if given is not None else attributes
    if arguments is None:
        return None
    if len(arguments) == 1 and (key := next(iter(arguments))) in ARGUMENT_KEYS:
        arguments = _tag_arguments(arguments[key]) or arguments
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
            written = text[opened.end() : opened.end() + _MAX_ATTRIBUTE]
            length = scan_value_end(written, 0)
            if length is None:
                return None, at
            attributes[opened[1]] = written[:length]
            at = opened.end() + length
        else:
            break
    while at < len(text) and text[at].isspace():
        at += 1
    return attributes, at


def _tag_arguments(given: Any) -> dict[str, Any] | None:
    """Return the arguments that an object or child elements stand for."""
    text = str(given).replace("&quot;", '"').strip()
    if text.startswith("{"):
        repaired = repair_json(text, ended=True)
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


def find_pairs(text: str, tools: ToolNames, names: list[Name]) -> Iterator[Candidate]:
    """Yield names with pairs of elements behind them, for a key and its value."""
    for begun, over, name in names:
        parameters = tools.parameters(name) or {}
        arguments: dict[str, Any] = {}
        end = over
        while pair := _read_pair(text, end):
            key, value, end = pair
            arguments[key] = type_text_value(value, property_schema(parameters, key))
        if arguments and fits_exactly(arguments, parameters):
            call = TextCall(name=name, arguments=arguments)
            yield Candidate(start=begun, end=end, calls=(call,), format="glm")


def _read_pair(text: str, at: int) -> tuple[str, str, int] | None:
    found: list[str] = []
    for opener, closer in (_PAIR[:2], _PAIR[2:]):
        while text[at : at + 1].isspace():
            at += 1
        end = text.find(closer, at) if text.startswith(opener, at) else -1
        if end < 0:
            return None
        found.append(text[at + len(opener) : end].strip())
        at = end + len(closer)
    return found[0], found[1], at


def find_lines(text: str, tools: ToolNames, names: list[Name]) -> Iterator[Candidate]:
    """Yield names with a line for each argument under them, as in YAML."""
    for begun, over, name in names:
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
        if arguments and fits_exactly(arguments, parameters):
            why = "the arguments were lines under the name"
            receipt = Receipt("yaml_body", "text", clip(text[head:end]), name, why=why)
            call = TextCall(name=name, arguments=arguments, receipts=(receipt,))
            yield Candidate(start=head, end=end, calls=(call,), format="bare_json")
