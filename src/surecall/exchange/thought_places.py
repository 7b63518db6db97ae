"""Whole replies whose text began with reasoning: it goes where their format has a place for it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from surecall.base.json_values import as_fields, as_list
from surecall.wire.responses.content import OWN_REASONING_ID
from surecall.wire.server import new_id

from .thoughts import Split

_IsText = Callable[[dict[str, Any]], bool]


def move_thought(document: dict[str, Any], protocol: str, split: Split) -> dict[str, Any]:
    """Return a reply with the reasoning that was split off its text in its own place.

    Args:
        document: The reply, with one choice.
        protocol: The name of its format.
        split: The reasoning, and what is left of the text.
    """
    return _MOVES[protocol](document, split)


def _move_in_chat(document: dict[str, Any], split: Split) -> dict[str, Any]:
    choice = as_fields(as_list(document.get("choices"))[0])
    message = {**as_fields(choice.get("message")), "content": split.text or None}
    if split.thought:
        before = message.get("reasoning_content")
        message["reasoning_content"] = f"{before}\n{split.thought}" if before else split.thought
    return {**document, "choices": [{**choice, "message": message}]}


def _move_in_messages(document: dict[str, Any], split: Split) -> dict[str, Any]:
    blocks = as_list(document.get("content"))
    left = _divide(_texts_of(blocks, _is_text_block), split.text)
    thought = {"type": "thinking", "thinking": split.thought, "signature": ""}
    blocks = _rewrite(blocks, _is_text_block, left)
    return {**document, "content": [thought, *blocks] if split.thought else blocks}


def _is_text_block(block: dict[str, Any]) -> bool:
    return block.get("type") == "text"


def _move_in_responses(document: dict[str, Any], split: Split) -> dict[str, Any]:
    items = [as_fields(item) for item in as_list(document.get("output"))]
    said = [part for item in items if _is_message(item) for part in as_list(item.get("content"))]
    left = _divide(_texts_of(said, _is_text_part), split.text)
    output: list[Any] = []
    if split.thought:
        content = [{"type": "reasoning_text", "text": split.thought}]
        item_id = new_id(OWN_REASONING_ID)
        output.append({"type": "reasoning", "id": item_id, "summary": [], "content": content})
    for item in items:
        if _is_message(item):
            parts = _rewrite(as_list(item.get("content")), _is_text_part, left)
            if not parts:
                continue
            item = {**item, "content": parts}
        output.append(item)
    return {**document, "output": output}


def _is_message(item: dict[str, Any]) -> bool:
    return item.get("type") == "message"


def _is_text_part(part: dict[str, Any]) -> bool:
    return part.get("type") in ("output_text", "text")


def _move_in_gemini(document: dict[str, Any], split: Split) -> dict[str, Any]:
    candidate = as_fields(as_list(document.get("candidates"))[0])
    content = as_fields(candidate.get("content"))
    parts = as_list(content.get("parts"))
    left = _divide(_texts_of(parts, _is_said), split.text)
    parts = _rewrite(parts, _is_said, left)
    if split.thought:
        parts = [{"text": split.thought, "thought": True}, *parts]
    return {**document, "candidates": [{**candidate, "content": {**content, "parts": parts}}]}


def _is_said(part: dict[str, Any]) -> bool:
    return bool(part.get("text")) and part.get("thought") is not True


def _texts_of(parts: list[Any], is_text: _IsText) -> list[str]:
    return [str(part.get("text") or "") for part in map(as_fields, parts) if is_text(part)]


def _divide(texts: list[str], left: str) -> Iterator[str]:
    """Yield what is left of each text: those that hold none of the reasoning stay as they are."""
    divided: list[str] = []
    for text in reversed(texts[1:]):
        stays = left.endswith(text)
        divided.append(text if stays else "")
        left = left.removesuffix(text) if stays else left
    yield left
    yield from reversed(divided)


def _rewrite(parts: list[Any], is_text: _IsText, left: Iterator[str]) -> list[Any]:
    """Return the parts with what is left of their texts; a part without any is left out."""
    written: list[Any] = []
    for part in parts:
        fields = as_fields(part)
        if not is_text(fields):
            written.append(part)
        elif text := next(left, ""):
            written.append({**fields, "text": text})
    return written


_MOVES: Final[Mapping[str, Callable[[dict[str, Any], Split], dict[str, Any]]]] = {
    "chat_completions": _move_in_chat,
    "gemini": _move_in_gemini,
    "messages": _move_in_messages,
    "responses": _move_in_responses,
}
