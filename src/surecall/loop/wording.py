"""What a model reads from the loop: warnings, notices, and the refusals that the loop makes."""

from collections.abc import Iterable, Sequence
from typing import Final

from surecall.errors import Code
from surecall.records import ErrorDetail, Message, clip

EMPTY_FINAL_TEXT: Final = "Please give your final answer to the user now, as plain text."
FROM_SYSTEM: Final = "[System message:]"
NO_RESULT: Final = "No result of this call was recorded; it may or may not have run."
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
_SAME_CALL: Final = "This is the same call with the same arguments for the "
_OWN_WORDS: Final = (
    NOT_EXECUTED,
    NOT_FINISHED,
    EMPTY_FINAL_TEXT,
    _SAME_CALL,
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
    return (
        f"{NOT_FINISHED} {why} Call {_join(steps, 'or')} now.\n\n"
        f"The request was:\n{clip(request, _MAX_REQUEST_CHARS)}"
    )


def warn_same_read(steps: Sequence[str]) -> str:
    """Say that a result was there before, and what to do with it."""
    return (
        "You made this call before, and this is the result you got then. "
        f"Go on with the next step: call {_join(steps, 'or')}."
    )


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


def find_echo(text: str, history: Iterable[Message]) -> str | None:
    """Return the words of ours that a text repeats, if the model was sent them."""
    said = next((words for words in _OWN_WORDS if words in text), None)
    if said is None:
        return None
    sent = (message.text for message in history if message.role in ("user", "tool"))
    return said if any(said in words for words in sent) else None


def note_not_executed(content: str, reason: str) -> str:
    """Return an answer with the note that no tool was executed."""
    return f"{content.rstrip()}\n\n[tool not executed: {reason}]"
