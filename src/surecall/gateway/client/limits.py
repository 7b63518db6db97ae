"""What one upstream may cost: connections, waiting requests, and the size of a reply."""

from surecall.models.transport import WireLimits

KIB = 1024


class ClientLimits(WireLimits, frozen=True, kw_only=True):
    """How many connections there are to one upstream, and how large its replies may be.

    Sizes of bodies are counted after decompression.
    """

    max_connections: int = 256
    max_waiting: int = 128
    """Requests that wait for a connection when all are in use; more are refused at once."""
    max_wait_s: float = 5.0
    max_idle_s: float = 30.0
    """How long an unused connection is kept."""
    max_header_bytes: int = 64 * KIB
    """Status line and headers, those of interim replies included; also trailers."""
    max_headers: int = 256
    max_unread_bytes: int = 256 * KIB
    """How much of a body is taken off the wire before somebody reads it."""
