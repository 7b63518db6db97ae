"""What an assistant message says beside its calls: text, reasoning, a refusal."""

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Struct

from surecall.errors import Code
from surecall.records import Defect

__all__ = ["REASONING_KEYS", "Content", "parse_content", "split_parts"]

REASONING_KEYS: Final = ("reasoning_content", "reasoning", "thinking")
"""Fields in which providers put reasoning text, the most telling first."""

_REASONING_PARTS: Final = ("reasoning", "thinking", "reasoning_text")


class Content(Struct, frozen=True):
    """The text of a message, the reasoning before it, and what was odd about them."""

    text: str | None
    reasoning: str | None
    defects: tuple[Defect, ...]


def parse_content(message: Mapping[str, Any]) -> Content:
    """Read text and reasoning from whatever shape they have."""
    content = message.get("content")
    text: str | None = None
    reasoning = ""
    defects: tuple[Defect, ...] = ()
    if content is None or isinstance(content, str):
        text = content
    elif isinstance(content, (list, dict)):
        text, reasoning, note = split_parts(cast("Any", content))
        defects = (Defect(Code.CONTENT_AS_PARTS, note, "/content"),)
    else:
        note = f"The content is of type {type(content).__name__}, not text."
        defects = (Defect(Code.CONTENT_NOT_USABLE, note, "/content"),)
    refusal = message.get("refusal")
    if not text and isinstance(refusal, str) and refusal:
        text = refusal
    for key in REASONING_KEYS:
        stated = message.get(key)
        if isinstance(stated, str) and stated:
            reasoning = stated
            break
    return Content(text, reasoning or None, defects)


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
        fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
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
                cast("dict[str, Any]", item).get("text")
                for item in cast("list[Any]", value)
                if isinstance(item, dict)
            ]
            return "".join(item for item in inner if isinstance(item, str))
    return None
