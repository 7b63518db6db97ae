"""JSON as text, without I/O: codec, canonical form, pointers, patches, event streams."""

from .codec import (
    canonical_bytes,
    canonical_hash,
    decode,
    decode_noting,
    decode_own,
    decode_plain,
    decoder_of,
    encode,
    encode_text,
    null_non_finite,
)
from .lexer import ValueScanner, scan_value_end
from .pointer import apply_patch, parse_pointer, render_pointer, resolve_pointer
from .prefix import ObjectPrefix, continue_json
from .repair import (
    MAX_ARGUMENT_STEPS,
    CutPolicy,
    Repaired,
    number_spellings,
    repair_json,
)
from .sse import SSEEvent, SSEReader, render_comment, render_event
from .surrogates import TextBuffer, repair_surrogates, repair_surrogates_in

__all__ = [
    "MAX_ARGUMENT_STEPS",
    "CutPolicy",
    "ObjectPrefix",
    "Repaired",
    "SSEEvent",
    "SSEReader",
    "TextBuffer",
    "ValueScanner",
    "apply_patch",
    "canonical_bytes",
    "canonical_hash",
    "continue_json",
    "decode",
    "decode_noting",
    "decode_own",
    "decode_plain",
    "decoder_of",
    "encode",
    "encode_text",
    "null_non_finite",
    "number_spellings",
    "parse_pointer",
    "render_comment",
    "render_event",
    "render_pointer",
    "repair_json",
    "repair_surrogates",
    "repair_surrogates_in",
    "resolve_pointer",
    "scan_value_end",
]
