"""Step3: `<steptml:invoke name="N">` between tokens with full-width bars."""

import re
from typing import Final

from .base import CallFormat, Found, TextCall
from .blocks import end_of_calls, read_block
from .source import Source
from .tags import ElementGrammar, Tag, TagKind, run_end, skip_debris

__all__ = ["Step3"]

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


_GRAMMAR: Final = _StepGrammar(calls=("invoke",), values=("parameter",), prefix="steptml:")


class Step3(CallFormat):
    """A section of calls, each between tokens of its own."""

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
            tag = _GRAMMAR.tag(source, here)
            if tag is None:
                if _GRAMMAR.is_begun(source, here) and (marked or calls):
                    end = len(source.text)
                break
            if tag.kind == "open_call":
                seen = True
                known = source.tools.resolve(tag.label) is not None
                block = read_block(source, _GRAMMAR, tag) if marked or known else None
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
        end, invented = end_of_calls(source, end)
        return Found(
            end=end,
            calls=tuple(calls),
            grade="marked" if marked else "damaged",
            ends_message=invented,
        )
