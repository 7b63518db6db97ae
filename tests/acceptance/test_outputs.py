"""What tools answer: the envelope, and what replaces an answer that is too large."""

from typing import Any

import pytest

from surecall.base.errors import Code
from surecall.models.transport import assistant, tool_call
from surecall.tools import OutputLimits, ToolFailed, check_output, tool

from .doors import Door


def nested(depth: int) -> Any:
    """Return objects inside each other."""
    value: Any = 1
    for _ in range(depth):
        value = {"in": value}
    return value


async def test_an_answer_is_one_envelope(door: Door) -> None:
    """What a tool returns is the data of a success, in the one shape."""

    @tool
    def look() -> dict[str, int]:
        """Look."""
        return {"n": 1}

    await door.run([assistant(None, tool_call("look")), "done"], tools=[look])

    assert door.answers == [
        {"ok": True, "tool_name": "look", "data": {"n": 1}, "warnings": [], "errors": []}
    ]


@pytest.mark.parametrize(
    ("returned", "data", "ok"),
    [
        pytest.param("text", {"value": "text"}, True, id="text"),
        pytest.param(None, {}, True, id="nothing"),
        pytest.param([1, 2], {"value": [1, 2]}, True, id="list"),
        pytest.param({"ok": True, "data": {"n": 1}}, {"n": 1}, True, id="envelope"),
        pytest.param({"ok": "yes", "data": 5}, {"value": 5}, False, id="ok that is not true"),
    ],
)
async def test_whatever_a_tool_returns_is_normalized(
    door: Door, returned: Any, data: dict[str, Any], ok: bool
) -> None:
    """Data is always an object, and only a literal true is a success."""

    @tool
    def look() -> Any:
        """Look."""
        return returned

    await door.run([assistant(None, tool_call("look")), "done"], tools=[look])

    assert door.answers[0]["data"] == data
    assert door.answers[0]["ok"] is ok


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        pytest.param(ValueError("no such day"), Code.ARGUMENT_ERROR, "no such day", id="argument"),
        pytest.param(
            RuntimeError("disk full"), Code.INTERNAL_ERROR, "RuntimeError: disk full", id="other"
        ),
        pytest.param(ToolFailed("SOLD_OUT", "none left"), "SOLD_OUT", "none left", id="own code"),
    ],
)
async def test_whatever_a_tool_raises_is_told(
    door: Door, error: Exception, code: str, message: str
) -> None:
    """The model reads a code and the message, never a traceback."""

    @tool
    def look() -> None:
        """Look."""
        raise error

    await door.run([assistant(None, tool_call("look")), "done"], tools=[look])

    told = door.answers[0]["errors"][0]
    assert (told["code"], told["message"]) == (code, message)


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        pytest.param("x" * 12_000, "STRING_TOO_LARGE", id="one long text"),
        pytest.param(["x" * 1000] * 12, "MAX_BYTES", id="many texts"),
        pytest.param(nested(30), "MAX_DEPTH", id="too deep"),
        pytest.param([[0]] * 30_000, "MAX_NODES", id="too many values"),
    ],
)
async def test_an_oversize_answer_is_replaced(door: Door, returned: Any, reason: str) -> None:
    """The model reads why it does not see the answer, and nothing of it is sent."""

    @tool(effect="read")
    def look() -> Any:
        """Look."""
        return returned

    limit = 200_000 if reason in {"MAX_NODES", "MAX_DEPTH"} else 5000
    result = await door.run(
        [assistant(None, tool_call("look")), "done"], tools=[look], max_tool_output_bytes=limit
    )

    answer = door.answers[0]
    assert answer["ok"] is False
    assert answer["errors"][0]["code"] == Code.TOOL_OUTPUT_TOO_LARGE
    assert answer["data"]["reason"] == reason
    assert answer["data"]["max_bytes"] == limit
    assert len(door.messages[-1]["content"]) < 600
    assert result.results[0].replaced is True
    assert result.results[0].executed is True


async def test_an_answer_that_grows_in_writing_is_replaced(door: Door) -> None:
    """Text whose escapes make it too long is measured as it would be sent."""

    @tool(effect="read")
    def look() -> str:
        """Look."""
        return '"' * 3000

    await door.run(
        [assistant(None, tool_call("look")), "done"], tools=[look], max_tool_output_bytes=5000
    )

    answer = door.answers[0]
    assert answer["errors"][0]["code"] == Code.TOOL_OUTPUT_TOO_LARGE
    assert answer["data"]["max_bytes"] == 5000
    assert answer["data"]["bytes"] > 6000


async def test_a_replaced_answer_is_compacted_too(door: Door) -> None:
    """Result transforms also shape the answer that stands in for the real one."""

    @tool(effect="read")
    def look() -> str:
        """Look."""
        return "x" * 12_000

    await door.run(
        [assistant(None, tool_call("look")), "done"],
        tools=[look],
        max_tool_output_bytes=5000,
        tool_result_transforms=["tool_result_compact_envelope"],
    )

    answer = door.answers[0]
    assert answer.keys() == {"ok", "tool_name", "data", "errors"}
    assert answer["errors"][0]["code"] == Code.TOOL_OUTPUT_TOO_LARGE


async def test_after_an_effect_the_model_is_told_not_to_repeat(door: Door) -> None:
    """A tool that changed something has run, though its answer is not shown."""

    @tool(effect="write")
    def order() -> str:
        """Order it."""
        return "x" * 12_000

    await door.run(
        [assistant(None, tool_call("order")), "done"], tools=[order], max_tool_output_bytes=5000
    )

    assert "do not repeat" in door.answers[0]["errors"][0]["hint"]


async def test_an_answer_without_json_form_is_replaced(door: Door) -> None:
    """Something that cannot be written as JSON is told as such."""

    @tool(effect="read")
    def look() -> Any:
        """Look."""
        return {"thing": object()}

    await door.run([assistant(None, tool_call("look")), "done"], tools=[look])

    answer = door.answers[0]
    assert answer["errors"][0]["code"] == Code.TOOL_OUTPUT_SERIALIZATION_ERROR
    assert answer["data"]["error_class"] == "JSONTextError"
    assert "'/data/thing'" in answer["data"]["message"]


@pytest.mark.parametrize(
    ("value", "limits", "reason"),
    [
        pytest.param("x" * 101, OutputLimits(max_bytes=100), "STRING_TOO_LARGE", id="big string"),
        pytest.param("ä" * 51, OutputLimits(max_bytes=100), "STRING_TOO_LARGE", id="in UTF-8"),
        pytest.param(nested(6), OutputLimits(max_depth=5), "MAX_DEPTH", id="depth"),
        pytest.param([0] * 11, OutputLimits(max_nodes=11), "MAX_NODES", id="nodes"),
        pytest.param([0] * 11, OutputLimits(max_items=10), "MAX_ARRAY_ITEMS", id="items"),
        pytest.param({"a": 1, "b": 2}, OutputLimits(max_keys=1), "MAX_HASH_KEYS", id="keys"),
        pytest.param({"k" * 60: "v" * 60}, OutputLimits(max_bytes=100), "MAX_BYTES", id="bytes"),
    ],
)
def test_the_limiter_names_the_limit_that_was_passed(
    value: Any, limits: OutputLimits, reason: str
) -> None:
    """Each limit has its own reason."""
    rejection = check_output(value, limits)

    assert rejection is not None
    assert rejection.reason == reason


@pytest.mark.parametrize(
    ("value", "limits"),
    [
        pytest.param("x" * 100, OutputLimits(max_bytes=100), id="string"),
        pytest.param(nested(5), OutputLimits(max_depth=5), id="depth"),
        pytest.param([0] * 10, OutputLimits(max_nodes=11), id="nodes"),
    ],
)
def test_the_limiter_lets_through_what_is_at_a_limit(value: Any, limits: OutputLimits) -> None:
    """Limits may be reached."""
    assert check_output(value, limits) is None
