"""How long an answer may take, how large it may be, and what one upstream may cost."""

from math import isfinite

from msgspec import Struct
from msgspec.structs import asdict

from surecall.base.errors import invalid_config
from surecall.base.limits import MAX_BODY_BYTES, MIB

KIB = 1024


class Deadlines(Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds, for each part of one attempt.

    Every deadline holds for one attempt; what is spent between attempts is bounded by
    `RetryPolicy.max_wait_s`. A deadline that passed is not tried again.
    """

    connect_s: float = 5.0
    """Name resolution, all addresses of the host together, and the TLS handshake."""
    first_byte_s: float = 60.0
    """From the request being sent until the response headers are there."""
    idle_s: float = 60.0
    """Between two arrivals of body bytes."""
    total_s: float = 600.0
    """From the start of the attempt until the last byte."""

    def __post_init__(self) -> None:
        _check_positive(self)


class WireLimits(Struct, frozen=True, kw_only=True):
    """How large an answer may be, counted after decompression."""

    max_body_bytes: int = MAX_BODY_BYTES
    max_stream_bytes: int = 128 * MIB
    max_error_body_bytes: int = 512 * 1024
    """How much of an error answer is read; the rest is left unread."""
    max_ratio: int = 100
    """Decoded bytes per compressed byte, once `ratio_free_bytes` have been decoded."""
    ratio_free_bytes: int = MIB

    def __post_init__(self) -> None:
        _check_positive(self)


def _check_positive(settings: Struct) -> None:
    for name, value in asdict(settings).items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            problem = f"is {type(value).__name__}, not a number"
        elif not (isfinite(value) and value > 0):
            problem = f"is {value}"
        else:
            continue
        raise invalid_config(
            f"{type(settings).__name__}.{name} {problem}.", "Give a finite number above zero."
        )


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
