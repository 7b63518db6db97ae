"""What every wire format does with a reply: open its body, refuse what is not one, mask secrets.

A reply says something: text, reasoning or a call. One that says nothing is believed only when it
has every mark of a reply that ended so, and nothing in it was left unread.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError, ProviderReplyError
from surecall.base.json_values import as_fields, count_or_none, text_or_none
from surecall.base.records import Defect, RawCall, Reply, Usage
from surecall.base.redaction import StreamMask, excerpt, mask_known
from surecall.text import decode, decode_noting, null_non_finite

from .errors import check_body
from .records import RawReply, StreamDelta

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


def decode_body(body: bytes, headers: Mapping[str, str]) -> Any:
    """Decode the body of a successful answer.

    Raises:
        ProviderError: It is empty, a page, or not JSON.
    """
    error = check_body(headers, body)
    if error is not None:
        raise error
    try:
        return decode_finite(body)
    except JSONTextError as problem:
        message = f"The provider's answer is not JSON we accept: {problem.message}"
        raise refuse_reply(Code.UPSTREAM_INVALID_JSON, message, start_of(body)) from problem


def decode_finite(data: bytes) -> Any:
    """Decode what a provider wrote, with null for figures that are not finite.

    Raises:
        JSONTextError: It is not JSON, or arguments have such a figure.
    """
    try:
        return decode(data, surrogates="replace")
    except JSONTextError as problem:
        finite = make_finite(data) if problem.code == Code.NON_FINITE_NUMBER else None
        if finite is None:
            raise
        return decode(finite, surrogates="replace")


_ARGUMENTS: Final = frozenset({"args", "arguments", "input"})


def make_finite(body: bytes) -> bytes | None:
    """Return a body with null for figures that are not finite; None when arguments have one.

    A provider that counts wrongly, as in `"total_tokens": NaN`, has answered all the same.
    """
    return null_non_finite(body, lambda way: not _ARGUMENTS.isdisjoint(way))


def decode_object(body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    """Decode the body of a successful answer, which has to be an object.

    Raises:
        ProviderError: It is empty, a page, not JSON, or other JSON.
    """
    document: Any = decode_body(body, headers)
    if document.__class__ is dict:
        return document
    kind = "array" if document.__class__ is list else "single value"
    message = f"The provider answered with a JSON {kind}, not with an object."
    raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))


def repeated_keys(text: bytes | str, inside: re.Pattern[str], place: str) -> tuple[Defect, ...]:
    """Return findings on what decoding changes in arguments: a repeated key, half of a character.

    Args:
        text: The body or event.
        inside: Matches pointers that lead into arguments.
        place: Where to note it.
    """
    try:
        repeated = decode_noting(text, surrogates="replace").duplicates
    except JSONTextError:
        finite = make_finite(text if isinstance(text, bytes) else text.encode())
        repeated = () if finite is None else decode_noting(finite, surrogates="replace").duplicates
    halves = _note_halves(text, place)
    for pointer in repeated:
        if inside.search(pointer):
            note = f"A key inside arguments has differing values: {excerpt(pointer)}"
            return (Defect(Code.DUPLICATE_KEY, note, place), *halves)
    return halves


def _note_halves(text: bytes | str, place: str) -> tuple[Defect, ...]:
    """Return a finding when half of a character was replaced in what came with arguments."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if b"\\ud" not in data and b"\\uD" not in data:
        return ()
    try:
        decode(data)
    except JSONTextError as problem:
        if problem.code == Code.LONE_SURROGATE:
            return (Defect(Code.LONE_SURROGATE, "A text has half of a character.", place),)
    return ()


_CALL_FIELDS: Final = ("tool_calls", "function_call")


def note_foreign_calls(
    fields: Mapping[str, Any], place: str, names: tuple[str, ...] = _CALL_FIELDS
) -> tuple[Defect, ...]:
    """Return a finding for calls in a field that only another wire format has."""
    return tuple(
        Defect(
            Code.CALL_ENTRY_DROPPED,
            f"`{name}` is a field of another wire format; what is in it was left out.",
            f"{place}/{name}",
        )
        for name in names
        if fields.get(name)
    )


def check_role(role: Any, expected: str = "assistant") -> None:
    """Refuse a message that says that somebody other than the model wrote it.

    Raises:
        ProviderReplyError: `UPSTREAM_NOT_A_REPLY`.
    """
    if role in (None, "", expected):
        return
    shown = repr(excerpt(role, 40)) if isinstance(role, str) else f"of type {type(role).__name__}"
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
    if is_marked and unread is None and not (reply.finish_reason or "").startswith(_NOT_TEXT):
        return
    problem = (
        f"lacks {marks}" if unread is None else f"has a part that cannot be read: {unread.message}"
    )
    message = f"The provider's answer says nothing and {problem}"
    raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message.rstrip(".") + ".")


_NOT_TEXT: Final = "not text: "
"""What a finish reason begins with that arrived as something else than text."""
_HINTS: Final[dict[str, str]] = {
    Code.STREAM_TRUNCATED: "An unfinished turn is never used; send the request again.",
    Code.UPSTREAM_BAD_EVENT: "Send the request again, or set skip_bad_events to skip the event.",
    Code.UPSTREAM_INVALID_JSON: "Check that the base URL leads to the API itself.",
    Code.UPSTREAM_NOT_A_REPLY: "Check that the base URL leads to an API that uses this protocol.",
    Code.UPSTREAM_NO_CHOICES: "Send the request again, or ask another provider.",
}


def finish_word(value: Any) -> str | None:
    """Return a finish reason as text; what is not text is a reason that nobody knows."""
    if value is None or value == "" or isinstance(value, str):
        return value or None
    return excerpt(f"{_NOT_TEXT}{value!r}", 40)


def make_raw(
    message: dict[str, Any],
    finish_reason: str | None,
    usage: Usage | None,
    fields: Mapping[str, Any],
    defects: tuple[Defect, ...],
) -> RawReply:
    """Return a message with what came with it; the model and the id are among the fields."""
    return RawReply(
        message=message,
        finish_reason=finish_reason,
        usage=usage,
        model=text_or_none(fields.get("model")),
        id=text_or_none(fields.get("id")),
        defects=defects,
    )


class Found:
    """What an assistant message holds, as it is found piece by piece."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[RawCall] = []
        self.defects: list[Defect] = []
        self.extra: dict[str, Any] = {}
        self.is_refusal = False

    def note(self, code: Code, message: str, place: str = "") -> None:
        """Note what is odd about a place of the message."""
        self.defects.append(Defect(code, message, place))

    def make_reply(
        self, raw: RawReply, content: str | None, finish_reason: str | None, joint: str = ""
    ) -> Reply:
        """Return the reply; `joint` is what is put between two thoughts."""
        return Reply(
            content=content,
            reasoning=joint.join(self.thoughts) or None,
            calls=tuple(self.calls),
            finish_reason=finish_reason,
            usage=raw.usage,
            model=raw.model,
            id=raw.id,
            defects=(*raw.defects, *self.defects),
            extra=self.extra,
            is_refusal=self.is_refusal,
        )


def note_arguments(arguments: Any, place: str, defects: list[Defect]) -> None:
    """Note what is odd about arguments that should be the text of an object."""
    if isinstance(arguments, dict):
        note = "The arguments are an object, not its text."
        defects.append(Defect(Code.ARGUMENTS_AS_OBJECT, note, place))
    elif isinstance(arguments, str) and not arguments.strip():
        defects.append(Defect(Code.ARGUMENTS_BLANK, "The arguments are blank text.", place))


def make_usage(
    given: int | None,
    made: int | None,
    total: int | None = None,
    *,
    reasoning: int | None = 0,
    cached: int | None = 0,
    cache_writes: int | None = 0,
) -> Usage | None:
    """Return token counts, of which some may be missing; nothing when all are."""
    if given is None and made is None and total is None:
        return None
    given, made = given or 0, made or 0
    return Usage(
        input_tokens=given,
        output_tokens=made,
        total_tokens=given + made if total is None else total,
        reasoning_tokens=reasoning or 0,
        cached_tokens=cached or 0,
        cache_write_tokens=cache_writes or 0,
    )


def count_detail(counts: Mapping[str, Any], group: str, name: str) -> int | None:
    """Return one of the counts that are grouped below the others."""
    details = counts.get(group)
    return count_or_none(as_fields(details).get(name)) if details else None


def start_of(body: bytes) -> str:
    """Return the beginning of a body, to show what arrived."""
    return excerpt(body[:_MAX_LOOKED_AT_BYTES], MAX_SNIPPET)


_DEFECT: Final = Defect(Code.SECRET_REDACTED, "A key was in the reply and was taken out.")


def mask_reply(raw: RawReply) -> RawReply:
    """Return the reply without known secrets, with a defect if there were any."""
    masked = mask_known(raw)
    if masked is raw or masked == raw:
        return raw
    return replace(masked, defects=(*masked.defects, _DEFECT))


class DeltaMask:
    """Passes the deltas of one reply on without known secrets, however they were split."""

    def __init__(self, on_delta: Callable[[StreamDelta], None]) -> None:
        self._on_delta = on_delta
        self._masks = {"text": StreamMask(), "reasoning": StreamMask()}

    def feed(self, delta: StreamDelta) -> None:
        """Take a delta, and pass on what is certainly not part of a secret."""
        text = self._masks[delta.kind].feed(delta.text)
        extra = mask_known(delta.extra) if delta.extra else delta.extra
        if text or extra:
            same = text == delta.text and extra is delta.extra
            self._on_delta(delta if same else replace(delta, text=text, extra=extra))

    def close(self, *, is_cut: bool = False) -> None:
        """Pass on what was held back, but for what may be part of a secret where text was cut."""
        for kind, mask in self._masks.items():
            if text := mask.close(is_cut=is_cut):
                self._on_delta(StreamDelta("text" if kind == "text" else "reasoning", text))
