"""The rules of order of the Messages API, checked on a request body.

Written from the API's own error messages and apart from the code that renders requests, so that a
mistake there cannot hide itself.
"""

import re
from typing import Any

__all__ = ["broken_rules"]

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_THOUGHTS = ("thinking", "redacted_thinking")


def broken_rules(body: dict[str, Any]) -> list[str]:
    """Return every rule that a body breaks, with its place."""
    found = [*_system_rules(body), *_tool_rules(body)]
    turns = body["messages"]
    if not turns or turns[0]["role"] != "user":
        found.append("the first message is the user's")
    seen: set[str] = set()
    asked: list[str] = []
    for index, turn in enumerate(turns):
        place = f"messages[{index}]"
        if index and turn["role"] == turns[index - 1]["role"]:
            found.append(f"{place}: roles alternate")
        blocks = _blocks(turn["content"])
        if not blocks:
            found.append(f"{place}: content is not empty")
        found += [f"{place}: {rule}" for rule in _text_rules(blocks)]
        if turn["role"] == "user":
            found += [f"{place}: {rule}" for rule in _user_rules(blocks, asked)]
            asked = []
        else:
            if asked:
                found.append(f"{place}: calls are answered before the assistant goes on")
            asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
            found += [f"{place}: {rule}" for rule in _assistant_rules(blocks, asked, seen)]
            seen.update(asked)
    if asked:
        found.append("the last calls are answered")
    last = turns[-1] if turns else {"role": "user", "content": "x"}
    ending = _blocks(last["content"])[-1:]
    if last["role"] == "assistant" and ending and ending[0]["type"] == "text":
        text = ending[0]["text"]
        if text != text.rstrip():
            found.append("a prefill does not end in space")
    return found


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _system_rules(body: dict[str, Any]) -> list[str]:
    if "system" not in body:
        return []
    blocks = _blocks(body["system"])
    found = [f"system: {rule}" for rule in _text_rules(blocks)]
    if not blocks or any(block["type"] != "text" for block in blocks):
        found.append("system: text blocks only")
    return found


def _tool_rules(body: dict[str, Any]) -> list[str]:
    found: list[str] = []
    if type(body.get("max_tokens")) is not int:
        found.append("max_tokens is there")
    uses = any(
        block["type"] in ("tool_use", "tool_result")
        for turn in body["messages"]
        for block in _blocks(turn["content"])
    )
    if uses and not body.get("tools"):
        found.append("tools are defined when messages use them")
    found += [
        f"tools: {tool['name']} takes an object"
        for tool in body.get("tools", ())
        if tool["input_schema"].get("type") != "object"
    ]
    if "tool_choice" in body and not body.get("tools"):
        found.append("tool_choice only with tools")
    return found


def _text_rules(blocks: list[dict[str, Any]]) -> list[str]:
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    for block in blocks:
        content = block.get("content") if block["type"] == "tool_result" else None
        inner = _blocks(content) if content is not None else []
        texts += [item["text"] for item in inner if item["type"] == "text"]
    return ["text has words"] if any(not text.strip() for text in texts) else []


def _user_rules(blocks: list[dict[str, Any]], asked: list[str]) -> list[str]:
    found: list[str] = []
    kinds = [block["type"] for block in blocks]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if kinds[: len(answered)] != ["tool_result"] * len(answered):
        found.append("results come first")
    if sorted(answered) != sorted(asked):
        found.append("there is one result for each call, and no other")
    if set(kinds) & {"tool_use", *_THOUGHTS}:
        found.append("calls and thoughts are the assistant's")
    return found


def _assistant_rules(blocks: list[dict[str, Any]], asked: list[str], seen: set[str]) -> list[str]:
    found: list[str] = []
    kinds = [block["type"] for block in blocks]
    if set(kinds) & {"tool_result", "image", "document"}:
        found.append("results and images are the user's")
    thoughts = [kind for kind in kinds if kind in _THOUGHTS]
    if kinds[: len(thoughts)] != thoughts:
        found.append("thoughts come first")
    if kinds and kinds[-1] in _THOUGHTS:
        found.append("thoughts do not come last")
    if len(set(asked)) < len(asked) or set(asked) & seen:
        found.append("ids of calls differ")
    for block in blocks:
        if block["type"] != "tool_use":
            continue
        if not _ID.fullmatch(block["id"]) or not _NAME.fullmatch(block["name"]):
            found.append("ids and names have allowed characters")
        if not isinstance(block["input"], dict):
            found.append("the input of a call is an object")
    return found
