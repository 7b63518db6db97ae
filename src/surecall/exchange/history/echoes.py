"""What providers want back with a call, kept for clients that leave it out."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import JSONTextError
from surecall.jsontext import canonical_hash, decode_plain, encode
from surecall.narrow import as_fields, as_list
from surecall.protocols.messages.blocks import wire_id
from surecall.records import Message, RawCall, Receipt, Reply, ToolCall

RESTORE_ECHO: Final = "restore_echo"


class EchoCache:
    """Keeps what came with calls and has to be sent back, for clients that leave it out.

    It is found by the id of the call together with what was called, so that nobody gets what
    belongs to another conversation by guessing an id.
    """

    def __init__(self, max_entries: int = 4096, max_entry_bytes: int = 64 * 1024) -> None:
        self._max_entries = max_entries
        self._max_entry_bytes = max_entry_bytes
        self._kept: OrderedDict[str, tuple[dict[str, Any], dict[str, Any]]] = OrderedDict()

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
    ) -> None:
        """Keep what came with one call and with the message around it."""
        if not (message_extra or call_extra):
            return
        if len(encode([message_extra, call_extra])) > self._max_entry_bytes:
            return
        key = _echo_key(scope, call_id, name, arguments)
        self._kept[key] = (message_extra, call_extra)
        self._kept.move_to_end(key)
        while len(self._kept) > self._max_entries:
            self._kept.popitem(last=False)

    def keep_reply(self, scope: str, reply: Reply, calls: Iterable[RawCall | ToolCall]) -> None:
        """Keep what came with the calls of a reply, under the ids that the client knows."""
        for call in calls:
            call_id = call.id if isinstance(call.id, str) else ""
            self.keep(scope, call_id, str(call.name), call.arguments, reply.extra, call.extra)

    def find(
        self, scope: str, call_id: str, name: str, arguments: Any
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return what was kept for a call: of its message, and of itself."""
        return self._kept.get(_echo_key(scope, call_id, name, arguments)) if self._kept else None

    def restore(
        self,
        items: list[Any],
        protocol: str,
        scope: str,
        receipts: list[Receipt],
        with_reasoning: bool,
    ) -> list[Any]:
        """Return a conversation with what was left out put back, if its format has room for it."""
        if not self._kept or protocol not in ("chat_completions", "gemini"):
            return items
        put_back = self._restore_chat if protocol == "chat_completions" else self._restore_gemini
        mended: list[Any] = []
        for index, item in enumerate(items):
            kept = put_back(as_fields(item), scope, with_reasoning)
            if kept is not as_fields(item) and kept != item:
                receipts.append(Receipt(RESTORE_ECHO, f"/{index}", None, "what came with the call"))
                mended.append(kept)
            else:
                mended.append(item)
        return mended

    def restore_messages(
        self, messages: tuple[Message, ...], scope: str, *, with_reasoning: bool
    ) -> tuple[tuple[Message, ...], tuple[Receipt, ...]]:
        """Do the same to messages that are understood: of a client of any format."""
        if not self._kept:
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

    def _restore_chat(
        self, message: dict[str, Any], scope: str, with_reasoning: bool
    ) -> dict[str, Any]:
        if message.get("role") != "assistant":
            return message
        calls: list[Any] = []
        around: dict[str, Any] = {}
        for entry in as_list(message.get("tool_calls")):
            call = as_fields(entry)
            function = as_fields(call.get("function"))
            name, arguments = str(function.get("name")), function.get("arguments")
            found = self.find(scope, str(call.get("id")), name, arguments)
            around = around or (found[0] if found else {})
            calls.append({**found[1], **call} if found and found[1] else entry)
        if calls == as_list(message.get("tool_calls")) and not around:
            return message
        mended = {**message, "tool_calls": calls}
        return {**around, **mended} if with_reasoning else mended

    def _restore_gemini(
        self, content: dict[str, Any], scope: str, with_reasoning: bool
    ) -> dict[str, Any]:
        if content.get("role") != "model":
            return content
        parts: list[Any] = []
        for entry in as_list(content.get("parts")):
            part = as_fields(entry)
            call = as_fields(part.get("functionCall"))
            signed = "thoughtSignature" in part or "thought_signature" in part
            found = None
            if call and not signed:
                name, call_id = str(call.get("name")), str(call.get("id") or "")
                found = self.find(scope, call_id, name, call.get("args") or {})
            signature = found[1].get("thought_signature") if found else None
            parts.append({**part, "thoughtSignature": signature} if signature else entry)
        return content if parts == as_list(content.get("parts")) else {**content, "parts": parts}


def _echo_key(scope: str, call_id: str, name: str, arguments: Any) -> str:
    if isinstance(arguments, str):
        plain = decode_plain(arguments)
        arguments = arguments if plain is None else plain
    call_id = wire_id(call_id)  # clients of the messages format get ids that it takes
    try:
        return canonical_hash([scope, call_id, name, arguments])
    except JSONTextError:
        return canonical_hash([scope, call_id, name, str(arguments)])
