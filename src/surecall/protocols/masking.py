"""Replies without known secrets: a key that a provider echoes goes no further than this.

Everything behind reads the masked reply, so that traces, journals, events and the conversation
itself cannot hold the key. A call whose arguments held it must not run: its value is not there.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from surecall.errors import Code
from surecall.records import Defect
from surecall.redaction import StreamMask, mask_known

from .base import RawReply, StreamDelta

__all__ = ["DeltaMask", "mask_reply"]

_DEFECT: Final = Defect(Code.SECRET_REDACTED, "A key stood in the reply and was taken out.")


def mask_reply(raw: RawReply) -> RawReply:
    """Return the reply without known secrets, with a defect if there were any."""
    masked = mask_known(raw)
    if masked is raw or masked == raw:
        return raw
    return replace(masked, defects=(*masked.defects, _DEFECT))


class DeltaMask:
    """Passes the deltas of one reply on without known secrets, however they were split."""

    def __init__(self, on_delta: Callable[[StreamDelta], None]) -> None:
        self._on_delta = on_delta
        self._masks = {"text": StreamMask(), "reasoning": StreamMask()}

    def feed(self, delta: StreamDelta) -> None:
        """Take a delta, and pass on what is certain to be no part of a secret."""
        text = self._masks[delta.kind].feed(delta.text)
        extra = mask_known(delta.extra) if delta.extra else delta.extra
        if text or extra:
            same = text == delta.text and extra is delta.extra
            self._on_delta(delta if same else StreamDelta(delta.kind, text, extra))

    def close(self) -> None:
        """Pass on what was held back."""
        for kind, mask in self._masks.items():
            if text := mask.close():
                self._on_delta(StreamDelta("text" if kind == "text" else "reasoning", text))
