"""Histories that every provider accepts: each call has its result, and no result is without one."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from surecall.base.errors import Code, RequestError
from surecall.base.records import Message, ToolResult, as_run
from surecall.exchange.wording import NO_RESULT
from surecall.text import encode_text
from surecall.tools.feedback import CHECK_STATE
from surecall.wire.chat_completions import parse_history_message


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
                    f"Message {index} answers the call {message.tool_call_id!r}, "
                    "which was not made just before it or is answered already.",
                    hint="Put each tool message directly after the assistant message "
                    "whose call it answers.",
                )
        else:
            complete.extend(_missing_results(waiting))
            waiting = {call.id: call.name for call in message.tool_calls}
            if len(waiting) < len(message.tool_calls):
                raise RequestError(
                    Code.INVALID_MESSAGE,
                    f"two calls of message {index} have the same id.",
                    hint="Give every call its own id.",
                )
        complete.append(message)
    complete.extend(_missing_results(waiting))
    return tuple(complete)


def answer_calls(results: Iterable[ToolResult]) -> tuple[Message, ...]:
    """Return the messages in which a model reads the results of its calls."""
    return tuple(
        Message(
            "tool",
            result.text,
            tool_call_id=result.call_id,
            extra={} if result.ok else {"is_error": True},
        )
        for result in results
    )


def show_edits(history: tuple[Message, ...], results: Sequence[ToolResult]) -> tuple[Message, ...]:
    """Return a history whose last calls have the arguments that they ran with."""
    if all(result.arguments is None for result in results):
        return history
    *before, message = history
    return (*before, replace(message, tool_calls=as_run(message.tool_calls, results)))


def _missing_results(waiting: dict[str, str]) -> Iterator[Message]:
    error = {"code": str(Code.OUTCOME_UNKNOWN), "message": NO_RESULT, "hint": CHECK_STATE}
    for call_id, name in waiting.items():
        envelope = {"ok": False, "tool_name": name, "errors": [error]}
        yield Message("tool", encode_text(envelope), tool_call_id=call_id)
