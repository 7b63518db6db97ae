"""Every question that can be put to a provider, with what it decides and what it costs."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from surecall.errors import Code, ConfigError, did_you_mean

from .ask_replies import (
    STABILITY_TEXTS,
    ask_grammar,
    ask_json_object,
    ask_json_schema,
    ask_json_stability,
    ask_midturn_system,
    ask_reasoning_echo,
    ask_streaming,
)
from .ask_tools import (
    ask_call_ids,
    ask_empty_arguments,
    ask_id_pattern,
    ask_parallel_calls,
    ask_parallel_false,
    ask_strict_tools,
    ask_tool_choice,
    ask_tools,
    ask_tools_seen,
)
from .asker import Asker
from .findings import Finding
from .listing import ask_context_window

__all__ = ["ESSENTIAL", "QUESTIONS", "Question", "select_questions", "total_cost"]

_TOKENS_PER_REQUEST: Final = 250
"""A short question with one small tool, and a short answer; a model that thinks takes more."""


class Question(NamedTuple):
    """One thing to find out about a model at a provider."""

    name: str
    title: str
    decides: tuple[str, ...]
    """The capabilities it decides."""
    max_requests: int
    """At most, when no answer can be shared with another question."""
    ask: Callable[[Asker], Awaitable[Finding]]
    tokens: int = _TOKENS_PER_REQUEST
    """About how many a request takes."""

    @property
    def rough_tokens(self) -> int:
        """About how many tokens it takes at most."""
        return self.max_requests * self.tokens


QUESTIONS: Final = (
    Question(
        "tools",
        "Does it call a tool, and in which form?",
        ("supports_tool_use", "text_formats"),
        2,
        ask_tools,
    ),
    Question(
        "tools_seen",
        "Does the model get to see the tools, or does the server drop them?",
        ("supports_tool_use",),
        2,
        ask_tools_seen,
    ),
    Question(
        "tool_choice",
        "Which kinds of tool_choice hold against a question that asks for the contrary?",
        ("tool_choices",),
        4,
        ask_tool_choice,
    ),
    Question(
        "parallel_calls",
        "Do several calls come at once when they are asked for?",
        ("supports_parallel_tools",),
        1,
        ask_parallel_calls,
    ),
    Question(
        "parallel_false",
        "Does parallel_tool_calls=false give one call?",
        ("honours_parallel_false",),
        2,
        ask_parallel_false,
    ),
    Question(
        "streaming",
        "Can replies be streamed, and does a stream carry what a whole reply does?",
        ("streaming", "stream_equals_whole"),
        4,
        ask_streaming,
    ),
    Question(
        "call_ids",
        "Does every call get an id of its own?",
        ("unique_call_ids",),
        2,
        ask_call_ids,
    ),
    Question(
        "id_pattern",
        "Are ids of any shape taken back?",
        ("tool_id_pattern",),
        3,
        ask_id_pattern,
    ),
    Question(
        "empty_arguments",
        "Is a call without arguments written as an empty object?",
        ("empty_arguments",),
        1,
        ask_empty_arguments,
    ),
    Question(
        "strict_tools",
        "Does strict hold arguments to their schema?",
        ("strict_tools",),
        2,
        ask_strict_tools,
    ),
    Question(
        "json_object",
        "Does response_format json_object hold?",
        ("json_object",),
        1,
        ask_json_object,
    ),
    Question(
        "json_schema",
        "Does response_format json_schema hold against a question that breaks it?",
        ("json_schema",),
        1,
        ask_json_schema,
    ),
    Question("grammar", "Does a llama.cpp grammar hold?", ("grammar",), 1, ask_grammar),
    Question(
        "midturn_system",
        "May a system message stand in the middle of a conversation?",
        ("allows_midturn_system",),
        2,
        ask_midturn_system,
    ),
    Question(
        "reasoning_echo",
        "Must the reasoning of a turn with calls be sent back?",
        ("needs_reasoning_echo",),
        3,
        ask_reasoning_echo,
    ),
    Question(
        "json_stability",
        "Is JSON that is written as plain text whole every time?",
        ("json_stability",),
        len(STABILITY_TEXTS),
        ask_json_stability,
    ),
    Question(
        "context_window",
        "Does the provider's list tell the size of the context window?",
        ("context_window_tokens",),
        1,
        ask_context_window,
        tokens=0,
    ),
)
"""In the order in which they are asked; where two decide the same, the later one wins."""

ESSENTIAL: Final = tuple(item for item in QUESTIONS if item.name in {"tools", "tools_seen"})
"""What a run has to know before it can send tools: three requests at most."""


def select_questions(names: Iterable[str]) -> tuple[Question, ...]:
    """Return the questions of these names, in the order in which they are asked."""
    wanted = set(names)
    known = {question.name for question in QUESTIONS}
    for name in sorted(wanted - known):
        raise ConfigError(
            Code.UNKNOWN_QUESTION,
            f"there is no question {name!r} to ask a provider.",
            hint=did_you_mean(name, known),
        )
    return tuple(question for question in QUESTIONS if question.name in wanted)


def total_cost(questions: Iterable[Question]) -> tuple[int, int]:
    """Return how many requests these take at most, and about how many tokens.

    One request more is counted: a plain one, to tell a refusal of one thing from a refusal of
    everything.
    """
    chosen = tuple(questions)
    requests = sum(question.max_requests for question in chosen) + 1
    return requests, sum(question.rough_tokens for question in chosen) + _TOKENS_PER_REQUEST
