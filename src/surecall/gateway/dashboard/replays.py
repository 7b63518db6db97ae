"""A kept request sent once more, on the same way that clients take."""

from typing import Any, Final

from surecall.base.errors import Code, ProviderStatusError
from surecall.base.redaction import MASK
from surecall.gateway.core import Core, State
from surecall.gateway.heads import Head
from surecall.gateway.jobs import Job
from surecall.gateway.keys import Caller
from surecall.gateway.records import RequestRecord
from surecall.wire import find_protocol

from .cases import why_not_whole

_HOST: Final = "replay"


class _Link:
    """Stands for the connection of a client that reads everything and never leaves."""

    is_slow = False
    is_gone = False
    is_crowded = False
    current = None
    on_lost: Any = None
    on_writable: Any = None

    @property
    def transport(self) -> "_Link":
        """What can be closed."""
        return self

    def close(self) -> None:
        """Nothing is open."""

    def read_on(self) -> None:
        """Nothing comes."""

    def take_body(self, _cycle: object) -> None:
        """No body came this way; `receive` has it."""

    def can_write(self, _cycle: object) -> bool:
        """Nothing can be written around `send`."""
        return False

    def write_piece(self, data: bytes) -> None:
        """Take a piece of a stream; the record says what became of it."""


def why_no_replay(record: RequestRecord) -> str:
    """Return why a request cannot be sent again; empty when it can."""
    if record.outcome == "relayed":
        return "The request was passed on untouched; only those that were read can be sent again."
    return why_not_whole(record)


async def replay(
    core: Core, state: State, caller: Caller | None, record: RequestRecord
) -> dict[str, Any]:
    """Send a kept request once more and return what became of it.

    It counts for the key of whoever asks, and goes out with the upstream's own key.

    Raises:
        ProviderStatusError: It cannot be sent; the message says why.
    """
    reason = why_no_replay(record)
    if reason:
        raise ProviderStatusError(Code.CONFLICT, reason, status=409)
    body = record.request_body or b""
    scope: dict[str, Any] = {
        "surecall.link": _Link(),
        "headers": [],
        "query_string": b"",
    }
    head = Head(
        [(b"host", _HOST.encode()), (b"content-type", b"application/json")],
        frozenset({_HOST.encode()}),
        frozenset({_HOST}),
    )
    sent: dict[str, Any] = {"status": 0}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            sent["status"] = message["status"]

    protocol = find_protocol(record.client_protocol)
    job = Job(core, state, protocol, head, caller, (scope, receive, send))
    if protocol.traits.model_in_path:
        job.named = (record.model_asked, record.stream)
    await job.run()
    return {"id": job.id, "status": sent["status"], "was_masked": MASK.encode() in body}
