"""What happened so far, and what a model that makes no mistakes does next."""

from itertools import groupby
from typing import Any, Final, cast

from msgspec import Struct

from surecall.errors import Code, JSONTextError
from surecall.evals.cases import Ideal, IdealCall
from surecall.jsontext import decode
from surecall.records import Message, ModelRequest, ToolCall

from .scene import FOO

__all__ = [
    "DONE",
    "GAVE_UP",
    "AnsweredCall",
    "Conversation",
    "call",
    "patch_call",
    "patch_with",
    "read_call",
    "read_patch_answer",
    "say",
]

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


DONE: Final = "Done."
GAVE_UP: Final = "I could not finish this."


def say(text: str = DONE) -> Ideal:
    """Answer."""
    return Ideal(text=text)


def call(*calls: IdealCall) -> Ideal:
    """Call tools, in one reply."""
    return Ideal(calls=calls)


def read_call(
    seen: Conversation, *, with_id: bool = True, select: tuple[str, ...] = ()
) -> IdealCall:
    """Read the workspace, or some of it."""
    arguments = _own_id(seen, with_id=with_id)
    if select:
        arguments["select"] = list(select)
    return IdealCall("state_get", arguments)


def patch_call(
    seen: Conversation, value: Any = "bar", *, path: str = FOO, with_id: bool = True
) -> IdealCall:
    """Set one path of the draft."""
    return patch_with(seen, [{"op": "set", "path": path, "value": value}], with_id=with_id)


def patch_with(seen: Conversation, operations: Any, *, with_id: bool = True) -> IdealCall:
    """Patch the draft with operations that may be wrong on purpose."""
    number = len(seen.calls_of("state_patch")) + 1
    arguments = _own_id(seen, with_id=with_id)
    arguments |= {"request_id": f"r{number}", "ops": operations}
    return IdealCall("state_patch", arguments)


def read_patch_answer(
    seen: Conversation, value: Any = "bar", *, with_id: bool = True, must_read: bool = True
) -> Ideal:
    """Read until it worked, patch until it worked, then answer."""
    if must_read and not seen.has_read:
        return call(read_call(seen, with_id=with_id))
    if seen.has_set(value):
        return say()
    return call(patch_call(seen, value, with_id=with_id))


def _own_id(seen: Conversation, *, with_id: bool) -> dict[str, Any]:
    return {"workspace_id": seen.workspace_id} if with_id and seen.workspace_id else {}
