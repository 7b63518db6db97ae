"""FunctionGemma and Gemma 4: `call:NAME{...}` between tokens."""

from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from surecall.records import Receipt, clip

from .base import CallFormat, Found, Grade, TextCall
from .endings import note_missing, skip_to_end
from .fitting import fits
from .gemma_objects import read_gemma_object
from .source import Source
from .token_json import read_after_token

__all__ = ["BareGemma", "Gemma"]


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


class Gemma(CallFormat):
    """Calls behind the tokens of either model."""

    name = "gemma"
    trims = False
    literals = tuple(_OPENERS)

    def read(self, source: Source, at: int) -> Found | None:
        """Read one call; a fragment that the text ends in belongs to nobody's text."""
        opener = source.starts_any(_OPENERS, at)
        here = source.skip_space(at + len(opener))
        rest = source.text[here : here + len(_CALL)]
        if source.at_end(here + len(rest)) and _CALL.startswith(rest):
            return Found(end=here + len(rest))
        tokens = _OPENERS[opener]
        if source.char(here) in ("{", "["):
            return read_after_token(source, here, opener, tokens.closers, closes=True)
        if not source.starts(_CALL, here):
            return None
        return _read_call(source, source.skip_space(here + len(_CALL)), tokens, "marked")


class BareGemma(CallFormat):
    """Calls whose tokens fell apart: `call:NAME{...}` or `<call>NAME{...}`.

    Args:
        line_start: Whether to read calls that begin a line, or else those behind a space.
    """

    name = "gemma"

    def __init__(self, *, line_start: bool = True) -> None:
        self.line_start = line_start
        self.literals = (_CALL, _TAG) if line_start else (f" {_CALL}", f" {_TAG}")

    def read(self, source: Source, at: int) -> Found | None:
        """Read one call, or behind a space all that end the message; names must be known."""
        found = _read_bare(source, at, self.literals)
        return found if found is None or self.line_start else _up_to_end(source, found)


def _read_bare(source: Source, at: int, openers: tuple[str, ...]) -> Found | None:
    opener = source.starts_any(openers, at)
    name, end = source.read_name(at + len(opener))
    if not opener or source.tools.resolve(name) is None or source.char(end) != "{":
        return None
    receipt = Receipt("restore_token", "text", opener, "<|tool_call>", why="the token was missing")
    return _read_call(source, at + len(opener), _GEMMA_4, "damaged", (receipt,))


def _up_to_end(source: Source, found: Found | None) -> Found | None:
    """Return calls behind words, if they fit their tools and nothing else follows."""
    calls: tuple[TextCall, ...] = ()
    while found is not None and all(_fits(source, call) for call in found.calls):
        calls += found.calls
        end = found.end if found.ends_message else skip_to_end(source, found.end)
        if end is not None:
            return replace(found, end=end, calls=calls, grade="bare")
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
    receipt = Receipt("keep_damaged", "text", clip(text), None, why="the arguments are damaged")
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
