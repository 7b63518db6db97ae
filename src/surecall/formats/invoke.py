"""`<invoke name="N"><parameter name="K">VALUE</parameter></invoke>` in many wrappers."""

import re
from collections.abc import Sequence
from typing import Final

from .base import CallFormat, Found
from .blocks import end_of_calls, have_arguments, read_calls
from .names import ToolNames
from .parameters import Padding
from .source import Source
from .tags import ElementGrammar, Grammar, Tag, run_end, skip_debris
from .token_json import read_after_token

__all__ = [
    "INVOKE_GRAMMAR",
    "AnthropicXml",
    "BareInvoke",
    "Dots",
    "MiniMaxM2",
    "PrefixedInvoke",
    "read_found",
]

_NAMESPACE: Final = "antml:"
_PREFIX: Final = r"(?:[A-Za-z][\w.-]{0,31}+:)?+"
_NAMESPACED: Final = re.compile(r"(?:[A-Za-z][\w.-]{0,31}+)?")
_NAME: Final = re.compile(r"[^\s<>\"'`{}()\[\]]*+")
_STRAY_WORDS: Final = ("count\n", "call\n")
_BARE: Final = ("<invoke", f"<{_NAMESPACE}invoke", "<call name=", "<call_record")

INVOKE_GRAMMAR: Final = ElementGrammar(
    calls=("invoke", "call_record", "function_call", "call"),
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
    """Calls and wrappers with a prefix nobody knows; the tool must exist."""

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
    if head is None or head.kind != "open_call" or source.tools.resolve(head.label) is None:
        return None
    return read_found(source, grammar, begin, padding="none", marked=False)


def read_found(
    source: Source, grammar: Grammar, at: int, *, padding: Padding, marked: bool
) -> Found | None:
    """Read calls in a row and what the model made up after them."""
    calls, end = read_calls(source, grammar, at, padding=padding)
    if not calls or not (marked or have_arguments(calls)):
        return None
    end, invented = end_of_calls(source, end)
    return Found(
        end=end,
        calls=tuple(calls),
        grade="marked" if marked else "damaged",
        ends_message=invented,
    )
