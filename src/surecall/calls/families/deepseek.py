"""DeepSeek V3, R1 and V3.1: a section of calls between tokens of full-width bars.

V3 writes `function`, a separator, the name and a fenced JSON object; V3.1 the name, the separator
and the object. Both bodies are read under both. Tokens in look-alike characters are read too.
"""

from typing import Final, NamedTuple

from msgspec.structs import replace

from surecall.calls.formats import CallFormat, Found, TextCall, add_receipts
from surecall.calls.json_block import Payload, close_block, read_payload, receipt
from surecall.calls.source import NeedMore, Source

_BARS: Final = ("｜｜", "｜", "||", "|", "‖")
_MAX_TOKEN_CHARS: Final = 40
_MAX_HEAD_CHARS: Final = 300
_SECTION: Final = "tool_calls_begin"
_SECTION_END: Final = "tool_calls_end"
_CALL: Final = "tool_call_begin"
_CALL_END: Final = "tool_call_end"
_NAME_END: Final = "tool_sep"
_OUTPUTS: Final = frozenset({"tool_outputs_begin", "tool_output_begin"})
_WORDS: Final = frozenset({_SECTION, _SECTION_END, _CALL, _CALL_END, _NAME_END, *_OUTPUTS})
_FENCE: Final = "```"


class _Token(NamedTuple):
    word: str
    """Empty when no token stands there."""
    end: int
    text: str


class DeepSeekCalls(CallFormat):
    """Calls between `<｜tool▁call▁begin｜>` and `<｜tool▁call▁end｜>`, in a section or alone."""

    name = "deepseek"
    trims = False
    literals = tuple(f"<{bar}tool" for bar in _BARS)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the section up to its end, or one call that stands outside of any."""
        opener = _token_at(source, at)
        if opener.word not in (_SECTION, _CALL):
            return Found(end=len(source.text)) if _is_token_cut(source, at) else None
        here = source.skip_space(opener.end) if opener.word == _SECTION else at
        calls: list[TextCall] = []
        token = _token_at(source, here)
        while token.word == _CALL:
            end = _read_call(source, token, calls)
            if end < 0:
                return None if not calls else _found(source, here, opener, calls)
            here = source.skip_space(end)
            token = _token_at(source, here)
            if opener.word == _CALL:
                break
        return _found(source, here, opener, calls)


def _found(source: Source, at: int, opener: _Token, calls: list[TextCall]) -> Found | None:
    token = _token_at(source, at)
    end = at
    if token.word == _SECTION_END:
        end = token.end
    elif source.at_end(at) or _is_token_cut(source, at):
        end = len(source.text)
    elif not calls:
        return None
    follows = _token_at(source, source.skip_space(end)).word
    found = Found(end=end, calls=tuple(calls), ends_message=bool(calls) and follows in _OUTPUTS)
    if opener.word == _CALL:
        why = "the calls themselves are complete"
        note = receipt("missing_opener", "", "<｜tool▁calls▁begin｜>", why)
        found = replace(found, calls=add_receipts(found.calls, note), grade="damaged")
    if opener.text != f"<｜{opener.word.replace('_', '▁')}｜>":
        why = "characters that look like those of the token"
        note = receipt("look_alike_markers", opener.text, opener.word, why)
        found = replace(found, calls=add_receipts(found.calls, note), grade="damaged")
    return found


def _read_call(source: Source, opener: _Token, calls: list[TextCall]) -> int:
    """Read one call into the list and return where it ends; -1 when it is none."""
    start = opener.end
    angle = source.find("<", start)
    if angle < 0:
        return (
            len(source.text) if _is_head(source.text[start : start + _MAX_HEAD_CHARS + 1]) else -1
        )
    separator = _token_at(source, angle)
    head = source.text[start:angle].strip()
    if _is_token_cut(source, angle):
        return len(source.text)
    if separator.word != _NAME_END or not _is_head(head):
        return -1
    stop, _ = source.find_any(("\n", "`", "{", "<", '"'), source.skip_space(separator.end))
    if stop < 0:
        return len(source.text)
    name = source.text[separator.end : stop].strip() or head
    payload = _read_payload(source, stop, opener)
    if payload is None:
        return -1
    call = TextCall(name=name, arguments=payload.text, state=payload.state)
    if payload.state == "cut":
        calls.append(call)
        return payload.end
    closer = _token_at(source, payload.end)
    if closer.word == _CALL_END:
        calls.append(call)
        return closer.end
    note = receipt("missing_closer", "", "<｜tool▁call▁end｜>", "the arguments are complete")
    calls.extend(add_receipts((call,), note))
    return len(source.text) if _is_token_cut(source, payload.end) else payload.end


def _read_payload(source: Source, at: int, opener: _Token) -> Payload | None:
    """Read the arguments, perhaps in a code fence; the end is that of the fence."""
    call_end = opener.text.replace("begin", "end")
    stops = (opener.text, call_end, call_end.replace("call", "calls"))
    here = source.skip_space(at)
    fenced = source.starts(_FENCE, here)
    if fenced:
        _, here = source.read_name(here + len(_FENCE))
        here = source.skip_space(here)
    if source.at_end(here) or (not fenced and close_block(source, here, (_FENCE,))[1]):
        return Payload("", len(source.text), "cut")
    if not (fenced and source.starts(_FENCE, here)) and not _token_at(source, here).word:
        payload = _read_json(source, here, stops)
    else:
        payload = Payload("", here, "whole")
    if payload is None or payload.state == "cut":
        return payload
    end = close_block(source, payload.end, (_FENCE,))[0] if fenced else payload.end
    end = source.skip_space(end)
    text = payload.text.rstrip().removesuffix(_FENCE) if fenced else payload.text
    return Payload(text, end, payload.state)


def _read_json(source: Source, at: int, stops: tuple[str, ...]) -> Payload | None:
    """Read an object, or a string that holds one."""
    if source.char(at) != '"':
        return read_payload(source, at, stops)
    end, _ = source.find_any(stops, at)
    if end < 0:
        return Payload(source.text[at:], len(source.text), "cut")
    return Payload(source.text[at:end].strip(), end, "whole")


def _is_head(text: str) -> bool:
    """Tell the word before a separator, or a part of it, from prose."""
    return len(text) <= _MAX_HEAD_CHARS and len(text.split()) <= 1


def _token_at(source: Source, at: int) -> _Token:
    """Return the token that stands here, with look-alike characters read as what they mean."""
    none = _Token("", at, "")
    if source.at_end(at) or not source.starts("<", at):
        return none
    bar = source.starts_any(_BARS, at + 1)
    if not bar:
        return none
    near = source.text[at : at + _MAX_TOKEN_CHARS]
    end = near.find(">")
    if end < 0:
        if len(near) < _MAX_TOKEN_CHARS and not source.final:
            raise NeedMore
        return none
    text = near[: end + 1]
    word = _folded(text)
    known = word[2:-2]
    return _Token(known, at + end + 1, text) if known in _WORDS else none


def _is_token_cut(source: Source, at: int) -> bool:
    """Tell whether the text ends inside a token."""
    if not source.final or len(source.text) - at > _MAX_TOKEN_CHARS:
        return False
    tail = _folded(source.text[at:])
    return bool(tail) and any(f"<|{word}|".startswith(tail) for word in _WORDS)


def _folded(token: str) -> str:
    token = token.replace("｜", "|").replace("‖", "|").replace("||", "|")
    return token.replace("\\_", "_").replace("▁", "_").replace(" ", "_")
