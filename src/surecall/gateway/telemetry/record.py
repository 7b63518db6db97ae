"""What one request of a client leaves behind: who asked what of whom, and what became of it."""

import math
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from surecall.base.records import Defect, Receipt

MAX_COUNT: Final = 2**53 - 1
"""The largest count or time of a record: every database, JSON reader and sum takes it."""

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


class AttemptNote(Struct, frozen=True, omit_defaults=True):
    """One attempt to have a request answered by an upstream."""

    upstream: str
    model: str
    outcome: Literal["answered", "failed", "skipped"] = "answered"
    """`skipped` was not asked: it only fails at the moment, or has no room."""
    error: str = ""
    """The code of what went wrong."""
    ms: float = 0.0


class RequestRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request of a client, from its arrival to its last byte.

    Whatever an upstream reported, the numbers are between 0 and `MAX_COUNT`:

        RequestRecord(id="a", time=0.0, prompt_tokens=-5).prompt_tokens  # 0
    """

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
    prompt: str = ""
    """The name that the client gave its prompt, or a short hash of system text and tools."""
    observed: str = ""
    """What would have become of a reply that was passed on untouched and only looked at."""
    outcome: Outcome = "clean"
    error_code: str = ""
    stream: bool = False
    client_closed: bool = False
    """Whether the client left before its last byte."""
    status: int = 0
    """The HTTP status that the client got."""
    tools: int = 0
    """How many tools the model could call."""
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
    attempts: tuple[AttemptNote, ...] = ()
    """Every attempt in order; none where the only one was answered."""
    request_body: bytes | None = None
    reply_body: bytes | None = None

    def __post_init__(self) -> None:
        asked, given = self.prompt_tokens, self.completion_tokens
        try:
            counts = asked | given | self.calls | self.status | self.retries
            counts |= self.upstream_requests | self.request_bytes | self.reply_bytes | self.tools
            if (
                0 <= counts <= MAX_COUNT
                and type(asked) is type(given) is int
                and 0.0 <= self.time <= MAX_COUNT
                and 0.0 <= self.upstream_ms <= MAX_COUNT
                and 0.0 <= self.added_ms <= MAX_COUNT
                and (self.first_byte_ms is None or 0.0 <= self.first_byte_ms <= MAX_COUNT)
            ):
                return
        except TypeError:  # not even numbers
            pass
        for name in _COUNTS:
            force_setattr(self, name, int(_bound(getattr(self, name))))
        for name in _TIMES:
            value = getattr(self, name)
            if value is not None or name != "first_byte_ms":
                force_setattr(self, name, float(_bound(value)))


_COUNTS: Final = (
    *("status", "tools", "calls", "retries", "upstream_requests"),
    *("prompt_tokens", "completion_tokens", "request_bytes", "reply_bytes"),
)
_TIMES: Final = ("time", "upstream_ms", "added_ms", "first_byte_ms")


def _bound(value: Any) -> int | float:
    """Return a number within bounds; whatever is no number counts as nothing."""
    if type(value) not in (int, float) or (isinstance(value, float) and not math.isfinite(value)):
        return 0
    return min(max(value, 0), MAX_COUNT)
