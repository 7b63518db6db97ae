"""Replies of a model that was taught to call tools in its text, and calls that are broken."""

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.patterns import lazy_pattern
from surecall.base.records import Defect, RawCall, Reading, Receipt, Reply, clip
from surecall.calls import ToolNames
from surecall.calls.teach import (
    ANSWER_KEY,
    CALLS_KEY,
    MAX_GRAMMAR_CHARS,
    MAX_GRAMMAR_ITEMS,
    REPLY_KEY,
)
from surecall.text import Repaired, repair_json

from .reply import ReplyReader
from .truncation import came_to_its_end

_FENCE: Final = "```"
_NAME_WORD: Final = '"name"'
_NAME_WORDS: Final = (_NAME_WORD, "'name'")
_ARGUMENTS_WORDS: Final = ('"arguments"', '"parameters"', "'arguments'")
_CALL_KEYS: Final = frozenset({"arguments", "id", "name", "parameters", "type"})
"""Keys of an object that can be nothing but a call."""
_SEVERAL: Final = "extra_values"
_MAX_LOOKED_AT_CHARS: Final = 100_000
_MAX_SNIPPET_CHARS: Final = 200
_TAGS: Final = "tool_calls?|function_calls?|tool_use|function|invoke|toolcall"
_NAMED: Final = lazy_pattern(
    r"""["'](?:name|tool|tool_name|function)["']\s*+:\s*+["']([\w.:-]{1,64}+)["']"""
)
_MARKUP: Final = lazy_pattern(
    rf"^[ \t]*+(?:<\|?(?:{_TAGS})\b[^<>\n]{{0,80}}+>|\[TOOL_CALLS?\])", re.IGNORECASE | re.MULTILINE
)
_MARKUP_END: Final = lazy_pattern(r"(?:</?+\|?[\w:.-]{1,40}+\|?>|\s)*+\Z")
_CLOSER: Final = lazy_pattern(rf"</\|?(?:{_TAGS})\|?>", re.IGNORECASE)
_WORD: Final = lazy_pattern(r"[\w.-]++")
_NAME_WITHIN: Final = 200


def with_receipts(reading: Reading, receipts: tuple[Receipt, ...]) -> Reading:
    """Return a reading with more receipts: of its first call, or of its own without one."""
    if not reading.calls:
        return replace(reading, receipts=receipts + reading.receipts)
    call, *rest = reading.calls
    return replace(reading, calls=(replace(call, receipts=receipts + call.receipts), *rest))


def parse_object_reply(
    reply: Reply, *, is_grammar: bool = False
) -> tuple[Reply, tuple[Receipt, ...]]:
    """Turn a reply that is one JSON object into the calls or the answer it stands for.

    A reply of any other form is returned as it is, also one of several objects: a provider may
    ignore the schema. A call with a value that a grammar ended at its bound is taken as cut.
    """
    if reply.calls or not reply.content:
        return reply, ()
    spoken = _without_thoughts(reply)
    text = spoken.content or ""
    if not text.lstrip().startswith(("{", _FENCE)):
        return reply, ()
    ended = came_to_its_end(reply.finish_reason)
    repaired = repair_json(text, cut="close", ended=ended, nested="keep")
    fields = _fields(repaired.value)
    if fields is None or any(receipt.rule == _SEVERAL for receipt in repaired.receipts):
        return reply, ()
    if isinstance(fields.get("name"), str) and "arguments" in fields:
        found = Receipt(
            "read_call_from_text",
            "content",
            clip(text),
            clip(fields["name"]),
            why="the call came as the object that was asked for",
        )
        is_cut = repaired.state != "whole" or (is_grammar and reaches_bound(fields["arguments"]))
        is_exact = fields.keys() <= {*_CALL_KEYS, ANSWER_KEY} and all(
            one.lossless for one in repaired.receipts
        )
        if not (is_cut or is_exact):
            return reply, ()  # as text it is read with care
        return _as_call(spoken, fields, is_cut=is_cut), (found, *repaired.receipts)
    is_exact = repaired.state == "whole" and all(one.lossless for one in repaired.receipts)
    if len(fields) == 1 and isinstance(fields.get(CALLS_KEY), list):
        calls = _list_calls(fields[CALLS_KEY]) if is_exact else ()
        if not calls or (is_grammar and reaches_bound(fields)):
            return reply, ()
        names, why = ", ".join(call.name for call in calls), "they came in the list asked for"
        found = Receipt("read_call_from_text", "content", clip(text), clip(names), why=why)
        return replace(spoken, content="", calls=calls), (found,)
    answer = fields.get(ANSWER_KEY)
    if len(fields) == 1 and isinstance(answer, str):
        receipt = Receipt(
            "unwrap_answer",
            "/content",
            clip(text),
            clip(answer),
            is_exact,
            "the answer came in the object that was asked for",
        )
        return replace(spoken, content=answer), (receipt,)
    return reply, ()


def find_broken_attempt(content: str, names: ToolNames) -> Defect | None:
    """Say why a text that holds no readable call looks as if one was meant; None when it doesn't.

    Only for a model that was told to write calls as text: from any other, JSON in an answer is
    just that.
    """
    text = content[:_MAX_LOOKED_AT_CHARS]
    payload = next((block for block in _blocks(text) if _looks_like_call(block, names)), None)
    if payload is None:
        payload = _named_in_prose(text, names)
    if payload is None:
        return None
    repaired = repair_json(payload, ended=True, nested="keep")
    return Defect(
        Code.TOOL_NOT_EXECUTED, _reason(repaired, names), clip(payload, _MAX_SNIPPET_CHARS)
    )


def find_broken_call(content: str, names: ToolNames) -> Defect | None:
    """Say why a text that ends in a call of a known tool cannot be read; None when it doesn't.

    For any model: only JSON that is the whole text or a fenced block, and markup that ends the
    text, and only where it is broken. What can be read is an answer, or was read as a call, unless
    the text is nothing but a call of a tool that nobody offers.
    """
    text = content[:_MAX_LOOKED_AT_CHARS]
    for block in _blocks(text):
        named = _NAMED.search(block) if block.startswith(("{", "[")) else None
        if named is None or names.resolve(named[1]) is None:
            continue
        if not any(word in block for word in _ARGUMENTS_WORDS):
            continue
        repaired = repair_json(block, ended=True, nested="keep")
        if repaired.state != "whole" or repaired.errors:
            reason, snippet = _reason(repaired, names), clip(block, _MAX_SNIPPET_CHARS)
            return Defect(Code.TOOL_NOT_EXECUTED, reason, snippet)
    return _find_unknown_call(text, names) or _find_broken_markup(text, names)


def _find_unknown_call(text: str, names: ToolNames) -> Defect | None:
    """Return a call of a tool that is not there, if the text is nothing else."""
    written = text.strip()
    if written.startswith(_FENCE) and written.endswith(_FENCE) and written.count(_FENCE) == 2:
        written = next(_blocks(written), "")
    if not (written.startswith("{") and written.endswith("}") and _NAMED.search(written)):
        return None
    if written.startswith("{{") and written.endswith("}}"):
        written = written[1:-1]
    repaired = repair_json(written, ended=True, nested="keep")
    fields = _fields(repaired.value) or {}
    if repaired.state != "whole" or not _CALL_KEYS.issuperset(fields):
        return None
    name, arguments = fields.get("name"), fields.get("arguments", fields.get("parameters"))
    if not isinstance(name, str) or not isinstance(arguments, dict) or "properties" in arguments:
        return None
    if names.resolve(name) is not None:
        return None
    reason = f"{clip(name, 64)!r} is not an available tool."
    return Defect(Code.TOOL_NOT_EXECUTED, reason, clip(written, _MAX_SNIPPET_CHARS))


def _find_broken_markup(text: str, names: ToolNames) -> Defect | None:
    """Return the markup of a call that ends a text and names a tool, but is not read as one."""
    opened = _MARKUP.search(text) if "<" in text or "[" in text else None
    if opened is None or text.count(_FENCE, 0, opened.start()) % 2:
        return None
    written = text[opened.start() :]
    closed = None
    for found in _CLOSER.finditer(written):
        closed = found
    if closed is not None and not _MARKUP_END.match(written, closed.end()):
        return None
    words = _WORD.findall(written, 0, _NAME_WITHIN)
    name = next((word for word in words if word in names.names), None)
    if name is None:
        return None
    reason = f"The call of {name} is not in a form that can be read."
    return Defect(Code.TOOL_NOT_EXECUTED, reason, clip(written, _MAX_SNIPPET_CHARS))


def _without_thoughts(reply: Reply) -> Reply:
    """Move what the model thought aloud before its object to where reasoning belongs."""
    text = reply.content or ""
    if not text.lstrip().startswith("<"):
        return reply
    reader = ReplyReader()
    reader.feed(text)
    reading = reader.close()
    parts = [part for part in (reply.reasoning, reading.reasoning) if part]
    return replace(reply, content=reading.content, reasoning="\n".join(parts) or None)


def _blocks(text: str) -> Iterator[str]:
    """Return what follows each fence up to the next one; without any, the whole text."""
    start = text.find(_FENCE)
    if start < 0:
        yield text.strip()
    while start >= 0:
        line_end = text.find("\n", start)
        if line_end < 0:
            return
        end = text.find(_FENCE, line_end)
        yield text[line_end + 1 : end if end >= 0 else len(text)].strip()
        start = end


def _looks_like_call(block: str, names: ToolNames) -> bool:
    """Tell whether an object has arguments, or a name that is one of the tools'."""
    if not block.startswith(("{", "[")):
        return False
    if any(word in block for word in _ARGUMENTS_WORDS):
        return True
    named = any(word in block for word in _NAME_WORDS)
    return named and any(name in block for name in names.names)


def _named_in_prose(text: str, names: ToolNames) -> str | None:
    """Return an object among other words, if it names one of the tools and has arguments."""
    start = text.rfind("{", 0, max(text.find(_NAME_WORD), 0))
    if start < 0:
        return None
    payload = text[start:]
    fields = _fields(repair_json(payload, cut="close", ended=True, nested="keep").value) or {}
    name = fields.get("name")
    if not isinstance(name, str) or names.resolve(name) is None:
        return None
    return payload if "arguments" in fields or "parameters" in fields else None


def _reason(repaired: Repaired, names: ToolNames) -> str:
    if repaired.state == "cut":
        return "The call was cut off before its end."
    if repaired.errors:
        return f"The call is not JSON that can be read: {repaired.errors[0].message}"
    fields = _fields(repaired.value)
    if fields is None:
        return "The block is not one JSON object."
    name = fields.get("name")
    if not isinstance(name, str):
        return 'The object has no "name" that says which tool to call.'
    if names.resolve(name) is None:
        known = ", ".join(names.names[:20])
        return f"{clip(name, 64)!r} is not an available tool. Call one of these: {known}."
    if isinstance(fields.get("arguments"), dict):
        return "The call must be on its own, in the form that was asked for."
    return f'The arguments of {name} must be one JSON object under "arguments".'


def reaches_bound(value: Any) -> bool:
    """Tell whether a text or a list is as long as the grammar allows."""
    waiting = [value]
    while waiting:
        item: Any = waiting.pop()
        if isinstance(item, str):
            if len(item) >= MAX_GRAMMAR_CHARS:
                return True
        elif isinstance(item, list):
            if len(cast("list[Any]", item)) >= MAX_GRAMMAR_ITEMS:
                return True
            waiting.extend(cast("list[Any]", item))
        elif isinstance(item, dict):
            waiting.extend(cast("dict[str, Any]", item).values())
    return False


def _as_call(reply: Reply, fields: dict[str, Any], *, is_cut: bool) -> Reply:
    call = RawCall(None, fields["name"], fields["arguments"], "object")
    # Whatever the provider says: such a call is not whole.
    finish_reason = "length" if is_cut else reply.finish_reason
    answer = fields.get(ANSWER_KEY)
    content = answer if isinstance(answer, str) else ""
    return replace(reply, content=content, calls=(call,), finish_reason=finish_reason)


def _list_calls(listed: list[Any]) -> tuple[RawCall, ...]:
    """Return all calls of a list, or none if it holds anything else."""
    entries = [_fields(item) or {} for item in listed]
    if any(
        not isinstance(entry.get("name"), str)
        or "arguments" not in entry
        or not _CALL_KEYS.issuperset(entry)
        for entry in entries
    ):
        return ()
    return tuple(RawCall(None, entry["name"], entry["arguments"], "object") for entry in entries)


def _fields(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    inner = fields.get(REPLY_KEY)
    if len(fields) == 1 and isinstance(inner, dict):
        return cast("dict[str, Any]", inner)
    return fields
