"""What is sent: options, overrides, tool settings, and what is refused before anything is sent."""

from typing import Any

import pytest

from surecall.base.errors import Code, ConfigError, RequestError
from surecall.models.profiles import RESERVED_REQUEST_KEYS
from surecall.models.transport import assistant
from surecall.tools import tool

from .doors import MODEL, Door
from .sample_tools import Ledger, call_add, calls_add

TWO_CALLS = assistant(None, call_add(2, 3, id="c1"), call_add(4, 5, id="c2"))


async def test_the_body_holds_what_was_asked_and_nothing_else(door: Door, ledger: Ledger) -> None:
    """A plain run sends the model, the messages, the tools and the choice."""
    await door.run(["hello"], "Hi!", tools=[ledger.add])

    body = door.requests[0]
    assert body.keys() == {"model", "messages", "tools", "tool_choice"}
    assert body["model"] == MODEL
    assert body["messages"] == [{"role": "user", "content": "Hi!"}]
    assert body["tool_choice"] == "auto"
    assert door.paths == ["/v1/chat/completions"]


async def test_empty_required_lists_are_removed(door: Door) -> None:
    """Some providers refuse an empty `required`, at any depth; it is not sent."""
    schema = {
        "type": "object",
        "properties": {
            "where": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": [],
            },
            "required": {"type": "array", "items": {"type": "string"}},
        },
        "required": [],
    }

    @tool(parameters=schema)
    def look(**arguments: Any) -> None:
        """Look it up."""

    await door.run(["hello"], tools=[look])

    sent = door.requests[0]["tools"][0]["function"]["parameters"]
    assert "required" not in sent
    assert "required" not in sent["properties"]["where"]
    assert sent["properties"]["required"] == {"type": "array", "items": {"type": "string"}}


async def test_overrides_are_merged_key_by_key(door: Door) -> None:
    """Overrides win over defaults; objects are merged, arrays and scalars replaced."""
    await door.run(
        ["hello"],
        request_defaults={
            "temperature": 0.2,
            "seed": 7,
            "provider": {"order": ["a", "b"], "sort": "price"},
        },
        request_overrides={"temperature": 0.9, "provider": {"order": ["c"]}},
    )

    body = door.requests[0]
    assert body["temperature"] == 0.9
    assert body["seed"] == 7
    assert body["provider"] == {"order": ["c"], "sort": "price"}


async def test_reserved_keys_in_overrides_are_ignored_and_listed(
    door: Door, ledger: Ledger
) -> None:
    """They change nothing of the request, and the trace names each of them."""
    overrides = {
        "model": "other",
        "messages": [],
        "tools": [],
        "tool_choice": "none",
        "response_format": {"type": "json_object"},
        "stream": True,
        "stream_options": {},
        "temperature": 0.5,
    }
    result = await door.run(["hello"], "Hi!", tools=[ledger.add], request_overrides=overrides)

    body = door.requests[0]
    assert body.keys() == {"model", "messages", "tools", "tool_choice", "temperature"}
    assert body["model"] == MODEL
    assert body["messages"] == [{"role": "user", "content": "Hi!"}]
    assert body["tool_choice"] == "auto"
    assert door.tool_names == ["add"]
    assert result.trace.ignored_overrides == (
        "messages",
        "model",
        "response_format",
        "stream",
        "stream_options",
        "tool_choice",
        "tools",
    )


@pytest.mark.parametrize("key", sorted(RESERVED_REQUEST_KEYS))
async def test_reserved_keys_in_defaults_are_refused(door: Door, key: str) -> None:
    """A default for a field that surecall sets itself is a mistake; nothing is sent."""
    with pytest.raises(ConfigError) as failure:
        await door.run([], request_defaults={key: None})

    assert failure.value.code == Code.RESERVED_KEY
    assert key in failure.value.message
    assert door.requests == []


async def test_defaults_go_with_every_request(door: Door, ledger: Ledger) -> None:
    """The second turn, and one without tools, carry the defaults too."""
    await door.run(
        [calls_add(), "", "5"],
        tools=ledger.tools,
        request_defaults={"temperature": 0.1, "max_tokens": 64},
    )

    assert [body["temperature"] for body in door.requests] == [0.1] * 3
    assert [body["max_tokens"] for body in door.requests] == [64] * 3
    assert "tools" not in door.requests[2]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        pytest.param("required", "required", id="required"),
        pytest.param("none", "none", id="none"),
        pytest.param("add", {"type": "function", "function": {"name": "add"}}, id="a tool's name"),
        pytest.param(
            {"type": "function", "function": {"name": "note"}},
            {"type": "function", "function": {"name": "note"}},
            id="the wire's own object",
        ),
    ],
)
async def test_tool_choice_can_be_set(door: Door, ledger: Ledger, choice: Any, sent: Any) -> None:
    """The choice is sent as the wire wants it."""
    await door.run(["hello"], tools=ledger.tools, tool_choice=choice)

    assert door.requests[0]["tool_choice"] == sent


async def test_tool_choice_of_a_tool_that_is_not_there_is_refused(
    door: Door, ledger: Ledger
) -> None:
    """A choice nobody can make is an error with a suggestion, before anything is sent."""
    with pytest.raises(ConfigError) as failure:
        await door.run([], tools=ledger.tools, tool_choice="adds")

    assert failure.value.code == Code.INVALID_OPTION
    assert failure.value.hint is not None
    assert "'add'" in failure.value.hint
    assert door.requests == []


async def test_the_system_text_leads_every_request_and_is_never_stored(
    door: Door, ledger: Ledger
) -> None:
    """It is the first message of each request, and no part of the history."""
    result = await door.run([calls_add(), "5"], tools=ledger.tools, system="Be brief.")

    for body in door.requests:
        assert body["messages"][0] == {"role": "system", "content": "Be brief."}
        assert [m["role"] for m in body["messages"]].count("system") == 1
    assert "system" not in [message.role for message in result.history]


async def test_nothing_is_said_about_parallel_calls_by_default(door: Door, ledger: Ledger) -> None:
    """Unset means that the field is not sent and that no call is ignored."""
    result = await door.run([TWO_CALLS, "done"], tools=ledger.tools)

    assert "parallel_tool_calls" not in door.requests[0]
    assert len(result.calls) == 2


async def test_parallel_true_is_sent_and_caps_nothing(door: Door, ledger: Ledger) -> None:
    """A caller who wants parallel calls says so to the provider."""
    result = await door.run(
        [TWO_CALLS, "done"], tools=ledger.tools, request_overrides={"parallel_tool_calls": True}
    )

    assert door.requests[0]["parallel_tool_calls"] is True
    assert len(result.calls) == 2


@pytest.mark.parametrize("preset", ["openai", "openrouter", "volcano_engine"])
async def test_the_preset_of_a_provider_drops_no_calls(
    door: Door, ledger: Ledger, preset: str
) -> None:
    """The field is not sent, and every call of the reply runs."""
    result = await door.run([TWO_CALLS, "done"], tools=ledger.tools, preset=preset)

    assert "parallel_tool_calls" not in door.requests[0]
    assert len(result.calls) == 2
    assert result.problems == ()


async def test_the_preset_of_the_original_experiment_takes_one_call(
    door: Door, ledger: Ledger
) -> None:
    """It sends false and caps the turn at one; trace, problems and print say who set it."""
    result = await door.run([TWO_CALLS, "done"], tools=ledger.tools, preset="original")

    assert door.requests[0]["parallel_tool_calls"] is False
    assert len(result.calls) == 1
    origin = result.trace.origins["request_overrides.parallel_tool_calls"]
    assert origin == "preset:original"
    (problem,) = result.problems
    assert problem.code == Code.CALLS_IGNORED
    assert (
        "request_overrides.parallel_tool_calls is false (from preset:original)" in problem.message
    )
    assert "drop_parallel_calls" in [receipt.rule for receipt in result.receipts]
    assert "-> not run: CALLS_IGNORED" in repr(result)


async def test_a_flag_the_model_does_not_know_is_not_sent_but_holds(
    door: Door, ledger: Ledger
) -> None:
    """Without support for parallel calls the field stays away, and false still means one."""
    result = await door.run(
        [TWO_CALLS, "done"],
        tools=ledger.tools,
        capabilities={"supports_parallel_tools": False},
        request_overrides={"parallel_tool_calls": False},
    )

    assert "parallel_tool_calls" not in door.requests[0]
    assert len(result.calls) == 1


async def test_the_parallel_flag_is_not_sent_without_tools(door: Door) -> None:
    """A request without tools says nothing about calling them."""
    await door.run(["hello"], request_overrides={"parallel_tool_calls": False})

    assert not {"parallel_tool_calls", "tool_choice", "tools"} & door.requests[0].keys()


FAMILY_OPTIONS = [
    "message_transforms",
    "tool_transforms",
    "response_transforms",
    "tool_call_transforms",
    "tool_result_transforms",
]


@pytest.mark.parametrize("option", FAMILY_OPTIONS)
async def test_an_unknown_transform_of_any_family_is_refused(door: Door, option: str) -> None:
    """A name that is not registered for the family is an error, before anything is sent."""
    with pytest.raises(ConfigError) as failure:
        await door.run([], **{option: ["no_such_transform"]})

    assert failure.value.code == Code.UNKNOWN_TRANSFORM
    assert "no_such_transform" in failure.value.message
    assert door.requests == []


@pytest.mark.parametrize(
    ("arguments", "code", "suggested"),
    [
        pytest.param({"max_turn": 3}, Code.UNKNOWN_OPTION, "max_turns", id="option"),
        pytest.param({"preset": "opnrouter"}, Code.UNKNOWN_PRESET, "openrouter", id="preset"),
        pytest.param(
            {"capabilities": {"stream": True}}, Code.UNKNOWN_OPTION, "streaming", id="capability"
        ),
    ],
)
async def test_an_unknown_name_is_refused_with_a_suggestion(
    door: Door, arguments: dict[str, Any], code: Code, suggested: str
) -> None:
    """Nothing that was misspelt is ignored."""
    with pytest.raises(ConfigError) as failure:
        await door.run([], **arguments)

    assert failure.value.code == code
    assert failure.value.hint is not None
    assert suggested in failure.value.hint
    assert door.requests == []


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"tool_use_mode": "required"}, id="a mode that does not exist"),
        pytest.param({"tool_failure_policy": "lenient"}, id="a policy that does not exist"),
        pytest.param({"max_turns": 0}, id="a limit of zero"),
        pytest.param({"max_tool_args_bytes": "many"}, id="a limit that is no number"),
        pytest.param(
            {"request_overrides": {"parallel_tool_calls": "no"}}, id="a flag that is no flag"
        ),
    ],
)
async def test_a_value_that_cannot_be_used_is_refused(
    door: Door, arguments: dict[str, Any]
) -> None:
    """A wrong value is an error and never falls back to a default."""
    with pytest.raises(ConfigError) as failure:
        await door.run([], **arguments)

    assert failure.value.code == Code.INVALID_OPTION
    assert door.requests == []


async def test_a_blank_model_is_refused(door: Door) -> None:
    """A run without a model is not sent."""
    with pytest.raises(RequestError) as failure:
        await door.run([], model="  ")

    assert failure.value.code == Code.INVALID_OPTION
    assert door.requests == []
