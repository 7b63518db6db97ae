"""One trial from beginning to end, and everything that may go wrong in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from surecall.base.errors import Code, ConfigError, ProviderConnectionError
from surecall.base.records import Usage
from surecall.base.redaction import Secret
from surecall.evals.cases import Contender, Price, close_transports, cost_of, parse_price
from surecall.evals.records import TrialRow
from surecall.evals.store.rows import COLUMNS, columns_of, decode_body, decode_row, encode_body
from surecall.evals.strategies import settle
from surecall.evals.trial import run_trial
from surecall.models.transport import ScriptedReply, ScriptedTransport, assistant, tool_call
from surecall.tools.outputs import encode_kept

from .desk import DeskCase, attempt, contender, script, unit

GOOD = '{"text": "seven", "count": 7}'
CALL = assistant(None, tool_call("note", GOOD))
USAGE = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}


async def test_a_clean_trial_says_all_there_is_to_say() -> None:
    """Verdicts, calls, times, tokens and the cell are in the row."""
    replies = [ScriptedReply(message=CALL, usage=USAGE), "Done."]
    row, _ = await attempt(replies)
    assert (row.original_ok, row.strict_ok, row.outcome, row.category) == (
        True,
        True,
        "called",
        None,
    )
    assert (row.turns, row.requests, row.attempts) == (2, 2, 2)
    assert (row.code, row.error, row.censored, row.cut_by_limit) == (None, None, False, False)
    assert row.usage == Usage(1000, 20, 1020)
    assert row.text == "Done."
    assert (row.rules, row.saved_by, row.escalations) == ((), (), 0)
    assert row.calls[0].exact is True
    assert row.elapsed_ms > 0
    assert row.started_at > 1_700_000_000
    assert (row.cell.scenario, row.seed, row.simulated) == ("desk", 5, False)


@pytest.mark.parametrize(("kind", "seed"), [("embedded", 5), ("live", None)])
async def test_a_model_of_this_machine_gets_the_seed_of_its_trial(
    kind: str, seed: int | None
) -> None:
    """So that a trial can be repeated; a provider may refuse the field."""
    transport = ScriptedTransport([CALL, "Done."])

    @asynccontextmanager
    async def opened(_who: Contender, _unit: Any, _case: Any) -> AsyncIterator[ScriptedTransport]:
        yield transport

    who = contender(kind=kind)
    await run_trial(unit(), DeskCase(), who, opened, settle("raw", who))
    assert transport.requests[0].body.get("seed") == seed


async def test_the_body_holds_what_happened_turn_by_turn() -> None:
    """What arrived, what was changed, the call, its result and what the case left behind."""
    fenced = f"```json\n{GOOD}\n```"
    _, body = await attempt([assistant("Hm.", tool_call("note", fenced)), "Done."])
    assert body.request["system"] == "Be brief."
    assert [tool["name"] for tool in body.request["tools"]] == ["note", "look"]
    first, second = body.transcript
    assert first["raw"]["tool_calls"][0]["function"]["arguments"] == fenced
    assert first["finish_reason"] == "tool_calls"
    (call,) = first["calls"]
    assert (call["raw"], call["arguments"]) == (fenced, {"text": "seven", "count": 7})
    (receipt,) = call["receipts"]
    assert (receipt["rule"], receipt["lossless"]) == ("strip_code_fence", True)
    (result,) = first["results"]
    assert (result["ok"], result["executed"]) == (True, True)
    assert '"kept":1' in result["text"]
    assert "results" not in second
    assert body.state == {"notes": [("seven", 7)]}
    assert body.config["strategy"] == "production"


async def test_rows_and_bodies_survive_being_stored() -> None:
    """Half characters and odd values in a reply do not keep a trial from being kept."""
    odd = assistant("bad \ud800 text", tool_call("no\ud800te", '{"text": "\ud800"}'))
    row, body = await attempt([ScriptedReply(message=odd), "Do\ud800ne."])
    kept = dict(zip(COLUMNS, columns_of(1, 1, row), strict=True))
    assert decode_row(kept).cell == row.cell
    assert len(decode_body(encode_body(body)).transcript) == row.turns


# errors


async def test_an_error_of_the_provider_is_the_result() -> None:
    """The status and the code are kept; the request counts, and so does each attempt."""
    error = ProviderConnectionError("CONNECTION_RESET", "gone", attempts=3)
    row, body = await attempt([CALL, error])
    assert (row.code, row.category, row.error_status) == (
        "CONNECTION_RESET",
        "CONNECTION_ERROR",
        None,
    )
    assert (row.requests, row.attempts, row.turns) == (2, 4, 2)
    assert (row.outcome, row.parts, row.strict_ok, row.original_ok) == ("error", None, False, False)
    assert row.strict_reasons[0].code == "WRONG_NOTES"
    assert body.transcript[1]["failures"][0]["code"] == "CONNECTION_RESET"

    row, _ = await attempt([ScriptedReply(status=429, message="slow down")])
    assert (row.code, row.category, row.error_status) == ("RATE_LIMIT", "RATE_LIMIT", 429)


async def test_a_timeout_is_censored_and_keeps_its_trace() -> None:
    """The run ends at the time it was given, with what happened until then."""
    replies = [CALL, ScriptedReply(message="Done.", delay_s=20)]
    row, body = await attempt(replies, timeout_s=0.05)
    assert (row.code, row.category, row.censored) == ("DEADLINE_EXCEEDED", "TIMEOUT", True)
    assert len(row.calls) == 1
    assert body.config["timeout_s"] == 0.05
    assert len(body.transcript) == 1


async def test_a_scenario_may_have_less_time_than_the_experiment() -> None:
    """The shorter of two deadlines holds."""
    slow = ScriptedReply(message="Done.", delay_s=20)
    row, _ = await attempt([slow], case=DeskCase(deadline_s=0.05), timeout_s=30)
    assert row.code == "DEADLINE_EXCEEDED"


async def test_a_reply_at_its_limit_is_flagged_only_when_the_trial_failed() -> None:
    """A cut answer that is right is no failure."""
    cut = ScriptedReply(message="", finish_reason="length")
    row, _ = await attempt([cut], "raw")
    assert (row.cut_by_limit, row.strict_ok) == (True, False)
    cut_but_right = ScriptedReply(message="Done", finish_reason="length")
    row, _ = await attempt([CALL, cut_but_right], "raw")
    assert (row.cut_by_limit, row.strict_ok) == (False, True)


@pytest.mark.parametrize("step", ["prepare", "grade"])
async def test_a_case_that_breaks_is_a_failed_trial(step: str) -> None:
    """Nothing is raised; the row says that the harness is to blame."""
    case = DeskCase()
    case.breaks_on = step
    row, body = await attempt([CALL, "Done."], case=case)
    assert (row.strict_ok, row.original_ok, row.code) == (False, False, Code.INTERNAL_ERROR)
    assert "no " in (row.error or "")
    assert row.strict_reasons[0].code == Code.INTERNAL_ERROR
    assert body.index == row.index


async def test_an_option_that_cannot_be_used_is_a_failed_trial() -> None:
    """A scenario with a wrong option fails with its code instead of ending the experiment."""
    row, _ = await attempt([CALL], case=DeskCase(max_turn=3))
    assert (row.code, row.category, row.turns) == ("UNKNOWN_OPTION", "EXCEPTION", 0)


async def test_a_door_that_does_not_open_is_a_failed_trial() -> None:
    """What is raised while opening is the result; the body still says what was asked."""

    @asynccontextmanager
    async def closed(*_: Any) -> AsyncIterator[Any]:
        raise ConfigError("MODEL_WEIGHTS_MISSING", "not here")
        yield

    row, body = await run_trial(unit(), DeskCase(), contender(), closed, settle("raw", contender()))
    assert (row.code, row.requests, row.elapsed_ms) == ("MODEL_WEIGHTS_MISSING", 0, 0.0)
    assert row.strict_reasons[0].code == "WRONG_NOTES"
    assert body.request["messages"][0]["content"] == "Note that the answer is 7."


async def test_a_door_that_does_not_close_changes_nothing() -> None:
    """The answer was there before."""

    @asynccontextmanager
    async def stuck(*_: Any) -> AsyncIterator[Any]:
        yield ScriptedTransport([CALL, "Done."])
        raise RuntimeError("stuck")

    row, _ = await run_trial(unit(), DeskCase(), contender(), stuck, settle("raw", contender()))
    assert (row.strict_ok, row.code) == (True, None)


async def test_cancelling_is_not_swallowed() -> None:
    """A cancelled trial has no result."""
    opened = script([ScriptedReply(message="Done.", delay_s=20)])
    task = asyncio.create_task(
        run_trial(unit(), DeskCase(), contender(), opened, settle("raw", contender()))
    )
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# ways back


async def test_ways_back_from_a_mistake_are_credited_to_their_options() -> None:
    """What was used to get there is in `saved_by`, by the name that switches it off."""
    replies = [ScriptedReply(status=400, message="tools?"), "Hello."]
    settled = settle("production", contender(), overrides={"fallback_retry_count": 1})
    row, _ = await attempt(replies, settled=settled)
    assert row.rules == ("fallback_retry_count",)
    assert row.saved_by == ()  # the trial failed, so nothing saved it

    broken = '```json\n{"name": "paint", "arguments": {}}\n```'
    fenced = f'```json\n{{"name": "note", "arguments": {GOOD}}}\n```'
    who = contender(capabilities={"supports_tool_use": False})
    row, _ = await attempt([broken, fenced, "Done."], who=who)
    assert row.strict_ok is True
    assert {"max_parse_retries", "tool_prompting", "read_call_from_text"} <= set(row.saved_by)


async def test_escalations_are_counted() -> None:
    """Each rung that was climbed counts, and the option is credited."""
    bad = assistant(None, tool_call("note", "{}"))
    row, _ = await attempt(
        [bad, bad, f'```json\n{{"name": "note", "arguments": {GOOD}}}\n```', "Done."]
    )
    assert row.strict_ok is True
    assert row.escalations == 1
    assert "max_escalations" in row.saved_by


# secrets and prices


async def test_secrets_are_kept_nowhere() -> None:
    """Neither a key of a known shape nor a given value stands in the row or the body."""
    key, own = "sk-" + "Zz9" * 10, 'pass"word-\\1234'
    held = Secret(own)
    call = assistant(f"key {key}", tool_call("note", {"text": key, "count": 7}))
    row, body = await attempt([call, f"Done with {own} and {key}."], case=DeskCase())
    kept = encode_kept((row, body)).decode()
    assert key not in kept
    assert "word-" not in kept
    assert held
    assert row.text == "Done with [redacted] and [redacted]."
    assert row.strict_ok is True


async def test_cost_comes_from_the_price_of_the_contender() -> None:
    """Without a price there is no cost, and none is made up."""
    replies = [ScriptedReply(message="Hi.", usage=USAGE)]
    free, _ = await attempt(replies)
    assert free.cost_usd is None
    priced, _ = await attempt(replies, who=contender(price=parse_price("2/10")))
    assert priced.cost_usd == pytest.approx(0.0022)


def test_prices_are_read_and_applied() -> None:
    """Cached input has its own price, when there is one."""
    usage = Usage(input_tokens=1_000_000, output_tokens=500_000, cached_tokens=400_000)
    assert cost_of(usage, parse_price("1/4")) == pytest.approx(3.0)
    assert cost_of(usage, parse_price(" 1 / 4 / 0.5 ")) == pytest.approx(2.8)
    assert parse_price("1/4") == Price(input_usd=1.0, output_usd=4.0)


@pytest.mark.parametrize("text", ["1", "1/2/3/4", "a/b", "-1/2", "nan/1", "inf/1", ""])
def test_a_price_that_cannot_be_read_is_an_error(text: str) -> None:
    """Prices are never guessed."""
    with pytest.raises(ConfigError, match="INVALID_OPTION"):
        parse_price(text)


# contenders


def test_what_is_simulated_is_always_labelled_so() -> None:
    """The kind decides, whatever the flag says."""
    assert Contender(label="a", model="a", kind="simulated").simulated is True
    assert Contender(label="a", model="a").simulated is False


async def test_a_simulated_contender_marks_its_rows() -> None:
    """Every row says whether it is about a model that exists."""
    row, _ = await attempt(["Done."], who=contender(kind="simulated"))
    assert row.simulated is True


async def test_openers_that_keep_nothing_need_not_be_closed() -> None:
    """Closing asks the opener, if it can be asked."""
    closed: list[str] = []

    class Keeper:
        async def aclose(self) -> None:
            closed.append("yes")

        def __call__(self, *_: Any) -> Any:
            raise AssertionError

    await close_transports(script([]))
    await close_transports(Keeper())
    assert closed == ["yes"]


def test_a_row_is_small() -> None:
    """A row without calls takes little when it is stored."""
    row = TrialRow(index=0, cell=unit().cell, original_ok=True, strict_ok=True)
    assert len(msgspec.json.encode(row)) < 1_200
