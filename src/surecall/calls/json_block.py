"""JSON that stands between markers: where it ends, and the calls it holds."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple

from msgspec import Struct

from surecall.base.records import CallState, Receipt
from surecall.text import decode_plain, repair_json

from .formats import Found, Grade, TextCall, add_receipts, text_receipt
from .json_shapes import calls_of_value, read_json_calls
from .json_spans import find_extent
from .leftovers import note_leftovers
from .source import Source

_FENCES: Final = ("```", "~~~")
_MAX_WORD: Final = 40
_MAX_STRICT: Final = 16_384
_FENCE_MARKS: Final = frozenset("`~")
_AFTER_BRACE: Final = frozenset("\"'{}“‘/#")
_AFTER_BRACKET: Final = frozenset("\"'{}[]“‘/#")


class Payload(NamedTuple):
    """One JSON value as it was written."""

    text: str
    end: int
    state: CallState
    value: Any = None
    """What the text says, where it is strict JSON without a doubt."""


class Block(NamedTuple):
    """The calls of JSON values in a row."""

    calls: tuple[TextCall, ...]
    end: int
    cut: bool
    """Whether the text ended inside it."""


def read_payload(source: Source, at: int, stops: Collection[str]) -> Payload | None:
    """Read the object or array that begins here; `None` when none does, or it never ends.

    The payload is `whole` when its last bracket is there, or a stop follows it.
    """
    if not _begins_json(source, at):
        return None
    if (quick := _read_strict(source, at, stops)) is not None:
        return quick
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


def _read_strict(source: Source, at: int, stops: Collection[str]) -> Payload | None:
    """Return strict JSON that a stop follows, which most payloads are: one look at each sign."""
    end, _ = source.find_any(stops, at) if stops and source.final else (-1, "")
    if end < 0 or end - at > _MAX_STRICT or source.text[at] != "{":
        return None
    written = source.text[at:end].rstrip()
    value = decode_plain(written)
    return None if value is None else Payload(written, at + len(written), "whole", value)


def read_block(source: Source, at: int, stops: Collection[str]) -> Block | None:
    """Read JSON values in a row, perhaps in a code fence; `None` when there are no calls.

    An empty array, and text that ended before any name was there, are a block without calls.
    """
    fence, here = "", source.skip_space(at)
    if source.char(here) in _FENCE_MARKS:
        fence, here = skip_fence(source, here)
        if not fence and close_block(source, here, _FENCES)[1]:
            return Block((), len(source.text), cut=True)
    calls: list[TextCall] = []
    is_empty = False
    begun = here
    payload = read_payload(source, here, stops)
    while payload is not None:
        ended = payload.state == "whole"
        begun = payload.end - len(payload.text)
        if payload.value is None:
            found = read_json_calls(
                payload.text, ended=ended, tools=source.tools, spend=source.spend_on_marks
            )
        else:
            found = calls_of_value(payload.value, tools=source.tools)
        if not ended:
            return Block((*calls, *_unclosed(found)), payload.end, cut=True)
        if not found and calls:
            break
        is_empty = payload.text[1:-1].isspace() or len(payload.text) == 2
        calls.extend(found)
        here = payload.end
        beyond = source.skip_space(here)
        if source.char(beyond) in (",", ";"):
            beyond = source.skip_space(beyond + 1)
        payload = read_payload(source, beyond, stops)
    if not calls and not is_empty:
        return None
    rest = skip_brackets(source, here)
    noted = tuple(calls)
    if rest > here:
        noted = note_leftovers(noted, source.text[begun:here], source.text[here:rest].strip())
    if fence:
        rest, _ = close_block(source, rest, (fence,))
        noted = add_receipts(
            noted, text_receipt("strip_code_fence", fence, "", "it was inside the markers")
        )
    return Block(noted, rest, cut=False)


def _unclosed(calls: Iterable[TextCall]) -> Iterator[TextCall]:
    """Yield calls of JSON that was cut: those that were complete until then stay whole."""
    note = text_receipt("missing_brackets", "", "]", "the text ended after the call itself")
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


def skip_fence(source: Source, at: int) -> tuple[str, int]:
    """Return the code fence that stands here, if any, and where what it holds begins."""
    fence, here = source.starts_any(_FENCES, at), at
    while fence and here - at < _MAX_WORD and source.char(here) not in ("\n", "{", "[", ""):
        here += 1
    return fence, source.skip_space(here)


def skip_brackets(source: Source, at: int) -> int:
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


TURN_ENDS: Final = (
    "<|end_of_text|>", "<|endoftext|>", "<|end|>", "<|im_end|>", "<|eot_id|>", "</s>",
)  # fmt: skip
RESULTS: Final = (
    "<|tool_response|>", "<tool_response>", "<tool_result>", "<tool_results>",
    "<function_response>", "<function_result>", "<TOOL_RESPONSE>",
    "<|start_of_role|>tool_response", "<|start_of_role|>tool",
    "<|message_sep|>\n\nfunction result<|role_sep|>", "<|START_TOOL_RESULT|>", "[TOOL_RESULTS]",
)  # fmt: skip
"""What a model writes when it makes up the result of its own call."""


class Marks(Struct, frozen=True):
    """What stands around JSON."""

    closers: tuple[str, ...] = ()
    closes: bool = True
    """Whether models that write the opener end it with the first of the closers."""
    grade: Grade = "marked"


def read_marked(source: Source, at: int, opener: str, marks: Marks) -> Found | None:
    """Read the calls in JSON behind an opener that ends at `at`."""
    here = source.skip_space(at)
    if source.at_end(here):
        return Found(end=here) if marks.grade == "marked" else None
    block = read_block(source, here, (opener, *marks.closers, *TURN_ENDS, *RESULTS))
    return None if block is None else end_block(source, block, opener, marks)


def end_block(source: Source, block: Block, opener: str, marks: Marks) -> Found | None:
    """Return the calls of a block with what ends it; `None` when it holds something else, too."""
    if block.cut:
        is_call = block.calls or marks.grade == "marked"
        return Found(end=block.end, calls=block.calls, grade=marks.grade) if is_call else None
    end, notes = _skip_closer(source, block.end, opener, marks)
    if marks.grade == "damaged" and not (
        block.calls and (not notes or source.at_end(source.skip_space(end)))
    ):
        return None
    if source.at_end(source.skip_space(end)):
        calls = add_receipts(block.calls, *notes)
        return Found(end=end, calls=calls, grade=marks.grade)
    end, echo = _skip_echo(source, end, opener, marks, block.calls)
    end, strays = _skip_strays(source, end, marks)
    calls = add_receipts(block.calls, *notes, *echo, *strays)
    has_result = bool(calls and source.starts_any(RESULTS, source.skip_space(end)))
    return Found(end=end, calls=calls, grade=marks.grade, ends_message=has_result)


def _skip_closer(
    source: Source, at: int, opener: str, marks: Marks
) -> tuple[int, tuple[Receipt, ...]]:
    """Return where the closer ends, and what had to be read as one."""
    end, closer = close_block(source, at, marks.closers)
    if not marks.closes or closer in marks.closers:
        return end, ()
    here = source.skip_space(at)
    if source.starts(opener, here):
        # The opener again: in place of the closer, unless another call follows it.
        beyond = source.skip_space(here + len(opener))
        if source.char(beyond) not in ("{", "[", "`"):
            why = "the opener was where the closer belongs"
            note = text_receipt("repeated_opener", opener, marks.closers[0], why)
            return here + len(opener), (note,)
    why = "the call itself is complete"
    return end, (text_receipt("missing_closer", closer, marks.closers[0], why),)


def _skip_echo(
    source: Source, at: int, opener: str, marks: Marks, calls: tuple[TextCall, ...]
) -> tuple[int, tuple[Receipt, ...]]:
    """Return where a repetition of the calls ends that has a closer and no opener."""
    here = source.skip_space(at)
    if not calls or not marks.closers or source.char(here) not in ("{", "["):
        return at, ()
    block = read_block(source, here, (opener, *marks.closers, *RESULTS))
    if block is None or block.cut or list(map(said_by, block.calls)) != list(map(said_by, calls)):
        return at, ()
    end, closer = close_block(source, block.end, marks.closers)
    if closer not in marks.closers:
        return at, ()
    return end, (
        text_receipt("drop_echo", source.text[here:end], "", "the calls were written twice"),
    )


def said_by(call: TextCall) -> tuple[str, Any]:
    """Return what a call says, to tell a repetition from another call."""
    return call.name, call.arguments


def _skip_strays(source: Source, at: int, marks: Marks) -> tuple[int, tuple[Receipt, ...]]:
    """Return where closers end that follow the one which closed the calls."""
    end = at
    while closer := source.starts_any(marks.closers, here := source.skip_space(end)):
        end = here + len(closer)
    if end == at:
        return at, ()
    return end, (
        text_receipt("stray_closing_tag", source.text[at:end], "", "the calls are closed"),
    )


def read_object(source: Source, name: str, at: int) -> tuple[TextCall, int]:
    """Read the object that begins here as the arguments of a call, and return where it ends."""
    end = source.value_end(at)
    if end is None:
        return TextCall(name=name, arguments=source.text[at:], state="cut"), len(source.text)
    return TextCall(name=name, arguments=source.text[at:end]), end
