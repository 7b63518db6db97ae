"""Gemma: `call:NAME{...}`, whose arguments are objects in a notation of their own."""

import re
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.limits import MAX_VALUE_DEPTH
from surecall.base.records import Receipt
from surecall.calls.fitting import fits
from surecall.calls.formats import Found, Grade, OwnFormat, TextCall, text_receipt
from surecall.calls.json_block import Marks, read_marked
from surecall.calls.leftovers import note_missing, skip_to_end
from surecall.calls.source import NeedMore, Source
from surecall.text import decode

_MAX_RECEIPTS: Final = 16
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_QUOTED: Final = {
    quote: re.compile(rf"{quote}(?:[^{quote}\\]++|\\.)*+{quote}", re.DOTALL) for quote in "\"'"
}
_BARE_END: Final = re.compile(r"[,}\]\n]|<\||<tool_call\||<end_function|<escape>|<turn\||<eos>")
_KEY_END: Final = re.compile(r"[:,{}\[\]\n]")
_NUMBER: Final = re.compile(r"-?+(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?+\d++)?+")
_WORDS: Final = {
    "true": True, "false": False, "null": None, "True": True, "False": False, "None": None,
}  # fmt: skip
_MAX_KEY: Final = 256
_OPENS_VALUE: Final = re.compile(r"[,{]\s*+[\w.\"'-]++\s*+:\s*+\Z")


class GemmaObject(NamedTuple):
    """The object, where it ends, and whether it is complete."""

    value: dict[str, Any] | None
    """`None` when it is cut or cannot be read."""
    end: int
    is_cut: bool
    receipts: tuple[Receipt, ...] = ()


class _Cut(Exception):  # noqa: N818 - a signal, not an error
    """The text ended inside the object."""


class _Unreadable(Exception):  # noqa: N818 - a signal, not an error
    """The object is damaged beyond one reading."""


def read_gemma_object(
    source: Source, at: int, delimiter: str, closers: tuple[str, ...]
) -> GemmaObject:
    """Read the object that begins at `at`.

    Args:
        source: The text.
        at: Where its brace stands.
        delimiter: What stands on both sides of a string.
        closers: What may follow the object, and proves that it ended.
    """
    reader = _Reader(source, at, delimiter, closers)
    try:
        value = reader.read()
    except _Cut:
        if not source.final:
            raise NeedMore from None
        return GemmaObject(None, len(source.text), is_cut=True)
    except _Unreadable:
        return GemmaObject(None, reader.at, is_cut=False)
    return GemmaObject(value, reader.at, is_cut=False, receipts=tuple(reader.receipts))


class _Reader:
    """Reads one object; whatever touches the end of the text is cut, whether more comes or not."""

    def __init__(self, source: Source, at: int, delimiter: str, closers: tuple[str, ...]) -> None:
        self._text = source.text
        self._is_final = source.final
        self._delimiter = delimiter
        self._closers = closers
        self.at = at
        self.receipts: list[Receipt] = []

    def read(self) -> dict[str, Any]:
        root: dict[str, Any] = {}
        self.at += 1
        frames: list[dict[str, Any] | list[Any]] = [root]
        while frames:
            frame = frames[-1]
            if self._closes(frame):
                frames.pop()
                continue
            key = self._read_key() if isinstance(frame, dict) else ""
            if self._peek() in "{[":
                if len(frames) == MAX_VALUE_DEPTH:
                    raise _Unreadable
                inner: dict[str, Any] | list[Any] = {} if self._peek() == "{" else []
                self.at += 1
                frames.append(inner)
                _put(frame, key, inner)
            else:
                _put(frame, key, self._read_scalar(depth=len(frames)))
        return root

    def _after_space(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _peek(self) -> str:
        self.at = self._after_space(self.at)
        if self.at == len(self._text):
            raise _Cut
        return self._text[self.at]

    def _starts(self, literal: str, at: int) -> bool:
        if self._text.startswith(literal, at):
            return True
        if len(self._text) - at < len(literal) and literal.startswith(self._text[at:]):
            raise _Cut
        return False

    def _closes(self, frame: dict[str, Any] | list[Any]) -> bool:
        """Move past a comma, or past the end of the frame."""
        char = self._peek()
        if char == "," and frame:
            self.at += 1
            char = self._peek()
        if char == ("}" if isinstance(frame, dict) else "]"):
            self.at += 1
            return True
        if frame and any(self._starts(closer, self.at) for closer in self._closers):
            self._note("close_object", "", "}", "the object had no closing brace", lossy=True)
            return True
        return False

    def _read_key(self) -> str:
        char = self._peek()
        if self._starts(self._delimiter, self.at):
            key = self._read_delimited(":")
        elif char in "\"'":
            key = self._read_quoted(":")
        else:
            key = self._read_bare_key()
        if self._peek() != ":":
            raise _Unreadable
        self.at += 1
        return key

    def _read_bare_key(self) -> str:
        match = _KEY_END.search(self._text, self.at, self.at + _MAX_KEY)
        if match is None:
            raise _Cut if len(self._text) < self.at + _MAX_KEY else _Unreadable
        key = self._text[self.at : match.start()].strip()
        if not key or match.group() != ":":
            raise _Unreadable
        self.at = match.start()
        return key

    def _read_scalar(self, depth: int) -> Any:
        if self._starts(self._delimiter, self.at):
            return self._read_delimited(",}]", depth)
        if self._peek() in "\"'":
            return self._read_quoted(",}]")
        match = _BARE_END.search(self._text, self.at)
        if match is None:
            raise _Cut
        word = self._text[self.at : match.start()].strip()
        if not word or match.group() == "<escape>":
            raise _Unreadable
        if match.group() == "<|" and self._starts(self._delimiter, match.start()):
            raise _Unreadable
        self.at = match.start()
        if word in _WORDS:
            return _WORDS[word]
        if _NUMBER.fullmatch(word):
            return decode(word)
        self._note("delimit_string", word, word, "the text had no delimiters", lossy=True)
        return word

    def _read_delimited(self, follows: str, depth: int = 0) -> str:
        """Read a string between delimiters; one followed by other text is part of the string."""
        start = look = self.at + len(self._delimiter)
        while True:
            found = self._text.find(self._delimiter, look)
            if found < 0:
                if not self._is_final:
                    raise _Cut
                return self._read_undelimited(start, len(self._text), depth)
            after = self._after_space(found + len(self._delimiter))
            if after == len(self._text):
                raise _Cut
            if self._text[after] in follows or any(
                self._starts(closer, after) for closer in self._closers
            ):
                self.at = found + len(self._delimiter)
                text = self._text[start:found]
                if self._delimiter in text:
                    why = "the string holds what delimits strings"
                    self._note("nested_quotes", text, text, why, lossy=True)
                return text
            if self._text.find(self._closers[0], look, found) >= 0:
                return self._read_undelimited(start, found, depth)
            if _OPENS_VALUE.search(self._text[max(start, found - _MAX_KEY) : found]):
                raise _Unreadable  # it opens the next string: this one lost its own
            look = found + len(self._delimiter)

    def _read_undelimited(self, start: int, before: int, depth: int) -> str:
        """Read a last string whose second delimiter is missing: its call ends right behind it."""
        closed = self._text.find(self._closers[0], start, before)
        brace = self._text.rfind("}", start, closed) if closed >= 0 else -1
        if depth != 1 or brace < 0 or self._text[brace + 1 : closed].strip():
            raise _Cut if before == len(self._text) else _Unreadable
        self.at = brace
        text = self._text[start:brace]
        self._note("close_string", text, text, "the string had no closing delimiter", lossy=True)
        return text

    def _read_quoted(self, follows: str) -> str:
        """Read a string in quotes, as JSON and Python have it."""
        quote = self._text[self.at]
        match = _QUOTED[quote].match(self._text, self.at)
        if match is None:
            raise _Cut
        after = self._after_space(match.end())
        if self._starts(self._delimiter, after):
            after = self._after_space(after + len(self._delimiter))
        if after == len(self._text):
            raise _Cut
        if self._text[after] not in follows:
            raise _Unreadable
        raw = match.group()
        try:
            text = decode(raw if quote == '"' else _as_json(raw[1:-1]))
        except JSONTextError:
            raise _Unreadable from None
        self.at = after
        self._note("delimit_string", raw, text, "the string was in quotes")
        return text

    def _note(self, rule: str, before: str, after: str, why: str, *, lossy: bool = False) -> None:
        if len(self.receipts) < _MAX_RECEIPTS:
            self.receipts.append(text_receipt(rule, before, after, why, lossless=not lossy))


def _put(frame: dict[str, Any] | list[Any], key: str, value: Any) -> None:
    if isinstance(frame, list):
        frame.append(value)
    elif key in frame:
        raise _Unreadable
    else:
        frame[key] = value


def _as_json(text: str) -> str:
    return '"' + text.replace("\\'", "'").replace('"', '\\"') + '"'


class _Tokens(NamedTuple):
    delimiter: str
    closers: tuple[str, ...]
    """What may end a call; only the first one is written by a healthy model."""
    result: str


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
    found = read_gemma_object(source, brace, tokens.delimiter, tokens.closers)
    text = source.text[brace : found.end]
    if found.is_cut:
        call = TextCall(name=name, arguments=text, state="cut", receipts=receipts)
        return Found(end=found.end, calls=(call,), grade=grade)
    if found.value is None:
        return _read_damaged(source, name, brace, tokens, grade)
    call = TextCall(name=name, arguments=found.value, receipts=(*receipts, *found.receipts))
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
