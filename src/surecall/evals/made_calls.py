"""Calls as a model made them: run or refused, in their place or written into the text.

The plain checks that suites share look at these calls and at the final text. No check guesses what
a text means: it finds what a case declares, or it does not.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from unicodedata import category, normalize, numeric

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError, SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Reading, ToolCall, ToolResult, ToolSpec, clip
from surecall.calls import ToolNames
from surecall.evals.cases import Attempt
from surecall.evals.records import Reason
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


_AROUND: Final = " \t\r\n\"'`*_.,!。！“”«»()"
_NUMBER: Final = re.compile(r"[-−]?[.,]?\d++(?:[.,]\d++)*+")
_THOUSANDS: Final = re.compile(r"[-−]?\d{1,3}(?:,\d{3})++(?:\.\d++)?+\Z")
_WORD: Final = re.compile(r"[^\W_]++(?:['’][^\W\d_]++)?+")
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


def says_nothing(text: str) -> bool:
    """Tell whether a text has no letter, digit or sign that a reader could see."""
    return not any(category(char)[0] in "LNS" for char in text)


def shows_call(text: str) -> bool:
    """Tell whether a text for the user has the marks of a call; naming a tool is none."""
    lowered = text.lower()
    return any(mark in lowered for mark in _CALL_MARKS)


def is_word(text: str, word: str) -> bool:
    """Tell whether a text is one word, whatever case, quotes, emphasis or stop it has."""
    return text.strip(_AROUND).casefold() == word


def list_words(text: str) -> list[str]:
    """Return the words of a text without case."""
    return [word.replace("’", "'").casefold() for word in _WORD.findall(text)]


def list_numbers(text: str) -> list[float]:
    """Return the numbers that are written in digits; without any, those that are one sign.

    A comma before three digits groups thousands, any other is a decimal point.

    Example:
        >>> list_numbers("1,250 of ７"), list_numbers("七"), list_numbers("seven")
        ([1250.0, 7.0], [7.0], [])
    """
    text = normalize("NFKC", text)
    found = [_read_number(match.group()) for match in _NUMBER.finditer(text)]
    return found or [numeric(char) for char in text if numeric(char, None) is not None]


def _read_number(written: str) -> float:
    plain = written.replace("−", "-")
    plain = plain.replace(",", "" if _THOUSANDS.match(plain) else ".")
    if plain.count(".") > 1:
        plain = plain.replace(".", "")
    return float(plain)


def states_number(text: str, number: float) -> bool | None:
    """Tell whether a text has a number; None if the text has none to compare."""
    found = list_numbers(text)
    return any(abs(each - number) <= _MAX_OFF for each in found) if found else None


def states_all(text: str, values: Iterable[str | float]) -> bool | None:
    """Tell whether a text holds every value; None where numbers are asked for and it has none."""
    folded = text.casefold()
    held = [
        each.casefold() in folded if isinstance(each, str) else states_number(text, each)
        for each in values
    ]
    if False in held:
        return False
    return None if None in held else True


_MAX_OFF: Final = 0.005
"""Numbers are the same when they are at two decimals: half a cent."""


_BY_TYPE: Final[Mapping[str, Any]] = {
    "array": [],
    "boolean": True,
    "integer": 1,
    "null": None,
    "number": 1,
    "object": {},
}


def sample_value(schema: Any) -> Any:
    """Return a value that a simple schema allows."""
    fields = as_fields(schema)
    for key in ("const", "default"):
        if key in fields:
            return fields[key]
    for key in ("enum", "examples"):
        if fields.get(key):
            return fields[key][0]
    kind = fields.get("type")
    if kind in ("integer", "number"):
        return max(1, fields.get("minimum", 1))
    return _BY_TYPE.get(kind, "sample") if isinstance(kind, str) else "sample"


_MAX_SHOWN: int = 80


def list_attempts(attempt: Attempt) -> list[MadeCall]:
    """Return every call of a run: run, refused, left alone or only written down."""
    turns = list_turns(attempt.trace, _specs(attempt))
    return [call for turn in turns for call in (*turn.calls, *turn.unread)]


def check_one_by_one(attempt: Attempt) -> Iterator[Reason]:
    """Yield replies with several calls, where one at a time was ordered."""
    for turn in list_turns(attempt.trace, _specs(attempt)):
        count = len(turn.calls) + len(turn.unread)
        if count > 1:
            yield Reason("SEVERAL_CALLS_AT_ONCE", f"{count} calls in turn {turn.turn}")
            return


def check_written_calls(attempt: Attempt) -> Iterator[Reason]:
    """Yield a call that the last reply only writes down."""
    specs = _specs(attempt)
    is_written = any(
        call.is_text for turn in list_turns(attempt.trace, specs)[-1:] for call in turn.unread
    )
    is_shown = shows_call(attempt.text) or bool(find_text_calls(attempt.text, specs))
    if attempt.error is None and (is_written or is_shown):
        yield Reason("CALL_NOT_MADE", clip(attempt.text, _MAX_SHOWN))


def check_plain_answer(
    attempt: Attempt, wrong: list[Reason] | None = None, *, may_be_empty: bool = False
) -> list[Reason] | None:
    """Return what is wrong with a final text; None when there is none, or nothing was checked.

    Args:
        attempt: What happened.
        wrong: What the case's own checks found wrong; None when it declares none.
        may_be_empty: Whether a run without a final text is fine.
    """
    if attempt.error is not None or attempt.trace is None:
        return None
    text = attempt.text
    if says_nothing(text):
        return wrong if may_be_empty else [Reason("EMPTY_FINAL")]
    if shows_call(text) or find_text_calls(text, _specs(attempt)):
        return [*(wrong or ()), Reason("TEXT_CALL_LEAKED", clip(text, _MAX_SHOWN))]
    return wrong


def _specs(attempt: Attempt) -> list[ToolSpec]:
    return [tool.spec for tool in attempt.prepared.tools]
