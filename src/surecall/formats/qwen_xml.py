"""Qwen3-Coder XML: `<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function>`."""

import re
from typing import Final

from .base import CallFormat, Found
from .blocks import end_of_calls, have_arguments, read_calls
from .parameters import Padding
from .source import Source
from .tags import ElementGrammar, Tag, run_end, skip_debris

__all__ = ["BareQwenXml", "QwenXml"]

_SEED: Final = "<seed:tool_call>"
_NAME: Final = re.compile(r"[^\s<>\"'`{}()\[\]]*+")


class _QwenGrammar(ElementGrammar):
    """The tags, and the ways in which the tag of a function is written wrongly."""

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag that stands here."""
        if source.char(at) == "f" and source.starts("function=", at):
            end = run_end(source, _NAME, at + len("function="))
            if source.char(end) != ">":
                return None
            label = source.text[at + len("function=") : end]
            return Tag("open_call", at, end + 1, label, "function", rule="missing_bracket")
        tag = super().tag(source, at)
        if tag is not None and tag.kind == "open_call" and not tag.label and not tag.closed:
            return self._with_child_name(source, tag)
        return tag

    def _with_child_name(self, source: Source, tag: Tag) -> Tag:
        """Read `<function>NAME</function>` and `<function><name>NAME</name>`."""
        here = source.skip_space(tag.end)
        within = not source.at_end(here) and source.starts("<name>", here)
        here += len("<name>") if within else 0
        end = run_end(source, _NAME, here)
        label = source.text[here:end]
        closing = "</name>" if within else f"</{tag.word}>"
        after = source.skip_space(end)
        if not label or source.at_end(after) or not source.starts(closing, after):
            return tag
        return tag._replace(end=after + len(closing), label=label, rule="name_as_text")


_GRAMMAR: Final = _QwenGrammar(
    calls=("function", "invoke", "call"),
    values=("parameter", "param", "argument", "arg"),
    sections=("tool_call", "seed:tool_call"),
    style="=",
)


class QwenXml(CallFormat):
    """Functions in `<tool_call>` (Qwen, Nemotron, Step-3.5, MiMo) or `<seed:tool_call>` (Seed)."""

    name = "qwen_xml"
    literals = ("<tool_call>", _SEED)

    def read(self, source: Source, at: int) -> Found | None:
        """Read all functions up to the end of the wrapper."""
        opener = source.starts_any(self.openers(source.tools), at)
        here = skip_debris(source, at + len(opener))
        if source.at_end(here):
            return Found(end=here)
        head = _GRAMMAR.tag(source, here)
        if head is None:
            return Found(end=len(source.text)) if _GRAMMAR.is_begun(source, here) else None
        if head.kind != "open_call":
            return None
        padding: Padding = "none" if opener == _SEED else "newline"
        return _read(source, head, at + len(opener), wrapped=True, padding=padding)


class BareQwenXml(CallFormat):
    """A function whose wrapper is missing; its closing tag may be there."""

    name = "qwen_xml"
    literals = ("<function=",)

    def read(self, source: Source, at: int) -> Found | None:
        """Read a function of a tool that exists."""
        head = _GRAMMAR.tag(source, at)
        if head is None or source.tools.resolve(head.label) is None:
            return None
        after = skip_debris(source, head.end)
        if not source.at_end(after) and source.char(after) == "{":
            return None  # JSON between the tags is a format of its own
        return _read(source, head, at, wrapped=False)


def _read(
    source: Source, head: Tag, at: int, *, wrapped: bool, padding: Padding = "newline"
) -> Found | None:
    marked = wrapped and not head.rule
    if not marked and source.tools.resolve(head.label) is None:
        return None
    calls, end = read_calls(source, _GRAMMAR, at, padding=padding)
    if not calls or not (wrapped or have_arguments(calls)):
        return None
    end, invented = end_of_calls(source, end)
    return Found(
        end=end,
        calls=tuple(calls),
        grade="marked" if marked else "damaged",
        ends_message=invented,
    )
