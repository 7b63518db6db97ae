"""Conversations in which every result is an item, as in chat completions and responses."""

from collections.abc import Mapping
from typing import Any, Final

from surecall.base.json_values import as_fields, as_list
from surecall.exchange.wording import missing_result, tell_lost_result
from surecall.text import encode_text

from .mending import MOVE_RESULT, Call, Item, Mender


class _ChatMender(Mender):
    """Results are messages of their own, directly behind the message with their calls."""

    def mend(self) -> list[Any]:
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
            content = missing_result(call.name)
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


def _tell_chat(item: Item) -> Item:
    content, call_id = item.get("content"), item.get("tool_call_id")
    if isinstance(content, list):
        head = {"type": "text", "text": tell_lost_result(call_id, "")}
        return {"role": "user", "content": [head, *as_list(content)]}
    text = content if isinstance(content, str) else encode_text(content)
    return {"role": "user", "content": tell_lost_result(call_id, text)}


class _ResponsesMender(Mender):
    """Calls and results are items; a result may be anywhere behind its call."""

    def mend(self) -> list[Any]:
        mended: list[Any] = []
        missing = self._find_unanswered()
        ids: dict[str, str] = {}
        waiting: list[Call] = []
        for at, entry in enumerate(self._items):
            item = as_fields(entry)
            kind = item.get("type")
            if waiting and kind not in ("function_call", "function_call_output"):
                mended += self._add_results(waiting, at)
                waiting = []
            if kind == "function_call":
                entry, call = self._mend_call(item, f"/{at}")
                ids[call.given_id if isinstance(call.given_id, str) else ""] = call.id
                waiting += [call] if at in missing else []
            elif kind == "function_call_output":
                entry = self._mend_result(item, ids, at)
            mended.append(entry)
        return mended + self._add_results(waiting, len(self._items))

    def _find_unanswered(self) -> set[int]:
        """Return the places of calls that have no result."""
        waiting: dict[Any, int] = {}
        missing: set[int] = set()
        for at, entry in enumerate(self._items):
            item = as_fields(entry)
            call_id = item.get("call_id")
            call_id = call_id if isinstance(call_id, str) else ""
            if item.get("type") == "function_call":
                if call_id in waiting:
                    missing.add(waiting[call_id])
                waiting[call_id] = at
            elif item.get("type") == "function_call_output":
                waiting.pop(call_id, None)
        return missing | set(waiting.values())

    def _mend_call(self, item: Item, place: str) -> tuple[Item, Call]:
        given = item.get("call_id")
        call = Call(given, self._take_id(given, place), str(item.get("name") or ""))
        text = self._mend_text(item.get("arguments"), f"{place}/arguments")
        if text is not None:
            item = {**item, "arguments": text}
        return item if call.id == given else {**item, "call_id": call.id}, call

    def _mend_result(self, item: Item, ids: dict[str, str], at: int) -> Item:
        given = item.get("call_id")
        if isinstance(given, str) and given in ids:
            call_id = ids.pop(given)
            return item if call_id == given else {**item, "call_id": call_id}
        if self._document.get("previous_response_id") or self._document.get("conversation"):
            return item  # the endpoint keeps the call
        self._note_lost(given, f"/{at}")
        output = item.get("output")
        text = output if isinstance(output, str) else encode_text(output)
        return {"type": "message", "role": "user", "content": tell_lost_result(given, text)}

    def _add_results(self, calls: list[Call], at: int) -> list[Any]:
        for call in calls:
            self._note_missing(call, f"/{at}")
        return [
            {
                "type": "function_call_output",
                "call_id": call.id,
                "output": missing_result(call.name),
            }
            for call in calls
        ]


ITEM_MENDERS: Final[Mapping[str, type[Mender]]] = {
    "chat_completions": _ChatMender,
    "responses": _ResponsesMender,
}
"""What mends a conversation, by wire format."""
