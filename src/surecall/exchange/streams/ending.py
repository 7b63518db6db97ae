"""How a stream ends, and what its end says about it."""

from typing import Any

from msgspec import Struct

from surecall.base.errors import SurecallError
from surecall.base.records import Defect, Receipt, Usage
from surecall.exchange.policy import REPORT_MEMBER, Outcome, ParseError, Step
from surecall.exchange.request import add_members
from surecall.text import encode_text, render_comment
from surecall.wire import WireProtocol


class Ending(Struct, frozen=True, kw_only=True):
    """How a stream ends, or what has to be asked before it can."""

    data: bytes = b""
    """What is sent last: calls, finish, usage and the comment; or the error."""
    ask: bytes | None = None
    """A request to send to the endpoint. Its answer, streamed or whole, is fed to the same relay,
    and `finish` says again how the stream ends."""
    outcome: Outcome = "clean"
    receipts: tuple[Receipt, ...] = ()
    defects: tuple[Defect, ...] = ()
    steps: tuple[Step, ...] = ()
    parse_error: ParseError | None = None
    upstream_requests: int = 1
    usage: Usage | None = None
    """The tokens of all requests together."""
    model_answered: str | None = None
    error: SurecallError | None = None
    """Why there is no whole reply, when there is none."""
    is_reply: bool = False
    """Whether the endpoint says so in a valid reply, which is sent as it is."""
    error_body: bytes | None = None
    """The endpoint's own words for it, where they are in the client's format, for an answer that is
    an error: as long as nothing was sent."""
    error_status: int | None = None
    """The status of such an answer, where the endpoint names one."""
    calls: int = 0
    """How many calls were delivered."""


def note_outcome(
    data: bytes,
    protocol: WireProtocol,
    outcome: Outcome,
    receipts: int,
    request_id: str,
    report: dict[str, Any] | None = None,
) -> bytes:
    """Return the end of a stream that says what was done, where no client trips over it.

    Args:
        data: The end.
        protocol: The wire format of the client. Where clients do not know comments, the report is
            a member of the last event.
        outcome: What became of the request.
        receipts: How many things were changed.
        request_id: What the request is known by.
        report: What was done, if the client wants to know.
    """
    if protocol.traits.takes_comments:
        comment = f"surecall outcome={outcome} receipts={receipts}"
        data += render_comment(f"{comment} request={request_id}" if request_id else comment)
        if report is not None:
            data += render_comment(f"{REPORT_MEMBER} {encode_text(report)}")
        return data
    start = data.rfind(b"data: ")
    if report is None or start < 0:
        return data
    event = add_members(data[start + 6 :].strip(), {REPORT_MEMBER: report})
    return data[: start + 6] + event + b"\n\n"
