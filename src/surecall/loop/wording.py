"""What a model reads from the loop: warnings, notices, and the refusals that the loop makes."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from surecall.base.errors import Code
from surecall.base.records import ErrorDetail, ToolCall, clip
from surecall.exchange.wording import EMPTY_ANSWER, repeat_request
from surecall.text import encode_text

HELD_SECRET: Final = ErrorDetail(
    Code.ARGUMENTS_HOLD_SECRET,
    "The arguments held a key of this program, which was taken out; nothing was run.",
    "Make the call without the key.",
)
RESUME_LATER: Final = "Decide about it, then resume the run."
NOT_EXECUTED: Final = "[tool not executed]"
"""How a message begins that tells a model that what it wrote was not read as a call."""
DOES_NOT_FIT: Final = ErrorDetail(
    Code.TOOL_DOES_NOT_FIT,
    "This tool does not fit the request; it was not run.",
    "Answer the user without it.",
)
MALFORMED: Final = "The provider could not read the call that the model wrote."
ECHO_TEXT: Final = (
    "Your last message repeated a notice that was meant for you. "
    "Answer the user in your own words, or call a tool."
)
NOT_FINISHED: Final = "[task not finished]"
"""How a message begins that asks a model to go on instead of answering."""
_MAX_REQUEST_CHARS: Final = 2_000
ASK_FOR_OUTPUT: Final = "Now give the result of this conversation as the JSON that is asked for."
EXTRACT: Final = (
    "Take what is asked for out of the user's text. Use only what the text says, copy names and "
    "numbers exactly, and leave out or set to null what it does not say, where that is allowed."
)
CALLS_PRESENT: Final = ErrorDetail(
    Code.TOOL_CALLS_PRESENT,
    "The reply calls a tool, but no tool is offered here.",
    "Answer with the JSON alone.",
)
OUTPUT_CUT: Final = ErrorDetail(
    Code.VALUE_TRUNCATED,
    "The value is incomplete: its end is missing.",
    "Answer again with all of it.",
)
_SAME_CALL: Final = "This is the same call with the same arguments for the "
_IS_ABOVE: Final = "its result is above."
_FAILED_AGAIN: Final = "has failed again in the same way."
NOTICES: Final = (
    NOT_EXECUTED,
    NOT_FINISHED,
    EMPTY_ANSWER,
    _SAME_CALL,
    _IS_ABOVE,
    _FAILED_AGAIN,
    "Make the others again in your next reply if you still need them.",
    "Your last message repeated a notice that was meant for you.",
)
"""Words of ours by which a repeated notice is known."""

_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def warn_repeated(count: int) -> str:
    """Warn that the same call was made again."""
    time = f"{_ORDINALS[count - 1]} time" if count <= len(_ORDINALS) else f"{count}th time"
    return (
        f"{_SAME_CALL}{time}. "
        "Use the result you have, change the arguments, or give your final answer: "
        "one more repetition ends the run."
    )


def warn_ignored(accepted: int, ignored: int) -> str:
    """Say that some calls were left out: they are not in the history."""
    return (
        f"Your reply had {accepted + ignored} calls; only the first {accepted} were accepted. "
        "Make the others again in your next reply if you still need them."
    )


def tell_refused(name: str) -> str:
    """Say why a call did not run that was refused again and again."""
    return f"The arguments for {clip(name, 64)!r} were never right."


def tell_not_called(reason: str) -> str:
    """Return what a model reads whose attempt at a call could not be read, and how to call."""
    return (
        f"{NOT_EXECUTED} {reason}\n\nTo use a tool, make a tool call in the way that tools were "
        "offered to you, and not as a part of your text. If no tool is needed, answer the user now."
    )


def tell_not_finished(missing: Sequence[str], steps: Sequence[str], request: str) -> str:
    """Ask a model to go on with what is missing, and repeat what the user wants."""
    why = "No tool has been called yet, and the task needs one."
    if missing:
        has = "has" if len(missing) == 1 else "have"
        why = f"{_join(missing, 'and')} {has} not succeeded yet, so it is too early for an answer."
    return f"{NOT_FINISHED} {why} Call {_join(steps, 'or')} now.\n\n{repeat_request(request)}"


def warn_same_read(name: str, steps: Sequence[str]) -> str:
    """Say that a result was there before, and what to do with it."""
    return f"You made this call before, and this is the result you got then. {_go_on(name, steps)}"


def tell_same_read(call: ToolCall, steps: Sequence[str]) -> str:
    """Say that a call was made before, where its result is, and what to do with it."""
    made = f"You have already called {call.name} with {_show_arguments(call)}; {_IS_ABOVE}"
    return f"{made} {_go_on(call.name, steps)}"


def tell_same_failure(call: ToolCall, errors: Iterable[ErrorDetail]) -> str:
    """Say that a call failed again, why, and that only another one can succeed."""
    why = " ".join(_describe_error(error) for error in errors)
    made = f"{call.name} with {_show_arguments(call)} {_FAILED_AGAIN}"
    return f"{made} {why} Call it with other arguments; leave out what you do not know."


def _go_on(name: str, steps: Sequence[str]) -> str:
    others = [f"{step} with other arguments" if step == name else step for step in steps]
    return f"Take from it what the next step needs: call {_join(others, 'or')}."


def _show_arguments(call: ToolCall) -> str:
    return clip(encode_text(call.arguments or {}), _MAX_REQUEST_CHARS)


def explain_not_ready(name: str, waiting: Sequence[str], *, is_unfit: bool) -> ErrorDetail:
    """Explain why a tool that exists cannot be called now."""
    if is_unfit:
        return DOES_NOT_FIT
    if not waiting:
        message = f"{name} is not available yet; it was not run."
        return ErrorDetail(Code.TOOL_NOT_READY, message, "Use the other tools first.")
    needed = _join(waiting, "and")
    return ErrorDetail(
        Code.TOOL_NOT_READY,
        f"{name} cannot be called before {needed} has succeeded; it was not run.",
        f"Call {waiting[0]} first, wait for its result, then call {name}.",
    )


def _join(names: Sequence[str], word: str) -> str:
    if len(names) < 2:
        return "".join(names) or "a tool"
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def note_not_executed(content: str, reason: str) -> str:
    """Return an answer with the note that no tool was executed."""
    before = f"{content.rstrip()}\n\n" if content.strip() else ""
    return f"{before}[tool not executed: {reason}]"


def explain_output(instructions: str, schema: dict[str, Any], *, shows_schema: bool) -> str:
    """Tell a model which value to answer with."""
    parts = [instructions] if instructions else []
    if shows_schema:
        parts.append(
            "Answer with one JSON object that fits this JSON schema, and with nothing around it:\n"
            f"{encode_text(schema)}"
        )
    else:
        parts.append("Answer with one JSON object that fits the schema, and nothing around it.")
    return "\n\n".join(parts)


def tell_output_errors(errors: Iterable[ErrorDetail]) -> str:
    """Tell a model what was wrong with the value it answered with."""
    lines = [f"- {_describe_error(error)}" for error in errors]
    return (
        "Your last answer could not be used:\n"
        + "\n".join(lines)
        + "\n\nAnswer again with the whole JSON object, corrected, and with nothing around it."
    )


def value_not_usable(reason: str) -> str:
    """Say that a type refused a value that fits its schema."""
    return f"The value cannot be used: {reason}"


def value_needs_rule(rule: str) -> str:
    """Say that a value was readable only by a rule that is switched off."""
    return f"The value can be read only with the rule {rule}, which is switched off."


def _describe_error(error: ErrorDetail) -> str:
    place = f"{error.path}: " if error.path else ""
    hint = f" {error.hint}" if error.hint else ""
    return f"{error.code}: {place}{error.message}{hint}"
