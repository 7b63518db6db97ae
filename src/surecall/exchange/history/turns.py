"""Conversations in which every result is a part of a turn, as in messages and Gemini."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from surecall.exchange.wording import missing_result, tell_lost_result
from surecall.jsontext import decode, encode_text
from surecall.narrow import as_fields, as_list

from .mending import MOVE_RESULT, Call, Item, Mender


class _Answer(NamedTuple):
    """One item that is said to the model: the results in it, and all else."""

    at: int
    before: list[Any]
    results: list[Any]
    others: list[Any]
    is_mixed: bool
    """Whether a result comes behind something else."""


class _TurnMender(Mender):
    """Calls are parts of what the model says, results parts of what is said to it next.

    Items of one side that follow each other are one turn, since that is how providers read them.
    The turn behind calls begins with their results, in whichever of its items they are.
    """

    key = "content"
    model_role = "assistant"

    def mend(self) -> list[Any]:
        mended: list[Any] = []
        end = 0
        while end < len(self._items):
            start, middle = end, self._find_end(end, of_model=True)
            end = self._find_end(middle, of_model=False)
            mended += self._mend_turns(range(start, middle), range(middle, end))
        return mended

    def _find_end(self, at: int, *, of_model: bool) -> int:
        """Return the place behind the items of one side that begin in a place."""
        for place in range(at, len(self._items)):
            is_model = as_fields(self._items[place]).get("role") == self.model_role
            if is_model != of_model:
                return place
        return len(self._items)

    def _mend_turns(self, said: range, heard: range) -> list[Any]:
        """Return what the model said, and what was said to it next."""
        spoken = [self._mend_model(at) for at in said]
        left = [call for _, calls in spoken for call in calls]
        parts = [(at, self._read_parts(at)) for at in heard]
        coming = self._count_results([part for _, found in parts for part in found])
        answers = [self._read_answer(at, found, left, coming) for at, found in parts]
        unanswered = {id(call) for call in left}
        mended: list[Any] = []
        waiting: list[Call] = []
        is_answered = False
        for at, (entry, calls) in zip(said, spoken, strict=True):
            if waiting and not is_answered:
                # Nobody answered before the model went on: what it says next is another turn.
                mended.append(self._make_answer(waiting, f"/{at}"))
                waiting = []
            mended.append(entry)
            waiting += calls
            is_answered = bool(waiting) and (
                is_answered or any(id(call) not in unanswered for call in calls)
            )
        missing = [call for call in waiting if id(call) in unanswered]
        return mended + self._mend_answers(answers, missing, f"/{heard.start}")

    def _mend_model(self, at: int) -> tuple[Any, list[Call]]:
        item = as_fields(self._items[at])
        before = as_list(item.get(self.key))
        waiting: list[Call] = []
        parts = list(before)
        for number, part in enumerate(before):
            if isinstance(part, dict):
                place = f"/{at}/{self.key}/{number}"
                parts[number], call = self.mend_call(as_fields(part), place)
                waiting += [] if call is None else [call]
        same = _are_same(parts, before)
        return self._items[at] if same else {**item, self.key: parts}, waiting

    def _read_parts(self, at: int) -> list[Any]:
        said = as_fields(self._items[at]).get(self.key)
        return [{"type": "text", "text": said}] if isinstance(said, str) else as_list(said)

    def _count_results(self, parts: list[Any]) -> Counter[str]:
        """Count the results that name the same call."""
        found = [as_fields(part) for part in parts]
        return Counter(str(self.result_id(part)) for part in found if self.is_result(part))

    def _read_answer(
        self, at: int, before: list[Any], left: list[Call], coming: Counter[str]
    ) -> _Answer:
        """Read one item, and take the calls that its results answer out of those that are left.

        Args:
            at: The place of the item.
            before: Its parts.
            left: The calls of the turn before that have no result yet.
            coming: How many results with the same id are still to come, here and in later items.
        """
        results, others, is_mixed = list[Any](), list[Any](), False
        for number, part in enumerate(before):
            fields = as_fields(part)
            if not self.is_result(fields):
                others.append(part)
                continue
            named = self.result_id(fields)
            calls = self.find_calls(fields, left)
            if calls:
                # Where fewer results than calls have an id, they are those of the last calls.
                call = calls[max(0, len(calls) - coming[str(named)])]
                left[:] = [other for other in left if other is not call]
                results.append(self.name_result(fields, call))
                is_mixed = is_mixed or bool(others)
            else:
                self._note_lost(named, f"/{at}/{self.key}/{number}")
                others.append(self.tell_result(fields))
            coming[str(named)] -= 1
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

    def _make_answer(self, calls: list[Call], place: str) -> Item:
        return {"role": "user", self.key: self._make_results(calls, place)}

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
    def find_calls(self, part: Item, calls: list[Call]) -> list[Call]:
        """Return the calls that a result may answer."""

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

    def find_calls(self, part: Item, calls: list[Call]) -> list[Call]:
        return [call for call in calls if call.given_id == part.get("tool_use_id")]

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

    def find_calls(self, part: Item, calls: list[Call]) -> list[Call]:
        response = _response_in(part)
        call_id, name = response.get("id"), response.get("name")
        named = [call for call in calls if call_id and call.id == call_id]
        return named or [call for call in calls if call.name == name]

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
