"""Histories that every provider accepts: each call has one result, each result its call."""

from collections.abc import Iterable, Sequence
from typing import Any

from surecall.errors import Code, RequestError
from surecall.jsontext import encode_text
from surecall.protocols.chat_completions import parse_history_message
from surecall.records import Message

__all__ = ["complete_history", "parse_history"]


def parse_history(items: Iterable[Any]) -> tuple[Message, ...]:
    """Turn whatever an application keeps as history into messages."""
    return tuple(parse_history_message(item) for item in items)


def complete_history(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give every call that has no result one that says so; refuse results without a call."""
    if not any(message.tool_calls or message.role == "tool" for message in messages):
        return tuple(messages)
    complete: list[Message] = []
    waiting: dict[str, str] = {}
    for index, message in enumerate(messages):
        if message.role == "tool":
            if waiting.pop(message.tool_call_id or "", None) is None:
                raise RequestError(
                    Code.INVALID_MESSAGE,
                    f"message {index} answers the call {message.tool_call_id!r}, "
                    "which was not made just before it or is answered already.",
                    hint="Keep each tool message directly behind the assistant message "
                    "whose call it answers.",
                )
        else:
            complete.extend(_missing_results(waiting))
            waiting = {call.id: call.name for call in message.tool_calls}
            if len(waiting) < len(message.tool_calls):
                raise RequestError(
                    Code.INVALID_MESSAGE,
                    f"two calls of message {index} have the same id.",
                    hint="Give every call an id of its own.",
                )
        complete.append(message)
    complete.extend(_missing_results(waiting))
    return tuple(complete)


def _missing_results(waiting: dict[str, str]) -> list[Message]:
    return [
        Message("tool", _outcome_unknown(name), tool_call_id=call_id)
        for call_id, name in waiting.items()
    ]


def _outcome_unknown(name: str) -> str:
    error = {
        "code": str(Code.OUTCOME_UNKNOWN),
        "message": "No result of this call was recorded; it may or may not have run.",
        "hint": "Check the state before you repeat it.",
    }
    return encode_text({"ok": False, "tool_name": name, "errors": [error]})
