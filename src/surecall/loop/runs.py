"""A session for one run: what most programs call."""

import asyncio
from contextlib import aclosing
from typing import Any, Required, Unpack, cast, overload

from surecall.tools import ApprovalStore

from .output import OutputForm, T, Wanted, make_form
from .paused import load_waiting, unpack_run
from .result import OutputResult, PausedResult, RunResult, RunStream
from .session import (
    DECLARED_FOR_A_RUN,
    ConnectionArguments,
    Prompt,
    RunArguments,
    Session,
    SessionArguments,
    need_store,
    stream_run,
)
from .wording import EXTRACT

_OF_THE_RUN = frozenset({"journal", "run_id"}) | DECLARED_FOR_A_RUN


class UnpausedArguments(ConnectionArguments, RunArguments, total=False):
    """What a run takes that cannot wait for approvals."""

    approvals: None


class PausableArguments(ConnectionArguments, RunArguments, total=False):
    """What a run takes that may wait for approvals."""

    approvals: Required[ApprovalStore]


class Arguments(SessionArguments, RunArguments, total=False):
    """What `run`, `run_sync` and `stream` take: all of `Session` and `Session.run`."""


@overload
async def run(
    prompt: Prompt, *, output: None = None, **arguments: Unpack[Arguments]
) -> RunResult: ...


@overload
async def run(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[UnpausedArguments]
) -> OutputResult[T]: ...


@overload
async def run(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[PausableArguments]
) -> OutputResult[T] | PausedResult: ...


async def run(prompt: Prompt, *, output: Any = None, **arguments: Unpack[Arguments]) -> RunResult:
    """Run the prompt to its answer; takes every argument of `Session` and `Session.run`.

    Without a network, with a reply that is given:

        transport = surecall.ScriptedTransport(["Hello."])
        result = await surecall.run("Hi", model="small", transport=transport)
        result.text  # 'Hello.'
    """
    given = cast("dict[str, Any]", arguments)
    for_run = {name: given.pop(name) for name in _OF_THE_RUN & given.keys()}
    async with aclosing(Session(**given)) as session:
        return await session.run(prompt, output=output, **for_run)


@overload
async def resume(
    run_id: str, *, output: None = None, **arguments: Unpack[SessionArguments]
) -> RunResult: ...


@overload
async def resume(
    run_id: str, *, output: Wanted[T], **arguments: Unpack[SessionArguments]
) -> OutputResult[T] | PausedResult: ...


async def resume(
    run_id: str, *, output: Any = None, **arguments: Unpack[SessionArguments]
) -> RunResult:
    """Continue a run that waits for approvals; takes every argument of `Session`.

    Give it the store and the tools of the run, and its `output` if it had one. Model, messages,
    system text and options are those that the run was started with, unless others are given. In
    this example some names come from the example of `PausedResult`.

        await surecall.approve(store, waiting.id, by="ann")
        result = await surecall.resume(paused.run_id, **wiring)
        result.text  # 'Done.'
    """
    given = cast("dict[str, Any]", arguments)
    stored = await load_waiting(need_store(given.get("approvals")), run_id)
    if given.get("model") is None:
        given["model"] = unpack_run(stored).trace.model
    async with aclosing(Session(**given)) as session:
        return await session.resume(run_id, output=output)


@overload
def run_sync(
    prompt: Prompt, *, output: None = None, **arguments: Unpack[Arguments]
) -> RunResult: ...


@overload
def run_sync(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[UnpausedArguments]
) -> OutputResult[T]: ...


@overload
def run_sync(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[PausableArguments]
) -> OutputResult[T] | PausedResult: ...


def run_sync(prompt: Prompt, *, output: Any = None, **arguments: Unpack[Arguments]) -> RunResult:
    """Do what `run` does from code that is not asynchronous.

    Without a network, with a reply that is given:

        transport = surecall.ScriptedTransport(["Hello."])
        surecall.run_sync("Hi", model="small", transport=transport).text  # 'Hello.'
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run(prompt, output=output, **arguments))
    raise RuntimeError("an event loop is running here; use `await surecall.run(...)` instead")


@overload
def stream(prompt: Prompt, *, output: None = None, **arguments: Unpack[Arguments]) -> RunStream: ...


@overload
def stream(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[UnpausedArguments]
) -> RunStream[OutputResult[T]]: ...


@overload
def stream(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[PausableArguments]
) -> RunStream[OutputResult[T] | PausedResult]: ...


def stream(prompt: Prompt, *, output: Any = None, **arguments: Unpack[Arguments]) -> RunStream:
    """Run the prompt and hand out its events as they happen; takes what `run` takes.

    For example:

        transport = surecall.ScriptedTransport(["Hello."])
        events = surecall.stream("Hi", model="small", transport=transport)
        names = [type(event).__name__ async for event in events]
        names[0], names[-1]  # ('RunStarted', 'RunEnded')
    """
    return stream_run(run, prompt, output, arguments)


@overload
async def extract(
    source: Prompt, *, output: Wanted[T], **arguments: Unpack[UnpausedArguments]
) -> OutputResult[T]: ...


@overload
async def extract(
    source: Prompt, *, output: Wanted[T], **arguments: Unpack[PausableArguments]
) -> OutputResult[T] | PausedResult: ...


async def extract(
    source: Prompt, *, output: Any, **arguments: Unpack[Arguments]
) -> OutputResult[Any] | PausedResult:
    """Read a value out of a text or messages; nothing that is not in them is made up.

        schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        transport = surecall.ScriptedTransport(['{"city": "Rome"}'])
        text = "We met in Rome."
        result = await surecall.extract(text, output=schema, model="small", transport=transport)
        result.output  # {'city': 'Rome'}

    Args:
        source: The text, or messages that hold it.
        output: The value: a dataclass, Struct, TypedDict, pydantic model or other type, a JSON
            schema, or an `OutputForm`.
        arguments: Any argument of `run`; without `system`, the model is told to take everything
            from the text.

    Raises:
        ProviderError: The model could not be asked.
        RunError: No reply was a value that fits; `OutputError` says what was wrong each time.
        SetupError: Something given is wrong.
    """
    given: dict[str, Any] = {"system": EXTRACT, **arguments}
    form: OutputForm[Any] = make_form(output)
    return await run(source, output=form, **given)
