"""Conversations in this format."""

from collections.abc import Iterator
from typing import Any

from surecall.base.json_values import as_fields, as_list
from surecall.text import decode, encode_text
from surecall.wire.conversation import (
    Call,
    FindEcho,
    Item,
    TurnConversation,
    tell_lost_result,
)


class GeminiConversation(TurnConversation):
    """Calls need no id here: a result answers the first open call of its name."""

    key = "contents"
    part_key = "parts"
    model_role = "model"

    def is_result(self, part: Item) -> bool:
        """Tell whether a part is the result of a call."""
        return "functionResponse" in part or "function_response" in part

    def result_id(self, part: Item) -> Any:
        """Return the id of the call that a result names."""
        response = _response_in(part)
        return response.get("id") or response.get("name")

    def call_keys(self, call: Call) -> tuple[str, ...]:
        """Return what a result may name a call by."""
        return (f"id {call.id}", f"name {call.name}") if call.id else (f"name {call.name}",)

    def result_keys(self, part: Item) -> tuple[str, ...]:
        """Return what a result names its call by, the best first."""
        response = _response_in(part)
        named = (f"name {response.get('name')}",)
        return (f"id {response['id']}", *named) if response.get("id") else named

    def name_result(self, part: Item, call: Call) -> Item:
        """Return a result with the id that its call has now."""
        return part

    def make_result(self, call: Call) -> Item:
        """Return the result of a call that has none."""
        response: Item = {"name": call.name, "response": decode(self._missing_result(call.name))}
        return {"functionResponse": {"id": call.id, **response} if call.id else response}

    def tell_result(self, part: Item) -> Item:
        """Return a result without a call as text."""
        text = encode_text(_response_in(part).get("response"))
        return {"text": tell_lost_result(self.result_id(part), text)}

    def mend_call(self, part: Item, place: str) -> tuple[Item, Call | None]:
        """Return a part with its call repaired, and the call if it is one."""
        key = "functionCall" if "functionCall" in part else "function_call"
        if not isinstance(part.get(key), dict):
            return part, None
        fields = as_fields(part[key])
        call_id, name = fields.get("id"), str(fields.get("name") or "")
        call_id = call_id if isinstance(call_id, str) else ""
        value = None
        if fields.get("args") is not None:
            value = self._mend_object(fields["args"], f"{place}/{key}/args")
        if value is not None:
            part = {**part, key: {**fields, "args": value}}
        return part, Call(call_id, call_id, name)

    def calls_in(self, item: Item) -> Iterator[Item]:
        """Yield the calls of an item."""
        for entry in as_list(item.get("parts")):
            part = as_fields(entry)
            call = part.get("functionCall") or part.get("function_call")
            if isinstance(call, dict):
                yield as_fields(call)

    def restore(self, item: Item, find: FindEcho, *, with_reasoning: bool) -> Item:
        """Return a content with the signatures that were left out put back."""
        if item.get("role") != "model":
            return item
        parts: list[Any] = []
        for entry in as_list(item.get("parts")):
            part = as_fields(entry)
            call = as_fields(part.get("functionCall"))
            signed = "thoughtSignature" in part or "thought_signature" in part
            found = None
            if call and not signed:
                name, call_id = str(call.get("name")), str(call.get("id") or "")
                found = find(call_id, name, call.get("args") or {})
            signature = found[1].get("thought_signature") if found else None
            parts.append({**part, "thoughtSignature": signature} if signature else entry)
        return item if parts == as_list(item.get("parts")) else {**item, "parts": parts}


def _response_in(part: Item) -> Item:
    return as_fields(part.get("functionResponse") or part.get("function_response"))
