"""A name and pairs of `<arg_key>` and `<arg_value>`: GLM, Ling, Laguna, Hunyuan Hy3, LongCat."""

import re
from collections.abc import Sequence
from typing import Any, Final

from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt
from surecall.calls.blocks import found_calls, read_calls
from surecall.calls.formats import CallFormat, Found, TextCall
from surecall.calls.json_block import close_block, read_after_token
from surecall.calls.source import NeedMore, Source
from surecall.calls.tags import (
    Grammar,
    Tag,
    TagKind,
    is_unfinished_tag,
    run_end,
    skip_debris,
    tag_receipt,
)
from surecall.calls.text_values import Parameter, build_typed

_TAG: Final = lazy_pattern(
    r"<(?P<slash>/?)(?:longcat_)?(?P<word>tool_calls|tool_call|tool_sep|arg_key|arg_value)"
    r"(?::[\w.-]{1,32})?>"
)
_KINDS: Final[dict[tuple[bool, str], TagKind]] = {
    (True, "tool_calls"): "close_section",
    (False, "tool_calls"): "open_section",
    (True, "tool_call"): "close_call",
    (True, "arg_value"): "close_value",
}
_LONGCAT: Final = "<longcat_tool_call>"
_LONGCAT_END: Final = "</longcat_tool_call>"
_NAME: Final = lazy_pattern(r"[^\s<>{}()\[\]\"'`\\]*+")
_KEY: Final = lazy_pattern(r"[^<>]{0,256}+")


class _PairGrammar:
    """A call is a tag and a name; a value is a pair of tags."""

    stops: re.Pattern[str] = lazy_pattern(r"</?(?:longcat_)?(?:tool_call|arg_)")
    words: tuple[str, ...] = ("tool_calls", "tool_call", "tool_sep", "arg_key", "arg_value")
    pairs_words: bool = False
    has_tokens: bool = False

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag that stands here; a call with its name, a key with its value's tag."""
        raw = self.raw(source, at)
        if raw is None:
            return None
        closing, word, end = raw
        if not closing and word == "tool_call":
            return self._call(source, at, end)
        if not closing and word == "arg_key":
            return self._pair(source, at, end)
        kind = _KINDS.get((closing, word))
        return None if kind is None else Tag(kind, at, end, word=word)

    def is_begun(self, source: Source, at: int) -> bool:
        """Tell whether the text ends for good inside a tag, or between a key and its value."""
        if not source.final:
            return False
        raw = self.raw(source, at)
        if raw is None or raw[:2] != (False, "arg_key"):
            return is_unfinished_tag(source.text, at)
        end = run_end(source, _KEY, raw[2])
        return source.at_end(end) or is_unfinished_tag(source.text, end)

    def with_properties(self, properties: tuple[str, ...]) -> Grammar | None:
        """Return nothing: parameters are always pairs."""
        return None

    def raw(self, source: Source, at: int) -> tuple[bool, str, int] | None:
        """Return whether a tag closes, its word and its end."""
        if source.char(at) != "<":
            return None
        match = _TAG.match(source.text, at)
        if match is None:
            if not source.final and is_unfinished_tag(source.text, at):
                raise NeedMore
            return None
        return bool(match["slash"]), match["word"], match.end()

    def _call(self, source: Source, at: int, end: int) -> Tag:
        """Read the name; it has a label only where something of a call follows."""
        nameless = Tag("open_call", at, end, word="tool_call")
        begin = skip_debris(source, end)
        name_end = run_end(source, _NAME, begin)
        label = source.text[begin:name_end]
        if not label or source.at_end(name_end):
            return nameless
        named = nameless._replace(label=label, end=name_end)
        after = skip_debris(source, name_end)
        if source.at_end(after):
            return named
        if source.char(after) == ">":
            after = skip_debris(source, after + 1)
            named = named._replace(end=after, rule="stray_bracket")
            if source.at_end(after):
                return named
        if source.char(after) == "{":
            return named
        raw = self.raw(source, after)
        if raw is None:
            return named if self.is_begun(source, after) else nameless
        closing, word, tag_end = raw
        if not closing and word == "tool_sep":
            return named._replace(end=tag_end, attributes={"sep": word})
        if (not closing and word == "arg_key") or (closing and word in ("tool_call", "tool_calls")):
            return named
        return nameless

    def _pair(self, source: Source, at: int, end: int) -> Tag | None:
        key_end = run_end(source, _KEY, end)
        label = source.text[end:key_end].strip()
        raw = None if source.at_end(key_end) else self.raw(source, key_end)
        if raw is None or not label:
            return None
        if raw[:2] == (False, "arg_value"):
            return Tag("open_value", at, raw[2], label, "arg_value", rule="missing_closing_tag")
        if raw[:2] != (True, "arg_key"):
            return None
        here = skip_debris(source, raw[2])
        raw = None if source.at_end(here) else self.raw(source, here)
        if raw is not None and raw[:2] == (False, "arg_value"):
            return Tag("open_value", at, raw[2], label, "arg_value")
        return Tag("open_value", at, here, word="arg_key", closed=True, rule="key_without_value")


_GRAMMAR: Final = _PairGrammar()


class Glm(CallFormat):
    """`<tool_call>NAME` and pairs, each call in its own tag."""

    name = "glm"
    literals = ("<tool_call>", "<tool_call:")
    never_json = True

    def read(self, source: Source, at: int) -> Found | None:
        """Read one call, or those of a section."""
        tag = _GRAMMAR.tag(source, at)
        if tag is None:
            return None
        if tag.kind == "open_section":
            here = skip_debris(source, tag.end)
            if source.at_end(here):
                return Found(end=here)
            begin, tag = tag.end, _GRAMMAR.tag(source, here)
            if tag is None or tag.kind != "open_call":
                return None
        else:
            begin = at
        if not tag.label:
            return self._nameless(source, tag)
        calls, end = read_calls(source, _GRAMMAR, begin, build=_build_pairs)
        if not calls:
            return None
        bare = not tag.attributes and all(call.arguments == {} for call in calls)
        return found_calls(source, calls, end, marked=not bare)

    def _nameless(self, source: Source, tag: Tag) -> Found | None:
        """Drop the beginning of a name that exists at the very end of the text."""
        begin = skip_debris(source, tag.end)
        end = run_end(source, _NAME, begin)
        begun = source.text[begin:end]
        if source.at_end(end) and any(name.startswith(begun) for name in source.tools.names):
            return Found(end=end)
        return None


class HunyuanV3(Glm):
    """`<tool_calls>` around calls of the same kind; every tag may have a suffix."""

    name = "hunyuan_v3"
    literals = ("<tool_calls>", "<tool_calls:")


class LongCat(Glm):
    """`<longcat_tool_call>` around pairs, a JSON object, or a call with one object."""

    name = "longcat"
    literals = (_LONGCAT,)
    never_json = False

    def read(self, source: Source, at: int) -> Found | None:
        """Read what stands in the tag."""
        begin = source.skip_space(at + len(_LONGCAT))
        if source.char(begin) in ("{", "["):
            return read_after_token(source, begin, _LONGCAT, (_LONGCAT_END,), closes=True)
        end = run_end(source, _NAME, begin)
        if end > begin and source.char(end) == "(":
            value = source.skip_space(end + 1)
            if source.char(value) == "{":
                return self._written(source, value, source.text[begin:end])
        return super().read(source, at)

    def _written(self, source: Source, at: int, name: str) -> Found:
        """Read the object between the parentheses of a call."""
        value_end = source.value_end(at)
        if value_end is None:
            call = TextCall(name=name, arguments=source.text[at:], state="cut")
            return Found(end=len(source.text), calls=(call,))
        call = TextCall(name=name, arguments=source.text[at:value_end])
        end = source.skip_space(value_end)
        if source.char(end) == ")":
            end += 1
        return found_calls(source, (call,), close_block(source, end, (_LONGCAT_END,))[0])


def _build_pairs(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return typed arguments; newlines around every value come from a template."""
    padded = bool(parameters) and all(
        len(text) > 1 and text[0] == "\n" and text[-1] == "\n" for _, text, _ in parameters
    )
    if not padded:
        return build_typed(source, name, parameters)
    first = parameters[0].text
    bare = [parameter._replace(text=parameter.text[1:-1]) for parameter in parameters]
    arguments, receipts = build_typed(source, name, bare)
    return arguments, [tag_receipt("strip_value_padding", first, first[1:-1]), *receipts]
