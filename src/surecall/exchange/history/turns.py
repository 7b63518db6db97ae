"""Conversations in which every result is a part of a turn, as in messages and Gemini."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from surecall.base.json_values import as_fields, as_list
from surecall.exchange.wording import missing_result, tell_lost_result
from surecall.text import decode, encode_text

from .mending import MOVE_RESULT, Call, Item, Mender

_Keys: TypeAlias = tuple[str, ...]


class _Answer(NamedTuple):
    """One item that is said to the model: the results in it, and all else."""

    at: int
    before: list[Any]
    results: list[Any]
    others: list[Any]
    is_mixed: bool
    """Whether a result comes behind something else."""


class _OpenCalls:
    """The calls of a turn that have no result yet, by the keys that a result may name them with."""

    def __init__(self) -> None:
        self._by_key: dict[str, list[Call]] = {}
        self.left: dict[Call, _Keys] = {}
        """Their keys."""
        self.shares_keys = False

    def add(self, call: Call, keys: _Keys) -> None:
        """Add a call."""
        self.left[call] = keys
        for key in keys:
            calls = self._by_key.setdefault(key, [])
            calls.append(call)
            self.shares_keys = self.shares_keys or len(calls) > 1

    def take(self, keys: _Keys, coming: int) -> Call | None:
        """Take the call that a result answers.

        Args:
            keys: The keys of the result; the first that leads to a call decides.
            coming: How many results have the same keys, from this one on. Where these are fewer
                than the calls, they belong to the last calls.
        """
        calls = next((found for key in keys if (found := self._by_key.get(key))), None)
        if calls is None:
            return None
        call = calls[-min(len(calls), coming)]
        for key in self.left.pop(call):
            self._by_key[key].remove(call)
        return call


class _TurnMender(Mender):
    """Calls are parts of what the model says, results parts of what is said to it next.

    Items of one side that follow each other are one turn, since that is how providers read them.
    The turn behind calls begins with their results, in whichever of its items they are.
    """

    key = "content"
    model_role = "assistant"

    def mend(self) -> list[Any]:
        mended: list[Any] = []
        start = middle = 0
        was_model = True
        for at, item in enumerate(self._items):
            is_model = as_fields(item).get("role") == self.model_role
            if is_model and not was_model:
                mended += self._mend_turns(range(start, middle), range(middle, at))
                start = at
            middle = at + 1 if is_model else middle
            was_model = is_model
        return mended + self._mend_turns(range(start, middle), range(middle, len(self._items)))

    def _mend_turns(self, said: range, heard: range) -> list[Any]:
        """Return what the model said, and what was said to it next."""
        spoken = [self._mend_model(at) for at in said]
        parts = [(at, self._read_parts(at)) for at in heard]
        calls = _OpenCalls()
        for _, made in spoken:
            for call in made:
                calls.add(call, self.call_keys(call))
        if not calls.left and not any(self._has_result(found) for _, found in parts):
            return [self._items[at] for at in (*said, *heard)]
        coming = Counter[_Keys]() if calls.shares_keys else None
        if coming is not None:
            every = (as_fields(part) for _, found in parts for part in found)
            coming.update(self.result_keys(part) for part in every if self.is_result(part))
        answers = [self._read_answer(at, found, calls, coming) for at, found in parts]
        mended: list[Any] = []
        waiting: list[Call] = []
        is_answered = False
        for at, (entry, made) in zip(said, spoken, strict=True):
            if waiting and not is_answered:
                # Nobody answered before the model went on: what it says next is another turn.
                results = self._make_results(waiting, f"/{at}")
                mended.append({"role": "user", self.key: results})
                waiting = []
            mended.append(entry)
            waiting += made
            is_answered = is_answered or any(call not in calls.left for call in made)
        missing = [call for call in waiting if call in calls.left] if calls.left else []
        return mended + self._mend_answers(answers, missing, f"/{heard.start}")

    def _mend_model(self, at: int) -> tuple[Any, list[Call]]:
        item = as_fields(self._items[at])
        before = as_list(item.get(self.key))
        calls: list[Call] = []
        parts = list(before)
        for number, part in enumerate(before):
            if isinstance(part, dict):
                place = f"/{at}/{self.key}/{number}"
                parts[number], call = self.mend_call(as_fields(part), place)
                calls += [] if call is None else [call]
        same = _are_same(parts, before)
        return self._items[at] if same else {**item, self.key: parts}, calls

    def _read_parts(self, at: int) -> list[Any]:
        said = as_fields(self._items[at]).get(self.key)
        return [{"type": "text", "text": said}] if isinstance(said, str) else as_list(said)

    def _has_result(self, parts: list[Any]) -> bool:
        return any(self.is_result(as_fields(part)) for part in parts)

    def _read_answer(
        self, at: int, before: list[Any], calls: _OpenCalls, coming: Counter[_Keys] | None
    ) -> _Answer:
        """Read one item, and take the calls that its results answer out of those that are open.

        Args:
            at: The place of the item.
            before: Its parts.
            calls: The calls of the turn before that have no result yet.
            coming: How many results have the same keys, from this item on; `None` if no calls do.
        """
        results, others, is_mixed = list[Any](), list[Any](), False
        for number, part in enumerate(before):
            fields = as_fields(part)
            if not self.is_result(fields):
                others.append(part)
                continue
            keys = self.result_keys(fields)
            call = calls.take(keys, 1 if coming is None else coming[keys])
            if coming is not None:
                coming[keys] -= 1
            if call is None:
                self._note_lost(self.result_id(fields), f"/{at}/{self.key}/{number}")
                others.append(self.tell_result(fields))
            else:
                results.append(self.name_result(fields, call))
                is_mixed = is_mixed or bool(others)
        return _Answer(at, before, results, others, is_mixed)

    def _mend_answers(self, answers: list[_Answer], missing: list[Call], place: str) -> list[Any]:
        """Return the items of one turn, with the results before all else.

        Only results that come too late move, and they go to the first item.
        """
        parts: list[list[Any]] = []
        late: list[Any] = []
        has_others = False
        for answer in answers:
            is_late = has_others and bool(answer.results)
            if is_late or answer.is_mixed:
                self._note(MOVE_RESULT, f"/{answer.at}", "behind text", "before text")
            late += answer.results if is_late else []
            parts.append(answer.others if is_late else [*answer.results, *answer.others])
            has_others = has_others or bool(answer.others)
        late += self._make_results(missing, place)
        lead: list[Any] = []
        if late and answers and self._takes_results(answers[0]):
            first = answers[0]
            parts[0] = [*first.results, *late, *first.others]
        elif late:
            lead = [{"role": "user", self.key: late}]
        pairs = zip(answers, parts, strict=True)
        return lead + [item for pair in pairs for item in self._rewrite(*pair)]

    def _takes_results(self, answer: _Answer) -> bool:
        entry = self._items[answer.at]
        return isinstance(entry, dict) and as_fields(entry).get("role") != "system"

    def _rewrite(self, answer: _Answer, parts: list[Any]) -> list[Any]:
        """Return an item with other parts; none if all that it had is elsewhere."""
        entry = self._items[answer.at]
        if _are_same(parts, answer.before):
            return [entry]
        return [{**as_fields(entry), self.key: parts}] if parts else []

    def _make_results(self, calls: list[Call], place: str) -> list[Any]:
        for call in calls:
            self._note_missing(call, place)
        return [self.make_result(call) for call in calls]

    @abstractmethod
    def is_result(self, part: Item) -> bool:
        """Tell whether a part is the result of a call."""

    @abstractmethod
    def result_id(self, part: Item) -> Any:
        """Return the id of the call that a result names."""

    @abstractmethod
    def call_keys(self, call: Call) -> _Keys:
        """Return what a result may name a call by."""

    @abstractmethod
    def result_keys(self, part: Item) -> _Keys:
        """Return what a result names its call by, the best first."""

    @abstractmethod
    def name_result(self, part: Item, call: Call) -> Item:
        """Return a result with the id that its call has now."""

    @abstractmethod
    def make_result(self, call: Call) -> Item:
        """Return the result of a call that has none."""

    @abstractmethod
    def tell_result(self, part: Item) -> Item:
        """Return a result without a call as text."""

    @abstractmethod
    def mend_call(self, part: Item, place: str) -> tuple[Item, Call | None]:
        """Return a part with its call mended, and the call if it is one."""


class _MessagesMender(_TurnMender):
    def is_result(self, part: Item) -> bool:
        return part.get("type") == "tool_result"

    def result_id(self, part: Item) -> Any:
        return part.get("tool_use_id")

    def call_keys(self, call: Call) -> _Keys:
        return (str(call.given_id),)

    def result_keys(self, part: Item) -> _Keys:
        return (str(part.get("tool_use_id")),)

    def name_result(self, part: Item, call: Call) -> Item:
        return part if call.id == call.given_id else {**part, "tool_use_id": call.id}

    def make_result(self, call: Call) -> Item:
        content = missing_result(call.name)
        named = {"type": "tool_result", "tool_use_id": call.id}
        return {**named, "content": content, "is_error": True}

    def tell_result(self, part: Item) -> Item:
        content = part.get("content")
        text = content if isinstance(content, str) else encode_text(content)
        return {"type": "text", "text": tell_lost_result(part.get("tool_use_id"), text)}

    def mend_call(self, part: Item, place: str) -> tuple[Item, Call | None]:
        if part.get("type") != "tool_use":
            return part, None
        given = part.get("id")
        call = Call(given, self._take_id(given, f"{place}/id"), str(part.get("name") or ""))
        value = self._mend_object(part.get("input"), f"{place}/input")
        if value is not None:
            part = {**part, "input": value}
        return part if call.id == given else {**part, "id": call.id}, call


class _GeminiMender(_TurnMender):
    """Calls need no id here: a result answers the first open call of its name."""

    key = "parts"
    model_role = "model"

    def is_result(self, part: Item) -> bool:
        return "functionResponse" in part or "function_response" in part

    def result_id(self, part: Item) -> Any:
        response = _response_in(part)
        return response.get("id") or response.get("name")

    def call_keys(self, call: Call) -> _Keys:
        return (f"id {call.id}", f"name {call.name}") if call.id else (f"name {call.name}",)

    def result_keys(self, part: Item) -> _Keys:
        response = _response_in(part)
        named = (f"name {response.get('name')}",)
        return (f"id {response['id']}", *named) if response.get("id") else named

    def name_result(self, part: Item, call: Call) -> Item:
        return part

    def make_result(self, call: Call) -> Item:
        response: Item = {"name": call.name, "response": decode(missing_result(call.name))}
        return {"functionResponse": {"id": call.id, **response} if call.id else response}

    def tell_result(self, part: Item) -> Item:
        text = encode_text(_response_in(part).get("response"))
        return {"text": tell_lost_result(self.result_id(part), text)}

    def mend_call(self, part: Item, place: str) -> tuple[Item, Call | None]:
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


def _response_in(part: Item) -> Item:
    return as_fields(part.get("functionResponse") or part.get("function_response"))


def _are_same(parts: list[Any], before: list[Any]) -> bool:
    return len(parts) == len(before) and all(
        new is old for new, old in zip(parts, before, strict=True)
    )


TURN_MENDERS: Final[Mapping[str, type[Mender]]] = {
    "gemini": _GeminiMender,
    "messages": _MessagesMender,
}
"""What mends a conversation, by wire format."""
