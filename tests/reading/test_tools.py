"""Tools are compiled once, and never stay what they were before their owner changed them."""

import copy
import gc
from typing import Any

import pytest

from surecall import read_reply, tool
from surecall.base.errors import ToolDefinitionError
from surecall.base.records import ToolSpec
from surecall.reading.tools import name_tools
from surecall.tools import ToolRegistry


def declared(**properties: Any) -> dict[str, Any]:
    """Return a tool object of Chat Completions."""
    schema = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": "send", "parameters": schema}}


def call(arguments: str) -> dict[str, Any]:
    """Return a message with one call."""
    function = {"name": "send", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "c1", "function": function}]}


def send(to: str) -> str:
    """Send it."""
    return to


@tool
def ping() -> str:
    """Answer."""
    return "pong"


@pytest.mark.parametrize(
    "tools",
    [
        [declared(to={"type": "string"})],
        [send],
        [ping, send],
        [ToolSpec(name="send")],
        ToolRegistry([ping]),
    ],
    ids=["objects", "functions", "tools and functions", "specs", "registry"],
)
def test_the_same_tools_are_compiled_once(tools: Any) -> None:
    """Programs pass the same tools with every reply."""
    assert name_tools(tools) is name_tools(tools)


def test_equal_objects_are_compiled_once() -> None:
    """Programs also build their list of tools for every request."""
    tools = [declared(to={"type": "string"})]
    assert name_tools(tools) is name_tools(copy.deepcopy(tools))


def test_a_schema_changed_in_place_counts_at_once() -> None:
    """The same list is not the same tools after its owner changed it."""
    tools = [declared(amount={"type": "integer"})]
    message = call('{"amount": "5"}')
    assert read_reply(message, tools=tools).calls[0].arguments == {"amount": 5}
    tools[0]["function"]["parameters"]["properties"]["amount"]["type"] = "string"
    assert read_reply(message, tools=tools).calls[0].arguments == {"amount": "5"}
    tools[0]["function"]["name"] = "other"
    assert name_tools(tools).names == ("other",)


def test_values_that_compare_equal_stay_different_schemas() -> None:
    """Python takes True for 1 and 1.0; a schema does not."""
    one, true = (name_tools([declared(x={"const": value})]) for value in (1, True))
    assert one is not true


def test_a_new_function_is_not_taken_for_one_that_is_gone() -> None:
    """An address is used again after its owner died."""
    for number in range(200):
        namespace: dict[str, Any] = {}
        exec(f"def f{number}(x{number}: int): ...", namespace)
        names = name_tools([namespace[f"f{number}"]])
        assert names.names == (f"f{number}",)
        assert names.parameter_names == {f"x{number}"}
        del namespace
        gc.collect(0)


def test_what_cannot_be_packed_is_parsed_each_time() -> None:
    """A number beyond 64 bits is no reason to refuse a tool."""
    tools = [declared(x={"type": "integer", "maximum": 1 << 80})]
    assert name_tools(tools).names == ("send",)


def test_what_is_not_a_tool_is_refused_each_time() -> None:
    """A refusal is not forgotten by being kept."""
    for _ in range(2):
        with pytest.raises(ToolDefinitionError):
            name_tools([{"nothing": 1}])
