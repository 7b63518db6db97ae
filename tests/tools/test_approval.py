"""Approval binds the bytes that run."""

import asyncio
import threading
from typing import Any

import pytest

from surecall.base.errors import ToolDefinitionError
from surecall.text import canonical_hash
from surecall.tools import (
    ApprovalDecision,
    ApprovalRequest,
    Dispatcher,
    ToolContext,
    ToolRegistry,
    tool,
)

from .calls import CONTEXT, make_call, shown

ARGUMENTS = {"to": "ann", "amounts": [1, 2.5], "note": {"é": None}}


class Bank:
    def __init__(self) -> None:
        self.ran: list[dict[str, Any]] = []

    @tool(parameters={"type": "object"}, effect="external")
    def pay(self, **arguments: Any) -> str:
        """Pay."""
        self.ran.append(arguments)
        return "paid"

    def dispatcher(self, approver: Any) -> Dispatcher:
        return Dispatcher(ToolRegistry([self.pay]), approver=approver)


async def test_the_hash_is_that_of_what_runs() -> None:
    """The request shows the call, the tool and the context; a yes runs exactly those arguments."""
    bank = Bank()
    requests: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> ApprovalDecision:
        requests.append(request)
        return ApprovalDecision(approved=True)

    call = make_call("pay", ARGUMENTS)
    result = await bank.dispatcher(approve).dispatch(call, CONTEXT)
    assert result.ok
    assert bank.ran == [ARGUMENTS]
    assert requests[0].arguments_hash == canonical_hash(bank.ran[0])
    assert requests[0].arguments == ARGUMENTS
    assert requests[0].call is call
    assert requests[0].spec == bank.pay.spec
    assert requests[0].context == CONTEXT


async def test_changing_the_request_does_not_change_what_runs() -> None:
    """Neither the copy that is shown nor the call on record reaches the tool."""
    bank = Bank()

    async def tamper(request: ApprovalRequest) -> ApprovalDecision:
        request.arguments["to"] = "mallory"
        request.arguments["amounts"].append(9)
        assert request.call.arguments is not None
        request.call.arguments["to"] = "mallory"
        return ApprovalDecision(approved=True)

    await bank.dispatcher(tamper).dispatch(make_call("pay", {"to": "ann", "amounts": []}), CONTEXT)
    assert bank.ran == [{"to": "ann", "amounts": []}]


async def _failing(request: ApprovalRequest) -> ApprovalDecision:
    raise RuntimeError("approval server is down")


async def _no_decision(request: ApprovalRequest) -> Any:
    return True


async def _nearly_true(request: ApprovalRequest) -> Any:
    return ApprovalDecision(approved="yes")  # pyright: ignore[reportArgumentType] - wrong on purpose


async def _denied(request: ApprovalRequest) -> ApprovalDecision:
    return ApprovalDecision(approved=False, reason="Too much money.")


@pytest.mark.parametrize(
    ("approver", "message"),
    [
        (
            _failing,
            "The call was not approved and was not run: the approval could not be obtained.",
        ),
        (
            _no_decision,
            "The call was not approved and was not run: the approval could not be obtained.",
        ),
        (
            _nearly_true,
            "The call was not approved and was not run: the approval could not be obtained.",
        ),
        (_denied, "The call was not approved and was not run: Too much money."),
    ],
)
async def test_anything_but_a_clear_yes_is_a_no(approver: Any, message: str) -> None:
    """The tool is not started, and the model is told not to insist."""
    bank = Bank()
    result = await bank.dispatcher(approver).dispatch(make_call("pay", ARGUMENTS), CONTEXT)
    error = shown(result)["errors"][0]
    assert (error["code"], error["message"]) == ("APPROVAL_DENIED", message)
    assert error["hint"].startswith("Do not repeat this call")
    assert not result.executed
    assert bank.ran == []


async def test_arguments_that_cannot_be_hashed_are_not_approved() -> None:
    """Without a hash there is nothing to bind a decision to."""
    bank = Bank()

    async def approve(request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision(approved=True)

    call = make_call("pay", {"to": float("nan")})
    result = await bank.dispatcher(approve).dispatch(call, CONTEXT)
    assert not result.ok
    assert bank.ran == []


async def test_refused_calls_are_not_put_before_the_approver() -> None:
    """Only a call that would run is worth asking about."""

    async def unexpected(request: ApprovalRequest) -> ApprovalDecision:
        raise AssertionError("asked")

    bank = Bank()
    dispatcher = bank.dispatcher(unexpected)
    unknown = await dispatcher.dispatch(make_call("other"), CONTEXT)
    assert unknown.envelope.error_codes == ("TOOL_NOT_ALLOWED",)
    cut = await dispatcher.dispatch(make_call("pay", {}, state="cut"), CONTEXT)
    assert cut.envelope.error_codes == ("ARGUMENTS_TRUNCATED",)


async def test_cancellation_while_waiting_for_approval_is_passed_on() -> None:
    """The tool does not run afterwards."""
    bank = Bank()
    asked = asyncio.Event()

    async def never(request: ApprovalRequest) -> ApprovalDecision:
        asked.set()
        await asyncio.Event().wait()
        return ApprovalDecision(approved=True)

    task = asyncio.ensure_future(bank.dispatcher(never).dispatch(make_call("pay"), CONTEXT))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bank.ran == []


def _plain(request: ApprovalRequest) -> ApprovalDecision:
    return ApprovalDecision(approved=True)


class _Lawyer:
    async def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision(approved=True)


def _late(request: ApprovalRequest) -> Any:
    return _Lawyer()(request)


@pytest.mark.parametrize("approver", [_plain, _Lawyer(), _late])
async def test_approvers_may_be_plain_or_asynchronous(approver: Any) -> None:
    """A function, an object with an async call, and a function that returns an awaitable."""
    bank = Bank()
    result = await bank.dispatcher(approver).dispatch(make_call("pay", ARGUMENTS), CONTEXT)
    assert result.ok
    assert bank.ran == [ARGUMENTS]


async def test_a_plain_approver_that_waits_does_not_hold_up_the_event_loop() -> None:
    """It runs in a thread: what it waits for may happen in the event loop."""
    bank = Bank()
    loop, answered = asyncio.get_running_loop(), threading.Event()

    def wait(request: ApprovalRequest) -> ApprovalDecision:
        loop.call_soon_threadsafe(answered.set)
        return ApprovalDecision(approved=answered.wait(10))

    result = await bank.dispatcher(wait).dispatch(make_call("pay", ARGUMENTS), CONTEXT)
    assert result.ok


def _raising(request: ApprovalRequest) -> ApprovalDecision:
    raise RuntimeError("no connection to the desk")


async def _unfit(request: ApprovalRequest) -> ApprovalDecision:
    return ApprovalDecision(approved=True, arguments={"to": [1]})


@pytest.mark.parametrize(
    ("approver", "said", "has_traceback"),
    [
        (_raising, "it raised. no connection to the desk", True),
        (_failing, "it raised. approval server is down", True),
        (_no_decision, "it returned True.", False),
        (_nearly_true, "it returned ApprovalDecision", False),
        (_unfit, "its arguments do not fit the tool.", False),
    ],
)
async def test_a_broken_approver_is_reported_to_the_developer(
    approver: Any, said: str, has_traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Logged as an error and noted on the result; the model only reads that it is a no."""
    ran: list[str] = []

    @tool(effect="external")
    def send(to: str) -> None:
        """Send."""
        ran.append(to)

    dispatcher = Dispatcher(ToolRegistry([send]), approver=approver)
    with caplog.at_level("ERROR", logger="surecall.tools"):
        result = await dispatcher.dispatch(make_call("send", {"to": "ann"}), CONTEXT)
    assert result.problem is not None
    assert result.problem.code == "APPROVER_FAILED"
    assert said in result.problem.message
    assert result.envelope.error_codes == ("APPROVAL_DENIED",)
    assert "APPROVER_FAILED" not in result.text
    record = caplog.records[-1]
    assert record.levelname == "ERROR"
    assert bool(record.exc_info) is has_traceback
    assert ran == []


async def test_an_approver_may_change_the_arguments() -> None:
    """What runs is what the person wrote, and the result has a receipt of it."""
    bank = Bank()

    def halve(request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision(approved=True, arguments={**request.arguments, "amounts": [1]})

    result = await bank.dispatcher(halve).dispatch(make_call("pay", ARGUMENTS), CONTEXT)
    assert bank.ran == [{**ARGUMENTS, "amounts": [1]}]
    assert result.arguments == bank.ran[0]
    assert [receipt.rule for receipt in result.receipts] == ["edit_by_person"]
    assert "A person changed the arguments" in result.text


async def test_without_anybody_to_ask_a_tool_that_needs_approval_does_not_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It fails closed, and the developer is told what is missing."""
    ran: list[int] = []

    @tool(approval="required")
    def pay(amount: int) -> None:
        """Pay."""
        ran.append(amount)

    result = await Dispatcher(ToolRegistry([pay])).dispatch(
        make_call("pay", {"amount": 1}), CONTEXT
    )
    assert result.envelope.error_codes == ("APPROVAL_DENIED",)
    assert result.problem is not None
    assert result.problem.code == "APPROVER_MISSING"
    assert ran == []
    assert "nobody can approve it" in caplog.text


def _by_amount(arguments: dict[str, Any]) -> bool:
    return arguments["amount"] > 10


async def _by_amount_and_run(arguments: dict[str, Any], context: ToolContext) -> bool:
    return arguments["amount"] > 10 and context == CONTEXT


def _break(arguments: dict[str, Any]) -> bool:
    raise KeyError("limit")


def _not_a_bool(arguments: dict[str, Any]) -> Any:
    return 0


@pytest.mark.parametrize(
    ("rule", "amount", "runs", "problem"),
    [
        (_by_amount, 10, True, None),
        (_by_amount, 11, False, "APPROVER_MISSING"),
        (_by_amount_and_run, 10, True, None),
        (_by_amount_and_run, 11, False, "APPROVER_MISSING"),
        (_break, 1, False, "APPROVAL_RULE_FAILED"),
        (_not_a_bool, 1, False, "APPROVAL_RULE_FAILED"),
    ],
)
async def test_a_tool_may_decide_which_calls_need_an_approval(
    rule: Any, amount: int, runs: bool, problem: str | None
) -> None:
    """By its arguments and context; a rule that fails asks for an approval."""
    ran: list[int] = []

    @tool(approval=rule)
    def pay(amount: int) -> None:
        """Pay."""
        ran.append(amount)

    dispatcher = Dispatcher(ToolRegistry([pay]))
    result = await dispatcher.dispatch(make_call("pay", {"amount": amount}), CONTEXT)
    assert bool(ran) is runs
    assert (result.problem.code if result.problem else None) == problem


@pytest.mark.parametrize(
    "options", [{"approval": "sometimes"}, {"approval": 3}, {"once": "yes"}, {"once": _failing}]
)
def test_rules_of_a_wrong_kind_are_refused_when_the_tool_is_made(options: Any) -> None:
    """A typo does not make a tool that runs without asking."""
    with pytest.raises(ToolDefinitionError) as raised:
        tool(name="pay", **options)(_plain)
    assert raised.value.code == "INVALID_OPTION"
    with pytest.raises(ToolDefinitionError, match="approvals"):
        tool(approvals="required")(_plain)  # pyright: ignore[reportCallIssue] - wrong on purpose
