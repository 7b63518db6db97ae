"""Every capability decides something that can be seen from outside."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import surecall
from surecall.base.errors import SurecallError
from surecall.base.records import Message, ModelRequest, TextDelta, WireRequest
from surecall.exchange.policy import Policy, Route
from surecall.exchange.prepare import Preparation
from surecall.exchange.request import ClientRequest
from surecall.loop import PromptRunner
from surecall.loop.replay import replay_trace
from surecall.models.profiles import Capabilities, Findings, resolve_capabilities
from surecall.models.transport import ScriptedTransport
from surecall.text import encode
from surecall.wire import find_protocol

from .toolbox import assistant, look, run_script, save, tool_call

NINE = "^[a-zA-Z0-9]{9}$"
HISTORY = (
    {"role": "user", "content": "Look twice."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": f"call_{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            for n in (1, 2)
        ],
    },
    {"role": "tool", "tool_call_id": "call_2", "content": "two"},
    {"role": "tool", "tool_call_id": "call_1", "content": "one"},
    {"role": "system", "content": "Be brief."},
)


async def send(replies: Any, **arguments: Any) -> list[dict[str, Any]]:
    """Run a script and return the bodies that were sent."""
    transport = ScriptedTransport(replies)
    await run_script(replies, transport=transport, **arguments)
    return [request.body for request in transport.requests]


async def send_history(**can: Any) -> list[dict[str, Any]]:
    """Return the messages that are sent of a history with two calls and a system message."""
    (body,) = await send(["done"], history=HISTORY, capabilities=can)
    return body["messages"]


async def code_of(sending: Awaitable[object]) -> str:
    """Return the code of the error that sending ends with."""
    try:
        await sending
    except SurecallError as error:
        return error.code
    return ""


async def most_at_once(value: bool) -> int:
    """Count how many of four calls that only read run at the same time."""
    running: list[int] = []
    most: list[int] = []

    @surecall.tool(effect="read")
    async def wait(number: int) -> int:
        """Wait a little."""
        running.append(number)
        most.append(len(running))
        for _ in range(5):
            await asyncio.sleep(0)
        running.remove(number)
        return number

    calls = [tool_call("wait", {"number": number}) for number in range(4)]
    can = {"supports_parallel_tools": value}
    await run_script([assistant(None, *calls), "done"], tools=[wait], capabilities=can)
    return max(most)


async def has_tools(value: bool) -> bool:
    """Tell whether tools are sent as such."""
    return "tools" in (await send(["done"], capabilities={"supports_tool_use": value}))[0]


async def all_ids_fit(value: str | None) -> bool:
    """Tell whether the ids that are sent match the pattern of nine."""
    messages = await send_history(tool_id_pattern=value)
    ids = [call["id"] for call in messages[1]["tool_calls"]]
    return all(re.fullmatch(NINE, item) for item in ids)


async def last_roles(value: bool) -> str:
    """Return who is said to speak in the last message before the prompt."""
    messages = await send_history(allows_midturn_system=value)
    return next(item["role"] for item in messages if "Be brief." in item["content"])


async def asks_for_object(value: bool) -> str:
    """Return the code of asking for a JSON object."""
    runner = PromptRunner(ScriptedTransport(["{}"]), capabilities=Capabilities(json_object=value))
    asked = (Message("user", "hi"),)
    form = {"type": "json_object"}
    return await code_of(runner.ask(ModelRequest(model="m", messages=asked, response_format=form)))


async def place_of_schema(value: str | None) -> str | None:
    """Return the field that holds the arguments of a tool that the model got wrong twice."""
    wrong = assistant(None, tool_call("save", {"text": 1, "colour": "x"}))
    right = '{"name": "save", "arguments": {"text": "x"}}'
    held = right if value else assistant(None, tool_call("save", {"text": "x"}))
    bodies = await send(
        [wrong, wrong, held, "done"], max_escalations=1, capabilities={"schema_field": value}
    )
    fields = ("response_format", "structured_outputs", "guided_json", "json_schema")
    return next((name for name in fields if name in bodies[2]), None)


async def forces_by_schema(**can: Any) -> bool:
    """Tell whether a forced call is asked for by a schema of the reply."""
    reply = '{"name": "look", "arguments": {"what": "x"}}'
    native = assistant(None, tool_call("look", {"what": "x"}))
    script = [reply if can["json_schema"] and "required" not in can["tool_choices"] else native]
    bodies = await send([*script, "done"], tool_choice="required", capabilities=can)
    return "response_format" in bodies[0]


async def streams(value: bool) -> str:
    """Return the code of a run that streams."""
    return await code_of(send(["done"], stream=True, capabilities={"streaming": value}))


async def large_prompt(window: int | None, reserve: int = 0) -> str:
    """Return the code of sending 800 words."""
    can = {"context_window_tokens": window, "reserved_response_tokens": reserve}
    return await code_of(send(["done"], system="word " * 800, tools=[], capabilities=can))


async def reads_text(value: bool) -> bool:
    """Tell whether a call in text is taken out of it, also in a turn without tools."""
    call = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
    result = await run_script([call], capabilities={"text_formats": value}, tool_choice="none")
    return result.text != call


async def third_is_strict(value: bool) -> bool:
    """Tell whether the request after two refused calls is strict."""
    bad = assistant(None, tool_call("save", {"wrong": 1}))
    good = assistant(None, tool_call("save", {"text": "x"}))
    can = {"strict_tools": value, "tool_choices": ["auto", "named"]}
    bodies = await send([bad, bad, good, "done"], max_escalations=1, capabilities=can)
    return bodies[2]["tools"][0]["function"].get("strict", False)


async def bounds_answer(value: bool) -> bool:
    """Tell whether the schema of a reply bounds the text, as a grammar needs it."""
    can = {"json_schema": True, "grammar": value}
    bodies = await send(['{"answer": "done"}'], tool_prompting="constrained", capabilities=can)
    return "maxLength" in str(bodies[0]["response_format"])


async def streams_tools(value: bool | None) -> tuple[bool, bool]:
    """Tell for a turn with tools and for one without whether it is streamed."""
    found: list[bool] = []
    for mode in ("relaxed", "disabled"):
        can = {"stream_equals_whole": value}
        (body,) = await send(["done"], stream=True, tool_use_mode=mode, capabilities=can)
        found.append(body.get("stream", False))
    return found[0], found[1]


async def echoes(value: bool | None) -> str | None:
    """Return the reasoning that is sent with calls that came without any."""
    messages = await send_history(needs_reasoning_echo=value)
    return messages[1].get("reasoning_content")


async def where_fit_is_asked(**can: Any) -> str:
    """Return the path of the question whether a tool fits."""
    answers = b'{"answers": [{"probability": 1.0}]}'
    if "systemone" in str(can):
        answers = b'{"answers": {"fits": {"noul": 1.0}}}'
    said: Any = answers if can["decision_model"] else "yes"
    call = assistant(None, tool_call("save", {"text": "y"}))
    transport = ScriptedTransport([call, said, "done"])
    await run_script([], transport=transport, fit_gate="on", capabilities=can)
    return transport.requests[1].path


async def asks_about_fit(value: float | None) -> bool:
    """Tell whether the model is asked if a tool fits before it runs."""

    def reply(request: WireRequest) -> Any:
        if "tools" not in request.body:
            return "yes"
        is_first = len(request.body["messages"]) == 1
        return assistant(tool_calls=[tool_call("look", {})]) if is_first else "done"

    transport = ScriptedTransport(reply)
    can = {"fit_threshold": value}
    await run_script([], transport=transport, fit_gate="auto", capabilities=can)
    return any("tools" not in request.body for request in transport.requests)


async def names_limit(value: str) -> dict[str, Any]:
    """Return what the limit of a reply is called."""
    (body,) = await send(["done"], max_tokens=9, capabilities={"max_tokens_field": value})
    return {name: body[name] for name in body if name.startswith("max_")}


async def sends_choice(value: Sequence[str]) -> str | None:
    """Return the choice of tools that is sent although nobody asked for one."""
    (body,) = await send(["done"], capabilities={"unsupported_fields": value})
    return body.get("tool_choice")


@dataclass(frozen=True)
class Decision:
    """Two values of a capability, and what is seen with each."""

    field: str
    observe: Callable[[Any], Awaitable[object]]
    seen: tuple[tuple[Any, object], ...]


def sent_for_clients(body: dict[str, Any], **can: Any) -> dict[str, Any]:
    """Return what the request of a client becomes."""
    route = Route.of(find_protocol("chat_completions"), "m", resolve_capabilities(None, "m", can))
    request = ClientRequest.parse("chat_completions", encode({"model": "m", **body}))
    return json.loads(Preparation(request, route, Policy()).first().body)


async def roles_for_clients(**can: Any) -> str:
    """Return the roles that are sent of a conversation in which many are used."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    roles = ("developer", "user", "tool", "user", "user")
    messages = [{"role": role, "content": role} for role in roles]
    messages[2]["tool_call_id"] = "c"
    messages.insert(2, {"role": "assistant", "content": None, "tool_calls": [call]})  # type: ignore[dict-item]
    sent = sent_for_clients({"messages": messages}, **can)["messages"]
    return " ".join(item["role"] for item in sent if not item.get("tool_calls"))


async def names_for_clients(value: list[str]) -> list[str]:
    """Return which of two members are sent that only some providers know."""
    messages = [{"role": "user", "content": "hi"}]
    body = {"messages": messages, "top_k": 1, "store": True}
    sent = sent_for_clients(body, request_fields=value)
    return sorted(sent.keys() - {"messages", "model"})


DECISIONS = [
    Decision("supports_tool_use", has_tools, ((True, True), (False, False))),
    Decision("supports_parallel_tools", most_at_once, ((True, 4), (False, 1))),
    Decision("tool_id_pattern", all_ids_fit, ((None, False), (NINE, True))),
    Decision("allows_midturn_system", last_roles, ((True, "system"), (False, "user"))),
    Decision("json_object", asks_for_object, ((True, ""), (False, "CAPABILITY_UNSUPPORTED"))),
    Decision(
        "json_schema",
        lambda value: forces_by_schema(json_schema=value, tool_choices=["auto"]),
        ((True, True), (False, False)),
    ),
    Decision("streaming", streams, ((True, ""), (False, "CAPABILITY_UNSUPPORTED"))),
    Decision("context_window_tokens", large_prompt, ((100, ""), (99, "PROMPT_TOO_LARGE"))),
    Decision(
        "reserved_response_tokens",
        lambda value: large_prompt(200, value),
        ((100, ""), (101, "PROMPT_TOO_LARGE")),
    ),
    Decision("text_formats", reads_text, ((True, True), (False, False))),
    Decision("strict_tools", third_is_strict, ((True, True), (False, False))),
    Decision("grammar", bounds_answer, ((True, True), (False, False))),
    Decision(
        "schema_field",
        place_of_schema,
        (
            ("structured_outputs", "structured_outputs"),
            ("json_schema", "json_schema"),
            ("response_format", "response_format"),
            (None, None),
        ),
    ),
    Decision(
        "tool_choices",
        lambda value: forces_by_schema(json_schema=True, tool_choices=value),
        ((["auto", "required"], False), (["auto"], True)),
    ),
    Decision(
        "stream_equals_whole",
        streams_tools,
        ((None, (True, True)), (True, (True, True)), (False, (False, True))),
    ),
    Decision("needs_reasoning_echo", echoes, ((None, None), (False, None), (True, ""))),
    Decision("fit_threshold", asks_about_fit, ((None, False), (0.5, True))),
    Decision(
        "decision_model",
        lambda value: where_fit_is_asked(decision_model=value),
        ((None, "/chat/completions"), ("d", "/decisions")),
    ),
    Decision(
        "decision_path",
        lambda value: where_fit_is_asked(decision_model="d", decision_path=value),
        (("/decisions", "/decisions"), ("/systemone", "/systemone")),
    ),
    Decision(
        "max_tokens_field",
        names_limit,
        (
            ("max_tokens", {"max_tokens": 9}),
            ("max_completion_tokens", {"max_completion_tokens": 9}),
        ),
    ),
    Decision(
        "takes_developer",
        lambda value: roles_for_clients(takes_developer=value),
        ((True, "developer user tool user"), (False, "system user tool user")),
    ),
    Decision(
        "takes_repeated_roles",
        lambda value: roles_for_clients(takes_repeated_roles=value),
        ((True, "system user tool user user"), (False, "system user tool user")),
    ),
    Decision(
        "takes_user_after_result",
        lambda value: roles_for_clients(takes_user_after_result=value),
        ((True, "system user tool user"), (False, "system user tool assistant user")),
    ),
    Decision(
        "request_fields",
        names_for_clients,
        ((["top_k"], ["top_k"]), (["store"], ["store"]), (["*"], ["store", "top_k"])),
    ),
    Decision(
        "unsupported_fields",
        sends_choice,
        (((), "auto"), (["tool_choice"], None)),
    ),
]


def test_every_capability_has_a_decision() -> None:
    """A field that nothing reads is a finding, or goes."""
    assert [decision.field for decision in DECISIONS] == list(Capabilities.__struct_fields__)
    assert all(len({str(seen) for _, seen in item.seen}) > 1 for item in DECISIONS)


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision.field)
async def test_the_value_of_a_capability_can_be_seen(decision: Decision) -> None:
    """What is sent or run differs with it."""
    assert [(value, await decision.observe(value)) for value, _ in decision.seen] == [
        *decision.seen
    ]


@pytest.mark.parametrize("name", Findings.__struct_fields__)
async def test_a_finding_is_kept_and_decides_nothing(name: str) -> None:
    """It is in the trace with its origin; the same is sent with it and without."""
    values: dict[str, Any] = {
        "json_stability": "low",
        "empty_arguments": "blank",
        "false_call_rate": 0.5,
        "fit_separation": 0.9,
    }
    value = values.get(name, False)
    transports = ScriptedTransport(["done"]), ScriptedTransport(["done"])
    plain = await run_script([], transport=transports[0], history=HISTORY)
    found = await run_script(
        [], transport=transports[1], history=HISTORY, capabilities={name: value}
    )
    assert transports[0].requests == transports[1].requests
    assert found.trace.capabilities[name] == value
    assert found.trace.capability_origins[name] == "override"
    assert plain.trace.capabilities.keys() == found.trace.capabilities.keys()
    assert replay_trace(found.trace).same


async def test_text_is_shown_when_a_turn_is_not_streamed() -> None:
    """Who listens to a stream gets the answer in one piece."""
    for text_formats in ("off", "all"):
        events: list[Any] = []
        await run_script(
            ["All is well."],
            stream=True,
            text_formats=text_formats,
            on_event=events.append,
            capabilities={"stream_equals_whole": False},
        )
        shown = [event.text for event in events if isinstance(event, TextDelta)]
        assert shown == ["All is well."]


async def test_what_nobody_said_takes_nothing_away() -> None:
    """Defaults neither split calls, nor move messages, nor hold calls back."""
    (body,) = await send(["done"], history=HISTORY)
    sent = body["messages"]
    assert [item["role"] for item in sent] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "system",
        "user",
    ]
    assert len(sent[1]["tool_calls"]) == 2


async def test_the_record_of_a_run_does_not_change_with_what_a_provider_demands() -> None:
    """History, calls and results have their own ids and shape; the request says what was done."""
    both = assistant(None, tool_call("look", {"what": "a"}, id="x:1"), tool_call("look", id="x:2"))
    transport = ScriptedTransport([both, "done"])
    demands = {
        "supports_parallel_tools": False,
        "allows_midturn_system": False,
        "needs_reasoning_echo": True,
        "tool_id_pattern": NINE,
    }
    result = await run_script(
        [], transport=transport, history=HISTORY, capabilities=demands, tools=[look, save]
    )
    plain = await run_script([both, "done"], history=HISTORY)
    assert result.history == plain.history
    assert [call.id for turn in result.trace.turns for call in turn.calls] == ["x:1", "x:2"]
    assert result.trace.turns[0].request.history_changes == (
        "split_calls",
        "system_to_user",
        "add_empty_reasoning",
        "rewrite_call_ids",
    )
    assert plain.trace.turns[0].request.history_changes == ()
    assert replay_trace(result.trace).same
    first, second = (request.body["messages"] for request in transport.requests)
    assert second[: len(first)] == first
    assert [item["role"] for item in second] == ["user", *["assistant", "tool"] * 2, "user"] + [
        "assistant",
        "tool",
    ] * 2
    assert [item["content"] for item in second if item["role"] == "tool"][:2] == ["one", "two"]
    for call, answer in zip(second[1::2], second[2::2], strict=False):
        if call["role"] == "assistant":
            assert [item["id"] for item in call["tool_calls"]] == [answer["tool_call_id"]]
            assert re.fullmatch(NINE, answer["tool_call_id"])


async def test_an_id_that_comes_back_is_that_of_its_call() -> None:
    """A provider that uses an id again which was made for it is understood as naming ours."""
    transport = ScriptedTransport(["done"])
    await run_script(
        [], transport=transport, history=HISTORY, capabilities={"tool_id_pattern": NINE}
    )
    made = transport.requests[0].body["messages"][1]["tool_calls"][0]["id"]
    again = assistant(None, tool_call("look", id=made))
    script = ScriptedTransport([again, "done"])
    result = await run_script(
        [], transport=script, history=HISTORY, capabilities={"tool_id_pattern": NINE}
    )
    (call,) = result.trace.turns[0].calls
    assert call.id == "call_1__2"
    assert replay_trace(result.trace).same
    ids = [
        item["id"]
        for message in script.requests[1].body["messages"]
        for item in message.get("tool_calls", ())
    ]
    assert ids[0] == made
    assert len(set(ids)) == 3


async def test_taught_calls_are_text_and_need_no_ids() -> None:
    """Only the system message is moved when tools are explained in the prompt."""
    demands = {
        "supports_tool_use": False,
        "supports_parallel_tools": False,
        "allows_midturn_system": False,
        "tool_id_pattern": NINE,
    }
    result = await run_script(["done"], history=HISTORY, capabilities=demands)
    assert result.trace.turns[0].request.history_changes == ("system_to_user",)
