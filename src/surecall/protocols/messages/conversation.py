"""A client's conversation: from turns of content blocks to messages."""

from typing import Any, Final, cast

from surecall.errors import Code, RequestError, did_you_mean
from surecall.records import Message, ToolCall, clip

from .blocks import THOUGHT_BLOCKS, parse_block, plain_text

__all__ = ["parse_conversation", "parse_system"]

_ROLES: Final = ("assistant", "system", "user")
_CALL_FIELDS: Final = frozenset({"id", "input", "name", "type"})


def parse_system(system: Any) -> list[Message]:
    """Turn the system prompt into a message, if there is one."""
    content = _blocks(system, "system") if system is not None else []
    if not content:
        return []
    return [Message("system", _content([_parsed(block, "system") for block in content]))]


def parse_conversation(items: list[Any]) -> list[Message]:
    """Turn the turns of a conversation into messages; each result becomes one of its own.

    Raises:
        RequestError: `INVALID_MESSAGE`, naming the place of what is wrong.
    """
    messages: list[Message] = []
    for index, item in enumerate(items):
        place = f"messages[{index}]"
        fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        role = fields.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            hint = did_you_mean(role, _ROLES) if isinstance(role, str) else "Give it a role."
            raise _invalid(f"{place} has the role {_show(role)}.", hint)
        blocks = _blocks(fields.get("content"), f"{place}.content")
        if role == "assistant":
            messages.append(_parse_assistant(blocks, place))
        elif role == "system":
            messages.append(Message("system", _content([_parsed(b, place) for b in blocks])))
        else:
            messages += _parse_user(blocks, place)
    return messages


def _parse_user(blocks: list[dict[str, Any]], place: str) -> list[Message]:
    """Return the results of a turn first, then what the user says."""
    messages: list[Message] = []
    parts: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        here = f"{place}.content[{index}]"
        if block.get("type") == "tool_result":
            messages.append(_parse_result(block, here))
        else:
            parts.append(_parsed(block, here))
    if parts or not messages:
        messages.append(Message("user", _content(parts)))
    return messages


def _parse_result(block: dict[str, Any], place: str) -> Message:
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str) or not call_id:
        raise _invalid(f"{place} answers the call {_show(call_id)}.", "Name its tool_use_id.")
    content = block.get("content")
    found = _blocks(content, f"{place}.content") if content is not None else []
    parts = [_parsed(item, place) for item in found]
    if parts and block.get("cache_control"):
        parts[-1] = {"cache_control": block["cache_control"], **parts[-1]}
    extra = {"is_error": True} if block.get("is_error") is True else {}
    return Message("tool", _content(parts), tool_call_id=call_id, extra=extra)


def _parse_assistant(blocks: list[dict[str, Any]], place: str) -> Message:
    parts: list[dict[str, Any]] = []
    calls: list[ToolCall] = []
    signed: list[dict[str, Any]] = []
    unsigned: list[str] = []
    for index, block in enumerate(blocks):
        kind, here = block.get("type"), f"{place}.content[{index}]"
        if kind == "tool_use":
            calls.append(_parse_call(block, here))
        elif isinstance(kind, str) and kind in THOUGHT_BLOCKS:
            if block.get("signature") or kind == "redacted_thinking":
                signed.append(block)
            elif isinstance(block.get("thinking"), str):
                unsigned.append(block["thinking"])
        else:
            parts.append(_parsed(block, here))
    extra: dict[str, Any] = {"thinking_blocks": signed} if signed else {}
    if not signed and any(unsigned):
        extra["reasoning_content"] = "".join(unsigned)
    content = _content(parts)
    if isinstance(content, list) and all(plain_text([part]) is not None for part in content):
        content = "".join(part["text"] for part in content)
    return Message("assistant", content or None, tuple(calls), extra=extra)


def _parse_call(block: dict[str, Any], place: str) -> ToolCall:
    call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(call_id, str) or not call_id or not isinstance(name, str):
        raise _invalid(f"{place} is a tool_use without an id or a name.", "Give it both.")
    if not isinstance(arguments, dict):
        raise _invalid(f"{place} has the input {_show(arguments)}.", "Use an object.")
    extra = {
        key: value for key, value in block.items() if key not in _CALL_FIELDS and value is not None
    }
    arguments = cast("dict[str, Any]", arguments)
    return ToolCall(id=call_id, name=name, arguments=arguments, raw=arguments, extra=extra)


def _blocks(content: Any, place: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        blocks = cast("list[Any]", content)
        if all(isinstance(block, dict) for block in blocks):
            return blocks
    raise _invalid(f"{place} is {_show(content)}.", "Use text or a list of content blocks.")


def _parsed(block: dict[str, Any], place: str) -> dict[str, Any]:
    kind = block.get("type")
    if not isinstance(kind, str) or kind in {"tool_result", "tool_use", *THOUGHT_BLOCKS}:
        raise _invalid(f"{place} has a block of type {_show(kind)}.", "It cannot stand there.")
    if kind == "text" and not isinstance(block.get("text"), str):
        raise _invalid(f"{place} has the text {_show(block.get('text'))}.", "Use text.")
    return parse_block(block)


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return plain text where nothing more was said, since more servers take that."""
    if not parts:
        return ""
    text = plain_text(parts)
    return parts if text is None else text


def _show(value: Any) -> str:
    """Show a value without walking through it."""
    if value is None or isinstance(value, str | bool):
        return repr(clip(value, 80) if isinstance(value, str) else value)
    return f"a value of type {type(value).__name__}"


def _invalid(message: str, hint: str) -> RequestError:
    return RequestError(Code.INVALID_MESSAGE, message, hint=hint)
