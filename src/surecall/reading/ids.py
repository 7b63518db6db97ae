"""Ids and names of calls: every call gets an id that is unique, the same for the same input."""

from collections.abc import Collection
from typing import Any, Final

from surecall.errors import Code
from surecall.records import Defect, RawCall, Receipt, clip

__all__ = ["CallIds", "read_name"]

_MAX_ID_BITS: Final = 128
_WITH_IDS: Final = frozenset({"tool_calls", "function_call"})


class CallIds:
    """Gives the calls of one reply their ids."""

    __slots__ = ("_suffixes", "_used")

    def __init__(self, used_ids: Collection[str] = ()) -> None:
        self._used = set(used_ids)
        self._suffixes: dict[str, int] = {}

    def read(
        self, call: RawCall, position: int, receipts: list[Receipt], defects: list[Defect]
    ) -> str:
        """Return the id of the call at a position; a change leaves a receipt."""
        said = _said(call.id)
        wanted = said or f"tc_{position + 1}"
        given = wanted if wanted not in self._used else self._renamed(wanted)
        self._used.add(given)
        if given == call.id:
            return given
        place = f"/tool_calls/{position}/id"
        before = clip(call.id) if isinstance(call.id, str) else said
        if not said:
            why = "The call came without a usable id."
            if call.format in _WITH_IDS:  # others carry none: there is nothing that was changed
                receipts.append(Receipt("assign_call_id", place, before or None, given, why=why))
            if call.format == "tool_calls":
                defects.append(Defect(Code.ID_NOT_USABLE, why, place))
        elif given != said:
            why = "The id is taken by another call."
            receipts.append(Receipt("rename_repeated_id", place, before, given, why=why))
            defects.append(Defect(Code.ID_REPEATED, why, place))
        else:
            why = "The id was not plain text."
            receipts.append(Receipt("clean_call_id", place, before, given, why=why))
        return given

    def _renamed(self, wanted: str) -> str:
        number = self._suffixes.get(wanted, 1)
        while True:
            number += 1
            candidate = f"{wanted}__{number}"
            if candidate not in self._used:
                self._suffixes[wanted] = number
                return candidate


def read_name(call: RawCall, position: int, receipts: list[Receipt], defects: list[Defect]) -> str:
    """Return the name of the tool, without the space around it; empty when it is not usable."""
    name = call.name.strip() if isinstance(call.name, str) else ""
    if name and name == call.name:
        return name
    place = f"/tool_calls/{position}/name"
    if not name:
        why = "The call names no tool."
        defects.append(Defect(Code.NAME_NOT_USABLE, why, place))
    if isinstance(call.name, str) and call.name != name:
        receipts.append(Receipt("strip_name", place, clip(call.name), clip(name)))
    return name


def _said(value: Any) -> str:
    """Return what was sent as an id, as text; empty when it is none."""
    if isinstance(value, str):
        return value.strip()
    if type(value) is int and value.bit_length() <= _MAX_ID_BITS:
        return str(value)
    return ""
