"""Replies for the client: with the ids that it sees, and with the calls that were read."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields
from surecall.base.records import RawCall, Reading, Receipt, Reply
from surecall.text import decode, encode_text, render_comment
from surecall.wire import WireProtocol
from surecall.wire.bodies import Plan, join_note, note_finish

from .policy import REPORT_MEMBER, Ending, Sent
from .refusals import Salvage
from .request import CompiledTools, add_members


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

    They are compared with those of the conversation: a client must not see one of them twice.
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
