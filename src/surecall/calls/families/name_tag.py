"""Calls in a tag that is the name of the tool."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from surecall.base.records import Receipt
from surecall.calls.blocks import Block, found_calls, read_block
from surecall.calls.element_tree import Node, value_of
from surecall.calls.formats import CallFormat, Found, TextCall
from surecall.calls.names import ToolNames, parameter_names
from surecall.calls.source import Source
from surecall.calls.tags import ElementGrammar, tag_receipt
from surecall.calls.text_values import Parameter, note_broken

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
_MCP_GRAMMAR: Final = ElementGrammar(
    calls=(_MCP,), values=("server_name", "tool_name", "arguments"), style="tag"
)
_YAML_LINE: Final = re.compile(r"[ \t]*+([^\s:#<>-][^:\n]{0,128}?)[ \t]*+:(?:[ \t]++(.*+))?\Z")
_IN_ITEM: Final = r"((?:[^<]++|<(?!/item>))*+)"
_ITEM: Final = re.compile(rf"<item>{_IN_ITEM}</item>")
_ITEMS: Final = re.compile(rf"(?:<item>{_IN_ITEM}</item>\s*+)*+")
_STRAY_AMPERSAND: Final = re.compile(r"&(?!(?:lt|gt|quot|apos|amp);)")
_ENTITIES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))
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
    """Read a body of lines `key: value`, each key a parameter."""
    keys = parameter_names(source.tools.parameters(name))
    values: dict[str, str] = {}
    for line in text.splitlines():
        match = _YAML_LINE.match(line)
        if match is None or match[1] not in keys:
            return None
        values[match[1]] = (match[2] or "").strip().strip("\"'")
    receipt = tag_receipt("yaml_body", text, "arguments")
    arguments = source.typed(name, values)
    return Block(TextCall(name=name, arguments=arguments, receipts=(receipt,)), end)


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
            receipt = tag_receipt("mcp_form", f"{server} {tool}", name)
            call = TextCall(name=name, arguments=block.call.arguments, receipts=(receipt,))
            return Block(call, block.end)
    return None


@lru_cache(maxsize=256)
def _grammar_of(name: str, properties: tuple[str, ...]) -> ElementGrammar:
    return ElementGrammar(calls=(name,), values=properties, style="tag")


def _build_nested(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return typed arguments; lists are repeated tags or tags `<item>` inside."""
    root = Node("")
    receipts: list[Receipt] = []
    for key, text, _ in parameters:
        node = Node(key, _unescaped(text, receipts))
        for item in _items_of(text):
            node.children.append(Node("item", _unescaped(item, receipts)))
        root.children.append(node)
    if not parameters:
        return {}, receipts
    arguments = value_of(root, source.tools.parameters(name))
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
    plain = text
    for entity, character in _ENTITIES:
        plain = plain.replace(entity, character)
    receipts.append(tag_receipt("unescape_entities", text, plain))
    return plain
