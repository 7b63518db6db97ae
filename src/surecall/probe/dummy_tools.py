"""Harmless tools to offer, and the words that ask for them."""

from typing import Any, Final

from surecall.records import Message, ToolSpec

__all__ = [
    "CALL_NAMED",
    "CALL_TWICE",
    "CALL_UNNAMED",
    "ECHO",
    "NOTE",
    "ONE_CODE",
    "PICK",
    "PING",
    "PLAIN",
    "user",
]

_TEXT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
ONE_CODE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"code": {"type": "string", "enum": ["Q7"]}},
    "required": ["code"],
    "additionalProperties": False,
}
"""A schema that only one object fits."""

ECHO: Final = ToolSpec(
    name="surecall_probe_echo",
    description="Returns the text it is given and changes nothing.",
    parameters=_TEXT,
    effect="read",
)
NOTE: Final = ToolSpec(
    name="surecall_probe_note",
    description="Returns how long a text is and changes nothing.",
    parameters=_TEXT,
    effect="read",
)
PING: Final = ToolSpec(
    name="surecall_probe_ping",
    description="Takes no arguments and changes nothing.",
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
    effect="read",
)
PICK: Final = ToolSpec(
    name="surecall_probe_pick",
    description="Takes a code and changes nothing.",
    parameters=ONE_CODE,
    effect="read",
)

# The first text names neither the tool nor its parameter: a call that has both right proves that
# the model saw the definition.
CALL_UNNAMED: Final = (
    'You have been given one tool. Call it now with the text "ping". Do not answer in words.'
)
CALL_NAMED: Final = f'Call the tool {ECHO.name} now with the text "ping". Do not answer in words.'
CALL_TWICE: Final = (
    f"Call the tool {ECHO.name} two times in this one reply: "
    'once with the text "one" and once with the text "two". Do not answer in words.'
)
PLAIN: Final = "Answer with the single word: ready"


def user(text: str) -> tuple[Message, ...]:
    """Return a conversation that consists of one question."""
    return (Message("user", text),)
