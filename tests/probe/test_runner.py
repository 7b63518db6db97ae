"""Putting questions: budget, errors, sharing, and what is kept."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.capability_upstream import CapabilityUpstream, Truth
from support.upstream import RESET, FaultyUpstream, completion_bytes, http_response, unused_port
from surecall.base.errors import ConfigError
from surecall.models.probe import (
    ESSENTIAL,
    FactKey,
    FactStore,
    Finding,
    ProbeReport,
    ensure_probed,
    probe_model,
    select_questions,
    total_cost,
)
from surecall.models.probe.runner import Flights
from surecall.models.transport import (
    HttpTransport,
    RetryPolicy,
    ScriptedReply,
    ScriptedTransport,
    assistant,
    tool_call,
)
from surecall.wire import ChatCompletions


async def probe(url: str, *names: str, retries: int = 0, **settings: Any) -> ProbeReport:
    """Put these questions to a provider."""
    retry = RetryPolicy(max_retries=retries, base_delay_s=0)
    async with HttpTransport(url, retry=retry) as transport:
        return await probe_model(
            transport, ChatCompletions(), "m", questions=select_questions(names), **settings
        )


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "AUTH"), (402, "PAYMENT_REQUIRED"), (403, "FORBIDDEN"), (404, "NOT_FOUND")],
)
async def test_what_all_requests_will_be_told_stops_the_probe(status: int, code: str) -> None:
    """One refused key or unknown model is enough; the other questions are not asked."""
    async with CapabilityUpstream(Truth(failures={0: status})) as upstream:
        report = await probe(upstream.url, "tools", "json_schema", "grammar")
        assert upstream.calls == 1
    assert report.error is not None
    assert report.error.code == code
    assert [item.verdict for item in report.findings] == ["inconclusive"] * 3
    assert [item.code for item in report.findings] == [code] * 3
    assert "not asked" in report.findings[1].evidence


async def test_nobody_there_stops_the_probe() -> None:
    """A connection that is refused is refused for every question."""
    report = await probe(f"http://127.0.0.1:{unused_port()}", "tools", "grammar")
    assert report.error is not None
    assert report.error.code == "CONNECTION_REFUSED"
    assert report.cost.requests == 1


async def test_an_error_of_one_question_does_not_stop_the_others() -> None:
    """A server that fails once is asked on."""
    async with CapabilityUpstream(Truth(failures={1: 500})) as upstream:
        report = await probe(upstream.url, "tools", "json_schema", "grammar")
    assert report.error is None
    assert [item.verdict for item in report.findings] == ["inconclusive", "yes", "yes"]
    assert report.findings[0].code == "UPSTREAM_5XX"
    assert report.fields == {"json_schema": True, "grammar": True}


async def test_a_provider_that_keeps_failing_is_left_alone() -> None:
    """After two failures in a row nothing more is asked."""
    async with CapabilityUpstream(Truth(failures={0: 429})) as upstream:
        report = await probe(upstream.url, "tools", "json_schema", "grammar", "json_object")
        assert upstream.calls == 2
    assert report.error is not None
    assert report.error.code == "RATE_LIMIT"


async def test_the_budget_is_never_exceeded() -> None:
    """A question for which no request is left is inconclusive, not a no."""
    async with CapabilityUpstream() as upstream:
        report = await probe(
            upstream.url, "tools", "json_object", "json_schema", "grammar", max_requests=2
        )
        assert upstream.calls == 2
    assert [item.verdict for item in report.findings] == [
        "yes",
        "yes",
        "inconclusive",
        "inconclusive",
    ]
    assert report.findings[2].code == "PROBE_BUDGET_EXCEEDED"
    assert report.fields == {"supports_tool_use": True, "json_object": True}


async def test_requests_the_transport_repeats_are_counted() -> None:
    """What was sent again after a failure is part of the cost, and of the budget."""
    async with CapabilityUpstream(Truth(failures={1: 500})) as upstream:
        report = await probe(upstream.url, "tools", "grammar", retries=1, max_requests=2)
        assert upstream.calls == 2
    assert report.findings[0].cost.requests == 2
    assert report.findings[1].code == "PROBE_BUDGET_EXCEEDED"


async def test_findings_are_told_as_they_are_made() -> None:
    """A listener hears each with its question and its cost."""
    heard: list[Finding] = []
    async with CapabilityUpstream() as upstream:
        report = await probe(upstream.url, "grammar", "json_schema", on_finding=heard.append)
    assert tuple(heard) == report.findings
    assert [(item.question, item.cost.requests) for item in heard] == [
        ("json_schema", 1),
        ("grammar", 1),
    ]


async def test_what_was_found_out_is_kept(tmp_path: Path) -> None:
    """Facts are stored under the address, the wire format and the model."""
    store = FactStore(tmp_path / "facts.sqlite3")
    async with CapabilityUpstream() as upstream:
        await probe(upstream.url, "grammar", store=store, address=upstream.url + "/v1")
    key = FactKey(upstream.url + "/v1", "chat_completions", "m")
    assert [(fact.field, fact.value) for fact in store.fresh(key)] == [("grammar", True)]


async def test_facts_without_an_address_are_not_kept(tmp_path: Path) -> None:
    """Nobody could tell later what they are about."""
    store = FactStore(tmp_path / "facts.sqlite3")
    async with CapabilityUpstream() as upstream:
        await probe(upstream.url, "grammar", store=store)
    assert store.all() == ()


async def test_a_store_that_fails_does_not_lose_the_findings(tmp_path: Path) -> None:
    """The report has them, and says why they could not be kept."""
    (tmp_path / "file").write_text("")
    store = FactStore(tmp_path / "file" / "facts.sqlite3")
    async with CapabilityUpstream() as upstream:
        report = await probe(upstream.url, "grammar", store=store, address="http://h")
    assert report.fields == {"grammar": True}
    assert report.store_error is not None
    assert report.store_error.code == "FACTS_UNUSABLE"


async def test_the_essential_questions_take_three_requests_at_most() -> None:
    """Whatever the provider does."""
    assert [question.name for question in ESSENTIAL] == ["tools", "tools_seen"]
    for tools in ("structured", "text", "refused", "dropped", "parroted", "unused", "no_endpoint"):
        async with CapabilityUpstream(Truth(tools=tools)) as upstream:
            await probe(upstream.url, "tools", "tools_seen")
            assert upstream.calls <= 3, tools


async def test_sampling_settings_a_model_refuses_are_left_out_from_then_on() -> None:
    """The refusal of `max_tokens` is not taken for a refusal of tools, and not run into twice."""
    async with CapabilityUpstream(Truth(newer_settings=True)) as upstream:
        report = await probe(upstream.url, "tools", "grammar")
        assert upstream.calls == 4
    assert report.fields == {"supports_tool_use": True, "grammar": True}
    assert upstream.bodies[-1]["max_completion_tokens"] == 1024
    assert {"max_tokens", "temperature"} & upstream.bodies[-1].keys() == set()


async def test_a_template_that_leaves_tools_out_is_asked_and_not_the_model() -> None:
    """A transport that knows the template of its model answers without a request."""

    class Local(ScriptedTransport):
        async def template_shows_tools(self) -> bool | None:
            return False

    transport = Local(["words"])
    report = await probe_model(transport, ChatCompletions(), "m", questions=ESSENTIAL)
    assert [item.verdict for item in report.findings] == ["no", "no"]
    assert report.fields == {"supports_tool_use": False}
    assert transport.requests == []


async def test_a_template_that_shows_tools_settles_the_question() -> None:
    """Then token counts are not needed."""

    class Local(ScriptedTransport):
        async def template_shows_tools(self) -> bool | None:
            return True

    transport = Local([])
    report = await probe_model(
        transport, ChatCompletions(), "m", questions=select_questions(["tools_seen"])
    )
    assert (report.findings[0].verdict, report.fields) == ("yes", {})


async def test_a_call_that_was_cut_is_inconclusive_although_it_looks_whole() -> None:
    """A finish reason of `length` never leads to a yes or a no."""
    cut = ScriptedReply(
        message=assistant(None, tool_call("surecall_probe_echo", {"text": "ping"})),
        finish_reason="length",
    )
    transport = ScriptedTransport(lambda _: cut)
    questions = select_questions(["tools", "parallel_calls", "streaming", "empty_arguments"])
    report = await probe_model(transport, ChatCompletions(), "m", questions=questions)
    assert report.fields == {}
    assert {item.verdict for item in report.findings} == {"inconclusive"}


def test_an_unknown_question_is_an_error_with_a_suggestion() -> None:
    """A misspelt name is never ignored."""
    with pytest.raises(ConfigError, match="Did you mean 'json_schema'") as caught:
        select_questions(["tools", "json_schem"])
    assert caught.value.code == "UNKNOWN_QUESTION"


def test_the_cost_is_stated_before() -> None:
    """Requests at most, one plain one included, and tokens roughly."""
    assert total_cost(select_questions(["tools", "context_window"])) == (4, 750)


async def test_a_connection_that_breaks_once_is_no_answer() -> None:
    """A question has no effects, so it is put again; the server was only slow to say goodbye."""
    body = completion_bytes('{"code": "Q7"}')
    async with FaultyUpstream([RESET, http_response(body)]) as upstream:
        report = await probe(upstream.url, "json_schema")
        assert upstream.calls == 2
    assert report.fields == {"json_schema": True}
    assert report.cost.requests == 2


async def test_what_was_found_out_before_an_interruption_is_kept(tmp_path: Path) -> None:
    """Answers that were paid for are not lost when somebody stops the probe."""
    store = FactStore(tmp_path / "facts.sqlite3")
    heard = asyncio.Event()

    def note(_: Finding) -> None:
        heard.set()

    async with CapabilityUpstream(Truth(delay_s=0.05)) as upstream:
        task = asyncio.create_task(
            probe(
                upstream.url,
                "json_schema",
                "grammar",
                store=store,
                address="http://h",
                on_finding=note,
            )
        )
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [fact.field for _, fact in store.all()] == ["json_schema"]


async def test_a_mistake_of_the_caller_is_not_taken_for_a_failing_store(tmp_path: Path) -> None:
    """An error in the set-up is raised once, and nothing is asked again because of it."""
    transport = ScriptedTransport([])
    with pytest.raises(ConfigError, match="request 1 arrived"):
        await ensure_probed(
            transport,
            ChatCompletions(),
            "m",
            store=FactStore(tmp_path / "facts.sqlite3"),
            address="http://h",
            flights=Flights(),
        )
    assert len(transport.requests) == 1
