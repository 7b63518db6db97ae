"""What a reply is worth: what can be delivered of it, or why nothing can.

A client that runs a loop checks every call itself, and its answer helps the model more than an
error that ends the session. So it gets whole calls as the model made them. A call that was cut or
cannot be read is never delivered: a line of text says which tool was not executed, and why.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError, ProviderError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import (
    Defect,
    Envelope,
    ErrorDetail,
    RawCall,
    Reading,
    Receipt,
    Reply,
    ToolCall,
    Usage,
    clip,
)
from surecall.text import decode, decode_plain, encode, encode_text, render_comment
from surecall.wire import WireProtocol
from surecall.wire.rewriting import Plan, join_note, note_finish

from .ladder import is_whole
from .policy import REPORT_MEMBER, Ending, Outcome, ParseError, RefusedCalls, Sent
from .request import CompiledTools, add_members
from .wording import explain_not_run, tell_no_call, tell_not_run

CHOICE_RULE: Final = "drop_choice"


class StreamEnd(Struct, kw_only=True):
    """The contents of a stream that came to its end."""

    reading: Reading | None = None
    """What was read; `None` when nothing about it has to change."""
    reply: Reply | None = None
    data: bytes = b""
    """The end as it came."""
    is_usual: bool = False
    """Whether clients understand the calls in it, if nothing about them has to change."""
    outcome: Outcome = "clean"
    calls: int = 0
    """How many calls are delivered as they came."""
    text: str | None = None
    """What comes in the place of held text; `None` leaves it as it is."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What a reply is worth."""

    body: bytes | None = None
    """The document for the client; `None` when the reply cannot be delivered."""
    changed: bool = False
    receipts: tuple[Receipt, ...] = ()
    defects: tuple[Defect, ...] = ()
    usage: Usage | None = None
    model: str | None = None
    calls: int = 0
    reply: Reply | None = None
    reading: Reading | None = None
    answers: tuple[Envelope, ...] = ()
    """What the model is to read about each of its calls, when some cannot be used."""
    notice: str = ""
    """Why a reply without calls cannot be delivered, in words that the model reads."""
    lacks_call: bool = False
    """Whether that is because it has no call, and one is demanded."""
    is_in_text: bool = False
    """Whether such a call may be anywhere in the text of a model that was taught to call tools."""
    is_empty: bool = False
    """Whether the model said nothing although an answer was due."""
    is_text: bool = False
    """Whether it is text that only may be a call: it may as well be an answer."""
    is_left: bool = False
    """Whether it goes on as it came, though some of it is doubtful."""
    fallback: bytes | None = None
    """The document of a reply that says nothing, or whose text only may be a call, for when asking
    does not help: neither is wrong."""
    document: dict[str, Any] | None = None
    """The reply that cannot be delivered as it is, decoded, when it is in the client's format."""
    error: ProviderError | None = None
    """Why there is no reply at all."""
    error_body: bytes | None = None
    """The endpoint's own words for it, where they are in the client's format."""
    parse_error: ParseError | None = None
    echoes: bool = False
    choices: "Choices | None" = None
    """Of several replies that were asked for, those that can be used, when some cannot."""

    @property
    def is_wrong(self) -> bool:
        """Whether the model has to be asked for something better."""
        return bool(self.answers or self.notice or self.is_empty)

    @property
    def is_usual(self) -> bool:
        """Whether the calls can be delivered as they came."""
        return self.calls > 0 and not (self.is_wrong or self.receipts or self.is_left)

    @property
    def errors(self) -> tuple[ErrorDetail, ...]:
        """What is wrong with the calls."""
        return tuple(error for answer in self.answers for error in answer.errors)

    @property
    def stuck_tools(self) -> tuple[str, ...]:
        """The offered tools whose calls could not be used."""
        calls = () if self.reading is None else self.reading.calls
        pairs = zip(calls, self.answers, strict=False)
        wrong = [call.name for call, answer in pairs if answer.errors and not is_spared(answer)]
        return tuple(dict.fromkeys(wrong))


class Choices(Struct, frozen=True):
    """Several replies at once, of which some cannot be used."""

    document: dict[str, Any]
    key: str
    """The member of the document that holds them."""
    usable: dict[int, Verdict]
    """By their positions; each with a document of its own."""
    missing: dict[int, Verdict]
    """The others."""

    def take(self, position: int, verdict: Verdict) -> "Choices":
        """Return the same with a reply in the place of one that could not be used."""
        missing = {key: bad for key, bad in self.missing.items() if key != position}
        return replace(self, usable={**self.usable, position: verdict}, missing=missing)

    def join(self) -> Verdict:
        """Return all that can be used as one reply; what is missing leaves a receipt."""
        found: list[Any] = []
        receipts: list[Receipt] = []
        for position, verdict in sorted(self.usable.items()):
            document = as_fields(decode(verdict.body or b"{}", surrogates="replace"))
            entry = as_fields(as_list(document.get(self.key))[0])
            found.append({**entry, "index": position})
            receipts += verdict.receipts
        why = "it cannot be used, and asking again did not help"
        receipts += [
            Receipt(CHOICE_RULE, f"/{self.key}/{position}", None, None, lossless=False, why=why)
            for position in self.missing
        ]
        first = next(iter(self.usable.values()))
        return replace(
            first,
            body=encode({**self.document, self.key: found}),
            changed=True,
            receipts=tuple(receipts),
            calls=sum(verdict.calls for verdict in self.usable.values()),
            choices=None,
        )


def is_spared(answer: Envelope) -> bool:
    """Tell whether a call was only not used because of another one of the same reply."""
    return answer.errors == explain_not_run(answer.tool_name).errors


TELL_RULE: Final = "tell_call_not_run"
_ONE_CALL: Final = "The request allows one call in a reply."
_NO_CALLS: Final = "The request allows no calls."


class Salvage(Struct, frozen=True):
    """What is delivered of a reply whose calls could not be made right."""

    calls: tuple[ToolCall | None, ...] = ()
    """The call delivered instead of each one; nothing where the note names it."""
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
        is_taken = is_good or (way == "deliver" and not forbids_calls and is_whole(call))
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
    return good, good + sum(map(is_whole, calls))


def as_made(call: ToolCall) -> ToolCall:
    """Return a call with the arguments that the model gave, as far as these can be read."""
    made = decode_plain(call.raw) if isinstance(call.raw, str) else call.raw
    return replace(call, arguments=made, receipts=()) if isinstance(made, dict) else call


def make_plan(reading: Reading, tools: CompiledTools, salvage: Salvage | None = None) -> Plan:
    """Return what the calls and the text of a document become.

    Args:
        reading: The reply as it was read.
        tools: The tools of the request; calls of those that are not functions stay as they are.
        salvage: What is delivered of it, where that is not all that was read.
    """
    calls, note = (reading.calls, "") if salvage is None else (salvage.calls, salvage.note)
    return Plan(calls, reading, note, tools.is_other, tools.is_legacy)


def fit_call_ids(reply: Reply, fit_id: Callable[[str], str]) -> Reply:
    """Return a reply whose calls have the ids that the client gets to see.

    They are compared with the calls of the conversation: a client must not see one of them twice.
    """
    calls = (
        replace(call, id=fit_id(call.id)) if isinstance(call.id, str) and call.id.strip() else call
        for call in reply.calls
    )
    return replace(reply, calls=tuple(calls))


def reply_with(reply: Reply, reading: Reading, salvage: Salvage | None = None) -> Reply:
    """Return a reply with the calls that were read in it, or with what is delivered of these."""
    calls, finish, content = reading.calls, reply.finish_reason, reading.content
    if salvage is not None:
        calls, finish = salvage.delivered, "stop"
        content = join_note(content, salvage.note)
    return replace(
        reply,
        calls=tuple(
            RawCall(call.id, call.name, encode_text(call.arguments), "tool_calls", call.extra)
            for call in calls
        ),
        content=content or None,
        reasoning=reading.reasoning,
        finish_reason="tool_calls" if calls else finish,
        is_refusal=reply.is_refusal and not calls,
    )


def says_calls(reply: Reply) -> bool:
    """Tell whether a reply says that it ended with calls."""
    return reply.finish_reason in ("tool_calls", "function_call")


def note_stop(before: Any) -> Receipt:
    """Return the receipt for a reply that said that it ended with calls, and has none."""
    return note_finish(before, "stop", "/finish_reason", has_calls=False)[0]


def own_error(sent: Sent) -> bytes | None:
    """Return the body of an error that clients of the format can read as it is."""
    if sent.status < 400 or sent.body[:1] != b"{":
        return None
    try:
        return sent.body if as_fields(decode(sent.body)).get("error") else None
    except JSONTextError:
        return None


def note_outcome(ending: Ending, protocol: WireProtocol, request_id: str, *, shows: bool) -> Ending:
    """Return the end of a stream that says what was done, where no client trips over it.

    Args:
        ending: The end.
        protocol: The wire format of the client. Where clients do not know comments, the report is
            a member of the last event.
        request_id: What the request is known by.
        shows: Whether the client wants to know what was done.
    """
    data = ending.data
    if protocol.traits.takes_comments:
        comment = f"surecall outcome={ending.outcome} receipts={len(ending.receipts)}"
        data += render_comment(f"{comment} request={request_id}" if request_id else comment)
        if shows:
            data += render_comment(f"{REPORT_MEMBER} {encode_text(ending.describe())}")
    elif shows and (start := data.rfind(b"data: ") + 6) > 5:
        event = add_members(data[start:].strip(), {REPORT_MEMBER: ending.describe()})
        data = data[:start] + event + b"\n\n"
    return replace(ending, data=data)
