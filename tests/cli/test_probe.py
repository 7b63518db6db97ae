"""`surecall probe`: cost first, answers as they arrive, then what follows from them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from support.capability_upstream import CapabilityUpstream, Truth
from support.upstream import unused_port
from surecall.cli import ExitCode
from surecall.models.probe import ON_REQUEST, QUESTIONS

from .harness import document, documents, invoke


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep facts where no other test sees them."""
    monkeypatch.setenv("SURECALL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SURECALL_RETRY__MAX_RETRIES", "0")


async def probe(upstream: CapabilityUpstream, *words: str) -> Result:
    """Run the command against the upstream."""
    return await asyncio.to_thread(invoke, "probe", "m", "--base-url", upstream.url, *words)


def lines_of(result: Result) -> list[str]:
    """Return the lines of standard output with single spaces."""
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


async def test_cost_then_answers_then_capabilities_then_changes() -> None:
    """Everything a reader needs, in this order, and the cost before anything is sent."""
    truth = Truth(tools="dropped", streaming="refused")
    async with CapabilityUpstream(truth) as upstream:
        result = await probe(upstream)
        sent = upstream.calls + upstream.listings
    assert result.exit_code == 0, result.stderr
    assert f"13 questions for m at {upstream.url}/v1: at most" in result.stderr
    lines = lines_of(result)
    assert lines[0].startswith("✗ no tools supports_tool_use = false; asked twice")
    assert "supports_tool_use false probe:" in " ".join(lines)
    assert "reserved_response_tokens 0 default" in lines
    assert "tools are given to the model: native → taught" in lines
    assert "replies may be streamed: yes → no" in lines
    assert lines[-1].startswith(f"{sent} requests, ")
    assert lines.index("capabilities") < lines.index("findings") < lines.index("in a run")
    assert lines.index("unique_call_ids null default") > lines.index("findings")


async def test_nothing_changes_when_the_provider_does_what_was_assumed() -> None:
    """A probe that confirms the defaults says so."""
    async with CapabilityUpstream() as upstream:
        result = await probe(upstream, "--question", "tools", "--question", "json_object")
    assert "nothing changes because of this probe" in lines_of(result)


async def test_as_json_it_is_cost_findings_and_the_whole() -> None:
    """One document for each, in the order in which things happen."""
    async with CapabilityUpstream(Truth(json_schema="ignored")) as upstream:
        result = await probe(upstream, "--json", "--question", "json_schema", "--question", "tools")
    cost, tools, schema, whole = documents(result)
    assert (cost["type"], cost["questions"], cost["max_requests"]) == (
        "cost",
        ["tools", "json_schema"],
        4,
    )
    assert (tools["question"], tools["verdict"]) == ("tools", "yes")
    assert (schema["type"], schema["fields"]) == ("finding", {"json_schema": False})
    assert schema["cost"]["requests"] == 1
    assert whole["type"] == "probe"
    assert whole["fields"] == {"supports_tool_use": True, "json_schema": False}
    assert whole["capabilities"]["json_schema"] is False
    assert whole["origins"]["json_schema"].startswith("probe:20")
    assert whole["origins"]["grammar"] == "default"
    assert whole["findings"]["empty_arguments"] == "unknown"
    assert whole["cost"]["requests"] == 2
    assert whole["changes"] == []
    assert result.stderr == ""


async def test_what_is_known_is_not_asked_again_unless_told_to() -> None:
    """A second probe costs nothing; --refresh asks anew."""
    words = ("--question", "tools", "--question", "grammar")
    async with CapabilityUpstream() as upstream:
        await probe(upstream, *words)
        asked = upstream.calls
        again = await probe(upstream, *words)
        assert upstream.calls == asked
        await probe(upstream, *words, "--refresh")
        assert upstream.calls == 2 * asked
    assert again.exit_code == 0
    assert again.stderr == ""
    assert lines_of(again)[0].startswith("· known tools supports_tool_use = true; found on 20")


async def test_all_questions_are_asked_with_all() -> None:
    """Not only those that runs use."""
    async with CapabilityUpstream() as upstream:
        result = await probe(upstream, "--all", "--json")
    asked = [item["question"] for item in documents(result) if item["type"] == "finding"]
    assert asked == [question.name for question in QUESTIONS]


async def test_the_budget_is_kept() -> None:
    """Questions beyond it stay open."""
    async with CapabilityUpstream() as upstream:
        result = await probe(upstream, "--all", "--max-requests", "3", "--json")
        assert upstream.calls == 3
    found = [item for item in documents(result) if item["type"] == "finding"]
    assert documents(result)[0]["max_requests"] == 3
    assert found[-1]["code"] == "PROBE_BUDGET_EXCEEDED"


async def test_a_refused_key_is_exit_code_6() -> None:
    """The provider's code is told once, and the questions stay open."""
    async with CapabilityUpstream(Truth(failures={0: 401})) as upstream:
        result = await probe(upstream)
        assert upstream.calls == 1
    assert result.exit_code == ExitCode.PROVIDER
    assert "AUTH" in result.stderr
    assert "? open json_schema not asked after AUTH" in lines_of(result)


def test_nobody_there_is_exit_code_6() -> None:
    """The address is named, and what to look at."""
    url = f"http://127.0.0.1:{unused_port()}"
    result = invoke("probe", "m", "--base-url", url, "--json")
    assert result.exit_code == ExitCode.PROVIDER
    assert documents(result)[-1]["code"] == "CONNECTION_REFUSED"


async def test_facts_that_cannot_be_kept_are_exit_code_7(tmp_path: Path) -> None:
    """The answers are shown all the same."""
    (tmp_path / "cache").write_text("")
    async with CapabilityUpstream() as upstream:
        result = await probe(upstream, "--question", "grammar")
    assert result.exit_code == ExitCode.PARTIAL
    assert "FACTS_UNUSABLE" in result.stderr
    assert any(line.startswith("✓ yes grammar") for line in lines_of(result))


async def test_stored_facts_are_shown_and_forgotten() -> None:
    """With their dates and what they rest on."""
    async with CapabilityUpstream() as upstream:
        await probe(upstream, "--question", "grammar")
    shown = invoke("probe", "--facts")
    assert f"m at {upstream.url}/v1, chat_completions" in lines_of(shown)
    assert "grammar true 20" in " ".join(lines_of(shown))
    (fact,) = document(invoke("probe", "m", "--facts", "--json"))["facts"]
    assert (fact["model"], fact["field"], fact["value"], fact["fresh"]) == (
        "m",
        "grammar",
        True,
        True,
    )
    assert document(invoke("probe", "other", "--facts", "--json"))["facts"] == []
    assert document(invoke("probe", "other", "--forget", "--json"))["facts"] == 0
    assert "forgot 1 fact about m" in invoke("probe", "m", "--forget").stdout
    assert "nothing is known yet" in invoke("probe", "--facts").stdout


def test_questions_are_listed_with_their_cost() -> None:
    """Every question says what it asks, decides and costs."""
    found = document(invoke("probe", "--list", "--json"))["questions"]
    assert [row["name"] for row in found] == [
        question.name for question in (*QUESTIONS, *ON_REQUEST)
    ]
    assert all(row["title"].endswith("?") and row["decides"] for row in found)
    shown = invoke("probe", "--list").stdout
    assert "in total: at most" in shown


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("probe", "m", "--base-url", "http://h", "--question", "gramar"), "UNKNOWN_QUESTION"),
        (("probe", "--base-url", "http://h"), "INVALID_OPTION"),
        (("probe", "m"), "INVALID_CONFIG"),
        (("probe", "m", "--question", "tools", "--all"), "INVALID_OPTION"),
        (("probe", "--facts", "--forget"), "INVALID_OPTION"),
        (("probe", "m", "--base-url", "http://h", "--protocol", "smtp"), "INVALID_CONFIG"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_sent(words: tuple[str, ...], code: str) -> None:
    """Exit code 4, and a hint."""
    result = invoke(*words)
    assert result.exit_code == ExitCode.USAGE
    assert code in result.stderr
    assert "fix" in result.stderr


async def test_consent_is_asked_for_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No is no; --yes is not asked."""
    asked: list[Any] = []

    def decline(text: str, **_: Any) -> bool:
        asked.append(text)
        return False

    monkeypatch.setattr("surecall.cli.probe.click.confirm", decline)
    monkeypatch.setattr("surecall.cli.console.Output.is_attended", True)
    async with CapabilityUpstream() as upstream:
        result = await probe(upstream)
        assert upstream.calls == 0
        assert result.exit_code == ExitCode.INTERRUPTED
        accepted = await probe(upstream, "--yes", "--question", "grammar")
        assert upstream.calls == 1
    assert accepted.exit_code == 0
    assert asked == ["Ask?"]
