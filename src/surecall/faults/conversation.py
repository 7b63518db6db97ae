"""A conversation as an oracle sees it: requests, calls and answers so far, and the next step."""

from itertools import takewhile
from typing import Any, Protocol

from msgspec import Struct

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message, ModelRequest, ToolCall

from .toml_files import parse_fields


class PlannedCall(Struct, frozen=True):
    """One correct call."""

    name: str
    arguments: dict[str, Any] = {}


class CallTools(Struct, frozen=True):
    """Call these tools, in one reply."""

    calls: tuple[PlannedCall, ...]


class Say(Struct, frozen=True):
    """Answer with this text."""

    text: str


Action = CallTools | Say
"""The next step of a model: call tools, or say something."""


class Oracle(Protocol):
    """Knows what would be right in some conversations."""

    def next_action(self, request: ModelRequest) -> Action | None:
        """Return the right next step, or `None` when this conversation is not its business."""
        ...


class Answered(Struct, frozen=True):
    """A call with the result that the client sent for it."""

    call: ToolCall
    ok: bool
    text: str
    errors: tuple[dict[str, Any], ...] = ()
    """The errors in the result, when it is an envelope."""

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the errors."""
        return frozenset(str(error.get("code")) for error in self.errors)


def answered_calls(request: ModelRequest) -> list[Answered]:
    """Return every call of the conversation that has a result, in order."""
    calls: dict[str, ToolCall] = {}
    found: list[Answered] = []
    for message in request.messages:
        calls |= {call.id: call for call in message.tool_calls}
        call = calls.get(message.tool_call_id or "") if message.role == "tool" else None
        if call is not None:
            found.append(_match_result(call, message))
    return found


def last_results(request: ModelRequest) -> list[Answered]:
    """Return the results that came in since the model last spoke."""
    since = takewhile(lambda message: message.role != "assistant", reversed(request.messages))
    fresh = {message.tool_call_id for message in since if message.role == "tool"}
    return [item for item in answered_calls(request) if item.call.id in fresh]


def errors_in_a_row(request: ModelRequest) -> int:
    """Count the failed results after the last success."""
    failed = takewhile(lambda item: not item.ok, reversed(answered_calls(request)))
    return sum(1 for _ in failed)


def last_user_text(request: ModelRequest) -> str:
    """Return the text of the last message of the user."""
    texts = (message.text for message in reversed(request.messages) if message.role == "user")
    return next(texts, "")


def system_text(request: ModelRequest) -> str:
    """Return all system text."""
    return "\n".join(
        message.text for message in request.messages if message.role in {"system", "developer"}
    )


def _match_result(call: ToolCall, message: Message) -> Answered:
    text = message.text
    fields = parse_fields(text) or {}
    found = as_list(fields.get("errors"))
    errors = tuple(as_fields(item) for item in found if isinstance(item, dict))
    failed = (
        fields.get("ok") is False
        or bool(fields.get("error"))
        or message.extra.get("is_error") is True
        or text.lower().startswith("error")
    )
    return Answered(call, not failed, text, errors)
