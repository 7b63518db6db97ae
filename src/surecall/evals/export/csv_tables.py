"""`trials.csv` and `calls.csv`: a row for each trial, and one for each call."""

import csv
import io
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from surecall.evals.store import RunStore
from surecall.jsontext import encode_text

from .columns import CALL_COLUMNS, TRIAL_COLUMNS, Column, list_calls
from .files import write_export
from .source import RunSource

__all__ = ["disarm_text", "write_csv"]

_SIGNS: Final = frozenset("=+-@")
_PASSED_OVER: Final = frozenset("\"'`,;:|\N{REPLACEMENT CHARACTER}\u115f\u1160\u2800\u3164\uffa0")
"""Quotes, separators and letters that are blank: what may be dropped on the way to a formula."""
_PASSED_OVER_KINDS: Final = ("C", "M", "Z", "Pi", "Pf")
"""The same for whole kinds: controls and formats, marks on other characters, blanks, quotes."""


def write_csv(store: RunStore, run_id: str, out: Path) -> tuple[Path, ...]:
    """Write both tables into a folder.

    A text that a spreadsheet could run as a formula gets an apostrophe in front.
    """
    source = RunSource(store, run_id)
    trials, calls = out / "trials.csv", out / "calls.csv"
    with write_export(trials) as trials_file, write_export(calls) as calls_file:
        trial_table = _Table(trials_file, run_id, TRIAL_COLUMNS)
        call_table = _Table(calls_file, run_id, CALL_COLUMNS)
        for row in source.rows():
            trial_table.add(row)
            for place in list_calls(row):
                call_table.add(place)
    return trials, calls


class _Table:
    """A table that is written row by row."""

    def __init__(self, file: BinaryIO, run_id: str, columns: Sequence[Column]) -> None:
        self._file = file
        self._run_id = run_id
        self._columns = columns
        self._buffer = io.StringIO(newline="")
        # Line ends as RFC 4180 has them; then the writer quotes text with either kind in it.
        self._writer = csv.writer(self._buffer, lineterminator="\r\n")
        self._write(["run", *(column.name for column in columns)])

    def add(self, record: Any) -> None:
        """Add a row."""
        self._write([self._run_id, *(_cell(column, record) for column in self._columns)])

    def _write(self, cells: Sequence[str]) -> None:
        self._writer.writerow(cells)
        self._file.write(self._buffer.getvalue().encode("utf-8"))
        self._buffer.seek(0)
        self._buffer.truncate()


def _cell(column: Column, record: Any) -> str:
    value = column.value(record)
    if value is None:
        return ""
    if column.type == "boolean":
        return "true" if value else "false"
    if column.type == "list":
        return encode_text(value)
    if column.type != "text":
        return str(value)
    # Many readers take a NUL for the end of the text.
    text = str(value).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return disarm_text(text)


def disarm_text(text: str) -> str:
    """Return a text that no spreadsheet runs: with an apostrophe in front, if need be."""
    return f"'{text}" if _may_be_formula(text) else text


def _may_be_formula(text: str) -> bool:
    """Tell whether a sign that begins a formula is the first thing to be seen, or a tab is."""
    if text.startswith(("\t", "\r")):
        return True
    for char in text:
        if unicodedata.normalize("NFKC", char)[:1] in _SIGNS:
            return True
        kind = unicodedata.category(char)
        if char not in _PASSED_OVER and not kind.startswith(_PASSED_OVER_KINDS):
            return False
    return False
