"""Calls that arrive in pieces.

A piece belongs to the call with its index. Where indexes are missing or shared, ids decide, then
names: a new id is a new call, and so is a new name once arguments have begun. A name that repeats
what is already there is ignored; any other fragment continues the name. What cannot be told apart
ends up in one call whose arguments do not parse, and is refused: pieces are never dropped.
"""

from itertools import pairwise
from typing import Any, Final

from surecall.base.errors import Code, JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.text import decode, mend_surrogates
from surecall.wire.kept import Kept, KeptText, Noted, text_of

_FUNCTION_FIELDS: Final = frozenset({"arguments", "name"})
_CALL_FIELDS: Final = frozenset({"arguments", "function", "id", "index", "name"})


class PartialCall:
    """One call, as far as it has arrived."""

    __slots__ = (
        "_kept",
        "bare",
        "beside",
        "breaks",
        "extra",
        "id",
        "index",
        "is_text",
        "name",
        "runs",
    )

    def __init__(self, kept: Kept, index: int | None = None) -> None:
        kept.add_part()
        self._kept = kept
        self.index = index
        self.id: Any = None
        self.name: Any = None
        self.runs: list[Any] = []
        """What arrived as arguments: text that belongs together, or an object."""
        self.is_text = True
        self.breaks: list[int] = []
        """Where in `runs` the whole name was said again."""
        self.bare: set[str] = set()
        """Which of name and arguments came without the `function` wrapper."""
        self.extra: dict[str, Any] = {}
        self.beside: dict[str, Any] = {}
        """Other fields of the `function` wrapper."""

    def take(self, name: Any, arguments: Any) -> None:
        """Add one piece of the name and one of the arguments."""
        if name is not None and name != "":
            self._take_name(name)
        if arguments is None:
            return
        if isinstance(arguments, str):
            self._open_run().append(arguments)
        else:
            self._kept.add_part(arguments)
            self.runs.append(arguments)
            self.is_text = False

    def spoil(self, piece: Any) -> None:
        """Keep a piece that may be of the arguments but cannot be joined: they will be refused."""
        if not self.has_arguments:
            self.take(None, "{}")
        self.take(None, [piece])

    @property
    def has_arguments(self) -> bool:
        """Whether anything arrived as arguments but empty text."""
        return any(not isinstance(run, KeptText) or run for run in self.runs)

    def _take_name(self, name: Any) -> None:
        if self.name is None:
            self._kept.add_value(name)
            self.name = name
        elif name == self.name:
            if self.runs and self.runs[-1]:
                self.breaks.append(len(self.runs))
        elif isinstance(name, str) and isinstance(self.name, str):
            self.name += name
            self._kept.add_bytes(len(self.name))

    def _open_run(self) -> KeptText:
        """Return the text that the next piece continues."""
        if self.runs and self.breaks[-1:] != [len(self.runs)]:
            last = self.runs[-1]
            if isinstance(last, KeptText):
                return last
        if self.runs:
            self._kept.add_part()
        run = KeptText(self._kept)
        self.runs.append(run)
        return run

    @property
    def arguments(self) -> Any:
        """What arrived as arguments: text, one object, or nothing."""
        if self.is_text:
            return "".join(map(str, self.runs)) if self.runs else None
        text = "".join(str(run) for run in self.runs if isinstance(run, KeptText))
        objects = [run for run in self.runs if not isinstance(run, KeptText)]
        if not text.strip() and all(item == objects[0] for item in objects):
            return objects[0]
        if all(item == {} for item in objects):
            return text
        # Two things were said; written one after the other they are refused as not one object.
        return "".join(str(run) if isinstance(run, KeptText) else text_of(run) for run in self.runs)

    def render(self) -> list[dict[str, Any]]:
        """Return the call as a whole reply would carry it, or several that shared its place."""
        parts = self._split() or [self.arguments]
        return [self._entry(arguments) for arguments in parts]

    def _entry(self, arguments: Any) -> dict[str, Any]:
        entry: dict[str, Any] = {} if self.id is None else {"id": self.id}
        call = {**self.beside, "name": self.name, "arguments": arguments}
        bare = {key: call.pop(key) for key in sorted(self.bare)}
        return {**entry, **self.extra, **({"function": call} if call else {}), **bare}

    def _split(self) -> list[str]:
        """Part calls to one tool that share an index: each run is a whole object by itself."""
        if not self.breaks or not self.is_text:
            return []
        bounds = [0, *self.breaks, len(self.runs)]
        texts = ["".join(map(str, self.runs[a:b])) for a, b in pairwise(bounds)]
        texts = [mend_surrogates(text) for text in texts if text.strip()]
        return texts if len(texts) > 1 and all(map(_is_object, texts)) else []


class PartialCalls(Noted):
    """All calls of one reply, as far as they have arrived."""

    place = "/tool_calls"

    def __init__(self, kept: Kept) -> None:
        super().__init__(kept)
        self.has_objects = False
        """Whether any arguments came as an object, in which a key can be repeated."""
        self._calls: list[PartialCall] = []
        self._by_index: dict[int, PartialCall] = {}
        self._by_id: dict[Any, PartialCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def take(self, delta: Any) -> None:
        """Add what one event brought in its `tool_calls`."""
        if isinstance(delta, dict):
            self._note(Code.CALLS_AS_OBJECT, "tool_calls is one object.")
            delta = [delta]
        entries = as_list(delta) if isinstance(delta, list) else [delta]
        touched: set[PartialCall] = set()
        for entry in entries:
            if isinstance(entry, dict):
                touched.add(self._take_entry(as_fields(entry), touched))
            else:
                note = f"A value of type {type(entry).__name__} is in the place of a call."
                self._note(Code.CALL_ENTRY_DROPPED, note)

    def add(self, index: int, arguments: str) -> bool:
        """Add a piece of arguments to a call that has begun; tell whether it has."""
        call = self._by_index.get(index)
        if call is None:
            return False
        last = call.runs[-1] if call.runs and not call.breaks else None
        if isinstance(last, KeptText):
            last.append(arguments)
        else:
            call.take(None, arguments)
        return True

    def render(self) -> list[dict[str, Any]]:
        """Return the calls in the order of their indexes, or of their arrival without these."""
        calls = self._calls
        if all(call.index is not None for call in calls):
            calls = sorted(calls, key=lambda call: call.index or 0)
        entries: list[dict[str, Any]] = []
        for call in calls:
            parts = call.render()
            if len(parts) > 1:
                self._note(Code.INDEX_NOT_USABLE, "Several calls came under one index.")
            entries += parts
        return entries

    def _take_entry(self, entry: dict[str, Any], touched: set[PartialCall]) -> PartialCall:
        function: Any = entry.get("function")
        inner = as_fields(function)
        name, arguments = inner.get("name"), inner.get("arguments")
        if function is not None and not isinstance(function, dict):
            note = f"A value of type {type(function).__name__} is in the place of a function."
            self._note(Code.CALL_ENTRY_DROPPED, note)
        bare: set[str] = set()
        if not name and entry.get("name"):
            name = entry["name"]
            bare.add("name")
        if arguments is None and entry.get("arguments") is not None:
            arguments = entry["arguments"]
            bare.add("arguments")
        index = entry.get("index")
        if type(index) is not int or index < 0:
            index = None
        call_id = entry.get("id")
        if isinstance(call_id, dict | list) or call_id == "":
            call_id = None
        call = self._find(index, call_id, name, touched)
        if call_id is not None and call.id is None:
            self._kept.add_value(call_id)
            call.id = call_id
            self._by_id[call_id] = call
        call.take(name, arguments)
        if function and not isinstance(function, dict):
            call.spoil(function)
        call.bare |= bare
        for key in inner.keys() - _FUNCTION_FIELDS:
            self._kept.put(call.beside, key, inner[key])
        self.has_objects = self.has_objects or not call.is_text
        for key, value in entry.items():
            if value is not None and key not in _CALL_FIELDS:
                self._kept.put(call.extra, key, value)
        return call

    def _find(
        self, index: int | None, call_id: Any, name: Any, touched: set[PartialCall]
    ) -> PartialCall:
        if index is None:
            return self._find_unnumbered(call_id, name, touched)
        call = self._by_index.get(index)
        if call is None:
            return self._begin(index)
        if call_id is not None and call.id is not None and call.id != call_id:
            known = self._by_id.get(call_id)
            if known is not None and known.index == index:
                self._by_index[index] = known
                return known
        elif not _is_new_name(call, name):
            return call
        self._note(Code.INDEX_NOT_USABLE, "Several calls came under one index.")
        return self._begin(index)

    def _find_unnumbered(self, call_id: Any, name: Any, touched: set[PartialCall]) -> PartialCall:
        self._note(Code.INDEX_NOT_USABLE, "A piece of a call came without an index.")
        if call_id is not None:
            call = self._by_id.get(call_id)
            if call is None and self._calls and self._calls[-1].id is None and not name:
                call = self._calls[-1]
        else:
            call = self._calls[-1] if self._calls else None
            if call is not None and name and call.name is not None and call.name != name:
                call = None
        # Entries of one event stand for different calls: nothing cuts a call inside an event.
        if call is None or call in touched or _is_new_name(call, name):
            return self._begin(None)
        return call

    def _begin(self, index: int | None) -> PartialCall:
        call = PartialCall(self._kept, index)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call


def _is_new_name(call: PartialCall, name: Any) -> bool:
    """Tell whether a name starts another call: it differs, and arguments have begun."""
    if not name or call.name is None or name == call.name:
        return False
    return call.has_arguments


def _is_object(text: str) -> bool:
    try:
        return isinstance(decode(text), dict)
    except JSONTextError:
        return False
