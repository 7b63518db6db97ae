"""Tools put to a model natively, taught in the prompt, or held to a schema."""

from typing import Any

import pytest

import surecall
from surecall import ScriptedTransport
from surecall.base.records import (
    Escalated,
    ModelRequestStarted,
    TextDelta,
    ToolNotExecuted,
    WireRequest,
)
from surecall.loop import MemoryJournal, replay_trace
from surecall.models.transport import ScriptedReply, assistant, tool_call

FENCED = '```json\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n```'
WEAK = {"supports_tool_use": False}


class Desk:
    """Two tools that note how they were called."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @property
    def tools(self) -> list[Any]:
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            self.seen.append((a, b))
            return a + b

        def note(text: str) -> str:
            """Keep a note."""
            self.seen.append(text)
            return "kept"

        return [add, note]


async def ask(replies: Any, desk: Desk, **options: Any) -> tuple[Any, ScriptedTransport]:
    """Run one question of a weak model with the tools of the desk."""
    transport = ScriptedTransport(replies)
    options.setdefault("capabilities", WEAK)
    result = await surecall.run(
        "What is 2 + 3?", model="weak-model", tools=desk.tools, transport=transport, **options
    )
    return result, transport


async def test_a_model_without_tool_use_is_taught_in_the_prompt() -> None:
    """Tools are explained in the system text, with one fenced example, and none are sent."""
    desk = Desk()
    result, transport = await ask([FENCED, "5"], desk)

    assert result.text == "5"
    assert desk.seen == [(2, 3)]
    first = transport.requests[0].body
    assert "tools" not in first
    assert "tool_choice" not in first
    system = first["messages"][0]
    assert system["role"] == "system"
    assert system["content"].count("```json") == 1
    assert '"name":"add"' in system["content"]
    assert result.trace.strategy == {
        "mode": "taught",
        "reason": "supports_tool_use is false (override)",
    }


async def test_a_capable_model_is_never_asked_for_text() -> None:
    """Native prompting sends tools as the provider defines it and adds no words of its own."""
    desk = Desk()
    _, transport = await ask(["5"], desk, capabilities={})

    body = transport.requests[0].body
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["add", "note"]


async def test_history_is_retold_as_text() -> None:
    """Calls and results of earlier turns become text that alternates between the roles."""
    desk = Desk()
    _, transport = await ask([FENCED, "5"], desk, system="Be brief.")

    told = transport.requests[1].body["messages"]
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user"]
    assert told[0]["content"].startswith("Be brief.\n\n# Tools")
    assert told[2]["content"] == '```json\n{"name":"add","arguments":{"a":2,"b":3}}\n```'
    assert told[3]["content"].startswith("Result of add:\n")
    assert '"ok":true' in told[3]["content"]


async def test_words_around_a_taught_call_do_not_hide_it() -> None:
    """Prose beside the block is no reason to lose the call."""
    desk = Desk()
    result, _ = await ask([f"Let me see.\n\n{FENCED}\n\nOne moment.", "5"], desk)

    assert desk.seen == [(2, 3)]
    assert next(receipt.rule for receipt in result.receipts) == "read_call_from_text"


BROKEN = {
    "cut": '```json\n{"name": "add", "arguments": {"a": 2, "b"',
    "not_json": '```json\n{"name": "add", "arguments": call it with two and three}\n```',
    "no_such_tool": '```json\n{"name": "subtract", "arguments": {"a": 2}}\n```',
    "no_arguments_object": '```json\n{"name": "add", "arguments": [[2], [3], [4]]}\n```',
}


@pytest.mark.parametrize("written", BROKEN.values(), ids=BROKEN.keys())
async def test_a_call_that_cannot_be_read_is_told_and_tried_once_more(written: str) -> None:
    """The model is told, sends a good call, and the run goes on; nothing is raised."""
    desk = Desk()
    result, transport = await ask([written, FENCED, "5"], desk)

    assert result.text == "5"
    assert desk.seen == [(2, 3)]
    told = transport.requests[1].body["messages"][-1]
    assert told["role"] == "user"
    assert "not executed" in told["content"] or '"ok":false' in told["content"]


async def test_a_second_broken_call_ends_with_a_visible_notice() -> None:
    """The text is kept, the user sees that no tool ran, and no third request is made."""
    desk = Desk()
    events: list[Any] = []
    broken = BROKEN["no_such_tool"]
    result, transport = await ask([broken, broken], desk, on_event=events.append)

    assert desk.seen == []
    assert result.text.startswith(broken)
    assert result.text.endswith(
        "[tool not executed: 'subtract' is not an available tool. Call one of these: add, note.]"
    )
    assert len(transport.requests) == 2
    notices = [event for event in events if isinstance(event, ToolNotExecuted)]
    assert [notice.retrying for notice in notices] == [True, False]
    assert [defect.code for defect in result.trace.turns[0].defects] == ["TOOL_NOT_EXECUTED"]


async def test_no_retry_when_none_is_allowed() -> None:
    """`max_parse_retries=0` ends with the notice at once."""
    desk = Desk()
    result, transport = await ask([BROKEN["no_such_tool"]], desk, max_parse_retries=0)

    assert "[tool not executed:" in result.text
    assert len(transport.requests) == 1


async def test_json_in_the_answer_of_a_capable_model_is_an_answer() -> None:
    """Only a model that was taught to write calls is told about one that is part of a text."""
    desk = Desk()
    answer = f"Like this:\n{BROKEN['no_such_tool']}"
    result, transport = await ask([answer], desk, capabilities={})

    assert result.text == answer
    assert len(transport.requests) == 1


async def test_one_bad_call_does_not_stop_the_others() -> None:
    """Of two taught calls, the good one runs and the bad one is refused with its reason."""
    desk = Desk()
    bad = '```json\n{"name": "add", "arguments": {"a": "two"}}\n```'
    good = '```json\n{"name": "note", "arguments": {"text": "hello"}}\n```'
    result, _ = await ask([f"{bad}\n\n{good}", "done"], desk)

    assert desk.seen == ["hello"]
    assert [item.ok for item in result.results] == [False, True]
    assert result.results[0].envelope.error_codes[0] == "ARGUMENTS_INVALID"
    assert result.text == "done"


async def test_one_bad_native_call_among_parallel_ones_does_not_stop_the_others() -> None:
    """Arguments that are no JSON are refused; the call beside them runs."""
    desk = Desk()
    calls = assistant(
        tool_calls=[
            tool_call("add", "用两个数字", id="c1"),
            tool_call("add", {"a": 1, "b": 1}, id="c2"),
        ]
    )
    result, transport = await ask([calls, "2"], desk, capabilities={})

    assert desk.seen == [(1, 1)]
    assert result.results[0].envelope.error_codes == ("ARGUMENTS_JSON_PARSE_ERROR",)
    assert [m["role"] for m in transport.requests[1].body["messages"]] == [
        "user",
        "assistant",
        "tool",
        "tool",
    ]


async def test_calls_of_a_weak_model_run_one_after_the_other() -> None:
    """Even tools that only read do not overlap when the model was taught."""
    import asyncio

    running: list[int] = []
    overlaps: list[int] = []

    async def peek(item: int) -> int:
        """Look at an item."""
        running.append(item)
        overlaps.append(len(running))
        await asyncio.sleep(0)
        running.remove(item)
        return item

    tool = surecall.tool(effect="read")(peek)
    blocks = "\n\n".join(
        f'```json\n{{"name": "peek", "arguments": {{"item": {item}}}}}\n```' for item in (1, 2, 3)
    )
    result = await surecall.run(
        "Look.",
        model="weak-model",
        tools=[tool],
        transport=ScriptedTransport([blocks, "seen"]),
        capabilities=WEAK,
    )

    assert [item.ok for item in result.results] == [True, True, True]
    assert overlaps == [1, 1, 1]


CONSTRAINED = {"supports_tool_use": False, "json_schema": True, "grammar": True}


async def test_a_constrained_reply_is_held_to_one_schema() -> None:
    """The schema allows a call of each tool, or an answer, and nothing else."""
    desk = Desk()
    result, transport = await ask(
        ['{"name": "add", "arguments": {"a": 2, "b": 3}}', '{"answer": "It is 5."}'],
        desk,
        capabilities=CONSTRAINED,
        tool_prompting="constrained",
    )

    assert desk.seen == [(2, 3)]
    assert result.text == "It is 5."
    form = transport.requests[0].body["response_format"]
    assert form["type"] == "json_schema"
    choices = form["json_schema"]["schema"]["anyOf"]
    assert [list(choice["properties"]) for choice in choices] == [
        ["name", "arguments"],
        ["name", "arguments"],
        ["answer"],
    ]
    assert "unwrap_answer" in [receipt.rule for receipt in result.receipts]


async def test_a_constrained_reply_that_was_cut_does_not_run() -> None:
    """An object that ends inside is refused, and the model is asked again."""
    desk = Desk()
    cut = ScriptedReply(
        message='{"name": "note", "arguments": {"text": "and so', finish_reason="length"
    )
    whole = '{"name": "note", "arguments": {"text": "short"}}'
    result, _ = await ask(
        [cut, whole, '{"answer": "kept"}'],
        desk,
        capabilities=CONSTRAINED,
        tool_prompting="constrained",
    )

    assert desk.seen == ["short"]
    assert result.results[0].envelope.error_codes == ("ARGUMENTS_TRUNCATED",)
    assert result.text == "kept"


async def test_rules_that_are_switched_off_hold_for_objects_too() -> None:
    """Without reading calls from text, the object is no call and its tool does not run."""
    desk = Desk()
    call = '{"name": "add", "arguments": {"a": 2, "b": 3}}'
    result, _ = await ask(
        [call, '{"answer": "no"}'],
        desk,
        capabilities=CONSTRAINED,
        tool_prompting="constrained",
        disabled_rules=("read_call_from_text",),
    )

    assert desk.seen == []
    assert result.text == "no"


async def test_the_receipts_of_an_object_are_with_its_call() -> None:
    """As for every other call, wherever it was found."""
    result, _ = await ask(
        ['```json\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n```', '{"answer": "5"}'],
        Desk(),
        capabilities=CONSTRAINED,
        tool_prompting="constrained",
    )

    call = result.trace.turns[0].calls[0]
    assert [receipt.rule for receipt in call.receipts] == [
        "read_call_from_text",
        "strip_code_fence",
    ]


@pytest.mark.parametrize("mode", ["taught", "constrained"])
async def test_a_chosen_tool_is_the_only_one_taught(mode: str) -> None:
    """Until it was called; no provider holds a taught model to the choice."""
    desk = Desk()
    replies = ['{"name": "add", "arguments": {"a": 2, "b": 3}}', '{"answer": "5"}']
    _, transport = await ask(
        replies, desk, capabilities=CONSTRAINED, tool_prompting=mode, tool_choice="add"
    )

    first, second = (str(request.body) for request in transport.requests)
    assert '"name":"add"' in first
    assert '"name":"note"' not in first
    assert '"name":"note"' in second


@pytest.mark.parametrize("mode", ["taught", "constrained"])
async def test_no_tool_is_taught_when_none_may_be_called(mode: str) -> None:
    """A lesson would ask for calls that are then ignored."""
    _, transport = await ask(
        ["5"], Desk(), capabilities=CONSTRAINED, tool_prompting=mode, tool_choice="none"
    )

    body = transport.requests[0].body
    assert body["messages"] == [{"role": "user", "content": "What is 2 + 3?"}]
    assert "response_format" not in body


async def test_a_required_call_leaves_no_room_for_an_answer() -> None:
    """Until a call was made, the schema has no branch for an answer."""
    desk = Desk()
    _, transport = await ask(
        ['{"name": "add", "arguments": {"a": 2, "b": 3}}', '{"answer": "5"}'],
        desk,
        capabilities=CONSTRAINED,
        tool_prompting="constrained",
        tool_choice="required",
    )

    first, second = (
        request.body["response_format"]["json_schema"]["schema"]["anyOf"]
        for request in transport.requests
    )
    assert len(first) == 2
    assert len(second) == 3


IGNORES_CHOICES = {"tool_choices": ["auto"], "json_schema": True, "text_formats": True}


@pytest.mark.parametrize("choice", ["required", "add"])
async def test_a_choice_that_is_known_to_be_ignored_is_made_by_a_schema(choice: str) -> None:
    """The first request leaves no other way; once a call was made, tools are native again."""
    desk = Desk()
    result, transport = await ask(
        ['{"name": "add", "arguments": {"a": 2, "b": 3}}', "5"],
        desk,
        capabilities=IGNORES_CHOICES,
        tool_choice=choice,
    )

    assert desk.seen == [(2, 3)]
    first, second = (request.body for request in transport.requests)
    assert first["response_format"]["type"] == "json_schema"
    assert "tools" not in first
    assert "response_format" not in second
    assert second["tool_choice"] == "auto"
    assert [turn.request.prompt_mode for turn in result.trace.turns] == ["constrained", "native"]


async def test_a_choice_of_which_nothing_is_known_is_sent_as_it_is() -> None:
    """What the catalog does not say is not taken for a no."""
    desk = Desk()
    _, transport = await ask(
        [assistant(None, tool_call("add", {"a": 2, "b": 3})), "5"],
        desk,
        capabilities={"json_schema": True},
        tool_choice="required",
    )

    assert transport.requests[0].body["tool_choice"] == "required"


async def test_a_streamed_constrained_answer_is_shown_without_its_object() -> None:
    """Listeners get the words of the answer, never the JSON around them."""
    desk = Desk()
    events: list[Any] = []
    result, _ = await ask(
        ['{"answer": "It is 5."}'],
        desk,
        capabilities=CONSTRAINED,
        tool_prompting="constrained",
        stream=True,
        on_event=events.append,
    )

    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert shown == result.text == "It is 5."


async def test_a_taught_model_that_repeats_itself_is_asked_for_its_answer() -> None:
    """After the warning the next request offers no tools, and tells the history as text."""
    desk = Desk()
    result, transport = await ask([FENCED, FENCED, FENCED, "5"], desk)

    assert result.text == "5"
    last = transport.requests[-1].body
    assert "# Tools" not in last["messages"][0]["content"]
    assert {message["role"] for message in last["messages"]} == {"user", "assistant"}


BAD_CALL = assistant(tool_calls=[tool_call("add", {"a": "two"}, id="x")])
GOOD_CALL = assistant(tool_calls=[tool_call("add", {"a": 2, "b": 3}, id="y")])


async def test_a_tool_refused_twice_is_forced_where_that_is_honoured() -> None:
    """The third request names the tool; the one after it is free again."""
    desk = Desk()
    events: list[Any] = []
    _, transport = await ask(
        [BAD_CALL, BAD_CALL, GOOD_CALL, "5"],
        desk,
        capabilities={"tool_choices": ["auto", "named"]},
        max_escalations=1,
        on_event=events.append,
    )

    choices = [request.body["tool_choice"] for request in transport.requests]
    named = {"type": "function", "function": {"name": "add"}}
    assert choices == ["auto", "auto", named, "auto"]
    escalated = [event for event in events if isinstance(event, Escalated)]
    assert [(event.rung, event.tool, event.step) for event in escalated] == [
        ("forced_choice", "add", 1)
    ]
    assert desk.seen == [(2, 3)]


async def test_the_ladder_goes_on_to_a_schema_and_then_to_teaching() -> None:
    """Each rung is tried once, in order and without a plain request between."""
    desk = Desk()
    bad_object = '{"name": "add", "arguments": {"a": "two"}}'
    replies = [BAD_CALL, BAD_CALL, BAD_CALL, bad_object, FENCED, "5"]
    events: list[Any] = []
    await ask(
        replies,
        desk,
        capabilities={"tool_choices": ["auto", "named"], "json_schema": True},
        max_escalations=3,
        max_identical_calls=None,
        on_event=events.append,
    )

    modes = [event.prompt_mode for event in events if isinstance(event, ModelRequestStarted)]
    assert modes == ["native", "native", "native", "constrained", "taught", "native"]
    assert [event.rung for event in events if isinstance(event, Escalated)] == [
        "forced_choice",
        "schema",
        "taught",
    ]
    assert desk.seen == [(2, 3)]


@pytest.mark.parametrize(
    ("budget", "rungs", "last"), [(2, ["schema", "taught"], FENCED), (1, ["schema"], GOOD_CALL)]
)
async def test_a_step_that_the_provider_refuses_is_passed_over(
    budget: int, rungs: list[str], last: Any
) -> None:
    """The next one follows at once; without one, the request is made as it was before."""
    desk, journal = Desk(), MemoryJournal()
    events: list[Any] = []
    sent: list[dict[str, Any]] = []
    replies = iter([BAD_CALL, BAD_CALL, last, "5"])

    def answer(request: WireRequest) -> Any:
        sent.append(request.body)
        if "structured_outputs" in request.body:
            return ScriptedReply(status=400, message="unknown field structured_outputs")
        return next(replies)

    given: dict[str, Any] = {
        "capabilities": {"schema_field": "structured_outputs"},
        "max_escalations": budget,
        "journal": journal,
    }
    result, _ = await ask(answer, desk, on_event=events.append, **given)
    assert (result.text, desk.seen) == ("5", [(2, 3)])
    assert [event.rung for event in events if isinstance(event, Escalated)] == rungs
    held = sent[2]["structured_outputs"]["json"]
    assert held["properties"]["name"]["enum"] == ["add"]
    assert held["properties"]["arguments"]["required"] == ["a", "b"]
    again, transport = await ask([], desk, **given)
    assert (again.text, desk.seen, transport.requests) == ("5", [(2, 3)], [])


async def test_a_budget_that_is_used_up_leaves_plain_requests() -> None:
    """The model is still told what was wrong, as it was before."""
    desk = Desk()
    events: list[Any] = []
    await ask(
        [BAD_CALL, BAD_CALL, BAD_CALL, BAD_CALL, GOOD_CALL, "5"],
        desk,
        capabilities={"tool_choices": ["auto", "named"], "json_schema": True},
        max_escalations=1,
        max_identical_calls=None,
        on_event=events.append,
    )

    modes = [event.prompt_mode for event in events if isinstance(event, ModelRequestStarted)]
    assert modes == ["native"] * 6
    assert [event.step for event in events if isinstance(event, Escalated)] == [1]
    assert desk.seen == [(2, 3)]


async def test_a_call_that_can_be_used_ends_the_climb() -> None:
    """After it, a tool must be refused twice again before the next rung."""
    desk = Desk()
    again = assistant(tool_calls=[tool_call("add", {"a": 4, "b": 5}, id="z")])
    events: list[Any] = []
    await ask(
        [BAD_CALL, BAD_CALL, GOOD_CALL, BAD_CALL, again, "9"],
        desk,
        capabilities={"tool_choices": ["auto", "named"], "json_schema": True},
        max_escalations=3,
        max_identical_calls=None,
        on_event=events.append,
    )

    assert [event.step for event in events if isinstance(event, Escalated)] == [1]
    assert desk.seen == [(2, 3), (4, 5)]


async def test_a_grammar_alone_is_no_rung() -> None:
    """A schema is only asked for where it is known to be accepted: the request would be refused."""
    desk = Desk()
    bad = '```json\n{"name": "add", "arguments": {"a": "two"}}\n```'
    events: list[Any] = []
    result, _ = await ask(
        [bad, bad, FENCED, "5"],
        desk,
        capabilities={"supports_tool_use": False, "grammar": True},
        max_escalations=2,
        on_event=events.append,
    )

    assert result.text == "5"
    assert [event for event in events if isinstance(event, Escalated)] == []


async def test_nothing_escalates_without_a_budget() -> None:
    """The default keeps asking with the exact errors and changes nothing else."""
    desk = Desk()
    _, transport = await ask(
        [BAD_CALL, BAD_CALL, BAD_CALL, GOOD_CALL, "5"],
        desk,
        capabilities={"tool_choices": ["auto", "named"], "json_schema": True},
        max_identical_calls=None,
    )

    assert {str(request.body["tool_choice"]) for request in transport.requests} == {"auto"}


async def test_strict_prompting_sends_schemas_that_a_provider_can_hold_to() -> None:
    """Every object is closed, every field required, and the tool says that it is strict."""
    desk = Desk()
    _, transport = await ask(
        ["5"], desk, capabilities={"strict_tools": True}, tool_prompting="strict"
    )

    function = transport.requests[0].body["tools"][0]["function"]
    assert function["strict"] is True
    assert function["parameters"]["additionalProperties"] is False
    assert sorted(function["parameters"]["required"]) == ["a", "b"]


async def test_a_model_nobody_serves_with_tools_is_taught_from_then_on() -> None:
    """The refusal costs one rung; the run goes on without native tools."""
    desk = Desk()
    refused = ScriptedReply(
        status=404, body={"error": {"message": "No endpoints found that support tool use."}}
    )
    result, transport = await ask([refused, FENCED, "5"], desk, capabilities={}, max_escalations=1)

    assert result.text == "5"
    assert desk.seen == [(2, 3)]
    assert "tools" in transport.requests[0].body
    assert all("tools" not in request.body for request in transport.requests[1:])


async def test_a_taught_model_is_not_taught_once_more() -> None:
    """The same request would only be refused again."""
    refused = ScriptedReply(
        status=404, body={"error": {"message": "No endpoints found that support tool use."}}
    )
    transport = ScriptedTransport([refused, FENCED, "5"])
    with pytest.raises(surecall.ProviderError, match="NO_TOOL_USE_ENDPOINT"):
        await surecall.run(
            "What is 2 + 3?",
            model="weak-model",
            tools=Desk().tools,
            transport=transport,
            capabilities=WEAK,
            max_escalations=3,
        )
    assert len(transport.requests) == 1


@pytest.mark.parametrize("mode", ["taught", "constrained"])
async def test_roles_alternate_also_when_the_answer_is_asked_for(mode: str) -> None:
    """Templates of small models refuse two messages of the user in a row."""
    empty = "" if mode == "taught" else '{"answer": ""}'
    _, transport = await ask(
        [FENCED, empty, "5"], Desk(), capabilities=CONSTRAINED, tool_prompting=mode
    )

    last = transport.requests[-1].body["messages"]
    assert [message["role"] for message in last] == ["user", "assistant", "user"]
    assert last[-1]["content"].startswith("Result of add:\n")
    assert "final answer" in last[-1]["content"]


@pytest.mark.parametrize("mode", ["taught", "constrained"])
async def test_a_taught_run_replays_from_its_trace(mode: str) -> None:
    """Deciding the run again from what was recorded gives the same calls and the same answer."""
    desk = Desk()
    replies = (
        [BROKEN["no_such_tool"], FENCED, "5"]
        if mode == "taught"
        else ['{"name": "add", "arguments": {"a": 2, "b": 3}}', '{"answer": "5"}']
    )
    result, _ = await ask(replies, desk, capabilities=CONSTRAINED, tool_prompting=mode)

    replay = replay_trace(result.trace)
    assert replay.differences == ()
    assert replay.text == "5"
