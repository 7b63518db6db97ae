"""What one request of a client leaves behind: who asked what of whom, and what became of it."""

from typing import Literal

from msgspec import Struct

from surecall.records import Defect, Receipt

Outcome = Literal["clean", "repaired", "reasked", "unrepaired", "refused", "relayed", "failed"]
"""What became of a request: `unrepaired` was delivered though a call could not be made right,
`relayed` was not looked at, `failed` got no reply."""


class ProbeNote(Struct, frozen=True, omit_defaults=True):
    """What was known from probing when the request came."""

    ok: bool
    error: str | None = None


class ParseError(Struct, frozen=True):
    """Why a reply could not be read as calls."""

    mode: str
    """How tools were presented: `native` or `taught`."""
    error: str
    snippet: str = ""


class StepNote(Struct, frozen=True):
    """One step of the escalation, and what it came to."""

    name: str
    outcome: str
    """`rescued` when it gave what is delivered; anything else did not help."""
    requests: int = 0


class RequestRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request of a client, from its arrival to its last byte."""

    id: str
    time: float
    """Seconds since 1970 when it arrived."""
    key_id: str = ""
    """Which virtual key it came with; never the key itself."""
    client_protocol: str = ""
    upstream: str = ""
    upstream_protocol: str = ""
    model_asked: str = ""
    model_answered: str = ""
    strategy: str = ""
    """`native` or `taught`."""
    outcome: Outcome = "clean"
    error_code: str = ""
    stream: bool = False
    client_closed: bool = False
    """Whether the client left before its last byte."""
    status: int = 0
    """The HTTP status that the client got."""
    calls: int = 0
    """How many calls were delivered."""
    retries: int = 0
    upstream_requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    request_bytes: int = 0
    """How large the whole body was; what is kept may be less."""
    reply_bytes: int = 0
    upstream_ms: float = 0.0
    added_ms: float = 0.0
    first_byte_ms: float | None = None
    # Up to here, every field is a column of a store, in this order.
    probe: ProbeNote | None = None
    steps: tuple[StepNote, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    defects: tuple[Defect, ...] = ()
    parse_error: ParseError | None = None
    request_body: bytes | None = None
    reply_body: bytes | None = None
