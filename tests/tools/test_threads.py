"""The threads in which blocking tools run."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest

from surecall.tools.running import Outcome, WorkerThreads

NUMBER: contextvars.ContextVar[int] = contextvars.ContextVar("NUMBER", default=0)


async def _until(fact: Callable[[], bool]) -> None:
    while not fact():
        await asyncio.sleep(0.001)


async def test_a_function_runs_in_another_thread_with_the_callers_context() -> None:
    """Context variables are visible, and changes to them stay in the thread."""
    NUMBER.set(7)

    def read() -> tuple[int, int]:
        before = NUMBER.get()
        NUMBER.set(8)
        return before, threading.get_ident()

    outcome = await WorkerThreads().run(read)
    assert outcome.value[0] == 7
    assert outcome.value[1] != threading.get_ident()
    assert NUMBER.get() == 7


@pytest.mark.parametrize("error", [ValueError("x"), StopIteration(1), SystemExit(3)])
async def test_what_is_raised_is_part_of_the_outcome(error: BaseException) -> None:
    """Also what no future could carry."""

    def fail() -> None:
        raise error

    assert await WorkerThreads().run(fail) == Outcome(None, error)


async def test_a_thread_is_used_again() -> None:
    """Calls one after the other need one thread."""
    threads = WorkerThreads()
    seen = {(await threads.run(threading.get_ident)).value for _ in range(20)}
    assert len(seen) == 1


async def test_no_more_threads_than_the_limit() -> None:
    """Jobs beyond the limit wait for a free thread."""
    threads = WorkerThreads(max_threads=2)
    release = threading.Event()
    started: list[int] = []

    def wait(index: int) -> int:
        started.append(index)
        release.wait(5)
        return index

    tasks = [
        asyncio.ensure_future(threads.run(lambda index=index: wait(index))) for index in range(5)
    ]
    await _until(lambda: len(started) == 2)
    await asyncio.sleep(0.01)
    assert sorted(started) == [0, 1]
    release.set()
    assert [outcome.value for outcome in await asyncio.gather(*tasks)] == [0, 1, 2, 3, 4]


async def test_abandoned_threads_do_not_starve_others() -> None:
    """With its only thread stuck, the next job gets a new one, and the stuck one ends later."""
    threads = WorkerThreads(max_threads=1)
    release = threading.Event()
    started = threading.Event()
    names: list[str] = []

    def hang() -> None:
        names.append(threading.current_thread().name)
        started.set()
        release.wait(5)

    stuck = asyncio.ensure_future(threads.run(hang))
    await _until(started.is_set)
    waiting = asyncio.ensure_future(threads.run(lambda: "ran"))
    await asyncio.sleep(0)
    stuck.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stuck
    assert (await waiting).value == "ran"
    release.set()
    assert (await threads.run(lambda: "again")).value == "again"
    assert names == ["surecall-tool"]


async def test_a_job_given_up_before_it_began_never_runs() -> None:
    """Nothing runs long after its caller has gone."""
    threads = WorkerThreads(max_threads=1)
    release = threading.Event()
    ran: list[str] = []
    busy = asyncio.ensure_future(threads.run(lambda: release.wait(5)))
    queued = asyncio.ensure_future(threads.run(lambda: ran.append("queued")))
    await asyncio.sleep(0)
    queued.cancel()
    with pytest.raises(asyncio.CancelledError):
        await queued
    release.set()
    await busy
    assert (await threads.run(lambda: "next")).value == "next"
    assert ran == []


def test_a_result_after_the_loop_has_closed_is_dropped() -> None:
    """The thread ends quietly."""
    threads = WorkerThreads()
    release = threading.Event()
    ended: list[threading.Thread] = []

    def late() -> None:
        ended.append(threading.current_thread())
        release.wait(5)

    async def give_up() -> None:
        task = asyncio.ensure_future(threads.run(late))
        await _until(lambda: bool(ended))
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(give_up())
    release.set()
    ended[0].join(5)
    assert not ended[0].is_alive()


async def test_without_a_thread_to_be_had_the_caller_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first job fails; with a thread there already, jobs wait for it instead."""
    threads = WorkerThreads()

    def refuse(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            await threads.run(lambda: 1)
    assert (await threads.run(lambda: 2)).value == 2
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        outcomes = await asyncio.gather(*(threads.run(lambda: 3) for _ in range(3)))
    assert [outcome.value for outcome in outcomes] == [3, 3, 3]
