"""The conversation of a request, which a provider would refuse, made valid without loss.

Every call has one result behind it, no two calls share an id, and arguments can be read. Where
nothing is wrong the items stay the same objects; each change depends only on what it repairs.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Receipt, clip
from surecall.text import decode, decode_plain, encode_text

ADD_RESULT: Final = "add_missing_result"
MOVE_RESULT: Final = "move_result"
RENAME_ID: Final = "rename_repeated_id"
TELL_RESULT: Final = "tell_lost_result"
WRITE_ARGUMENTS: Final = "rewrite_history_arguments"
MENDING_RULES: Final = (ADD_RESULT, MOVE_RESULT, RENAME_ID, TELL_RESULT, WRITE_ARGUMENTS)
"""What is done to conversations."""

Item = dict[str, Any]
Echo: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""What came with the message around a call, and with the call itself."""
FindEcho: TypeAlias = Callable[[str, str, Any], Echo | None]
"""Returns what came with a call, by its id, its name and its arguments."""


class Call(Struct, eq=False):
    """A call that waits for its result; two of them are never the same."""

    given_id: Any
    id: str
    name: str


def tell_lost_result(call_id: Any, text: str) -> str:
    """Tell as text a result whose call is not in the history."""
    named = f" {clip(call_id, 80)}" if isinstance(call_id, str) and call_id else ""
    return f"[Result of the tool call{named}, which is not part of this conversation:]\n{text}"


class Conversation(ABC):
    """The conversation of one request.

    Args:
        document: The request; it is not changed.
    """

    key: str
    """Where the conversation is in a request."""
    id_key: str = "id"
    """Where a call has its id."""
    said_key: str = "content"
    """Where a result has what it says."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._items = as_list(document.get(self.key))
        self._used: set[str] = set()
        self._read_object: Callable[[Any], Item]
        self._missing_result: Callable[[str], str]
        self.receipts: list[Receipt] = []

    def repair(
        self, read_object: Callable[[Any], Item], missing_result: Callable[[str], str]
    ) -> list[Any]:
        """Return the items of the conversation; those that need nothing are the same objects.

        Args:
            read_object: Returns what arguments mean, or an object that shows what cannot be read.
            missing_result: Returns the result of a tool whose result is missing.
        """
        self._read_object, self._missing_result = read_object, missing_result
        return self._repair_items()

    @abstractmethod
    def _repair_items(self) -> list[Any]:
        """Return the items, repaired."""

    @abstractmethod
    def calls_in(self, item: Item) -> Iterator[Item]:
        """Yield the calls of an item."""

    @abstractmethod
    def results_in(self, item: Item) -> Iterator[tuple[Any, Item]]:
        """Yield what each result of an item names its call by, and the object that says it."""

    @abstractmethod
    def has_results(self) -> bool:
        """Tell whether there are any results of tools."""

    @abstractmethod
    def ends_with_results(self) -> bool:
        """Tell whether the last turn has results of tools."""

    def find_call_ids(self) -> frozenset[str]:
        """Return the ids that calls have."""
        calls = (call for item in self._items for call in self.calls_in(as_fields(item)))
        ids = (call.get(self.id_key) for call in calls)
        return frozenset(call_id for call_id in ids if isinstance(call_id, str))

    def restore(self, item: Item, find: FindEcho, *, with_reasoning: bool) -> Item:
        """Return an item with what was left out put back, if the format has room for it."""
        return item

    def _note(self, rule: str, place: str, before: Any, after: Any, why: str = "") -> None:
        self.receipts.append(Receipt(rule, place, before, after, why=why))

    def _note_missing(self, call: Call, place: str) -> None:
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

    def _repair_text(self, given: Any, place: str) -> str | None:
        """Return arguments as the text of an object; `None` when that is what they are."""
        if isinstance(given, str) and _is_object_text(given):
            return None
        text = encode_text(self._read_object(given))
        self._note(WRITE_ARGUMENTS, place, clip(str(given)), clip(text))
        return text

    def _repair_object(self, given: Any, place: str) -> Item | None:
        """Return arguments as an object; `None` when that is what they are."""
        if isinstance(given, dict):
            return None
        value = self._read_object(given)
        self._note(WRITE_ARGUMENTS, place, clip(str(given)), clip(encode_text(value)))
        return value


def _is_object_text(text: str) -> bool:
    if isinstance(decode_plain(text), dict):
        return True
    try:
        return isinstance(decode(text), dict)
    except JSONTextError:
        return False


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


class TurnConversation(Conversation):
    """Calls are parts of what the model says, results parts of what is said to it next.

    Items of one side that follow each other are one turn, since that is how providers read them.
    The turn behind calls begins with their results, in whichever of its items they are.
    """

    part_key: str
    """Where the parts of an item are."""
    model_role: str

    def _repair_items(self) -> list[Any]:
        mended: list[Any] = []
        start = middle = 0
        was_model = True
        for at, item in enumerate(self._items):
            is_model = as_fields(item).get("role") == self.model_role
            if is_model and not was_model:
                mended += self._repair_turns(range(start, middle), range(middle, at))
                start = at
            middle = at + 1 if is_model else middle
            was_model = is_model
        return mended + self._repair_turns(range(start, middle), range(middle, len(self._items)))

    def _repair_turns(self, said: range, heard: range) -> list[Any]:
        """Return what the model said, and what was said to it next."""
        spoken = [self._repair_model(at) for at in said]
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
                mended.append({"role": "user", self.part_key: results})
                waiting = []
            mended.append(entry)
            waiting += made
            is_answered = is_answered or any(call not in calls.left for call in made)
        missing = [call for call in waiting if call in calls.left] if calls.left else []
        return mended + self._repair_answers(answers, missing, f"/{heard.start}")

    def _repair_model(self, at: int) -> tuple[Any, list[Call]]:
        item = as_fields(self._items[at])
        before = as_list(item.get(self.part_key))
        calls: list[Call] = []
        parts = list(before)
        for number, part in enumerate(before):
            if isinstance(part, dict):
                place = f"/{at}/{self.part_key}/{number}"
                parts[number], call = self.repair_call(as_fields(part), place)
                calls += [] if call is None else [call]
        same = _are_same(parts, before)
        return self._items[at] if same else {**item, self.part_key: parts}, calls

    def _read_parts(self, at: int) -> list[Any]:
        said = as_fields(self._items[at]).get(self.part_key)
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
                self._note_lost(self.result_id(fields), f"/{at}/{self.part_key}/{number}")
                others.append(self.tell_result(fields))
            else:
                results.append(self.name_result(fields, call))
                is_mixed = is_mixed or bool(others)
        return _Answer(at, before, results, others, is_mixed)

    def _repair_answers(self, answers: list[_Answer], missing: list[Call], place: str) -> list[Any]:
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
            lead = [{"role": "user", self.part_key: late}]
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
        return [{**as_fields(entry), self.part_key: parts}] if parts else []

    def _make_results(self, calls: list[Call], place: str) -> list[Any]:
        for call in calls:
            self._note_missing(call, place)
        return [self.make_result(call) for call in calls]

    def results_in(self, item: Item) -> Iterator[tuple[Any, Item]]:
        """Yield the results among the parts of an item."""
        for part in map(as_fields, as_list(item.get(self.part_key))):
            if self.is_result(part):
                yield self.result_id(part), self.result_in(part)

    def result_in(self, part: Item) -> Item:
        """Return the object of a part that says the result."""
        return part

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
    def repair_call(self, part: Item, place: str) -> tuple[Item, Call | None]:
        """Return a part with its call mended, and the call if it is one."""

    def has_results(self) -> bool:
        """Tell whether there are any results of tools."""
        return any(self._has_result(self._parts_of(item)) for item in self._items)

    def ends_with_results(self) -> bool:
        """Tell whether the last turn has results of tools."""
        for item in reversed(self._items):
            if as_fields(item).get("role") in ("assistant", "model"):
                return False
            if self._has_result(self._parts_of(item)):
                return True
        return False

    def _parts_of(self, item: Any) -> list[Any]:
        return as_list(as_fields(item).get(self.part_key))


def _are_same(parts: list[Any], before: list[Any]) -> bool:
    return len(parts) == len(before) and all(
        new is old for new, old in zip(parts, before, strict=True)
    )
