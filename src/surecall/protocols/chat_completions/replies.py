"""Whole replies: from bytes to the assistant message, and from the message to a `Reply`."""

from collections.abc import Mapping
from typing import Any, Final, cast

from surecall.errors import Code, JSONTextError
from surecall.jsontext import decode, decode_noting
from surecall.protocols.base import RawReply
from surecall.protocols.faults import check_body, parse_error_object
from surecall.protocols.refusals import (
    check_role,
    check_says_something,
    finish_word,
    refuse_reply,
    start_of,
    text_or_none,
)
from surecall.records import Defect, RawCall, Receipt, Reply, Usage, clip

from .content import parse_content

__all__ = [
    "check_reply",
    "choices_ignored",
    "parse_body",
    "parse_message",
    "parse_usage",
    "repeated_keys",
]

_NOT_ECHOED: Final = frozenset(
    {"annotations", "audio", "content", "function_call", "refusal", "role", "tool_calls"}
)
_CALL_FIELDS: Final = frozenset({"arguments", "function", "id", "index", "name", "type"})
_WRAPPED: Final = ("name", "arguments")


def parse_body(body: bytes, headers: Mapping[str, str] | None = None) -> RawReply:
    """Find the assistant message in a whole body.

    Raises:
        ProviderError: The body is not a reply; the code says in which way.
    """
    headers = headers or {}
    fault = check_body(headers, body)
    if fault is not None:
        raise fault
    try:
        document: Any = decode(body, surrogates="replace")
    except JSONTextError as error:
        message = f"The provider's answer is not JSON we accept: {error.message}"
        raise refuse_reply(Code.UPSTREAM_INVALID_JSON, message, start_of(body)) from error
    if document.__class__ is not dict:
        kind = "array" if document.__class__ is list else "single value"
        message = f"The provider answered with a JSON {kind}, not with an object."
        raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))
    fields: dict[str, Any] = document
    if fields.get("error") or fields.get("object") == "error":
        raise parse_error_object(fields, 200, headers)
    choice, defects = _first_choice(fields, headers, body)
    message = choice["message"]
    if _may_have_objects(message):
        defects += repeated_keys(body)
    raw = RawReply(
        message=message,
        finish_reason=finish_word(choice.get("finish_reason")),
        usage=parse_usage(fields.get("usage")),
        model=text_or_none(fields.get("model")),
        id=text_or_none(fields.get("id")),
        defects=defects,
    )
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
    if not defects and message.keys() <= _NOT_ECHOED and not message.get("refusal"):
        text = message.get("content")
        if text is None or text.__class__ is str:  # nothing beside text and calls
            return Reply(
                content=text,
                calls=tuple(calls),
                finish_reason=raw.finish_reason,
                usage=raw.usage,
                model=raw.model,
                id=raw.id,
                defects=raw.defects,
                receipts=receipts,
            )
    content = parse_content(message)
    return Reply(
        content=content.text,
        reasoning=content.reasoning,
        calls=tuple(calls),
        finish_reason=raw.finish_reason,
        usage=raw.usage,
        model=raw.model,
        id=raw.id,
        defects=(*raw.defects, *content.defects, *defects),
        extra=_beside(message, _NOT_ECHOED),
        receipts=receipts,
    )


def parse_usage(usage: Any) -> Usage | None:
    """Read token counts; what is not a count is left out."""
    if not isinstance(usage, dict):
        return None
    counts = cast("dict[str, Any]", usage)
    given: Any = counts.get("prompt_tokens")
    if type(given) is not int or given < 0:
        given = _count(counts, "input_tokens")
    made: Any = counts.get("completion_tokens")
    if type(made) is not int or made < 0:
        made = _count(counts, "output_tokens")
    total = _count(counts, "total_tokens")
    if given is None and made is None and total is None:
        return None
    return Usage(
        input_tokens=given or 0,
        output_tokens=made or 0,
        total_tokens=total if total is not None else (given or 0) + (made or 0),
        reasoning_tokens=_detail(counts.get("completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=_cached(counts),
    )


def _cached(counts: dict[str, Any]) -> int:
    """Return how many tokens came from the cache, wherever a provider counts them."""
    found = _detail(counts.get("prompt_tokens_details"), "cached_tokens")
    return (
        found or _count(counts, "prompt_cache_hit_tokens") or _count(counts, "cached_tokens") or 0
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
    """Return the finding that choices beside the first were left alone."""
    if count < 1:
        return ()
    return (Defect(Code.CHOICES_IGNORED, f"{count} more choices were not used.", "/choices"),)


def _may_have_objects(message: dict[str, Any]) -> bool:
    """Tell whether arguments may have come as objects, in which a key can be repeated."""
    calls: Any = message.get("tool_calls") or None
    if calls.__class__ is not list:
        return calls is not None or bool(message.get("function_call"))
    for entry in calls:
        function: Any = entry.get("function") if entry.__class__ is dict else None
        if function.__class__ is not dict or function.get("arguments").__class__ is not str:
            return True
    return False


def repeated_keys(text: bytes | str) -> tuple[Defect, ...]:
    """Return a finding when a key inside arguments was given differing values."""
    for place in decode_noting(text, surrogates="replace").duplicates:
        if "/tool_calls/" in place or "/function_call/" in place:
            note = f"A key inside arguments has differing values: {clip(place)}"
            return (Defect(Code.DUPLICATE_KEY, note, "/tool_calls"),)
    return ()


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
        defects.append(_dropped(entries, "/tool_calls"))
        entries = None
    for position, entry in enumerate(cast("list[Any]", entries or ())):
        if not isinstance(entry, dict):
            defects.append(_dropped(entry, f"/tool_calls/{position}"))
            continue
        call = _parse_call(cast("dict[str, Any]", entry), position)
        calls.append(call)
        if not isinstance(call.arguments, str) or call.arguments[:1] != "{":
            _note_arguments(call.arguments, f"/tool_calls/{position}", defects)
    legacy = message.get("function_call")
    if not isinstance(legacy, dict):
        return calls, defects, ()
    legacy = cast("dict[str, Any]", legacy)
    if calls:
        return calls, defects, (_drop_legacy(legacy, calls),) if legacy else ()
    arguments = legacy.get("arguments")
    calls.append(RawCall(None, legacy.get("name"), arguments, "function_call"))
    note = "The call came in the older field function_call."
    defects.append(Defect(Code.LEGACY_FUNCTION_CALL, note, "/function_call"))
    _note_arguments(arguments, "/function_call", defects)
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
        if name is not None and arguments is not None:
            return RawCall(entry.get("id"), name, arguments)
    inner = cast("dict[str, Any]", function) if isinstance(function, dict) else {}
    said = {key: inner[key] for key in _WRAPPED if inner.get(key) is not None}
    bare = {key: entry[key] for key in _WRAPPED if key not in said and entry.get(key) is not None}
    receipts: tuple[Receipt, ...] = ()
    if bare:
        why = "the call, or a part of it, came without the function wrapper"
        place = f"/tool_calls/{position}"
        receipts = (Receipt("wrap_bare_call", place, sorted(bare), "function", why=why),)
    extra = _beside(entry, _CALL_FIELDS)
    call = said | bare
    return RawCall(
        entry.get("id"), call.get("name"), call.get("arguments"), "tool_calls", extra, receipts
    )


def _beside(fields: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the fields that are not known and say something."""
    if fields.keys() <= known:
        return {}
    return {key: value for key, value in fields.items() if key not in known and value is not None}


def _note_arguments(arguments: Any, place: str, defects: list[Defect]) -> None:
    if isinstance(arguments, dict):
        note = "The arguments are an object, not its text."
        defects.append(Defect(Code.ARGUMENTS_AS_OBJECT, note, place))
    elif isinstance(arguments, str) and not arguments.strip():
        defects.append(Defect(Code.ARGUMENTS_BLANK, "The arguments are blank text.", place))


def _dropped(entry: Any, place: str) -> Defect:
    note = f"A value of type {type(entry).__name__} stands where a call should be."
    return Defect(Code.CALL_ENTRY_DROPPED, note, place)


def _count(counts: dict[str, Any], name: str) -> int | None:
    value = counts.get(name)
    return value if type(value) is int and value >= 0 else None


def _detail(details: Any, name: str) -> int:
    if not isinstance(details, dict):
        return 0
    return _count(cast("dict[str, Any]", details), name) or 0
