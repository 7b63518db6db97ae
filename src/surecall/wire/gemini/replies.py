"""Whole replies and error answers.

A whole reply and a streamed one are made of the same chunks, so both are folded by `ReplyFold`.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.errors import (
    Code,
    JSONTextError,
    ProviderError,
    ProviderReplyError,
    ProviderStatusError,
)
from surecall.base.json_values import as_fields, as_list, count_or_none, text_or_none
from surecall.base.records import Defect, RawCall, Reply, Usage
from surecall.base.redaction import excerpt
from surecall.text import decode
from surecall.wire.errors import parse_error as parse_plain_answer
from surecall.wire.errors import parse_error_object as parse_plain_error
from surecall.wire.partial_reply import Kept
from surecall.wire.records import RawReply
from surecall.wire.replies import (
    Found,
    check_role,
    check_says_something,
    decode_body,
    finish_word,
    make_usage,
    note_foreign_calls,
    refuse_reply,
    repeated_keys,
    start_of,
)

from .parts import PartialParts, member, own_name

_MAX_DELAY_S: Final = 86_400.0
_CALL_FIELDS: Final = frozenset({"args", "id", "name"})
_KEY_HINT: Final = "Check the API key and that it belongs to this base URL."


def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Understand an error answer; nothing is raised."""
    error = parse_plain_answer(status, headers, body)
    try:
        value = decode(body, surrogates="replace")
    except JSONTextError:
        return error
    _refine(error, value)
    return error


def parse_error_object(
    value: Any, status: int, headers: Mapping[str, str], *, fallback: Code
) -> ProviderStatusError:
    """Return the error that an error body, or an error event in a stream, stands for."""
    error = parse_plain_error(value, status, headers, fallback=fallback)
    _refine(error, value)
    return error


def _refine(error: ProviderError, value: Any) -> None:
    """Tell a bad key from a bad request, and a short pause from a quota that is used up.

    Gemini says "exceeded your current quota" in both cases; only the details tell them apart.
    """
    first = as_list(value)[:1]
    stated = as_fields(as_fields(first[0] if first else value).get("error"))
    details = [as_fields(item) for item in as_list(stated.get("details"))]
    if any(item.get("reason") == "API_KEY_INVALID" for item in details):
        error.code, error.hint, error.retryable = str(Code.AUTH), _KEY_HINT, False
    delay_s = next((found for item in details if (found := _delay_s(item)) is not None), None)
    if delay_s is None:
        return
    error.retry_after_s = delay_s
    quotas = [
        str(as_fields(v).get("quotaId")) for d in details for v in as_list(d.get("violations"))
    ]
    if error.code == Code.QUOTA_EXCEEDED and not any("PerDay" in quota for quota in quotas):
        error.code, error.hint, error.retryable = str(Code.RATE_LIMIT), None, True


def _delay_s(detail: dict[str, Any]) -> float | None:
    text = detail.get("retryDelay")
    if not isinstance(text, str) or not text.endswith("s"):
        return None
    number = text[:-1]
    if len(number) > 20 or not number.replace(".", "", 1).isdigit() or not number.isascii():
        return None
    return min(float(number), _MAX_DELAY_S)


_FINISHES: Final = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "FINISH_REASON_UNSPECIFIED": None,
}
FINISH_REASONS: Final = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "language": "LANGUAGE",
    "malformed_function_call": "MALFORMED_FUNCTION_CALL",
    "too_many_tool_calls": "TOO_MANY_TOOL_CALLS",
    "unexpected_tool_call": "UNEXPECTED_TOOL_CALL",
}
"""What a finish reason of the records is called; any other is OTHER."""
find_repeated_keys: Final = partial(
    repeated_keys, inside=re.compile("/(?:functionCall|function_call)/"), place="/parts"
)
"""Return a finding when a key inside arguments was given differing values."""
_MALFORMED: Final = "malformed_function_call"
_MALFORMED_START: Final = "Malformed function call:"
_PRINTED: Final = ("print(", ")")
_NAMESPACE: Final = re.compile(r"(?<![\w.:'\"])(?:call:)?default_api[.:](?=[\w-]++[ \t]*+[({])")
_QUOTE: Final = "<ctrl46>"
_MEDIA_PARTS: Final = ("inlineData", "fileData")
"""Parts such as images, which replies in other formats do not have."""
_SILENT_PARTS: Final = ("executableCode", "codeExecutionResult")
"""Parts that are known, and hold neither text nor a call of ours."""


def parse_body(body: bytes, headers: Mapping[str, str] | None = None) -> RawReply:
    """Find the assistant's content in a whole body; a list of chunks is a stream in one piece.

    Raises:
        ProviderError: The body is not a reply; the code says in which way.
    """
    headers = headers or {}
    document = decode_body(body, headers)
    chunks = as_list(document) if isinstance(document, list) else [document]
    fold = ReplyFold(headers, Kept(is_limited=False))
    for chunk in chunks:
        if not isinstance(chunk, dict):
            message = "The provider answered with JSON that is not an object."
            raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))
        fold.take(as_fields(chunk))
    if fold.has_calls:
        fold.defects += find_repeated_keys(body)
    if not fold.has_candidate:
        message = "The provider's answer has no candidates."
        raise refuse_reply(Code.UPSTREAM_NO_CHOICES, message, start_of(body))
    if fold.finish is None and not fold.parts.render():
        message = "The first candidate of the provider's answer has no content."
        raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))
    if isinstance(document, list) and fold.finish is None:
        message = "The stream ended without a finish reason."
        raise refuse_reply(Code.STREAM_TRUNCATED, message, excerpt(fold.parts.text))
    return fold.render()


class ReplyFold:
    """One reply, as far as its chunks have arrived."""

    def __init__(self, headers: Mapping[str, str], kept: Kept) -> None:
        self._headers = headers
        self._kept = kept
        self.parts = PartialParts(kept)
        self.defects: tuple[Defect, ...] = ()
        self.finish: str | None = None
        self.has_candidate = False
        self._finish_message: str | None = None
        self._has_role = False
        self.index: int | None = None
        """The number of the candidate that is read."""
        self._others: set[int] = set()
        self.usage: Usage | None = None
        self.model: str | None = None
        self._id: str | None = None

    @property
    def has_calls(self) -> bool:
        """Whether a call has arrived."""
        return self.parts.calls_count > 0

    def take(self, chunk: dict[str, Any], *, fallback: Code = Code.UPSTREAM_ERROR_BODY) -> None:
        """Add what one chunk brought.

        Raises:
            ProviderError: The chunk is an error, or says that the prompt was blocked.
        """
        if chunk.get("error"):
            raise parse_error_object(chunk, 200, self._headers, fallback=fallback)
        self.usage = parse_usage(member(chunk, "usageMetadata")) or self.usage
        self.model = self.model or text_or_none(member(chunk, "modelVersion"))
        self._id = self._id or text_or_none(member(chunk, "responseId"))
        given = chunk.get("candidates")
        if given and not isinstance(given, list):
            raise _refuse_type(given, "list", "candidates")
        candidates = as_list(given)
        feedback = as_fields(member(chunk, "promptFeedback"))
        if not candidates and member(feedback, "blockReason"):
            raise _refuse_prompt(feedback)
        for position, item in enumerate(candidates):
            if not isinstance(item, dict):
                raise _refuse_type(item, "object", "candidate")
            self._take_candidate(as_fields(item), position)

    def render(self) -> RawReply:
        """Return the reply as a whole body would carry it.

        Raises:
            ProviderReplyError: `UPSTREAM_NOT_A_REPLY`, when it says nothing and lacks the marks of
                a reply that ended so. Whatever ended it other than a plain stop explains itself.
        """
        message: dict[str, Any] = {"role": "model", "parts": self.parts.render()}
        if self._finish_message:
            message["finishMessage"] = self._finish_message
        finish = self.finish
        if finish == "stop" and self.has_calls:
            finish = "tool_calls"
        defects = self.defects
        if self._others:
            note = f"{len(self._others)} more candidates were not used."
            defects = (Defect(Code.CHOICES_IGNORED, note, "/candidates"), *defects)
        raw = RawReply(
            message=message,
            finish_reason=finish,
            usage=self.usage,
            model=self.model,
            id=self._id,
            defects=defects,
        )
        is_named = self._has_role or bool(self.usage or self.model or self._id)
        is_marked = finish is not None and (is_named or finish != "stop")
        marks = "a finish reason, or content, a model and usage"
        check_says_something(parse_message(raw), is_marked=is_marked, marks=marks)
        return raw

    def _take_candidate(self, candidate: dict[str, Any], position: int) -> None:
        stated = candidate.get("index")
        index = stated if type(stated) is int else position
        if self.index is None:
            self.index = index
        if index != self.index:
            if index not in self._others:
                self._kept.add_part()
                self._others.add(index)
            return
        self.has_candidate = True
        reason = finish_word(member(candidate, "finishReason"))
        self._take_content(candidate.get("content"), reason)
        if reason is not None and self.finish in (None, "stop"):
            # A plain stop does not take back what was said about the end before.
            self.finish = _FINISHES.get(reason.upper(), reason.lower())
        self._finish_message = (
            text_or_none(member(candidate, "finishMessage")) or self._finish_message
        )

    def _take_content(self, content: Any, reason: str | None) -> None:
        if content and not isinstance(content, dict):
            raise _refuse_type(content, "object", "content")
        fields = as_fields(content)
        role, parts = fields.get("role"), fields.get("parts")
        self.defects += note_foreign_calls(fields, "/content", ("tool_calls",))
        if not self._kept.is_passed:
            check_role(role, "model")
        self._has_role = self._has_role or bool(role)
        if parts and not isinstance(parts, list):
            raise _refuse_type(parts, "list", "parts")
        if self.finish is not None:
            late = [as_fields(part) for part in as_list(parts)]
            if any(member(part, "functionCall") for part in late):
                message = "The provider's answer has a call after the finish."
                raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message)
            if reason is None and any(part.get("text") for part in late):
                message = "The provider's answer has text after the finish."
                raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message)
        self.parts.take(parts)


def parse_message(raw: RawReply) -> Reply:
    """Understand the assistant's content; whatever shape it has, nothing is raised."""
    found = Found()
    parts = raw.message.get("parts")
    if parts is not None and not isinstance(parts, list):
        found.defects.append(_note_unknown(parts, "/parts"))
    for position, item in enumerate(as_list(parts)):
        place = f"/parts/{position}"
        part = as_fields(item)
        text, call = part.get("text"), member(part, "functionCall")
        if isinstance(call, dict):
            found.calls.append(_parse_call(as_fields(call), part, place, found))
            continue
        signature = text_or_none(member(part, "thoughtSignature"))
        if signature:
            found.extra["thought_signature"] = signature
        if isinstance(text, str):
            (found.thoughts if part.get("thought") is True else found.texts).append(text)
        elif kind := next((name for name in _MEDIA_PARTS if member(part, name)), None):
            note = f"A part has {kind}, which is neither text nor a call."
            found.note(Code.PART_NOT_KNOWN, note, place)
        elif not signature and not any(member(part, name) for name in _SILENT_PARTS):
            found.defects.append(_note_unknown(item, place))
    is_malformed = raw.finish_reason == _MALFORMED
    malformed = _note_malformed(raw.message, found) if is_malformed else ""
    reply = found.make_reply(raw, "".join(found.texts) or None, raw.finish_reason)
    return replace(reply, malformed=malformed) if malformed else reply


def parse_usage(usage: Any) -> Usage | None:
    """Read token counts; thoughts are part of what the model wrote."""
    counts = as_fields(usage)
    given = _count(counts, "promptTokenCount")
    made = _count(counts, "candidatesTokenCount")
    total = _count(counts, "totalTokenCount")
    thoughts = _count(counts, "thoughtsTokenCount") or 0
    if given is None and made is None and total is None:
        return None
    taken = (given or 0) + (_count(counts, "toolUsePromptTokenCount") or 0)
    cached = _count(counts, "cachedContentTokenCount")
    return make_usage(taken, (made or 0) + thoughts, total, reasoning=thoughts, cached=cached)


def _parse_call(call: dict[str, Any], part: dict[str, Any], place: str, found: Found) -> RawCall:
    arguments: Any = call.get("args")
    if arguments is None:
        arguments = {}
    if isinstance(arguments, str):
        found.note(Code.ARGUMENTS_AS_TEXT, "The arguments are text, not an object.", place)
    spellings = (part.get("functionCall"), part.get("function_call"))
    if None not in spellings and spellings[0] != spellings[1]:
        note = "A part has two calls; the one in `function_call` was left out."
        found.note(Code.CALL_ENTRY_DROPPED, note, place)
    name = call.get("name")
    signature = text_or_none(member(part, "thoughtSignature"))
    return RawCall(
        call.get("id") or None,
        own_name(name) if isinstance(name, str) else name,
        arguments,
        "tool_calls",
        {"thought_signature": signature} if signature else {},
        beside=tuple(call.keys() - _CALL_FIELDS),
    )


def _note_malformed(message: dict[str, Any], found: Found) -> str:
    """Return what the model wrote for a call, as far as it may still be read as text."""
    stated = text_or_none(message.get("finishMessage")) or ""
    written = stated.removeprefix(_MALFORMED_START).strip()
    note = "The provider could not read the call that the model wrote"
    note = f"{note}: {excerpt(written)}" if written else f"{note}."
    found.note(Code.MALFORMED_FUNCTION_CALL, note)
    return _unwrap_code(written)


def _unwrap_code(written: str) -> str:
    """Take away what Gemini writes around calls in code: `print(default_api.look(at='x'))`."""
    unprinted = "\n".join(map(_unprint, written.split("\n")))
    quoted = unprinted if '"' in unprinted else unprinted.replace(_QUOTE, '"')
    return _NAMESPACE.sub("", quoted)


def _unprint(line: str) -> str:
    opener, closer = _PRINTED
    said = line.strip()
    is_printed = said.startswith(opener) and said.endswith(closer)
    return said[len(opener) : -len(closer)] if is_printed else line


def _refuse_prompt(feedback: dict[str, Any]) -> ProviderError:
    reason = excerpt(str(member(feedback, "blockReason")), 80)
    stated = text_or_none(member(feedback, "blockReasonMessage"))
    return ProviderReplyError(
        Code.PROMPT_BLOCKED,
        f"The provider refused the prompt: {excerpt(stated) if stated else reason}.",
        hint="Change what is asked, or the safety settings; trying again does not help.",
        status=200,
        provider_code=reason,
        provider_message=excerpt(stated) if stated else None,
    )


def _refuse_type(value: Any, expected: str, what: str) -> ProviderError:
    message = f"The {what} of the provider's answer is of type {type(value).__name__}, "
    return refuse_reply(Code.UPSTREAM_NOT_A_REPLY, f"{message}not {expected}.")


def _note_unknown(item: Any, place: str) -> Defect:
    keys = sorted(str(key) for key in as_fields(item))[:5]
    if member(as_fields(item), "functionCall"):
        return Defect(Code.CALL_ENTRY_DROPPED, "The call of a part is not an object.", place)
    if not keys or "text" in keys:
        problem = "The text of a part is" if keys else "What is in the place of a part is"
        return Defect(Code.CONTENT_NOT_USABLE, f"{problem} of another type.", place)
    stated = ", ".join(excerpt(key, 40) for key in keys)
    note = f"A part is of a kind that is not known: with {stated}."
    return Defect(Code.PART_NOT_KNOWN, note, place)


def _count(counts: dict[str, Any], name: str) -> int | None:
    return count_or_none(member(counts, name))
