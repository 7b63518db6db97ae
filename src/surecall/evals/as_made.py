"""Calls as a model made them: run or refused, in their place or written into the text."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final
from unicodedata import normalize

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError, SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Reading, ToolCall, ToolResult, ToolSpec
from surecall.calls import ToolNames
from surecall.loop import Trace, TurnTrace
from surecall.reading import read_reply
from surecall.text import decode
from surecall.wire import WireProtocol, find_protocol

_MARKS: Final = frozenset("({[<:")
"""Without one of them no text calls anything."""
_MAX_NAME_CHARS: Final = 200
_FIELDS: Final = frozenset({"tool_calls", "function_call"})
_RAN_ANYWAY: Final = frozenset({Code.TOOL_OUTPUT_TOO_LARGE, Code.TOOL_OUTPUT_SERIALIZATION_ERROR})


def plain_name(name: str) -> str:
    """Return a name without case, marks and separators."""
    return _fold_name(name[:_MAX_NAME_CHARS])


@lru_cache(maxsize=4096)
def _fold_name(name: str) -> str:
    return "".join(char for char in normalize("NFKC", name).casefold() if char.isalnum())


def is_same_name(name: str, other: str) -> bool:
    """Tell whether two names are one, spelled differently."""
    return name == other or plain_name(name) == plain_name(other)


def find_text_calls(text: str, tools: Iterable[ToolSpec]) -> tuple[ToolCall, ...]:
    """Return the calls that a text makes, whether anybody reads them there or not."""
    reading = _read_text(text, ToolNames(tools))
    return () if reading is None else reading.calls


def _read_text(text: str, names: ToolNames) -> Reading | None:
    if not _MARKS.intersection(text):
        return None
    try:
        return read_reply({"role": "assistant", "content": text}, tools=names, accept="likely")
    except SurecallError:
        return None


class MadeCall(Struct, frozen=True, kw_only=True):
    """A call with what became of it."""

    turn: int
    """Which turn of the run, or reply of the conversation, it came in."""
    name: str
    """The tool that it was taken for."""
    arguments: dict[str, Any]
    """As the model meant them, also where they were refused; empty when nobody can read them."""
    is_usable: bool = True
    """Whether the loop could use the arguments."""
    ok: bool = False
    codes: frozenset[str] = frozenset()
    """The codes of the errors in its result."""
    data: dict[str, Any] = {}
    executed: bool = False
    """Whether the tool's own code ran, where a trace says so."""
    is_cut: bool = False
    raw: str = ""
    """The arguments as they arrived."""
    is_text: bool = False
    """Whether it was written into the text."""
    is_unread: bool = False
    """Whether it was made, and neither run nor refused."""

    @property
    def ran(self) -> bool:
        """Whether the tool did its work, also when its answer could not be shown."""
        return self.ok or bool(self.codes & _RAN_ANYWAY)

    @property
    def operations(self) -> list[dict[str, Any]]:
        """The operations of a patch, as far as they are objects."""
        found = self.arguments.get("ops")
        items = as_list(found) if isinstance(found, list) else [found]
        return [as_fields(item) for item in items if isinstance(item, dict)]


class MadeTurn(Struct, frozen=True, kw_only=True):
    """What one reply held."""

    turn: int
    calls: tuple[MadeCall, ...] = ()
    """Calls that were accepted, with their results."""
    unread: tuple[MadeCall, ...] = ()
    """Calls that were made and left alone: too many, not offered, or in text that nobody read."""
    text: str = ""
    """What the reply says apart from its calls."""


def list_turns(trace: Trace | None, tools: Iterable[ToolSpec]) -> tuple[MadeTurn, ...]:
    """Return every reply of a run with the calls that it makes.

    Args:
        trace: What happened; None when the run never began.
        tools: Every tool there is, those hidden from the model included.
    """
    if trace is None:
        return ()
    protocol, names = find_protocol(trace.protocol), ToolNames(tools)
    return tuple(_see_turn(turn, protocol, names) for turn in trace.turns)


def _see_turn(turn: TurnTrace, protocol: WireProtocol, names: ToolNames) -> MadeTurn:
    results = {result.call_id: result for result in turn.results}
    calls = tuple(_see_call(turn, call, results.get(call.id)) for call in turn.calls)
    left = [_see_unread(turn, call) for call in turn.ignored_calls]
    if turn.raw is None:
        return MadeTurn(turn=turn.turn, calls=calls, unread=tuple(left))
    reply = protocol.parse_message(turn.raw)
    seen = len(turn.calls) + len(left)
    if len(reply.calls) > seen and not any(call.is_text for call in calls):
        left += [_see_raw(turn, call.name, call.arguments) for call in reply.calls[seen:]]
    text = reply.content or reply.malformed
    reading = _read_text(text, names)
    if reading is not None:
        text, known = reading.content, [*calls, *left]
        for call in reading.calls:
            if not _is_known(call, known):
                left.append(_see_unread(turn, call))
    return MadeTurn(turn=turn.turn, calls=calls, unread=tuple(left), text=text)


def _is_known(call: ToolCall, known: list[MadeCall]) -> bool:
    """Tell whether a call in text is one that was read before; each stands for one."""
    for place, made in enumerate(known):
        same = made.arguments == (call.arguments or {})
        if is_same_name(made.name, call.name) and (made.is_text or same):
            del known[place]
            return True
    return False


def _see_call(turn: TurnTrace, call: ToolCall, result: ToolResult | None) -> MadeCall:
    return MadeCall(
        turn=turn.turn,
        name=call.name if result is None else result.name,
        arguments=_read_arguments(call),
        is_usable=call.arguments is not None,
        ok=result is not None and result.ok,
        codes=frozenset(() if result is None else result.envelope.error_codes),
        executed=result is not None and result.executed,
        is_cut=call.state == "cut",
        raw=_as_text(call.raw),
        is_text=call.format not in _FIELDS,
    )


def _see_unread(turn: TurnTrace, call: ToolCall) -> MadeCall:
    return MadeCall(
        turn=turn.turn,
        name=call.name,
        arguments=_read_arguments(call),
        is_usable=call.arguments is not None,
        raw=_as_text(call.raw),
        is_text=call.format not in _FIELDS,
        is_unread=True,
    )


def _see_raw(turn: TurnTrace, name: Any, arguments: Any) -> MadeCall:
    fields = as_fields(arguments) if isinstance(arguments, dict) else {}
    return MadeCall(
        turn=turn.turn,
        name=str(name),
        arguments=fields,
        raw=_as_text(arguments),
        is_unread=True,
    )


def _as_text(raw: Any) -> str:
    if raw is None:
        return ""
    return raw if isinstance(raw, str) else repr(raw)


def _read_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as the model wrote them, with what a lossy repair left out."""
    raw, read = call.raw, as_fields(call.arguments)
    if call.arguments is not None and all(receipt.lossless for receipt in call.receipts):
        return read
    if isinstance(raw, str):
        try:
            raw = decode(raw)
        except JSONTextError:
            return read
    return as_fields(raw) if isinstance(raw, dict) else read
