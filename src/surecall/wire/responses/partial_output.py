"""The items of an output that arrive in pieces."""

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from surecall.base.errors import Code
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Defect
from surecall.text import mend_surrogates
from surecall.wire.kept import HeldHalves, Kept, KeptText, Noted
from surecall.wire.records import StreamDelta

from .replies import REASONING_BREAK

_Kind: TypeAlias = Literal["text", "reasoning"]
_Place: TypeAlias = tuple[str, int]

# The pieces of an item: the part they belong to, and the field of the item that holds the parts.
_PLACES: Final = {
    "output_text": "content",
    "refusal": "content",
    "reasoning_text": "content",
    "summary_text": "summary",
}
_WHAT: Final = {"arguments": "calls", "output_text": "text", "refusal": "text"}
_ITEM_TYPES: Final = {
    "arguments": "function_call",
    "output_text": "message",
    "reasoning_text": "reasoning",
    "refusal": "message",
    "summary_text": "reasoning",
}


def deltas_differ(what: str) -> Defect:
    """Return the finding that one thing was said twice, in different words."""
    note = f"The {what} at the end of the stream differs from what was streamed before."
    return Defect(Code.DELTAS_DIFFER, note, "/output")


class _PartialItem:
    """One item as far as it has arrived."""

    __slots__ = ("is_begun", "is_whole", "item", "key", "texts")

    def __init__(self, key: Any, item_type: Any) -> None:
        self.key = key
        self.item: dict[str, Any] = {"type": item_type if isinstance(item_type, str) else ""}
        self.is_begun = False
        self.is_whole = False
        self.texts: dict[_Place, KeptText] = {}

    def render(self) -> dict[str, Any]:
        """Return the item as a whole reply would carry it."""
        if self.is_whole:
            return self.item
        parts: dict[str, Any] = {}
        for (kind, _), kept in sorted(self.texts.items(), key=lambda entry: entry[0][1]):
            text = str(kept)
            if kind == "arguments":
                parts["arguments"] = text
            else:
                part = {"type": kind, "refusal" if kind == "refusal" else "text": text}
                parts.setdefault(_PLACES[kind], []).append(part)
        return {**self.item, **parts}


class PartialOutput(Noted):
    """The output as far as it has arrived."""

    place = "/output"

    def __init__(self, kept: Kept) -> None:
        super().__init__(kept)
        self.has_halves = False
        """Whether halves of surrogate pairs may be among the pieces."""
        self._items: list[_PartialItem] = []
        self._by_key: dict[Any, _PartialItem] = {}
        self._by_item: dict[Any, _PartialItem] = {}
        self._has_words = False
        self._halves = HeldHalves()
        self._last_thought: Any = None
        self._shown_text = KeptText(kept)

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def text(self) -> str:
        """The text shown so far."""
        return mend_surrogates(str(self._shown_text))

    @property
    def calls_count(self) -> int:
        """How many calls have begun."""
        return sum(partial.item.get("type") == "function_call" for partial in self._items)

    @property
    def arguments(self) -> list[str]:
        """The arguments of the calls as they were streamed."""
        items = (partial.render() for partial in self._items)
        return [item.get("arguments", "") for item in items if item.get("type") == "function_call"]

    @property
    def is_whole(self) -> bool:
        """Whether every item was also sent whole."""
        return all(partial.is_whole for partial in self._items)

    def begin(self, key: Any, item: dict[str, Any], shown: list[StreamDelta]) -> None:
        """Take an item that has just begun; what it brings along are its first pieces."""
        partial = None if key is None else self._by_item.get(_identity(key, item))
        if partial is not None:  # begun once more: only what comes from now on counts
            partial.texts = {}
            self._note_index()
        else:
            partial = self._by_key.get(key)
            if key is None or partial is None or partial.is_begun:
                partial = self._open(key, item.get("type"))
        partial.is_begun = True
        self._kept.add_value(item)
        self._by_item[_identity(key, item)] = partial
        empty: dict[str, Any] = {place: [] for place in _PLACES.values() if place in item}
        partial.item = {**partial.item, **item, **empty}
        for kind, index, text in _texts(item):
            self._add(partial, (kind, index), text, shown)

    def add(self, key: Any, kind: str, index: int, piece: str, shown: list[StreamDelta]) -> None:
        """Take the next piece of a part."""
        self._add(self._find(key, _ITEM_TYPES[kind]), (kind, index), piece, shown)

    def settle(self, key: Any, kind: str, index: int, text: str, shown: list[StreamDelta]) -> None:
        """Take a part that is said once more as a whole, which wins over its pieces."""
        self._settle(self._find(key, _ITEM_TYPES[kind]), (kind, index), text, shown)

    def finish(self, key: Any, item: dict[str, Any], shown: list[StreamDelta]) -> None:
        """Take an item that is said once more as a whole, which wins over its pieces."""
        identity = _identity(key, item)
        partial = self._by_item.get(identity) or self._find(key, item.get("type"))
        if partial.is_whole and identity not in self._by_item:
            partial = self._open(key, item.get("type"))
        self._by_item[identity] = partial
        said = list(_texts(item))
        for kind in dict.fromkeys(kind for kind, _, _ in said):
            texts = [(index, text) for of, index, text in said if of == kind]
            streamed = sorted(index for of, index in partial.texts if of == kind)
            if len(streamed) != len(texts):
                streamed = [index for index, _ in texts]
            for index, (_, text) in zip(streamed, texts, strict=True):  # numbered in their own way
                self._settle(partial, (kind, index), text, shown)
        self._kept.add_value(item)
        partial.item = {**partial.item, **item}
        partial.is_begun = partial.is_whole = True

    def flush(self, shown: list[StreamDelta]) -> None:
        """Show what was held back, now that its other half cannot come any more."""
        if "text" in self._halves.flush(shown):
            self._shown_text.append("\ufffd")

    def catch_up(self, text: str, shown: list[StreamDelta], *, is_refusal: bool = False) -> None:
        """Show what the whole text has beyond what was shown."""
        so_far = self.text
        if len(text) > len(so_far) and text.startswith(so_far):
            shown.append(StreamDelta("text", text[len(so_far) :], is_refusal=is_refusal))

    def render(self) -> list[dict[str, Any]]:
        """Return the items as a whole reply would carry them."""
        partials = self._items
        if all(isinstance(partial.key, int) for partial in partials):
            partials = sorted(partials, key=lambda partial: partial.key)
        return [partial.render() for partial in partials]

    def _find(self, key: Any, item_type: Any) -> _PartialItem:
        """Return the partial of an item; without a usable key, that of the last one."""
        if key is None:
            self._note_index()
            key = self._items[-1].key if self._items else None
        return self._by_key.get(key) or self._open(key, item_type)

    def _open(self, key: Any, item_type: Any) -> _PartialItem:
        """Begin a partial; an item under a key that is taken is one more, not the same."""
        if key is None or key in self._by_key:
            self._note_index()
        self._kept.add_part(key)
        partial = _PartialItem(key, item_type)
        self._items.append(partial)
        self._by_key[key] = partial
        return partial

    def _add(
        self, partial: _PartialItem, place: _Place, text: str, shown: list[StreamDelta]
    ) -> None:
        self._text(partial, place).append(text)
        self._show(partial, place, text, shown)

    def _settle(
        self, partial: _PartialItem, place: _Place, text: str, shown: list[StreamDelta]
    ) -> None:
        so_far = str(partial.texts.get(place, ""))
        if place in partial.texts:
            if text == so_far:
                return
            partial.texts[place] = KeptText(self._kept)
        self._text(partial, place).append(text)
        if so_far:
            what = _WHAT.get(place[0], "reasoning")
            self._defects[f"{Code.DELTAS_DIFFER} {what}"] = deltas_differ(what)
        if text.startswith(so_far):
            self._show(partial, place, text[len(so_far) :], shown)

    def _text(self, partial: _PartialItem, place: _Place) -> KeptText:
        text = partial.texts.get(place)
        if text is None:
            self._kept.add_part()
            text = partial.texts[place] = KeptText(self._kept)
        return text

    def _note_index(self) -> None:
        note = "The events do not say clearly which items they are about."
        self._note(Code.INDEX_NOT_USABLE, note)

    def _show(
        self, partial: _PartialItem, place: _Place, text: str, shown: list[StreamDelta]
    ) -> None:
        part_kind = place[0]
        if part_kind == "arguments" or not text or (part_kind == "refusal" and self._has_words):
            return
        self._has_words = self._has_words or part_kind == "output_text"
        kind: _Kind = "text" if part_kind in {"output_text", "refusal"} else "reasoning"
        if kind == "reasoning":
            if self._last_thought not in {None, (partial, place)}:
                shown.append(StreamDelta(kind, REASONING_BREAK))
            self._last_thought = (partial, place)
        text = self._halves.show(kind, text, shown, is_refusal=part_kind == "refusal")
        if kind == "text":
            self._shown_text.append(text)


def _texts(item: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """Yield the texts that an item carries: kind, number of the part, words."""
    for field in ("summary", "content"):
        for index, part in enumerate(as_list(item.get(field))):
            fields = as_fields(part)
            kind = fields.get("type")
            text = fields.get("refusal" if kind == "refusal" else "text")
            if isinstance(kind, str) and _PLACES.get(kind) == field and isinstance(text, str):
                yield kind, index, text
    arguments = item.get("arguments")
    if item.get("type") == "function_call" and isinstance(arguments, str):
        yield "arguments", 0, arguments


def _identity(key: Any, item: dict[str, Any]) -> tuple[Any, str]:
    """Return what tells an item from others under the same key, which should be unique."""
    name = item.get("call_id") or item.get("id")
    return key, name if isinstance(name, str) else ""
