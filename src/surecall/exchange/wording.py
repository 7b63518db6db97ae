"""What a model or a client reads from an exchange: why a call was not used, and what is missing."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from surecall.base.errors import Code
from surecall.base.records import Envelope, ErrorDetail, clip
from surecall.text import encode_text
from surecall.tools.feedback import CHECK_STATE
from surecall.tools.outputs import render_envelope

_MAX_REASONS: Final = 3
_MAX_REASON_CHARS: Final = 300
_MAX_NAMES: Final = 20
_MAX_NAME_CHARS: Final = 64
_MAX_REQUEST_CHARS: Final = 2_000
_NOTE: Final = "[tool_use parse error]"
"""What the lines about calls begin with that are not delivered; agents know it by sight."""
_PLAINLY: Final[Mapping[str, str]] = {
    Code.ARGUMENTS_TRUNCATED: "The call was cut off before its arguments ended."
}
_SAME_AGAIN: Final = "Sending the same request again is unlikely to help"

FROM_SYSTEM: Final = "[System message:]"
NO_RESULT: Final = "No result of this call was recorded; it may or may not have run."
EMPTY_ANSWER: Final = "Please give your final answer to the user now, as plain text."
NOT_CERTAIN_HINT: Final = (
    "Send the complete call again, with every argument and everything that closes it."
)
_NOT_RUN: Final = ErrorDetail(
    Code.CALL_NOT_CERTAIN,
    "This call was not run, because another call of the same reply could not be used.",
    "Make it again, together with the corrected one.",
)


def demand_call(tools: Sequence[str]) -> str:
    """Say that a call is demanded, and was not made."""
    names = ", ".join(tools[:_MAX_NAMES])
    which = "this tool" if len(tools) == 1 else "one of these tools"
    return f"The reply has no call, and a call of {which} is demanded: {names}."


def repeat_request(request: str) -> str:
    """Repeat what the user wants."""
    return f"The request was:\n{clip(request, _MAX_REQUEST_CHARS)}"


def ask_for_call(reason: str) -> str:
    """Ask a model for the call that is missing, in the way its endpoint has for calls."""
    return f"{reason} Make the call now, and say nothing else."


def write_envelope(envelope: Envelope) -> str:
    """Write what became of a call as a model reads it."""
    return encode_text(render_envelope(envelope))


def explain_not_run(tool_name: str) -> Envelope:
    """Build the answer to a good call whose reply was not used because of another one."""
    return Envelope(ok=False, tool_name=tool_name, errors=(_NOT_RUN,))


def explain_doubt(tool_name: str, doubt: str) -> Envelope:
    """Build the answer to a call of which a part may be missing."""
    seen = clip(doubt, _MAX_REASON_CHARS) or "A part of the call may be missing."
    return Envelope.failure(
        tool_name, Code.CALL_NOT_CERTAIN, f"{seen} The call was not run.", hint=NOT_CERTAIN_HINT
    )


def missing_result(tool_name: str) -> str:
    """Write the result of a call that has none in the history."""
    error = ErrorDetail(Code.OUTCOME_UNKNOWN, NO_RESULT, CHECK_STATE)
    return write_envelope(Envelope(ok=False, tool_name=tool_name, errors=(error,)))


def tell_repeated(name: str, count: int) -> str:
    """Say that a call had the same result several times."""
    shown = clip(name, _MAX_NAME_CHARS)
    return f"{shown} was called {count} times with the same arguments and had the same result."


def refuse_calls(errors: Iterable[ErrorDetail], *, was_asked_again: bool) -> str:
    """Say to a client why no call of the reply can be delivered."""
    again = ", and asking again did not help" if was_asked_again else ""
    reasons = _join_reasons(error.message for error in errors)
    return f"The model's tool calls cannot be used{again}: {reasons}"


def tell_not_run(tool_name: str, errors: Sequence[ErrorDetail]) -> str:
    """Say in the text of a reply which call was not executed, and why; nothing cut is quoted."""
    why = _join_reasons(_PLAINLY.get(error.code, error.message) for error in errors)
    return f"{_NOTE} {clip(tool_name, _MAX_NAME_CHARS) or 'A tool'} was not executed: {why}"


def tell_no_call(notice: str) -> str:
    """Say in the text of a reply that no tool was executed, and why."""
    return f"{_NOTE} No tool was executed: {_as_sentence(clip(notice, _MAX_REASON_CHARS))}"


def _join_reasons(messages: Iterable[str]) -> str:
    reasons = list(dict.fromkeys(messages))
    shown = [_as_sentence(clip(reason, _MAX_REASON_CHARS)) for reason in reasons[:_MAX_REASONS]]
    more = len(reasons) - _MAX_REASONS
    return " ".join([*shown, f"(and {more} more)"] if more > 0 else shown)


def _as_sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def hint_refused(errors: Iterable[ErrorDetail]) -> str:
    """Say to a client what may help when nothing made the calls usable."""
    if all(error.code == Code.ARGUMENTS_TRUNCATED for error in errors):
        return f"{_SAME_AGAIN}; allow more tokens, or ask for less at a time."
    return f"{_SAME_AGAIN}; use another model."


def refuse_losses(names: Iterable[str], target: str) -> str:
    """Say to a client what of its request the endpoint's format cannot carry."""
    return f"The endpoint speaks {target}, which cannot carry: {', '.join(names)}."


LOSSES_HINT: Final = "Leave it out, or use a model whose endpoint speaks the format of the request."
