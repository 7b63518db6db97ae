"""Guided runs from the first request to the answer."""

from itertools import pairwise
from typing import Any

import pytest

import surecall
from surecall.base.errors import Code, ConfigError, ToolUseError
from surecall.loop import MemoryJournal, Session, replay_trace
from surecall.models.transport import ScriptedTransport, assistant, tool_call
from surecall.tools import RunProgress

from .toolbox import look, run_script, saved

SCHEMA = {"json_schema": True, "grammar": True}


def first_tools(transport: ScriptedTransport, place: int) -> list[str]:
    """Return the names of the tools that a request offered."""
    tools = transport.requests[place].body.get("tools", [])
    return [tool["function"]["name"] for tool in tools]


def save_text(text: str) -> dict[str, Any]:
    """Save a text."""
    saved.append(text)
    return {"count": len(saved)}


put_after_look = surecall.tool(name="save", effect="write", requires=("look",))(save_text)


async def test_a_tool_is_shown_when_what_it_requires_has_succeeded() -> None:
    """It is masked at first, and offered from the next request on."""
    transport = ScriptedTransport(
        [
            assistant(tool_calls=[tool_call("look", {"what": "x"})]),
            assistant(tool_calls=[tool_call("save", {"text": "y"})]),
            assistant("Done."),
        ]
    )
    result = await run_script([], tools=[look, put_after_look], transport=transport)
    assert first_tools(transport, 0) == ["look"]
    assert first_tools(transport, 1) == ["look", "save"]
    assert saved == ["y"]
    assert [turn.request.hidden_tools for turn in result.trace.turns] == [("save",), (), ()]


async def test_a_reply_that_calls_both_at_once_is_judged_by_the_state_before_it() -> None:
    """The second call of one reply is refused with the reason, in whatever spelling."""
    for name in ("save", " save"):
        transport = ScriptedTransport(
            [
                assistant(
                    tool_calls=[tool_call("look", {}, "c1"), tool_call(name, {"text": "y"}, "c2")]
                ),
                assistant("Done."),
            ]
        )
        result = await run_script([], tools=[look, put_after_look], transport=transport)
        refused = result.trace.turns[0].results[1]
        assert refused.envelope.error_codes == (Code.TOOL_NOT_READY,)
        assert not refused.executed
        assert "before look has succeeded" in refused.envelope.errors[0].message
        assert saved == []
        assert replay_trace(result.trace).same


@pytest.mark.parametrize("takes_progress", [False, True])
async def test_the_application_decides_when_a_tool_is_available(takes_progress: bool) -> None:
    """A function of no argument or of the progress is asked before each request."""

    def from_progress(progress: RunProgress) -> bool:
        return any(result.envelope.data.get("seen") == "key" for result in progress.results)

    seen: list[str] = []
    closed_save = surecall.tool(
        name="save",
        effect="write",
        available_when=from_progress if takes_progress else lambda: bool(seen),
    )(save_text)

    @surecall.tool(effect="read")
    def peek(what: str) -> dict[str, str]:
        """Look for a key."""
        if what == "key":
            seen.append(what)
        return {"seen": what}

    transport = ScriptedTransport(
        [
            assistant(tool_calls=[tool_call("save", {"text": "early"}, "c0")]),
            assistant(tool_calls=[tool_call("peek", {"what": "box"}, "c1")]),
            assistant(tool_calls=[tool_call("peek", {"what": "key"}, "c2")]),
            assistant(tool_calls=[tool_call("save", {"text": "now"}, "c3")]),
            assistant("Done."),
        ]
    )
    result = await run_script(
        [], tools=[peek, closed_save], transport=transport, required_tools=("save",)
    )
    assert [first_tools(transport, place) for place in range(5)] == [
        ["peek"],
        ["peek"],
        ["peek"],
        ["peek", "save"],
        ["peek", "save"],
    ]
    assert saved == ["now"]
    assert replay_trace(result.trace).same


async def test_a_guard_that_fails_keeps_its_tool_closed() -> None:
    """An error in the application never opens a tool."""
    broken = surecall.tool(name="save", available_when=lambda: 1 // 0 > 0)(save_text)
    transport = ScriptedTransport([assistant("Hello.")])
    await run_script([], tools=[look, broken], transport=transport)
    assert first_tools(transport, 0) == ["look"]


async def test_a_forced_choice_holds_a_nudged_turn() -> None:
    """The next step is chosen by name, and all tools that may be called stay in the request."""
    transport = ScriptedTransport(
        [
            assistant("Done."),
            assistant(tool_calls=[tool_call("save", {"text": "y"})]),
            assistant("Done."),
        ]
    )
    result = await run_script(
        [],
        transport=transport,
        required_tools=("save",),
        capabilities={"tool_choices": ["auto", "named"]},
    )
    body = transport.requests[1].body
    assert body["tool_choice"] == {"type": "function", "function": {"name": "save"}}
    assert "tool_choice" not in transport.requests[0].body or (
        transport.requests[0].body["tool_choice"] == "auto"
    )
    assert result.text == "Done."
    assert result.trace.nudges == 1
    assert replay_trace(result.trace).same


def object_reply(text: str) -> Any:
    """Return a reply that is one object."""
    return assistant(text)


async def test_a_model_that_ignores_forced_choices_is_held_from_the_start() -> None:
    """The lesson stays the same from turn to turn; only the schema changes."""
    transport = ScriptedTransport(
        [
            object_reply('{"name": "look", "arguments": {"what": "x"}}'),
            object_reply('{"name": "save", "arguments": {"text": "y"}}'),
            object_reply('{"answer": "Done."}'),
        ]
    )
    result = await run_script(
        [],
        tools=[look, put_after_look],
        transport=transport,
        required_tools=("look", "save"),
        capabilities={**SCHEMA, "tool_choices": ["auto"]},
    )
    assert result.text == "Done."
    bodies = [request.body for request in transport.requests]
    lessons = {body["messages"][0]["content"] for body in bodies}
    assert len(lessons) == 1
    schemas = [body["response_format"]["json_schema"]["schema"] for body in bodies]
    assert schemas[0]["properties"]["name"]["enum"] == ["look"]
    assert [item["properties"]["name"]["enum"] for item in schemas[1]["anyOf"]] == [
        ["look"],
        ["save"],
    ]
    assert list(schemas[2]["properties"]) == ["answer"]
    for shorter, longer in pairwise(bodies):
        *kept, last = shorter["messages"]
        assert longer["messages"][: len(kept)] == kept
        # All but the request, which is repeated behind the last result only.
        assert last["content"].startswith(longer["messages"][len(kept)]["content"])
    assert result.trace.strategy["mode"] == "constrained"
    assert "tool_choice is ignored" in result.trace.strategy["reason"]
    assert replay_trace(result.trace).same


async def test_a_held_model_reads_its_repeated_call_once() -> None:
    """Instead of a second exchange it reads that the call was made, and what comes next."""
    look_again = object_reply('{"name": "look", "arguments": {"what": "x"}}')
    transport = ScriptedTransport(
        [
            look_again,
            look_again,
            object_reply('{"name": "save", "arguments": {"text": "y"}}'),
            object_reply('{"answer": "Done."}'),
        ]
    )
    result = await run_script(
        [],
        tools=[look, put_after_look],
        transport=transport,
        required_tools=("save",),
        capabilities={**SCHEMA, "tool_choices": ["auto"]},
    )
    third = transport.requests[2].body["messages"]
    assert [message["role"] for message in third] == ["system", "user", "assistant", "user"]
    assert third[-1]["content"].endswith(
        'You have already called look with {"what":"x"}; its result is above. '
        "Take from it what the next step needs: call save."
    )
    assert [call.name for call in result.calls] == ["look", "look", "save"]
    assert replay_trace(result.trace).same


async def test_a_held_model_reads_why_its_repeated_call_failed() -> None:
    """The second failure of the same call is told as a reason to change it."""
    asked: list[str] = []

    @surecall.tool(effect="write")
    def save(text: str, place: str = "") -> str:
        """Save a text."""
        asked.append(place)
        if place:
            raise ValueError("there is no such place")
        return "saved"

    wrong = object_reply('{"name": "save", "arguments": {"text": "y", "place": "your_place"}}')
    transport = ScriptedTransport(
        [
            wrong,
            wrong,
            object_reply('{"name": "save", "arguments": {"text": "y"}}'),
            object_reply('{"answer": "Done."}'),
        ]
    )
    result = await run_script(
        [],
        tools=[save],
        transport=transport,
        required_tools=("save",),
        capabilities={**SCHEMA, "tool_choices": ["auto"]},
    )
    last = transport.requests[2].body["messages"][-1]["content"]
    assert "has failed again in the same way." in last
    assert "there is no such place" in last
    assert last.endswith("Call it with other arguments; leave out what you do not know.")
    assert asked == ["your_place", "your_place", ""]
    assert replay_trace(result.trace).same


async def test_a_run_without_what_it_needs_raises_with_what_was_missing() -> None:
    """The error is one of tool use, and carries the names."""
    with pytest.raises(ToolUseError) as raised:
        await run_script(["a", "b", "c"], required_tools=("save", "look"))
    assert raised.value.code == Code.REQUIRED_TOOL_MISSING
    assert raised.value.details["missing"] == ["save", "look"]
    assert raised.value.trace is not None
    assert replay_trace(raised.value.trace).same


async def test_only_successes_of_this_run_count() -> None:
    """What succeeded in the run before does not fulfil what the next one requires."""
    transport = ScriptedTransport(
        [
            assistant(tool_calls=[tool_call("look", {})]),
            assistant("Seen."),
            *[assistant("Done.")] * 3,
        ]
    )
    async with Session(model="m", tools=[look], transport=transport, preset=()) as session:
        await session.run("one", required_tools=["look"])
        with pytest.raises(ToolUseError) as raised:
            await session.run("two", required_tools=["look"])
    assert raised.value.code == Code.REQUIRED_TOOL_MISSING


@pytest.mark.parametrize("name", ["required_tools", "after_required"])
def test_a_session_takes_no_declarations_of_a_run(name: str) -> None:
    """They belong to one prompt."""
    with pytest.raises(ConfigError, match="is for a run"):
        Session(model="m", tools=[look], **{name: None})  # pyright: ignore[reportArgumentType]


async def test_an_enforced_run_is_nudged_once_where_the_reply_can_be_held() -> None:
    """The nudged turn is held to a schema; the next one is a normal one again."""
    transport = ScriptedTransport(
        [
            assistant("I would look."),
            assistant('{"name": "look", "arguments": {}}'),
            assistant("Done."),
        ]
    )
    result = await run_script(
        [], transport=transport, tool_use_mode="enforced", capabilities=SCHEMA
    )
    modes = [turn.request.prompt_mode for turn in result.trace.turns]
    assert modes == ["native", "constrained", "native"]
    assert replay_trace(result.trace).same


async def test_a_broken_attempt_is_followed_by_a_held_turn_while_something_is_missing() -> None:
    """In native mode as well, a call that cannot be read is asked for in a form that can."""
    transport = ScriptedTransport(
        [
            assistant('<tool_call>{"name": "save", "arguments": {"text": '),
            assistant('{"name": "save", "arguments": {"text": "y"}}'),
            assistant('{"answer": "Done."}'),
        ]
    )
    result = await run_script(
        [], transport=transport, required_tools=("save",), capabilities=SCHEMA
    )
    assert saved == ["y"]
    assert result.text == "Done."
    assert replay_trace(result.trace).same


async def test_a_choice_of_a_tool_that_is_not_offered_yet_is_not_sent() -> None:
    """A provider would refuse it; the choice is left to the model until the tool is there."""
    transport = ScriptedTransport(
        [assistant(tool_calls=[tool_call("look", {})]), assistant("Done.")]
    )
    await run_script([], tools=[look, put_after_look], transport=transport, tool_choice="save")
    assert transport.requests[0].body["tool_choice"] == "auto"


async def test_a_guided_run_is_resumed_without_running_anything_twice() -> None:
    """Refusals, repeated reads and closed tools come out of the journal as they went in."""
    opened = surecall.tool(
        name="save", effect="write", available_when=lambda progress: "look" in progress.succeeded
    )(save_text)
    replies = [
        assistant(tool_calls=[tool_call("save", {"text": "early"}, "c1")]),
        assistant(tool_calls=[tool_call("look", {}, "c2")]),
        assistant(tool_calls=[tool_call("look", {}, "c3")]),
        assistant("Done."),
        assistant(tool_calls=[tool_call("save", {"text": "y"}, "c4")]),
        assistant("Done."),
    ]
    journal = MemoryJournal()
    texts: list[str] = []
    for script in (replies, []):
        result = await run_script(
            script, tools=[look, opened], required_tools=("save",), journal=journal
        )
        texts.append(result.text)
        ran = [item.executed for turn in result.trace.turns for item in turn.results]
        assert ran == [False, True, False, True]
    assert texts == ["Done.", "Done."]
    assert saved == ["y"]
