"""What happened so far, and what a model that makes no mistakes does next."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final, cast

from msgspec import Struct

from surecall.errors import Code, JSONTextError
from surecall.evals.cases import Attempt, Ideal, IdealCall
from surecall.jsontext import decode
from surecall.loop import TurnTrace
from surecall.narrow import as_fields, as_list
from surecall.records import Message, ModelRequest, ToolCall, ToolResult

from .scene import FOO, Scene

_ID: Final = "workspace_id="
_RAN_ANYWAY: Final = frozenset({Code.TOOL_OUTPUT_TOO_LARGE, Code.TOOL_OUTPUT_SERIALIZATION_ERROR})


class SeenCall(Struct, frozen=True, kw_only=True):
    """A call with what became of it."""

    turn: int
    """Which turn of the run, or reply of the conversation, it came in."""
    name: str
    """The tool that it was taken for."""
    arguments: dict[str, Any]
    """Empty when they could not be read."""
    ok: bool
    codes: frozenset[str]
    """The codes of the errors in its result."""
    data: dict[str, Any] = {}
    executed: bool = False
    """Whether the tool's own code ran, where a trace says so."""
    is_cut: bool = False

    @property
    def ran(self) -> bool:
        """Whether the tool did its work, also when its answer could not be shown."""
        return self.ok or bool(self.codes & _RAN_ANYWAY)

    @property
    def operations(self) -> list[dict[str, Any]]:
        """The operations of a patch, as far as they are objects."""
        found = as_list(self.arguments.get("ops"))
        return [as_fields(item) for item in found if isinstance(item, dict)]


class Calls:
    """Calls in order, as verdicts and ideal models look at them."""

    calls: tuple[SeenCall, ...]

    def calls_of(self, name: str) -> list[SeenCall]:
        """Return the calls of one tool, in order."""
        return [made for made in self.calls if made.name == name]

    @property
    def replies(self) -> list[list[SeenCall]]:
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


def _list_answered(messages: tuple[Message, ...]) -> list[SeenCall]:
    waiting: dict[str, ToolCall] = {}
    answered: list[SeenCall] = []
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
            SeenCall(
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


_LIMIT_REASONS: Final = frozenset({"length", "max_tokens", "model_length"})
_DONE: Final = frozenset({"done", "done.", "done!"})
_QUOTES: Final = "\"'` \t\r\n"
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


class Evidence(Calls):
    """An attempt with everything that verdicts ask about."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.scene = cast("Scene", attempt.prepared.state)
        self.error = attempt.error
        self.text = attempt.text
        self.turns = attempt.turns
        self.calls = tuple(_see_call(*made) for made in attempt.calls)
        self.ignored = tuple(call for turn in self.turns for call in turn.ignored_calls)

    def met(self, name: str, *codes: str) -> int | None:
        """Return the place of the first call of a tool that failed with one of the codes."""
        for place, made in enumerate(self.calls):
            if made.name == name and any(code in made.codes for code in codes):
                return place
        return None

    def succeeded_after(self, name: str, place: int) -> bool:
        """Tell whether a call of the tool succeeded after a place."""
        return any(made.ok and made.name == name for made in self.calls[place + 1 :])

    @property
    def is_cut(self) -> bool:
        """Whether a token limit ended the last reply, or a call that was not made up for."""
        limited = {turn.turn for turn in self.turns if _hit_limit(turn)}
        if self.turns and self.turns[-1].turn in limited:
            return True
        last = {made.name: made for made in self.calls}
        return any(made.is_cut and made.turn in limited for made in last.values())


def _see_call(turn: TurnTrace, call: ToolCall, result: ToolResult | None) -> SeenCall:
    return SeenCall(
        turn=turn.turn,
        name=call.name if result is None else result.name,
        arguments=call.arguments or {},
        ok=result is not None and result.ok,
        codes=frozenset(() if result is None else result.envelope.error_codes),
        executed=result is not None and result.executed,
        is_cut=call.state == "cut",
    )


def is_done(text: str) -> bool:
    """Tell whether a text is the one-word answer, whatever quotes are around it."""
    return text.strip(_QUOTES).lower() in _DONE


def shows_call(text: str, tool_names: Iterable[str]) -> bool:
    """Tell whether a text for the user shows how a call is written, or names a tool."""
    lowered = text.lower()
    return any(mark in lowered for mark in _CALL_MARKS) or any(name in text for name in tool_names)


def _hit_limit(turn: TurnTrace) -> bool:
    summary = turn.response_summary
    return summary is not None and (summary.finish_reason or "").lower() in _LIMIT_REASONS
