"""How a reply that is whole ends."""

from surecall.records import Reply

__all__ = ["ending_of"]


def ending_of(reply: Reply, *, wrote_calls: bool = False) -> str:
    """Return the finish reason to render, the same whole and streamed.

    A provider that answers whole may leave it out. In a stream that would look like a reply that
    was cut, so what other providers would have said is written: calls, or a plain stop.

    Args:
        reply: The reply.
        wrote_calls: Whether calls were written already, which the reply need not repeat.
    """
    if reply.finish_reason is not None:
        return reply.finish_reason
    return "tool_calls" if reply.calls or wrote_calls else "stop"
