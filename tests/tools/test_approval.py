"""Approval binds the bytes that run."""

import asyncio
from typing import Any

import pytest

from surecall.jsontext import canonical_hash
from surecall.tools import ApprovalDecision, ApprovalRequest, Dispatcher, ToolRegistry, tool

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


def _not_async(request: ApprovalRequest) -> Any:
    return ApprovalDecision(approved=True)


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
            _not_async,
            "The call was not approved and was not run: the approval could not be obtained.",
        ),
        (_nearly_true, "The call was not approved and was not run."),
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
