"""Why trials fail: a layer, a stable code in it, and a detail.

The layer says whom to ask: the network, the provider, the model or the tool. The code is one of
`surecall.base.errors.Code`, a reason of a scenario, or one of the few defined here.

How grave a reason is decides which of a trial is shown, counted and exported first.
"""

from collections.abc import Iterable
from enum import IntEnum, StrEnum
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import (
    Code,
    OutputError,
    ProviderConnectionError,
    ProviderError,
    ProviderReplyError,
    ProviderTimeoutError,
)
from surecall.evals.records import CallFact, Reason, TrialRow, read_data
from surecall.loop import Trace


class Severity(IntEnum):
    """From what costs a reader nothing to what must never happen."""

    FORM = 1
    """The words of the answer, or a call more than was needed."""
    ORDER = 2
    """The work was done in another way than it was ordered."""
    WORK = 3
    """The work was not done, or not rightly."""
    HARM = 4
    """Something was done or tried that must not be, or the user was told what is not true."""


_DATA: Final = read_data("reasons.toml")
MEANINGS: Final[dict[str, dict[str, str]]] = {
    suite: _DATA[suite] for suite in ("state", "agents", "custom")
}
"""One sentence for each reason of a suite."""
_SEVERITIES: Final = {
    code: Severity[name] for name, codes in _DATA["severity"].items() for code in codes
}
_FALSE_CALLS: Final = frozenset(_DATA["false_calls"])


def severity_of(code: str) -> Severity:
    """Return how grave a reason is; one that nobody graded is about the work."""
    return _SEVERITIES.get(code, Severity.WORK)


def sort_reasons(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Return each reason once, the gravest first; equally grave ones keep their order."""
    return tuple(sorted(dict.fromkeys(reasons), key=lambda reason: -severity_of(reason.code)))


def first_of_each(reasons: Iterable[Reason]) -> list[Reason]:
    """Return the first reason of each code."""
    first: dict[str, Reason] = {}
    for reason in reasons:
        first.setdefault(str(reason.code), reason)
    return list(first.values())


CUT_BY_LIMIT: Final = "CUT_BY_LIMIT"
"""A reply stopped at its token limit, and the trial failed."""
UNEXPLAINED: Final = "UNEXPLAINED"
"""The verdict is no, and nothing says why."""


class Layer(StrEnum):
    """Where a failure lies, from the outside in."""

    SETUP = "setup"
    """The request was never sent: the configuration or the tools are wrong."""
    CONNECTION = "connection"
    """No usable connection, or a deadline passed."""
    PROVIDER = "provider"
    """The provider answered with an error."""
    REPLY = "reply"
    """The provider's answer is not a reply."""
    LIMIT = "limit"
    """A limit ended the run or a reply."""
    CALL = "call"
    """The model's call could not be used."""
    TOOL = "tool"
    """The tool refused the call, or failed."""
    BEHAVIOUR = "behaviour"
    """Everything worked, and the model did not do what was asked."""
    HARNESS = "harness"
    """An error inside surecall, or none that is known."""


class Failure(Struct, frozen=True, order=True):
    """Why one trial failed."""

    layer: Layer
    code: str
    detail: str = ""
    """A status, the kind of schema error, the name of a tool, or what the model did."""


_LAYERS: Final = {code: Layer(name) for name, codes in _DATA["layers"].items() for code in codes}
_REPLY_STARTS: Final = ("STREAM_", "UPSTREAM_")
_KNOWN: Final = frozenset(str(code) for code in Code)


def layer_of(code: str) -> Layer:
    """Return the layer of the code that a run ended with; `harness` for one nobody knows."""
    layer = _LAYERS.get(code)
    if layer is not None:
        return layer
    if code not in _KNOWN:
        return Layer.HARNESS
    return Layer.REPLY if code.startswith(_REPLY_STARTS) else Layer.SETUP


ENDPOINT_LAYERS: Final = frozenset(
    {Layer.SETUP, Layer.CONNECTION, Layer.PROVIDER, Layer.REPLY, Layer.HARNESS}
)
"""Layers in which the model has no part."""


_REFUSALS: Final = frozenset(
    {
        Code.BAD_REQUEST,
        Code.NOT_FOUND,
        Code.NO_TOOL_USE_ENDPOINT,
        Code.PROMPT_BLOCKED,
        Code.REQUEST_TOO_LARGE,
        Code.UNPROCESSABLE,
    }
)
"""Answers to this very request, which would be the same another time."""


def refuses_request(code: str) -> bool:
    """Tell whether a run ended because the endpoint refused the request itself."""
    return code in _REFUSALS


def blames_endpoint(code: str) -> bool:
    """Tell whether a run that ended with this code says nothing about the model."""
    return layer_of(code) in ENDPOINT_LAYERS and not refuses_request(code)


def classify(row: TrialRow) -> Failure | None:
    """Say why a trial failed the strict verdict; None when it did not.

    What must never happen comes before everything but an error of the endpoint.
    """
    if row.strict_ok:
        return None
    first = _first_reason(row)
    if not row.is_error and severity_of(first) is Severity.HARM:
        return Failure(Layer.BEHAVIOUR, first, row.outcome)
    if row.code is not None:
        layer = layer_of(row.code)
        if layer not in {Layer.TOOL, Layer.CALL, Layer.BEHAVIOUR, Layer.LIMIT}:
            return Failure(layer, row.code, _status_of(row))
    if row.cut_by_limit:
        return Failure(Layer.LIMIT, CUT_BY_LIMIT, row.code or _first_reason(row))
    if row.code is not None and layer_of(row.code) is Layer.LIMIT:
        return Failure(Layer.LIMIT, row.code, row.outcome)
    if row.outcome == "broke" or row.code == Code.TOOL_ERROR:
        blamed = _blame(row.calls)
        if blamed is not None:
            return blamed
    code = row.code or _first_reason(row)
    if not code:
        return Failure(Layer.HARNESS, UNEXPLAINED, row.outcome)
    # A reason of a scenario may share no name with a code: then it is about behaviour.
    layer = layer_of(code) if row.code else _LAYERS.get(code, Layer.BEHAVIOUR)
    return Failure(layer, code, row.outcome)


def _blame(calls: Iterable[CallFact]) -> Failure | None:
    """Return what was wrong with the last call that failed."""
    failed = [call for call in calls if not call.ok and call.error_codes]
    if not failed:
        return None
    call = failed[-1]
    code = call.error_codes[0]
    layer = _LAYERS.get(code, Layer.TOOL)
    if layer is Layer.HARNESS:
        layer = Layer.TOOL  # an error inside a tool, not inside surecall
    detail = ",".join(sorted(set(call.error_kinds))) if call.error_kinds else call.name[:80]
    return Failure(layer, code, detail)


def _status_of(row: TrialRow) -> str:
    return "" if row.error_status is None else str(row.error_status)


def _first_reason(row: TrialRow) -> str:
    return row.strict_reasons[0].code if row.strict_reasons else ""


def has_false_call(row: TrialRow) -> bool:
    """Tell whether a trial holds a call that should not have been made."""
    if row.control and any(call.executed for call in row.calls):
        return True
    return any(reason.code in _FALSE_CALLS for reason in row.strict_reasons)


_NOT_REACHED: Final = frozenset({Layer.SETUP, Layer.CONNECTION, Layer.PROVIDER, Layer.REPLY})


def was_unanswered(row: TrialRow) -> bool:
    """Tell whether a trial says nothing about the model, because the model was never reached."""
    return (
        row.code is not None
        and row.turns <= 1
        and not row.calls
        and layer_of(row.code) in _NOT_REACHED
    )


def is_timeout(error: BaseException | None) -> bool:
    """Tell whether a deadline ended the run, so that it would have taken longer."""
    return isinstance(error, ProviderTimeoutError) or (
        getattr(error, "code", None) == Code.DEADLINE_EXCEEDED
    )


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
