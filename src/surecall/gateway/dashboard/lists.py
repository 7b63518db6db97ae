"""Requests for the pages: a list by filters, and one with everything that is kept of it."""

import time
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import asdict

from surecall.base.errors import Code, ProviderStatusError
from surecall.base.redaction import redact
from surecall.gateway.records import RecordFilter, RequestRecord, count_all
from surecall.gateway.settings import StoreSettings

from .cases import find_calls, why_no_case
from .replays import why_no_replay

PAGE_ROWS: Final = 50
_HOUR_S: Final = 3600.0
_LENGTHS: Final[Mapping[str, float]] = {"1h": _HOUR_S, "24h": 24 * _HOUR_S, "7d": 168 * _HOUR_S}
_MAX_RULES: Final = 4
_PLAIN: Final = (
    *("id", "time", "outcome", "status", "stream", "calls", "retries", "upstream_requests"),
    *("upstream", "strategy", "error_code", "upstream_ms", "added_ms", "key_id", "client_closed"),
)


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
        "model_asked": record.model_asked,
        "model_answered": record.model_answered,
        "client_protocol": record.client_protocol,
        "upstream_protocol": record.upstream_protocol,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "request_bytes": record.request_bytes,
        "reply_bytes": record.reply_bytes,
        "first_byte_ms": record.first_byte_ms,
        "probe": None if record.probe is None else asdict(record.probe),
        "steps_taken": [asdict(step) for step in record.steps],
        "attempts": [asdict(item) for item in record.attempts],
        "changes": [asdict(receipt) for receipt in record.receipts],
        "defects": [asdict(defect) for defect in record.defects],
        "parse_error": None if record.parse_error is None else asdict(record.parse_error),
        "request_body": _readable(record.request_body),
        "reply_body": _readable(record.reply_body),
        "keeps_bodies": settings.keep_bodies,
        "max_age_days": settings.max_age_days,
        "like": await _count_alike(store, record),
        "no_case": why_no_case(record),
        "expected_calls": find_calls(record),
        "no_replay": why_no_replay(record),
    }


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
