"""A recorded reply: which kind of document it is, and what a run would do with its calls."""

import asyncio
import sys
from pathlib import Path
from typing import Any, Final, Literal, cast

from msgspec import Struct

from surecall.config import know_keys
from surecall.errors import Code, ConfigError, JSONTextError, ProviderError
from surecall.jsontext import decode
from surecall.limits import MIB
from surecall.protocols import ChatCompletions
from surecall.records import Reading, Receipt, Reply, ToolCall, ToolResult
from surecall.redaction import mask_known
from surecall.tools import Dispatcher, MaskedRegistry, ToolContext

from .flags import invalid_option
from .progress import count_of

MAX_INPUT_BYTES: Final = 10 * MIB

ArrivalKind = Literal["text", "message", "choice", "body", "stream"]

_FIELD_STARTS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
_MAX_HEAD_LINES: Final = 20
_MAX_HEAD_BYTES: Final = 4096
_MARK: Final = b"\xef\xbb\xbf"
_MESSAGE_FIELDS: Final = ("tool_calls", "function_call", "content")
_OTHER_ROLES: Final = frozenset({"developer", "function", "system", "tool", "user"})
_protocol: Final = ChatCompletions()


class Arrival(Struct, frozen=True, kw_only=True):
    """Something that was recorded, and the reply in it or why there is none."""

    kind: ArrivalKind
    data: bytes
    reply: Reply | None = None
    error: ProviderError | None = None


def read_input(place: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`.

    Raises:
        ConfigError: The file cannot be read, is empty, or is too large.
    """
    shown = "standard input" if place == "-" else place
    try:
        if place == "-":
            data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        else:
            with Path(place).open("rb") as file:
                data = file.read(MAX_INPUT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        hint = "Name a file that can be read, or `-` for standard input."
        raise invalid_option(f"{shown} cannot be read: {reason}.", hint) from error
    if len(data) > MAX_INPUT_BYTES:
        size = f"{MAX_INPUT_BYTES // MIB} MiB"
        raise invalid_option(
            f"{shown} is larger than {size}.", "Give one reply, not a log of many."
        )
    if not data.removeprefix(_MARK).strip():
        raise invalid_option(f"{shown} is empty.", "Give what a model or provider sent.")
    know_keys()
    return mask_known(data)


def parse_arrival(data: bytes) -> Arrival:
    """Find out what was recorded, and the reply in it.

    Raises:
        ConfigError: It is text that is not UTF-8, or a message that no model wrote.
    """
    kind, is_whole = _kind_of(data)
    try:
        if kind == "text":
            reply = Reply(content=_text_of(data))
        elif kind == "stream":
            folder = _protocol.open_stream()
            folder.feed(data)
            reply = _protocol.parse_message(folder.close())
        else:
            body = _as_body(data, kind) if is_whole else data
            reply = _protocol.parse_message(_protocol.parse_body(body))
    except ProviderError as error:
        return Arrival(kind=kind, data=data, error=error)
    return Arrival(kind=kind, data=data, reply=reply)


def _kind_of(data: bytes) -> tuple[ArrivalKind, bool]:
    """Return what the data is, and whether it is valid where it should be JSON."""
    start = data[: _MAX_HEAD_BYTES * 4].removeprefix(_MARK).lstrip()
    if start.startswith(_FIELD_STARTS) and _has_event(start):
        return "stream", True
    if not start.startswith(b"{"):
        return "text", True
    try:
        document = cast("dict[str, Any]", decode(data.removeprefix(_MARK), surrogates="replace"))
    except JSONTextError:
        return _kind_of_damaged(start[:_MAX_HEAD_BYTES]), False
    if "choices" in document or isinstance(document.get("error"), dict):
        return "body", True
    if isinstance(document.get("message"), dict):
        return "choice", True
    return "message" if _is_message(document) else "text", True


def _has_event(start: bytes) -> bool:
    """Tell whether the first data among these lines is a JSON object, or the end of a stream."""
    for line in start.splitlines()[:_MAX_HEAD_LINES]:
        if line.startswith(b"data:"):
            return line[5:].lstrip().startswith((b"{", b"[DONE]"))
    return False


def _kind_of_damaged(head: bytes) -> ArrivalKind:
    """Tell a document that is no longer valid JSON from a call that a model wrote as bad JSON."""
    packed = head.replace(b" ", b"").replace(b"\n", b"")
    if b'"choices":[' in packed:
        return "body"
    return "message" if b'"role":"assistant"' in packed else "text"


def _is_message(document: dict[str, Any]) -> bool:
    role = document.get("role")
    if isinstance(role, str) and role in _OTHER_ROLES:
        raise ConfigError(
            Code.INVALID_MESSAGE,
            f"the message has the role {role!r}; only what a model said is read.",
            hint="Give the assistant message.",
        )
    # A call written as bare JSON has a name.
    return role == "assistant" or (
        "name" not in document and any(field in document for field in _MESSAGE_FIELDS)
    )


def _as_body(data: bytes, kind: ArrivalKind) -> bytes:
    """Return the body that a message or a choice would come in, byte for byte."""
    data = data.removeprefix(_MARK)
    if kind == "message":
        data = b'{"message":' + data + b"}"
    return data if kind == "body" else b'{"choices":[' + data + b"]}"


def _text_of(data: bytes) -> str:
    try:
        return data.removeprefix(_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            Code.INVALID_UTF8,
            f"the text is not UTF-8 at byte {error.start}.",
            hint="Save it as UTF-8; nothing is replaced silently.",
        ) from error


_WORDS: Final = {
    "would_run": "would run",
    "not_checked": "readable, not checked against tools",
    "refused": "refused",
}


class Outcome(Struct, frozen=True, kw_only=True):
    """What a run would do with one call."""

    call: ToolCall
    what: Literal["would_run", "refused", "not_checked"]
    codes: tuple[str, ...] = ()
    result: ToolResult | None = None
    """What the model would be told, when the call is refused."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What a run would do with the whole reply."""

    ok: bool
    """Whether nothing is refused."""
    is_checked: bool
    """Whether the tools were there to check against."""
    summary: str
    calls: int = 0
    would_run: int = 0
    refused: int = 0
    not_checked: int = 0
    codes: tuple[str, ...] = ()
    changes: int = 0
    lossy_changes: int = 0
    error: dict[str, Any] | None = None
    """Why there is no reply at all, when that is so."""


def judge_calls(reading: Reading, tools: MaskedRegistry) -> tuple[Outcome, ...]:
    """Send every call through the checks of a run; behind them is nothing that acts."""
    return asyncio.run(_dispatch(reading.calls, tools)) if reading.calls else ()


async def _dispatch(calls: tuple[ToolCall, ...], tools: MaskedRegistry) -> tuple[Outcome, ...]:
    dispatcher = Dispatcher(tools)
    outcomes: list[Outcome] = []
    for call in calls:
        result = await dispatcher.dispatch(call, ToolContext(call_id=call.id))
        codes = result.envelope.error_codes
        if result.executed:
            outcomes.append(Outcome(call=call, what="would_run"))
        elif not len(tools) and codes == (Code.TOOL_NOT_ALLOWED,):
            outcomes.append(Outcome(call=call, what="not_checked"))
        else:
            outcomes.append(Outcome(call=call, what="refused", codes=codes, result=result))
    return tuple(outcomes)


def judge_reading(reading: Reading, outcomes: tuple[Outcome, ...], *, has_tools: bool) -> Verdict:
    """Count what would happen, and say it in one line."""
    counts = {what: sum(outcome.what == what for outcome in outcomes) for what in _WORDS}
    codes = tuple(dict.fromkeys(str(code) for outcome in outcomes for code in outcome.codes))
    receipts = [*reading.receipts, *(item for call in reading.calls for item in call.receipts)]
    parts: list[str] = []
    for what, words in _WORDS.items():
        named = f"{words} ({', '.join(codes)})" if what == "refused" else words
        if counts[what]:
            parts.append(named if len(outcomes) == 1 else f"{counts[what]} {named}")
    calls = f"{count_of(len(outcomes), 'call')}: {', '.join(parts)}" if parts else "no calls"
    if not parts and not has_tools and reading.content:
        calls = "no calls; calls written as text were not looked for"
    return Verdict(
        ok=not counts["refused"],
        is_checked=has_tools,
        summary=f"{calls}; {_changes_text(receipts)}",
        calls=len(outcomes),
        would_run=counts["would_run"],
        refused=counts["refused"],
        not_checked=counts["not_checked"],
        codes=codes,
        changes=len(receipts),
        lossy_changes=sum(not receipt.lossless for receipt in receipts),
    )


def _changes_text(receipts: list[Receipt]) -> str:
    if not receipts:
        return "no changes"
    lossy = sum(not receipt.lossless for receipt in receipts)
    if len(receipts) == 1:
        return "1 change, lossy" if lossy else "1 change, lossless"
    which = f"{lossy} of them lossy" if lossy else "all lossless"
    return f"{len(receipts)} changes, {which}"
