"""Requests for the pages: a list by filters, one with everything, sent again, or as a case."""

import time
from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import asdict

from surecall.base.errors import Code, ProviderStatusError, SurecallError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import Message
from surecall.base.redaction import MASK, redact
from surecall.exchange.request import ClientRequest
from surecall.gateway.headers import Head
from surecall.gateway.jobs import Job
from surecall.gateway.keys import Caller
from surecall.gateway.settings.tables import StoreSettings
from surecall.gateway.state import Core, State
from surecall.gateway.telemetry.otel import read_kept_reply
from surecall.store.records.record import RequestRecord
from surecall.store.records.store import count_all
from surecall.store.records.tables import RecordFilter
from surecall.text import decode
from surecall.wire import find_protocol

_ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
_MAX_CALLS: Final = 100
NOT_KEPT: Final = (
    "The body of this request was not kept. Set keep_bodies = true under [store] to keep bodies."
)
CUT: Final = "The body of this request was too large to be kept in full."


def why_not_whole(record: RequestRecord) -> str:
    """Return why the request itself cannot be used again; empty when it can."""
    if record.request_body is None:
        return NOT_KEPT
    try:
        decode(record.request_body)
    except SurecallError:
        if len(record.request_body) < record.request_bytes:
            return CUT
        return "The body of this request is not JSON."
    return ""


def why_no_case(record: RequestRecord) -> str:
    """Return why a request cannot become a case; empty when it can."""
    reason = why_not_whole(record)
    if reason:
        return reason
    try:
        messages = _parse(record).ask().messages
    except SurecallError as error:
        return f"The request cannot be read: {error.message}"
    if any(item.role not in _ROLES or item.tool_calls for item in messages):
        return "The conversation has calls in it already; a case holds text only."
    if not any(item.role == "user" for item in messages):
        return "The conversation has no message of a user."
    if any(not item.text for item in messages):
        return "The conversation has messages without text; a case holds text only."
    return ""


def make_case(record: RequestRecord, calls: str | None = None) -> dict[str, Any]:
    """Return a file of cases with this one request.

    Args:
        record: The request.
        calls: The calls that are right, as JSON; by default those that were delivered.

    Raises:
        ProviderStatusError: It cannot become a case; the message says why.
    """
    reason = why_no_case(record)
    if reason:
        raise ProviderStatusError(Code.CONFLICT, reason, status=409)
    request = _parse(record)
    expected = find_calls(record) if calls is None else _read_calls(calls)
    if expected is None:
        raise ProviderStatusError(
            Code.CONFLICT,
            "The reply was not kept, so the calls that are right are not known.",
            hint="Name them with `calls`.",
            status=409,
        )
    case: dict[str, Any] = {
        "id": f"request-{record.id}",
        "messages": [_describe(item) for item in request.ask().messages],
        "calls": expected,
    }
    return {
        "name": f"request-{record.id}",
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools.specs
        ],
        "cases": [case],
    }


def find_calls(record: RequestRecord) -> list[dict[str, Any]] | None:
    """Return the right calls that the client got; `None` when there are none that were kept."""
    if record.reply_body is None or record.outcome in {"failed", "refused", "unrepaired"}:
        return None
    try:
        reply = read_kept_reply(record)
        calls = () if reply is None else reply.calls[:_MAX_CALLS]
        return [{"tool": str(call.name), "arguments": _arguments(call.arguments)} for call in calls]
    except SurecallError:
        return None


def _arguments(written: Any) -> dict[str, Any]:
    return as_fields(decode(written) if isinstance(written, str) else written)


def _parse(record: RequestRecord) -> ClientRequest:
    return ClientRequest.parse(
        record.client_protocol,
        record.request_body or b"",
        model=record.model_asked,
        stream=record.stream,
    )


def _describe(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.text}


def _read_calls(text: str) -> list[dict[str, Any]]:
    """Return the calls that somebody wrote.

    Raises:
        ProviderStatusError: They are not a list of calls.
    """
    try:
        found = decode(text)
    except SurecallError as error:
        raise _not_calls() from error
    calls = [as_fields(item) for item in as_list(found)]
    if not isinstance(found, list) or any(text_or_none(call.get("tool")) is None for call in calls):
        raise _not_calls()
    return calls


def _not_calls() -> ProviderStatusError:
    return ProviderStatusError(
        Code.INVALID_REQUEST,
        "The expected calls must be a JSON list.",
        hint='For example [{"tool": "weather", "arguments": {"city": "Oslo"}}], or [] for none.',
        status=400,
    )


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


PAGE_ROWS: Final = 50
_HOUR_S: Final = 3600.0
_LENGTHS: Final[Mapping[str, float]] = {"1h": _HOUR_S, "24h": 24 * _HOUR_S, "7d": 168 * _HOUR_S}
_MAX_RULES: Final = 4
_PLAIN: Final = (
    *("id", "time", "outcome", "status", "stream", "calls", "retries", "upstream_requests"),
    *("upstream", "strategy", "error_code", "upstream_ms", "added_ms", "key_id", "client_closed"),
)
_MORE: Final = (
    *("model_asked", "model_answered", "client_protocol", "upstream_protocol", "prompt_tokens"),
    *("completion_tokens", "cached_tokens", "cost", "request_bytes", "reply_bytes"),
    *("first_byte_ms", "probe", "attempts", "defects", "parse_error"),
)
"""Fields of a record that only its own page shows."""


async def list_requests(store: Any, query: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of requests, the latest first, and how many fit in all."""
    wanted = read_filter(query)
    page = await store.list(wanted, before=query.get("before"), limit=PAGE_ROWS)
    return {
        "rows": [describe_row(record) for record in page.records],
        "next": page.next,
        "total": await count_all(store, wanted),
    }


def read_filter(query: Mapping[str, str]) -> RecordFilter:
    """Return what a query asks for.

    Raises:
        ProviderStatusError: A moment in it is not a number.
    """
    since, until = _moment(query, "since"), _moment(query, "until")
    if since is None and query.get("range") in _LENGTHS:
        since = time.time() - _LENGTHS[query["range"]]
    return RecordFilter(
        since=since,
        until=until,
        model=query.get("model"),
        upstream=query.get("upstream"),
        outcome=query.get("outcome"),
        code=query.get("code"),
        status=query.get("status"),
        key_id=query.get("key"),
    )


def _moment(query: Mapping[str, str], name: str) -> float | None:
    text = query.get(name)
    if text is None:
        return None
    try:
        return min(max(float(text), 0.0), 1e11)
    except ValueError as error:
        raise ProviderStatusError(
            Code.INVALID_REQUEST, f"{name} must be seconds since 1970.", status=400
        ) from error


def describe_row(record: RequestRecord) -> dict[str, Any]:
    """Return what one line of a list says about a request."""
    return {
        **{name: getattr(record, name) for name in _PLAIN},
        "model": record.model_asked or record.model_answered,
        "codes": list(dict.fromkeys(item.code for item in record.defects)),
        "rules": list(dict.fromkeys(item.rule for item in record.receipts))[:_MAX_RULES],
        "receipts": len(record.receipts),
        "steps": sum(step.requests for step in record.steps),
    }


async def show_request(store: Any, record_id: str, settings: StoreSettings) -> dict[str, Any]:
    """Return one request with everything that is kept of it."""
    record = await store.get(record_id)
    if record is None:
        raise ProviderStatusError(
            Code.NOT_FOUND,
            "There is no such request.",
            hint=_describe_age(settings),
            status=404,
        )
    return {
        **describe_row(record),
        **{name: _open_up(getattr(record, name)) for name in _MORE},
        "steps_taken": _open_up(record.steps),
        "changes": _open_up(record.receipts),
        "request_body": _readable(record.request_body),
        "reply_body": _readable(record.reply_body),
        "keeps_bodies": settings.keep_bodies,
        "max_age_days": settings.max_age_days,
        "like": await _count_alike(store, record),
        "no_case": why_no_case(record),
        "expected_calls": find_calls(record),
        "no_replay": why_no_replay(record),
    }


def _open_up(value: Any) -> Any:
    """Return a value of a record with all its fields, also those that have their defaults."""
    if isinstance(value, tuple):
        return [asdict(item) for item in cast("tuple[Struct, ...]", value)]
    return asdict(value) if isinstance(value, Struct) else value


def _readable(body: bytes | None) -> str | None:
    """Return a body as text, once more without secrets: some are known only now."""
    return None if body is None else redact(body.decode("utf-8", "replace"))


async def _count_alike(store: Any, record: RequestRecord) -> dict[str, Any] | None:
    """Count requests of the same hour with the same first defect, from the same upstream."""
    code = next((item.code for item in record.defects), record.error_code)
    if not code:
        return None
    since = record.time - _HOUR_S
    wanted = RecordFilter(
        since=since, until=record.time + 0.001, code=code, upstream=record.upstream or None
    )
    return {
        "code": code,
        "upstream": record.upstream,
        "since": since,
        "until": record.time + 0.001,
        "others": max(0, await count_all(store, wanted) - 1),
    }


def _describe_age(settings: StoreSettings) -> str | None:
    if settings.max_age_days is None:
        return None
    return f"Requests are kept for {settings.max_age_days:g} days."
