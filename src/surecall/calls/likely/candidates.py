"""Texts that may be calls: a tool's name with arguments, in Python, JSON or XML, wherever it is."""

from typing import Final, NamedTuple

from surecall.calls.fitting import has_placeholder
from surecall.calls.names import ToolNames

from .layout import Span
from .loose_python import MAX_CALL_CHARS
from .naming import MAX_CANDIDATES, MAX_NAMES, Budget, Candidate, find_names
from .written_json import find_json_calls
from .written_python import find_python_calls
from .written_tags import find_lines, find_pairs, find_tags

_LOOKS_PER_CHARACTER: Final = 2
_MAX_QUESTIONS_IN_VAIN: Final = 20_000
"""About elements that are named like a tool."""


class Candidates(NamedTuple):
    """What may be calls, in the order of the text, and whether there was more than is looked at."""

    found: list[Candidate]
    known: list[Span]
    """Where those with arguments stand, also if their values are placeholders."""
    is_over_limit: bool


def find_candidates(text: str, tools: ToolNames) -> Candidates:
    """Return what may be calls; none lies inside another."""
    names = find_names(text, tools)
    if not names:
        return Candidates([], [], is_over_limit=False)
    budget = Budget(_LOOKS_PER_CHARACTER * len(text) + MAX_CALL_CHARS)
    questions = Budget(_MAX_QUESTIONS_IN_VAIN)
    every = [
        *(find_json_calls(text, tools, names) if "{" in text or "[" in text else ()),
        *(find_tags(text, tools, questions) if "<" in text else ()),
        *(find_pairs(text, tools, names) if "<arg_key>" in text else ()),
        *find_lines(text, tools, names),
        *find_python_calls(text, tools, names, budget),
    ]
    every.sort(key=lambda candidate: (candidate.start, -candidate.end))
    apart: list[Candidate] = []
    calls = 0
    for candidate in every:
        if apart and candidate.start < apart[-1].end:
            continue
        calls += len(candidate.calls)
        if calls > MAX_CANDIDATES:
            break
        apart.append(candidate)
    found = [it for it in apart if not any(has_placeholder(call.arguments) for call in it.calls)]
    is_spent = budget.is_spent or questions.is_spent
    is_over_limit = calls >= MAX_CANDIDATES or len(names) == MAX_NAMES or is_spent
    known = [Span(it.start, it.end) for it in apart if any(call.arguments for call in it.calls)]
    return Candidates(found, known, is_over_limit)
