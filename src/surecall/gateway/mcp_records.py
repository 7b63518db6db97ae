"""Calls through `surecall mcp guard`, recorded where requests of the gateway are."""

import time
from collections.abc import Sequence
from typing import Any, Final

from surecall.base.records import Defect
from surecall.store.records import open_records
from surecall.store.records.record import RequestRecord, new_request_id
from surecall.store.records.retention import Retention
from surecall.tools.mcp.guard import GuardedCall, serve_guard

_PROTOCOL: Final = "mcp"
_WORKER: Final = 900
"""All guards share a file next to the gateways' files, so no gateway waits for it."""


async def serve_recorded(target: str | Sequence[str], *, place: str | None, **options: Any) -> None:
    """Serve the tools of another server; with a place, record every call there.

    Raises:
        SurecallError: As `serve_guard`, or the store cannot be opened.
    """
    if place is None:
        await serve_guard(target, **options)
        return
    store = open_records(place, worker=_WORKER)
    await store.start()
    try:
        await serve_guard(target, on_call=lambda call: store.add_soon(record_call(call)), **options)
        await Retention().prune(store)
    finally:
        await store.close()


def record_call(call: GuardedCall) -> RequestRecord:
    """Return the record of a call: the server is its upstream, and the tool stands for a model."""
    outcome = "repaired" if call.receipts else "clean"
    if call.errors:
        outcome = "failed" if call.was_asked else "refused"
    return RequestRecord(
        id=new_request_id(),
        time=time.time() - call.total_s,
        client_protocol=_PROTOCOL,
        upstream=call.server,
        upstream_protocol=_PROTOCOL,
        model_asked=f"tool:{call.tool}",
        outcome=outcome,
        error_code=call.errors[0].code if call.errors else "",
        calls=int(call.was_asked),
        upstream_requests=int(call.was_asked),
        upstream_ms=round(call.server_s * 1000, 3),
        added_ms=round(max(call.total_s - call.server_s, 0.0) * 1000, 3),
        receipts=call.receipts,
        defects=tuple(Defect(item.code, item.message) for item in call.errors),
    )
