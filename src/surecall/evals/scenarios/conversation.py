"""What a model can see in a request: what it called, and what came of it."""

from itertools import groupby
from typing import Any, Final, cast

from msgspec import Struct

from surecall.errors import Code, JSONTextError
from surecall.jsontext import decode
from surecall.records import Message, ModelRequest, ToolCall

__all__ = ["AnsweredCall", "Conversation"]

_ID: Final = "workspace_id="
_RAN_ANYWAY: Final = frozenset({Code.TOOL_OUTPUT_TOO_LARGE, Code.TOOL_OUTPUT_SERIALIZATION_ERROR})


class AnsweredCall(Struct, frozen=True, kw_only=True):
    """A call with the result that was sent for it."""

    name: str
    arguments: dict[str, Any]
    ok: bool
    codes: frozenset[str]
    data: dict[str, Any]
    reply: int
    """Which reply of the conversation it came in."""

    @property
    def ran(self) -> bool:
        """Whether the tool did its work, also when its answer could not be shown."""
        return self.ok or bool(self.codes & _RAN_ANYWAY)

    @property
    def values(self) -> list[Any]:
        """The values of a patch's operations."""
        operations: Any = self.arguments.get("ops")
        items = cast("list[Any]", operations) if isinstance(operations, list) else []
        return [_object(item).get("value") for item in items]


class Conversation:
    """A request, as a model that makes no mistakes reads it."""

    def __init__(self, request: ModelRequest) -> None:
        self.offered = frozenset(tool.name for tool in request.tools)
        self.calls = tuple(_answered(request.messages))
        self.user_text = "\n".join(
            message.text for message in request.messages if message.role == "user"
        )

    def calls_of(self, name: str) -> list[AnsweredCall]:
        """Return the calls of one tool, in order."""
        return [call for call in self.calls if call.name == name]

    @property
    def replies(self) -> list[list[AnsweredCall]]:
        """The calls, reply by reply."""
        return [list(calls) for _, calls in groupby(self.calls, lambda call: call.reply)]

    @property
    def workspace_id(self) -> str:
        """The id that the user named, or nothing."""
        words = self.user_text.partition(_ID)[2].split(maxsplit=1)
        return words[0] if words else ""

    @property
    def has_read(self) -> bool:
        """Whether the workspace was read, even if the answer was too large to be shown."""
        return any(call.ran for call in self.calls_of("state_get"))

    def read(self, *parts: str) -> Any:
        """Return what the last read that shows this path has there, or `None`."""
        pointer = "/" + "/".join(parts)
        for call in reversed(self.calls_of("state_get")):
            snapshot = _object(call.data.get("snapshot"))
            if pointer in snapshot:
                return snapshot[pointer]
            found: Any = snapshot
            for part in parts:
                found = _object(found).get(part)
            if found is not None:
                return found
        return None

    def has_set(self, value: Any) -> bool:
        """Whether `/draft/foo` was set to the value, or was seen to hold it."""
        if any(call.ran and value in call.values for call in self.calls_of("state_patch")):
            return True
        return self.read("draft", "foo") == value


def _answered(messages: tuple[Message, ...]) -> list[AnsweredCall]:
    waiting: dict[str, ToolCall] = {}
    answered: list[AnsweredCall] = []
    replies = 0
    for message in messages:
        replies += bool(message.tool_calls)
        waiting.update((call.id, call) for call in message.tool_calls)
        call = waiting.pop(message.tool_call_id or "", None) if message.role == "tool" else None
        if call is None:
            continue
        envelope = _decoded(message.text)
        errors: Any = envelope.get("errors")
        codes = (_object(error).get("code") for error in errors or ())
        answered.append(
            AnsweredCall(
                name=call.name,
                arguments=call.arguments or {},
                ok=envelope.get("ok") is True,
                codes=frozenset(str(code) for code in codes),
                data=_object(envelope.get("data")),
                reply=replies,
            )
        )
    return answered


def _decoded(text: str) -> dict[str, Any]:
    try:
        return _object(decode(text))
    except JSONTextError:
        return {}


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
