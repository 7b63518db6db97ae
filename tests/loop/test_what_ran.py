"""Whoever changed a call: everything shows what ran, what the model sent, and who changed it."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import surecall
from cli.harness import invoke
from surecall import ScriptedTransport
from surecall.base.records import Event, ToolCallEnded, ToolCallStarted
from surecall.cli.run import render_result
from surecall.gateway.dashboard.approvals import show_approval
from surecall.loop import replay_trace, save_trace
from surecall.models.transport import assistant, tool_call
from surecall.reading.transforms import TransformRegistry
from surecall.tools import ApprovalDecision, ApprovalRequest, MemoryApprovals

SENT = {"order": "o1", "amount": 4990}
AMOUNTS = st.integers(min_value=0, max_value=10**6)


class Shop:
    """A tool that needs an approval, what it received, and everything that was told."""

    def __init__(self, sent: Any) -> None:
        self.received: list[dict[str, Any]] = []
        self.heard: list[Event] = []
        self.store = MemoryApprovals()
        self.transforms = TransformRegistry.builtin()
        self.sent = sent

    def make_tool(self, *, approval: bool) -> Any:
        """Return the tool; what it is called with is written down."""

        @surecall.tool(effect="external", approval="required" if approval else None)
        def refund(order: str, amount: int) -> dict[str, Any]:
            """Pay an amount back."""
            self.received.append({"order": order, "amount": amount})
            return {"paid": amount}

        return refund

    async def run(self, *, approval: bool = False, **given: Any) -> surecall.RunResult:
        """Run until the answer, or until the call waits."""
        replies = [assistant(None, tool_call("refund", self.sent, "c1")), "Done."]
        return await surecall.run(
            "Pay it back.",
            model="m",
            preset=(),
            transport=ScriptedTransport(replies),
            tools=[self.make_tool(approval=approval)],
            on_event=self.heard.append,
            transforms=self.transforms,
            **given,
        )


async def change_at_once(shop: Shop, ran: dict[str, Any]) -> surecall.RunResult:
    """The application's approver answers with other arguments."""

    def approve(request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision(approved=True, arguments=ran)

    return await shop.run(approver=approve)


async def change_later(shop: Shop, ran: dict[str, Any]) -> surecall.RunResult:
    """A person decides while the run waits, and another session resumes it."""
    paused = await shop.run(approval=True, approvals=shop.store)
    shop.heard.clear()
    await surecall.approve(shop.store, paused.pending[0].id, by="ada", arguments=ran)
    return await surecall.resume(
        paused.run_id,
        preset=(),
        transport=ScriptedTransport(["Done."]),
        tools=[shop.make_tool(approval=True)],
        approvals=shop.store,
        on_event=shop.heard.append,
    )


async def change_by_transform(shop: Shop, ran: dict[str, Any]) -> surecall.RunResult:
    """A transform of the application replaces the arguments, and says nothing about it."""

    def cap(calls: list[Any]) -> tuple[list[Any], tuple[Any, ...]]:
        return [replace(call, arguments=json.dumps(ran)) for call in calls], ()

    shop.transforms.register("calls", "cap", cap)
    return await shop.run(tool_call_transforms=["cap"])


async def coerce(shop: Shop, ran: dict[str, Any]) -> surecall.RunResult:
    """The model writes a number as text, and it is adapted to the schema."""
    shop.sent = {**ran, "amount": str(ran["amount"])}
    return await shop.run()


Way = Callable[[Shop, dict[str, Any]], Awaitable[surecall.RunResult]]
WAYS: list[tuple[Way, str]] = [
    (change_at_once, "the approver"),
    (change_later, "ada"),
    (change_by_transform, "the transform cap"),
    (coerce, "parse_number_text"),
]


def replayed_page(result: surecall.RunResult) -> str:
    """Return what `surecall replay` prints."""
    with TemporaryDirectory() as folder:
        place = Path(folder, "trace.json")
        save_trace(result.trace, place)
        page = invoke("replay", str(place), COLUMNS="400")
    assert page.exit_code == 0
    return page.output


@pytest.mark.parametrize(("way", "who"), WAYS, ids=lambda item: getattr(item, "__name__", ""))
@given(asked=AMOUNTS, granted=AMOUNTS)
@settings(max_examples=8, deadline=None)
async def test_every_surface_shows_what_the_tool_received(
    way: Way, who: str, asked: int, granted: int
) -> None:
    """Result, print, events, trace, journal, replay and spans agree, and name who changed it."""
    ran = {"order": "o1", "amount": granted}
    shop = Shop({"order": "o1", "amount": asked})
    result = await way(shop, ran)
    assert shop.received == [ran]

    (call,) = result.calls
    started = [event.call for event in shop.heard if isinstance(event, ToolCallStarted)]
    ended = [event.call for event in shop.heard if isinstance(event, ToolCallEnded)]
    told = result.trace.turns[0].calls
    in_history = result.history[1].tool_calls
    for shown in (call, *started, *ended, *told, *in_history):
        assert shown is not None
        assert shown.arguments == ran
        assert shown.receipts == call.receipts
    assert len(started) == len(ended) == 1

    as_json = render_result(result)["calls"][0]
    assert as_json["arguments"] == ran
    sent = json.loads(call.sent) if isinstance(call.sent, str) else call.sent
    assert sent == shop.sent
    printed = repr(result)
    assert f"amount={granted}" in printed
    if sent != ran:
        assert who in call.changed_by
        assert f"(the model sent order='o1', amount={shop.sent['amount']!r}" in printed
        assert who in printed
    assert replay_trace(result.trace, transforms=shop.transforms).same
    if way is not change_by_transform:  # the command does not know transforms of an application
        assert f"amount={granted})" in replayed_page(result)


async def test_the_page_of_approvals_shows_both_versions() -> None:
    """Who looks at a decided approval reads what runs, what was asked, and who changed it."""
    shop = Shop(SENT)
    ran = {**SENT, "amount": 4000}
    await change_later(shop, ran)
    (approval,) = await shop.store.list()
    shown = await show_approval(shop.store, approval.id)  # pyright: ignore[reportArgumentType]
    assert json.loads(shown["preview"]) == ran
    assert json.loads(shown["approved"]) == ran
    assert json.loads(shown["payload"]) == SENT
    assert (shown["decided_by"], shown["outcome"]) == ("ada", "edited")


async def test_a_call_that_nobody_changed_says_nothing() -> None:
    """Print is as short as it was."""
    result = await Shop(SENT).run()
    assert "(the model sent" not in repr(result)
    assert result.calls[0].changed_by == ()
