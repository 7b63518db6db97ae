"""Runs that end with a value: how it is asked for, read, and given out."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

import surecall
from support.family_server import FamilyServer
from surecall import ScriptedTransport
from surecall.base.errors import Code, OutputError, ProviderStatusError, ToolUseError
from surecall.base.records import ModelRequestEnded, Reply, RunEnded, TextDelta, Usage
from surecall.loop import MemoryJournal, OutputForm, load_trace, replay_trace, save_trace
from surecall.loop.output import make_form
from surecall.models.transport import ScriptedReply
from surecall.text import encode_text
from surecall.wire import PROTOCOLS, find_protocol

from .toolbox import assistant, look, tool_call

SCHEMA = {
    "title": "City",
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer", "minimum": 0}},
    "required": ["name", "people"],
}


class Size(Enum):
    """How large a city is."""

    SMALL = "small"
    LARGE = "large"


@dataclass
class City:
    """A city."""

    name: str
    people: int
    size: Size = Size.SMALL
    tags: list[str] = field(default_factory=list[str])


class CityStruct(msgspec.Struct):
    """A city."""

    name: str
    people: int


class CityDict(TypedDict):
    """A city."""

    name: str
    people: int


class CityModel(pydantic.BaseModel):
    """A city."""

    name: str
    people: int = pydantic.Field(ge=0)

    @pydantic.field_validator("name")
    @classmethod
    def check_name(cls, name: str) -> str:
        """Refuse names in lower case."""
        if name.islower():
            raise ValueError("a name begins with a capital letter")
        return name


OSLO = encode_text({"name": "Oslo", "people": 700_000})


async def ask(
    replies: list[Any], output: Any, **arguments: Any
) -> tuple[surecall.OutputResult[Any], list[dict[str, Any]]]:
    """Run a script to a value; return the result and the bodies that were sent."""
    transport = ScriptedTransport(replies)
    given: dict[str, Any] = {"model": "m", "preset": (), **arguments}
    form: OutputForm[Any] = make_form(output)
    result = await surecall.run("Oslo?", output=form, transport=transport, **given)
    return result, [request.body for request in transport.requests]


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (City, City("Oslo", 700_000)),
        (CityStruct, CityStruct("Oslo", 700_000)),
        (CityDict, {"name": "Oslo", "people": 700_000}),
        (CityModel, CityModel(name="Oslo", people=700_000)),
        (SCHEMA, {"name": "Oslo", "people": 700_000}),
    ],
    ids=["dataclass", "struct", "typed dict", "pydantic", "schema"],
)
async def test_any_kind_of_type_can_be_asked_for(output: Any, value: Any) -> None:
    """The value is an object of that type, and the text is what the model wrote."""
    result, (body,) = await ask([OSLO], output)
    assert result.output == value
    assert result.value == {"name": "Oslo", "people": 700_000}
    assert (result.text, result.certainty, result.receipts) == (OSLO, "certain", ())
    assert body["response_format"] == {"type": "json_object"}
    assert '"people"' in body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("output", "reply", "value"),
    [
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (int, '{"value": 3}', 3),
        (int, "42", 42),
        (bool, '{"value": true}', True),
        (Literal["a", "b"], '{"value": "b"}', "b"),
        (Size, '{"value": "large"}', Size.LARGE),
        (str, '{"value": "text"}', "text"),
    ],
)
async def test_a_value_that_is_no_object_is_wrapped_for_the_provider(
    output: Any, reply: str, value: Any
) -> None:
    """It is asked for in the member `value`, and may come alone."""
    result, (body,) = await ask([reply], output, capabilities={"json_schema": True})
    schema = body["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["value"]
    assert result.output == value


async def test_a_slip_is_repaired_with_a_receipt() -> None:
    """A number in quotes, a fence and prose are no reason to ask again."""
    reply = 'Sure:\n```json\n{"name": "Oslo", "people": "700000",}\n```'
    result, bodies = await ask([reply], City)
    assert result.output.people == 700_000
    assert result.certainty == "likely"
    assert result.doubt
    assert "parse_number_text" in [receipt.rule for receipt in result.receipts]
    assert len(bodies) == 1


async def test_what_takes_a_judgement_can_be_refused() -> None:
    """With `accept="certain"` the model is asked for the value alone."""
    form = OutputForm(City, accept="certain")
    result, bodies = await ask([f"It is: {OSLO}", OSLO], form)
    assert result.certainty == "certain"
    assert "VALUE_NOT_CERTAIN" in bodies[1]["messages"][-1]["content"]


async def test_the_exact_errors_are_told() -> None:
    """Each names its place, and nothing else of the attempt is kept."""
    result, bodies = await ask(['{"name": "Oslo", "people": "many"}', OSLO], City)
    told = bodies[1]["messages"][-1]["content"]
    assert "VALUE_INVALID: /people:" in told
    assert [attempt.ok for attempt in result.attempts] == [False, True]
    assert [message.role for message in result.history] == ["user", "assistant"]


async def test_a_validator_of_the_type_counts() -> None:
    """What pydantic refuses is told to the model in its words."""
    result, bodies = await ask(['{"name": "oslo", "people": 1}', OSLO], CityModel)
    assert "a name begins with a capital letter" in bodies[1]["messages"][-1]["content"]
    assert result.output.name == "Oslo"


async def test_a_check_of_the_application_counts() -> None:
    """It sees the typed value; a check that raises is a reason, too."""

    def check(city: City) -> str | None:
        if city.people == 0:
            raise LookupError("nobody lives there")
        return None

    form = OutputForm(City, check=check)
    result, bodies = await ask(['{"name": "Oslo", "people": 0}', OSLO], form)
    assert result.attempts[0].is_semantic
    assert "LookupError: nobody lives there" in bodies[1]["messages"][-1]["content"]


@pytest.mark.parametrize("finish", ["length", None, "stop"])
async def test_a_cut_value_is_never_taken(finish: str | None) -> None:
    """Closing its brackets would make a value that the model did not write."""
    cut = ScriptedReply(message='{"people": 7, "name": "Oslo"', finish_reason=finish)
    result, bodies = await ask([cut, OSLO], City, overrides_after_cut={"max_tokens": 99})
    assert result.output.people == 700_000
    assert result.attempts[0].is_cut
    assert [body.get("max_tokens") for body in bodies] == [None, 99]


async def test_a_refused_form_leads_down_the_ladder() -> None:
    """The failed requests are in the trace; body fields differ by the way of asking."""
    refused = ScriptedReply(status=422, message="json_schema is not supported")
    result, bodies = await ask(
        [refused, refused, OSLO],
        City,
        capabilities={"json_schema": True},
        structured_request_overrides={"provider": {"require_parameters": True}},
        prompt_only_request_overrides={"provider": {"require_parameters": False}},
    )
    assert result.output_mode == "prompt_only"
    assert [body["provider"]["require_parameters"] for body in bodies] == [True, True, False]
    assert [failure.status for failure in result.trace.turns[0].failures] == [422, 422]
    assert replay_trace(result.trace).same


async def test_errors_that_no_other_form_changes_are_raised() -> None:
    """A wrong key is not answered with another way of asking."""
    with pytest.raises(ProviderStatusError) as caught:
        await ask([ScriptedReply(status=401, message="no"), OSLO], City)
    assert caught.value.code == Code.AUTH


async def test_a_run_without_a_value_says_what_was_wrong() -> None:
    """The error carries the trace, the modes and the errors of the last attempt."""
    with pytest.raises(OutputError) as caught:
        await ask(["no"] * 9, City, max_output_retries=0)
    error = caught.value
    assert error.code == Code.OUTPUT_INVALID
    assert error.details["modes"] == ["json_object", "prompt_only"]
    assert error.details["asked"] == 2
    assert error.details["errors"][0]["code"] == Code.VALUE_NOT_FOUND
    assert replay_trace(error.trace).same


async def test_tools_come_first_and_the_value_without_them() -> None:
    """The last request has the schema and no tools, behind the answer of the tools."""
    events: list[Any] = []
    result, bodies = await ask(
        [assistant(None, tool_call("look")), "I looked.", OSLO],
        City,
        tools=[look],
        capabilities={"json_schema": True},
        on_event=events.append,
    )
    assert [("tools" in body, "response_format" in body) for body in bodies] == [
        (True, False),
        (True, False),
        (False, True),
    ]
    assert [m["role"] for m in bodies[2]["messages"][-2:]] == ["assistant", "user"]
    assert result.output.name == "Oslo"
    assert len(result.calls) == 1
    assert [event.turn for event in events if isinstance(event, ModelRequestEnded)] == [0, 1, 2]
    assert isinstance(events[-1], RunEnded)
    assert replay_trace(result.trace).same


async def test_an_empty_answer_after_tools_needs_no_repair() -> None:
    """The value is asked for anyway."""
    result, bodies = await ask([assistant(None, tool_call("look")), "", OSLO], City, tools=[look])
    assert result.output.name == "Oslo"
    assert len(bodies) == 3


async def test_enforced_tool_use_still_holds() -> None:
    """A value does not stand in for a call that is demanded."""
    with pytest.raises(ToolUseError):
        await ask(["Done.", OSLO], City, tools=[look], tool_use_mode="enforced")


async def test_a_run_without_an_output_sends_what_it_always_sent() -> None:
    """Settings of the value change nothing in other runs, and not who they are."""
    bodies: list[Any] = []
    prints: list[str] = []
    settings: dict[str, Any] = {"structured_request_overrides": {"x": 1}, "max_output_retries": 3}
    nothing: dict[str, Any] = {}
    for more in (nothing, settings):
        transport = ScriptedTransport(["Hi"])
        result = await surecall.run("Hi", model="m", preset=(), transport=transport, **more)
        bodies.append(transport.requests[0].body)
        prints.append(result.trace.fingerprint)
        assert not isinstance(result, surecall.OutputResult)
    assert bodies[0] == bodies[1] == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    assert prints[0] == prints[1]


async def test_a_resumed_run_asks_only_for_what_is_missing() -> None:
    """Replies and refusals of the journal are not paid for again."""
    journal = MemoryJournal()
    refused = ScriptedReply(status=400, message="no schema")
    with pytest.raises(ProviderStatusError):
        await ask([refused, "{", ScriptedReply(status=401, message="no")], City, journal=journal,
                  capabilities={"json_schema": True})  # fmt: skip
    result, bodies = await ask([OSLO], City, journal=journal, capabilities={"json_schema": True})
    assert len(bodies) == 1
    assert result.output.name == "Oslo"
    assert "VALUE_TRUNCATED" in bodies[0]["messages"][-1]["content"]


async def test_a_saved_trace_keeps_what_was_asked_for(tmp_path: Path) -> None:
    """It replays after a restart."""
    result, _ = await ask(["{", OSLO], City)
    save_trace(result.trace, tmp_path / "trace.json")
    trace = load_trace(tmp_path / "trace.json")
    assert trace.output is not None
    assert trace.output.name == "City"
    assert [turn.output.ok for turn in trace.turns if turn.output] == [False, True]
    assert replay_trace(trace).same


async def test_extract_takes_a_text() -> None:
    """The model is told to use the text alone."""
    transport = ScriptedTransport([OSLO])
    result = await surecall.extract(
        "Oslo has 700000 people.", output=City, model="m", preset=(), transport=transport
    )
    assert result.output == City("Oslo", 700_000)
    messages = transport.requests[0].body["messages"]
    assert "Use only what the text says" in messages[0]["content"]
    assert messages[1] == {"role": "user", "content": "Oslo has 700000 people."}


async def test_a_stream_shows_no_json_and_ends_with_the_value() -> None:
    """Events come as in any run; `result` has the value."""
    transport = ScriptedTransport([OSLO])
    stream = surecall.stream("Oslo?", output=City, model="m", preset=(), transport=transport)
    events = [event async for event in stream]
    assert not any(isinstance(event, TextDelta) for event in events)
    assert stream.result.output.name == "Oslo"


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
@pytest.mark.parametrize("mode", ["json_schema", "json_object", "prompt_only"])
async def test_every_wire_format_asks_in_every_way(name: str, mode: Any) -> None:
    """The form goes where the format has its place for it."""
    usage = Usage(1, 1, 2)
    replies = [Reply(content=OSLO, finish_reason="stop", usage=usage)]
    async with FamilyServer(find_protocol(name), replies) as server:
        result = await surecall.run(
            "Oslo?",
            output=City,
            model="m",
            base_url=server.url,
            api_key="k-1",
            protocol=name,
            preset=(),
            output_modes=[mode],
            capabilities={"json_schema": True},
        )
    assert result.output == City("Oslo", 700_000)
    form = server.requests[0].response_format
    expected = (
        None if mode == "prompt_only" or (mode, name) == ("json_object", "messages") else mode
    )
    assert (form or {}).get("type") == expected


async def test_a_text_as_long_as_the_grammar_allows_was_cut() -> None:
    """A grammar ends a text at its bound, whatever the model would have written."""
    long = encode_text({"name": "x" * 2000, "people": 1})
    can = {"json_schema": True, "grammar": True}
    result, bodies = await ask([long, OSLO], City, capabilities=can)
    assert bodies[0]["response_format"]["json_schema"]["schema"]["properties"]["name"]["maxLength"]
    assert result.attempts[0].is_cut


async def test_rules_that_are_switched_off_are_not_used() -> None:
    """Without them, only plain JSON is the value."""
    with pytest.raises(OutputError):
        await ask(['{"name": "Oslo", "people": "7"}'] * 4, City, disabled_rules=["*"])
    result, _ = await ask([OSLO], City, disabled_rules=["*"])
    assert result.output.name == "Oslo"
