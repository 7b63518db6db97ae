"""What a final text says: done or not, which numbers, a question, a claim, a notice of ours."""

from .amounts import list_sums, states_amount, states_number
from .claims import (
    affirms,
    claims_work,
    denies,
    gives_word,
    is_done,
    is_false_claim,
    is_only_done,
    list_claims,
    reports,
    says_done,
)
from .leaks import repeats_notice, shows_call
from .moods import is_doubted, is_negated
from .numbers import list_numbers
from .questions import asks_for_meaning
from .sentences import is_question, list_clauses, list_sentences, list_words, says_nothing

__all__ = [
    "affirms",
    "asks_for_meaning",
    "claims_work",
    "denies",
    "gives_word",
    "is_done",
    "is_doubted",
    "is_false_claim",
    "is_negated",
    "is_only_done",
    "is_question",
    "list_claims",
    "list_clauses",
    "list_numbers",
    "list_sentences",
    "list_sums",
    "list_words",
    "repeats_notice",
    "reports",
    "says_done",
    "says_nothing",
    "shows_call",
    "states_amount",
    "states_number",
]
