"""Calls as `<invoke name=...>`: Anthropic, MiniMax M2, Dots, MiniCPM5 and DeepSeek DSML."""

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from surecall.base.errors import SurecallError
from surecall.base.records import Receipt, clip
from surecall.calls.blocks import found_calls, have_arguments, read_calls
from surecall.calls.formats import CallFormat, Found, TextCall
from surecall.calls.json_block import read_after_token
from surecall.calls.names import ToolNames
from surecall.calls.source import Source
from surecall.calls.tags import (
    ElementGrammar,
    Grammar,
    Tag,
    parse_attributes,
    run_end,
    skip_debris,
    tag_receipt,
)
from surecall.calls.text_values import Padding, Parameter, build_typed
from surecall.text import decode

_NAMESPACE: Final = "antml:"
_PREFIX: Final = r"(?:[A-Za-z][\w.-]{0,31}+:)?+"
_NAMESPACED: Final = re.compile(r"(?:[A-Za-z][\w.-]{0,31}+)?")
_NAME: Final = re.compile(r"[^\s<>\"'`{}()\[\]]*+")
_STRAY_WORDS: Final = ("count\n", "call\n")
_BARE: Final = ("<invoke", f"<{_NAMESPACE}invoke", "<call name=", "<call_record", "<tool name=")

INVOKE_GRAMMAR: Final = ElementGrammar(
    calls=("invoke", "call_record", "function_call", "call", "tool"),
    values=("parameter", "param", "argument", "arg"),
    sections=("function_calls", "tool_calls", "tool_call", "dots_function_call"),
    prefix=_PREFIX,
    label_keys=("name", "tool"),
)


class _LegacyGrammar(ElementGrammar):
    """`<invoke><tool_name>N</tool_name><parameters><K>VALUE</K></parameters></invoke>`."""

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag that stands here; a call with its name."""
        tag = super().tag(source, at)
        if tag is None or tag.word != "invoke":
            return tag
        if tag.kind == "close_section":  # of one call; others may follow in the wrapper
            return tag._replace(kind="close_call")
        here = source.skip_space(tag.end)
        if source.at_end(here) or not source.starts("<tool_name>", here):
            return tag
        begin = source.skip_space(here + len("<tool_name>"))
        end = run_end(source, _NAME, begin)
        after = source.skip_space(end)
        if source.at_end(after) or not source.starts("</tool_name>", after):
            return tag
        after += len("</tool_name>")
        inner = source.skip_space(after)
        if not source.at_end(inner) and source.starts("<parameters>", inner):
            after = inner + len("<parameters>")
        return Tag("open_call", at, after, source.text[begin:end], "invoke")


_LEGACY: Final = _LegacyGrammar(
    calls=("parameters",), values=(), sections=("invoke", "function_calls"), prefix=_PREFIX
)


class _WrappedInvoke(CallFormat):
    """Calls in a wrapper of their own."""

    padding: Padding = "none"

    def read(self, source: Source, at: int) -> Found | None:
        """Read all calls up to the end of the wrapper."""
        opener = source.starts_any(self.literals, at)
        begin = at + len(opener)
        here = skip_debris(source, begin)
        if source.at_end(here):
            return Found(end=here)
        grammar: Grammar = INVOKE_GRAMMAR
        head = grammar.tag(source, here)
        if head is not None and head.kind == "open_call" and not head.label:
            grammar = _LEGACY
            head = grammar.tag(source, here)
        if head is None:
            return Found(end=len(source.text)) if grammar.is_begun(source, here) else None
        if head.kind != "open_call":
            cut = source.final and head.kind == "open_section" and source.rest_is_blank(head.end)
            return Found(end=len(source.text)) if cut else None
        if head.word != "invoke" and source.tools.resolve(head.label) is None:
            return None
        return read_found(
            source, grammar, begin, padding=self.padding, marked=head.word == "invoke"
        )


class AnthropicXml(_WrappedInvoke):
    """`<function_calls>`, with or without the namespace prefix, and the form before it."""

    name = "anthropic_xml"
    literals = ("<function_calls>", f"<{_NAMESPACE}function_calls>")


class MiniMaxM2(_WrappedInvoke):
    """`<minimax:tool_call>`."""

    name = "minimax_m2"
    literals = ("<minimax:tool_call>",)


class Dots(_WrappedInvoke):
    """`<dots_function_call>` around invokes or JSON."""

    name = "dots"
    literals = ("<dots_function_call>",)
    padding: Padding = "trim"

    def read(self, source: Source, at: int) -> Found | None:
        """Read invokes, or JSON."""
        opener = self.literals[0]
        here = source.skip_space(at + len(opener))
        if source.char(here) not in ("{", "["):
            return super().read(source, at)
        return read_after_token(source, here, opener, ("</dots_function_call>",), closes=True)


class BareInvoke(CallFormat):
    """A call without a wrapper; the tool must exist."""

    name = "invoke"
    line_start = True

    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return how a call begins, and the words that leak before one."""
        after_word = (*_BARE[:2], *AnthropicXml.literals)
        return (*_BARE, *(f"{word}{tag}" for word in _STRAY_WORDS for tag in after_word))

    def read(self, source: Source, at: int) -> Found | None:
        """Read one or more calls of tools that exist."""
        return _read_bare(source, at + len(source.starts_any(_STRAY_WORDS, at)))


class PrefixedInvoke(CallFormat):
    """Calls and wrappers with an unknown prefix; the tool must exist."""

    name = "invoke"
    line_start = True
    literals = ("<",)

    def read(self, source: Source, at: int) -> Found | None:
        """Read calls whose tags have a prefix."""
        end = run_end(source, _NAMESPACED, at + 1)
        return _read_bare(source, at) if source.char(end) == ":" and end > at + 1 else None


def _read_bare(source: Source, at: int) -> Found | None:
    grammar: Grammar = INVOKE_GRAMMAR
    head = grammar.tag(source, at)
    begin = here = at
    if head is not None and head.kind == "open_section":
        begin = head.end
        here = skip_debris(source, begin)
        head = None if source.at_end(here) else grammar.tag(source, here)
    if head is not None and head.kind == "open_call" and head.word == "invoke" and not head.label:
        grammar = _LEGACY
        head = grammar.tag(source, here)
    if head is None:
        return _read_begun(source, grammar, here)
    if head.kind != "open_call" or source.tools.resolve(head.label) is None:
        return None
    return read_found(source, grammar, begin, padding="none", marked=False)


def _read_begun(source: Source, grammar: Grammar, at: int) -> Found | None:
    """Return the call whose tag the end of the text cut off, if its tool exists."""
    if source.at_end(at) or not grammar.is_begun(source, at):
        return None
    text = source.text[at:]
    name = parse_attributes(text).get("name", "")
    if source.tools.resolve(name) is None:
        return None
    call = TextCall(name=name, arguments=text, state="cut")
    return Found(end=len(source.text), calls=(call,), grade="damaged")


def read_found(
    source: Source, grammar: Grammar, at: int, *, padding: Padding, marked: bool
) -> Found | None:
    """Read calls in a row and what the model made up after them."""
    calls, end = read_calls(source, grammar, at, padding=padding)
    if not calls or not (marked or have_arguments(calls)):
        return None
    return found_calls(source, calls, end, marked=marked)


_MINICPM_GRAMMAR: Final = ElementGrammar(calls=("function",), values=("param", "parameter"))


class MiniCpm5(CallFormat):
    """Functions and parameters with their names as attributes; values may be CDATA."""

    name = "minicpm5"
    literals = ("<function name=", "<functionname=", "<function\u0120name=")

    def read(self, source: Source, at: int) -> Found | None:
        """Read functions in a row."""
        head = _MINICPM_GRAMMAR.tag(source, at)
        if head is None:
            if not _MINICPM_GRAMMAR.is_begun(source, at):
                return None
            if (found := _read_begun(source, _MINICPM_GRAMMAR, at)) is not None:
                return found
            begun = source.text[at:].partition("=")[2].strip("\"'")
            cut = any(name.startswith(begun) for name in source.tools.names)
            return Found(end=len(source.text)) if cut else None
        marked = not head.rule and not head.closed
        if head.kind != "open_call" or not head.label:
            return None
        if not marked and source.tools.resolve(head.label) is None:
            return None
        calls, end = read_calls(source, _MINICPM_GRAMMAR, at)
        if not calls or not have_arguments(calls):
            return None
        return found_calls(source, calls, end, marked=marked)


_BARS: Final = ("｜｜", "｜", "||", "|", "‖")
_DSML_PREFIX: Final = r"(?:[｜|‖]{1,2}+[ ]?DSML[ ]?[｜|‖]{1,2}+[ ]?|DSML[ :]?)"
_DSML_GRAMMAR: Final = ElementGrammar(
    calls=("invoke",),
    values=("parameter",),
    sections=("function_calls", "functioncalls", "tool_calls", "toolcalls", "tool_call", "calls"),
    prefix=_DSML_PREFIX,
)
_CANONICAL: Final = "<｜DSML｜"


class Dsml(CallFormat):
    """A section of invokes, each with parameters that say whether they are strings."""

    name = "dsml"
    literals = (*(f"<{bar}DSML{bar}" for bar in _BARS), "<DSML")

    def read(self, source: Source, at: int) -> Found | None:
        """Read the invokes of a section, or one whose section is missing."""
        tag = _DSML_GRAMMAR.tag(source, at)
        if tag is None:
            return self._unfinished(source, at)
        begin = at
        if tag.kind == "open_section":
            here = skip_debris(source, tag.end)
            if source.at_end(here):
                return Found(end=here)
            begin, tag = tag.end, _DSML_GRAMMAR.tag(source, here)
            if tag is None and _DSML_GRAMMAR.is_begun(source, here):
                return Found(end=len(source.text))
        if tag is None or tag.kind != "open_call":
            return None
        damaged = not source.starts(_CANONICAL, at)
        if damaged and source.tools.resolve(tag.label) is None:
            return None
        calls, end = read_calls(source, _DSML_GRAMMAR, begin, build=build_dsml)
        if not calls:
            return None
        return found_calls(source, calls, end, marked=not damaged)

    def _unfinished(self, source: Source, at: int) -> Found | None:
        """Drop the beginning of a tag at the very end of the text."""
        if source.starts(_CANONICAL, at) and _DSML_GRAMMAR.is_begun(source, at):
            return Found(end=len(source.text))
        return None


def build_dsml(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return arguments typed by their `string` attribute, and by the schema where it is wrong."""
    built, receipts = build_typed(source, name, parameters)
    if not isinstance(built, dict):
        return built, receipts
    arguments = cast("dict[str, Any]", built)
    for key, text, tag in parameters:
        is_string = tag.attributes.get("string", "").lower()
        if is_string == "true":
            _keep_string(arguments, key, text, source.schema_of(name, key), receipts)
        elif is_string == "false":
            try:
                arguments[key] = decode(text.strip())
            except SurecallError:
                note = f"{key} is marked as JSON and is none"
                receipts.append(Receipt("text_for_json", "text", clip(text), text, why=note))
    return arguments, receipts


def _keep_string(
    arguments: dict[str, Any],
    key: str,
    text: str,
    schema: dict[str, Any] | None,
    receipts: list[Receipt],
) -> None:
    """Keep text that is marked as a string, unless the schema made something else of it."""
    typed = arguments[key]
    if schema is None or isinstance(typed, str):
        arguments[key] = text
        return
    receipts.append(tag_receipt("string_by_schema", text, type(typed).__name__))
