"""Arguments: what is read, what is refused, and what the model is told about it."""

import json
from typing import Any

import pytest

from surecall.base.errors import Code
from surecall.base.records import ToolSpec
from surecall.models.transport import ScriptedReply, assistant, tool_call
from surecall.tools import ToolRegistry

from .doors import Door
from .sample_tools import Ledger


def calls_with(arguments: Any, name: str = "add") -> dict[str, Any]:
    """Return an assistant message with one call, whose arguments are exactly these."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return assistant(None, call)


async def test_invalid_json_is_told_and_the_tool_does_not_run(door: Door, ledger: Ledger) -> None:
    """The model reads the code and how to retry, and the run goes on."""
    result = await door.run([calls_with("a and b, please"), "Sorry."], tools=ledger.tools)

    assert ledger.ran == []
    answer = door.answers[0]
    assert answer["ok"] is False
    assert answer["tool_name"] == "add"
    assert answer["errors"][0]["code"] == Code.ARGUMENTS_JSON_PARSE_ERROR
    assert "JSON object" in answer["errors"][0]["hint"]
    assert result.results[0].executed is False
    assert result.text == "Sorry."


async def test_the_history_stays_valid_after_invalid_json(door: Door, ledger: Ledger) -> None:
    """What could not be read is sent back as a bounded object; the trace keeps it whole."""
    written = "{broken " + "x" * 10_000
    result = await door.run([calls_with(written), "Sorry."], tools=ledger.tools)

    sent = door.messages[1]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(sent), dict)
    assert len(sent) < 400
    assert result.calls[0].raw == written


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("[1, 2]", id="array in text"),
        pytest.param("7", id="number in text"),
        pytest.param("true", id="boolean in text"),
        pytest.param("null", id="null in text"),
        pytest.param('"hello"', id="text in text"),
        pytest.param([2, 3], id="array"),
        pytest.param(7, id="number"),
        pytest.param(True, id="boolean"),
    ],
)
async def test_arguments_that_are_no_object_are_refused(
    door: Door, ledger: Ledger, arguments: Any
) -> None:
    """Nothing but an object is used, and nothing else is turned into an empty one."""
    await door.run([calls_with(arguments, "note"), "Sorry."], tools=ledger.tools)

    assert ledger.ran == []
    assert door.answers[0]["errors"][0]["code"] == Code.ARGUMENTS_JSON_PARSE_ERROR
    sent = door.messages[1]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(sent), dict)


async def test_double_encoded_arguments_are_read_once_more(door: Door, ledger: Ledger) -> None:
    """An object inside a JSON text is used, with a receipt."""
    written = json.dumps(json.dumps({"a": 2, "b": 3}))
    result = await door.run([calls_with(written), "5"], tools=ledger.tools)

    assert ledger.ran == [("add", {"a": 2, "b": 3})]
    assert [r.rule for r in result.receipts] == ["decode_nested_text"]
    sent = door.messages[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"a": 2, "b": 3}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("", id="empty text"),
        pytest.param(" \n\t", id="space"),
        pytest.param(None, id="null"),
    ],
)
@pytest.mark.parametrize("preset", [pytest.param((), id="bare"), pytest.param("auto", id="auto")])
async def test_blank_arguments_are_an_empty_object(
    door: Door, ledger: Ledger, arguments: Any, preset: Any
) -> None:
    """A call without arguments runs, with or without presets."""
    await door.run([calls_with(arguments, "note"), "done"], tools=ledger.tools, preset=preset)

    assert ledger.ran == [("note", {"text": ""})]
    assert json.loads(door.messages[1]["tool_calls"][0]["function"]["arguments"]) == {}


async def test_absent_arguments_are_an_empty_object(door: Door, ledger: Ledger) -> None:
    """A call that has no such field runs too."""
    call = {"id": "c1", "type": "function", "function": {"name": "note"}}
    await door.run([assistant(None, call), "done"], tools=ledger.tools)

    assert ledger.names_ran == ["note"]


@pytest.mark.parametrize(
    "fence",
    [
        pytest.param("```json\n{}\n```", id="json"),
        pytest.param("```JSON\n{}\n```", id="upper case"),
        pytest.param("```\n{}\n```", id="no language"),
        pytest.param("  ```json {} ```  ", id="one line"),
    ],
)
async def test_fenced_arguments_are_unwrapped(door: Door, ledger: Ledger, fence: str) -> None:
    """One code fence around the object is taken off, with a receipt."""
    written = fence.replace("{}", '{"a": 2, "b": 3}')
    result = await door.run([calls_with(written), "5"], tools=ledger.tools)

    assert ledger.ran == [("add", {"a": 2, "b": 3})]
    assert [r.rule for r in result.receipts] == ["strip_code_fence"]


@pytest.mark.parametrize("as_text", [True, False], ids=["as text", "as an object"])
@pytest.mark.parametrize("preset", [pytest.param((), id="bare"), pytest.param("auto", id="auto")])
async def test_oversize_arguments_are_refused(
    door: Door, ledger: Ledger, as_text: bool, preset: Any
) -> None:
    """Arguments over the limit do not run, in whatever shape they arrive."""
    value: Any = {"text": "x" * 300}
    written = json.dumps(value, separators=(",", ":"))
    result = await door.run(
        [calls_with(written if as_text else value, "note"), "Too long."],
        tools=ledger.tools,
        preset=preset,
        max_tool_args_bytes=300,
    )

    assert ledger.ran == []
    error = door.answers[0]["errors"][0]
    assert error["code"] == Code.ARGUMENTS_TOO_LARGE
    assert "Largest fields: text (302 bytes)" in error["message"]
    assert door.answers[0]["data"]["bytes"] == len(written)
    assert result.calls[0].arguments_bytes == len(written)


async def test_the_refusal_of_oversize_arguments_names_the_limit_in_force(
    door: Door, ledger: Ledger
) -> None:
    """`data` carries the limit that was passed, so that a program can read it."""
    await door.run(
        [calls_with({"text": "x" * 400}, "note"), "Too long."],
        tools=ledger.tools,
        max_tool_args_bytes=300,
    )

    assert door.answers[0]["data"] == {"bytes": len('{"text":""}') + 400, "max_bytes": 300}


async def test_the_refusal_of_oversize_arguments_names_the_largest_fields(door: Door) -> None:
    """The model reads the size, the limit, and which fields take the most room."""
    spec = ToolSpec(name="save", parameters={"type": "object"})
    registry = ToolRegistry.from_executor([spec], lambda name, arguments: None)
    value = {"title": "t", "body": "b" * 1000, "notes": ["n" * 500], "id": 7}
    await door.run(
        [calls_with(json.dumps(value, separators=(",", ":")), "save"), "Too long."],
        tools=registry,
        max_tool_args_bytes=1024,
    )

    error = door.answers[0]["errors"][0]
    size = len(json.dumps(value, separators=(",", ":")))
    assert f"{size:,} bytes" in error["message"]
    assert "1,024 bytes" in error["message"]
    assert "body (1,002 bytes), notes (504 bytes), title (3 bytes)" in error["message"]
    assert "shorter" in error["hint"]


async def test_the_refusal_of_huge_arguments_is_bounded(door: Door, ledger: Ledger) -> None:
    """A megabyte of arguments, or a key without end, makes no long answer and no long history."""
    huge = json.dumps({"k" * 5000: "x" * 1_000_000})
    await door.run([calls_with(huge, "note"), "Too long."], tools=ledger.tools)

    assert door.answers[0]["errors"][0]["code"] == Code.ARGUMENTS_TOO_LARGE
    assert len(door.messages[-1]["content"]) < 1000
    assert len(door.messages[1]["tool_calls"][0]["function"]["arguments"]) < 500


async def test_arguments_of_exactly_the_limit_are_used(door: Door, ledger: Ledger) -> None:
    """Only what is larger than the limit is refused."""
    written = json.dumps({"text": "x" * 100}, separators=(",", ":"))
    await door.run(
        [calls_with(written, "note"), "done"],
        tools=ledger.tools,
        max_tool_args_bytes=len(written),
    )

    assert ledger.names_ran == ["note"]


async def test_space_and_fences_around_arguments_do_not_count(door: Door, ledger: Ledger) -> None:
    """The limit is for the object itself, not for what is taken off around it."""
    written = " " * 500 + '```json\n{"text": "short"}\n```' + "\n" * 500
    await door.run(
        [calls_with(written, "note"), "done"], tools=ledger.tools, max_tool_args_bytes=100
    )

    assert ledger.ran == [("note", {"text": "short"})]


async def test_a_higher_limit_lets_larger_arguments_through(door: Door, ledger: Ledger) -> None:
    """An application may raise the limit above its default."""
    text = "x" * 250_000
    await door.run(
        [calls_with({"text": text}, "note"), "done"],
        tools=ledger.tools,
        max_tool_args_bytes=300_000,
        max_tool_output_bytes=300_000,
    )

    assert ledger.ran == [("note", {"text": text})]


async def test_all_arguments_of_a_reply_share_one_limit(door: Door, ledger: Ledger) -> None:
    """Calls beyond the sum are refused, with numbers that belong together."""
    calls = [tool_call("note", {"text": "x" * 400}, f"c{n}") for n in range(3)]
    await door.run([assistant(None, *calls), "done"], tools=ledger.tools, max_turn_args_bytes=1000)

    assert [answer["ok"] for answer in door.answers] == [True, True, False]
    refusal = door.answers[2]
    assert refusal["errors"][0]["code"] == Code.ARGUMENTS_TOO_LARGE
    assert "1,000 bytes" in refusal["errors"][0]["message"]
    # A size under its own limit would tell a program that nothing is wrong.
    assert refusal["data"].get("bytes", 1) > refusal["data"].get("max_bytes", 0)


async def test_every_misfit_is_told_at_once(door: Door) -> None:
    """A wrong type, a missing and an unknown argument are three errors with their places."""
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    }
    ran: list[str] = []
    registry = ToolRegistry.from_executor(
        [ToolSpec(name="forecast", parameters=schema)], lambda name, arguments: ran.append(name)
    )
    await door.run(
        [
            assistant(None, tool_call("forecast", {"days": 0, "unit": "kelvin", "town": "Oslo"})),
            "Sorry.",
        ],
        tools=registry,
    )

    assert ran == []
    errors = door.answers[0]["errors"]
    assert {error["code"] for error in errors} == {Code.ARGUMENTS_INVALID}
    assert sorted(error["path"] for error in errors) == ["", "/days", "/town", "/unit"]
    said = " ".join(error["message"] for error in errors)
    assert "city" in said
    assert "at least 1" in said
    assert "celsius" in said
    assert "again" in errors[-1]["hint"]


async def test_the_list_of_misfits_is_bounded(door: Door) -> None:
    """Ten thousand wrong items make a list the model can still read."""
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"type": "integer"}}},
    }
    registry = ToolRegistry.from_executor(
        [ToolSpec(name="total", parameters=schema)], lambda name, arguments: None
    )
    wrong = {"items": ["many words"] * 10_000}
    await door.run([assistant(None, tool_call("total", wrong)), "Sorry."], tools=registry)

    errors = door.answers[0]["errors"]
    assert 1 <= len(errors) <= 50
    assert errors[0]["path"] == "/items/0"
    assert len(door.messages[-1]["content"]) < 20_000


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_cut_call_never_runs(door: Door, ledger: Ledger, finish: str) -> None:
    """Whatever its arguments look like, a call of a reply that was cut is refused."""
    reply = ScriptedReply(message=calls_with('{"a": 2, "b": 3}'), finish_reason=finish)
    result = await door.run([reply, "Sorry."], tools=ledger.tools)

    assert ledger.ran == []
    assert result.calls[0].state == "cut"
    assert door.answers[0]["errors"][0]["code"] == Code.ARGUMENTS_TRUNCATED


async def test_json_that_ends_too_soon_never_runs(door: Door, ledger: Ledger) -> None:
    """Brackets are not closed by guessing."""
    result = await door.run([calls_with('{"a": 2, "b": 3'), "Sorry."], tools=ledger.tools)

    assert ledger.ran == []
    assert result.calls[0].state == "cut"
    error = door.answers[0]["errors"][0]
    assert error["code"] == Code.ARGUMENTS_TRUNCATED
    assert "less" in error["hint"]


async def test_a_refused_call_does_not_stop_its_neighbours(door: Door, ledger: Ledger) -> None:
    """In one reply a good call runs beside a bad one, and each has its own answer."""
    both = assistant(
        None, tool_call("add", "what?", "bad"), tool_call("add", {"a": 2, "b": 3}, "good")
    )
    await door.run([both, "5"], tools=ledger.tools)

    assert ledger.ran == [("add", {"a": 2, "b": 3})]
    assert [message["tool_call_id"] for message in door.messages[2:]] == ["bad", "good"]
    assert [answer["ok"] for answer in door.answers] == [False, True]
