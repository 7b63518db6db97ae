"""Trials as columns: every text once, every trial a few numbers.

The page reads this with `assets/data.js`; the two change together.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import astuple

from surecall.base.records import clip
from surecall.evals.records import CallFact, Cell, Parts, Reason, TrialRow
from surecall.evals.taxonomy import Failure, classify
from surecall.text import mend_surrogates

_MAX_TEXT_CHARS: Final = 200
"""Longer texts are whole in the bodies only."""
_NONE: Final = -1

_TRIAL_FLAGS: Final = (
    "simulated",
    "control",
    "original_ok",
    "strict_ok",
    "cut_by_limit",
    "censored",
)
_CALL_FLAGS: Final = (
    "structured",
    "valid_before",
    "valid_after",
    "changed",
    "executed",
    "ok",
    "lossy",
)


class Columns:
    """Takes trials one after the other and gives them back as columns."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._cells: dict[Cell, int] = {}
        self._failures: dict[Failure, int] = {}
        # The page counts by the first of these, which are there even without any trial.
        self._trials: defaultdict[str, list[Any]] = defaultdict(list, index=[])
        self._calls: defaultdict[str, list[Any]] = defaultdict(list, place=[])

    def add(self, row: TrialRow) -> None:
        """Take one trial."""
        place = len(self._trials["index"])
        for name, value in self._trial_values(row).items():
            self._trials[name].append(value)
        for call in row.calls:
            for name, value in self._call_values(place, call).items():
                self._calls[name].append(value)

    def data(self) -> dict[str, Any]:
        """Return everything that was taken, as plain data."""
        cells = [self._list(astuple(cell)) for cell in self._cells]
        failures = [self._list(astuple(failure)) for failure in self._failures]
        return {
            "texts": list(self._texts),
            "cells": cells,
            "failures": failures,
            "trials": self._trials,
            "calls": self._calls,
        }

    def _trial_values(self, row: TrialRow) -> dict[str, Any]:
        return {
            "index": row.index,
            "cell": self._cells.setdefault(row.cell, len(self._cells)),
            "case": self._text(row.case),
            "trial": row.trial,
            "seed": str(row.seed),  # may be larger than a number of JavaScript
            "flags": _bits(row, _TRIAL_FLAGS),
            "outcome": self._text(row.outcome),
            "failure": self._failure(classify(row)),
            "code": self._text(row.code),
            "category": self._text(row.category),
            "error": self._text(row.error),
            "status": row.error_status,
            "original_reasons": self._reasons(row.original_reasons),
            "strict_reasons": self._reasons(row.strict_reasons),
            "parts": self._parts(row.parts),
            "elapsed_ms": round(row.elapsed_ms, 1),
            "turns": row.turns,
            "requests": row.requests,
            "input_tokens": row.usage.input_tokens,
            "output_tokens": row.usage.output_tokens,
            "cost_usd": row.cost_usd,
            "rules": self._list(row.rules),
            "saved_by": self._list(row.saved_by),
            "fabrications": row.fabrications,
            "escalations": row.escalations,
            "text": self._text(row.text),
        }

    def _call_values(self, place: int, call: CallFact) -> dict[str, Any]:
        return {
            "place": place,
            "turn": call.turn,
            "name": self._text(call.name),
            "format": self._text(call.format),
            "state": self._text(call.state),
            "flags": _bits(call, _CALL_FLAGS),
            "exact": _NONE if call.exact is None else int(call.exact),
            "rules": self._list(call.rules),
            "error_codes": self._list(call.error_codes),
            "error_kinds": self._list(call.error_kinds),
            "arguments_bytes": call.arguments_bytes,
        }

    def _reasons(self, reasons: tuple[Reason, ...]) -> list[int]:
        """Return code and message of each reason, one after the other."""
        return self._list(part for one in reasons for part in (one.code, one.message))

    def _parts(self, parts: Parts | None) -> list[list[int] | None] | None:
        """Return the reasons of state, process and answer; None for what was not judged."""
        if parts is None:
            return None
        verdicts = (parts.state, parts.process, parts.answer)
        return [None if found is None else self._reasons(found.reasons) for found in verdicts]

    def _failure(self, failure: Failure | None) -> int:
        return _NONE if failure is None else self._failures.setdefault(failure, len(self._failures))

    def _list(self, texts: Iterable[str]) -> list[int]:
        return [self._text(text) for text in texts]

    def _text(self, text: str | None) -> int:
        if text is None:
            return _NONE
        return self._texts.setdefault(
            clip(mend_surrogates(text), _MAX_TEXT_CHARS), len(self._texts)
        )


def _bits(record: TrialRow | CallFact, names: tuple[str, ...]) -> int:
    return sum(bool(getattr(record, name)) << place for place, name in enumerate(names))
