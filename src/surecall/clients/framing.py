"""Event streams in the plainest form, which every SDK can read.

Some readers of SDKs stumble over a byte order mark, a comment, an id or a missing blank, all of
which the standard allows.
"""

from typing import Final

from surecall.base.errors import ProviderReplyError
from surecall.text import SSEReader, render_event

MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark, which is not part of a JSON text."""
_NAMED: Final = frozenset({"messages", "responses"})
"""Formats whose events have names."""


class PlainEvents:
    """Rewrites the events of a stream; what it holds and its order stay the same.

    Args:
        protocol: The name of the wire format.
    """

    def __init__(self, protocol: str) -> None:
        self._names = protocol in _NAMED
        self._reader = SSEReader()

    def feed(self, piece: bytes) -> bytes:
        """Return the events that a piece completes."""
        events = self._reader.feed(piece)
        if not self._names:
            return b"".join([render_event(event.data) for event in events])
        return b"".join(
            [
                render_event(event.data, event=None if event.event == "message" else event.event)
                for event in events
            ]
        )

    def close(self) -> bytes:
        """Return the event that the end of the stream completes, if any."""
        try:
            return b"".join([render_event(event.data) for event in self._reader.close()])
        except ProviderReplyError:
            return b""
