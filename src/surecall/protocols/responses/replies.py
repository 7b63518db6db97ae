"""Whole replies: from bytes to the output, and from the output to a `Reply`."""

from collections.abc import Mapping
from typing import Any, Final, cast

from surecall.errors import Code, JSONTextError
from surecall.jsontext import decode, decode_noting
from surecall.protocols.base import RawReply
from surecall.protocols.faults import check_body, parse_error_object
from surecall.protocols.refusals import (
    check_role,
    check_says_something,
    refuse_reply,
    start_of,
    text_or_none,
)
from surecall.records import Defect, Reply, Usage, clip

from .output import finish_reason_of, parse_output
from .shapes import as_fields, as_list, show

__all__ = ["parse_body", "parse_message", "parse_response", "parse_usage", "repeated_keys"]

_ENDED: Final = ("completed", "incomplete", None)


def parse_body(body: bytes, headers: Mapping[str, str] | None = None) -> RawReply:
    """Find the output in a whole body.

    Raises:
        ProviderError: The body is not a reply; the code says in which way.
    """
    headers = headers or {}
    fault = check_body(headers, body)
    if fault is not None:
        raise fault
    try:
        document: Any = decode(body, surrogates="replace")
    except JSONTextError as error:
        message = f"The provider's answer is not JSON we accept: {error.message}"
        raise refuse_reply(Code.UPSTREAM_INVALID_JSON, message, start_of(body)) from error
    if not isinstance(document, dict):
        kind = "array" if isinstance(document, list) else "single value"
        message = f"The provider answered with a JSON {kind}, not with an object."
        raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))
    response = cast("dict[str, Any]", document)
    if response.get("error") or response.get("status") == "failed":
        raise parse_error_object({"error": response.get("error")}, 200, headers)
    if response.get("object") == "error":
        raise parse_error_object(response, 200, headers)
    output, status = response.get("output"), response.get("status")
    if output is None and status == "incomplete":
        output = []
    if not isinstance(output, list):
        message = "The provider's answer has no list of output items."
        raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))
    if status not in _ENDED:
        message = f"The provider answered with a response that has the status {show(status)}."
        raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))
    items = as_list(output)
    return parse_response(response, items, repeated_keys(items, body))


def parse_response(
    response: dict[str, Any], output: list[Any], defects: tuple[Defect, ...] = ()
) -> RawReply:
    """Return the reply that a response object and its output make.

    Raises:
        ProviderReplyError: `UPSTREAM_NOT_A_REPLY`, for an output that the model did not write, or
            one that says nothing and lacks the marks of a response that ended so.
    """
    for item in output:
        check_role(as_fields(item).get("role"))
    message: dict[str, Any] = {"output": output}
    for key in ("status", "incomplete_details"):
        if response.get(key) is not None:
            message[key] = response[key]
    raw = RawReply(
        message=message,
        finish_reason=finish_reason_of(message),
        usage=parse_usage(response.get("usage")),
        model=text_or_none(response.get("model")),
        id=text_or_none(response.get("id")),
        defects=defects,
    )
    is_marked = response.get("object") == "response" and raw.finish_reason is not None
    marks = "an object of type response or a status"
    check_says_something(parse_message(raw), is_marked=is_marked, marks=marks)
    return raw


def parse_message(raw: RawReply) -> Reply:
    """Understand the output; whatever shape it has, nothing is raised."""
    output = parse_output(raw.message)
    return Reply(
        content=output.text,
        reasoning=output.reasoning,
        calls=output.calls,
        finish_reason=raw.finish_reason or finish_reason_of(raw.message),
        usage=raw.usage,
        model=raw.model,
        id=raw.id,
        defects=(*raw.defects, *output.defects),
        extra=output.extra,
    )


def parse_usage(usage: Any) -> Usage | None:
    """Read token counts; what is not a count is left out."""
    counts = as_fields(usage)
    given, made = _count(counts, "input_tokens"), _count(counts, "output_tokens")
    total = _count(counts, "total_tokens")
    if given is None and made is None and total is None:
        return None
    return Usage(
        input_tokens=given or 0,
        output_tokens=made or 0,
        total_tokens=total if total is not None else (given or 0) + (made or 0),
        reasoning_tokens=_detail(counts, "output_tokens_details", "reasoning_tokens"),
        cached_tokens=_detail(counts, "input_tokens_details", "cached_tokens"),
    )


def repeated_keys(items: list[Any], text: bytes | str) -> tuple[Defect, ...]:
    """Return a finding when a key inside arguments that are an object had differing values."""
    if not any(isinstance(as_fields(item).get("arguments"), dict) for item in items):
        return ()
    for place in decode_noting(text, surrogates="replace").duplicates:
        if "/arguments/" in place:
            note = f"A key inside arguments has differing values: {clip(place)}"
            return (Defect(Code.DUPLICATE_KEY, note, "/output"),)
    return ()


def _count(counts: dict[str, Any], name: str) -> int | None:
    value = counts.get(name)
    return value if type(value) is int and value >= 0 else None


def _detail(counts: dict[str, Any], group: str, name: str) -> int:
    return _count(as_fields(counts.get(group)), name) or 0
