"""What surecall keeps for the sake of the experiment it grew out of.

`variables` reads its settings, `summaries` writes its files; here are its categories of failures.
"""

from typing import Any, Final

from surecall.base.errors import (
    Code,
    OutputError,
    ProviderConnectionError,
    ProviderError,
    ProviderReplyError,
    ProviderTimeoutError,
)
from surecall.evals.taxonomy import is_timeout
from surecall.loop import Trace

__all__ = ["categorize"]

_TOOL_USE: Final = frozenset({Code.NO_TOOL_CALLS, Code.NO_TOOL_USE_ENDPOINT, Code.TOOL_ERROR})
_BY_STATUS: Final = {
    401: "AUTH",
    402: "PAYMENT_REQUIRED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    408: "TIMEOUT",
    409: "CONFLICT",
    413: "REQUEST_TOO_LARGE",
    422: "UNPROCESSABLE",
    429: "RATE_LIMIT",
}


def categorize(error: Exception | None, trace: Trace | None, text: str) -> str:
    """Return the category that the original experiment gives a failed run."""
    if error is not None:
        return _category_of(error)
    if not text.strip():
        return "EMPTY_ASSISTANT_TEXT"
    if trace is None or trace.options.tool_use_mode == "disabled" or not trace.tools:
        return "ASSERTION_FAILED"
    return "ASSERTION_FAILED" if any(turn.calls for turn in trace.turns) else "NO_TOOL_CALLS"


def _category_of(error: Exception) -> str:
    code: Any = getattr(error, "code", None)
    match error:
        case ProviderConnectionError():
            return "CONNECTION_ERROR"
        case ProviderTimeoutError():
            return "TIMEOUT_ERROR"
        case ProviderReplyError():
            return "DECODE_ERROR"
        case _ if code in _TOOL_USE:
            return str(code)
        case OutputError():
            return "DIRECTIVES_RUN_FAILED"
        case _ if is_timeout(error):
            return "TIMEOUT"
        case ProviderError(status=int(status)):
            if 500 <= status <= 599:
                return "UPSTREAM_5XX"
            return _BY_STATUS.get(status, f"HTTP_{status}")
        case _:
            return "EXCEPTION"
