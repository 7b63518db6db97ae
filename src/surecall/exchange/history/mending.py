"""What mending a conversation means in every wire format: ids that differ, arguments, receipts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import JSONTextError
from surecall.base.records import Receipt, clip
from surecall.reading import read_arguments
from surecall.text import decode, decode_plain, encode_text
from surecall.wire.substitutes import stand_in_arguments

ADD_RESULT: Final = "add_missing_result"
MOVE_RESULT: Final = "move_result"
RENAME_ID: Final = "rename_repeated_id"
TELL_RESULT: Final = "tell_lost_result"
WRITE_ARGUMENTS: Final = "rewrite_history_arguments"
MENDING_RULES: Final = (ADD_RESULT, MOVE_RESULT, RENAME_ID, TELL_RESULT, WRITE_ARGUMENTS)
"""What is done to conversations."""

Item = dict[str, Any]


class Call(Struct, eq=False):
    """A call that waits for its result; two of them are never the same."""

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
