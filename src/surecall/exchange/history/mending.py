"""How the conversation of each wire format is mended."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from surecall.errors import JSONTextError
from surecall.exchange.wording import missing_result, tell_lost_result
from surecall.jsontext import decode, decode_plain, encode_text
from surecall.narrow import as_fields, as_list
from surecall.protocols.substitutes import stand_in_arguments
from surecall.reading import read_arguments
from surecall.records import Receipt, clip

ADD_RESULT: Final = "add_missing_result"
MOVE_RESULT: Final = "move_result"
RENAME_ID: Final = "rename_repeated_id"
TELL_RESULT: Final = "tell_lost_result"
WRITE_ARGUMENTS: Final = "rewrite_history_arguments"
MENDING_RULES: Final = (ADD_RESULT, MOVE_RESULT, RENAME_ID, TELL_RESULT, WRITE_ARGUMENTS)
"""What is done to conversations."""

Item = dict[str, Any]


class _Call(NamedTuple):
    """A call that waits for its result."""

    given_id: Any
    id: str
    name: str


class Mender(ABC):
    """What all formats have in common: ids that differ, and what was changed."""

    def __init__(self, items: list[Any], document: Mapping[str, Any]) -> None:
        self._items = items
        self._document = document
        self._used: set[str] = set()
        self.receipts: list[Receipt] = []

    @abstractmethod
    def mend(self) -> list[Any]:
        """Return the conversation; items that need nothing are the same objects."""

    def _note(self, rule: str, place: str, before: Any, after: Any, why: str = "") -> None:
        self.receipts.append(Receipt(rule, place, before, after, why=why))

    def _note_missing(self, call: _Call, place: str) -> None:
        self._note(ADD_RESULT, place, None, call.id or call.name, "the call has no result")

    def _note_lost(self, call_id: Any, place: str) -> None:
        self._note(TELL_RESULT, place, clip(str(call_id)), "text", "its call is not there")

    def _take_id(self, call_id: Any, place: str) -> str:
        """Return an id that no earlier call has."""
        wanted = call_id if isinstance(call_id, str) and call_id else f"call_{len(self._used)}"
        given, number = wanted, 1
        while given in self._used:
            number += 1
            given = f"{wanted}__{number}"
        self._used.add(given)
        if given != call_id:
            why = "another call has this id, or it has none"
            self._note(RENAME_ID, place, call_id, given, why)
        return given

    def _mend_text(self, given: Any, place: str) -> str | None:
        """Return arguments as the text of an object; `None` when that is what they are."""
        if isinstance(given, str) and _is_object_text(given):
            return None
        text = encode_text(_object_of(given))
        self._note(WRITE_ARGUMENTS, place, clip(str(given)), clip(text))
        return text

    def _mend_object(self, given: Any, place: str) -> Item | None:
        """Return arguments as an object; `None` when that is what they are."""
        if isinstance(given, dict):
            return None
        value = _object_of(given)
        self._note(WRITE_ARGUMENTS, place, clip(str(given)), clip(encode_text(value)))
        return value


def _is_object_text(text: str) -> bool:
    if isinstance(decode_plain(text), dict):
        return True
    try:
        return isinstance(decode(text), dict)
    except JSONTextError:
        return False


def _object_of(given: Any) -> Item:
    """Return what arguments mean, or a small object that shows what could not be read."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    found = read_arguments(given, ended=True)
    if found.value is None or any(not receipt.lossless for receipt in found.receipts):
        return stand_in_arguments(given)
    return found.value


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

    def _find_results(self, calls: list[_Call], start: int, taken: set[int]) -> list[Any]:
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

    def _mend_calls(self, item: Item, place: str) -> tuple[Item, list[_Call]]:
        before = as_list(item.get("tool_calls"))
        entries = list(before)
        calls: list[_Call] = []
        for at, entry in enumerate(before):
            if not isinstance(entry, dict):
                continue
            call, here = as_fields(entry), f"{place}/tool_calls/{at}"
            given, function = call.get("id"), as_fields(call.get("function"))
            calls.append(_Call(given, self._take_id(given, here), str(function.get("name") or "")))
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
        waiting: list[_Call] = []
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

    def _mend_call(self, item: Item, place: str) -> tuple[Item, _Call]:
        given = item.get("call_id")
        call = _Call(given, self._take_id(given, place), str(item.get("name") or ""))
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

    def _add_results(self, calls: list[_Call], at: int) -> list[Any]:
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


class _PartsMender(Mender):
    """Calls are parts of what the model said, results parts of what directly follows it."""

    key = "content"
    model_role = "assistant"

    def mend(self) -> list[Any]:
        mended: list[Any] = []
        waiting: list[_Call] = []
        for at, entry in enumerate(self._items):
            item = as_fields(entry)
            if item.get("role") == self.model_role:
                mended += self._answer(waiting, at)
                item, waiting = self._mend_model(item, f"/{at}")
            else:
                item, waiting = self._mend_user(item, waiting, f"/{at}"), []
            mended.append(item if isinstance(entry, dict) else entry)
        return mended + self._answer(waiting, len(self._items))

    def _answer(self, calls: list[_Call], at: int) -> list[Any]:
        if not calls:
            return []
        return [{"role": "user", self.key: self._make_results(calls, f"/{at}")}]

    def _make_results(self, calls: list[_Call], place: str) -> list[Any]:
        for call in calls:
            self._note_missing(call, place)
        return [self.make_result(call) for call in calls]

    def _mend_model(self, item: Item, place: str) -> tuple[Item, list[_Call]]:
        before = as_list(item.get(self.key))
        waiting: list[_Call] = []
        parts = list(before)
        for at, part in enumerate(before):
            if isinstance(part, dict):
                parts[at], call = self.mend_call(as_fields(part), f"{place}/{self.key}/{at}")
                waiting += [] if call is None else [call]
        same = all(new is old for new, old in zip(parts, before, strict=True))
        return item if same else {**item, self.key: parts}, waiting

    def _mend_user(self, item: Item, waiting: list[_Call], place: str) -> Item:
        said = item.get(self.key)
        before = [{"type": "text", "text": said}] if isinstance(said, str) else as_list(said)
        if not waiting and not any(self.is_result(as_fields(part)) for part in before):
            return item
        left, results, others = list(waiting), list[Any](), list[Any]()
        for at, part in enumerate(before):
            fields = as_fields(part)
            if not self.is_result(fields):
                others.append(part)
                continue
            call = self.find_call(fields, left)
            if call is None:
                self._note_lost(self.result_id(fields), f"{place}/{self.key}/{at}")
                others.append(self.tell_result(fields))
            else:
                left.remove(call)
                results.append(self.name_result(fields, call))
        parts = [*results, *self._make_results(left, place), *others]
        same = len(parts) == len(before)
        if same and all(new is old for new, old in zip(parts, before, strict=True)):
            return item
        if same and {id(part) for part in parts} == {id(part) for part in before}:
            self._note(MOVE_RESULT, place, "behind text", "before text")
        return {**item, self.key: parts}

    @abstractmethod
    def is_result(self, part: Item) -> bool:
        """Tell whether a part is the result of a call."""

    @abstractmethod
    def result_id(self, part: Item) -> Any:
        """Return the id of the call that a result names."""

    @abstractmethod
    def find_call(self, part: Item, calls: list[_Call]) -> _Call | None:
        """Return the call that a result answers."""

    @abstractmethod
    def name_result(self, part: Item, call: _Call) -> Item:
        """Return a result with the id that its call has now."""

    @abstractmethod
    def make_result(self, call: _Call) -> Item:
        """Return the result of a call that has none."""

    @abstractmethod
    def tell_result(self, part: Item) -> Item:
        """Return a result without a call as text."""

    @abstractmethod
    def mend_call(self, part: Item, place: str) -> tuple[Item, _Call | None]:
        """Return a part with its call mended, and the call if it is one."""


class _MessagesMender(_PartsMender):
    def is_result(self, part: Item) -> bool:
        return part.get("type") == "tool_result"

    def result_id(self, part: Item) -> Any:
        return part.get("tool_use_id")

    def find_call(self, part: Item, calls: list[_Call]) -> _Call | None:
        return next((call for call in calls if call.given_id == part.get("tool_use_id")), None)

    def name_result(self, part: Item, call: _Call) -> Item:
        return part if call.id == call.given_id else {**part, "tool_use_id": call.id}

    def make_result(self, call: _Call) -> Item:
        content = missing_result(call.name)
        named = {"type": "tool_result", "tool_use_id": call.id}
        return {**named, "content": content, "is_error": True}

    def tell_result(self, part: Item) -> Item:
        content = part.get("content")
        text = content if isinstance(content, str) else encode_text(content)
        return {"type": "text", "text": tell_lost_result(part.get("tool_use_id"), text)}

    def mend_call(self, part: Item, place: str) -> tuple[Item, _Call | None]:
        if part.get("type") != "tool_use":
            return part, None
        given = part.get("id")
        call = _Call(given, self._take_id(given, f"{place}/id"), str(part.get("name") or ""))
        value = self._mend_object(part.get("input"), f"{place}/input")
        if value is not None:
            part = {**part, "input": value}
        return part if call.id == given else {**part, "id": call.id}, call


class _GeminiMender(_PartsMender):
    """Calls need no id here: a result answers the first open call of its name."""

    key = "parts"
    model_role = "model"

    def is_result(self, part: Item) -> bool:
        return "functionResponse" in part or "function_response" in part

    def result_id(self, part: Item) -> Any:
        response = _response_in(part)
        return response.get("id") or response.get("name")

    def find_call(self, part: Item, calls: list[_Call]) -> _Call | None:
        response = _response_in(part)
        call_id, name = response.get("id"), response.get("name")
        named = [call for call in calls if call_id and call.id == call_id]
        return next(iter(named or [call for call in calls if call.name == name]), None)

    def name_result(self, part: Item, call: _Call) -> Item:
        return part

    def make_result(self, call: _Call) -> Item:
        response: Item = {"name": call.name, "response": decode(missing_result(call.name))}
        return {"functionResponse": {"id": call.id, **response} if call.id else response}

    def tell_result(self, part: Item) -> Item:
        text = encode_text(_response_in(part).get("response"))
        return {"text": tell_lost_result(self.result_id(part), text)}

    def mend_call(self, part: Item, place: str) -> tuple[Item, _Call | None]:
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
        return part, _Call(call_id, call_id, name)


def _response_in(part: Item) -> Item:
    return as_fields(part.get("functionResponse") or part.get("function_response"))


_MENDERS: Final[Mapping[str, type[Mender]]] = {
    "chat_completions": _ChatMender,
    "gemini": _GeminiMender,
    "messages": _MessagesMender,
    "responses": _ResponsesMender,
}


def open_mender(protocol: str, items: list[Any], document: Mapping[str, Any]) -> Mender:
    """Return what mends a conversation.

    Args:
        protocol: The name of its wire format.
        items: The conversation.
        document: The request it is part of.
    """
    return _MENDERS[protocol](items, document)
