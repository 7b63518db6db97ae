"""JSON that stands between markers: where it ends, and the calls it holds."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from surecall.base.records import CallState, Receipt, clip
from surecall.text import repair_json

from .endings import note_leftovers
from .formats import Found, TextCall, add_receipts
from .json_spans import find_extent
from .shapes import read_json_calls
from .source import Source

_FENCES: Final = ("```", "~~~")
_AFTER_BRACE: Final = frozenset("\"'{}“‘/#")
_AFTER_BRACKET: Final = frozenset("\"'{}[]“‘/#")


class Payload(NamedTuple):
    """One JSON value as it was written."""

    text: str
    end: int
    state: CallState


class Block(NamedTuple):
    """The calls of JSON values in a row."""

    calls: tuple[TextCall, ...]
    end: int
    cut: bool
    """Whether the text ended inside it."""


def receipt(rule: str, before: str, after: str, why: str) -> Receipt:
    """Return a receipt for something about the text around a call."""
    return Receipt(rule, "text", clip(before), clip(after), why=why)


def read_payload(source: Source, at: int, stops: Collection[str]) -> Payload | None:
    """Read the object or array that begins here; `None` when none does, or it never ends.

    The payload is `whole` when its last bracket is there, or a stop follows it.
    """
    if not _begins_json(source, at):
        return None
    extent = find_extent(source, at, stops)
    if extent.end == at:
        return None
    if extent.first_stop >= 0:
        text = source.text[at : extent.first_stop]
        if repair_json(text, ended=False).state == "whole":
            return Payload(text, extent.first_stop, "whole")
        if extent.by == "doubt":
            return None
    text = source.text[at : extent.end]
    return Payload(text, extent.end, "cut" if extent.by == "text" else "whole")


def read_block(source: Source, at: int, stops: Collection[str]) -> Block | None:
    """Read JSON values in a row, perhaps in a code fence; `None` when there are no calls.

    An empty array, and text that ended before any name was there, are a block without calls.
    """
    fence, here = _skip_fence(source, source.skip_space(at))
    if not fence and close_block(source, here, _FENCES)[1]:
        return Block((), len(source.text), cut=True)
    calls: list[TextCall] = []
    is_empty = False
    begun = here
    payload = read_payload(source, here, stops)
    while payload is not None:
        ended = payload.state == "whole"
        begun = payload.end - len(payload.text)
        found = read_json_calls(
            payload.text, ended=ended, tools=source.tools, spend=source.spend_on_marks
        )
        if not ended:
            return Block((*calls, *_unclosed(found)), payload.end, cut=True)
        if not found and calls:
            break
        is_empty = payload.text[1:-1].strip() == ""
        calls.extend(found)
        here = payload.end
        beyond = source.skip_space(here)
        if source.char(beyond) in (",", ";"):
            beyond = source.skip_space(beyond + 1)
        payload = read_payload(source, beyond, stops)
    if not calls and not is_empty:
        return None
    rest = _skip_brackets(source, here)
    noted = note_leftovers(tuple(calls), source.text[begun:here], source.text[here:rest].strip())
    if fence:
        rest, _ = close_block(source, rest, (fence,))
        noted = add_receipts(
            noted, receipt("strip_code_fence", fence, "", "it was inside the markers")
        )
    return Block(noted, rest, cut=False)


def _unclosed(calls: Iterable[TextCall]) -> Iterator[TextCall]:
    """Yield calls of JSON that was cut: those that were complete until then stay whole."""
    note = receipt("missing_brackets", "", "]", "the text ended after the call itself")
    for call in calls:
        yield from (call,) if call.state == "cut" else add_receipts((call,), note)


def close_block(source: Source, at: int, closers: Collection[str]) -> tuple[int, str]:
    """Return where the closer that stands here ends and which it is; `at` when none does."""
    here = source.skip_space(at)
    closer = source.starts_any(closers, here)
    if closer:
        return here + len(closer), closer
    if tail := source.begun_at_end(closers, here):
        return len(source.text), tail
    return at, ""


def _begins_json(source: Source, at: int) -> bool:
    """Tell whether what stands here can only be JSON, without looking far."""
    first = source.char(at)
    if first not in ("{", "["):
        return False
    second = source.char(source.skip_space(at + 1))
    if not second:
        return True
    if first == "[":
        return second in _AFTER_BRACKET
    return second in _AFTER_BRACE or second == "_" or second.isalpha()


def _skip_fence(source: Source, at: int) -> tuple[str, int]:
    fence = source.starts_any(_FENCES, at)
    if not fence:
        return "", at
    _, here = source.read_name(at + len(fence))
    return fence, source.skip_space(here)


def _skip_brackets(source: Source, at: int) -> int:
    """Return where brackets that nothing opened are over."""
    here = source.skip_space(at)
    while source.char(here) in ("}", "]"):
        at = here + 1
        here = source.skip_space(at)
    return at


def read_arguments_text(source: Source, at: int, stops: Collection[str]) -> Payload:
    """Read the arguments that begin here: JSON, or whatever stands before a stop in its place."""
    here = source.skip_space(at)
    payload = read_payload(source, here, stops)
    if payload is not None:
        return payload
    end, _ = source.find_any(stops, here)
    if end < 0:
        return Payload(source.text[here:], len(source.text), "cut")
    return Payload(source.text[here:end].strip(), end, "whole")


_TURN_ENDS: Final = (
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end|>",
    "<|im_end|>",
    "<|eot_id|>",
    "</s>",
)

_RESULTS: Final = (
    "<|tool_response|>",
    "<tool_response>",
    "<|start_of_role|>tool_response",
    "<|start_of_role|>tool",
    "<|message_sep|>\n\nfunction result<|role_sep|>",
    "<|START_TOOL_RESULT|>",
)


def read_after_token(
    source: Source, at: int, opener: str, closers: tuple[str, ...], *, closes: bool
) -> Found | None:
    """Read the calls in JSON that begins here.

    Args:
        source: The text.
        at: Where the JSON begins.
        opener: The token before it.
        closers: What may end it.
        closes: Whether models that write the token end it with the first closer.
    """
    here = source.skip_space(at)
    if source.at_end(here):
        return Found(end=here)
    block = read_block(source, here, (opener, *closers, *_TURN_ENDS, *_RESULTS))
    if block is None:
        return None
    if block.cut:
        return Found(end=block.end, calls=block.calls)
    end, closer = close_block(source, block.end, closers)
    calls = block.calls
    if closes and closer not in closers:
        why = "the call itself is complete"
        calls = add_receipts(calls, receipt("missing_closer", closer, closers[0], why))
    has_result = bool(calls and source.starts_any(_RESULTS, source.skip_space(end)))
    return Found(end=end, calls=calls, ends_message=has_result)
