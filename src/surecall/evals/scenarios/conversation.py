"""What happened so far, and what a model that makes no mistakes does next."""

from itertools import groupby
from typing import Any, Final

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields
from surecall.base.records import Message, ModelRequest, ToolCall
from surecall.evals.as_made import MadeCall
from surecall.evals.cases import Ideal, IdealCall
from surecall.text import decode

from .scene import FOO

_ID: Final = "workspace_id="


class Calls:
    """Calls in order, as verdicts and ideal models look at them."""

    calls: tuple[MadeCall, ...]

    def calls_of(self, name: str) -> list[MadeCall]:
        """Return the calls of one tool, in order."""
        return [made for made in self.calls if made.name == name]

    @property
    def replies(self) -> list[list[MadeCall]]:
        """The calls of each reply that had any."""
        return [list(calls) for _, calls in groupby(self.calls, lambda made: made.turn)]


class Conversation(Calls):
    """A request, as a model that makes no mistakes reads it."""

    def __init__(self, request: ModelRequest) -> None:
        self.offered = frozenset(tool.name for tool in request.tools)
        self.calls = tuple(_list_answered(request.messages))
        self.user_text = "\n".join(
            message.text for message in request.messages if message.role == "user"
        )

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
            snapshot = as_fields(call.data.get("snapshot"))
            if pointer in snapshot:
                return snapshot[pointer]
            found: Any = snapshot
            for part in parts:
                found = as_fields(found).get(part)
            if found is not None:
                return found
        return None

    def has_set(self, value: Any) -> bool:
        """Whether `/draft/foo` was set to the value, or was seen to hold it."""
        patches = [made for made in self.calls_of("state_patch") if made.ran]
        if any(item.get("value") == value for made in patches for item in made.operations):
            return True
        return self.read("draft", "foo") == value


def _list_answered(messages: tuple[Message, ...]) -> list[MadeCall]:
    waiting: dict[str, ToolCall] = {}
    answered: list[MadeCall] = []
    replies = 0
    for message in messages:
        replies += bool(message.tool_calls)
        waiting.update((call.id, call) for call in message.tool_calls)
        call = waiting.pop(message.tool_call_id or "", None) if message.role == "tool" else None
        if call is None:
            continue
        envelope = _read_object(message.text)
        errors: Any = envelope.get("errors")
        codes = (as_fields(error).get("code") for error in errors or ())
        answered.append(
            MadeCall(
                name=call.name,
                arguments=call.arguments or {},
                ok=envelope.get("ok") is True,
                codes=frozenset(str(code) for code in codes),
                data=as_fields(envelope.get("data")),
                turn=replies,
            )
        )
    return answered


def _read_object(text: str) -> dict[str, Any]:
    try:
        return as_fields(decode(text))
    except JSONTextError:
        return {}


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
