"""Calls as a YAML list, as some prompts ask for: `- name: ...` and `arguments:` with values.

Only what such calls need is read: one mapping of keys to scalars, to JSON, or to a list of
scalars. Anything else makes a call unreadable rather than half read.
"""

from typing import Any, Final

from surecall.errors import JSONTextError
from surecall.jsontext import decode
from surecall.schema import type_text_value

from .base import TextCall
from .json_block import Block
from .source import Source

__all__ = ["read_yaml_calls"]

_SPECIAL: Final = frozenset("[]{}\"':#&*!|>%@`")
_JSON_STARTS: Final = ("{", "[", '"')


class _UnreadableError(ValueError):
    """Not the part of YAML that is read."""


def read_yaml_calls(source: Source, at: int, closer: str) -> Block | None:
    """Read the list that begins here, up to the closer."""
    end = source.find(closer, at)
    is_cut = end < 0
    end = len(source.text) if is_cut else end
    calls: list[TextCall] = []
    items = _items(source.text[at:end])
    for index, lines in enumerate(items):
        is_last = index == len(items) - 1
        call = _call_of(source, lines, is_cut=is_cut and is_last)
        if call is not None:
            calls.append(call)
    return Block(tuple(calls), end, cut=is_cut) if calls or is_cut else None


def _items(text: str) -> list[list[str]]:
    """Return the lines of each item of the list, without its dash."""
    items: list[list[str]] = []
    for line in text.rstrip().split("\n"):
        if line.startswith("- "):
            items.append(["  " + line[2:]])
        elif items:
            items[-1].append(line)
    return items


def _call_of(source: Source, lines: list[str], *, is_cut: bool) -> TextCall | None:
    text = "\n".join(lines)
    while lines and not lines[-1].strip():
        lines.pop()
    key, _, name = lines[0].strip().partition(":")
    name = name.strip().strip("\"'")
    if key != "name" or not name or (is_cut and len(lines) == 1):
        return None
    if is_cut:
        return TextCall(name=name, arguments=text, state="cut")
    try:
        return TextCall(name=name, arguments=_arguments_of(source, name, lines[1:]))
    except _UnreadableError:
        return TextCall(name=name, arguments=text, state="unreadable")


def _arguments_of(source: Source, name: str, lines: list[str]) -> Any:
    if not lines:
        return None
    key, _, rest = lines[0].strip().partition(":")
    if key not in ("arguments", "parameters"):
        raise _UnreadableError(key)
    if rest.strip():
        return "\n".join([rest.strip(), *lines[1:]])
    values: dict[str, Any] = {}
    at = 1
    indent = _indent(lines[1]) if len(lines) > 1 else 0
    while at < len(lines):
        if _indent(lines[at]) != indent:
            raise _UnreadableError(lines[at])
        key, colon, rest = lines[at].strip().partition(":")
        end = at + 1
        while end < len(lines) and (
            _indent(lines[end]) > indent
            or not lines[end].strip()
            or (not rest.strip() and _is_entry(lines[end]))
        ):
            end += 1
        if not colon or not key:
            raise _UnreadableError(lines[at])
        schema = source.schema_of(name, key.strip("\"'"))
        values[key.strip("\"'")] = _value_of(rest.strip(), lines[at + 1 : end], schema)
        at = end
    return values


def _value_of(text: str, below: list[str], schema: dict[str, Any] | None) -> Any:
    if text in ("|", "|-"):
        return _block_text(below, keeps_newline=text == "|")
    below = [line for line in below if line.strip()]
    if not text:
        if below and all(_is_entry(line) for line in below):
            return [_scalar(line.strip()[1:].strip(), None) for line in below]
        if below:
            raise _UnreadableError(below[0])
        return None
    if below:
        raise _UnreadableError(below[0])
    return _scalar(text, schema)


def _block_text(lines: list[str], *, keeps_newline: bool) -> str:
    indent = min((_indent(line) for line in lines if line.strip()), default=0)
    text = "\n".join(line[indent:] for line in lines).rstrip("\n")
    return text + "\n" if keeps_newline else text


def _scalar(text: str, schema: dict[str, Any] | None) -> Any:
    if text.startswith(_JSON_STARTS):
        try:
            return decode(text)
        except JSONTextError:
            entries = text[1:-1].split(",")
            if text[0] == "[" and text[-1] == "]" and all(map(_is_plain_entry, entries)):
                return [_scalar(entry.strip(), None) for entry in entries]
            raise _UnreadableError(text) from None
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if text[0] in "&*!>%@`'|":
        raise _UnreadableError(text)
    return type_text_value(text, schema)


def _is_plain_entry(text: str) -> bool:
    """Tell whether an entry of a list on one line needs no quotes and has none."""
    return bool(text.strip()) and _SPECIAL.isdisjoint(text)


def _is_entry(line: str) -> bool:
    return line.strip().startswith("- ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
