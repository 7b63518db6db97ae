"""The XML agent of LangChain: `<tool>NAME</tool><tool_input>text or JSON</tool_input>`."""

import re
from typing import Any, Final

from surecall.records import Receipt

from .base import CallFormat, Found, TextCall
from .blocks import end_of_calls
from .fitting import single_parameter
from .source import Source
from .tags import ends_within, run_end, tag_receipt

__all__ = ["LangChainXml"]

_NAME: Final = re.compile(r"[^<>\n]{0,256}+")
_INPUT: Final = ("<tool_input>", "</tool_input>")
_ESCAPED: Final = ("tool", "tool_input", "observation", "final_answer")


class LangChainXml(CallFormat):
    """One call: its name, then its input."""

    name = "langchain_xml"
    literals = ("<tool>",)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the input of a tool that exists; text is the value of its only parameter."""
        begin = at + len("<tool>")
        end = run_end(source, _NAME, begin)
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
        end, invented = end_of_calls(source, closed + len(_INPUT[1]))
        call = TextCall(name=name, arguments=arguments, receipts=tuple(receipts))
        return Found(end=end, calls=(call,), grade="damaged", ends_message=invented)


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
    only = single_parameter(source.tools.parameters(name))
    if only is None:
        return plain, receipts
    receipts.append(tag_receipt("only_parameter", plain, only))
    return source.typed(name, {only: plain}), receipts
