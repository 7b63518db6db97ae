"""Trials made by hand, with only what a test says about them."""

from itertools import count
from typing import Any

from surecall.evals.records import CallFact, Cell, Reason, TrialRow

__all__ = ["call", "cell", "row", "series"]

_AXES = frozenset({"model", "profile", "strategy", "fallback", "suite", "scenario"})


def cell(**axes: str) -> Cell:
    """Return a cell; what is not named is the same everywhere."""
    return Cell(**{"model": "m", "scenario": "s", **axes})


def call(**facts: Any) -> CallFact:
    """Return a clean call that ran, but for what is named."""
    usual: dict[str, Any] = {
        "turn": 1,
        "name": "state_patch",
        "format": "tool_calls",
        "structured": True,
        "state": "whole",
        "valid_before": True,
        "valid_after": True,
        "changed": False,
        "executed": True,
        "ok": True,
    }
    return CallFact(**(usual | facts))


def row(ok: bool = True, reason: str | None = None, **facts: Any) -> TrialRow:
    """Return a trial with both verdicts the same, in a cell made of the axes that are named."""
    axes = {name: facts.pop(name) for name in list(facts) if name in _AXES}
    reasons = () if ok else (Reason(reason or "DRAFT_WRONG", "draft is not as asked"),)
    usual: dict[str, Any] = {
        "index": 0,
        "cell": cell(**axes),
        "original_ok": ok,
        "strict_ok": ok,
        "original_reasons": reasons,
        "strict_reasons": reasons,
        "outcome": "called",
    }
    return TrialRow(**(usual | facts))


def series(verdicts: str, start: int = 0, **facts: Any) -> list[TrialRow]:
    """Return trials 1, 2, 3 ... of one case: `+` is right, `-` is wrong, a space is missing."""
    numbers = count(start)
    return [
        row(mark == "+", index=next(numbers), trial=trial, **facts)
        for trial, mark in enumerate(verdicts, 1)
        if mark != " "
    ]
