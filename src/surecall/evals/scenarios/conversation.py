"""What happened so far, and what a model that makes no mistakes does next."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final, cast

from msgspec import Struct

from surecall.errors import Code, JSONTextError
from surecall.evals.cases import Attempt, Ideal, IdealCall
from surecall.jsontext import decode
from surecall.loop import TurnTrace
from surecall.records import Message, ModelRequest, ToolCall, ToolResult

from .scene import FOO, Scene

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
        return [_object(item).get("value") for item in _list(self.arguments.get("ops"))]


class Conversation:
    """A request, as a model that makes no mistakes reads it."""

    def __init__(self, request: ModelRequest) -> None:
        self.offered = frozenset(tool.name for tool in request.tools)
        self.calls = tuple(_list_answered(request.messages))
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


def _list_answered(messages: tuple[Message, ...]) -> list[AnsweredCall]:
    waiting: dict[str, ToolCall] = {}
    answered: list[AnsweredCall] = []
    replies = 0
    for message in messages:
        replies += bool(message.tool_calls)
        waiting.update((call.id, call) for call in message.tool_calls)
        call = waiting.pop(message.tool_call_id or "", None) if message.role == "tool" else None
        if call is None:
            continue
        envelope = _read_object(message.text)
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


def _read_object(text: str) -> dict[str, Any]:
    try:
        return _object(decode(text))
    except JSONTextError:
        return {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


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


class MadeCall(Struct, frozen=True):
    """A call that was accepted, and its result."""

    turn: int
    call: ToolCall
    result: ToolResult | None

    @property
    def name(self) -> str:
        """The tool that it was taken for."""
        return self.call.name if self.result is None else self.result.name

    @property
    def arguments(self) -> dict[str, Any]:
        """Its arguments; empty when they could not be read."""
        return self.call.arguments or {}

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.result is not None and self.result.ok

    @property
    def executed(self) -> bool:
        """Whether the tool's own code ran."""
        return self.result is not None and self.result.executed

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the errors in its result."""
        return () if self.result is None else self.result.envelope.error_codes

    @property
    def operations(self) -> list[dict[str, Any]]:
        """The operations of a patch, as far as they are objects."""
        return [
            _object(item) for item in _list(self.arguments.get("ops")) if isinstance(item, dict)
        ]


class Evidence:
    """An attempt with everything that verdicts ask about."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.scene = cast("Scene", attempt.prepared.state)
        self.error = attempt.error
        self.text = attempt.text
        self.turns = attempt.turns
        self.calls = tuple(
            MadeCall(turn.turn, call, result) for turn, call, result in attempt.calls
        )
        self.ignored = tuple(call for turn in self.turns for call in turn.ignored_calls)

    def calls_of(self, name: str) -> list[MadeCall]:
        """Return the accepted calls of one tool, in order."""
        return [made for made in self.calls if made.name == name]

    @property
    def replies(self) -> list[list[MadeCall]]:
        """The accepted calls of each reply that had any."""
        return [list(calls) for _, calls in groupby(self.calls, lambda made: made.turn)]

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
        return any(made.call.state == "cut" and made.turn in limited for made in last.values())


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
