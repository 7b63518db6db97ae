"""What becomes of a reply whose calls could not be made right: decided here and nowhere else.

A client that runs a loop checks every call itself, and its answer helps the model more than an
error that ends the session. So it gets whole calls as the model made them. A call that was cut or
cannot be read is never delivered: a line of text says which tool was not executed, and why.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import Defect, ErrorDetail, Receipt, ToolCall, clip
from surecall.text import decode_plain

from .policy import RefusedCalls
from .verdict import Verdict, is_spared
from .wording import tell_no_call, tell_not_run

TELL_RULE: Final = "tell_call_not_run"
_ONE_CALL: Final = "The request allows one call in a reply."
_NO_CALLS: Final = "The request allows no calls."


class Salvage(Struct, frozen=True):
    """What is delivered of a reply whose calls could not be made right."""

    calls: tuple[ToolCall | None, ...] = ()
    """What is delivered in the place of each call; nothing for those that the note tells of."""
    note: str = ""
    """The lines about calls that are not delivered."""
    defects: tuple[Defect, ...] = ()
    receipts: tuple[Receipt, ...] = ()

    @property
    def delivered(self) -> tuple[ToolCall, ...]:
        """The calls that a client gets."""
        return tuple(call for call in self.calls if call is not None)


def choose_bad(first: Verdict, last: Verdict) -> Verdict:
    """Return the reply that more is delivered of: the first, unless the last has better calls."""
    return max((first, last), key=_count_usable)


def salvage_calls(
    bad: Verdict,
    *,
    way: RefusedCalls,
    has_text: bool,
    one_call: bool = False,
    forbids_calls: bool = False,
) -> Salvage | None:
    """Return what is delivered of a reply with wrong calls; nothing if it is an error.

    Args:
        bad: The reply.
        way: What becomes of wrong calls. For a client that runs no loop, `auto` is an error where
            the reply has nothing else, and otherwise a line of text. Good calls are never lost.
        has_text: Whether the reply has any text besides calls.
        one_call: Whether the client takes one call in a reply only.
        forbids_calls: Whether the client said that no call may be made.
    """
    calls = () if bad.reading is None else bad.reading.calls
    is_text_only = bad.lacks_call and has_text
    has_more = way == "auto" and has_text and not is_text_only
    if way in ("auto", "error") and not (has_more or any(map(is_spared, bad.answers))):
        return None
    kept: list[ToolCall | None] = []
    lines: list[str] = []
    defects: list[Defect] = []
    receipts: list[Receipt] = []
    for position, (call, answer) in enumerate(zip(calls, bad.answers, strict=False)):
        errors = answer.errors
        place = f"/tool_calls/{position}"
        is_good = is_spared(answer) and not forbids_calls
        is_taken = is_good or (way == "deliver" and not forbids_calls and _is_whole(call))
        if is_taken and one_call and any(kept):
            is_taken, errors = False, (ErrorDetail(Code.TOOL_NOT_EXECUTED, _ONE_CALL),)
        elif forbids_calls:
            errors = (ErrorDetail(Code.TOOL_NOT_ALLOWED, _NO_CALLS),)
        if not is_good:
            defects += [Defect(error.code, error.message, place) for error in errors]
        if is_taken:
            kept.append(call if is_good else as_made(call))
            continue
        kept.append(None)
        lines.append(tell_not_run(call.name, errors))
        receipts.append(Receipt(TELL_RULE, place, clip(str(call.raw)), lines[-1], lossless=False))
    if bad.notice and not is_text_only:
        lines.append(tell_no_call(bad.notice))
    return Salvage(tuple(kept), "\n".join(lines), tuple(defects), tuple(receipts))


def _count_usable(bad: Verdict) -> tuple[int, int]:
    calls = () if bad.reading is None else bad.reading.calls
    good = sum(map(is_spared, bad.answers))
    return good, good + sum(map(_is_whole, calls))


def _is_whole(call: ToolCall) -> bool:
    """Tell whether nothing of a call is missing, whatever is wrong with it."""
    return (
        bool(call.name)
        and call.arguments is not None
        and (call.state, call.certainty) == ("whole", "certain")
        and all(error.code == Code.ARGUMENTS_INVALID for error in call.errors)
    )


def as_made(call: ToolCall) -> ToolCall:
    """Return a call with the arguments that the model gave, as far as these can be read."""
    made = decode_plain(call.raw) if isinstance(call.raw, str) else call.raw
    return replace(call, arguments=made, receipts=()) if isinstance(made, dict) else call
