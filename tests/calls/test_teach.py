"""Teaching tools in the prompt, and telling calls and results as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from surecall.base.records import Message, ToolCall, ToolSpec
from surecall.calls.teach import reply_schema, retell_history, teach_tools, tell_not_executed
from surecall.reading import read_reply
from surecall.text import decode

ADD = ToolSpec(
    name="add",
    description="Add two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["a"],
    },
)
PING = ToolSpec(name="ping")


def call(name: str, arguments: dict[str, object] | None, call_id: str = "c1") -> ToolCall:
    """Return a call as it stands in a history."""
    return ToolCall(id=call_id, name=name, arguments=arguments, raw="{broken")


def test_the_lesson_follows_the_callers_own_system_text() -> None:
    """The caller's words stay first and whole; a conversation without any gets a message."""
    (first, second) = teach_tools(
        [Message("system", "Be kind."), Message("user", "hi")], [ADD, PING], "fenced"
    )
    assert isinstance(first.content, str)
    assert first.content.startswith("Be kind.\n\n# Tools\n")
    assert second == Message("user", "hi")
    assert teach_tools([Message("user", "hi")], [PING], "fenced")[0].role == "system"


def test_there_is_exactly_one_example_and_it_names_no_real_tool() -> None:
    """A small model copies what it sees: the example must not be a call that could run."""
    lesson = str(teach_tools([], [ADD, PING], "fenced")[0].content)
    assert lesson.count("```json") == 1
    assert not read_reply(lesson, tools=[ADD, PING], taught=True).calls


def lesson_lines(*tools: ToolSpec) -> list[dict[str, object]]:
    """Return how each tool is described."""
    lesson = str(teach_tools([], tools, "fenced")[0].content)
    return [decode(line) for line in lesson.splitlines() if line.startswith('{"name":"')]


def test_what_may_be_given_is_told_apart_from_what_must_be() -> None:
    """Optional arguments stand by themselves; a tool without any is told by its whole schema."""
    plain = ToolSpec(name="get", parameters={**ADD.parameters, "required": ["a", "note"]})
    (split, whole, nothing) = lesson_lines(ADD, plain, PING)
    assert split == {
        "name": "add",
        "description": "Add two numbers.",
        "required arguments": {"a": {"type": "integer"}},
        "optional arguments, only if the user asks for them": {"note": {"type": "string"}},
    }
    assert whole == {"name": "get", "parameters": plain.parameters}
    assert nothing == {"name": "ping", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    "more",
    [
        {"$defs": {"x": {"type": "string"}}},
        {"additionalProperties": {"type": "string"}},
        {"anyOf": [{"required": ["note"]}, {"required": ["a"]}]},
    ],
    ids=["definitions", "other keys", "alternatives"],
)
def test_a_schema_that_says_more_is_told_whole(more: dict[str, object]) -> None:
    """Nothing that a schema says is lost in two halves."""
    tool = ToolSpec(name="add", parameters={**ADD.parameters, **more})
    assert lesson_lines(tool) == [{"name": "add", "parameters": tool.parameters}]


def test_an_echoed_description_is_no_call() -> None:
    """A small model may repeat what it was told about a tool."""
    lesson = str(teach_tools([], [ADD, PING], "fenced")[0].content)
    for line in (line for line in lesson.splitlines() if line.startswith('{"name":"')):
        for text in (line, f"```json\n{line}\n```", f"I can use this:\n{line}"):
            assert not read_reply(text, tools=[ADD, PING], taught=True).calls, text


def test_a_lesson_that_demands_a_call_offers_no_answer() -> None:
    """The sentence about answering without a tool is left out."""
    lesson = str(teach_tools([], [ADD], "object", must_call=True)[0].content)
    assert lesson.endswith("Use a tool now.")
    assert '"answer"' not in lesson


def test_results_in_a_row_become_one_message() -> None:
    """Roles go on alternating, and each result names its tool."""
    told = retell_history(
        [
            Message("user", "go"),
            Message("assistant", "Both.", (call("add", {"a": 1}, "x"), call("ping", {}, "y"))),
            Message("tool", '{"ok":true}', tool_call_id="x"),
            Message("tool", '{"ok":false}', tool_call_id="y"),
            Message("assistant", "done"),
        ]
    )
    assert [message.role for message in told] == ["user", "assistant", "user", "assistant"]
    assert told[2].content == 'Result of add:\n{"ok":true}\n\nResult of ping:\n{"ok":false}'
    assert str(told[1].content).startswith("Both.\n\n```json\n")
    assert str(told[1].content).count("```json") == 2


def test_a_call_that_could_not_be_read_is_not_told_as_an_empty_one() -> None:
    """What the model wrote is shown; nothing is made up in its place."""
    told = retell_history([Message("assistant", "", (call("add", None),))])
    assert "{broken" in str(told[0].content)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), VALUES, max_size=4))
def test_a_told_call_reads_back_exactly(arguments: dict[str, object]) -> None:
    """What is written in the history is what the same reading would make of it."""
    tool = ToolSpec(name="save", parameters={"type": "object"}, coerce="off")
    told = retell_history([Message("assistant", None, (call("save", arguments),))])
    reading = read_reply(str(told[0].content), tools=[tool], taught=True, finish_reason="stop")
    assert [item.arguments for item in reading.calls] == [arguments]


def test_the_schema_of_a_reply_is_a_choice_of_tools_and_an_answer() -> None:
    """Each branch is closed; a grammar bounds its texts, a strict provider gets one root object."""
    schema, _ = reply_schema([ADD, PING], may_answer=True, is_grammar=True)
    names = [branch["properties"].get("name", {}).get("enum") for branch in schema["anyOf"]]
    assert names == [["add"], ["ping"], None]
    assert all(branch["additionalProperties"] is False for branch in schema["anyOf"])
    note = schema["anyOf"][0]["properties"]["arguments"]["properties"]["note"]
    assert note["anyOf"][0]["maxLength"] > 0

    strict, _ = reply_schema([ADD, PING], may_answer=True, is_grammar=False)
    assert strict["type"] == "object"
    assert list(strict["properties"]) == ["reply"]


def test_one_tool_that_must_be_called_needs_no_choice() -> None:
    """The schema is that call itself."""
    schema, _ = reply_schema([ADD], may_answer=False, is_grammar=True)
    assert schema["properties"]["name"] == {"type": "string", "enum": ["add"]}


def test_an_optional_argument_may_be_null_where_null_is_dropped() -> None:
    """A small model that writes every argument need not make a value up; required ones stay."""
    schema, _ = reply_schema([ADD], may_answer=False, is_grammar=True)
    arguments = schema["properties"]["arguments"]
    optional = [name for name in arguments["properties"] if name not in arguments["required"]]
    for name, inner in arguments["properties"].items():
        takes_null = {"type": "null"} in inner.get("anyOf", ())
        assert takes_null == (name in optional), name
    assert optional
    reading = read_reply(
        '{"name": "add", "arguments": {"a": 1, "note": null}}', tools=[ADD], taught=True
    )
    assert reading.calls[0].arguments == {"a": 1}

    exact = replace(ADD, coerce="off")
    schema, _ = reply_schema([exact], may_answer=False, is_grammar=True)
    note = schema["properties"]["arguments"]["properties"]["note"]
    assert "anyOf" not in note


def test_a_notice_says_the_reason_and_the_form() -> None:
    """The model can act on it without looking back."""
    notice = tell_not_executed("The call was cut off before its end.", "fenced")
    assert notice.startswith("[tool not executed] The call was cut off before its end.")
    assert "```json" in notice
