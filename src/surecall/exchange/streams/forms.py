"""Events in the form that the official clients of a format read; any other is written anew.

The rules of event streams allow more than these clients understand: some take no comments, some
look for the name of every event, some want a blank behind the colon.
"""

from typing import Any, Final

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.text import decode
from surecall.wire.chat_completions.replies import split_parts

from .events import read_event
from .wire import event_of, same_event

_DATA: Final = b"data: "
_EVENT: Final = b"event: "
_COLON: Final = 0x3A
_CONTENT: Final = b'"content":'
_BLOCK: Final = b'"content_block_'
_INDEX: Final = b'"index"'
_NAMED: Final = ("messages", "responses")


class EventForm:
    """The form of the events of one stream.

    Args:
        protocol: The wire format of the client.
    """

    __slots__ = ("_blocks", "_is_chat", "_is_messages", "_is_named", "_takes_comments")

    def __init__(self, protocol: str) -> None:
        self._is_named = protocol in _NAMED
        self._is_chat = protocol == "chat_completions"
        self._is_messages = protocol == "messages"
        self._takes_comments = protocol != "gemini"
        self._blocks = 0

    def is_plain(self, data: bytes) -> bool:
        """Tell whether some whole events are all in the usual form."""
        if self._is_named:
            count = data.count(b"\n\n")
            is_plain = (
                data[:7] == _EVENT
                and data.count(b"\n") == 3 * count
                and data.count(b"\n\nevent: ") == count - 1
                and data.count(b"\ndata: ") == count
            )
            return is_plain and not (self._is_messages and data.count(_INDEX) < data.count(_BLOCK))
        if data[:6] != _DATA or data[-2:] != b"\n\n":
            return False
        count = data.count(b"\n\ndata: ") + 1
        if _count(data, b"\n") != 2 * count:
            return False
        # Every event has a list of choices: without any other list, none is the content.
        return not (self._is_chat and _count(data, b"[") > count and _lists_content(data))

    def write(self, block: bytes) -> bytes:
        """Return one event, of whatever form, in the usual one; nothing if there is nothing."""
        plain = block.replace(b"\r\n", b"\n").rstrip(b"\n") + b"\n\n"
        if b"\r" not in plain and self.is_plain(plain):
            return block
        body, name = read_event(block)
        if not body:
            is_comment = block[0] == _COLON and b"\n" not in plain[:-2]
            is_read = is_comment and b"\r" not in plain
            return block if is_read and self._takes_comments else b""
        try:
            value = decode(body, surrogates="replace")
        except JSONTextError:
            return same_event(body, name.decode("utf-8", "replace"))
        return self._write(as_fields(value), body, name) if isinstance(value, dict) else block

    def _write(self, fields: dict[str, Any], body: bytes, name: bytes) -> bytes:
        if not self._is_named:
            written = "error" if name == b"error" else ""
            mended = _join_content(fields) if self._is_chat else fields
            return same_event(body, written) if mended is fields else event_of(mended, written)
        kind = text_or_none(fields.get("type")) or name.decode("utf-8", "replace")
        if self._is_messages and kind.startswith("content_block_") and "index" not in fields:
            return event_of(self._number(fields, kind), kind)
        return same_event(body, kind)

    def _number(self, fields: dict[str, Any], kind: str) -> dict[str, Any]:
        """Give an event of a block the number that it lacks: blocks come one after the other."""
        if kind == "content_block_start":
            self._blocks += 1
        return {**fields, "index": max(0, self._blocks - 1)}


def _count(data: bytes, char: bytes) -> int:
    """Count a character, several times as fast as `count` does."""
    return len(data) - len(data.replace(char, b""))


def _lists_content(data: bytes) -> bool:
    """Tell whether any content is a list."""
    at = data.find(_CONTENT)
    while at >= 0:
        at += len(_CONTENT)
        if data[at : at + 2].lstrip(b" ")[:1] == b"[":
            return True
        at = data.find(_CONTENT, at)
    return False


def _join_content(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a chunk whose content is text, where it came in parts."""
    choices = [as_fields(choice) for choice in as_list(fields.get("choices"))]
    if not any(isinstance(as_fields(item.get("delta")).get("content"), list) for item in choices):
        return fields
    joined: list[dict[str, Any]] = []
    for choice in choices:
        delta = as_fields(choice.get("delta"))
        content = delta.get("content")
        if isinstance(content, list):
            text, thought, _ = split_parts(as_list(content))
            delta = {**delta, "content": text or None}
            if thought:
                delta["reasoning_content"] = thought
        joined.append({**choice, "delta": delta})
    return {**fields, "choices": joined}
