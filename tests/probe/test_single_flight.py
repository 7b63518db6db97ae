"""However many want to know, the provider is asked once."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.capability_upstream import CapabilityUpstream, Truth
from surecall.base.records import ErrorDetail
from surecall.models.probe import (
    ESSENTIAL,
    FactKey,
    FactStore,
    ProbeNote,
    ensure_probed,
    probe_model,
)
from surecall.models.probe.runner import Flights, Patience
from surecall.models.transport import HttpTransport, RetryPolicy, ScriptedTransport
from surecall.wire import ChatCompletions

QUICK = Patience(probe_s=5, wait_s=5, poll_s=0.01, remember_s=60)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def ensure(
    upstream: CapabilityUpstream, store: FactStore | None, flights: Flights, **settings: Any
) -> ProbeNote:
    """Make sure that the model of the upstream is known."""
    address = upstream.url + "/v1"
    settings = {"patience": QUICK, **settings}
    async with HttpTransport(upstream.url, retry=RetryPolicy(max_retries=0)) as transport:
        return await ensure_probed(
            transport,
            ChatCompletions(),
            "m",
            store=store,
            address=address,
            flights=flights,
            **settings,
        )


@pytest.fixture
def store(tmp_path: Path) -> FactStore:
    """A store that has no file yet."""
    return FactStore(tmp_path / "facts.sqlite3")


async def test_concurrent_callers_wait_for_one_probe(store: FactStore) -> None:
    """All of them get the same answer, and the provider one request."""
    flights = Flights()
    async with CapabilityUpstream(Truth(delay_s=0.05)) as upstream:
        notes = await asyncio.gather(*(ensure(upstream, store, flights) for _ in range(8)))
        assert upstream.calls == 1
    assert {note.ok for note in notes} == {True}
    assert [note.fields for note in notes] == [{"supports_tool_use": True}] * 8
    assert {note.source for note in notes} == {"asked"}


async def test_a_fresh_answer_is_not_asked_for_again(tmp_path: Path) -> None:
    """Until it expires."""
    clock = Clock()
    store = FactStore(tmp_path / "facts.sqlite3", max_age_s=100, clock=clock)
    async with CapabilityUpstream() as upstream:
        first = await ensure(upstream, store, Flights())
        clock.now += 99
        second = await ensure(upstream, store, Flights())
        assert upstream.calls == 1
        clock.now += 1
        third = await ensure(upstream, store, Flights())
        assert upstream.calls == 2
    assert [note.source for note in (first, second, third)] == ["asked", "stored", "asked"]
    assert second.fields == {"supports_tool_use": True}
    assert second.asked_at == "1970-01-12T13:46:40+00:00"


async def test_a_failed_probe_is_remembered_in_the_process() -> None:
    """The next caller is told at once; after a while it is tried again."""
    clock = Clock()
    flights = Flights(clock)
    async with CapabilityUpstream(Truth(failures={0: 500})) as upstream:
        first = await ensure(upstream, None, flights)
        asked = upstream.calls
        second = await ensure(upstream, None, flights)
        assert upstream.calls == asked
        clock.now += 60
        await ensure(upstream, None, flights)
        assert upstream.calls == 2 * asked
    assert (first.ok, second.ok) == (False, False)
    assert first.error is not None
    assert first.error.code == "UPSTREAM_5XX"
    assert second == first


async def test_a_failed_probe_is_remembered_across_processes(store: FactStore) -> None:
    """Another process, seen as one that shares nothing but the file, does not try at once."""
    async with CapabilityUpstream(Truth(failures={0: 500})) as upstream:
        await ensure(upstream, store, Flights())
        asked = upstream.calls
        note = await ensure(upstream, store, Flights())
        assert upstream.calls == asked
    assert (note.ok, note.error and note.error.code) == (False, "UPSTREAM_5XX")


async def test_an_inconclusive_probe_says_why(store: FactStore) -> None:
    """Nothing is assumed, and the note names the questions that stayed open."""
    async with CapabilityUpstream(Truth(finish="length", counts_tokens=False)) as upstream:
        note = await ensure(upstream, store, Flights())
    assert (note.ok, note.fields) == (False, {})
    assert note.findings == {"tools": "inconclusive", "tools_seen": "inconclusive"}
    assert note.error is not None
    assert note.error.code == "PROBE_INCONCLUSIVE"
    assert "tools: a call came, but the reply reached its token limit" in note.error.message


async def test_a_probe_that_takes_too_long_is_given_up(store: FactStore) -> None:
    """A run is not held up for ever."""
    patience = QUICK._replace(probe_s=0.05)
    async with CapabilityUpstream(Truth(delay_s=0.3)) as upstream:
        note = await ensure(upstream, store, Flights(), patience=patience)
    assert (note.ok, note.error and note.error.code) == (False, "TOTAL_TIMEOUT")


async def test_one_who_leaves_does_not_take_the_answer_from_the_others(store: FactStore) -> None:
    """The probe goes on for those who still wait, though the one who began it is gone."""
    flights = Flights()
    started = asyncio.Event()

    async def answer(_: Any) -> str:
        started.set()
        await asyncio.sleep(0.05)
        return "words"

    transport = ScriptedTransport(answer)

    def join() -> asyncio.Task[ProbeNote]:
        return asyncio.create_task(
            ensure_probed(
                transport, ChatCompletions(), "m", store=store, address="http://h", flights=flights
            )
        )

    first, second = join(), join()
    await started.wait()
    first.cancel()
    note = await second
    assert first.cancelled()
    assert (note.ok, note.fields) == (True, {"supports_tool_use": False})


async def test_the_probe_ends_when_the_last_one_leaves(store: FactStore) -> None:
    """Nobody pays for an answer that nobody waits for, and the lease is given back."""
    started = asyncio.Event()
    before = asyncio.all_tasks()

    async def answer(_: Any) -> str:
        started.set()
        await asyncio.sleep(30)
        return "late"

    transport = ScriptedTransport(answer)
    task = asyncio.create_task(
        ensure_probed(
            transport, ChatCompletions(), "m", store=store, address="http://h", flights=Flights()
        )
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert store.take_lease(FactKey("http://h", "chat_completions", "m"), "b", 60).taken
    assert asyncio.all_tasks() == before


async def test_the_probe_of_another_process_is_waited_for(store: FactStore) -> None:
    """Facts that appear while waiting are used, and nothing is asked."""
    async with CapabilityUpstream() as upstream:
        key = FactKey(upstream.url + "/v1", "chat_completions", "m")
        store.take_lease(key, "other", QUICK.probe_s)
        waiting = asyncio.create_task(ensure(upstream, store, Flights()))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await ensure(upstream, None, Flights())
        async with HttpTransport(upstream.url) as transport:
            await probe_model(
                transport,
                ChatCompletions(),
                "m",
                questions=ESSENTIAL,
                store=store,
                address=key.address,
            )
        store.end_lease(key, "other")
        before = upstream.calls
        note = await waiting
        assert upstream.calls == before
    assert (note.ok, note.source) == (True, "stored")


async def test_a_process_that_holds_the_lease_too_long_is_not_waited_for(store: FactStore) -> None:
    """The run goes on without an answer and says so."""
    patience = QUICK._replace(wait_s=0.05, probe_s=1000)
    async with CapabilityUpstream() as upstream:
        key = FactKey(upstream.url + "/v1", "chat_completions", "m")
        store.take_lease(key, "other", 1000)
        note = await ensure(upstream, store, Flights(), patience=patience)
        assert upstream.calls == 0
    assert (note.ok, note.error and note.error.code) == (False, "TOTAL_TIMEOUT")


async def test_a_store_that_cannot_be_used_does_not_keep_from_asking(tmp_path: Path) -> None:
    """What was found out is used for this run; the note says that it was not kept."""
    (tmp_path / "file").write_text("")
    store = FactStore(tmp_path / "file" / "facts.sqlite3")
    async with CapabilityUpstream() as upstream:
        note = await ensure(upstream, store, Flights())
        assert upstream.calls == 1
    assert (note.ok, note.fields) == (True, {"supports_tool_use": True})
    assert isinstance(note.error, ErrorDetail)
    assert note.error.code == "FACTS_UNUSABLE"


async def test_without_an_address_nothing_is_shared(store: FactStore) -> None:
    """Two transports of one's own are two things to know about."""
    flights = Flights()
    for _ in range(2):
        transport = ScriptedTransport(lambda _: "words")
        note = await ensure_probed(
            transport, ChatCompletions(), "m", store=store, flights=flights, patience=QUICK
        )
        assert (note.ok, note.fields) == (True, {"supports_tool_use": False})
        assert len(transport.requests) == 3
    assert store.all() == ()


PROCESS = """
import asyncio, sys
from surecall.models.probe import FactStore, ensure_probed
from surecall.wire import ChatCompletions
from surecall.models.transport import HttpTransport

async def main(url, place):
    async with HttpTransport(url) as transport:
        note = await ensure_probed(
            transport, ChatCompletions(), "m", store=FactStore(place), address=url
        )
    print(note.ok, note.fields, note.source)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_ask_once_between_them(tmp_path: Path) -> None:
    """The second waits for the first and uses what it found out."""
    place = str(tmp_path / "facts.sqlite3")
    async with CapabilityUpstream(Truth(delay_s=0.3)) as upstream:
        processes = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", PROCESS, upstream.url, place, stdout=subprocess.PIPE
            )
            for _ in range(2)
        ]
        outputs = [(await process.communicate())[0].decode() for process in processes]
        assert upstream.calls == 1
    assert sorted(outputs) == [
        "True {'supports_tool_use': True} asked\n",
        "True {'supports_tool_use': True} stored\n",
    ]
