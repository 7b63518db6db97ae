"""Error answers: what Gemini tells beside the status."""

from collections.abc import Mapping
from typing import Any, Final

from surecall.errors import Code, JSONTextError, ProviderError, ProviderStatusError
from surecall.jsontext import decode
from surecall.protocols.faults import parse_error_object as parse_plain_error
from surecall.protocols.faults import parse_fault as parse_plain_fault

from .members import as_dict, as_list

__all__ = ["parse_error_object", "parse_fault"]

_MAX_DELAY_S: Final = 86_400.0
_KEY_HINT: Final = "Check the API key and that it belongs to this base URL."


def parse_fault(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Understand an error answer; nothing is raised."""
    error = parse_plain_fault(status, headers, body)
    try:
        value = decode(body, surrogates="replace")
    except JSONTextError:
        return error
    _refine(error, value)
    return error


def parse_error_object(
    value: Any,
    status: int,
    headers: Mapping[str, str],
    *,
    fallback: Code = Code.UPSTREAM_ERROR_BODY,
) -> ProviderStatusError:
    """Return the error that an error body, or an error event in a stream, stands for."""
    error = parse_plain_error(value, status, headers, fallback=fallback)
    _refine(error, value)
    return error


def _refine(error: ProviderError, value: Any) -> None:
    """Tell a bad key from a bad request, and a short pause from a quota that is used up.

    Gemini says "exceeded your current quota" in both cases; only the details tell them apart.
    """
    first = as_list(value)[:1]
    told = as_dict(as_dict(first[0] if first else value).get("error"))
    details = [as_dict(item) for item in as_list(told.get("details"))]
    if any(item.get("reason") == "API_KEY_INVALID" for item in details):
        error.code, error.hint, error.retryable = str(Code.AUTH), _KEY_HINT, False
    delay_s = next((found for item in details if (found := _delay_s(item)) is not None), None)
    if delay_s is None:
        return
    error.retry_after_s = delay_s
    quotas = [str(as_dict(v).get("quotaId")) for d in details for v in as_list(d.get("violations"))]
    if error.code == Code.QUOTA_EXCEEDED and not any("PerDay" in quota for quota in quotas):
        error.code, error.hint, error.retryable = str(Code.RATE_LIMIT), None, True


def _delay_s(detail: dict[str, Any]) -> float | None:
    text = detail.get("retryDelay")
    if not isinstance(text, str) or not text.endswith("s"):
        return None
    number = text[:-1]
    if len(number) > 20 or not number.replace(".", "", 1).isdigit() or not number.isascii():
        return None
    return min(float(number), _MAX_DELAY_S)
