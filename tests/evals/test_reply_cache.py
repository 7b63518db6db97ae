"""Replies that are kept are not asked for again."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.completion_server import CompletionServer
from surecall.base.records import WireReply, WireRequest
from surecall.evals import Experiment, evaluate, plan
from surecall.evals.transports import CachedOpener, CachedTransport
from surecall.models.transport import ScriptedTransport

from .desk import DeskCase, contender, unit

CASES = """
[[cases]]
id = "hello"
prompt = "Say hello."
[cases.checks]
text_contains = ["hello"]
"""


def planned(folder: Path, url: str, *, cache: str | Path | None, trials: int = 2) -> Experiment:
    """Plan trials of one case at a server."""
    (folder / "cases.toml").write_text(CASES)
    suite = f"custom:{folder / 'cases.toml'}"
    return plan(f"m@{url}", suites=suite, trials=trials, cache=cache, concurrency=1)


async def test_the_same_requests_are_sent_once(tmp_path: Path) -> None:
    """A second run takes every reply of the first, trial by trial, and says so."""
    async with CompletionServer(["hello one", "hello two"]) as server:
        arguments = {"store": tmp_path / "evals.db", "new": True}
        experiment = planned(tmp_path, server.url, cache=tmp_path / "cache")
        first = await evaluate(experiment, **arguments)  # type: ignore[arg-type]
        second = await evaluate(experiment, **arguments)  # type: ignore[arg-type]

    assert len(server.bodies) == 2
    assert sorted(row.text for row in first.rows()) == ["hello one", "hello two"]
    assert [row.text for row in second.rows()] == [row.text for row in first.rows()]
    assert first.summary().overall.costs.cached_replies == 0
    assert second.summary().overall.costs.cached_replies == 2
    assert [row.cached_replies for row in second.rows()] == [1, 1]


async def test_another_address_or_no_cache_asks_again(tmp_path: Path) -> None:
    """A reply belongs to the model and the address that gave it."""
    async with CompletionServer(["hello", "hello"]) as one, CompletionServer(["hello"]) as two:
        for server, cache in ((one, tmp_path / "cache"), (two, tmp_path / "cache"), (one, "off")):
            experiment = planned(tmp_path, server.url, cache=cache, trials=1)
            await evaluate(experiment, store=tmp_path / "evals.db", new=True)

    assert (len(one.bodies), len(two.bodies)) == (2, 1)


async def test_a_trial_of_kept_replies_opens_nothing(tmp_path: Path) -> None:
    """A model that is no longer there can still be judged by what it said."""
    opened: list[str] = []

    @asynccontextmanager
    async def open_model(*_: Any) -> AsyncGenerator[ScriptedTransport, None]:
        opened.append("open")
        yield ScriptedTransport(["hello"])
        opened.append("closed")

    opener = CachedOpener(open_model, tmp_path)
    request = WireRequest(path="/chat/completions", body={"model": "m"})
    for _ in range(2):
        async with opener(contender(), unit(), DeskCase()) as transport:
            await transport.send(request)

    assert opened == ["open", "closed"]


async def test_errors_are_not_kept(tmp_path: Path) -> None:
    """A provider that failed once is asked again."""
    from surecall.models.transport import ScriptedReply

    refusal = ScriptedReply(status=400, message="no")
    async with CompletionServer([refusal, "hello"]) as server:
        experiment = planned(tmp_path, server.url, cache=tmp_path / "cache", trials=1)
        runs = [await evaluate(experiment, store=tmp_path / "evals.db", new=True) for _ in range(2)]

    assert [run.info.strict_ok for run in runs] == [0, 1]


async def test_simulated_models_are_never_cached(tmp_path: Path) -> None:
    """They cost nothing, and their chances are part of the trial."""
    experiment = plan("zoo:steady", scenarios="single_call", cache=tmp_path / "cache")
    await evaluate(experiment, store=tmp_path / "evals.db")

    assert not (tmp_path / "cache").exists()


async def test_a_broken_file_is_asked_for_again(tmp_path: Path) -> None:
    """What cannot be read is as good as not there, and is replaced."""
    request = WireRequest(path="/chat/completions", body={"model": "m"})

    async def ask() -> tuple[WireReply, int]:
        async def open_inner() -> ScriptedTransport:
            return ScriptedTransport(["fresh"])

        cached = CachedTransport(open_inner, tmp_path, {"model": "m"})
        return await cached.send(request), cached.hits

    first, _ = await ask()
    (place,) = tmp_path.glob("*/*.reply")
    assert place.stat().st_mode & 0o077 == 0
    assert (await ask())[1] == 1
    place.write_bytes(b"\x00")
    again, hits = await ask()

    assert (again.body, hits) == (first.body, 0)
    assert (await ask())[1] == 1
