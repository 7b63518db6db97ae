"""Conversations that a provider would refuse, mended without loss before they are sent.

Every call has one result behind it, no two calls share an id, and arguments can be read. A history
that needs nothing keeps its bytes; one that is mended gives the same bytes next time, since each
change depends only on what it mends.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Raw

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Receipt
from surecall.text import decode, decoder_of, encode

from .echoes import (
    RESTORE_ECHO,
    EchoCache,
    EchoStore,
    give_own_ids,
    has_own_id,
    is_signed,
)
from .items import ITEM_MENDERS
from .mending import MENDING_RULES
from .turns import TURN_MENDERS

__all__ = [
    "HISTORY_RULES",
    "LIST_KEYS",
    "EchoCache",
    "EchoStore",
    "ends_with_results",
    "find_call_ids",
    "give_own_ids",
    "has_own_id",
    "has_results",
    "is_signed",
    "repair_body",
    "repair_history",
]

LIST_KEYS: Final[Mapping[str, str]] = {
    "chat_completions": "messages",
    "gemini": "contents",
    "messages": "messages",
    "responses": "input",
}
"""Where the conversation is in a request, by wire format."""

HISTORY_RULES: Final = (*MENDING_RULES, RESTORE_ECHO)
"""The rules of receipts for conversations."""

_PART_KEYS: Final = {"gemini": "parts", "messages": "content"}
_MENDERS: Final = {**ITEM_MENDERS, **TURN_MENDERS}
_decode_members: Final = decoder_of(dict[str, Raw])
_decode_items: Final = decoder_of(list[Raw])


def repair_history(
    document: dict[str, Any],
    protocol: str,
    *,
    echoes: EchoCache | None = None,
    scope: str = "",
    with_reasoning: bool = True,
) -> tuple[dict[str, Any], tuple[Receipt, ...]]:
    """Return a request whose conversation can be sent, and what was changed; the same if nothing.

    Args:
        document: The request; it is not changed.
        protocol: The name of its wire format.
        echoes: What clients should have sent back and may have left out.
        scope: Whose conversation it is.
        with_reasoning: Whether reasoning is put back, and not only signatures of calls.
    """
    key = LIST_KEYS[protocol]
    items = document.get(key)
    if not isinstance(items, list):
        return document, ()
    mender = _MENDERS[protocol](as_list(items), document)
    mended = mender.mend()
    if echoes is not None:
        mended = echoes.restore(mended, protocol, scope, mender.receipts, with_reasoning)
    if not mender.receipts:
        return document, ()
    return {**document, key: mended}, tuple(mender.receipts)


def repair_body(
    body: bytes,
    protocol: str,
    *,
    echoes: EchoCache | None = None,
    scope: str = "",
    with_reasoning: bool = True,
) -> tuple[bytes, tuple[Receipt, ...]]:
    """Do the same to the bytes of a request: only those of messages that change are written anew.

    What cannot be read is left as it is: the endpoint will say so.
    """
    key = LIST_KEYS[protocol]
    try:
        members = _decode_members(body)
        written = members.get(key, b"")
        raws = _decode_items(written)
        items = [decode(bytes(raw), surrogates="replace") for raw in raws]
        context = {name: True for name in members if name != key}
    except (ValueError, RecursionError, JSONTextError):
        return body, ()
    document, receipts = repair_history(
        {**context, key: items},
        protocol,
        echoes=echoes,
        scope=scope,
        with_reasoning=with_reasoning,
    )
    if not receipts:
        return body, ()
    known = {id(item): bytes(raw) for item, raw in zip(items, raws, strict=True)}
    parts = [known.get(id(item)) or encode(item) for item in as_list(document[key])]
    mended = b"[" + b",".join(parts) + b"]"
    before = bytes(written)
    if body.count(before) == 1:
        return body.replace(before, mended), receipts
    others = [
        encode(name) + b":" + (mended if name == key else bytes(raw))
        for name, raw in members.items()
    ]
    return b"{" + b",".join(others) + b"}", receipts


def find_call_ids(document: Mapping[str, Any], protocol: str) -> frozenset[str]:
    """Return the ids that calls of a conversation have."""
    found: set[str] = set()
    for item in as_list(document.get(LIST_KEYS[protocol])):
        for call in _calls_in(as_fields(item), protocol):
            call_id = call.get("call_id") if protocol == "responses" else call.get("id")
            if isinstance(call_id, str):
                found.add(call_id)
    return frozenset(found)


def has_results(document: Mapping[str, Any], protocol: str) -> bool:
    """Tell whether a conversation has any results of tools."""
    items = [as_fields(item) for item in as_list(document.get(LIST_KEYS[protocol]))]
    if protocol == "chat_completions":
        return any(item.get("role") in ("tool", "function") for item in items)
    if protocol == "responses":
        return any(str(item.get("type")).endswith("_call_output") for item in items)
    parts = (as_fields(part) for item in items for part in as_list(item.get(_PART_KEYS[protocol])))
    return any(map(_is_result, parts))


def ends_with_results(document: Mapping[str, Any], protocol: str) -> bool:
    """Tell whether the last turn of a conversation has results of tools."""
    items = [as_fields(item) for item in as_list(document.get(LIST_KEYS[protocol]))]
    last = items[-1] if items else {}
    if protocol == "chat_completions":
        return last.get("role") in ("tool", "function")
    if protocol == "responses":
        return last.get("type") == "function_call_output"
    for item in reversed(items):
        if item.get("role") in ("assistant", "model"):
            return False
        if any(_is_result(as_fields(part)) for part in as_list(item.get(_PART_KEYS[protocol]))):
            return True
    return False


def _is_result(part: dict[str, Any]) -> bool:
    names = ("functionResponse", "function_response")
    return part.get("type") == "tool_result" or any(name in part for name in names)


def _calls_in(item: dict[str, Any], protocol: str) -> Iterator[dict[str, Any]]:
    if protocol == "chat_completions":
        yield from (as_fields(call) for call in as_list(item.get("tool_calls")))
    elif protocol == "responses":
        if item.get("type") == "function_call":
            yield item
    elif protocol == "messages":
        blocks = (as_fields(block) for block in as_list(item.get("content")))
        yield from (block for block in blocks if block.get("type") == "tool_use")
    else:
        for part in as_list(item.get("parts")):
            fields = as_fields(part)
            call = fields.get("functionCall") or fields.get("function_call")
            if isinstance(call, dict):
                yield as_fields(call)
