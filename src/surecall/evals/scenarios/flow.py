"""What a model that makes no mistakes does with a workspace: read, patch, answer."""

from typing import Any, Final

from surecall.evals.cases import Ideal, IdealCall

from .conversation import Conversation
from .scene import FOO

__all__ = [
    "DONE",
    "GAVE_UP",
    "call",
    "patch_call",
    "patch_with",
    "read_call",
    "read_patch_answer",
    "say",
]

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
