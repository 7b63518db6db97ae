"""The tokens that a reply names, whichever format it is in."""

from typing import Any

from surecall.errors import JSONTextError
from surecall.jsontext import decode
from surecall.narrow import as_fields
from surecall.records import Usage


def find_usage(body: bytes) -> Usage | None:
    """Return the tokens that a reply in any format names."""
    if b'"usage' not in body:
        return None
    try:
        fields = as_fields(decode(body, surrogates="replace"))
    except JSONTextError:
        return None
    return _read_usage(fields.get("usage") or fields.get("usageMetadata"))


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
