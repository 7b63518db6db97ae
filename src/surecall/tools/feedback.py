"""Messages to the model when a call is refused or fails: short, specific, with the next step.

Where a tool has effects, every message says whether it may have acted, so that the model does
not repeat what is already done.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from surecall.base.errors import Code, JSONTextError, SurecallError
from surecall.base.records import Envelope, ErrorDetail, ToolCall, ToolSpec, clip
from surecall.base.redaction import redact
from surecall.reading import was_judged
from surecall.text import encode_text

from .outputs import OutputRejection

_MAX_NAMES = 20
_MAX_NAME_CHARS = 64
_MAX_MESSAGE_CHARS = 400
NOT_OBTAINED = "the approval could not be obtained."
OTHER_CALL_APPROVED = "the approval is for another call."
EDIT_UNFIT = "the arguments were changed by a person, and do not fit the tool."
INTERRUPTED = (
    "The run was interrupted while this call was running; it may or may not have taken effect."
)
CHECK_STATE = "Check the state before you repeat it."
_DO_NOT_REPEAT = "Do not repeat this call; continue without it, or ask the user."
NO_APPROVER = "it is only likely that a call was meant, and nobody is there to approve it."
NO_EFFECT_DECLARED = (
    "A call of %s that is only likely was not executed, because the tool does not declare its "
    'effect and so counts as one with effects. If it only reads, define it with effect="read".'
)
_ASK_FOR_LESS = "Ask for less: a narrower query, fewer fields, or one page at a time."


def explain_not_allowed(name: str, available: Sequence[str]) -> Envelope:
    """Build the one answer to every name that cannot be called, hidden or unknown alike."""
    shown = clip(name, _MAX_NAME_CHARS)
    if not available:
        hint = "No tools are available; answer without calling one."
    else:
        names = closest_names(name, available)
        more = len(available) - len(names)
        rest = f" (and {more} more)" if more else ""
        hint = f"Call one of these, spelled exactly: {', '.join(names)}{rest}."
    message = f"{shown!r} is not an available tool."
    return Envelope.failure(shown, Code.TOOL_NOT_ALLOWED, message, hint=hint)


def closest_names(name: str, known: Iterable[str], limit: int = _MAX_NAMES) -> list[str]:
    """Return the known names, the most similar first; equals keep their order."""
    wanted = _pairs(name)

    def distance(other: str) -> float:
        pairs = _pairs(other)
        return -len(wanted & pairs) / (len(wanted) + len(pairs))

    return sorted(known, key=distance)[:limit]


def _pairs(name: str) -> set[str]:
    """Return the neighbouring characters of a name: compared as sets, the cost stays linear."""
    text = f"^{name[:_MAX_NAME_CHARS].lower()}$"
    return {text[index : index + 2] for index in range(len(text) - 1)}


def explain_arguments_unread(
    call: ToolCall, tool_name: str, max_arguments_bytes: int
) -> Envelope | None:
    """Build the answer to a call whose arguments are not there to be used, if that is so."""
    errors = call.errors
    if not errors and (call.state != "whole" or call.arguments is None):
        errors = (_CUT if call.state == "cut" else _UNREADABLE,)
    if not errors:
        return None
    if all(error.code == Code.ARGUMENTS_INVALID for error in errors):
        return explain_arguments_invalid(tool_name, errors)
    data: dict[str, Any] = {}
    too_large = any(error.code == Code.ARGUMENTS_TOO_LARGE for error in errors)
    if too_large and call.arguments_bytes > max_arguments_bytes:
        data = {"bytes": call.arguments_bytes, "max_bytes": max_arguments_bytes}
    return Envelope(ok=False, tool_name=tool_name, data=data, errors=errors)


_CUT = ErrorDetail(
    Code.ARGUMENTS_TRUNCATED,
    "The call was cut off before its arguments ended; it was not run.",
    "Send the call again, with shorter arguments.",
)
_UNREADABLE = ErrorDetail(
    Code.ARGUMENTS_JSON_PARSE_ERROR,
    "The arguments could not be read as a JSON object; the call was not run.",
    "Send the arguments as one JSON object and nothing else.",
)


def explain_arguments_invalid(tool_name: str, errors: Sequence[ErrorDetail]) -> Envelope:
    """Build the answer that names every argument that does not fit the schema."""
    hint = f"Correct {'this' if len(errors) == 1 else 'all of these'} and call the tool again."
    last = errors[-1]
    last = ErrorDetail(
        last.code, last.message, f"{last.hint} {hint}" if last.hint else hint, last.path
    )
    return Envelope(ok=False, tool_name=tool_name, errors=(*errors[:-1], last))


def explain_not_certain(tool_name: str, call: ToolCall) -> Envelope:
    """Build the answer to a call that is only likely, and whose tool has effects."""
    doubt = clip(call.doubt, _MAX_MESSAGE_CHARS) or "A part of the call may be missing."
    seen = _describe_arguments(call)
    hint = "Send the complete call again, with every argument and everything that closes it."
    if was_judged(call):
        hint = (
            f"If you meant it, call {tool_name} again as a tool call, in the way that tools were "
            "offered to you, and not as a part of your text."
        )
    return Envelope.failure(
        tool_name,
        Code.CALL_NOT_CERTAIN,
        f"{doubt} What was seen: {tool_name} with {seen}. "
        f"The call was NOT EXECUTED, because {tool_name} has effects.",
        hint=hint,
    )


def _describe_arguments(call: ToolCall) -> str:
    try:
        text = encode_text(call.arguments)
    except JSONTextError:  # a number that JSON has no form for
        text = str(call.arguments)
    return clip(text, _MAX_MESSAGE_CHARS)


def explain_approval_denied(tool_name: str, reason: str) -> Envelope:
    """Build the answer to a call that was stopped before it ran."""
    return Envelope.failure(
        tool_name,
        Code.APPROVAL_DENIED,
        f"The call was not approved and was not run: {clip(reason, _MAX_MESSAGE_CHARS)}"
        if reason
        else "The call was not approved and was not run.",
        hint=_DO_NOT_REPEAT,
    )


def explain_approval_pending(tool_name: str) -> Envelope:
    """Build what stands in for the result of a call that waits for a decision."""
    return Envelope.failure(
        tool_name,
        Code.APPROVAL_PENDING,
        "The call waits for an approval and was not run.",
        hint="Do not repeat this call; it runs when it is approved.",
    )


def explain_approval_expired(tool_name: str) -> Envelope:
    """Build the answer to a call that nobody approved in time."""
    return Envelope.failure(
        tool_name,
        Code.APPROVAL_EXPIRED,
        "The call was not approved in time and was not run.",
        hint=_DO_NOT_REPEAT,
    )


def explain_approval_unusable(tool_name: str, error: SurecallError) -> Envelope:
    """Build the answer to a call whose approval could not be used at the last moment."""
    if error.code == Code.APPROVAL_EXPIRED:
        return explain_approval_expired(tool_name)
    return explain_approval_denied(tool_name, OTHER_CALL_APPROVED)


def explain_outcome_unknown(tool_name: str) -> Envelope:
    """Build the answer to a call that was started and whose end nobody saw."""
    return Envelope.failure(tool_name, Code.OUTCOME_UNKNOWN, INTERRUPTED, hint=CHECK_STATE)


def explain_once_unknown(tool_name: str) -> Envelope:
    """Build the answer to the repetition of a call that may have taken effect."""
    return Envelope.failure(
        tool_name,
        Code.OUTCOME_UNKNOWN,
        f"{tool_name} was called before with the same arguments and may have taken effect; "
        "it runs at most once, and was not run again.",
        hint="Find out in another way whether it took effect, or tell the user.",
    )


def explain_not_implemented(tool_name: str) -> Envelope:
    """Build the answer of a tool that is described but has no code behind it."""
    return Envelope.failure(
        tool_name,
        Code.TOOL_NOT_IMPLEMENTED,
        f"{tool_name} is described but not implemented; it was not run.",
        hint="Go on without this tool.",
    )


def explain_timeout(spec: ToolSpec, timeout_s: float) -> Envelope:
    """Build the answer of a tool that did not finish in time."""
    hint = (
        _ASK_FOR_LESS
        if spec.effect == "read"
        else "It may have taken effect: find out before you call it again."
    )
    return Envelope.failure(
        spec.name,
        Code.TOOL_TIMEOUT,
        f"{spec.name} did not finish within {timeout_s:g} s and was stopped.",
        hint=hint,
        data={"timeout_s": timeout_s},
    )


def explain_exception(tool_name: str, code: str, error: BaseException) -> Envelope:
    """Build the answer of a tool that raised: the class and the message, no traceback."""
    text = describe_error(error)
    if code == Code.ARGUMENT_ERROR:
        return Envelope.failure(
            tool_name, code, text, hint="Change the arguments and call the tool again."
        )
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return Envelope.failure(tool_name, code, message)


def describe_error(error: BaseException) -> str:
    """Return the message of an exception, without secrets and bounded."""
    try:
        text = str(error)
    except Exception:  # a broken exception must not hide the failure it reports
        text = "(its message cannot be shown)"
    return redact(clip(text, _MAX_MESSAGE_CHARS))


def explain_too_large(spec: ToolSpec, size_bytes: int, max_bytes: int) -> Envelope:
    """Build the answer that replaces one whose text is too long."""
    return Envelope.failure(
        spec.name,
        Code.TOOL_OUTPUT_TOO_LARGE,
        f"{spec.name} ran, but its answer of {size_bytes} bytes is over the limit of "
        f"{max_bytes} bytes and was left out.",
        hint=_hint_after_running(spec),
        data={"bytes": size_bytes, "max_bytes": max_bytes},
    )


def explain_too_structured(spec: ToolSpec, rejection: OutputRejection, max_bytes: int) -> Envelope:
    """Build the answer that replaces one that was too large to turn into text."""
    return Envelope.failure(
        spec.name,
        Code.TOOL_OUTPUT_TOO_LARGE,
        f"{spec.name} ran, but its answer is too large ({rejection.reason}) and was left out.",
        hint=_hint_after_running(spec),
        data={
            "estimated_bytes": rejection.estimated_bytes,
            "max_bytes": max_bytes,
            "reason": rejection.reason,
        },
    )


def explain_not_serializable(spec: ToolSpec, error: Exception) -> Envelope:
    """Build the answer that replaces one that has no JSON form."""
    return Envelope.failure(
        spec.name,
        Code.TOOL_OUTPUT_SERIALIZATION_ERROR,
        f"{spec.name} ran, but its answer has no JSON form and was left out.",
        hint=None if spec.effect == "read" else "It has run: do not repeat the call.",
        data={"error_class": type(error).__name__, "message": describe_error(error)},
    )


def _hint_after_running(spec: ToolSpec) -> str:
    if spec.effect == "read":
        return _ASK_FOR_LESS
    return "It has run: do not repeat the call only to see its answer."


def warn_of_name(tool_name: str) -> str:
    """Return the warning for a call whose name was understood, but not exactly right."""
    return f"The tool is named {tool_name}; use that name."


def warn_of_edit() -> str:
    """Return the warning for a call that ran with other arguments than the model gave."""
    return "A person changed the arguments of this call before it ran; your call shows them."


def warn_of_repetition(tool_name: str) -> str:
    """Return the warning for a call that was answered with the result of an equal one."""
    return (
        f"{tool_name} has run with the same arguments before and was not run again: "
        "this is the result of the first call."
    )
