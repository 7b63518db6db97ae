"""Programs that offer namespaces, custom tools and tools of the provider besides functions."""

import json
from typing import Any

import pytest

from surecall.base.records import WireRequest
from surecall.faults import FAULTS, Answer, FaultyProvider
from surecall.wire import find_protocol

RESPONSES = find_protocol("responses")
CALLS = {
    "shell": ("function_call", "shell", '{"command":"ls"}'),
    "apply_patch": ("custom_tool_call", "apply_patch", "*** Begin Patch"),
    "mcp__docs__find": ("function_call", "find", '{"q":"a"}'),
}
ARGUMENTS = {
    "shell": {"command": "ls"},
    "apply_patch": {"input": "*** Begin Patch"},
    "mcp__docs__find": {"q": "a"},
}


def _function(name: str, key: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
    return {"type": "function", "name": name, "description": "", "parameters": schema}


TOOLS: list[dict[str, Any]] = [
    _function("shell", "command"),
    {
        "type": "custom",
        "name": "apply_patch",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
    },
    {"type": "web_search", "external_web_access": False},
    {"type": "namespace", "name": "mcp__docs__", "tools": [_function("find", "q")]},
]


def _ask(items: list[dict[str, Any]], *, stream: bool, fault: str = "clean") -> Answer:
    body = {"model": f"faults:{fault}", "input": items, "tools": TOOLS, "stream": stream}
    wire = WireRequest(path="/v1/responses", body=body, stream=stream)
    return FaultyProvider(seed=3).answer(RESPONSES, wire)


def _order(name: str) -> dict[str, Any]:
    text = f"call {name} with {json.dumps(ARGUMENTS[name])} say All is done."
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


def _output(answer: Answer, *, stream: bool) -> list[dict[str, Any]]:
    assert answer.status == 200, answer.body
    if not stream:
        return json.loads(answer.body)["output"]
    last = answer.body.decode().strip().split("\n\n")[-1].split("\n")[-1]
    return json.loads(last.removeprefix("data: "))["response"]["output"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", CALLS)
def test_each_tool_is_called_as_it_was_offered(name: str, stream: bool) -> None:
    """A custom tool gets text, a function of a namespace its own name; results end the turn."""
    order = _order(name)
    (call,) = _output(_ask([order], stream=stream), stream=stream)
    given = call.get("input") if call["type"] == "custom_tool_call" else call.get("arguments")
    assert (call["type"], call["name"], given) == CALLS[name]
    assert call.get("namespace") == ("mcp__docs__" if "mcp" in name else None)
    kind = call["type"].replace("function_call", "function_call_output")
    kind = kind.replace("custom_tool_call", "custom_tool_call_output")
    result = {"type": kind, "call_id": call["call_id"], "output": "ok"}
    (said,) = _output(_ask([order, call, result], stream=stream), stream=stream)
    assert said["content"][0]["text"] == "All is done."


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", ["apply_patch", "mcp__docs__find"])
def test_every_fault_is_answered(name: str, stream: bool) -> None:
    """No fault takes such a request for a wrong one."""
    for fault in FAULTS:
        answer = _ask([_order(name)], stream=stream, fault=fault.name)
        assert b"Only function tools" not in answer.body, fault.name


def test_damaged_arguments_stay_damaged() -> None:
    """A call of a namespace has the fault's arguments, not clean ones."""
    (call,) = _output(
        _ask([_order("mcp__docs__find")], stream=False, fault="arguments_missing_brace"),
        stream=False,
    )
    with pytest.raises(json.JSONDecodeError):
        json.loads(call["arguments"])


def test_streamed_pieces_are_the_text_of_a_custom_tool() -> None:
    """The pieces and the whole are the same text."""
    answer = _ask([_order("apply_patch")], stream=True)
    events = [
        json.loads(line[6:]) for line in answer.body.split(b"\n") if line.startswith(b"data: ")
    ]
    pieces = [
        event["delta"]
        for event in events
        if event["type"] == "response.custom_tool_call_input.delta"
    ]
    assert "".join(pieces) == "*** Begin Patch"
