"""Answers that are not a reply: one way to notice and refuse them in every wire format.

A reply says something: text, reasoning or a call. One that says nothing is believed only when it
has every mark of a reply that ended so, and nothing in it was left unread.
"""

from typing import Any, Final

from surecall.errors import Code, ProviderReplyError
from surecall.records import Reply, clip

__all__ = [
    "MAX_SNIPPET",
    "check_role",
    "check_says_something",
    "finish_word",
    "refuse_reply",
    "start_of",
    "text_or_none",
]

MAX_SNIPPET: Final = 200
_MAX_LOOKED_AT_BYTES: Final = 64 * 1024
"""How much is redacted to show a snippet: far more, so that what is cut cannot be half a key."""

_UNREAD: Final = frozenset(
    {Code.CALL_ENTRY_DROPPED, Code.CONTENT_NOT_USABLE, Code.UPSTREAM_BAD_EVENT}
)
"""Defects of a reply of which a part has no shape that could be read."""

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


def check_role(role: Any, expected: str = "assistant") -> None:
    """Refuse a message that says that somebody other than the model wrote it.

    Raises:
        ProviderReplyError: `UPSTREAM_NOT_A_REPLY`.
    """
    if role in (None, "", expected):
        return
    shown = repr(clip(role, 40)) if isinstance(role, str) else f"of type {type(role).__name__}"
    message = f"The message in the provider's answer has the role {shown}, not {expected!r}."
    raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message)


def check_says_something(reply: Reply, *, is_marked: bool, marks: str) -> None:
    """Refuse a reply without text, reasoning and calls, unless the model honestly ended so.

    Args:
        reply: The reply.
        is_marked: Whether it has the marks of a reply that has ended.
        marks: What these marks are, in words.

    Raises:
        ProviderReplyError: `UPSTREAM_NOT_A_REPLY`.
    """
    if reply.content or reply.reasoning or reply.calls:
        return
    unread = next((defect for defect in reply.defects if defect.code in _UNREAD), None)
    if is_marked and unread is None:
        return
    problem = (
        f"lacks {marks}" if unread is None else f"has a part that cannot be read: {unread.message}"
    )
    message = f"The provider's answer says nothing and {problem}"
    raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message.rstrip(".") + ".")


_HINTS: Final[dict[str, str]] = {
    Code.STREAM_TRUNCATED: "Nothing of an unfinished turn is used; send the request again.",
    Code.UPSTREAM_BAD_EVENT: "Send the request again, or set skip_bad_events to go on without it.",
    Code.UPSTREAM_INVALID_JSON: "Check that the base URL leads to the API itself.",
    Code.UPSTREAM_NOT_A_REPLY: "Check that the base URL leads to an API that speaks this protocol.",
    Code.UPSTREAM_NO_CHOICES: "Send the request again, or ask another provider.",
}


def text_or_none(value: Any) -> str | None:
    """Return the value when it is text that says something."""
    return value if isinstance(value, str) and value else None


def finish_word(value: Any) -> str | None:
    """Return a finish reason as text; what is not text is a reason that nobody knows."""
    if value is None or value == "" or isinstance(value, str):
        return value or None
    return clip(f"not text: {value!r}", 40)


def start_of(body: bytes) -> str:
    """Return the beginning of a body, to show what arrived."""
    return clip(body[:_MAX_LOOKED_AT_BYTES].decode("utf-8", "replace"), MAX_SNIPPET)
