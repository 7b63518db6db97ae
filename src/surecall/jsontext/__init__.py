"""JSON as text, without I/O: codec, canonical form, pointers, patches, event streams."""

from .canonical import canonical_bytes, canonical_hash
from .codec import Decoded, SurrogatePolicy, decode, decode_noting, encode, encode_text
from .patch import apply_patch
from .pointer import parse_pointer, render_pointer, resolve_pointer
from .sse import SSEEvent, SSEReader, render_comment, render_event
from .surrogates import mend_surrogates

__all__ = [
    "Decoded",
    "SSEEvent",
    "SSEReader",
    "SurrogatePolicy",
    "apply_patch",
    "canonical_bytes",
    "canonical_hash",
    "decode",
    "decode_noting",
    "encode",
    "encode_text",
    "mend_surrogates",
    "parse_pointer",
    "render_comment",
    "render_event",
    "render_pointer",
    "resolve_pointer",
]
