"""A history as the turns that the format accepts, whatever order its messages have.

- The user begins, and the two sides take turns: neighbours of one side are joined.
- An assistant's turn has its thoughts first, then its text, then its calls.
- The user's turn after calls begins with one result for each of them, and no other results.
- No text is blank, and the last text does not end in space when the assistant is to go on.

What must be added is added openly: a call without a result gets one that says so, a result
without its call becomes text, and before an assistant who begins stands `(continued)`.
"""

from collections.abc import Container
from typing import Any, Final, Literal, cast

from surecall.errors import Code, RequestError
from surecall.protocols.call_ids import CallIds
from surecall.protocols.standins import stand_in_arguments, stand_in_name
from surecall.records import Message, ToolCall

from .blocks import plain_text, render_parts
from .wire_ids import wire_id

__all__ = ["MAX_NAME_CHARS", "render_turns"]

MAX_NAME_CHARS: Final = 128

_CONTINUED: Final = "(continued)"
_NO_RESULT: Final = "No result of this call was recorded; it may or may not have run."
_LOST_CALL: Final = "[The result of a call that is not part of this conversation any more:]"
_CALL_FIELDS: Final = ("cache_control", "caller", "toolset_name")


def render_turns(
    messages: tuple[Message, ...], offered: Container[str] = ()
) -> list[dict[str, Any]]:
    """Render messages as alternating turns.

    Args:
        messages: The messages.
        offered: Names of the tools of the same request, which calls keep as they are.

    Raises:
        RequestError: `INVALID_MESSAGE`, when no message says anything.
    """
    turns = _Turns(offered)
    for message in messages:
        if message.role == "assistant":
            turns.add_assistant(message)
        elif message.role == "tool":
            turns.add_result(message)
        else:
            turns.add_user(render_parts(message.content, "user"))
    return turns.render()


class _Turn:
    def __init__(self, role: Literal["user", "assistant"]) -> None:
        self.role = role
        self.first: list[dict[str, Any]] = []
        """Thoughts of the assistant, results of the user."""
        self.words: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []

    def render(self) -> dict[str, Any]:
        blocks = [*self.first, *self.words, *self.calls]
        text = plain_text(blocks)
        return {"role": self.role, "content": blocks if text is None else text}


class _Turns:
    def __init__(self, offered: Container[str]) -> None:
        self._offered = offered
        self._turns: list[_Turn] = []
        self._ids = CallIds(wire_id)
        self._waiting: dict[str, list[str]] = {}
        """Calls of the last assistant turn without a result: their ids in records and here."""

    def add_user(self, blocks: list[dict[str, Any]]) -> None:
        if blocks:
            self._turn("user").words += blocks

    def add_assistant(self, message: Message) -> None:
        words = render_parts(message.content, "assistant")
        if not words and not message.tool_calls:
            return  # thoughts alone are refused
        if self._turns and self._turns[-1].role == "user":
            self._settle()
        turn = self._turn("assistant")
        turn.first += _thoughts(message)
        turn.words += words
        for call in message.tool_calls:
            call_id = self._ids.assign(call.id)
            self._waiting.setdefault(call.id, []).append(call_id)
            turn.calls.append(_render_call(call, call_id, self._offered))

    def add_result(self, message: Message) -> None:
        waiting = self._waiting.get(message.tool_call_id or "")
        blocks = render_parts(message.content, "tool" if waiting else "user")
        if not waiting:
            self.add_user([{"type": "text", "text": _LOST_CALL}, *blocks])
            return
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": waiting.pop(0)}
        if blocks:
            text = plain_text(blocks)
            result["content"] = blocks if text is None else text
        if message.extra.get("is_error") is True:
            result["is_error"] = True
        self._turn("user").first.append(result)

    def render(self) -> list[dict[str, Any]]:
        self._settle()
        if not self._turns:
            raise RequestError(
                Code.INVALID_MESSAGE,
                "No message of the request says anything.",
                hint="Send at least one message with text.",
            )
        if self._turns[0].role == "assistant":
            self._turns.insert(0, _Turn("user"))
            self._turns[0].words.append({"type": "text", "text": _CONTINUED})
        last = self._turns[-1]
        if last.role == "assistant" and last.words and last.words[-1]["type"] == "text":
            block = last.words[-1]
            last.words[-1] = {**block, "text": block["text"].rstrip()}
        return [turn.render() for turn in self._turns]

    def _turn(self, role: Literal["user", "assistant"]) -> _Turn:
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(_Turn(role))
        return self._turns[-1]

    def _settle(self) -> None:
        """Answer the calls that are still waiting; their results cannot come any more."""
        for call_id in [item for items in self._waiting.values() for item in items]:
            result = {"type": "tool_result", "tool_use_id": call_id, "content": _NO_RESULT}
            self._turn("user").first.append({**result, "is_error": True})
        self._waiting.clear()


def _render_call(call: ToolCall, call_id: str, offered: Container[str]) -> dict[str, Any]:
    arguments = call.arguments
    return {
        "type": "tool_use",
        "id": call_id,
        "name": stand_in_name(call.name, MAX_NAME_CHARS, offered),
        "input": stand_in_arguments(call.raw) if arguments is None else arguments,
        **{key: call.extra[key] for key in _CALL_FIELDS if call.extra.get(key) is not None},
    }


def _thoughts(message: Message) -> list[dict[str, Any]]:
    """Return the thoughts to send back as they came; without a signature none is accepted."""
    blocks: Any = message.extra.get("thinking_blocks")
    return [
        dict(cast("dict[str, Any]", block))
        for block in cast("list[Any]", blocks if isinstance(blocks, list | tuple) else ())
        if isinstance(block, dict) and _is_thought(cast("dict[str, Any]", block))
    ]


def _is_thought(block: dict[str, Any]) -> bool:
    if block.get("type") == "redacted_thinking":
        return isinstance(block.get("data"), str)
    return (
        block.get("type") == "thinking"
        and isinstance(block.get("thinking"), str)
        and isinstance(block.get("signature"), str)
    )
