"""The library's front door: one call runs a prompt to its answer."""

import asyncio
from collections.abc import Awaitable
from typing import Any, Unpack, cast

from .result import RunResult
from .run_stream import RunStream
from .session import Prompt, RunArguments, Session, SessionArguments
from .telling import Listener, combine_listeners

__all__ = ["Arguments", "run", "run_sync", "stream"]

_OF_THE_RUN = frozenset({"journal", "run_id"})


class Arguments(SessionArguments, RunArguments, total=False):
    """What `run`, `run_sync` and `stream` take: all of `Session` and `Session.run`."""


async def run(prompt: Prompt, **arguments: Unpack[Arguments]) -> RunResult:
    """Run the prompt to its answer; takes every argument of `Session` and `Session.run`."""
    given = cast("dict[str, Any]", arguments)
    for_run = {name: given.pop(name) for name in _OF_THE_RUN & given.keys()}
    async with Session(**given) as session:
        return await session.run(prompt, **for_run)


def run_sync(prompt: Prompt, **arguments: Unpack[Arguments]) -> RunResult:
    """Do what `run` does from code that is not asynchronous."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run(prompt, **arguments))
    raise RuntimeError("an event loop is running here; use `await surecall.run(...)` instead")


def stream(prompt: Prompt, **arguments: Unpack[Arguments]) -> RunStream:
    """Run the prompt and hand out its events as they happen; takes what `run` takes."""
    given = cast("dict[str, Any]", arguments)
    on_event: Listener | None = given.pop("on_event", None)
    given.setdefault("stream", True)

    def start(listener: Listener) -> Awaitable[RunResult]:
        return run(prompt, on_event=combine_listeners(on_event, listener), **given)

    return RunStream(start)
