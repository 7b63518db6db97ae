"""Calls as a tool's name with a body: tags, pairs, lines of `key: value`, or its one text.

The name may be the tag itself, stand in a tag, in an element of its own, or alone on its line.
What is read here has no markers that show where a value ends in every case, so it is only likely.
"""

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt, clip
from surecall.schema import property_schema, type_text_value
from surecall.text import decode, decode_noting, scan_value_end

from .formats import Candidate, TextCall, text_receipt
from .names import Name, ToolNames, find_names, parameter_names
from .unmarked_json import fits_exactly, note_only, single_parameter
from .yaml_lines import UnreadableError, read_block, read_entry, read_value

_MAX_BODY: Final = 32_768
"""How far the end of a value or an element is looked for."""
_MAX_HEAD: Final = 200
_MAX_VALUES: Final = 64
_MAX_LOOKS: Final = 4
"""A text is looked at so many times as a whole, in search of ends that are not there."""
_TAG_BEFORE: Final = lazy_pattern(
    r"<(?P<tag>)\Z"
    r"|<(?:[\w:-]{1,40}=|[\w:-]{1,40}\s{1,4}[\w-]{1,20}\s?=\s?)[\"']?(?P<inside>)\Z"
    r"|<([\w:-]{1,40})>\s{0,8}(?P<child>)\Z"
    r"|\{\s{0,8}(?:tool|name)\s{0,4}=>\s{0,4}[\"'](?P<arrow>)\Z"
)
_LABEL_BEFORE: Final = lazy_pattern(
    r"(?:\A|\n|>)[ \t]*+(?:[*_]{0,2}(?i:name|tool|function|action)[*_]{0,2}:[*_ ]{0,3})?"
    r"[*_`]{0,3}\Z"
)
_LABEL_AFTER: Final = lazy_pattern(r"[`*_]{0,3}+:?+[ \t]*+\n")
_REST_OF_TAG: Final = lazy_pattern(r"[\"']?+[^<>\n]{0,200}+/?>")
_AFTER_ARROW: Final = lazy_pattern(r"[\"'],?+\s*+(?:args|arguments|parameters)\s*+=>\s*+\{")
_OPTION: Final = lazy_pattern(
    r"[\s,]*+(?:--([\w.-]{1,64})[\s=]++|[\"']?+([\w.-]{1,64})[\"']?+\s*+=>?+\s*+)"
    r"(?:\"((?:[^\"\\]++|\\.)*+)\"|(?=[\[{])"
    r"|([^\s\"{}]++(?:[ \t]++(?!--|[\w.-]{1,64}=)[^\s\"{}]++)*+))"
)
"""An option as in a command, or a pair with an arrow or an equals sign."""
_COMMAND: Final = lazy_pattern(r"[ \t]++(?=--[\w.-]{1,64}[ =]|[\w.-]{1,64}=[^=\s])")
_LINE_BEFORE: Final = lazy_pattern(r"(?:\A|\n)[ \t]*+/?+\Z")
_ARROWS_END: Final = lazy_pattern(r"[\s,]*+\}\s*+\}")
_LINE_END: Final = lazy_pattern(r"[ \t;]*+\Z")
_ATTRIBUTE: Final = lazy_pattern(
    r"([^\W\d][\w.:-]*+)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>{}/]++))"
)
_AROUND: Final = lazy_pattern(
    r"(?:\s*+</?(?:parameters|arguments|args|params|input|function|name|tool_name)>"
    r"|[ \t]*+(?i:arguments|args|parameters|params|input):[ \t]*+(?=\n)"
    r"|\s*+---[ \t]*+(?=\n))*+\s*+"
)
"""What may stand before, between and behind the values of a call."""
_KEY_IN_TAG: Final = lazy_pattern(
    r"<(parameter|param|argument|arg)(?:=|\s{1,4}(?:name|key)\s?=\s?)[\"']?([\w.-]{1,64})[\"']?"
    r"(?:\s++(?:type|string)=[\"']?\w++[\"']?)?+\s*+>"
)
_KEY_IN_ELEMENT: Final = lazy_pattern(
    r"<(parameter|param|argument|arg|arg_key|key)>\s*+([\w.-]{1,64})\s*+</\1>\s*+(<(?:arg_)?value>)?"
)
_KEY_AS_TAG: Final = lazy_pattern(r"<([^\W\d][\w.-]{0,63}+)>")
_CDATA: Final = lazy_pattern(r"\s*+<!\[CDATA\[((?:[^\]]++|\](?!\]>))*+)\]\]>\s*+")
_ASSIGNED: Final = lazy_pattern(r"[ \t]*+([^\W\d][\w-]{0,63}+)[ \t]*+=[ \t]*+([^\n]++)(?:\n|\Z)")
_OWN_TAG: Final = lazy_pattern(
    r"</?(?:parameter|param|argument|arg_key|arg_value|function|tool_call)\b"
)
_MORE: Final = lazy_pattern(
    r"\s*+<(?:(?:param|arg)[^<>\n]{0,80}+|[a-z_]++)>(?!\s*+</)"
    r"|[ \t]*+[^\W\d][\w.-]*+:[ \t]++\S|\s*+--\w"
)
"""What begins another value, which was not read."""
_STRAYS: Final = lazy_pattern(r"(?:\s*+(?:</[\w.:-]{1,60}+>|<parameter=[\w.-]{1,64}>))*+\s*+")
_CLOSERS: Final = lazy_pattern(r"(?:\s*+</[\w.:-]{1,60}+>)*+")
_ENDS_IN_TAG: Final = lazy_pattern(r"</[\w.:-]{1,60}+>\s*+\Z")
_ENTITY: Final = lazy_pattern(r"&(?:lt|gt|quot|apos|amp|#\d{1,5});")


_ANY_OBJECT: Final = {"type": "object"}
_ARROWS: Final = "=>"
"""In the place of a closing tag: the arguments are options in braces."""
_OPTIONS: Final = "--"
"""The same for options up to the end of the line."""


class _Body(NamedTuple):
    """The arguments under a name, and where they end."""

    arguments: dict[str, str]
    end: int
    receipts: tuple[Receipt, ...] = ()


def find_bodies(
    text: str, tools: ToolNames, names: list[Name] | None = None
) -> Iterator[Candidate]:
    """Yield the names of tools with a body behind them that fits the tool exactly."""
    looks = _MAX_LOOKS * (len(text) + _MAX_BODY)
    done = 0
    for name in find_names(text, tools) if names is None else names:
        if name.start < done or looks < 0:
            continue
        looks -= _MAX_HEAD
        head = _head_of(text, name)
        if head is None:
            continue
        start, at, closer = head
        body = _read_body(text, at, closer, tools.parameters(name.tool) or {})
        looks -= min(len(text) - at, _MAX_BODY) if body is None else 0
        if body is None:
            continue
        done = body.end
        call = TextCall(name=name.tool, arguments=body.arguments, receipts=body.receipts)
        yield Candidate(start=start, end=done, calls=(call,), format="name_tag")


def repair_tags(call: TextCall, written: str, tools: ToolNames) -> TextCall | None:
    """Return a call of damaged tags with the values that can be told from them, or None.

    Its tags must all be there, but for some that close: one that is cut is read by nobody.
    """
    written_as: Any = call.arguments
    if not (call.doubt or call.state == "unreadable" or isinstance(written_as, str)):
        return None
    given = cast("dict[str, Any]", written_as) if isinstance(written_as, dict) else {}
    swallows = call.doubt and any(map(_OWN_TAG.search, filter(_is_text, given.values())))
    is_damaged = swallows or call.state == "unreadable" or _repeats_key(call)
    if not (is_damaged and written.startswith("<") and _ENDS_IN_TAG.search(written)):
        return None
    found = list(islice(find_bodies(written, tools), 2))
    if len(found) != 1 or found[0].calls[0].name != tools.resolve(call.name):
        return None
    values = cast("dict[str, Any]", found[0].calls[0].arguments).values()
    if "" in values or not _STRAYS.fullmatch(written, found[0].end):
        return None
    why = "the values were told from the tags around them"
    note = text_receipt("stray_closing_tag", written, call.name, why, lossless=False)
    (made,) = found[0].calls
    receipts = (*made.receipts, note)
    return replace(call, arguments=made.arguments, state="whole", doubt=why, receipts=receipts)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _repeats_key(call: TextCall) -> bool:
    if not isinstance(call.arguments, str):
        return False
    try:
        return bool(decode_noting(call.arguments)[1])
    except JSONTextError:
        return False


def _head_of(text: str, name: Name) -> tuple[int, int, str] | None:
    """Return where the head with a name begins and ends, and the tag that closes its element."""
    least = max(0, name.start - _MAX_HEAD)
    if opened := _TAG_BEFORE.search(text, least, name.start):
        if opened["arrow"] is not None:
            after = _AFTER_ARROW.match(text, name.end)
            return (opened.start(), after.end(), _ARROWS) if after else None
        if opened["child"] is not None:
            closed = f"</{opened[3]}>"
            here = _skip_space(text, name.end)
            if text.startswith(closed, here):
                return opened.start(), here + len(closed), ""
        elif rest := _REST_OF_TAG.match(text, name.end):
            closer = f"</{text[name.start : name.end]}>" if opened["tag"] is not None else ""
            at = name.end if "=" in rest.group() and not opened["inside"] else rest.end()
            return opened.start(), at, closer
    command = _COMMAND.match(text, name.end)
    if command is not None and (opened := _LINE_BEFORE.search(text, least, name.start)):
        return opened.end(), command.end(), _OPTIONS
    opened = _LABEL_BEFORE.search(text, least, name.start)
    after = _LABEL_AFTER.match(text, name.end)
    if opened is None or after is None:
        return None
    return opened.end() - len(opened.group().lstrip("\n>")), after.end(), ""


def _read_body(text: str, at: int, closer: str, parameters: dict[str, Any]) -> _Body | None:
    """Return the arguments that stand at a place, if they fit the parameters exactly."""
    known = frozenset(parameter_names(parameters))
    if closer in (_ARROWS, _OPTIONS):
        return _read_options(text, at, parameters, closer)
    values, end = (
        _read_attributes(text, at) if closer and text[at : at + 1] not in "<\n" else ({}, at)
    )
    over = text.find(closer, end, end + _MAX_BODY) if closer else -1
    if closer and over < 0 and not values:
        return None
    if not values:
        values, end = _read_values(text, end, known, over)
    receipts: list[Receipt] = []
    if not values and closer:
        only = single_parameter(parameters)
        schema = property_schema(parameters, only) if only else None
        body = text[at:over].removeprefix(">")
        is_json = body.lstrip().startswith("{")
        if is_json or only is None or (schema or {}).get("type") != "string" or not body.strip():
            return None
        values, end = {only: body}, over
        receipts.append(note_only(clip(body), only))
    if not values or (text[end:over].strip() if over >= 0 else _MORE.match(text, end)):
        return None
    if over >= 0:
        end = max(end, over + len(closer))
    typed: dict[str, Any] = {}
    for key, written in values.items():
        if not isinstance(written, str):
            typed[key] = written
            continue
        value = _plain(written, receipts)
        if value is None:
            return None
        typed[key] = type_text_value(value, property_schema(parameters, key))
    closed = _CLOSERS.match(text, end)
    end = closed.end() if closed else end
    return _Body(typed, end, tuple(receipts)) if fits_exactly(typed, parameters) else None


def _plain(written: str, receipts: list[Receipt]) -> str | None:
    """Return a value without its layout, CDATA and entities; None if tags are left in it."""
    if section := _CDATA.fullmatch(written):
        return section[1].removeprefix("\n").removesuffix("\n")
    value = written.strip("\n") if "\n" in written.strip() else written.strip()
    if _OWN_TAG.search(value):
        return None
    if _ENTITY.search(value) and "<" not in value:
        plain = html.unescape(value)
        receipts.append(text_receipt("unescape_entities", value, plain))
        return plain
    return value


def _read_options(text: str, at: int, parameters: dict[str, Any], closer: str) -> _Body | None:
    """Return the arguments that stand as options between two braces, or on a line."""
    if closer == _OPTIONS:
        over = text.find("\n", at)
        text = text if over < 0 else text[:over]
    found: dict[str, Any] = {}
    while option := _OPTION.match(text, at):
        key, at = option[1] or option[2], option.end()
        if key in found:
            return None
        if option[3] is None and option[4] is None:
            at += scan_value_end(text[at : at + _MAX_BODY]) or 0
        written = option[4].rstrip(",") if option[4] else text[option.end() : at]
        value = written if option[3] is None else _unquoted(option[3])
        found[key] = type_text_value(value, property_schema(parameters, key))
    end = (_ARROWS_END if closer == _ARROWS else _LINE_END).match(text, at)
    return _Body(found, end.end()) if end and fits_exactly(found, parameters) else None


def _unquoted(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\")


def _read_attributes(text: str, at: int) -> tuple[dict[str, str], int]:
    """Return the attributes of a tag, and where the tag ends."""
    found: dict[str, str] = {}
    while here := _ATTRIBUTE.match(text, _skip_space(text, at)):
        found[here[1]] = next(part for part in here.groups()[1:] if part is not None)
        at = here.end()
    at = _skip_space(text, at)
    return found, at + 2 if text.startswith("/>", at) else at + 1


def _skip_space(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def _read_values(
    text: str, at: int, known: frozenset[str], over: int
) -> tuple[dict[str, Any], int]:
    """Return the values that stand in tags or lines from a place on, and where they end."""
    limit = over if over >= 0 else min(len(text), at + _MAX_BODY)
    values: dict[str, Any] = {}
    while len(values) < _MAX_VALUES:
        around = _AROUND.match(text, at)
        here = around.end() if around else at
        found = _read_tagged(text, here, known, limit)
        if found is None and (here == 0 or "\n" in text[at - 1 : here]):
            found = _read_line(text, text.rfind("\n", 0, here) + 1, known, limit)
        if found is None:
            break
        key, value, end = found
        if key in values:  # a tag that opens what was given already
            break
        values[key], at = value, end
    return values, at


def _read_tagged(
    text: str, at: int, known: frozenset[str], limit: int
) -> tuple[str, str, int] | None:
    """Return the key and the value of the element that stands here, and where it ends."""
    opened = _KEY_IN_TAG.match(text, at, limit)
    if opened is not None:
        tag, key, closer = opened[1], opened[2], f"</{opened[1]}>"
    elif opened := _KEY_IN_ELEMENT.match(text, at, limit):
        tag, key = opened[1], opened[2]
        closer = f"</{opened[3][1:]}" if opened[3] else ""
    elif opened := _KEY_AS_TAG.match(text, at, limit):
        tag, key, closer = opened[1], opened[1], f"</{opened[1]}>"
    else:
        return None
    if key not in known:
        return None
    begun = opened.end()
    if not closer:  # its value goes on to the next tag of the call
        ends = _next_tag(tag).search(text, begun, limit)
        end = ends.start() if ends else limit
        return key, text[begun:end], end
    section = _CDATA.match(text, begun, limit)
    end = text.find(closer, section.end() if section else begun, limit)
    return None if end < 0 else (key, text[begun:end], end + len(closer))


@lru_cache(maxsize=16)
def _next_tag(tag: str) -> re.Pattern[str]:
    return re.compile(rf"</?(?:{re.escape(tag)}|function|tool_call|invoke|parameters|arguments)\b")


def _read_line(
    text: str, at: int, known: frozenset[str], limit: int
) -> tuple[str, Any, int] | None:
    """Return the key and the value of a line as in YAML or TOML, with what belongs under it."""
    if (assigned := _ASSIGNED.match(text, at, limit)) and assigned[1] in known:
        return assigned[1], _without_quotes(assigned[2].strip()), assigned.end()
    entry = read_entry(text, at, limit)
    if entry is None or entry.key not in known:
        return None
    if (block := read_block(entry)) is not None:
        return (entry.key, block.strip("\n "), entry.end) if entry.below else None
    if not entry.text and entry.below:
        try:
            return entry.key, read_value(entry, _ANY_OBJECT, []), entry.end
        except UnreadableError:
            return None
    value = _without_quotes(entry.text)
    return (entry.key, value, entry.line_end) if value else None


def _without_quotes(value: str) -> str:
    if value.startswith('"'):
        try:
            return str(decode(value))
        except JSONTextError:
            pass
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
