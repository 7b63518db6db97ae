"""JSON between tags: `<tool_call>{...}</tool_call>` and relatives, also as YAML."""

from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.records import Receipt
from surecall.calls.formats import CallFormat, Found, Grade, TextCall, add_receipts
from surecall.calls.json_block import Block, close_block, read_block, receipt
from surecall.calls.source import Source
from surecall.schema import type_text_value
from surecall.text import decode

_SPECIAL: Final = frozenset("[]{}\"'“”‘’:#&*!|>%@`")
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
    if text[0] in "&*!>%@`'|}],":
        raise _UnreadableError(text)
    return type_text_value(text, schema)


def _is_plain_entry(text: str) -> bool:
    """Tell whether an entry of a list on one line needs no quotes and has none."""
    return bool(text.strip()) and _SPECIAL.isdisjoint(text)


def _is_entry(line: str) -> bool:
    return line.strip().startswith("- ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


_INNER: Final = "<tool_call>"
_CODE: Final = "<code>"
_CODE_END: Final = "</code>"
_ANSWER: Final = "<answer>"
_OFFERED: Final = "<AVAILABLE_TOOLS>"
_OFFERED_END: Final = "</AVAILABLE_TOOLS>"
_RESULTS: Final = (
    "<tool_response>",
    "<tool_result>",
    "<tool_results>",
    "<function_response>",
    "<function_result>",
    "<TOOL_RESPONSE>",
)


class _Tag(Struct, frozen=True):
    closer: str
    grade: Grade = "marked"
    has_closer: bool = True
    """Whether models that write the tag close it."""


_TAGS: Final = {
    "<tool_call>": _Tag("</tool_call>"),
    "<tool_calls>": _Tag("</tool_calls>"),
    "<TOOLCALL>": _Tag("</TOOLCALL>"),
    "<function_call>": _Tag("</function_call>", has_closer=False),
    "<functioncall>": _Tag("</functioncall>", has_closer=False),
    "[TOOL_REQUEST]": _Tag("[END_TOOL_REQUEST]"),
    "<tools>": _Tag("</tools>", "damaged"),
    "<tool>": _Tag("</tool>", "damaged"),
    "<function>": _Tag("</function>", "damaged"),
    "<response>": _Tag("</response>", "damaged"),
    "<json>": _Tag("</json>", "damaged"),
    "<JSON>": _Tag("</JSON>", "damaged"),
    "<xml>": _Tag("</xml>", "damaged"),
    "<tool_use>": _Tag("</tool_use>", "damaged"),
}


class TaggedJson(CallFormat):
    """One object, an array, or objects in a row, between a tag and its closer."""

    name = "tagged_json"
    literals = (*_TAGS, _ANSWER, _OFFERED)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the calls up to the closer; text that ends inside one makes it cut."""
        if source.starts(_OFFERED, at):
            return _read_offered(source, at + len(_OFFERED))
        wrapped = source.starts(_ANSWER, at)
        if wrapped:
            at = source.skip_space(at + len(_ANSWER))
            if not source.starts("<tool_calls>", at):
                return None
        opener = source.starts_any(_TAGS, at)
        tag = _TAGS[opener]
        block = _read_body(source, at + len(opener), opener, tag)
        if block is None:
            return None
        if block.cut:
            if tag.grade == "damaged" and not block.calls:
                return None
            return Found(end=block.end, calls=block.calls, grade=tag.grade)
        end, receipts = _close(source, block.end, opener, tag)
        if tag.grade == "damaged" and not _is_alone(source, end, block, receipts):
            return None
        end, echo = _skip_echo(source, end, opener, tag, block.calls)
        end, strays = _skip_strays(source, end, tag)
        receipts += echo + strays
        if wrapped:
            end, _ = close_block(source, end, ("</answer>",))
        result = source.starts_any(_RESULTS, source.skip_space(end))
        return Found(
            end=end,
            calls=add_receipts(block.calls, *receipts),
            grade=tag.grade,
            ends_message=bool(result and block.calls),
        )


def _read_offered(source: Source, at: int) -> Found | None:
    """Drop the list of tools when a model repeats it from its prompt before it calls one."""
    here = source.skip_space(at)
    end = source.value_end(here) if source.char(here) == "[" else None
    if end is None:
        return None
    end, closer = close_block(source, end, (_OFFERED_END,))
    calls = source.starts_any(tuple(_TAGS), source.skip_space(end))
    return Found(end=end) if closer and calls else None


def _read_body(source: Source, at: int, opener: str, tag: _Tag) -> Block | None:
    here = source.skip_space(at)
    if source.at_end(here):
        return Block((), here, cut=True) if tag.grade == "marked" else None
    stops = (opener, tag.closer, *_RESULTS)
    if opener == "<tool_calls>":
        if source.starts(_INNER, here):
            return _read_inner(source, here, stops)
        if source.char(here) == "-":
            return read_yaml_calls(source, here, tag.closer)
    block = read_block(source, here, stops)
    if block is None or block.cut:
        return block
    return _with_code(source, block, tag)


def _read_inner(source: Source, at: int, stops: tuple[str, ...]) -> Block | None:
    """Read a section that has a tag around each of its calls, too."""
    calls: list[TextCall] = []
    here, end = at, at
    while source.starts(_INNER, here):
        block = read_block(source, here + len(_INNER), (*stops, _INNER, "</tool_call>"))
        if block is None:
            return None if not calls else Block(tuple(calls), end, cut=False)
        calls.extend(block.calls)
        if block.cut:
            return Block(tuple(calls), block.end, cut=True)
        end, _ = close_block(source, block.end, ("</tool_call>",))
        here = source.skip_space(end)
    return Block(tuple(calls), end, cut=False)


def _close(source: Source, at: int, opener: str, tag: _Tag) -> tuple[int, list[Receipt]]:
    """Return where the closer ends, and what had to be read as one."""
    end, closer = close_block(source, at, (tag.closer,))
    if closer == tag.closer:
        return end, []
    here = source.skip_space(at)
    if tag.has_closer and source.starts(opener, here):
        # The opener again: in place of the closer, unless another call follows it.
        beyond = source.skip_space(here + len(opener))
        if source.char(beyond) not in ("{", "[", "`"):
            why = "the opener was where the closer belongs"
            return here + len(opener), [receipt("repeated_opener", opener, tag.closer, why)]
    if not tag.has_closer:
        return end, []
    return end, [receipt("missing_closer", closer, tag.closer, "the call itself is complete")]


def _skip_echo(
    source: Source, at: int, opener: str, tag: _Tag, calls: tuple[TextCall, ...]
) -> tuple[int, list[Receipt]]:
    """Return where a repetition of the calls ends that has a closer and no opener."""
    here = source.skip_space(at)
    if not calls or source.char(here) not in ("{", "["):
        return at, []
    block = read_block(source, here, (opener, tag.closer, *_RESULTS))
    if block is None or block.cut or list(map(_said, block.calls)) != list(map(_said, calls)):
        return at, []
    end, closer = close_block(source, block.end, (tag.closer,))
    if closer != tag.closer:
        return at, []
    return end, [receipt("drop_echo", source.text[here:end], "", "the calls were written twice")]


def _skip_strays(source: Source, at: int, tag: _Tag) -> tuple[int, list[Receipt]]:
    """Return where closers end that follow the one which closed the calls."""
    end = at
    while source.starts(tag.closer, here := source.skip_space(end)):
        end = here + len(tag.closer)
    if end == at:
        return at, []
    return end, [receipt("stray_closing_tag", source.text[at:end], "", "the calls are closed")]


def _said(call: TextCall) -> tuple[str, Any]:
    return call.name, call.arguments


def _is_alone(source: Source, end: int, block: Block, receipts: list[Receipt]) -> bool:
    """Tell whether nothing but calls stands between the tag and its closer or the end."""
    return bool(block.calls) and (not receipts or source.at_end(source.skip_space(end)))


def _with_code(source: Source, block: Block, tag: _Tag) -> Block:
    """Put raw code that follows the JSON into the empty argument it stands for."""
    at = source.skip_space(block.end)
    if len(block.calls) != 1:
        return block
    call = block.calls[0]
    arguments = cast("dict[str, Any]", call.arguments) if _is_object(call.arguments) else {}
    if arguments.get("code") == "" and _CODE.startswith(source.text[at:]) and source.final:
        return Block((replace(call, state="cut"),), len(source.text), cut=True)
    if not source.starts(_CODE, at):
        return block
    start = at + len(_CODE)
    end = source.find(_CODE_END, start)
    while end >= 0 and not source.starts(tag.closer, source.skip_space(end + len(_CODE_END))):
        end = source.find(_CODE_END, end + 1)
    if end < 0:
        return Block((replace(call, state="cut"),), len(source.text), cut=True)
    if arguments.get("code"):
        return block
    code = source.text[start:end].removeprefix("\n").removesuffix("\n")
    filled = replace(call, arguments={**arguments, "code": code})
    note = receipt("fill_code_argument", code, "code", "code came after the arguments")
    return Block(add_receipts((filled,), note), end + len(_CODE_END), cut=False)


def _is_object(arguments: Any) -> bool:
    return isinstance(arguments, dict)
