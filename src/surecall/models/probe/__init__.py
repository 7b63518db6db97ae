"""Asking a provider what it really does, and keeping the answers for a time."""

from .asker import Asker, Listing, Question
from .facts import DEFAULT_MAX_AGE_S, FactKey, FactStore, ProbedFact
from .findings import Cost, Finding, ProbeNote, ProbeReport, Verdict, date_text
from .questions import fetch_listing
from .runner import (
    DEFAULT_MAX_REQUESTS,
    ESSENTIAL,
    ON_REQUEST,
    QUESTIONS,
    STRUCTURED,
    Flights,
    Patience,
    ensure_probed,
    probe_model,
    select_questions,
    total_cost,
)

__all__ = [
    "DEFAULT_MAX_AGE_S",
    "DEFAULT_MAX_REQUESTS",
    "ESSENTIAL",
    "ON_REQUEST",
    "QUESTIONS",
    "STRUCTURED",
    "Asker",
    "Cost",
    "FactKey",
    "FactStore",
    "Finding",
    "Flights",
    "Listing",
    "Patience",
    "ProbeNote",
    "ProbeReport",
    "ProbedFact",
    "Question",
    "Verdict",
    "date_text",
    "ensure_probed",
    "fetch_listing",
    "probe_model",
    "select_questions",
    "total_cost",
]
