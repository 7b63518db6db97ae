"""What providers want back with a call, kept for clients that leave it out.

It is found by the id of the call. An id that a provider may give in every conversation says nothing
about whose call it is: nothing is kept under it, and a signed call gets one here that nothing else
has.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import partial
from secrets import token_hex
from typing import Any, Final, Protocol

from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message, RawCall, Reading, Receipt, Reply, ToolCall
from surecall.text import canonical_hash, decode, decode_plain, encode
from surecall.wire.conversation import Conversation
from surecall.wire.messages.blocks import wire_id

RESTORE_ECHO: Final = "restore_echo"

_NUMBERED_ID: Final = re.compile(r"tc_\d+(?:__\d+)?")
"""Ids that reading gives to calls that came without one."""
_DERIVED: Final = re.compile(r"_[0-9a-f]{16}$")
"""How an id ends that was made from another one, as often as that one comes."""
_RUN: Final = re.compile(r"[A-Za-z0-9]+")
_TURN: Final = re.compile(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])")
"""Where digits and letters meet: a word with a number behind it has one such place."""
_MIN_RUN: Final = 9
_MIN_TURNS: Final = 3
_MIN_NUMBER: Final = 16
_MIN_DIGITS: Final = 6
"""So many different ones has a long number that was drawn, and no counter."""
_SIGNED: Final = "extra_content"
_MAX_MISSES: Final = 65536

_Echo = tuple[dict[str, Any], dict[str, Any]]
"""What came with a call: with its message, and with itself."""


def has_own_id(call_id: str, name: str) -> bool:
    """Tell whether an id is surely that of one call in one conversation.

    It has a long run of digits and letters that looks drawn at random; the name of the tool and
    words such as `call` are none.
    """
    drawn = _DERIVED.sub("", call_id)
    for run in _RUN.findall(drawn.replace(name, "") if name else drawn):
        if len(run) >= _MIN_RUN and len(_TURN.findall(run)) >= _MIN_TURNS:
            return True
        if len(run) >= _MIN_NUMBER and run.isdigit() and len({*run}) >= _MIN_DIGITS:
            return True
    return False


def is_signed(extra: Mapping[str, Any]) -> bool:
    """Tell whether a call of chat completions came with what its provider wants back with it."""
    return bool(extra.get(_SIGNED))


def give_own_ids(reading: Reading, reply: Reply, *, is_translated: bool) -> Reading:
    """Return a reading in which calls with something to echo have ids that nothing else has.

    In a reply for a client of the same format those have it that came without an id, or with a
    signature in a member that clients of chat completions drop.
    """
    if not (reply.extra or any(call.extra for call in reply.calls)):
        return reading
    said = {call.id for call in reply.calls}

    def is_shared(call: ToolCall) -> bool:
        is_kept = is_translated or is_signed(call.extra)
        is_kept = is_kept or (bool(_NUMBERED_ID.fullmatch(call.id)) and call.id not in said)
        return is_kept and not has_own_id(call.id, call.name)

    calls = [
        _give_own_id(call, is_translated=is_translated) if is_shared(call) else call
        for call in reading.calls
    ]
    return replace(reading, calls=tuple(calls)) if calls != [*reading.calls] else reading


def _give_own_id(call: ToolCall, *, is_translated: bool) -> ToolCall:
    call_id = f"tc_{token_hex(12)}"
    receipts = [
        replace(item, after=call_id) if item.rule == "assign_call_id" else item
        for item in call.receipts
    ]
    if not (is_translated or any(item.rule == "assign_call_id" for item in receipts)):
        why = "the call is signed, and other conversations may have this id"
        receipts.append(Receipt("rename_repeated_id", "/id", call.id, call_id, why=why))
    return replace(call, id=call_id, receipts=tuple(receipts))


class EchoStore(Protocol):
    """Where echoes outlive a process, and other processes find them."""

    def is_empty(self) -> bool:
        """Tell whether nothing is kept, at next to no cost."""
        ...

    def load(self, key: str) -> bytes | None:
        """Return what was kept under a key."""
        ...

    def save(self, key: str, value: bytes) -> None:
        """Keep something."""
        ...


class EchoCache:
    """Keeps what came with calls and has to be sent back, for clients that leave it out.

    It is found by the id of the call together with what was called, so that nobody gets what
    belongs to another conversation by guessing an id.

    Args:
        max_entries: How many calls are remembered in this process.
        max_entry_bytes: How much is kept of one call.
        store: Where it is kept for other processes and later ones.
    """

    def __init__(
        self,
        max_entries: int = 4096,
        max_entry_bytes: int = 64 * 1024,
        store: EchoStore | None = None,
    ) -> None:
        self._max_entries = max_entries
        self._max_entry_bytes = max_entry_bytes
        self._kept: OrderedDict[str, _Echo] = OrderedDict()
        self._missed: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Ids of single calls that nothing was kept for when they came back: nothing ever is."""
        self._store = store

    def __len__(self) -> int:
        return len(self._kept)

    def keep(
        self,
        scope: str,
        call_id: str,
        name: str,
        arguments: Any,
        message_extra: dict[str, Any],
        call_extra: dict[str, Any],
        *,
        lasts: bool = True,
    ) -> None:
        """Keep what came with one call and with the message around it.

        Args:
            scope: Whose conversation it is.
            call_id: The id that the client knows; under one that other calls may have nothing is
                kept.
            name: The tool.
            arguments: Its arguments.
            message_extra: What came with the message.
            call_extra: What came with the call.
            lasts: Whether it is also kept for other processes.
        """
        if not (message_extra or call_extra) or not has_own_id(call_id, name):
            return
        value = encode([message_extra, call_extra])
        if len(value) > self._max_entry_bytes:
            return
        key = _echo_key(scope, call_id, name, arguments)
        self._remember(key, (message_extra, call_extra))
        if self._store is not None and lasts:
            self._store.save(key, value)

    def _remember(self, key: str, echo: _Echo) -> None:
        self._kept[key] = echo
        self._kept.move_to_end(key)
        while len(self._kept) > self._max_entries:
            self._kept.popitem(last=False)

    def keep_reply(
        self,
        scope: str,
        reply: Reply,
        calls: Iterable[RawCall | ToolCall],
        *,
        lasts: bool = True,
    ) -> None:
        """Keep what came with the calls of a reply, under the ids that the client knows.

        Args:
            scope: Whose conversation it is.
            reply: The reply.
            calls: Its calls, as the client gets them.
            lasts: Whether reasoning is also kept for other processes; signatures of calls are.
        """
        for call in calls:
            call_id = call.id if isinstance(call.id, str) else ""
            name, extra = str(call.name), call.extra
            lasting = lasts or bool(extra)
            self.keep(scope, call_id, name, call.arguments, reply.extra, extra, lasts=lasting)

    def find(self, scope: str, call_id: str, name: str, arguments: Any) -> _Echo | None:
        """Return what was kept for a call: of its message, and of itself."""
        if self._is_empty() or (scope, call_id) in self._missed or not has_own_id(call_id, name):
            return None
        key = _echo_key(scope, call_id, name, arguments)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        value = self._store.load(key) if self._store is not None else None
        if not value:
            self._missed[scope, call_id] = None
            if len(self._missed) > _MAX_MISSES:
                self._missed.popitem(last=False)
            return None
        message_extra, call_extra = as_list(decode(value))
        echo = (as_fields(message_extra), as_fields(call_extra))
        self._remember(key, echo)
        return echo

    def _is_empty(self) -> bool:
        return not self._kept and (self._store is None or self._store.is_empty())

    def restore(
        self,
        items: list[Any],
        conversation: Conversation,
        scope: str,
        with_reasoning: bool,
    ) -> list[Any]:
        """Return a conversation with what was left out put back, if its format has room for it."""
        if self._is_empty():
            return items
        find = partial(self.find, scope)
        mended: list[Any] = []
        for index, item in enumerate(items):
            kept = conversation.restore(as_fields(item), find, with_reasoning=with_reasoning)
            if kept is not as_fields(item) and kept != item:
                why = "what came with the call"
                conversation.receipts.append(Receipt(RESTORE_ECHO, f"/{index}", None, why))
                mended.append(kept)
            else:
                mended.append(item)
        return mended

    def restore_messages(
        self, messages: tuple[Message, ...], scope: str, *, with_reasoning: bool
    ) -> tuple[tuple[Message, ...], tuple[Receipt, ...]]:
        """Do the same to messages that are understood: of a client of any format."""
        if self._is_empty():
            return messages, ()
        restored: list[Message] = []
        receipts: list[Receipt] = []
        for index, message in enumerate(messages):
            full = self._restore_message(message, scope, with_reasoning)
            if full != message:
                receipts.append(Receipt(RESTORE_ECHO, f"/{index}", None, "what came with the call"))
            restored.append(full)
        return tuple(restored), tuple(receipts)

    def _restore_message(self, message: Message, scope: str, with_reasoning: bool) -> Message:
        if not message.tool_calls:
            return message
        calls: list[ToolCall] = []
        around: dict[str, Any] = {}
        for call in message.tool_calls:
            written = call.raw if call.arguments is None else call.arguments
            found = self.find(scope, call.id, call.name, written) or ({}, {})
            around = around or found[0]
            calls.append(replace(call, extra={**found[1], **call.extra}))
        extra = {**around, **message.extra} if with_reasoning else message.extra
        return replace(message, tool_calls=tuple(calls), extra=extra)


def _echo_key(scope: str, call_id: str, name: str, arguments: Any) -> str:
    if isinstance(arguments, str):
        plain = decode_plain(arguments)
        arguments = arguments if plain is None else plain
    call_id = wire_id(call_id)  # clients of the messages format get ids that it takes
    try:
        return canonical_hash([scope, call_id, name, arguments])
    except JSONTextError:
        return canonical_hash([scope, call_id, name, str(arguments)])
