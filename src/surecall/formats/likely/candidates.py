"""Texts that may be calls: a tool's name with arguments, in Python, JSON or XML, wherever it is."""

from typing import NamedTuple

from surecall.formats.fitting import has_placeholder
from surecall.formats.names import ToolNames

from .naming import MAX_CANDIDATES, MAX_NAMES, Candidate, find_names
from .written_json import find_json_calls
from .written_python import find_python_calls
from .written_tags import find_lines, find_tags


class Candidates(NamedTuple):
    """What may be calls, in the order of the text, and whether there was more than is looked at."""

    found: list[Candidate]
    is_over_limit: bool


def find_candidates(text: str, tools: ToolNames) -> Candidates:
    """Return what may be calls; none lies inside another."""
    names = find_names(text, tools)
    if not names:
        return Candidates([], is_over_limit=False)
    every = [
        *(find_json_calls(text, tools, names) if "{" in text or "[" in text else ()),
        *(find_tags(text, tools) if "<" in text else ()),
        *find_lines(text, tools, names),
        *find_python_calls(text, tools, names),
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
    return Candidates(found, calls >= MAX_CANDIDATES or len(names) == MAX_NAMES)
