"""Kimi K3 (XTML): channels and calls between `<|open|>`, `<|close|>` and `<|sep|>`."""

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from surecall.errors import SurecallError
from surecall.jsontext import decode
from surecall.records import Receipt

from .base import CallFormat, Found, Thinking
from .blocks import end_of_calls, read_calls
from .parameters import Parameter, build_typed
from .source import NeedMore, Source
from .tags import MAX_TAG_CHARS, Grammar, Tag, TagKind, parse_attributes

__all__ = ["KimiK3"]

_OPEN: Final = "<|open|>"
_CLOSE: Final = "<|close|>"
_SEP: Final = "<|sep|>"
_THINK: Final = Thinking(closers=("<|close|>think<|sep|>",))
_TAGS: Final = (
    _OPEN,
    _CLOSE,
    "<|open|>think<|sep|>",
    "<|close|>think<|sep|>",
    "<|close|>message<|sep|>",
)
_RESPONSE: Final = Thinking(_TAGS, kept=frozenset(_TAGS), ends_at_call=False, shown=True)
_WORD: Final = re.compile(r"[ \t]*+([a-z_]*+)")
_KINDS: Final[dict[tuple[str, str], TagKind]] = {
    (_OPEN, "tools"): "open_section",
    (_CLOSE, "tools"): "close_section",
    (_OPEN, "call"): "open_call",
    (_CLOSE, "call"): "close_call",
    (_OPEN, "argument"): "open_value",
    (_CLOSE, "argument"): "close_value",
}
_CHANNELS: Final = frozenset({"response", "message"})


class _XtmlGrammar:
    stops: re.Pattern[str] = re.compile(r"<\|(?:open|close)\|>")
    pairs_words: bool = False
    has_tokens: bool = True

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag that stands here; spaces may stand between its tokens."""
        raw = self.raw(source, at)
        if raw is None:
            return None
        token, word, attributes, end = raw
        kind = _KINDS.get((token, word))
        if kind is None:
            return None
        label = attributes.get("tool" if word == "call" else "key", "")
        return Tag(kind, at, end, label, word, attributes)

    def raw(self, source: Source, at: int) -> tuple[str, str, dict[str, str], int] | None:
        """Return the token, the word, the attributes and the end of any tag."""
        if source.char(at) != "<":
            return None
        token = source.starts_any((_OPEN, _CLOSE), at)
        if not token:
            return None
        begin = at + len(token)
        sep = source.text.find(_SEP, begin, begin + MAX_TAG_CHARS)
        if sep < 0:
            if not source.final and len(source.text) < begin + MAX_TAG_CHARS:
                raise NeedMore
            word = source.text[begin : begin + MAX_TAG_CHARS].strip()
            ends = token == _CLOSE and word.isalpha() and len(source.text) - begin < MAX_TAG_CHARS
            return (token, word, {}, len(source.text)) if ends else None
        text = source.text[begin:sep]
        match = _WORD.match(text)
        word = match[1] if match else ""
        return token, word, parse_attributes(text[len(match[0]) if match else 0 :]), sep + len(_SEP)

    def is_begun(self, source: Source, at: int) -> bool:
        """Tell whether the text ends for good inside a tag that begins here."""
        if not source.final or len(source.text) - at >= MAX_TAG_CHARS:
            return False
        begun = source.text[at:]
        if begun.startswith((_OPEN, _CLOSE)):
            return _SEP not in begun
        return bool(begun) and (_OPEN.startswith(begun) or _CLOSE.startswith(begun))

    def with_properties(self, properties: tuple[str, ...]) -> Grammar | None:
        """Return nothing: arguments always have their own tag."""
        return None


_GRAMMAR: Final = _XtmlGrammar()


class KimiK3(CallFormat):
    """Channels `think`, `response` and `tools`, and the calls in the last one."""

    name = "kimi_k3"
    trims = False
    literals = (_OPEN, _CLOSE)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the calls of the tools channel, or drop the tag of another one."""
        raw = _GRAMMAR.raw(source, at)
        if raw is None:
            return Found(end=len(source.text)) if _GRAMMAR.is_begun(source, at) else None
        token, word, _, end = raw
        if word == "think":
            return None if token == _CLOSE else Found(end=end, opens=_THINK)
        if word in _CHANNELS:
            opens = _RESPONSE if (token, word) == (_OPEN, "response") else None
            return Found(end=end, opens=opens)
        tag = _GRAMMAR.tag(source, at)
        if tag is None or tag.kind in ("open_value", "close_value"):
            return None
        if tag.kind in ("close_section", "close_call"):
            return Found(end=end)
        begin = end if tag.kind == "open_section" else at
        calls, end = read_calls(source, _GRAMMAR, begin, build=_build_by_type)
        if not calls:
            return Found(end=begin) if begin > at else None
        end, invented = end_of_calls(source, end)
        return Found(end=end, calls=tuple(calls), ends_message=invented)


def _build_by_type(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return arguments typed by their `type` attribute."""
    built, receipts = build_typed(source, name, parameters)
    if not isinstance(built, dict):
        return built, receipts
    arguments = cast("dict[str, Any]", built)
    for key, text, tag in parameters:
        kind = tag.attributes.get("type", "")
        if kind == "string":
            arguments[key] = text
        elif kind:
            try:
                arguments[key] = decode(text.strip())
            except SurecallError:
                continue
    return arguments, receipts
