"""Calls as elements whose parameters are tags: Qwen3-Coder, Step 3 and LangChain's XML."""

import re
from typing import Any, Final

from surecall.base.records import Receipt
from surecall.calls.blocks import found_calls, have_arguments, read_block, read_calls
from surecall.calls.fitting import name_lone_text, note_only
from surecall.calls.formats import CallFormat, Found, TextCall
from surecall.calls.source import Source
from surecall.calls.tags import (
    ElementGrammar,
    Tag,
    TagKind,
    ends_within,
    run_end,
    skip_debris,
    tag_receipt,
)
from surecall.calls.text_values import Padding

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
    never_json = True

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
    return found_calls(source, calls, end, marked=marked)


_SECTION: Final = "<｜tool_calls_begin｜>"
_CALL: Final = "<｜tool_call_begin｜>"
_SEP: Final = "<｜tool_sep｜>"
_TOKENS: Final[dict[str, TagKind]] = {
    _SECTION: "open_section",
    _CALL: "open_section",
    "<｜tool_call_end｜>": "close_section",
    "<｜tool_calls_end｜>": "close_section",
}
_TYPE: Final = re.compile(r"[^<\n]{0,64}+")


class _StepGrammar(ElementGrammar):
    """The tags, and the tokens around them."""

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag or token that stands here; the opener of a call with its type."""
        if source.char(at) != "<":
            return None
        token = source.starts_any(_TOKENS, at)
        if not token:
            return super().tag(source, at)
        end = at + len(token)
        if token != _CALL:
            return Tag(_TOKENS[token], at, end, word=token)
        type_end = run_end(source, _TYPE, end)
        label = source.text[end:type_end].strip()
        if not source.at_end(type_end) and source.starts(_SEP, type_end):
            type_end += len(_SEP)
        return Tag("open_section", at, type_end, label, token)


_STEP_GRAMMAR: Final = _StepGrammar(calls=("invoke",), values=("parameter",), prefix="steptml:")


class Step3(CallFormat):
    """A section of calls, each between its own tokens."""

    name = "step3"
    literals = (_SECTION, _CALL, "<steptml:invoke")

    def read(self, source: Source, at: int) -> Found | None:
        """Read all calls of the section."""
        marked = source.char(at + 1) == "｜"
        calls: list[TextCall] = []
        end, kind, seen = at, "function", False
        while True:
            here = skip_debris(source, end)
            if source.at_end(here):
                end = here
                break
            tag = _STEP_GRAMMAR.tag(source, here)
            if tag is None:
                if _STEP_GRAMMAR.is_begun(source, here) and (marked or calls):
                    end = len(source.text)
                break
            if tag.kind == "open_call":
                seen = True
                known = source.tools.resolve(tag.label) is not None
                block = read_block(source, _STEP_GRAMMAR, tag) if marked or known else None
                if block is None:
                    break
                if kind == "function":
                    calls.append(block.call)
                end, kind = block.end, "function"
                continue
            if tag.kind in ("open_value", "close_value"):
                break
            kind = tag.label or "function"
            end = tag.end
        if not calls and not seen:
            return Found(end=end) if marked and source.at_end(end) else None
        if not calls and end == at:
            return None
        return found_calls(source, calls, end, marked=marked)


_TOOL_NAME: Final = re.compile(r"[^<>\n]{0,256}+")
_INPUT: Final = ("<tool_input>", "</tool_input>")
_ESCAPED: Final = ("tool", "tool_input", "observation", "final_answer")


class LangChainXml(CallFormat):
    """One call: its name, then its input."""

    name = "langchain_xml"
    literals = ("<tool>",)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the input of a tool that exists; text is the value of its only parameter."""
        begin = at + len("<tool>")
        end = run_end(source, _TOOL_NAME, begin)
        name = source.text[begin:end].strip()
        if source.tools.resolve(name) is None:
            return None
        if not source.starts("</tool>", end):
            return Found(end=len(source.text)) if ends_within(source, "</tool>", end) else None
        here = source.skip_space(end + len("</tool>"))
        if not source.starts(_INPUT[0], here):
            return Found(end=len(source.text)) if ends_within(source, _INPUT[0], here) else None
        here += len(_INPUT[0])
        value = source.skip_space(here)
        closed = source.value_end(value) if source.char(value) == "{" else None
        closed = source.find(_INPUT[1], here if closed is None else closed)
        if closed < 0:
            call = TextCall(name=name, arguments=source.text[here:], state="cut")
            return Found(end=len(source.text), calls=(call,), grade="damaged")
        arguments, receipts = _arguments_of(source, name, source.text[here:closed])
        call = TextCall(name=name, arguments=arguments, receipts=tuple(receipts))
        return found_calls(source, (call,), closed + len(_INPUT[1]), marked=False)


def _arguments_of(source: Source, name: str, text: str) -> tuple[Any, list[Receipt]]:
    receipts: list[Receipt] = []
    plain = text
    for word in _ESCAPED:
        for slash in ("", "/"):
            plain = plain.replace(f"[[{slash}{word}]]", f"<{slash}{word}>")
    if plain != text:
        receipts.append(tag_receipt("unescape_tags", text, plain))
    if plain.lstrip().startswith("{"):
        return plain.strip(), receipts
    if not plain.strip():
        return None, receipts
    only = name_lone_text(source.tools.parameters(name), plain)
    if only is None:
        return plain, receipts
    receipts.append(note_only(plain, only))
    return source.typed(name, {only: plain}), receipts
