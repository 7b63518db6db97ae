"""Sentences that the instructions of several scenarios share."""

from typing import Final

__all__ = [
    "ANSWER",
    "ARGUMENTS",
    "INTRO",
    "NO_COMMIT",
    "ONE_BY_ONE",
    "ON_ERROR",
    "PATCH",
    "READ_FIRST",
    "instructions",
]

INTRO: Final = "You look after a small workspace and work on it only through tools."
READ_FIRST: Final = "Step 1: call state_get to see what is there."
PATCH: Final = (
    "Step 2: call state_patch to set /draft/foo to the string bar. "
    "This value has been approved already, so do not ask about it. Leave everything else as it is."
)
ONE_BY_ONE: Final = "Make a single call in each reply and wait for its result."
ON_ERROR: Final = (
    'A result with "ok": false did not work; its errors say why. Correct the call and repeat it.'
)
NO_COMMIT: Final = "You have no tool named facts_commit."
ANSWER: Final = (
    "When state_patch has succeeded, and not earlier, your whole answer is this one word: Done."
)
ARGUMENTS: Final = (
    'Arguments of state_get: {"workspace_id": "<id>"}\n'
    'Arguments of state_patch: {"workspace_id": "<id>", "request_id": "r1", '
    '"ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}\n'
    "The user's message gives you the id."
)


def instructions(*parts: str) -> str:
    """Join sentences to a system text, one a line."""
    return "\n".join(parts)
