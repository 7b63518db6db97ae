"""How long an answer may take and how large it may be."""

from math import isfinite
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from surecall.errors import Code, ConfigError

__all__ = ["Deadlines", "WireLimits"]

_KIB: Final = 1024
_MIB: Final = 1024 * 1024


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

    max_body_bytes: int = 32 * _MIB
    max_stream_bytes: int = 128 * _MIB
    max_error_body_bytes: int = 64 * _KIB
    """How much of an error answer is read; the rest is left unread."""
    max_ratio: int = 100
    """Decoded bytes per compressed byte, once `ratio_free_bytes` have been decoded."""
    ratio_free_bytes: int = _MIB

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
        raise ConfigError(
            Code.INVALID_CONFIG,
            f"{type(settings).__name__}.{name} {problem}.",
            hint="Give a finite number above zero.",
        )
