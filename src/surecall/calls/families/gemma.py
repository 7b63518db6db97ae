"""Gemma: `call:NAME{...}`, whose arguments are JSON with tokens for quotes and bare keys."""

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from surecall.base.limits import MAX_VALUE_DEPTH
from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt
from surecall.calls.formats import Found, Grade, OwnFormat, TextCall, text_receipt
from surecall.calls.json_block import Marks, read_marked
from surecall.calls.leftovers import note_missing, skip_to_end
from surecall.calls.source import NeedMore, Source
from surecall.calls.unmarked_json import fits
from surecall.text import encode_text, repair_json

_QUOTED: Final = r"\"(?:[^\"\\]++|\\.)*+\"|'(?:[^'\\]++|\\.)*+'"
_STRING: Final = lazy_pattern(_QUOTED, re.DOTALL)
_QUOTES: Final = frozenset("\"'")
_KEY: Final = lazy_pattern(
    rf"({_QUOTED})|([{{,}}\]]\s*+|\A)([^\s\"'{{}}\[\],:][^\"'{{}}\[\],:\n]*+):"
)
_OPENS_VALUE: Final = lazy_pattern(r"[,{]\s*+[\w.\"'-]++\s*+:\s*+\Z")
_SPACE: Final = lazy_pattern(r"\s*+")
_MAX_KEY: Final = 256
_MAX_SPACE: Final = 64
_CLOSERS: Final = {"{": "}", "[": "]"}
_AFTER_STRING: Final = frozenset(",}]:")
_BEFORE_STRING: Final = frozenset("{[,:")
_BESIDE_STRING: Final = frozenset(("", *"{[,:}]"))


class _Tokens(NamedTuple):
    delimiter: str
    """The token on both sides of a string."""
    closers: tuple[str, ...]
    """What may end a call; only the first one is written by a healthy model."""
    result: str


@lru_cache(maxsize=2)
def _marks_of(tokens: _Tokens) -> re.Pattern[str]:
    """Return what finds brackets, quotes and the tokens that matter in an object."""
    either = "|".join(map(re.escape, (tokens.delimiter, *tokens.closers)))
    return re.compile(rf"{either}|[{{}}\[\]\"']")


class _Unreadable(Exception):  # noqa: N818 - a signal, not an error
    """The object is damaged beyond one reading."""


class _Json(NamedTuple):
    """An object as JSON writes it, and where it ends."""

    text: str
    end: int
    receipts: list[Receipt]


def _write_json(source: Source, at: int, tokens: _Tokens) -> _Json | None:
    """Return the object that begins at `at` as JSON; `None` when the text ends inside it."""
    text, here, begun, marks = source.text, at, at, _marks_of(tokens)
    parts: list[str] = []
    closers: list[str] = []
    receipts: list[Receipt] = []
    while mark := marks.search(text, here):
        found, (start, here) = mark.group(), mark.span()
        before = text[max(begun, start - _MAX_SPACE) : start].rstrip()[-1:]
        if found == tokens.delimiter and before in _BESIDE_STRING:
            end, resume = _end_of_string(source, here, tokens, receipts, is_outer=len(closers) == 1)
            parts += (_quote_keys(text[begun:start]), " ", encode_text(text[here:end]))
            begun = here = resume
        elif found in _QUOTES:
            if before not in _BEFORE_STRING:
                continue
            string = _STRING.match(text, start)
            if string is None:
                break
            parts.append(_quote_keys(text[begun : string.end()]))
            begun, rest = _look_behind(source, string.end(), (tokens.delimiter,))
            begun = here = begun + len(tokens.delimiter) * (rest == tokens.delimiter)
        elif found in _CLOSERS and len(closers) < MAX_VALUE_DEPTH:
            closers.append(_CLOSERS[found])
        elif found == closers[-1] or found in tokens.closers:
            missing = ""
            if found == closers[-1]:
                closers.pop()
                if closers:
                    continue
            else:
                missing, here = "".join(reversed(closers)), start
                why = "the object had no closing brace"
                receipts.append(text_receipt("close_object", "", missing, why, lossless=False))
            return _Json(
                f"{''.join(parts)}{_quote_keys(text[begun:here])}{missing}", here, receipts
            )
        else:
            raise _Unreadable
    if not source.final:
        raise NeedMore
    return None


def _end_of_string(
    source: Source, at: int, tokens: _Tokens, receipts: list[Receipt], *, is_outer: bool
) -> tuple[int, int]:
    """Return where the string that begins here ends, and where what follows it begins.

    A delimiter that other text follows is part of the string. Where the second delimiter is
    missing, the string ends with the object, right before what closes the call.
    """
    text, look = source.text, at
    while True:
        found = text.find(tokens.delimiter, look)
        if found < 0 and not source.final:
            raise NeedMore
        limit = len(text) if found < 0 else found
        resume = found + len(tokens.delimiter)
        rest = _look_behind(source, resume, tokens.closers)[1] if found >= 0 else ""
        if rest and (rest[0] in _AFTER_STRING or rest.startswith(tokens.closers)):
            if look > at:
                why = "the string holds what delimits strings"
                receipts.append(
                    text_receipt("nested_quotes", text[at:found], "", why, lossless=False)
                )
            return found, resume
        closed = text.find(tokens.closers[0], look, limit)
        if found < 0 or closed >= 0:
            brace = text.rfind("}", at, closed) if closed >= 0 else -1
            if brace < 0 or not is_outer or text[brace + 1 : closed].strip():
                if limit == len(text):
                    return limit, limit
                raise _Unreadable
            why = "the string had no closing delimiter"
            receipts.append(text_receipt("close_string", text[at:brace], "", why, lossless=False))
            return brace, brace
        if _OPENS_VALUE.search(text[max(at, found - _MAX_KEY) : found]):
            raise _Unreadable  # it opens the next string: this one lost its own
        look = resume


def _look_behind(source: Source, at: int, literals: tuple[str, ...]) -> tuple[int, str]:
    """Return where white space ends, and as much of what follows as one of the literals is long.

    That counts as no question: an object may have thousands of strings.
    """
    space = _SPACE.match(source.text, at)
    here = space.end() if space else at
    longest = max(map(len, literals))
    rest = source.text[here : here + longest]
    may_grow = len(rest) < longest and any(literal.startswith(rest) for literal in literals)
    if may_grow and not source.final:
        raise NeedMore
    return here, rest


def _quote_keys(text: str) -> str:
    """Return a part of an object in which keys have quotes."""
    return _KEY.sub(lambda found: found[1] or f"{found[2]} {encode_text(found[3].strip())}:", text)


_GEMMA_4: Final = _Tokens('<|"|>', ("<tool_call|>", "<turn|>", "<eos>"), "<|tool_response>")
_FUNCTION_GEMMA: Final = _Tokens(
    "<escape>", ("<end_function_call>", "<end_of_turn>"), "<start_function_response>"
)
_OPENERS: Final = {"<|tool_call>": _GEMMA_4, "<start_function_call>": _FUNCTION_GEMMA}
_CALL: Final = "call:"
_TAG: Final = "<call>"


def _read_gemma(source: Source, at: int) -> Found | None:
    """Read one call; a fragment that the text ends in belongs to nobody's text."""
    opener = source.starts_any(_OPENERS, at)
    here = source.skip_space(at + len(opener))
    rest = source.text[here : here + len(_CALL)]
    if source.at_end(here + len(rest)) and _CALL.startswith(rest):
        return Found(end=here + len(rest))
    tokens = _OPENERS[opener]
    if source.char(here) in ("{", "["):
        return read_marked(source, here, opener, Marks(tokens.closers))
    if not source.starts(_CALL, here):
        return None
    return _read_call(source, source.skip_space(here + len(_CALL)), tokens, "marked")


GEMMA: Final = OwnFormat(
    "gemma", "Calls after the tokens of either model.",
    "FunctionGemma, December 2025; Gemma 4, 2026", trims=False, literals=tuple(_OPENERS),
    reads=_read_gemma,
)  # fmt: skip


def _read_bare_gemma(source: Source, at: int) -> Found | None:
    """Read one call, or behind a space all that end the message; names must be known."""
    if source.char(at) != " ":
        return _read_bare(source, at, (_CALL, _TAG))
    return _up_to_end(source, at, _read_bare(source, at, (f" {_CALL}", f" {_TAG}")))


BARE_GEMMA: Final = OwnFormat(
    "gemma", "Calls whose tokens fell apart: `call:NAME{...}` or `<call>NAME{...}`.",
    "Gemma 4 behind servers that drop its tokens, 2026", line_start=True, literals=(_CALL, _TAG),
    reads=_read_bare_gemma,
)  # fmt: skip
BARE_GEMMA_IN_LINE: Final = OwnFormat(
    "gemma", "The same behind words, where nothing but calls follows.",
    "Gemma 4 behind servers that drop its tokens, 2026", literals=(f" {_CALL}", f" {_TAG}"),
    reads=_read_bare_gemma,
)  # fmt: skip


def _read_bare(source: Source, at: int, openers: tuple[str, ...]) -> Found | None:
    opener = source.starts_any(openers, at)
    name, end = source.read_name(at + len(opener))
    if not opener or source.tools.resolve(name) is None or source.char(end) != "{":
        return None
    receipt = text_receipt("restore_token", opener, "<|tool_call>", "the token was missing")
    return _read_call(source, at + len(opener), _GEMMA_4, "damaged", (receipt,))


def _up_to_end(source: Source, at: int, found: Found | None) -> Found | None:
    """Return calls behind words, if they fit their tools and nothing else follows.

    Its delimiters of strings mark them as calls; without one they are bare.
    """
    calls: tuple[TextCall, ...] = ()
    while found is not None and all(_fits(source, call) for call in found.calls):
        calls += found.calls
        end = found.end if found.ends_message else skip_to_end(source, found.end)
        if end is not None:
            has_tokens = _GEMMA_4.delimiter in source.text[at:end]
            return replace(found, end=end, calls=calls, grade="damaged" if has_tokens else "bare")
        found = _read_bare(source, source.skip_space(found.end), (_CALL, _TAG))
    return None


def _fits(source: Source, call: TextCall) -> bool:
    known = source.tools.parameters(call.name)
    arguments: Any = call.arguments
    return not isinstance(arguments, dict) or fits(known, cast("dict[str, Any]", arguments))


def _read_call(
    source: Source,
    at: int,
    tokens: _Tokens,
    grade: Grade,
    receipts: tuple[Receipt, ...] = (),
) -> Found | None:
    name, end = source.read_name(at)
    brace = source.skip_space(end)
    if source.at_end(brace):
        return Found(end=brace, grade=grade)
    if not name or source.char(brace) != "{":
        return None
    try:
        found = _write_json(source, brace, tokens)
    except _Unreadable:
        return _read_damaged(source, name, brace, tokens, grade)
    if found is None:
        text = source.text[brace:]
        call = TextCall(name=name, arguments=text, state="cut", receipts=receipts)
        return Found(end=len(source.text), calls=(call,), grade=grade)
    repaired = repair_json(found.text, ended=True, nested="keep")
    if repaired.state != "whole":
        return _read_damaged(source, name, brace, tokens, grade)
    receipts = (*receipts, *found.receipts, *repaired.receipts)
    call = TextCall(name=name, arguments=repaired.value, doubt=repaired.doubt, receipts=receipts)
    end = _skip_closers(source, found.end, tokens.closers[:1])
    calls = (call,) if end > found.end else note_missing((call,), tokens.closers[0])
    after = source.skip_space(end)
    invented = not source.at_end(after) and source.starts(tokens.result, after)
    return Found(end=end, calls=calls, grade=grade, ends_message=invented)


def _read_damaged(
    source: Source, name: str, brace: int, tokens: _Tokens, grade: Grade
) -> Found | None:
    """Return a call that cannot be read, where its end is certain."""
    if grade != "marked":
        return None
    stop, closer = source.find_any(tokens.closers[:1], brace)
    end = len(source.text) if stop < 0 else stop
    text = source.text[brace:end]
    receipt = text_receipt("keep_damaged", text, None, "the arguments are damaged")
    call = TextCall(
        name=name,
        arguments=text,
        state="cut" if stop < 0 else "unreadable",
        receipts=(receipt,),
    )
    return Found(end=end + len(closer), calls=(call,), grade=grade)


def _skip_closers(source: Source, at: int, closers: tuple[str, ...]) -> int:
    """Return where the text goes on behind the closer, however often it was written."""
    here = source.skip_space(at)
    while not source.at_end(here) and (closer := source.starts_any(closers, here)):
        at = here + len(closer)
        here = source.skip_space(at)
    return at
