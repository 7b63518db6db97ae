"""Typical use of every top-level name. Never run: only type-checked, in strict mode."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, assert_type

import surecall
from surecall import (
    Code,
    ConfigError,
    FileJournal,
    Message,
    Options,
    OutputResult,
    PausedResult,
    Policy,
    ProviderError,
    RunError,
    RunResult,
    ScriptedTransport,
    Session,
    SqliteStore,
    SurecallError,
    Tool,
    ToolCall,
    ToolCallEnded,
    ToolContext,
    ToolFailed,
    ToolUseError,
    approve,
    assistant,
    async_http_client,
    deny,
    extract,
    http_client,
    mcp_tools,
    openapi_tools,
    read_arguments,
    read_reply,
    read_value,
    repair_json,
    resume,
    run,
    run_sync,
    stream,
    tool,
    tool_call,
    wrap,
)
from surecall.base.errors import OutputError, RunLimitError, SetupError
from surecall.base.records import Envelope, Event, Receipt, ToolResult, Usage
from surecall.loop import OutputForm, RunStream, Trace, load_trace, save_trace
from surecall.loop.directives import Directive, DirectiveRegistry, DirectResult, direct
from surecall.models.config import load_config
from surecall.models.transport import HttpTransport
from surecall.reading import ReplyReader
from surecall.tools import (
    Approval,
    ApprovalDecision,
    ApprovalRequest,
    MemoryApprovals,
    ToolProvider,
    ToolRegistry,
)
from surecall.tools.mcp import McpTools
from surecall.workspace import Workspace, WorkspaceTools


@tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@tool(effect="read", idempotent=True, polling=True, timeout_s=2.5, coerce="off")
async def fetch(url: str, context: ToolContext) -> dict[str, Any]:
    """Fetch a page."""
    if not url:
        raise ToolFailed("NO_URL", "there is no address", hint="Give one.", data={"url": url})
    if "@" in url:
        raise ToolFailed("an address has no user", hint="Leave it out.")
    return {"key": context.idempotency_key, "turn": context.turn, "call": context.call_id}


def plain(name: str) -> str:
    """Say hello."""
    return f"hello {name}"


same: Tool[[int, int], int] = add
assert_type(add(1, b=2), int)
registry = ToolRegistry([add, fetch, plain])


async def allow_reading(request: ApprovalRequest) -> ApprovalDecision:
    """Allow everything that only reads."""
    print(request.arguments_hash, request.arguments, request.call.name)
    return ApprovalDecision(request.spec.effect == "read", "only reading is allowed")


def needs_approval(arguments: dict[str, Any], context: ToolContext) -> bool:
    """Ask about large sums."""
    return arguments["amount"] > 100 and bool(context.run_id)


@tool(effect="external", approval=needs_approval, once=True)
def pay(amount: int, context: ToolContext) -> str:
    """Pay."""
    return context.idempotency_key


async def decide_and_resume(store: MemoryApprovals) -> RunResult:
    """Pause, decide, go on."""
    paused = await run("pay", model="m", tools=[pay], approvals=store)
    for approval in paused.pending:
        assert_type(approval, Approval)
        assert_type(await approve(store, approval.id, by="ada", arguments={"amount": 1}), Approval)
        await deny(store, approval.id, by="ada", reason="no")
    return await resume(paused.run_id, approvals=store, tools=[pay], max_turns=3)


def listen(event: Event) -> None:
    """Print every event."""
    print(event.run_id, event.turn, event.at_ms)
    if isinstance(event, ToolCallEnded):
        print(event.name, event.ok)


async def one_call() -> RunResult:
    """Run one prompt with many arguments."""
    result = await run(
        "What is 1 + 2?",
        model="some-model",
        tools=[add, fetch, plain],
        system="Be brief.",
        history=[Message("user", "before"), {"role": "assistant", "content": "yes"}],
        base_url="http://127.0.0.1:8000/v1",
        api_key="key",
        provider="openrouter",
        preset=["auto"],
        profile=None,
        capabilities={"supports_parallel_tools": True},
        config=load_config(),
        on_event=listen,
        approver=allow_reading,
        journal=FileJournal("run.journal"),
        run_id="run-1",
        tool_use_mode="enforced",
        tool_failure_policy="tolerated",
        tool_allowlist=["add"],
        max_turns=3,
        max_identical_calls=None,
        deadline_s=30,
        stream=True,
        request_overrides={"temperature": 0.0},
    )
    assert_type(result.text, str)
    assert_type(result.usage, Usage)
    assert_type(result.calls, tuple[ToolCall, ...])
    assert_type(result.results, tuple[ToolResult, ...])
    assert_type(result.receipts, tuple[Receipt, ...])
    assert_type(result.history, tuple[Message, ...])
    assert_type(result.cut, bool)
    for item in result.results:
        assert_type(item.envelope, Envelope)
    save_trace(result.trace, "trace.json")
    assert_type(load_trace("trace.json"), Trace)
    assert_type(result.trace, Trace)
    return result


def without_asyncio() -> str:
    """Run from code that is not asynchronous."""
    scripted = ScriptedTransport([assistant(None, tool_call("add", {"a": 1})), "hello"])
    return run_sync("hi", model="m", transport=scripted).text


async def conversation() -> tuple[Message, ...]:
    """Keep history, tools and connection between runs."""
    async with (
        HttpTransport("http://127.0.0.1:8000/v1") as transport,
        Session(model="m", tools=registry, transport=transport, max_turns=5) as session,
    ):
        await session.run("first", max_turns=2)
        await session.run({"role": "user", "content": "second"}, journal="second.journal")
        async for event in session.stream(Message("user", "third"), deadline_s=5):
            assert_type(event, Event)
        print(session.plan("what would be sent?").fingerprint)
        return session.history


async def events() -> AsyncIterator[str]:
    """Read the events of a run as they happen."""
    reading = stream("hi", model="m", tools=[add])
    assert_type(reading, RunStream)
    async for event in reading:
        yield type(event).__name__
    assert_type(reading.result, RunResult)
    await reading.aclose()


async def errors() -> str:
    """Tell the errors apart, from the narrowest to the widest."""
    try:
        await one_call()
    except ToolUseError as error:
        return str(error.details)
    except RunLimitError as error:
        return error.code if error.code == Code.MAX_TURNS_REACHED else str(error.hint)
    except RunError as error:
        return str(len(error.history))
    except ProviderError as error:
        return f"{error.status} {error.retryable} {error.retry_after_s}"
    except ConfigError as error:
        return error.message
    except SetupError as error:
        return str(error.hint)
    except SurecallError as error:
        return error.code
    return ""


def reading_alone() -> None:
    """Read what a model said without running anything."""
    reading = read_reply({"content": None, "tool_calls": []}, finish_reason="stop", used_ids={"a"})
    assert_type(reading.calls, tuple[ToolCall, ...])
    assert_type(reading.receipts, tuple[Receipt, ...])
    arguments = read_arguments('{"a": 1}', {"type": "object"}, max_bytes=1000, ended=True)
    assert_type(arguments.value, dict[str, Any] | None)
    reader = ReplyReader(registry, generation_prompt="<think>")
    for event in reader.feed("Let me see."):
        print(event)
    assert_type(reader.close("stop").calls, tuple[ToolCall, ...])
    assert_type(read_reply("hi", tools=[add.spec]).content, str)
    assert_type(read_value("3", {"type": "integer"}).certainty, Literal["certain", "likely"])
    repaired = repair_json("{'a': 1}", ended=False)
    assert_type(repaired.receipts, tuple[Receipt, ...])
    print(repaired.value, repaired.state, repaired.errors)


async def tools_of_others() -> None:
    """Take tools of servers and documents."""
    server = mcp_tools("python server.py", name="s", pins="pins.json", allow=["a"])
    assert_type(server, McpTools)
    provider: ToolProvider = server
    described = openapi_tools({"openapi": "3.1.0"}, base_url="https://h", auth={"X-Key": "k"})
    await run("hi", model="m", tools=[add, provider, *described])
    await run("hi", model="m", tools=server)
    async with server as tools:
        await run("hi", model="m", tools=tools)


options = Options(tool_use_mode="relaxed", max_turns=3)
assert_type(options.max_tool_calls, int | None)
assert_type(surecall.Options.__struct_fields__, tuple[str, ...])

# What must not type-check; each line needs its suppression, or the checker complains.
Options(tool_use_mode="sometimes")  # pyright: ignore[reportArgumentType]
Session(max_turn=3)  # pyright: ignore[reportCallIssue]
run_sync("hi", model=3)  # pyright: ignore[reportArgumentType]
add("one")  # pyright: ignore[reportArgumentType]
tool(effect="none")  # pyright: ignore[reportArgumentType]


@dataclass
class City:
    """A city."""

    name: str
    people: int


class CityDict(TypedDict):
    """A city."""

    name: str


async def end_with_a_value(session: Session) -> None:
    """The type that is asked for is the type of the value."""
    found = await run("Oslo?", output=City, tools=[add], model="m")
    assert_type(found, OutputResult[City])
    assert_type(found.output, City)
    assert_type((await session.run("Oslo?", output=CityDict)).output, CityDict)
    assert_type((await extract("text", output=list[City], model="m")).output, list[City])
    assert_type((await extract([{"role": "user"}], output={"type": "object"})).output, Any)
    assert_type(run_sync("Oslo?", output=OutputForm(City)).output, City)
    assert_type(await session.run("Oslo?"), RunResult)
    assert_type(await session.resume("r1", max_turns=3), RunResult)
    events = stream("Oslo?", output=City, max_output_retries=2, output_modes=["json_schema"])
    assert_type(events, RunStream[OutputResult[City]])
    assert_type(events.result.output, City)
    try:
        await run("Oslo?", output=City)
    except OutputError as error:
        print(error.details)


async def look_at_the_pause_first(store: MemoryApprovals, maybe: MemoryApprovals | None) -> City:
    """Where a run may wait for an approval, there is no value without asking whether it does."""
    found = await run("Oslo?", output=City, model="m", approvals=store)
    assert_type(found, OutputResult[City] | PausedResult)
    print(found.output)  # type: ignore
    print(found.value)  # type: ignore
    print(run_sync("Oslo?", output=City, approvals=store).output)  # type: ignore
    print((await extract("Oslo", output=City, approvals=maybe)).output)  # type: ignore
    print((await resume("r1", output=City)).output)  # type: ignore
    print((await resume("r1", output={"type": "object"}, approvals=store)).value)  # type: ignore
    print(stream("Oslo?", output=City, approvals=store).result.output)  # type: ignore
    async with Session(model="m", approvals=store) as session:
        print((await session.run("Oslo?", output=City)).output)  # type: ignore
        print((await session.resume("r1", output=City)).output)  # type: ignore
        print(session.stream("Oslo?", output=City).result.output)  # type: ignore
        assert_type(await session.run("Oslo?"), RunResult)
    if isinstance(found, PausedResult):
        assert_type(found.pending, tuple[Approval, ...])
        found = await resume(found.run_id, output=City, approvals=store)
        assert not isinstance(found, PausedResult)
    assert_type(found, OutputResult[City])
    return found.output


async def direct_an_interface() -> Directive | None:
    """Text and directives."""
    types = DirectiveRegistry().add("ui.toast", payload=City)
    result = await direct("hi", directives=types, model="m", on_text=lambda delta: delta.text)
    assert_type(result, DirectResult)
    return result.directives[0] if result.directives else None


def run_with_four_unlike_tools(mixed: list[object]) -> RunResult:
    """A plain list; some checkers know one of unlike tools as `list[object]` only."""
    four = [add, fetch, plain, pay]
    run_sync("hi", tools=mixed)
    return run_sync("hi", tools=four)


class SdkClient:
    """Stands for a client of an SDK."""


def wrap_a_client(client: SdkClient) -> SdkClient:
    """What is wrapped stays what it was."""
    wrapped = wrap(client, policy=Policy(max_requests=1), capabilities={"supports_tool_use": False})
    assert_type(wrapped, SdkClient)
    print(http_client(), async_http_client())
    return wrapped


async def work_on_a_workspace() -> WorkspaceTools:
    """Facts, draft and tools."""
    async with SqliteStore("facts.db") as store:
        workspace = await Workspace.create(store, facts={"a": 1}, draft={})
        await workspace.patch([{"op": "set", "path": "/draft/a", "value": 1}])
        return WorkspaceTools(workspace)
