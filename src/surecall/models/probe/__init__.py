"""Asking a provider what it really does, and keeping the answers for a time."""

from .asker import Question
from .facts import FactKey, FactStore, ProbedFact
from .findings import Finding, ProbeNote, ProbeReport, date_text
from .questions import fetch_listing
from .runner import (
    DEFAULT_MAX_REQUESTS,
    ESSENTIAL,
    ON_REQUEST,
    QUESTIONS,
    STRUCTURED,
    ensure_probed,
    probe_model,
    select_questions,
    total_cost,
)

__all__ = [
    "DEFAULT_MAX_REQUESTS",
    "ESSENTIAL",
    "ON_REQUEST",
    "QUESTIONS",
    "STRUCTURED",
    "FactKey",
    "FactStore",
    "Finding",
    "ProbeNote",
    "ProbeReport",
    "ProbedFact",
    "Question",
    "date_text",
    "ensure_probed",
    "fetch_listing",
    "probe_model",
    "select_questions",
    "total_cost",
]
