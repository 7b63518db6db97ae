"""What a final text says: done or not, which numbers, a question, a claim, a notice of ours."""

from .claims import affirms, denies, is_done, is_false_claim, list_claims
from .leaks import repeats_notice, shows_call
from .numbers import list_numbers, states_number
from .questions import asks_for_meaning
from .sentences import is_negated, list_sentences, says_nothing

__all__ = [
    "affirms",
    "asks_for_meaning",
    "denies",
    "is_done",
    "is_false_claim",
    "is_negated",
    "list_claims",
    "list_numbers",
    "list_sentences",
    "repeats_notice",
    "says_nothing",
    "shows_call",
    "states_number",
]
