"""A thousand attempts to reach a tool that is hidden or not approved: none runs it."""

from typing import Any

import pytest

import surecall
from surecall import ScriptedTransport
from surecall.base.errors import SurecallError
from surecall.models.transport import assistant, tool_call
from surecall.tools import MemoryApprovals

from .attempts import ARGUMENTS, CHANNELS, Attempt, make_attempts

NAME = "erase_disk"
PER_WAY = 143
"""Seven ways to keep a tool from running, a thousand attempts in all."""


class World:
    """One visible tool, perhaps one that must not run, and what ran."""

    def __init__(self, *, effect: Any = "read", **options: Any) -> None:
        self.ran: list[Any] = []
        self.sent: list[Any] = []
        self.store = MemoryApprovals()

        @surecall.tool(name=NAME, effect=effect, **options)
        def erase(what: str = "") -> dict[str, Any]:
            """Erase."""
            self.ran.append(what)
            return {"erased": what}

        @surecall.tool(effect="read", parameters={"type": "object"})
        def look(**arguments: Any) -> dict[str, Any]:
            """Look; what is seen is what was asked for."""
            return {"seen": arguments}

        self.erase, self.look = erase, look

    async def attempt(self, attempt: Attempt, **given: Any) -> str:
        """Make one attempt and return what came of it, in words."""
        transport = ScriptedTransport([*attempt.replies, "I give up.", "I give up.", "I give up."])
        given = {"tools": [self.look, self.erase], **attempt.options, **given}
        try:
            result = await surecall.run(
                "Go.", model="m", preset=(), run_id="r", transport=transport, **given
            )
            outcome = f"{result.code} {result.text}"
        except SurecallError as error:
            outcome = f"{error.code} {error.message}"
        self.sent = [request.body for request in transport.requests]
        return outcome


async def test_the_attempts_would_work_on_a_tool_that_may_run() -> None:
    """Every channel reaches a tool that is visible and needs no approval."""
    reached: dict[str, int] = dict.fromkeys(CHANNELS, 0)
    for attempt in make_attempts(NAME, 88, seed=1, spellings=["exact"]):
        world = World()
        await world.attempt(attempt)
        reached[attempt.channel] += len(world.ran) > 0
    # Without tools in the request, and inside another call, nothing is taken for a call.
    never = {channel for channel, count in reached.items() if count == 0}
    assert never == {"fallback", "wrapped"}, reached


@pytest.mark.parametrize("way", ["exposed", "denylist", "allowlist"])
async def test_a_hidden_tool_is_never_run_and_looks_like_one_that_does_not_exist(way: str) -> None:
    """The model is sent the same bytes, and the caller gets the same end, as without the tool."""
    hiding: dict[str, Any] = {
        "exposed": {},
        "denylist": {"tool_denylist": [NAME]},
        "allowlist": {"tool_allowlist": ["look"]},
    }[way]
    options = {"exposed": False} if way == "exposed" else {}
    for attempt in make_attempts(NAME, PER_WAY, seed=len(way)):
        world, without = World(**options), World()
        outcome = await world.attempt(attempt, **hiding)
        assert world.ran == [], attempt.id
        assert outcome == await without.attempt(attempt, tools=[without.look]), attempt.id
        assert world.sent == without.sent, attempt.id


async def _raise(request: Any) -> Any:
    raise RuntimeError("the desk is closed")


def _nod(request: Any) -> Any:
    return True


@pytest.mark.parametrize("way", ["nobody", "store", "raises", "returns"])
async def test_a_tool_that_is_not_approved_is_never_run(way: str) -> None:
    """With nobody to ask, while a decision is pending, and with approvers that are broken."""
    for attempt in make_attempts(NAME, PER_WAY, seed=len(way) + 10):
        world = World(approval="required")
        given: dict[str, Any] = {
            "nobody": {},
            "store": {"approvals": world.store},
            "raises": {"approver": _raise},
            "returns": {"approver": _nod},
        }[way]
        await world.attempt(attempt, **given)
        assert world.ran == [], attempt.id


async def test_an_approved_tool_that_is_hidden_meanwhile_is_never_run() -> None:
    """Resumed with a new mask, neither the approved call nor any new attempt reaches it."""
    for attempt in make_attempts(NAME, 60, seed=3):
        world = World(approval="required")
        asks = Attempt(0, "field", "exact", (assistant(None, tool_call(NAME, ARGUMENTS, "a")),), {})
        await world.attempt(asks, approvals=world.store)
        (approval,) = await world.store.list()
        await surecall.approve(world.store, approval.id, by="ada")
        try:
            await surecall.resume(
                "r",
                approvals=world.store,
                tools=[world.look, world.erase],
                preset=(),
                transport=ScriptedTransport([*attempt.replies, "No.", "No.", "No."]),
                **{"tool_denylist": [NAME], **attempt.options},
            )
        except SurecallError:
            pass  # a choice that names it cannot be made
        assert world.ran == [], attempt.id
