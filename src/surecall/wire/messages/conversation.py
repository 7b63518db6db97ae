"""Conversations in this format."""

from collections.abc import Iterator
from typing import Any

from surecall.base.json_values import as_fields, as_list
from surecall.text import encode_text
from surecall.wire.conversation import (
    Call,
    Item,
    TurnConversation,
    tell_lost_result,
)


class MessagesConversation(TurnConversation):
    """Results are blocks of what the user says next."""

    key = "messages"
    part_key = "content"
    model_role = "assistant"

    def is_result(self, part: Item) -> bool:
        """Tell whether a part is the result of a call."""
        return part.get("type") == "tool_result"

    def result_id(self, part: Item) -> Any:
        """Return the id of the call that a result names."""
        return part.get("tool_use_id")

    def call_keys(self, call: Call) -> tuple[str, ...]:
        """Return what a result may name a call by."""
        return (str(call.given_id),)

    def result_keys(self, part: Item) -> tuple[str, ...]:
        """Return what a result names its call by, the best first."""
        return (str(part.get("tool_use_id")),)

    def name_result(self, part: Item, call: Call) -> Item:
        """Return a result with the id that its call has now."""
        return part if call.id == call.given_id else {**part, "tool_use_id": call.id}

    def make_result(self, call: Call) -> Item:
        """Return the result of a call that has none."""
        content = self._missing_result(call.name)
        named = {"type": "tool_result", "tool_use_id": call.id}
        return {**named, "content": content, "is_error": True}

    def tell_result(self, part: Item) -> Item:
        """Return a result without a call as text."""
        content = part.get("content")
        text = content if isinstance(content, str) else encode_text(content)
        return {"type": "text", "text": tell_lost_result(part.get("tool_use_id"), text)}

    def mend_call(self, part: Item, place: str) -> tuple[Item, Call | None]:
        """Return a part with its call repaired, and the call if it is one."""
        if part.get("type") != "tool_use":
            return part, None
        given = part.get("id")
        call = Call(given, self._take_id(given, f"{place}/id"), str(part.get("name") or ""))
        value = self._mend_object(part.get("input"), f"{place}/input")
        if value is not None:
            part = {**part, "input": value}
        return part if call.id == given else {**part, "id": call.id}, call

    def calls_in(self, item: Item) -> Iterator[Item]:
        """Yield the calls of an item."""
        blocks = map(as_fields, as_list(item.get("content")))
        yield from (block for block in blocks if block.get("type") == "tool_use")
