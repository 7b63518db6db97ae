"""Requests for the dashboard to show, in a real store."""

import asyncio
import time
from pathlib import Path
from typing import Any

from surecall.base.records import Defect, Receipt
from surecall.store.records.record import ParseError, RequestRecord, StepNote, new_request_id
from surecall.store.records.sqlite import SqliteRecords

__all__ = [
    "BODY",
    "FAILED",
    "HOSTILE",
    "REASKED",
    "REFUSED",
    "REPAIRED",
    "REPLY",
    "fill",
    "make_request",
    "open_store",
    "usual_day",
]

BODY = (
    b'{"model":"small","messages":[{"role":"system","content":"Be short."},'
    b'{"role":"user","content":"How warm is it in Oslo?"}],"tools":[{"type":"function",'
    b'"function":{"name":"get_weather","description":"Say the weather.","parameters":'
    b'{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["C",null]}},'
    b'"required":["city"]}}}]}'
)
REPLY = (
    b'{"id":"c-1","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls",'
    b'"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",'
    b'"function":{"name":"get_weather","arguments":"{\\"city\\": \\"Oslo\\"}"}}]}}]}'
)
REPAIRED: dict[str, Any] = {
    "outcome": "repaired",
    "calls": 1,
    "receipts": (
        Receipt("replace_quotes", "", "{'city': 'Oslo'}", '{"city": "Oslo"}'),
        Receipt("parse_number_text", "/days", "3", 3, why="the schema asks for an integer"),
    ),
    "defects": (Defect("CALL_IN_TEXT", "The call was written as text."),),
}
REASKED: dict[str, Any] = {
    "outcome": "reasked",
    "calls": 1,
    "upstream_requests": 2,
    "steps": (StepNote("repair", "failed", 0), StepNote("reask", "rescued", 1)),
    "defects": (Defect("ARGUMENTS_TRUNCATED", "It ended inside the arguments.", "/arguments"),),
    "parse_error": ParseError("native", "the text ends inside an object", '{"city": "Os'),
}
REFUSED: dict[str, Any] = {
    "outcome": "refused",
    "status": 422,
    "error_code": "ARGUMENTS_INVALID",
    "defects": (Defect("ARGUMENTS_INVALID", "city is missing.", "/city"),),
    "parse_error": ParseError("native", "city is missing", "{}"),
}
UNREPAIRED: dict[str, Any] = {**REFUSED, "outcome": "unrepaired", "status": 200, "calls": 1}
del UNREPAIRED["error_code"]
FAILED: dict[str, Any] = {"outcome": "failed", "status": 502, "error_code": "FIRST_BYTE_TIMEOUT"}
HOSTILE = (
    "<script>window.__pwned=1</script>",
    "__proto__",
    "<img src=https://evil.invalid/x onerror=window.__pwned=1>",
    "\u202egnp.exe" + "x" * 80,
)


def make_request(age_s: float, **fields: Any) -> RequestRecord:
    """Return a request that came so many seconds ago."""
    moment = time.time() - age_s
    given: dict[str, Any] = {
        "key_id": "team-a",
        "client_protocol": "chat_completions",
        "upstream": "stub",
        "upstream_protocol": "chat_completions",
        "model_asked": "small",
        "model_answered": "small-2026",
        "strategy": "native",
        "status": 200,
        "upstream_requests": 1,
        "upstream_ms": 100.0 + age_s % 7,
        "added_ms": 0.5,
        "request_bytes": 900,
        "reply_bytes": 300,
    }
    return RequestRecord(id=new_request_id(moment), time=moment, **(given | fields))


async def fill(store: Any, *records: RequestRecord) -> None:
    """Keep some requests."""
    await asyncio.gather(*map(store.add, records))


def open_store(folder: Path) -> SqliteRecords:
    """Return an empty store."""
    return SqliteRecords(folder / "requests.db")


def usual_day() -> list[RequestRecord]:
    """Return a day of requests, the last minutes of which are worse for one model."""
    before = [
        make_request(4000 + at * 100, **(REPAIRED if at % 25 == 0 else {})) for at in range(200)
    ]
    good = [make_request(1500 + at * 10) for at in range(150)]
    bad = [make_request(900 + at * 6, **(REPAIRED if at % 4 else {})) for at in range(60)]
    rest = [make_request(30 + at * 8) for at in range(100)]
    other = [make_request(60 + at * 30, upstream="other", model_asked="big") for at in range(40)]
    special = [
        make_request(20, **REASKED),
        make_request(15, **REFUSED),
        make_request(12, **FAILED, upstream="other"),
        make_request(11, outcome="relayed"),
        make_request(10, **REPAIRED, request_body=BODY, reply_body=REPLY),
    ]
    return [*before, *good, *bad, *rest, *other, *special]
