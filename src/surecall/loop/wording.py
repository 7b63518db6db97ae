"""What a model reads from the loop: warnings, notices, and the refusals that the loop makes."""

from collections.abc import Iterable
from typing import Final

from surecall.errors import Code
from surecall.records import ErrorDetail, Message

EMPTY_FINAL_TEXT: Final = "Please give your final answer to the user now, as plain text."
FROM_SYSTEM: Final = "[System message:]"
NO_RESULT: Final = "No result of this call was recorded; it may or may not have run."
INTERRUPTED: Final = (
    "The run was interrupted while this call was running; it may or may not have taken effect."
)
CHECK_STATE: Final = "Check the state before you repeat it."
HELD_SECRET: Final = ErrorDetail(
    Code.ARGUMENTS_HOLD_SECRET,
    "The arguments held a key of this program, which was taken out; nothing was run.",
    "Make the call without the key.",
)
NOT_EXECUTED: Final = "[tool not executed]"
"""How a message begins that tells a model that what it wrote was not read as a call."""
MALFORMED: Final = "The provider could not read the call that the model wrote."
ECHO_TEXT: Final = (
    "Your last message repeated a notice that was meant for you. "
    "Answer the user in your own words, or call a tool."
)
_SAME_CALL: Final = "This is the same call with the same arguments for the "
_OWN_WORDS: Final = (
    NOT_EXECUTED,
    EMPTY_FINAL_TEXT,
    _SAME_CALL,
    "Make the others again in your next reply if you still need them.",
    "Your last message repeated a notice that was meant for you.",
)
"""Words of ours by which a repeated notice is known."""

OWN_NOTICES: Final = (
    *_OWN_WORDS,
    "[tool not executed",
    NO_RESULT,
    INTERRUPTED,
    CHECK_STATE,
    HELD_SECRET.message,
    MALFORMED,
    "Use the result you have, change the arguments, or give your final answer",
    "To use a tool, make a tool call in the way that tools were offered to you",
)
"""Everything that is written for a model only; no user should read it."""
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
