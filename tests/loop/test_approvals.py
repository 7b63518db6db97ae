"""A run that waits for approvals: paused, decided about, and resumed."""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import pytest

import surecall
from surecall import OutputResult, PausedResult, RunResult, ScriptedTransport, ToolContext
from surecall.base.errors import ApprovalError, ConfigError, JournalError
from surecall.base.records import ApprovalFailed, ApprovalRequested, Event, RunEnded, RunStarted
from surecall.loop import MemoryJournal, replay_trace
from surecall.loop.paused import LEASE_S, StoreJournal, unpack_run
from surecall.models.transport import ScriptedReply, assistant, tool_call
from surecall.text import canonical_hash
from surecall.tools import Decision, MemoryApprovals


class Bank:
    """Two tools, one that needs an approval, and what they did."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []
        self.keys: list[str] = []
        self.looks = 0

        @surecall.tool(effect="external", approval="required")
        def pay(to: str, amount: int, context: ToolContext) -> dict[str, Any]:
            """Pay somebody."""
            self.paid.append((to, amount))
            self.keys.append(context.idempotency_key)
            return {"paid": amount}

        @surecall.tool(effect="write")
        def log(text: str = "") -> dict[str, Any]:
            """Write into the log."""
            self.looks += 1
            return {"logged": text}

        self.pay, self.log = pay, log
        self.tools = [pay, log]
        self.store = MemoryApprovals()
        self.events: list[Event] = []
        self.requests: list[dict[str, Any]] = []

    async def start(self, *calls: tuple[str, dict[str, Any]], **given: Any) -> RunResult:
        """Run until the calls of the first reply wait."""
        wanted = calls or (("pay", {"to": "ann", "amount": 5}),)
        entries = [tool_call(name, said, f"c{at}") for at, (name, said) in enumerate(wanted)]
        given = {"tools": self.tools, "approvals": self.store, **given}
        return await surecall.run(
            "Pay Ann.",
            model="m",
            preset=(),
            transport=self._transport([assistant(None, *entries), "never asked"]),
            on_event=self.events.append,
            **given,
        )

    async def resume(self, run_id: str, *replies: Any, **given: Any) -> RunResult:
        """Resume against a script."""
        given = {"tools": self.tools, "approvals": self.store, "preset": (), **given}
        transport = self._transport(list(replies) or ["Done."])
        return await surecall.resume(
            run_id, transport=transport, on_event=self.events.append, **given
        )

    def _transport(self, replies: list[Any]) -> ScriptedTransport:
        waiting = iter(replies)

        def answer(request: Any) -> Any:
            self.requests.append(request.body)
            return next(waiting)

        return ScriptedTransport(answer)

    def told(self) -> list[dict[str, Any]]:
        """Return the results that the model read last."""
        messages = self.requests[-1]["messages"]
        return [msgspec.json.decode(m["content"]) for m in messages if m["role"] == "tool"]


@pytest.fixture
def bank() -> Bank:
    """A bank that has paid nobody."""
    return Bank()


async def test_a_call_that_needs_approval_pauses_the_run(bank: Bank) -> None:
    """The result says what waits; calls beside it run, and nothing more is asked."""
    paused = await bank.start(("pay", {"to": "ann", "amount": 5}), ("log", {"text": "x"}))
    assert (paused.code, paused.text, bank.paid, bank.looks) == ("APPROVAL_PENDING", "", [], 1)
    (approval,) = paused.pending
    assert (approval.name, approval.payload, approval.status) == (
        "pay",
        {"to": "ann", "amount": 5},
        "pending",
    )
    assert approval.digest == canonical_hash(approval.payload)
    assert (approval.run_id, approval.call_id) == (paused.run_id, "c0")
    assert approval.expires_at - approval.created_at == timedelta(hours=24)
    assert await bank.store.list(status="pending") == [approval]
    assert len(bank.requests) == 1
    assert [m.role for m in paused.history] == ["user", "assistant", "tool", "tool"]
    assert [r.envelope.error_codes for r in paused.results] == [("APPROVAL_PENDING",), ()]
    assert paused.trace.error is not None
    assert replay_trace(paused.trace).same


async def test_events_say_what_waits_and_that_the_run_has_not_failed(bank: Bank) -> None:
    """An application can tell people as soon as approval and run are stored."""
    paused = await bank.start(approval_lifetime_s=60)
    asked = next(event for event in bank.events if isinstance(event, ApprovalRequested))
    assert (asked.approval_id, asked.name) == (paused.pending[0].id, "pay")
    assert asked.arguments == {"to": "ann", "amount": 5}
    ended = bank.events[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.ok, ended.code) == (True, "APPROVAL_PENDING")
    assert paused.pending[0].expires_at - paused.pending[0].created_at == timedelta(seconds=60)


async def test_an_approved_call_runs_once_and_the_run_goes_on(bank: Bank) -> None:
    """Results of before are used again; model, system text and options are as they were."""
    paused = await bank.start(
        ("pay", {"to": "ann", "amount": 5}),
        ("log", {"text": "x"}),
        system="Be careful.",
        max_turns=3,
        request_overrides={"temperature": 0.5},
    )
    await surecall.approve(bank.store, paused.pending[0].id, by="ada")
    result = await bank.resume(paused.run_id)
    assert (result.text, result.code, result.pending) == ("Done.", "", ())
    assert (bank.paid, bank.looks) == ([("ann", 5)], 1)
    assert bank.keys == [f"{paused.run_id}/0/c0"]
    body = bank.requests[-1]
    assert (body["model"], body["temperature"]) == ("m", 0.5)
    assert body["messages"][0] == {"role": "system", "content": "Be careful."}
    assert [told["ok"] for told in bank.told()] == [True, True]
    assert result.trace.options.max_turns == 3
    assert (result.turns, result.run_id) == (2, paused.run_id)
    assert replay_trace(result.trace).same
    started = [event for event in bank.events if isinstance(event, RunStarted)]
    assert [event.resumed for event in started] == [False, True]
    assert (await bank.store.get(paused.pending[0].id)).status == "used"


async def test_a_run_that_has_its_answer_is_no_longer_stored(bank: Bank) -> None:
    """It cannot be resumed again."""
    paused = await bank.start()
    await surecall.approve(bank.store, paused.pending[0].id, by="ada")
    await bank.resume(paused.run_id)
    with pytest.raises(ApprovalError) as raised:
        await bank.resume(paused.run_id)
    assert raised.value.code == "APPROVAL_NOT_FOUND"
    assert len(bank.paid) == 1


async def test_the_model_reads_why_a_call_was_denied(bank: Bank) -> None:
    """The reason is what the person wrote."""
    paused = await bank.start()
    await surecall.deny(bank.store, paused.pending[0].id, by="ada", reason="Too much.")
    result = await bank.resume(paused.run_id)
    error = bank.told()[0]["errors"][0]
    assert error["code"] == "APPROVAL_DENIED"
    assert error["message"] == "The call was not approved and was not run: Too much."
    assert (result.text, bank.paid) == ("Done.", [])


async def test_a_person_changes_the_call(bank: Bank) -> None:
    """The model's history shows what ran, and a receipt says who changed what."""
    paused = await bank.start(("log", {"text": "x"}), ("pay", {"to": "ann", "amount": 500}))
    edited = {"to": "ann", "amount": 5}
    decided = await surecall.approve(bank.store, paused.pending[0].id, by="ada", arguments=edited)
    assert decided.digest != decided.approved_digest == canonical_hash(edited)
    result = await bank.resume(paused.run_id)
    assert bank.paid == [("ann", 5)]
    calls = bank.requests[-1]["messages"][1]["tool_calls"]
    assert msgspec.json.decode(calls[1]["function"]["arguments"]) == edited
    assert calls[0]["function"]["arguments"] == '{"text":"x"}'
    assert "A person changed the arguments" in bank.told()[1]["warnings"][0]
    (receipt,) = result.receipts
    assert (receipt.rule, receipt.before, receipt.after) == (
        "edit_by_person",
        {"to": "ann", "amount": 500},
        edited,
    )
    assert "ada" in receipt.why
    assert (result.calls[1].arguments, result.calls[1].changed_by) == (edited, ("ada",))
    assert msgspec.json.decode(result.calls[1].raw) == {"to": "ann", "amount": 500}
    assert result.results[1].arguments == edited
    assert result.history[1].tool_calls[1].arguments == edited
    assert replay_trace(result.trace).same


@pytest.mark.parametrize(
    "edited", [{"to": "ann"}, {"to": "ann", "amount": "much"}, {}, [1], "pay", 3]
)
async def test_changed_arguments_that_do_not_fit_are_not_accepted(bank: Bank, edited: Any) -> None:
    """Nothing is decided, so the person can correct them."""
    paused = await bank.start()
    with pytest.raises(ApprovalError) as raised:
        await surecall.approve(bank.store, paused.pending[0].id, by="ada", arguments=edited)
    assert raised.value.code == "ARGUMENTS_INVALID"
    assert (await bank.store.get(paused.pending[0].id)).status == "pending"


async def test_a_decision_that_skips_the_check_is_checked_before_the_call_runs(bank: Bank) -> None:
    """Whoever writes into the store directly gets past nobody."""
    for edited, digest in (
        ({"to": "ann"}, canonical_hash({"to": "ann"})),
        ({"to": "ann", "amount": 1}, "0" * 64),
        ([], canonical_hash([])),
    ):
        paused = await bank.start()
        decision = Decision(approved=True, by="eve", edited=edited, edited_digest=digest)
        await bank.store.decide(paused.pending[0].id, decision)
        result = await bank.resume(paused.run_id)
        assert bank.told()[0]["errors"][0]["code"] == "APPROVAL_DENIED"
        assert [problem.code for problem in result.problems] == ["APPROVAL_MISMATCH"]
    assert bank.paid == []


async def test_nothing_happens_until_somebody_decides(bank: Bank) -> None:
    """Resumed too early, the run waits again and asks nobody."""
    paused = await bank.start(
        ("pay", {"to": "ann", "amount": 5}), ("pay", {"to": "bob", "amount": 6})
    )
    again = await bank.resume(paused.run_id)
    assert [each.id for each in again.pending] == [each.id for each in paused.pending]
    assert (again.code, bank.paid, len(bank.requests)) == ("APPROVAL_PENDING", [], 1)
    await surecall.approve(bank.store, paused.pending[1].id, by="ada")
    half = await bank.resume(paused.run_id)
    assert (bank.paid, [each.call_id for each in half.pending]) == ([("bob", 6)], ["c0"])
    await surecall.deny(bank.store, paused.pending[0].id, by="ada")
    result = await bank.resume(paused.run_id)
    assert (result.text, bank.paid) == ("Done.", [("bob", 6)])
    assert [told["ok"] for told in bank.told()] == [False, True]
    asked = [event for event in bank.events if isinstance(event, ApprovalRequested)]
    assert len(asked) == 2


async def test_a_run_may_wait_more_than_once(bank: Bank) -> None:
    """A later reply asks for another approval; the trace has every turn."""
    paused = await bank.start()
    await surecall.approve(bank.store, paused.pending[0].id, by="ada")
    second = assistant(None, tool_call("pay", {"to": "bob", "amount": 7}, "c0"))
    waiting = await bank.resume(paused.run_id, second)
    assert [each.payload for each in waiting.pending] == [{"to": "bob", "amount": 7}]
    assert waiting.pending[0].id != paused.pending[0].id
    await surecall.approve(bank.store, waiting.pending[0].id, by="ada")
    result = await bank.resume(paused.run_id)
    assert bank.paid == [("ann", 5), ("bob", 7)]
    assert (result.turns, result.text) == (3, "Done.")
    assert replay_trace(result.trace).same


async def test_an_approval_that_was_used_is_never_used_again(bank: Bank) -> None:
    """A process that died after it used the approval leaves an unknown outcome."""
    paused = await bank.start()
    (approval,) = paused.pending
    await surecall.approve(bank.store, approval.id, by="ada")
    await bank.store.use(approval.id, approval.digest)
    result = await bank.resume(paused.run_id)
    assert bank.told()[0]["errors"][0]["code"] == "OUTCOME_UNKNOWN"
    assert (result.text, bank.paid) == ("Done.", [])


async def test_only_the_first_of_two_that_resume_a_run_goes_on(bank: Bank) -> None:
    """The one that took the run keeps it; the other is told so, and nothing is done twice."""
    paused = await bank.start()
    await surecall.approve(bank.store, paused.pending[0].id, by="ada")
    refused: list[str] = []

    async def interrupt(request: Any) -> Any:
        """Answer the first process only after a second one has tried to resume the run."""
        with pytest.raises(JournalError) as raised:
            await bank.resume(paused.run_id)
        refused.append(raised.value.code)
        return "First."

    result = await surecall.resume(
        paused.run_id,
        tools=bank.tools,
        approvals=bank.store,
        preset=(),
        transport=ScriptedTransport(interrupt),
    )
    assert (result.text, bank.paid, refused) == ("First.", [("ann", 5)], ["JOURNAL_IN_USE"])
    assert all("OUTCOME_UNKNOWN" not in each.envelope.error_codes for each in result.results)
    with pytest.raises(ApprovalError, match="was resumed before, and has ended") as raised:
        await bank.resume(paused.run_id)
    assert raised.value.code == "APPROVAL_NOT_FOUND"


async def test_a_run_is_free_again_when_resuming_it_fails(bank: Bank) -> None:
    """A provider that is away does not lock anybody out, not even for the time of a lease."""
    paused = await bank.start()
    await surecall.approve(bank.store, paused.pending[0].id, by="ada")
    with pytest.raises(surecall.ProviderError):
        await bank.resume(paused.run_id, ScriptedReply(status=401, message="Who are you?"))
    assert unpack_run(await bank.store.load_run(paused.run_id)).holder == ""
    result = await bank.resume(paused.run_id, "Done.")
    assert (result.text, bank.paid) == ("Done.", [("ann", 5)])


async def test_a_run_is_taken_over_only_when_its_lease_has_ended(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was taken over hides nothing of what the other has done: it writes nothing more."""
    paused = await bank.start()
    stored = await bank.store.load_run(paused.run_id)
    first, late = StoreJournal(bank.store, stored), StoreJournal(bank.store, stored)
    await first.claim()
    await first.save()
    with pytest.raises(JournalError):
        await late.claim()
    with pytest.raises(JournalError):
        await StoreJournal(bank.store, await bank.store.load_run(paused.run_id)).claim()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + LEASE_S + 1)
    second = StoreJournal(bank.store, await bank.store.load_run(paused.run_id))
    await second.claim()
    with pytest.raises(JournalError) as raised:
        await first.save()
    assert raised.value.code == "JOURNAL_IN_USE"
    await second.save()
    assert unpack_run(await bank.store.load_run(paused.run_id)).holder == second.state.holder
    await first.stop()
    await second.stop()


@pytest.mark.parametrize("process", ["another-machine 17", ""])
async def test_a_process_that_cannot_be_seen_has_the_run_until_its_lease_ends(
    bank: Bank, monkeypatch: pytest.MonkeyPatch, process: str
) -> None:
    """It is waited for; when it renews its lease meanwhile, it lives and keeps the run."""
    monkeypatch.setattr("surecall.loop.paused.LEASE_S", 0.4)
    paused = await bank.start()

    async def hold() -> StoreJournal:
        journal = StoreJournal(bank.store, await bank.store.load_run(paused.run_id))
        journal.state = msgspec.structs.replace(journal.state, process=process)
        await journal.save()
        return journal

    await hold()
    second = StoreJournal(bank.store, await bank.store.load_run(paused.run_id))
    await second.claim()
    await second.release()

    holder = await hold()
    third = StoreJournal(bank.store, await bank.store.load_run(paused.run_id))
    claiming = asyncio.ensure_future(third.claim())
    await asyncio.sleep(0)
    await holder.save()
    with pytest.raises(JournalError):
        await claiming


def changed_tool(bank: Bank, **change: Any) -> Any:
    """Return the tool that pays, with something about it changed."""
    usual = change.pop("currency", "EUR")

    def pay(to: str, amount: int, currency: str = usual) -> dict[str, Any]:
        """Pay somebody."""
        bank.paid.append((f"{to} {currency}", amount))
        return {"paid": amount}

    return surecall.tool(**{"effect": "external", "approval": "required", **change})(pay)


@pytest.mark.parametrize(
    "change",
    [
        {"currency": "JPY"},
        {"effect": "write"},
        {
            "parameters": {
                "type": "object",
                "properties": {"to": {}, "amount": {"type": "number"}, "currency": {}},
            }
        },
    ],
    ids=["a default", "the effect", "the schema"],
)
async def test_an_approval_is_void_when_the_tool_has_changed(
    bank: Bank, change: dict[str, Any]
) -> None:
    """The run asks again, and says why; what was approved never runs with another meaning."""
    bank.tools = [changed_tool(bank)]
    paused = await bank.start()
    await surecall.approve(bank.store, paused.pending[0].id, by="ada")
    bank.tools = [changed_tool(bank, **change)]
    again = await bank.resume(paused.run_id)
    assert (again.code, bank.paid) == ("APPROVAL_PENDING", [])
    (problem,) = again.problems
    assert problem.code == "APPROVAL_MISMATCH"
    assert paused.pending[0].id in problem.message
    (new,) = again.pending
    assert new.id != paused.pending[0].id
    await surecall.approve(bank.store, new.id, by="ada")
    result = await bank.resume(paused.run_id)
    assert (result.text, len(bank.paid), result.problems) == ("Done.", 1, ())


async def test_a_pending_approval_of_a_changed_tool_is_withdrawn(bank: Bank) -> None:
    """Nobody is left to decide about a call that cannot run any more."""
    bank.tools = [changed_tool(bank)]
    paused = await bank.start()
    bank.tools = [changed_tool(bank, currency="JPY")]
    again = await bank.resume(paused.run_id)
    assert [each.id for each in await bank.store.list(status="pending")] == [again.pending[0].id]
    (old,) = await bank.store.list(status="denied")
    assert (old.id, old.decided_by) == (paused.pending[0].id, "surecall")


async def test_an_approval_that_expired_does_not_run(bank: Bank) -> None:
    """The model reads that nobody approved in time."""
    paused = await bank.start(approval_lifetime_s=1e-6)
    result = await bank.resume(paused.run_id)
    assert bank.told()[0]["errors"][0]["code"] == "APPROVAL_EXPIRED"
    assert (result.text, bank.paid) == ("Done.", [])


async def test_a_tool_that_is_gone_or_hidden_when_the_run_is_resumed_does_not_run(
    bank: Bank,
) -> None:
    """However it was approved; both are refused in the same words."""
    other = Bank()
    hidden = surecall.tool(name="pay", exposed=False)(other.pay.function)
    said: list[Any] = []
    for given in (
        {"tools": [bank.log]},
        {"tool_denylist": ["pay"]},
        {"tool_allowlist": ["log"]},
        {"tools": [bank.log, hidden]},
    ):
        paused = await bank.start()
        await surecall.approve(bank.store, paused.pending[0].id, by="ada")
        await bank.resume(paused.run_id, **given)
        said.append(bank.told()[0])
    assert said[0]["errors"][0]["code"] == "TOOL_NOT_ALLOWED"
    assert said == [said[0]] * 4
    assert bank.paid == other.paid == []


async def test_an_approval_binds_the_name_and_the_arguments(bank: Bank) -> None:
    """A stored run whose call was changed does not run it."""
    for change in (
        {"name": "log", "arguments": {"text": "x"}},
        {"arguments": {"to": "eve", "amount": 5}},
    ):
        paused = await bank.start()
        await surecall.approve(bank.store, paused.pending[0].id, by="ada")
        stored = await bank.store.load_run(paused.run_id)
        document = msgspec.json.decode(stored.state)
        document["run"]["history"][-1]["tool_calls"][0].update(change)
        changed = msgspec.structs.replace(stored, state=msgspec.json.encode(document))
        await bank.store.add((), changed)
        bank.tools = [bank.pay, surecall.tool(name="log", approval="required")(bank.log.function)]
        await bank.resume(paused.run_id)
        assert bank.told()[0]["errors"][0]["code"] == "APPROVAL_DENIED"
    assert (bank.paid, bank.looks) == ([], 0)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b'{"version":2}', b'{"version":1}'])
async def test_a_stored_run_that_cannot_be_read_is_refused(bank: Bank, damage: bytes) -> None:
    """A newer version, or a damaged state: one code, and nothing is run."""
    paused = await bank.start()
    stored = await bank.store.load_run(paused.run_id)
    assert unpack_run(stored).version == 1
    await bank.store.add((), msgspec.structs.replace(stored, state=damage))
    with pytest.raises(ApprovalError) as raised:
        await bank.resume(paused.run_id)
    assert raised.value.code == "PAUSED_RUN_UNREADABLE"


async def test_a_run_is_resumed_only_with_its_store(bank: Bank) -> None:
    """Without one, or with another, nothing is sent."""
    paused = await bank.start()
    with pytest.raises(ConfigError):
        await bank.resume(paused.run_id, approvals=None)
    with pytest.raises(ApprovalError):
        await bank.resume(paused.run_id, approvals=MemoryApprovals())
    assert len(bank.requests) == 1


async def test_a_session_continues_its_conversation(bank: Bank) -> None:
    """While a run waits, the history is as it was; afterwards it has the answer."""
    replies = ScriptedTransport(
        [assistant(None, tool_call("pay", {"to": "ann", "amount": 5}, "c0")), "Paid.", "Bye."]
    )
    async with surecall.Session(
        model="m", preset=(), tools=bank.tools, approvals=bank.store, transport=replies
    ) as session:
        paused = await session.run("Pay Ann.")
        assert session.history == ()
        await surecall.approve(bank.store, paused.pending[0].id, by="ada")
        assert (await session.resume(paused.run_id)).text == "Paid."
        assert [m.role for m in session.history] == ["user", "assistant", "tool", "assistant"]
        assert (await session.run("Thanks.")).text == "Bye."


async def test_with_a_journal_the_same_call_continues_the_run(bank: Bank) -> None:
    """The decision is found in the store; replies and results are those on record."""
    journal = MemoryJournal()
    calls = (("pay", {"to": "ann", "amount": 5}), ("log", {}))
    paused = await bank.start(*calls, journal=journal)
    waiting = await bank.start(*calls, journal=journal)
    assert [each.id for each in waiting.pending] == [paused.pending[0].id]
    await surecall.approve(bank.store, paused.pending[0].id, by="ada")
    bank.requests.clear()
    result = await bank.start(*calls, journal=journal)
    # The script of the test starts anew: its first reply is the next one of the run.
    assert result.pending[0].payload == {"to": "ann", "amount": 5}
    assert (bank.paid, bank.looks, len(bank.requests)) == ([("ann", 5)], 2, 1)


async def test_a_broken_approver_is_an_event_and_a_problem_of_the_run(bank: Bank) -> None:
    """The run goes on; the model reads no more than a no."""

    def broken(request: Any) -> Any:
        raise RuntimeError("no connection")

    result = await surecall.run(
        "Pay Ann.",
        model="m",
        preset=(),
        tools=bank.tools,
        approver=broken,
        approvals=bank.store,
        transport=ScriptedTransport([assistant(None, tool_call("log", {}, "c0")), "Sorry."]),
        on_event=bank.events.append,
    )
    failed = [event for event in bank.events if isinstance(event, ApprovalFailed)]
    assert [(event.code, event.name, event.tool_call_id) for event in failed] == [
        ("APPROVER_FAILED", "log", "c0")
    ]
    assert [problem.code for problem in result.problems] == ["APPROVER_FAILED"]
    assert (result.text, result.pending, bank.looks) == ("Sorry.", (), 0)
    assert "no connection" not in result.history[2].text


async def test_a_likely_call_may_wait_for_an_approval(bank: Bank) -> None:
    """With `likely_calls='approve'` and a store, nobody has to be there at once."""
    odd = ScriptedReply(
        message=assistant(None, tool_call("log", {"text": "x"})), finish_reason="eclipse"
    )
    given: dict[str, Any] = {"tools": bank.tools, "approvals": bank.store, "preset": ()}
    paused = await surecall.run(
        "Log.",
        model="m",
        likely_calls="approve",
        transport=ScriptedTransport([odd]),
        **given,
    )
    assert [each.name for each in paused.pending] == ["log"]
    await surecall.approve(bank.store, paused.pending[0].id, by="ada")
    result = await bank.resume(paused.run_id)
    assert (result.text, bank.looks) == ("Done.", 1)


async def test_equal_calls_run_once_across_a_pause(bank: Bank) -> None:
    """What ran before the pause and after it is answered from the record."""
    sent: list[str] = []

    @surecall.tool(effect="external", once=True)
    def send(to: str) -> dict[str, Any]:
        """Send."""
        sent.append(to)
        return {"sent": to}

    bank.tools = [*bank.tools, send]
    paused = await bank.start(("send", {"to": "ann"}), ("pay", {"to": "ann", "amount": 5}))
    await surecall.approve(bank.store, paused.pending[0].id, by="ada")
    again = assistant(None, tool_call("send", {"to": "ann"}, "d0"))
    result = await bank.resume(paused.run_id, again, "Done.")
    assert (sent, bank.paid) == (["ann"], [("ann", 5)])
    assert "was not run again" in bank.told()[-1]["warnings"][0]
    assert result.text == "Done."


async def test_equal_calls_run_once_across_a_resumed_journal(bank: Bank) -> None:
    """After an unknown outcome the repetition is refused, whatever id it has."""
    sent: list[str] = []

    @surecall.tool(effect="external", once=True)
    def send(to: str) -> dict[str, Any]:
        """Send, and go down with the process the first time."""
        sent.append(to)
        if len(sent) == 1:
            raise SystemExit
        return {"sent": to}

    journal = MemoryJournal()
    replies = [
        assistant(None, tool_call("send", {"to": "ann"}, "c0")),
        assistant(None, tool_call("send", {"to": "ann"}, "c1")),
        "Done.",
    ]
    given: dict[str, Any] = {"model": "m", "preset": (), "tools": [send], "journal": journal}
    with pytest.raises(SystemExit):
        await surecall.run("Go.", transport=ScriptedTransport(replies), **given)
    result = await surecall.run("Go.", transport=ScriptedTransport(replies[1:]), **given)
    codes = [each.envelope.error_codes for each in result.results]
    assert codes == [("OUTCOME_UNKNOWN",), ("OUTCOME_UNKNOWN",)]
    assert sent == ["ann"]


async def test_a_run_without_approvals_sends_the_same_bytes(bank: Bank) -> None:
    """A store that nobody needs changes nothing of what is sent or recorded."""
    call = assistant(None, tool_call("log", {"text": "x"}, "c0"))
    sent: list[Any] = []
    for given in ({}, {"approvals": bank.store}):
        journal, transport = MemoryJournal(), ScriptedTransport([call, "Ok."])
        await surecall.run(
            "Log.",
            model="m",
            preset=(),
            tools=[bank.log],
            transport=transport,
            journal=journal,
            run_id="r",
            **given,
        )
        kinds = [type(record).__name__ for record in journal.records]
        header = journal.records[0]
        sent.append(([request.body for request in transport.requests], kinds, header))
    assert sent[0] == sent[1]
    assert await bank.store.list() == []


# Runs that end with a value


@dataclass
class Receipt:
    """What was paid."""

    to: str
    amount: int


async def test_a_run_with_output_pauses_and_ends_with_its_value(bank: Bank) -> None:
    """Also in another process: nothing but the store and the type is needed."""
    paused = await bank.start(output=Receipt)
    assert (paused.code, bank.paid) == ("APPROVAL_PENDING", [])
    assert isinstance(paused, PausedResult)
    assert repr(paused).startswith("<PausedResult ")
    for name in ("output", "value", "attempts", "certainty", "doubt", "output_mode"):
        with pytest.raises(ApprovalError, match=r"pay waits for a decision") as raised:
            getattr(paused, name)
        assert raised.value.code == "APPROVAL_PENDING"
        assert "isinstance(result, PausedResult)" in str(raised.value.hint)
    assert not hasattr(paused, "outputs")
    again = await bank.resume(paused.run_id, output=Receipt)
    assert ([a.id for a in again.pending], len(bank.requests)) == ([paused.pending[0].id], 1)
    await surecall.approve(bank.store, paused.pending[0].id, by="ann")
    result = await bank.resume(paused.run_id, "Paid.", '{"to": "ann", "amount": 5}', output=Receipt)
    assert isinstance(result, OutputResult)
    assert (result.output, bank.paid) == (Receipt("ann", 5), [("ann", 5)])
    assert [event.code for event in bank.events if isinstance(event, RunEnded)][-1] == ""
    assert replay_trace(result.trace).same


async def test_a_denied_call_still_leads_to_the_value(bank: Bank) -> None:
    """A value that does not fit is asked for again, as in a run that never paused."""
    paused = await bank.start(output=Receipt)
    await surecall.deny(bank.store, paused.pending[0].id, by="ann", reason="Too much.")
    replies = ("Not paid.", '{"to": "ann"}', '{"to": "ann", "amount": 0}')
    result = await bank.resume(paused.run_id, *replies, output=Receipt)
    assert isinstance(result, OutputResult)
    assert (result.output, bank.paid, len(result.attempts)) == (Receipt("ann", 0), [], 2)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [(Receipt, None, "was started with output"), (None, Receipt, "was started without output")],
)
async def test_the_output_of_a_resumed_run_is_the_one_it_had(
    bank: Bank, first: Any, second: Any, said: str
) -> None:
    """A missing or superfluous one is refused, and the run still waits."""
    paused = await bank.start(output=first)
    await surecall.approve(bank.store, paused.pending[0].id, by="ann")
    with pytest.raises(ConfigError, match=said) as refused:
        await bank.resume(paused.run_id, output=second)
    assert refused.value.code == "INVALID_OPTION"
    assert (bank.paid, len(bank.requests)) == ([], 1)
    replies = ("Paid.", '{"to": "ann", "amount": 5}') if first else ("Paid.",)
    result = await bank.resume(paused.run_id, *replies, output=first)
    assert (result.pending, bank.paid) == ((), [("ann", 5)])
