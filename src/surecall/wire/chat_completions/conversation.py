"""Conversations in this format."""

from collections.abc import Iterator
from typing import Any

from surecall.base.json_values import as_fields, as_list
from surecall.text import encode_text
from surecall.wire.conversation import (
    MOVE_RESULT,
    Call,
    Conversation,
    FindEcho,
    Item,
    tell_lost_result,
)


class ChatConversation(Conversation):
    """Results are messages of their own, directly behind the message with their calls."""

    key = "messages"

    def _repair_items(self) -> list[Any]:
        mended: list[Any] = []
        taken: set[int] = set()
        for at, entry in enumerate(self._items):
            item = as_fields(entry)
            if item.get("role") == "assistant" and as_list(item.get("tool_calls")):
                item, calls = self._mend_calls(item, f"/{at}")
                mended += [item, *self._find_results(calls, at + 1, taken)]
            elif item.get("role") != "tool":
                mended.append(entry)
            elif at not in taken:
                self._note_lost(item.get("tool_call_id"), f"/{at}")
                mended.append(_tell_chat(item))
        return mended

    def _find_results(self, calls: list[Call], start: int, taken: set[int]) -> list[Any]:
        """Return the results of the calls of one message, with those that are missing."""
        found: list[Any] = []
        searched = list(calls)
        is_near = True
        for at in range(start, len(self._items)):
            if not searched:
                break
            item = as_fields(self._items[at])
            if item.get("role") != "tool":
                is_near = False
                again = [as_fields(call).get("id") for call in as_list(item.get("tool_calls"))]
                searched = [call for call in searched if call.given_id not in again]
                continue
            given = item.get("tool_call_id")
            call = next((call for call in searched if call.given_id == given), None)
            if call is None or at in taken:
                continue
            taken.add(at)
            searched.remove(call)
            calls = [other for other in calls if other != call]
            if not is_near:
                self._note(MOVE_RESULT, f"/{at}", "behind another message", "behind its call")
            found.append(item if call.id == given else {**item, "tool_call_id": call.id})
        for call in calls:
            self._note_missing(call, f"/{start}")
            content = self._missing_result(call.name)
            found.append({"role": "tool", "tool_call_id": call.id, "content": content})
        return found

    def _mend_calls(self, item: Item, place: str) -> tuple[Item, list[Call]]:
        before = as_list(item.get("tool_calls"))
        entries = list(before)
        calls: list[Call] = []
        for at, entry in enumerate(before):
            if not isinstance(entry, dict):
                continue
            call, here = as_fields(entry), f"{place}/tool_calls/{at}"
            given, function = call.get("id"), as_fields(call.get("function"))
            calls.append(Call(given, self._take_id(given, here), str(function.get("name") or "")))
            if calls[-1].id != given:
                call = {**call, "id": calls[-1].id}
            text = self._mend_text(function.get("arguments"), here) if function else None
            if text is not None:
                call = {**call, "function": {**function, "arguments": text}}
            entries[at] = call
        same = all(new is old for new, old in zip(entries, before, strict=True))
        return item if same else {**item, "tool_calls": entries}, calls

    def calls_in(self, item: Item) -> Iterator[Item]:
        """Yield the calls of an item."""
        yield from map(as_fields, as_list(item.get("tool_calls")))

    def has_results(self) -> bool:
        """Tell whether there are any results of tools."""
        return any(as_fields(item).get("role") in ("tool", "function") for item in self._items)

    def ends_with_results(self) -> bool:
        """Tell whether the last message is the result of a tool."""
        return bool(self._items) and as_fields(self._items[-1]).get("role") in ("tool", "function")

    def restore(self, item: Item, find: FindEcho, *, with_reasoning: bool) -> Item:
        """Return a message with what was left out put back."""
        if item.get("role") != "assistant":
            return item
        calls: list[Any] = []
        around: dict[str, Any] = {}
        for entry in as_list(item.get("tool_calls")):
            call = as_fields(entry)
            function = as_fields(call.get("function"))
            name, arguments = str(function.get("name")), function.get("arguments")
            found = find(str(call.get("id")), name, arguments)
            around = around or (found[0] if found else {})
            calls.append({**found[1], **call} if found and found[1] else entry)
        if calls == as_list(item.get("tool_calls")) and not around:
            return item
        mended = {**item, "tool_calls": calls}
        return {**around, **mended} if with_reasoning else mended


def _tell_chat(item: Item) -> Item:
    content, call_id = item.get("content"), item.get("tool_call_id")
    if isinstance(content, list):
        head = {"type": "text", "text": tell_lost_result(call_id, "")}
        return {"role": "user", "content": [head, *as_list(content)]}
    text = content if isinstance(content, str) else encode_text(content)
    return {"role": "user", "content": tell_lost_result(call_id, text)}
