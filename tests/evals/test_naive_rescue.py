"""The naive rescue: raw, and one line that takes the outermost braces for a call."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.completion_server import CompletionServer
from surecall.evals import evaluate, plan
from surecall.evals.strategies import NAIVE_FORMAT, find_naive_call, settle
from surecall.models.transport import assistant, tool_call

from .desk import attempt, contender

ARGUMENTS = '{"text": "seven", "count": 7}'
CALL = f'{{"name": "note", "arguments": {ARGUMENTS}}}'
OFFERED = ("note", "look")


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"Sure, here is the call:\n```json\n{CALL}\n```\nDone.",
        f"<tool_call>{CALL}</tool_call>",
        f'{{"function": "note", "parameters": {ARGUMENTS}}}',
        json.dumps({"name": "note", "arguments": ARGUMENTS}),
    ],
    ids=["bare", "fenced", "tagged", "other keys", "text arguments"],
)
async def test_a_call_in_the_outermost_braces_runs(text: str) -> None:
    """It runs under naive, not under raw, and says nothing that the model did not say."""
    row, _ = await attempt([text, "Done."], "naive")
    assert row.strict_ok is True
    assert (row.outcome, row.fabrications, row.rules, row.saved_by) == ("called", 0, (), ())
    call = row.calls[0]
    assert (call.format, call.structured, call.valid_before) == (NAIVE_FORMAT, False, True)

    raw, _ = await attempt([text, "Done."], "raw")
    assert (raw.strict_ok, raw.outcome) == (False, "broke")


@pytest.mark.parametrize(
    "text",
    [
        f"{CALL}\n{CALL}",
        "{'name': 'note', 'arguments': {'text': 'seven', 'count': 7}}",
        f'{{"name": "write", "arguments": {ARGUMENTS}}}',
        f'{{"name": "Note", "arguments": {ARGUMENTS}}}',
        '{"name": "note"}',
        '{"name": ["note"], "arguments": {}}',
        f'{{"function": {{"name": "note", "arguments": {ARGUMENTS}}}}}',
        "note(text='seven', count=7)",
        "} no {",
        '{"a":' * 100_000 + "}",
        "",
    ],
    ids=[
        *("two calls", "python", "unknown tool", "other case", "no arguments", "odd name"),
        *("nested", "python call", "crossed", "deep", "empty"),
    ],
)
def test_nothing_else_is_rescued(text: str) -> None:
    """Whatever is more than `json.loads` of the outermost braces stays text."""
    assert find_naive_call(text, OFFERED) is None


@given(st.text(alphabet='{}":, note', max_size=60))
def test_any_text_is_read_without_an_error(text: str) -> None:
    """What is found names an offered tool."""
    found = find_naive_call(text, OFFERED)
    assert found is None or found.name in OFFERED


async def test_structured_calls_come_first_and_wrong_arguments_are_refused() -> None:
    """A reply with calls is left as it is, and no argument is repaired."""
    wrong = f'{{"name": "note", "arguments": {ARGUMENTS.replace("7", chr(34) + "7" + chr(34))}}}'
    replies = [assistant(wrong, tool_call("note", ARGUMENTS)), "Done."]
    row, _ = await attempt(replies, "naive")
    assert [(call.format, call.ok) for call in row.calls] == [("tool_calls", True)]

    row, _ = await attempt([wrong, "Done."], "naive")
    assert [(call.format, call.executed) for call in row.calls] == [(NAIVE_FORMAT, False)]
    assert row.strict_ok is False


def test_naive_has_the_settings_of_raw() -> None:
    """Nothing but the name of the strategy differs."""
    raw, naive = settle("raw", contender()), settle("naive", contender())
    assert (raw.options, raw.capabilities) == (naive.options, naive.capabilities)


async def test_naive_sees_the_replies_of_raw(tmp_path: Path) -> None:
    """The reply cache serves both, so the first request of a trial is sent once."""
    async with CompletionServer(["No call here."]) as server:
        experiment = plan(
            f"m@{server.url}",
            scenarios="no_call_needed",
            strategies="raw,naive",
            cache=tmp_path / "cache",
            concurrency=1,
        )
        run = await evaluate(experiment, store=tmp_path / "evals.db")

    assert len(server.bodies) == 1
    assert [row.text for row in run.rows()] == ["No call here."] * 2
    assert [row.cached_replies for row in run.rows()] == [0, 1]


def test_gated_is_production_with_the_fit_gate() -> None:
    """It asks about every tool before it runs, whatever is known of the model."""
    production, gated = (
        settle(name, contender()).record["options"] for name in ("production", "gated")
    )
    differing = {name for name in production if production[name] != gated[name]}
    assert (differing, gated["fit_gate"]) == ({"fit_gate"}, "on")
