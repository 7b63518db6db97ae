"""A reply as the events that a client of the format expects."""

from typing import Any, Literal, TypeAlias

from surecall.errors import SurecallError
from surecall.jsontext import encode_text, mend_surrogates, render_event
from surecall.records import RawCall, Reply

from .outgoing import (
    new_id,
    render_call,
    render_fault,
    render_stop_reason,
    render_usage,
    thoughts_of,
)

__all__ = ["MessagesStreamWriter"]

_Kind: TypeAlias = Literal["text", "thinking"]


class MessagesStreamWriter:
    """Writes one reply as events, block after block.

    Signatures of thoughts are known only at the end. There, a thought that was written gets its
    signature, and one that was not, or that nobody may read, follows as a block of its own.
    """

    def __init__(self, *, model: str, reply_id: str | None = None) -> None:
        self._model = model
        self._id = reply_id or new_id("msg_")
        self._index = -1
        self._open: _Kind | None = None
        self._thoughts: dict[int, list[str]] = {}
        self._has_calls = False

    def begin(self) -> bytes:
        """Open the reply."""
        message: dict[str, Any] = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": render_usage(None),
        }
        return _event("message_start", message=message)

    def text(self, text: str) -> bytes:
        """Write a piece of the text."""
        if not text:
            return b""
        opened = self._switch("text", {"type": "text", "text": ""})
        return opened + self._delta({"type": "text_delta", "text": mend_surrogates(text)})

    def reasoning(self, text: str) -> bytes:
        """Write a piece of the reasoning."""
        if not text:
            return b""
        opened = self._switch("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        self._thoughts.setdefault(self._index, []).append(text)
        delta = {"type": "thinking_delta", "thinking": mend_surrogates(text)}
        return opened + self._delta(delta)

    def call(self, call: RawCall) -> bytes:
        """Write one whole call."""
        self._has_calls = True
        block = render_call(call)
        begun = self._close() + self._start({**block, "input": {}})
        delta = {"type": "input_json_delta", "partial_json": encode_text(block["input"])}
        return begun + self._delta(delta) + self._stop()

    def end(self, reply: Reply) -> bytes:
        """Close the reply with its finish reason and usage; its text is not written again."""
        written = self._close() + self._sign(thoughts_of(reply))
        has_calls = self._has_calls or bool(reply.calls)
        reason = render_stop_reason(reply.finish_reason, has_calls=has_calls)
        delta = {"stop_reason": reason, "stop_sequence": None}
        ended = _event("message_delta", delta=delta, usage=render_usage(reply.usage))
        return written + ended + _event("message_stop")

    def fail(self, error: SurecallError) -> bytes:
        """Break the reply off with an error event; no end follows."""
        return render_event(encode_text(render_fault(error).body), event="error")

    def _sign(self, blocks: list[dict[str, Any]]) -> bytes:
        unsigned: dict[str, list[int]] = {}
        for index, pieces in self._thoughts.items():
            unsigned.setdefault("".join(pieces), []).append(index)
        written: list[bytes] = []
        for block in blocks:
            text, signature = block.get("thinking"), block.get("signature")
            places = unsigned.get(text) if isinstance(text, str) else None
            if not places:
                written.append(self._start(block) + self._stop())
            elif isinstance(signature, str) and signature:
                delta = {"type": "signature_delta", "signature": signature}
                written.append(_event("content_block_delta", index=places.pop(0), delta=delta))
        return b"".join(written)

    def _switch(self, kind: _Kind, block: dict[str, Any]) -> bytes:
        if self._open == kind:
            return b""
        opened = self._close() + self._start(block)
        self._open = kind
        return opened

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        return self._stop()

    def _start(self, block: dict[str, Any]) -> bytes:
        self._index += 1
        return _event("content_block_start", index=self._index, content_block=block)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)

    def _stop(self) -> bytes:
        return _event("content_block_stop", index=self._index)


def _event(kind: str, **fields: Any) -> bytes:
    return render_event(encode_text({"type": kind, **fields}), event=kind)
