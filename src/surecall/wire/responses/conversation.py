"""Conversations in this format."""

from collections.abc import Iterator
from typing import Any

from surecall.base.json_values import as_fields
from surecall.text import encode_text
from surecall.wire.conversation import (
    Call,
    Conversation,
    Item,
    tell_lost_result,
)


class ResponsesConversation(Conversation):
    """Calls and results are items; a result may be anywhere behind its call."""

    key = "input"
    id_key = "call_id"

    def _repair_items(self) -> list[Any]:
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
                "output": self._missing_result(call.name),
            }
            for call in calls
        ]

    def calls_in(self, item: Item) -> Iterator[Item]:
        """Yield the calls of an item."""
        if item.get("type") == "function_call":
            yield item

    def has_results(self) -> bool:
        """Tell whether there are any results of tools."""
        kinds = (str(as_fields(item).get("type")) for item in self._items)
        return any(kind.endswith("_call_output") for kind in kinds)

    def ends_with_results(self) -> bool:
        """Tell whether the last item is the result of a tool."""
        last = as_fields(self._items[-1]) if self._items else {}
        return last.get("type") == "function_call_output"
