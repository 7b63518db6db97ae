"""What a model reads from the loop: warnings, notices, and the refusals that the loop makes."""

from typing import Final

from surecall.errors import Code
from surecall.records import ErrorDetail

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
_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def warn_repeated(count: int) -> str:
    """Warn that the same call was made again."""
    time = f"{_ORDINALS[count - 1]} time" if count <= len(_ORDINALS) else f"{count}th time"
    return (
        f"This is the same call with the same arguments for the {time}. "
        "Use the result you have, change the arguments, or give your final answer: "
        "one more repetition ends the run."
    )


def warn_ignored(accepted: int, ignored: int) -> str:
    """Say that some calls were left out: they are not in the history."""
    return (
        f"Your reply had {accepted + ignored} calls; only the first {accepted} were accepted. "
        "Make the others again in your next reply if you still need them."
    )


def note_not_executed(content: str, reason: str) -> str:
    """Return an answer with the note that no tool was executed."""
    return f"{content.rstrip()}\n\n[tool not executed: {reason}]"
