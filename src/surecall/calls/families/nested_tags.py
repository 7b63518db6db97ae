"""Calls whose parameters are tags inside tags: MiniMax-M3, and the tag of a tool's name."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from surecall.base.records import CallState, Receipt
from surecall.calls.formats import CallFormat, Found, OwnFormat, TextCall, text_receipt
from surecall.calls.json_block import close_block
from surecall.calls.names import ToolNames, parameter_names
from surecall.calls.source import NeedMore, Source
from surecall.calls.tagged_calls import Block, cut_call, found_calls, read_block
from surecall.calls.tags import (
    MAX_TAG_CHARS,
    Grammar,
    Tag,
    TagKind,
    is_unfinished_tag,
    parse_attributes,
    unescape_entities,
)
from surecall.calls.text_values import Parameter, note_broken
from surecall.calls.yaml_lines import UnreadableError, read_mapping, read_value
from surecall.schema import property_schema, type_text_value

# values

_ITEM_KEY = "item"


class _Node:
    """A tag with text, or with tags inside."""

    __slots__ = ("children", "key", "text")

    def __init__(self, key: str, text: str = "") -> None:
        self.key = key
        self.text = text
        self.children: list[_Node] = []

    def all(self) -> Iterator["_Node"]:
        """Yield the tag and all tags inside it."""
        yield self
        for child in self.children:
            yield from child.all()


def _value_of(node: _Node, schema: dict[str, Any] | None) -> Any:
    """Return the value of a tag; the depth of the tree is limited by whoever built it."""
    is_array = _is_type(schema, "array")
    if not node.children:
        if not node.text.strip() and is_array:
            return []
        if not node.text.strip() and _is_type(schema, "object"):
            return {}
        return type_text_value(node.text, schema)
    if is_array or all(child.key == _ITEM_KEY for child in node.children):
        inner = _items_schema(schema)
        return [_value_of(child, inner) for child in node.children]
    return _object_of(node, schema)


def _object_of(node: _Node, schema: dict[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    repeated: set[str] = set()
    for child in node.children:
        inner = None if schema is None else property_schema(schema, child.key)
        if child.key not in found:
            found[child.key] = _value_of(child, inner)
            continue
        if child.key not in repeated and not isinstance(found[child.key], list):
            found[child.key] = [found[child.key]]
        repeated.add(child.key)
        found[child.key].append(_value_of(child, _items_schema(inner)))
    return found


def _items_schema(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    items: Any = None if schema is None else schema.get("items")
    return cast("dict[str, Any]", items) if isinstance(items, dict) else None


def _is_type(schema: dict[str, Any] | None, name: str) -> bool:
    if schema is None:
        return False
    stated: Any = schema.get("type")
    return name in cast("list[Any]", stated) if isinstance(stated, list) else stated == name


# MiniMax-M3

_TOKEN: Final = "]<]minimax[>["  # noqa: S105 - a marker in text
_TAG: Final = re.compile(
    r"""<(?P<slash>/?)(?P<word>[^\s<>/"'=]{1,128}+)(?P<rest>(?:[^<>"'\n]|"[^"\n]*+"|'[^'\n]*+')*+)>"""
)
_PLAIN_CLOSER: Final = "</invoke>"
_PLAIN_END: Final = "</tool_call>"
_SPACE: Final = re.compile(r"\s*+")
_MAX_DEPTH: Final = 32
_TRACE: Final = re.compile(r"\]<|>\[|minimax|</?[A-Za-z_]|\A>|<\Z")
_SWALLOWED: Final = "A value holds what may be a damaged tag of the call."


def _read_minimax_m3(source: Source, at: int) -> Found | None:
    """Read all invokes of a call, or one whose outer tag is missing."""
    calls: list[TextCall] = []
    end, opened = at, False
    while True:
        here = source.skip_space(end)
        if source.at_end(here) or _is_cut(source, here):
            end = len(source.text)
            break
        tag = _tag_at(source, here)
        if tag is None:
            break
        closes = tag.kind == "close_value"
        if tag.word == "tool_call" and (closes or not opened):
            opened, end = True, tag.end
            if closes:
                break
            continue
        if tag.word == "invoke" and closes:
            end = tag.end
            continue
        if tag.word != "invoke" or not tag.label:
            break
        block = _InvokeReader(source, tag).run()
        calls.append(block.call)
        end = block.end
    if not calls:
        return Found(end=end) if end > at and (opened or source.at_end(end)) else None
    end, _ = close_block(source, end, (_PLAIN_END,))
    return found_calls(source, calls, end)


MINIMAX_M3: Final = OwnFormat(
    "minimax_m3", '`<tool_call>` and `<invoke name="N">`, each tag after its token.',
    "MiniMax-M3, 2026", literals=(_TOKEN,), reads=_read_minimax_m3,
)  # fmt: skip


class _InvokeReader:
    """Builds a tree of the tags of one invoke."""

    def __init__(self, source: Source, head: Tag) -> None:
        self._source = source
        self._head = head
        self._root = _Node("invoke")
        self._stack = [self._root]
        self._receipts: list[Receipt] = []
        self._readable = True
        self._known = parameter_names(source.tools.parameters(head.label))

    def run(self) -> Block:
        source, here = self._source, self._head.end
        if self._head.closed:
            return self._whole(here)
        if source.char(source.skip_space(here)) == "<":
            stop, found = source.find_any((_TOKEN, _PLAIN_CLOSER), here)
            if found == _PLAIN_CLOSER:  # not one of its tags has its token
                self._root.text = source.text[here:stop]
                self._read_plain_tags()
                return self._whole(stop + len(_PLAIN_CLOSER))
        while True:
            stop = source.find(_TOKEN, here)
            if stop < 0 or _is_cut(source, stop):
                return cut_call(source, self._head.label, self._head.end)
            tag = _tag_at(source, stop)
            if tag is None:
                self._readable = False
                self._add_text(source.text[here : stop + len(_TOKEN)])
                here = stop + len(_TOKEN)
                continue
            self._add_text(source.text[here:stop])
            if tag.kind == "close_value":
                end = self._close(tag, here, stop)
                if end is not None:
                    return self._whole(end)
            else:
                self._open(tag)
            here = tag.end

    def _whole(self, end: int) -> Block:
        source, name = self._source, self._head.label
        parameters = source.tools.parameters(name)
        arguments: Any = _value_of(self._root, parameters) if self._root.children else {}
        state: CallState = "whole"
        if not isinstance(arguments, dict) or not self._readable:
            arguments = source.text[self._head.end : end]
            state = "unreadable" if self._root.children else "whole"
        has_traces = any(_TRACE.search(node.text) for node in self._root.all())
        call = TextCall(
            name=name,
            arguments=arguments,
            state=state,
            doubt=_SWALLOWED if has_traces else "",
            receipts=tuple(self._receipts),
        )
        return Block(call, end)

    def _open(self, tag: Tag) -> None:
        node = _Node(tag.word)
        self._leave_closed_without_token()
        top = self._stack[-1]
        if top.text.strip() or len(self._stack) > _MAX_DEPTH:
            self._readable = False
        top.children.append(node)
        if not tag.closed and len(self._stack) <= _MAX_DEPTH:
            self._stack.append(node)

    def _close(self, tag: Tag, begin: int, stop: int) -> int | None:
        """Close a tag; return the end of the invoke when that is what it closes."""
        source = self._source
        self._leave_closed_without_token()
        if tag.word in ("invoke", "tool_call"):
            if len(self._stack) > 1:
                self._note("missing_closing_tag", source.text[begin : tag.end], tag.word)
                self._readable = False
            elif self._root.text.strip():
                self._read_plain_tags()
            return tag.end if tag.word == "invoke" else stop
        if len(self._stack) == 1:
            self._readable = False
            return None
        opened = self._stack[-1].key
        if opened != tag.word:  # which of the two is right, only a declared name can tell
            is_known = opened == _ITEM_KEY or (len(self._stack) == 2 and opened in self._known)
            before, after = f"</{tag.word}>", f"</{opened}>"
            note = text_receipt("wrong_closing_tag", before, after, lossless=is_known)
            self._receipts.append(note)
        self._stack.pop()
        return None

    def _add_text(self, text: str) -> None:
        top = self._stack[-1]
        if not top.children or text.strip():
            top.text += text
        if top.children and text.strip() and len(self._stack) > 1:
            self._readable = False

    def _leave_closed_without_token(self) -> None:
        """Leave a tag whose closing tag had no token before it."""
        top = self._stack[-1]
        closing = f"</{top.key}>"
        if len(self._stack) > 1 and top.text.rstrip().endswith(closing):
            self._note("missing_token", closing, closing)
            top.text = top.text.rstrip().removesuffix(closing)
            self._stack.pop()

    def _read_plain_tags(self) -> None:
        """Read parameters whose tags have no tokens at all: `<room>hall</room>`."""
        text, at = self._root.text.strip(), 0
        while at < len(text):
            match = _TAG.match(text, at)
            closing = "" if match is None else f"</{match['word']}>"
            end = -1 if match is None else text.find(closing, match.end())
            if match is None or match["slash"] or end < 0:
                self._readable = False
                return
            self._root.children.append(_Node(match["word"], text[match.end() : end]))
            spaces = _SPACE.match(text, end + len(closing))
            at = spaces.end() if spaces else end + len(closing)
        self._note("missing_token", text, "parameters")

    def _note(self, rule: str, before: str, after: str) -> None:
        self._receipts.append(text_receipt(rule, before, after))


def _tag_at(source: Source, at: int) -> Tag | None:
    """Return the tag after a token that stands here; white space may be between them."""
    if source.char(at) != "]" or not source.starts(_TOKEN, at):
        return None
    here = source.skip_space(at + len(_TOKEN))
    if source.char(here) != "<":
        return None
    match = _TAG.match(source.text, here, here + MAX_TAG_CHARS)
    if match is None:
        if not source.final and is_unfinished_tag(source.text, here):
            raise NeedMore
        return None
    kind: TagKind = "close_value" if match["slash"] else "open_value"
    label = parse_attributes(match["rest"]).get("name", "")
    closed = match["rest"].rstrip().endswith("/")
    return Tag(kind, at, match.end(), label, match["word"], closed=closed)


def _is_cut(source: Source, at: int) -> bool:
    """Tell whether the text ends for good inside a token or the tag after it."""
    if not source.final:
        return False
    if len(source.text) - at < len(_TOKEN):
        return _TOKEN.startswith(source.text[at:])
    if not source.starts(_TOKEN, at):
        return False
    here = source.skip_space(at + len(_TOKEN))
    return source.at_end(here) or is_unfinished_tag(source.text, here)


# tags that are the name of a tool

# fmt: off
_HTML: Final = frozenset({
    "a", "abbr", "address", "area", "article", "aside", "audio", "b", "base", "bdi", "bdo",
    "blockquote", "body", "br", "button", "canvas", "caption", "cite", "code", "col",
    "colgroup", "data", "datalist", "dd", "del", "details", "dfn", "dialog", "div", "dl", "dt",
    "em", "embed", "fieldset", "figcaption", "figure", "font", "footer", "form", "frame", "h1",
    "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "i", "iframe", "image", "img",
    "input", "ins", "kbd", "label", "legend", "li", "link", "main", "map", "mark", "menu",
    "meta", "meter", "nav", "object", "ol", "optgroup", "option", "output", "p", "param",
    "picture", "pre", "progress", "q", "rp", "rt", "ruby", "s", "samp", "script", "search",
    "section", "select", "slot", "small", "source", "span", "strong", "style", "sub", "summary",
    "sup", "svg", "table", "tbody", "td", "template", "text", "textarea", "tfoot", "th",
    "thead", "time", "title", "tr", "track", "u", "ul", "var", "video", "wbr",
})
# fmt: on
_MCP: Final = "use_mcp_tool"
_MCP_GRAMMAR: Final = Grammar(
    calls=(_MCP,), values=("server_name", "tool_name", "arguments"), style="tag"
)
_IN_ITEM: Final = r"((?:[^<]++|<(?!/item>))*+)"
_ITEM: Final = re.compile(rf"<item>{_IN_ITEM}</item>")
_ITEMS: Final = re.compile(rf"(?:<item>{_IN_ITEM}</item>\s*+)*+")
_STRAY_AMPERSAND: Final = re.compile(r"&(?!(?:lt|gt|quot|apos|amp);)")
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*+\Z")


class _NameTags(CallFormat, frozen=True, eq=False, kw_only=True):
    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return a tag for each tool whose name is no element of HTML."""
        names = [n for n in tools.names if _NAME.match(n) and n.lower() not in _HTML]
        ends = (">", "/>", " />")
        return (f"<{_MCP}>", *(f"<{name}{end}" for name in names for end in ends))

    def read(self, source: Source, at: int) -> Found | None:
        """Read parameters, a JSON object, or lines `key: value`."""
        is_mcp = source.starts(f"<{_MCP}>", at)
        block = _read_mcp(source, at) if is_mcp else _read_tool(source, at)
        return block and found_calls(source, (block.call,), block.end, marked=False)


NAME_TAG: Final = _NameTags(
    "name_tag", "A tag that is exactly the name of a tool, with tags that are its parameters.",
    "Cline and Roo Code, 2024", line_start=True, is_plain=True,
)  # fmt: skip


def _read_tool(source: Source, at: int) -> Block | None:
    name = _name_at(source, at)
    if not name:
        return None
    grammar = _grammar_of(name, parameter_names(source.tools.parameters(name)))
    head = grammar.tag(source, at)
    if head is None or head.kind != "open_call":
        return None
    block = read_block(source, grammar, head, build=_build_nested, padding="pair")
    if block is None or block.call.state == "cut":
        return block
    arguments = block.call.arguments
    if not isinstance(arguments, str) or arguments.startswith("{"):
        return block
    return _from_lines(source, name, arguments, block.end)


def _name_at(source: Source, at: int) -> str:
    for name in source.tools.names:
        if source.starts_any((f"<{name}>", f"<{name}/>", f"<{name} />"), at):
            return name
    return ""


def _from_lines(source: Source, name: str, text: str, end: int) -> Block | None:
    """Read a body of lines `key: value`, each key a parameter; blocks are not as plain."""
    keys = parameter_names(source.tools.parameters(name))
    values: dict[str, Any] = {}
    receipts = [text_receipt("yaml_body", text, "arguments")]
    try:
        for entry in read_mapping(text):
            if entry.key not in keys or entry.key in values or entry.below:
                return None
            schema = source.schema_of(name, entry.key)
            values[entry.key] = read_value(entry, schema, receipts)
    except UnreadableError:
        return None
    return Block(TextCall(name=name, arguments=values, receipts=tuple(receipts)), end)


def _read_mcp(source: Source, at: int) -> Block | None:
    head = _MCP_GRAMMAR.tag(source, at)
    if head is None:
        return None
    parts: dict[str, str] = {}

    def keep(
        source: Source, name: str, parameters: Sequence[Parameter]
    ) -> tuple[Any, list[Receipt]]:
        parts.update({key: text.strip() for key, text, _ in parameters})
        return parts.get("arguments") or None, []

    block = read_block(source, _MCP_GRAMMAR, head, build=keep)
    if block is None or block.call.state == "cut":
        return None
    server, tool = parts.get("server_name", ""), parts.get("tool_name", "")
    for name in (tool, f"{server}.{tool}", f"mcp__{server}__{tool}"):
        if tool and source.tools.resolve(name) is not None:
            receipt = text_receipt("mcp_form", f"{server} {tool}", name)
            call = TextCall(name=name, arguments=block.call.arguments, receipts=(receipt,))
            return Block(call, block.end)
    return None


@lru_cache(maxsize=256)
def _grammar_of(name: str, properties: tuple[str, ...]) -> Grammar:
    return Grammar(calls=(name,), values=properties, style="tag")


def _build_nested(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return typed arguments; lists are repeated tags or tags `<item>` inside."""
    root = _Node("")
    receipts: list[Receipt] = []
    for key, text, _ in parameters:
        node = _Node(key, _unescaped(text, receipts))
        for item in _items_of(text):
            node.children.append(_Node("item", _unescaped(item, receipts)))
        root.children.append(node)
    if not parameters:
        return {}, receipts
    arguments = _value_of(root, source.tools.parameters(name))
    return arguments, receipts + note_broken(source, name, arguments)


def _items_of(text: str) -> list[str]:
    """Return what stands in tags `<item>`, when nothing else stands there."""
    text = text.strip()
    match = _ITEMS.fullmatch(text)
    return [item[1] for item in _ITEM.finditer(text)] if match else []


def _unescaped(text: str, receipts: list[Receipt]) -> str:
    """Return text without the entities of XML, where nothing speaks against them."""
    if "<" in text or "&" not in text or _STRAY_AMPERSAND.search(text):
        return text
    plain = unescape_entities(text)
    receipts.append(text_receipt("unescape_entities", text, plain))
    return plain
