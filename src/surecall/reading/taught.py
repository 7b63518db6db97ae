"""Replies of a model that was taught to call tools in its text."""

from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.errors import Code
from surecall.formats import ToolNames
from surecall.formats.teach import ANSWER_KEY, REPLY_KEY
from surecall.jsontext import Repaired, repair_json
from surecall.records import Defect, RawCall, Receipt, Reply, clip

__all__ = ["find_broken_attempt", "parse_object_reply"]

_FENCE: Final = "```"
_CALL_WORDS: Final = ('"arguments"', '"parameters"', '"name"', "'arguments'", "'name'")
_MAX_LOOKED_AT_CHARS: Final = 100_000
_MAX_SNIPPET_CHARS: Final = 200


def parse_object_reply(reply: Reply) -> tuple[Reply, tuple[Receipt, ...]]:
    """Turn a reply that is one JSON object into the call or the answer it stands for.

    A reply of any other form is returned as it is: a provider may ignore the schema.
    """
    text = reply.content
    if reply.calls or not text or not text.lstrip().startswith(("{", _FENCE)):
        return reply, ()
    repaired = repair_json(text, cut="close", nested="keep")
    fields = _fields(repaired.value)
    if fields is None:
        return reply, ()
    if isinstance(fields.get("name"), str) and "arguments" in fields:
        found = Receipt(
            "read_call_from_text",
            "content",
            clip(text),
            clip(fields["name"]),
            why="the call came as the object that was asked for",
        )
        return _as_call(reply, fields, repaired), (found, *repaired.receipts)
    answer = fields.get(ANSWER_KEY)
    if len(fields) == 1 and isinstance(answer, str):
        receipt = Receipt(
            "unwrap_answer",
            "/content",
            clip(text),
            clip(answer),
            repaired.state == "whole" and all(item.lossless for item in repaired.receipts),
            "the answer came in the object that was asked for",
        )
        return replace(reply, content=answer), (receipt,)
    return reply, ()


def find_broken_attempt(content: str, names: ToolNames) -> Defect | None:
    """Say why a text that holds no readable call looks as if one was meant; None when it doesn't.

    Only for a model that was told to write calls as text: from any other, JSON in an answer is
    just that.
    """
    text = content[:_MAX_LOOKED_AT_CHARS]
    payload = _payload(text)
    if payload is None or not any(word in payload for word in _CALL_WORDS):
        return None
    repaired = repair_json(payload, nested="keep")
    return Defect(
        Code.TOOL_NOT_EXECUTED, _reason(repaired, names), clip(payload, _MAX_SNIPPET_CHARS)
    )


def _payload(text: str) -> str | None:
    """Return what stands in the first fenced block, or the text if it is JSON from the start."""
    start = text.find(_FENCE)
    if start >= 0:
        line_end = text.find("\n", start)
        if line_end < 0:
            return None
        end = text.find(_FENCE, line_end)
        payload = text[line_end + 1 : end if end >= 0 else len(text)]
    else:
        payload = text
    payload = payload.strip()
    return payload if payload.startswith(("{", "[")) else None


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
    return f'The arguments of {name} must be one JSON object under "arguments".'


def _as_call(reply: Reply, fields: dict[str, Any], repaired: Repaired) -> Reply:
    call = RawCall(None, fields["name"], fields["arguments"], "object")
    # An object that ends inside is no whole call, whatever the provider says.
    finish_reason = reply.finish_reason if repaired.state == "whole" else "length"
    return replace(reply, content="", calls=(call,), finish_reason=finish_reason)


def _fields(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    inner = fields.get(REPLY_KEY)
    if len(fields) == 1 and isinstance(inner, dict):
        return cast("dict[str, Any]", inner)
    return fields
