"""Rows of tables about text formats: a text, and what it must be read as."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surecall.calls.formats import CallFormat

from .read_text import check_splits

__all__ = ["FormatCase", "check_accepted", "check_cut", "check_refused"]


@dataclass(frozen=True)
class FormatCase:
    """A text, and what it must be read as."""

    id: str
    text: str
    calls: tuple[tuple[str, Any], ...]
    rules: tuple[str, ...] = ()
    """The rules of all receipts, in order."""
    content: str = ""


def check_accepted(case: FormatCase, formats: Sequence[CallFormat]) -> None:
    """Read a text in every split; its calls must be whole and noted as the case says."""
    found = check_splits(case.text, formats)
    assert [(call.name, call.arguments) for call in found.calls] == list(case.calls)
    assert {call.state for call in found.calls} == {"whole"}
    assert found.content == case.content
    rules = tuple(receipt.rule for call in found.calls for receipt in call.receipts)
    assert rules == case.rules


def check_refused(text: str, formats: Sequence[CallFormat]) -> None:
    """Read a text in every split; nothing in it may be a call, and all of it is shown."""
    found = check_splits(text, formats)
    assert found.calls == []
    assert found.content == text


def check_cut(text: str, name: str, formats: Sequence[CallFormat]) -> None:
    """Read a text in every split; it must end in a call that is cut, and show nothing."""
    found = check_splits(text, formats)
    assert [(call.name, call.state) for call in found.calls] == [(name, "cut")]
    assert found.content == ""
