"""Secrets that cannot be printed, and text with secrets taken out.

Every living `Secret` is known to the whole process: `redact` finds its value wherever it is,
in any case, also escaped for JSON, HTML or a URL, and in base64 or hexadecimal. Shapes of keys
that many providers use are the second net, for keys that nobody named.
"""

from .free_text import (
    StreamMask,
    cut_secret_causes,
    drop_begun,
    excerpt,
    looks_like_key,
    mask_error,
    open_log,
    redact,
    redact_name,
    redact_start,
    secrets_in_headers,
)
from .known import MASK, Secret, mask_known

__all__ = [
    "MASK",
    "Secret",
    "StreamMask",
    "cut_secret_causes",
    "drop_begun",
    "excerpt",
    "looks_like_key",
    "mask_error",
    "mask_known",
    "open_log",
    "redact",
    "redact_name",
    "redact_start",
    "secrets_in_headers",
]
