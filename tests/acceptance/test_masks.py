"""What is sent is what can be executed."""

from surecall.base.errors import Code
from surecall.base.records import ToolSpec
from surecall.models.transport import assistant, tool_call
from surecall.tools import Tool, tool

from .doors import Door
from .sample_tools import Ledger, call_add


async def test_a_hidden_tool_is_not_sent_and_not_allowed(door: Door, ledger: Ledger) -> None:
    """A tool that is not exposed cannot be called, though it is registered."""
    ran: list[str] = []

    @tool(exposed=False)
    def secret_door() -> None:
        """Open it."""
        ran.append("secret_door")

    result = await door.run(
        [assistant(None, tool_call("secret_door")), "I cannot."], tools=[ledger.add, secret_door]
    )

    assert door.tool_names == ["add"]
    assert ran == []
    assert door.answers[0]["ok"] is False
    assert door.answers[0]["errors"][0]["code"] == Code.TOOL_NOT_ALLOWED
    assert result.results[0].executed is False
    assert result.text == "I cannot."


async def test_a_hidden_tool_is_answered_like_an_unknown_one(door: Door, ledger: Ledger) -> None:
    """The refusal does not give away that the tool exists."""

    @tool(exposed=False)
    def hidden() -> None:
        """Be hidden."""

    both = assistant(None, tool_call("hidden", id="c1"), tool_call("absent", id="c2"))
    await door.run([both, "done"], tools=[ledger.add, hidden])

    first, second = (answer["errors"][0] for answer in door.answers)
    assert first["hint"] == second["hint"]
    assert first["message"].replace("hidden", "absent") == second["message"]


async def test_a_denied_tool_is_not_sent(door: Door, ledger: Ledger) -> None:
    """The denylist takes a tool out of what the model sees."""
    await door.run(["hello"], tools=ledger.tools, tool_denylist=["add"])

    assert door.tool_names == ["note", "fail"]


async def test_a_denied_tool_is_not_executed(door: Door, ledger: Ledger) -> None:
    """A model that calls it anyway is told that it is not available."""
    await door.run([assistant(None, call_add()), "done"], tools=ledger.tools, tool_denylist=["add"])

    assert ledger.ran == []
    assert door.answers[0]["errors"][0]["code"] == Code.TOOL_NOT_ALLOWED


async def test_only_allowed_tools_are_sent_and_executed(door: Door, ledger: Ledger) -> None:
    """With an allowlist every other tool is as good as not there."""
    await door.run(
        [assistant(None, call_add(), tool_call("note", id="c2")), "done"],
        tools=ledger.tools,
        tool_allowlist=["note"],
    )

    assert door.tool_names == ["note"]
    assert ledger.names_ran == ["note"]
    assert [answer["ok"] for answer in door.answers] == [False, True]


async def test_denying_wins_over_allowing(door: Door, ledger: Ledger) -> None:
    """A tool in both lists is denied."""
    await door.run(
        ["hello"], tools=ledger.tools, tool_allowlist=["add", "note"], tool_denylist=["note"]
    )

    assert door.tool_names == ["add"]


async def test_dots_in_a_name_may_stand_for_underscores(door: Door) -> None:
    """A dotted name finds its tool; the history and a receipt show the right name."""

    @tool(effect="read")
    def state_get() -> dict[str, int]:
        """Read the state."""
        return {"n": 1}

    result = await door.run([assistant(None, tool_call("state.get")), "1"], tools=[state_get])

    assert door.answers[0]["ok"] is True
    assert door.answers[0]["tool_name"] == "state_get"
    (sent,) = [call for message in door.messages for call in message.get("tool_calls", ())]
    assert sent["function"]["name"] == "state_get"
    (receipt,) = result.receipts
    assert (receipt.rule, receipt.before, receipt.after) == (
        "resolve_tool_name",
        "state.get",
        "state_get",
    )
    assert result.results[0].name == "state_get"


async def test_an_unknown_tool_lists_the_available_names_closest_first(
    door: Door, ledger: Ledger
) -> None:
    """The model reads what it may call, beginning with what it probably meant."""

    @tool
    def read_file(path: str) -> None:
        """Read a file."""

    @tool
    def write_file(path: str) -> None:
        """Write a file."""

    await door.run(
        [assistant(None, tool_call("file_write", {"path": "x"})), "done"],
        tools=[ledger.add, read_file, write_file],
    )

    error = door.answers[0]["errors"][0]
    assert error["code"] == Code.TOOL_NOT_ALLOWED
    assert "'file_write'" in error["message"]
    assert error["hint"].endswith("write_file, read_file, add.")


async def test_the_list_of_available_names_is_bounded(door: Door) -> None:
    """With many tools, and a name without end, the refusal stays short."""
    tools: list[Tool[..., None]] = [
        Tool(ToolSpec(name=f"tool_number_{n:03}"), lambda: None) for n in range(300)
    ]
    await door.run([assistant(None, tool_call("x" * 100_000)), "done"], tools=tools)

    error = door.answers[0]["errors"][0]
    assert "(and 280 more)" in error["hint"]
    assert len(door.messages[-1]["content"]) < 1500
    assert len(door.messages[1]["tool_calls"][0]["function"]["name"]) <= 64


async def test_a_call_without_a_name_is_refused(door: Door, ledger: Ledger) -> None:
    """An empty name is no tool, and the history stays acceptable."""
    await door.run([assistant(None, tool_call("")), "done"], tools=ledger.tools)

    assert door.answers[0]["errors"][0]["code"] == Code.TOOL_NOT_ALLOWED
    assert door.messages[1]["tool_calls"][0]["function"]["name"] == "unnamed"


async def test_calls_in_a_run_without_tools_are_ignored(door: Door) -> None:
    """A call in a run without tools is not kept; its text is the answer."""
    result = await door.run([assistant("Here you are.", call_add())])

    assert result.text == "Here you are."
    assert result.calls == ()
    summary = result.trace.turns[0].response_summary
    assert summary is not None
    assert summary.ignored_tool_calls_count == 1
