"""Answers that are no reply: one way to refuse them in every wire format."""

from typing import Any, Final

from surecall.errors import Code, ProviderReplyError
from surecall.records import clip

__all__ = ["MAX_SNIPPET", "refuse_reply", "start_of", "text_or_none"]

MAX_SNIPPET: Final = 200
_MAX_LOOKED_AT_BYTES: Final = 64 * 1024
"""How much is redacted to show a snippet: far more, so that what is cut cannot be half a key."""

_RETRYABLE: Final = frozenset(
    {
        Code.STREAM_TRUNCATED,
        Code.UPSTREAM_BAD_EVENT,
        Code.UPSTREAM_INVALID_JSON,
        Code.UPSTREAM_NO_CHOICES,
    }
)


def refuse_reply(code: Code, message: str, body: str = "") -> ProviderReplyError:
    """Return the error for something that is not a reply."""
    return ProviderReplyError(
        code,
        message,
        status=200,
        retryable=code in _RETRYABLE,
        body=body or None,
        hint=_HINTS.get(code),
    )


_HINTS: Final[dict[str, str]] = {
    Code.STREAM_TRUNCATED: "Nothing of an unfinished turn is used; send the request again.",
    Code.UPSTREAM_BAD_EVENT: "Send the request again, or set skip_bad_events to go on without it.",
    Code.UPSTREAM_INVALID_JSON: "Check that the base URL leads to the API itself.",
    Code.UPSTREAM_NOT_A_REPLY: "Check that the base URL leads to an API of this protocol.",
    Code.UPSTREAM_NO_CHOICES: "Send the request again, or ask another provider.",
}


def text_or_none(value: Any) -> str | None:
    """Return the value when it is text that says something."""
    return value if isinstance(value, str) and value else None


def start_of(body: bytes) -> str:
    """Return the beginning of a body, to show what arrived."""
    return clip(body[:_MAX_LOOKED_AT_BYTES].decode("utf-8", "replace"), MAX_SNIPPET)
