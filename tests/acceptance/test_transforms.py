"""Each built-in transform, switched on alone, as the provider and the tools see it."""

import json
from typing import Any

import pytest

from surecall.models.transport import assistant, tool_call
from surecall.reading.transforms import ResultContext, TransformRegistry
from surecall.tools import tool

from .doors import Door
from .sample_tools import Ledger, call_add, calls_add

TAGS = {"response_transforms": ["assistant_content_tool_call_tags_to_tool_calls"], "preset": ()}


async def test_content_null_if_blank(door: Door, ledger: Ledger) -> None:
    """Blank text beside calls is sent as null; other messages are left alone."""
    await door.run(
        [calls_add(""), "5"],
        tools=ledger.tools,
        preset=(),
        message_transforms=["assistant_tool_calls_content_null_if_blank"],
    )

    assert door.messages[1]["content"] is None
    assert door.messages[0]["content"] == "Please begin."


async def test_reasoning_content_empty_if_missing(door: Door, ledger: Ledger) -> None:
    """A message with calls gets an empty `reasoning_content`; one that has it keeps it."""
    second = assistant(None, call_add(id="c2"), reasoning_content="Once more.")
    await door.run(
        [calls_add(), second, "5"],
        tools=ledger.tools,
        preset=(),
        message_transforms=["assistant_tool_calls_reasoning_content_empty_if_missing"],
    )

    calling = [message for message in door.messages if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in calling] == ["", "Once more."]
    assert "reasoning_content" not in door.messages[0]


async def test_signature_skip_validator_if_missing(door: Door, ledger: Ledger) -> None:
    """A call without a signature gets the value that skips the check; others keep theirs."""
    signed = {**call_add(4, 5, id="c2"), "signature": "signed by the provider"}
    result = await door.run(
        [assistant(None, call_add(), signed), "5 and 9"],
        tools=ledger.tools,
        preset=(),
        message_transforms=["assistant_tool_calls_signature_skip_validator_if_missing"],
    )

    assert [call["signature"] for call in door.messages[1]["tool_calls"]] == [
        "skip_thought_signature_validator",
        "signed by the provider",
    ]
    assert "signature" not in result.history[1].tool_calls[0].extra


async def test_strip_function_descriptions(door: Door, ledger: Ledger) -> None:
    """The description of the function goes, those of its parameters stay."""
    await door.run(
        ["hello"],
        tools=[ledger.add],
        preset=(),
        tool_transforms=["openai_tools_strip_function_descriptions"],
    )

    function = door.requests[0]["tools"][0]["function"]
    assert "description" not in function
    assert function["parameters"]["properties"]["a"]["description"] == "The first number."


async def test_function_call_to_tool_calls(door: Door, ledger: Ledger) -> None:
    """A call in the legacy field runs as `call_1`."""
    legacy = assistant(None, function_call={"name": "add", "arguments": '{"a": 2, "b": 3}'})
    result = await door.run(
        [legacy, "5"],
        tools=ledger.tools,
        preset=(),
        response_transforms=["assistant_function_call_to_tool_calls"],
    )

    assert ledger.ran == [("add", {"a": 2, "b": 3})]
    assert [call.id for call in result.calls] == ["call_1"]
    assert [r.rule for r in result.receipts] == ["assistant_function_call_to_tool_calls"]
    assert "function_call" not in door.messages[1]


async def test_tool_calls_object_to_array(door: Door, ledger: Ledger) -> None:
    """One call without its list is put into one."""
    result = await door.run(
        [assistant(None, tool_calls=call_add()), "5"],
        tools=ledger.tools,
        preset=(),
        response_transforms=["assistant_tool_calls_object_to_array"],
    )

    assert ledger.names_ran == ["add"]
    assert [r.rule for r in result.receipts] == ["assistant_tool_calls_object_to_array"]
    assert isinstance(door.messages[1]["tool_calls"], list)


async def test_tool_calls_as_an_object_without_any_transform(door: Door, ledger: Ledger) -> None:
    """The reader understands a lone call by itself, with the same receipt."""
    result = await door.run(
        [assistant(None, tool_calls=call_add()), "5"], tools=ledger.tools, preset=()
    )

    assert ledger.ran == [("add", {"a": 2, "b": 3})]
    assert [defect.code for defect in result.trace.turns[0].defects] == ["CALLS_AS_OBJECT"]
    assert [r.rule for r in result.receipts] == ["assistant_tool_calls_object_to_array"]
    assert door.messages[1]["tool_calls"][0]["id"] == "call_1"


async def test_arguments_json_string_if_hash(door: Door, ledger: Ledger) -> None:
    """Arguments that came as an object are read, with a receipt."""
    call = {"id": "c1", "function": {"name": "add", "arguments": {"a": 2, "b": 3}}}
    result = await door.run(
        [assistant(None, call), "5"],
        tools=ledger.tools,
        preset=(),
        response_transforms=["assistant_tool_calls_arguments_json_string_if_hash"],
    )

    assert ledger.ran == [("add", {"a": 2, "b": 3})]
    assert result.calls[0].raw == {"a": 2, "b": 3}
    assert [r.rule for r in result.receipts] == [
        "assistant_tool_calls_arguments_json_string_if_hash"
    ]


async def test_arguments_blank_to_empty_object(door: Door, ledger: Ledger) -> None:
    """Blank arguments are read as an empty object, with a receipt."""
    result = await door.run(
        [assistant(None, tool_call("note", "  ")), "done"],
        tools=ledger.tools,
        preset=(),
        tool_call_transforms=["assistant_tool_calls_arguments_blank_to_empty_object"],
    )

    assert ledger.ran == [("note", {"text": ""})]
    assert result.calls[0].raw == "  "
    assert [r.rule for r in result.receipts] == ["blank_to_empty_object"]


async def test_compact_envelope(door: Door, ledger: Ledger) -> None:
    """What is empty in an answer is left out."""
    both = assistant(None, call_add(), tool_call("fail", id="c2"))
    await door.run(
        [both, "5"],
        tools=ledger.tools,
        preset=(),
        tool_result_transforms=["tool_result_compact_envelope"],
    )

    assert door.answers[0] == {"ok": True, "tool_name": "add", "data": {"sum": 5}}
    assert door.answers[1].keys() == {"ok", "tool_name", "errors"}


async def test_names_of_transforms_may_be_written_loosely(door: Door, ledger: Ledger) -> None:
    """Case and hyphens do not matter in a name."""
    await door.run(
        ["hello"],
        tools=[ledger.add],
        tool_transforms=[" OpenAI-Tools-Strip-Function-Descriptions "],
    )

    assert "description" not in door.requests[0]["tools"][0]["function"]


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param('{"name": "add", "arguments": {"a": 2, "b": 3}}', id="name and arguments"),
        pytest.param('{"name": "add", "args": {"a": 2, "b": 3}}', id="name and args"),
        pytest.param(
            '{"function": {"name": "add", "arguments": "{\\"a\\": 2, \\"b\\": 3}"}}', id="function"
        ),
        pytest.param('add {"a": 2, "b": 3}', id="bare name and object"),
    ],
)
async def test_tags_become_calls(door: Door, ledger: Ledger, payload: str) -> None:
    """A call written in tags runs, and the tags are cut from the text."""
    text = f"Let me see.\n<tool_call>\n{payload}\n</tool_call>"
    result = await door.run([text, "5"], tools=ledger.tools, keep_content_with_calls=True, **TAGS)

    assert ledger.ran == [("add", {"a": 2, "b": 3})]
    assert [call.id for call in result.calls] == ["tag_call_1"]
    assert door.messages[1]["content"] == "Let me see."
    assert result.receipts[0].rule == "read_call_from_text"
    assert all(receipt.lossless for receipt in result.receipts)


async def test_a_bare_name_in_tags_is_a_call_without_arguments(door: Door, ledger: Ledger) -> None:
    """Several tags are several calls."""
    text = '<tool_call>note</tool_call> and <tool_call>note {"text": "x"}</tool_call>'
    result = await door.run([text, "done"], tools=ledger.tools, **TAGS)

    assert sorted(ledger.ran, key=str) == [("note", {"text": ""}), ("note", {"text": "x"})]
    assert [call.id for call in result.calls] == ["tag_call_1", "tag_call_2"]


async def test_tags_are_text_unless_the_transform_is_on(door: Door, ledger: Ledger) -> None:
    """By default what looks like a call in the text is the answer."""
    text = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'
    result = await door.run([text], tools=ledger.tools)

    assert result.text == text
    assert result.calls == ()
    assert ledger.ran == []


CALL = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"For example:\n```\n{CALL}\n```", id="inside a fence"),
        pytest.param(f"For example:\n~~~xml\n{CALL}\n~~~", id="inside a fence of tildes"),
        pytest.param(f"Write `{CALL}` to call it.", id="inside inline code"),
        pytest.param(f"{{{{ {CALL} }}}}", id="inside a template"),
        pytest.param(f"Write \\{CALL} to call it.", id="escaped"),
        pytest.param(CALL.removesuffix("</tool_call>"), id="not closed"),
        pytest.param("<tool_call>call add with 2 and 3</tool_call>", id="not a call"),
    ],
)
async def test_quoted_and_unusable_tags_stay_text(door: Door, ledger: Ledger, text: str) -> None:
    """A tag that is only shown, or says nothing usable, calls nothing and loses nothing."""
    result = await door.run([text], tools=ledger.tools, **TAGS)

    assert result.text == text
    assert ledger.ran == []
    assert result.receipts == ()


async def test_real_calls_win_over_tags(door: Door, ledger: Ledger) -> None:
    """With calls in their own field the text is not searched."""
    result = await door.run(
        [assistant("<tool_call>note</tool_call>", call_add()), "5"], tools=ledger.tools, **TAGS
    )

    assert ledger.names_ran == ["add"]
    assert result.receipts == ()


async def test_tags_cannot_reach_a_hidden_tool(door: Door, ledger: Ledger) -> None:
    """A call written as text has no more rights than any other."""
    ran: list[str] = []

    @tool(exposed=False)
    def hidden() -> None:
        """Be hidden."""
        ran.append("hidden")

    await door.run(["<tool_call>hidden</tool_call>", "done"], tools=[ledger.add, hidden], **TAGS)

    assert ran == []
    assert door.answers[0]["errors"][0]["code"] == "TOOL_NOT_ALLOWED"


async def test_the_preset_for_tags_switches_the_transform_on(door: Door, ledger: Ledger) -> None:
    """A preset names transforms, and the trace shows which were in force."""
    result = await door.run(
        [CALL, "5"], tools=ledger.tools, preset="content_tag_tool_call_fallback"
    )

    assert ledger.names_ran == ["add"]
    assert result.trace.turns[0].request.response_transforms == (
        "assistant_content_tool_call_tags_to_tool_calls",
    )


async def test_own_transforms_can_be_registered(door: Door, ledger: Ledger) -> None:
    """An application adds a transform to a registry and refers to it by name."""

    def shout(envelope: dict[str, Any], context: ResultContext) -> dict[str, Any]:
        return {**envelope, "warnings": [f"{context.tool_name} {context.call_id}"]}

    registry = TransformRegistry.builtin()
    registry.register("results", "shout", shout)
    await door.run(
        [calls_add(), "5"],
        tools=ledger.tools,
        transforms=registry,
        tool_result_transforms=["shout"],
    )

    assert json.loads(door.messages[-1]["content"])["warnings"] == ["add call_1"]
