"""The suite of tasks with several dependent steps."""

from typing import Any

import pytest

from surecall.base.records import ToolSpec, WireRequest
from surecall.evals.cases import Contender
from surecall.evals.records import Cell, TrialBody, TrialRow, Unit
from surecall.evals.strategies import settle
from surecall.evals.suites import load_suite
from surecall.evals.suites.errands import ERRANDS, Errand
from surecall.evals.trial import run_trial
from surecall.models.transport import ScriptedTransport, assistant, tool_call
from surecall.wire import find_protocol

CHAT = find_protocol("chat_completions")
CONTENDER = Contender(label="m", model="m", kind="live")


def perfect_model(errand: Errand, *, skips: int = 0, lies: bool = False) -> ScriptedTransport:
    """Return a model that takes the ideal steps, or answers too early, or makes facts up."""
    answers = iter(range(skips))

    def reply(request: WireRequest) -> Any:
        if next(answers, None) is not None:
            return "It is done."
        wanted = errand.ideal(CHAT.parse_request(request))
        assert wanted is not None
        if not wanted.calls:
            return wanted.text
        (call,) = wanted.calls
        arguments = call.arguments
        if lies and call.name == errand.steps[-1].tool:
            arguments = {key: f"{value}9" for key, value in arguments.items()}
        return assistant(tool_calls=[tool_call(call.name, arguments)])

    return ScriptedTransport(reply)


async def try_errand(errand: Errand, transport: ScriptedTransport, strategy: str) -> TrialRow:
    """Run one trial of an errand."""
    return (await run_errand(errand, transport, strategy))[0]


async def run_errand(
    errand: Errand, transport: ScriptedTransport, strategy: str
) -> tuple[TrialRow, TrialBody]:
    """Run one trial of an errand, and return what is kept of it as well."""
    unit = Unit(index=0, cell=Cell(model="m", suite="errands", scenario=errand.scenario), seed=3)

    def open_transport(*_: Any) -> ScriptedTransport:
        return transport

    return await run_trial(unit, errand, CONTENDER, open_transport, settle(strategy, CONTENDER))


@pytest.mark.parametrize("errand", ERRANDS, ids=lambda errand: errand.scenario)
@pytest.mark.parametrize("strategy", ["production", "guided"])
async def test_the_ideal_steps_pass(errand: Errand, strategy: str) -> None:
    """A model that makes no mistakes does every errand, with and without declarations."""
    row = await try_errand(errand, perfect_model(errand), strategy)
    assert (row.strict_ok, row.original_ok, row.strict_reasons) == (True, True, ())
    assert row.turns == len(errand.steps) + 1


@pytest.mark.parametrize("errand", ERRANDS, ids=lambda errand: errand.scenario)
async def test_facts_that_are_made_up_do_not_pass(errand: Errand) -> None:
    """A last step with other facts is wrong."""
    row = await try_errand(errand, perfect_model(errand, lies=True), "production")
    assert not row.strict_ok
    assert "STEP_MISSING" in [reason.code for reason in row.strict_reasons]


async def test_only_the_guided_strategy_uses_declarations() -> None:
    """A model that answers at once is asked to go on there, and nowhere else."""
    errand = ERRANDS[3]
    plain = await try_errand(errand, perfect_model(errand, skips=1), "production")
    guided = await try_errand(errand, perfect_model(errand, skips=1), "guided")
    assert (plain.strict_ok, guided.strict_ok) == (False, True)
    assert guided.requests == len(errand.steps) + 2


def test_declarations_follow_from_what_steps_take_and_give() -> None:
    """All steps are required, and each needs those that give what it takes."""
    declared = ERRANDS[4].declarations
    assert declared.required_tools == ("locate_goods", "print_label", "request_pickup")
    assert declared.requires == {"request_pickup": ("locate_goods", "print_label")}
    tools = declared.declare_tools(ERRANDS[4].prepare(1).tools)
    found: dict[str, ToolSpec] = {tool.name: tool.spec for tool in tools}
    assert found["request_pickup"].requires == ("locate_goods", "print_label")


def test_the_suite_has_its_tasks_and_a_version() -> None:
    """It is found by its name, and its version does not change from load to load."""
    suite = load_suite("errands")
    assert list(suite.scenarios()) == [errand.scenario for errand in ERRANDS]
    assert suite.version == load_suite("errands").version
    assert suite.cases("pay_invoice") == (ERRANDS[3],)


async def test_what_is_declared_is_kept_with_the_trial() -> None:
    """A reader of a trial sees which knowledge about the task was used, and that none was else."""
    errand = ERRANDS[0]
    _, guided = await run_errand(errand, perfect_model(errand), "guided")
    _, plain = await run_errand(errand, perfect_model(errand), "production")
    assert guided.config["declarations"] == {
        "required_tools": ["find_last_order", "create_refund"],
        "requires": {"create_refund": ["find_last_order"]},
        "available_when": [],
    }
    assert "declarations" not in plain.config
