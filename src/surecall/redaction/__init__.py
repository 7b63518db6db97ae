"""Secrets that cannot be printed, and text with secrets taken out.

Every living `Secret` is known to the whole process: `redact` finds its value wherever it stands,
in any case, also escaped for JSON, HTML or a URL, and in base64 or hexadecimal. Shapes of keys
that many providers use are the second net, for keys that nobody named.
"""

from .known import Secret, mask_known, secrets_in_headers
from .shapes import MASK, looks_like_key
from .text import StreamMask, redact, redact_start
from .traces import cut_secret_causes, open_log

__all__ = [
    "MASK",
    "Secret",
    "StreamMask",
    "cut_secret_causes",
    "looks_like_key",
    "mask_known",
    "open_log",
    "redact",
    "redact_start",
    "secrets_in_headers",
]
