"""Probing a provider finds the truth about it: every capability both ways, over real HTTP."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from support.capability_upstream import CapabilityUpstream, Truth
from surecall.models.probe import (
    ON_REQUEST,
    QUESTIONS,
    Finding,
    ProbeReport,
    fetch_listing,
    probe_model,
    select_questions,
    total_cost,
)
from surecall.models.profiles import Capabilities
from surecall.models.transport import HttpTransport, RetryPolicy
from surecall.wire import ChatCompletions


async def probe(upstream: CapabilityUpstream, *names: str, **settings: Any) -> ProbeReport:
    """Put these questions to the upstream."""
    protocol = ChatCompletions()

    async def listing() -> Any:
        return await fetch_listing(upstream.url, protocol)

    async with HttpTransport(upstream.url, retry=RetryPolicy(max_retries=0)) as transport:
        return await probe_model(
            transport,
            protocol,
            "m",
            questions=select_questions(names) if names else None,
            listing=listing,
            **settings,
        )


async def find(truth: Truth, *names: str) -> Finding:
    """Return the last finding about a provider that does what the truth says."""
    async with CapabilityUpstream(truth) as upstream:
        report = await probe(upstream, *names)
    return report.findings[-1]


@dataclass(frozen=True)
class Case:
    id: str
    question: str
    truth: Truth
    verdict: str
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    evidence: str = ""


NINE = r"[a-zA-Z0-9]{9}"
WORD = r"[a-zA-Z0-9_-]+"

CASES = (
    Case("tools", "tools", Truth(), "yes", {"supports_tool_use": True}, "structured call"),
    Case(
        "tools-as-text",
        "tools",
        Truth(tools="text"),
        "yes",
        {"supports_tool_use": True, "text_formats": True},
        "in the format ",
    ),
    Case(
        "tools-refused",
        "tools",
        Truth(tools="refused"),
        "no",
        {"supports_tool_use": False},
        "400: 'tools are not supported'",
    ),
    Case(
        "tools-no-endpoint",
        "tools",
        Truth(tools="no_endpoint"),
        "no",
        {"supports_tool_use": False},
        "No endpoints found",
    ),
    Case(
        "tools-unused",
        "tools",
        Truth(tools="unused"),
        "no",
        {"supports_tool_use": False},
        "words came instead: 'Very well.'",
    ),
    Case("tools-cut", "tools", Truth(finish="length"), "inconclusive", {}, "token limit"),
    Case("tools-words-cut", "tools", Truth(tools="unused", finish="length"), "inconclusive"),
    Case("tools-blank", "tools", Truth(blank=True), "inconclusive", {}, "empty"),
    Case(
        "tools-newer-settings",
        "tools",
        Truth(newer_settings=True),
        "yes",
        {"supports_tool_use": True},
    ),
    Case(
        "seen",
        "tools_seen",
        Truth(),
        "yes",
        {"supports_tool_use": True},
        "only in its definition",
    ),
    Case("seen-unused", "tools_seen", Truth(tools="unused"), "yes", {}, "tokens in the prompt"),
    Case(
        "seen-dropped",
        "tools_seen",
        Truth(tools="dropped"),
        "no",
        {"supports_tool_use": False},
        "drops tools silently",
    ),
    Case(
        "seen-not-counted",
        "tools_seen",
        Truth(tools="dropped", counts_tokens=False),
        "inconclusive",
    ),
    Case(
        "choice-all",
        "tool_choice",
        Truth(),
        "yes",
        {"tool_choices": ("auto", "none", "required", "named")},
    ),
    Case(
        "choice-no-none",
        "tool_choice",
        Truth(choices=frozenset({"required", "named"})),
        "yes",
        {"tool_choices": ("auto", "required", "named")},
    ),
    Case(
        "choice-no-required",
        "tool_choice",
        Truth(choices=frozenset({"none", "named"})),
        "yes",
        {"tool_choices": ("auto", "none", "named")},
    ),
    Case(
        "choice-no-named",
        "tool_choice",
        Truth(choices=frozenset({"none", "required"})),
        "yes",
        {"tool_choices": ("auto", "none", "required")},
    ),
    Case(
        "choice-refused",
        "tool_choice",
        Truth(refused_choices=frozenset({"none", "required", "named"})),
        "no",
        {"tool_choices": ("auto",)},
        "this tool_choice is not supported",
    ),
    Case(
        "choice-without-calls",
        "tool_choice",
        Truth(tools="unused"),
        "no",
        {"tool_choices": ("auto",)},
        "no call comes without it either",
    ),
    Case("choice-cut", "tool_choice", Truth(finish="length"), "inconclusive"),
    Case("parallel", "parallel_calls", Truth(), "yes", {"supports_parallel_tools": True}),
    Case(
        "parallel-one",
        "parallel_calls",
        Truth(parallel="one"),
        "no",
        {"supports_parallel_tools": False},
    ),
    Case(
        "parallel-refused",
        "parallel_calls",
        Truth(parallel="refused"),
        "no",
        {"supports_parallel_tools": False},
        "unknown field",
    ),
    Case("parallel-cut", "parallel_calls", Truth(finish="length"), "inconclusive"),
    Case("one-held", "parallel_false", Truth(), "yes", {"honours_parallel_false": True}),
    Case(
        "one-ignored",
        "parallel_false",
        Truth(parallel_false="ignored"),
        "no",
        {"honours_parallel_false": False},
    ),
    Case(
        "one-refused",
        "parallel_false",
        Truth(parallel_false="refused"),
        "no",
        {"honours_parallel_false": False},
    ),
    Case("one-never-more", "parallel_false", Truth(parallel="one"), "inconclusive"),
    Case(
        "stream",
        "streaming",
        Truth(),
        "yes",
        {"streaming": True, "stream_equals_whole": True},
    ),
    Case(
        "stream-of-words",
        "streaming",
        Truth(tools="unused"),
        "yes",
        {"streaming": True, "stream_equals_whole": True},
    ),
    Case(
        "stream-less",
        "streaming",
        Truth(streaming="less"),
        "no",
        {"streaming": True, "stream_equals_whole": False},
        "0 calls instead of 1",
    ),
    Case("stream-sometimes", "streaming", Truth(streaming="sometimes"), "yes", {"streaming": True}),
    Case(
        "stream-ignored",
        "streaming",
        Truth(streaming="ignored"),
        "no",
        {"streaming": False},
        "whole reply",
    ),
    Case("stream-refused", "streaming", Truth(streaming="refused"), "no", {"streaming": False}),
    Case(
        "stream-unfinished", "streaming", Truth(streaming="unfinished"), "no", {"streaming": False}
    ),
    Case("ids", "call_ids", Truth(), "yes", {"unique_call_ids": True}),
    Case("ids-same", "call_ids", Truth(ids="same"), "no", {"unique_call_ids": False}),
    Case("ids-none", "call_ids", Truth(ids="none"), "no", {"unique_call_ids": False}),
    Case("ids-no-call", "call_ids", Truth(tools="text"), "inconclusive"),
    Case("pattern-any", "id_pattern", Truth(), "yes", {"tool_id_pattern": None}),
    Case(
        "pattern-word",
        "id_pattern",
        Truth(id_style=WORD),
        "no",
        {"tool_id_pattern": "^[a-zA-Z0-9_-]{1,64}$"},
    ),
    Case(
        "pattern-nine",
        "id_pattern",
        Truth(id_style=NINE),
        "no",
        {"tool_id_pattern": "^[a-zA-Z0-9]{9}$"},
    ),
    Case("pattern-none", "id_pattern", Truth(id_style="never"), "inconclusive"),
    Case("empty-object", "empty_arguments", Truth(), "yes", {"empty_arguments": "object"}),
    *(
        Case(
            f"empty-{style}",
            "empty_arguments",
            Truth(empty_arguments=style),
            "no",
            {"empty_arguments": style},
        )
        for style in ("blank", "null", "missing")
    ),
    Case("strict", "strict_tools", Truth(), "yes", {"strict_tools": True}),
    Case("strict-ignored", "strict_tools", Truth(strict="ignored"), "no", {"strict_tools": False}),
    Case("strict-refused", "strict_tools", Truth(strict="refused"), "no", {"strict_tools": False}),
    Case("strict-not-needed", "strict_tools", Truth(obeys_schema=True), "inconclusive"),
    Case("object", "json_object", Truth(), "yes", {"json_object": True}),
    Case(
        "object-ignored", "json_object", Truth(json_object="ignored"), "no", {"json_object": False}
    ),
    Case(
        "object-refused", "json_object", Truth(json_object="refused"), "no", {"json_object": False}
    ),
    Case("object-cut", "json_object", Truth(finish="length"), "inconclusive"),
    Case("schema", "json_schema", Truth(), "yes", {"json_schema": True}),
    Case(
        "schema-ignored", "json_schema", Truth(json_schema="ignored"), "no", {"json_schema": False}
    ),
    Case(
        "schema-refused", "json_schema", Truth(json_schema="refused"), "no", {"json_schema": False}
    ),
    Case("schema-cut", "json_schema", Truth(finish="length"), "inconclusive"),
    Case(
        "schema-in-the-format",
        "schema_field",
        Truth(),
        "yes",
        {"schema_field": "response_format"},
    ),
    Case(
        "schema-in-a-field",
        "schema_field",
        Truth(json_schema="refused", schema_field="json_schema"),
        "yes",
        {"schema_field": "json_schema"},
    ),
    Case(
        "schema-nowhere",
        "schema_field",
        Truth(json_schema="ignored"),
        "no",
        {"schema_field": None},
    ),
    Case("schema-field-cut", "schema_field", Truth(finish="length"), "inconclusive"),
    Case("grammar", "grammar", Truth(), "yes", {"grammar": True}),
    Case("grammar-ignored", "grammar", Truth(grammar="ignored"), "no", {"grammar": False}),
    Case("grammar-refused", "grammar", Truth(grammar="refused"), "no", {"grammar": False}),
    Case("midturn", "midturn_system", Truth(), "yes", {"allows_midturn_system": True}),
    Case(
        "midturn-refused",
        "midturn_system",
        Truth(midturn="refused"),
        "no",
        {"allows_midturn_system": False},
    ),
    Case(
        "midturn-dropped",
        "midturn_system",
        Truth(midturn="dropped"),
        "no",
        {"allows_midturn_system": False},
        "dropped silently",
    ),
    Case("midturn-unheeded", "midturn_system", Truth(midturn="unheeded"), "inconclusive"),
    Case("echo-not-needed", "reasoning_echo", Truth(), "no", {"needs_reasoning_echo": False}),
    Case(
        "echo-not-needed-with-reasoning",
        "reasoning_echo",
        Truth(reasons=True),
        "no",
        {"needs_reasoning_echo": False},
        "had sent some",
    ),
    Case(
        "echo-needed",
        "reasoning_echo",
        Truth(needs_echo=True),
        "yes",
        {"needs_reasoning_echo": True},
        "reasoning_content is missing",
    ),
    Case("echo-no-call", "reasoning_echo", Truth(tools="text"), "inconclusive"),
    Case("json-high", "json_stability", Truth(), "yes", {"json_stability": "high"}, "5 of 5"),
    Case(
        "json-medium",
        "json_stability",
        Truth(broken_json=2),
        "no",
        {"json_stability": "medium"},
        "3 of 5",
    ),
    Case(
        "json-low",
        "json_stability",
        Truth(broken_json=3),
        "no",
        {"json_stability": "low"},
        "2 of 5",
    ),
    Case("json-cut", "json_stability", Truth(finish="length"), "inconclusive", {}, "only 0 of 5"),
    Case("window", "context_window", Truth(), "yes", {"context_window_tokens": 32768}),
    Case("window-no-list", "context_window", Truth(context_window=None), "inconclusive"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_one_question_finds_the_truth(case: Case) -> None:
    """Each question, asked alone, finds out what the provider really does, or says it cannot."""
    finding = await find(case.truth, case.question)
    assert (finding.verdict, finding.fields) == (case.verdict, case.fields), finding.evidence
    assert case.evidence in finding.evidence
    assert finding.evidence
    (question,) = select_questions([case.question])
    assert set(finding.fields) <= set(question.decides)
    assert finding.cost.requests <= question.max_requests + 3  # a plain one, and two adaptations


def test_every_question_has_rows_both_ways() -> None:
    """The table has a yes and a no for every question that can be answered with no."""
    verdicts: dict[str, set[str]] = {}
    for case in CASES:
        verdicts.setdefault(case.question, set()).add(case.verdict)
    assert set(verdicts) == {question.name for question in QUESTIONS}
    window = verdicts.pop("context_window")
    assert window == {"yes", "inconclusive"}
    assert [name for name, found in verdicts.items() if not {"yes", "no"} <= found] == []


async def test_all_questions_together_stay_within_the_stated_cost() -> None:
    """Answers are shared, and every capability that can be probed is decided."""
    async with CapabilityUpstream() as upstream:
        report = await probe(upstream)
        sent = upstream.calls + upstream.listings
    assert report.error is None
    assert [item.question for item in report.findings if item.verdict == "inconclusive"] == []
    undecided = set(Capabilities.__struct_fields__) - set(report.fields)
    on_request = {field for question in ON_REQUEST for field in question.decides}
    assert undecided - on_request == {
        "decision_model",
        "decision_path",
        "max_tokens_field",
        "request_fields",
        "reserved_response_tokens",
        "takes_developer",
        "takes_repeated_roles",
        "takes_user_after_result",
        "text_formats",
        "unsupported_fields",
    }
    assert report.cost.requests == sent
    assert sent < total_cost(QUESTIONS)[0]
    assert 0 < report.cost.tokens <= total_cost(QUESTIONS)[1]
    texts = [str(body) for body in upstream.bodies if not body.get("stream")]
    assert len(set(texts)) == len(texts)


async def test_dropped_tools_win_over_a_call_the_question_gave_away() -> None:
    """A text that repeats the tool's name from the question does not show that tools arrive."""
    async with CapabilityUpstream(Truth(tools="parroted")) as upstream:
        report = await probe(upstream, "tools", "tools_seen")
    assert [item.verdict for item in report.findings] == ["yes", "no"]
    assert report.fields == {"supports_tool_use": False, "text_formats": True}
    assert upstream.calls == 3


async def test_ids_repeated_inside_one_reply_are_found() -> None:
    """A reply with two calls that was seen for another question counts too."""
    finding = await find(Truth(ids="same_in_reply"), "parallel_calls", "call_ids")
    assert (finding.verdict, finding.fields) == ("no", {"unique_call_ids": False})
    assert "one reply" in finding.evidence


async def test_a_provider_that_refuses_everything_is_not_judged() -> None:
    """When a plain question is refused as well, a refusal says nothing about tools."""
    async with CapabilityUpstream(Truth(failures={0: 400})) as upstream:
        report = await probe(upstream, "tools", "json_schema")
    assert report.fields == {}
    assert [item.verdict for item in report.findings] == ["inconclusive", "inconclusive"]
    assert {item.code for item in report.findings} == {"BAD_REQUEST"}
