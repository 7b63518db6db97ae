"""The tokens of a request: what the reply names, in any format, or else an estimate."""

from typing import Any, Final

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, count_or_none
from surecall.base.records import Usage
from surecall.text import decode

_BYTES_PER_TOKEN: Final = 4
_EVENT_BYTES: Final = 300
"""What an event of a stream has around its text."""


def find_usage(body: bytes) -> Usage | None:
    """Return the tokens that a reply in any format names."""
    if b'"usage' not in body:
        return None
    try:
        fields = as_fields(decode(body, surrogates="replace"))
    except JSONTextError:
        return None
    for place in (fields, as_fields(fields.get("response")), as_fields(fields.get("message"))):
        if counts := as_fields(place.get("usage") or place.get("usageMetadata")):
            return _read_usage(counts)
    return None


def find_stream_usage(tail: bytes) -> Usage | None:
    """Return the tokens that the end of a stream names."""
    for line in reversed(tail.split(b"\n")):
        if line.startswith(b"data:") and (b'"usage"' in line or b'"usageMetadata"' in line):
            usage = find_usage(line[5:])
            if usage is not None:
                return usage
    return None


def _read_usage(fields: dict[str, Any]) -> Usage:
    """Return the counts that can be used; others are zero."""

    def number(*names: str) -> int:
        counts = (count_or_none(fields.get(name)) for name in names)
        return next((count for count in counts if count is not None), 0)

    asked = number("prompt_tokens", "input_tokens", "promptTokenCount")
    given = number("completion_tokens", "output_tokens", "candidatesTokenCount")
    total = number("total_tokens", "totalTokenCount") or asked + given
    return Usage(input_tokens=asked, output_tokens=given, total_tokens=total)


def count_tokens(
    usage: Usage | None,
    *,
    sent_bytes: int,
    received_bytes: int,
    events: int = 0,
    makes_text: bool = True,
    is_whole: bool = True,
) -> int:
    """Return how many tokens a request has used: as reported, and estimated where nothing is.

    A token is four bytes of what was sent or received, but an event of a stream is at least one,
    and its first bytes are about itself.

    Args:
        usage: What was reported; a count of zero may be one that cannot be used.
        sent_bytes: Of the bodies that went to the upstream.
        received_bytes: Of the bodies that came back.
        events: How many events these have.
        makes_text: Whether the reply is text of the model, which is never without a token.
        is_whole: Whether the reply came to its end, and the report with it.
    """
    asked = sent_bytes // _BYTES_PER_TOKEN
    given = max(events, (received_bytes - events * _EVENT_BYTES) // _BYTES_PER_TOKEN)
    if usage is None:
        return asked + given
    total = max(usage.total_tokens, usage.input_tokens + usage.output_tokens)
    if not is_whole:
        given = max(given, usage.output_tokens)
        return max(total, (usage.input_tokens or asked) + given)
    lacks_input, lacks_output = total <= usage.output_tokens, total <= usage.input_tokens
    charged = total + asked * lacks_input + given * (lacks_output and (makes_text or not total))
    # There is no request without input: what else such a report says may be as wrong.
    return charged if usage.input_tokens or not makes_text else max(charged, asked + given)
