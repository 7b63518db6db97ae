"""A request as a case for `surecall eval`: what was asked, with which tools, and what is right."""

from typing import Any, Final

from surecall.base.errors import Code, ProviderStatusError, SurecallError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import Message
from surecall.exchange.request import ClientRequest
from surecall.gateway.records import RequestRecord
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
    wire = find_protocol(record.client_protocol or "chat_completions")
    try:
        if record.stream:
            folder = wire.open_stream()
            folder.feed(record.reply_body)
            raw = folder.close()
        else:
            raw = wire.parse_body(record.reply_body)
        reply = wire.parse_message(raw)
        return [
            {"tool": str(call.name), "arguments": _arguments(call.arguments)}
            for call in reply.calls[:_MAX_CALLS]
        ]
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
