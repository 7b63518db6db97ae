"""The tokens that a reply names, whichever format it is in."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from surecall.narrow import as_fields
from surecall.records import Usage


class _Usage(Struct):
    usage: Any = None
    usageMetadata: Any = None  # noqa: N815 - the name on the wire


_decode_usage: Final = msgspec.json.Decoder(_Usage).decode


def find_usage(body: bytes) -> Usage | None:
    """Return the tokens that a reply in any format names."""
    try:
        found = _decode_usage(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return _read_usage(found.usage if found.usage is not None else found.usageMetadata)


def find_stream_usage(tail: bytes) -> Usage | None:
    """Return the tokens that the end of a stream names."""
    for line in reversed(tail.split(b"\n")):
        if line.startswith(b"data: ") and (b'"usage"' in line or b'"usageMetadata"' in line):
            usage = find_usage(line[6:])
            if usage is not None:
                return usage
    return None


def _read_usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    fields = as_fields(value)

    def number(*names: str) -> int:
        for name in names:
            found = fields.get(name)
            if isinstance(found, int) and not isinstance(found, bool):
                return found
        return 0

    asked = number("prompt_tokens", "input_tokens", "promptTokenCount")
    given = number("completion_tokens", "output_tokens", "candidatesTokenCount")
    total = number("total_tokens", "totalTokenCount") or asked + given
    return Usage(input_tokens=asked, output_tokens=given, total_tokens=total)
