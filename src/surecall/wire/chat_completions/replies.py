"""Whole replies: from bytes to the assistant message, and from the message to a `Reply`."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

from surecall.base.errors import Code
from surecall.base.json_values import as_fields, as_list, count_or_none, other_fields, text_or_none
from surecall.base.records import Defect, RawCall, Receipt, Reply, Usage
from surecall.wire.errors import parse_error_object
from surecall.wire.records import RawReply
from surecall.wire.replies import (
    check_role,
    check_says_something,
    count_detail,
    decode_object,
    finish_word,
    make_raw,
    make_usage,
    note_arguments,
    refuse_reply,
    repeated_keys,
    start_of,
)

REASONING_KEYS: Final = ("reasoning_content", "reasoning", "thinking")
"""Fields in which providers put reasoning text, the most telling first."""

_REASONING_PARTS: Final = ("reasoning", "thinking", "reasoning_text")


def _parse_content(message: Mapping[str, Any]) -> tuple[str | None, str | None, list[Defect]]:
    """Read text and reasoning from whatever shape they have, and what is odd about them.

    A refusal stands where text would.
    """
    content = message.get("content")
    text: str | None = None
    reasoning = ""
    defects: list[Defect] = []
    if content is None or isinstance(content, str):
        text = content
    elif isinstance(content, (list, dict)):
        text, reasoning, note = split_parts(cast("Any", content))
        defects.append(Defect(Code.CONTENT_AS_PARTS, note, "/content"))
    else:
        note = f"The content is of type {type(content).__name__}, not text."
        defects.append(Defect(Code.CONTENT_NOT_USABLE, note, "/content"))
    text = text or text_or_none(message.get("refusal")) or text
    stated = (text_or_none(message.get(key)) for key in REASONING_KEYS)
    return text, next(filter(None, stated), reasoning or None), defects


def split_parts(content: list[Any] | dict[str, Any]) -> tuple[str, str, str]:
    """Return the text, the reasoning, and a note about content that came in parts."""
    parts = [content] if isinstance(content, dict) else content
    texts: list[str] = []
    thoughts: list[str] = []
    left_out = 0
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        fields = as_fields(part)
        words = _part_text(fields)
        if words is None:
            left_out += 1
        elif fields.get("type") in _REASONING_PARTS:
            thoughts.append(words)
        else:
            texts.append(words)
    note = f"The content came as {len(parts)} parts"
    note += f"; {left_out} without text were left out." if left_out else "."
    return "".join(texts), "".join(thoughts), note


def _part_text(fields: Mapping[str, Any]) -> str | None:
    """Return the words of one part; some providers wrap those of a thought once more."""
    for key in ("text", "thinking", "reasoning", "refusal"):
        value = fields.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            inner = [
                as_fields(item).get("text") for item in as_list(value) if isinstance(item, dict)
            ]
            return "".join(item for item in inner if isinstance(item, str))
    return None


_NOT_ECHOED: Final = frozenset(
    {"annotations", "audio", "content", "function_call", "refusal", "role", "tool_calls"}
)
_CALL_FIELDS: Final = frozenset({"arguments", "function", "id", "index", "name", "type"})
PLAIN_FINISHES: Final = frozenset({None, "stop", "tool_calls", "function_call"})
"""Finish reasons that a later one of the same stream replaces; the records have the same words."""
find_repeated_keys: Final = partial(
    repeated_keys, inside=re.compile("/(?:tool_calls|function_call)/"), place="/tool_calls"
)
"""Return a finding when a key inside arguments was given differing values."""
_WRAPPED: Final = ("name", "arguments")


def parse_body(body: bytes, headers: Mapping[str, str] | None = None) -> RawReply:
    """Find the assistant message in a whole body.

    Raises:
        ProviderError: The body is not a reply; the code says in which way.
    """
    headers = headers or {}
    fields = decode_object(body, headers)
    if fields.get("error") or fields.get("object") == "error":
        raise parse_error_object(fields, 200, headers)
    choice, defects = _first_choice(fields, headers, body)
    message = choice["message"]
    if _may_have_changed(message):
        defects += find_repeated_keys(body)
    finish, usage = finish_word(choice.get("finish_reason")), parse_usage(fields.get("usage"))
    raw = make_raw(message, finish, usage, fields, defects)
    role = message.get("role")
    check_role(role)
    check_reply(raw, has_role=bool(role))
    return raw


def check_reply(raw: RawReply, *, has_role: bool) -> None:
    """Refuse a message that says nothing and lacks the marks of a reply that ended so.

    Raises:
        ProviderReplyError: `UPSTREAM_NOT_A_REPLY`.
    """
    text, calls = raw.message.get("content"), raw.message.get("tool_calls")
    if text and text.__class__ is str:
        return
    if calls and calls.__class__ is list and calls[0].__class__ is dict:
        return
    is_marked = has_role and raw.finish_reason is not None
    marks = "a role or a finish reason"
    check_says_something(parse_message(raw), is_marked=is_marked, marks=marks)


def parse_message(raw: RawReply) -> Reply:
    """Understand the assistant message; whatever shape it has, nothing is raised."""
    message = raw.message
    calls, defects, receipts = _parse_calls(message)
    text, reasoning = message.get("content"), None
    extra: dict[str, Any] = {}
    is_refusal = False
    is_plain = message.keys() <= _NOT_ECHOED and not message.get("refusal")
    if not is_plain or not (text is None or text.__class__ is str):
        text, reasoning, odd = _parse_content(message)
        defects = [*odd, *defects]
        is_refusal = bool(text) and text == message.get("refusal")
        extra = other_fields(message, _NOT_ECHOED)
    return Reply(
        content=text,
        reasoning=reasoning,
        calls=tuple(calls),
        finish_reason=raw.finish_reason,
        usage=raw.usage,
        model=raw.model,
        id=raw.id,
        defects=(*raw.defects, *defects) if defects else raw.defects,
        extra=extra,
        receipts=receipts,
        is_refusal=is_refusal,
    )


def parse_usage(usage: Any) -> Usage | None:
    """Read token counts; what is not a count is left out."""
    if not isinstance(usage, dict):
        return None
    counts = as_fields(usage)
    given = count_or_none(counts.get("prompt_tokens"))
    if given is None:
        given = count_or_none(counts.get("input_tokens"))
    made = count_or_none(counts.get("completion_tokens"))
    if made is None:
        made = count_or_none(counts.get("output_tokens"))
    return make_usage(
        given,
        made,
        count_or_none(counts.get("total_tokens")),
        reasoning=count_detail(counts, "completion_tokens_details", "reasoning_tokens"),
        cached=count_detail(counts, "prompt_tokens_details", "cached_tokens")
        or count_or_none(counts.get("prompt_cache_hit_tokens"))
        or count_or_none(counts.get("cached_tokens")),
        cache_writes=count_detail(counts, "prompt_tokens_details", "cache_write_tokens"),
    )


def _first_choice(
    document: dict[str, Any], headers: Mapping[str, str], body: bytes
) -> tuple[dict[str, Any], tuple[Defect, ...]]:
    choices: Any = document.get("choices")
    if choices.__class__ is not list or not choices:
        message = "The provider's answer has no choices."
        raise refuse_reply(Code.UPSTREAM_NO_CHOICES, message, start_of(body))
    choice: Any = choices[0]
    if choice.__class__ is dict:
        if choice.get("error"):
            raise parse_error_object(choice, 200, headers)
        if choice.get("message").__class__ is dict:
            return choice, choices_ignored(len(choices) - 1)
    message = "The first choice of the provider's answer has no message."
    raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))


def choices_ignored(count: int) -> tuple[Defect, ...]:
    """Return the finding that choices apart from the first were left alone."""
    if count < 1:
        return ()
    return (Defect(Code.CHOICES_IGNORED, f"{count} more choices were not used.", "/choices"),)


def _may_have_changed(message: dict[str, Any]) -> bool:
    """Tell whether decoding may have changed arguments: a key or half of a character is lost."""
    calls: Any = message.get("tool_calls") or None
    if calls.__class__ is not list:
        return calls is not None or bool(message.get("function_call"))
    for entry in calls:
        function: Any = entry.get("function") if entry.__class__ is dict else None
        arguments: Any = function.get("arguments") if function.__class__ is dict else None
        if arguments.__class__ is not str or "\ufffd" in arguments:
            return True
    return False


def _parse_calls(
    message: dict[str, Any],
) -> tuple[list[RawCall], list[Defect], tuple[Receipt, ...]]:
    """Return the calls in the fields made for them, what was odd, and what was left out."""
    calls: list[RawCall] = []
    defects: list[Defect] = []
    entries: Any = message.get("tool_calls")
    if isinstance(entries, dict):
        defects.append(Defect(Code.CALLS_AS_OBJECT, "tool_calls is one object.", "/tool_calls"))
        entries = [entries]
    elif entries is not None and not isinstance(entries, list):
        defects.append(_note_dropped(entries, "/tool_calls"))
        entries = None
    for position, entry in enumerate(cast("list[Any]", entries or ())):
        if not isinstance(entry, dict):
            defects.append(_note_dropped(entry, f"/tool_calls/{position}"))
            continue
        call = _parse_call(as_fields(entry), position)
        calls.append(call)
        if not isinstance(call.arguments, str) or call.arguments[:1] != "{":
            note_arguments(call.arguments, f"/tool_calls/{position}", defects)
    legacy = message.get("function_call")
    if not isinstance(legacy, dict):
        if legacy:
            defects.append(_note_dropped(legacy, "/function_call"))
        return calls, defects, ()
    legacy = as_fields(legacy)
    if calls:
        return calls, defects, (_drop_legacy(legacy, calls),) if legacy else ()
    arguments = legacy.get("arguments")
    calls.append(RawCall(None, legacy.get("name"), arguments, "function_call"))
    note = "The call came in the older field function_call."
    defects.append(Defect(Code.LEGACY_FUNCTION_CALL, note, "/function_call"))
    note_arguments(arguments, "/function_call", defects)
    return calls, defects, ()


def _drop_legacy(legacy: dict[str, Any], calls: list[RawCall]) -> Receipt:
    """Return the receipt for a call of the older field, which `tool_calls` replaces."""
    said = (legacy.get("name"), legacy.get("arguments"))
    is_repeated = any((call.name, call.arguments) == said for call in calls)
    return Receipt(
        "drop_legacy_call",
        "/function_call",
        legacy,
        None,
        lossless=is_repeated,
        why="tool_calls has the same call" if is_repeated else "tool_calls has other calls",
    )


def _parse_call(entry: dict[str, Any], position: int) -> RawCall:
    function: Any = entry.get("function")
    if function.__class__ is dict and entry.keys() <= _CALL_FIELDS:
        name, arguments = function.get("name"), function.get("arguments")
        if name is not None and arguments is not None and len(function) == len(_WRAPPED):
            return RawCall(entry.get("id"), name, arguments)
    inner = as_fields(function)
    said = {key: inner[key] for key in _WRAPPED if inner.get(key) is not None}
    bare = {key: entry[key] for key in _WRAPPED if key not in said and entry.get(key) is not None}
    receipts: tuple[Receipt, ...] = ()
    if bare:
        why = "the call, or a part of it, came without the function wrapper"
        place = f"/tool_calls/{position}"
        receipts = (Receipt("wrap_bare_call", place, sorted(bare), "function", why=why),)
    extra = other_fields(entry, _CALL_FIELDS)
    call = said | bare
    beside = tuple(inner.keys() - _WRAPPED)
    name, arguments = call.get("name"), call.get("arguments")
    return RawCall(entry.get("id"), name, arguments, "tool_calls", extra, receipts, beside)


def _note_dropped(entry: Any, place: str) -> Defect:
    note = f"A value of type {type(entry).__name__} is in the place of a call."
    return Defect(Code.CALL_ENTRY_DROPPED, note, place)


def is_function(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry among the calls is one of a function."""
    return entry.get("type") in (None, "", "function")
