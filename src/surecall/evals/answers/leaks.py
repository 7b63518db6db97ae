"""What no final text may show: a call, or a notice that was written for the model."""

from collections.abc import Iterable
from typing import Final

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message
from surecall.loop.wording import OWN_NOTICES
from surecall.text import decode

from .sentences import list_sentences

_CALL_MARKS: Final = (
    "<tool_call",
    "</tool_call",
    "<function",
    "<invoke",
    "<|tool",
    "<|python_tag|>",
    "[tool_calls]",
    "functools[",
    '"tool_calls"',
    '"arguments"',
    "```tool",
)


def shows_call(text: str) -> bool:
    """Tell whether a text for the user has the marks of a call; naming a tool is none."""
    lowered = text.lower()
    return any(mark in lowered for mark in _CALL_MARKS)


_MIN_NOTICE_CHARS: Final = 18


def repeats_notice(text: str, history: Iterable[Message], given: Iterable[Message]) -> bool:
    """Tell whether a text shows the user a sentence that was meant for the model.

    Args:
        text: The final answer.
        history: The conversation as it was in the end.
        given: The conversation as it began; its texts are no notices of ours.
    """
    if len(text) < _MIN_NOTICE_CHARS:
        return False
    folded = _fold(text)
    if any(_fold(words) in folded for words in OWN_NOTICES):
        return True
    begun = {message.text for message in given}
    notices = (
        words
        for message in history
        if message.role == "tool" and message.text not in begun
        for words in _list_notices(message.text)
    )
    return any(len(words) >= _MIN_NOTICE_CHARS and _fold(words) in folded for words in notices)


def _list_notices(result: str) -> Iterable[str]:
    try:
        envelope = as_fields(decode(result))
    except JSONTextError:
        return
    for error in as_list(envelope.get("errors") or []):
        for key in ("message", "hint"):
            yield from list_sentences(str(as_fields(error).get(key) or ""))
    for warning in as_list(envelope.get("warnings") or []):
        yield from list_sentences(str(warning))


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())
