"""Requests that clients send."""

from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import RequestError
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.wire.messages import Messages

CACHE = {"type": "ephemeral", "ttl": "1h"}
HI = {"role": "user", "content": "Hi"}
TEXT = {"type": "text", "text": "Hi."}
USE = {"type": "tool_use", "id": "a", "name": "look_up", "input": {"q": "x"}}
CALL = ToolCall(id="a", name="look_up", arguments={"q": "x"}, raw={"q": "x"})
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}


def _parse(*turns: Any, **fields: Any) -> ModelRequest:
    body = {"model": "m", "max_tokens": 9, "messages": list(turns) or [HI], **fields}
    return Messages().parse_request(WireRequest(path="/messages", body=body))


def test_a_small_request_is_understood() -> None:
    """The limit is a parameter like others."""
    assert _parse() == ModelRequest(
        model="m", messages=(Message("user", "Hi"),), params={"max_tokens": 9}
    )


@dataclass(frozen=True)
class Turn:
    id: str
    turn: dict[str, Any]
    messages: tuple[Message, ...]


def _user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def _assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def _result(content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "a", "content": content, **fields}


def _answer(content: Any, **extra: Any) -> Message:
    return Message("tool", content, tool_call_id="a", extra=extra)


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iV"}}
IMAGE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iV"}}
UPLOADED = {"type": "image", "source": {"type": "file", "file_id": "f"}}

TURNS = (
    Turn("lone text block", _user(TEXT), (Message("user", "Hi."),)),
    Turn("two text blocks", _user(TEXT, TEXT), (Message("user", [TEXT, TEXT]),)),
    Turn(
        "hint",
        _user({**TEXT, "cache_control": CACHE, "citations": None}),
        (Message("user", [{**TEXT, "cache_control": CACHE}]),),
    ),
    Turn("image as data", _user(IMAGE), (Message("user", [IMAGE_PART]),)),
    Turn(
        "image elsewhere with a hint",
        _user(
            {
                "type": "image",
                "source": {"type": "url", "url": "https://x.test/a.png"},
                "cache_control": CACHE,
            }
        ),
        (
            Message(
                "user",
                [
                    {
                        "type": "image_url",
                        "image_url": {"url": "https://x.test/a.png"},
                        "cache_control": CACHE,
                    }
                ],
            ),
        ),
    ),
    Turn("uploaded image stays", _user(UPLOADED), (Message("user", [UPLOADED]),)),
    Turn(
        "document of text",
        _user(
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "Hi"},
                "title": "a.txt",
                "citations": {"enabled": True},
            }
        ),
        (
            Message(
                "user",
                [
                    {
                        "type": "file",
                        "file": {"file_data": "data:text/plain;base64,SGk=", "filename": "a.txt"},
                        "citations": {"enabled": True},
                    }
                ],
            ),
        ),
    ),
    Turn(
        "document by id",
        _user({"type": "document", "source": {"type": "file", "file_id": "f"}}),
        (Message("user", [{"type": "file", "file": {"file_id": "f"}}]),),
    ),
    Turn("result", _user(_result("42")), (_answer("42"),)),
    Turn("result without content", _user(_result(None)), (_answer(""),)),
    Turn(
        "result that failed", _user(_result("no", is_error=True)), (_answer("no", is_error=True),)
    ),
    Turn("result of one text block", _user(_result([TEXT])), (_answer("Hi."),)),
    Turn("result with an image", _user(_result([TEXT, IMAGE])), (_answer([TEXT, IMAGE_PART]),)),
    Turn(
        "result with a hint",
        _user(_result("42", cache_control=CACHE)),
        (_answer([{"type": "text", "text": "42", "cache_control": CACHE}]),),
    ),
    Turn(
        "results come before words",
        _user(TEXT, _result("42")),
        (_answer("42"), Message("user", "Hi.")),
    ),
    Turn("assistant", {"role": "assistant", "content": "Hi."}, (Message("assistant", "Hi."),)),
    Turn("assistant in blocks", _assistant(TEXT, TEXT), (Message("assistant", "Hi.Hi."),)),
    Turn("call", _assistant(USE), (Message("assistant", None, (CALL,)),)),
    Turn(
        "thoughts with signatures",
        _assistant(THOUGHT, HIDDEN, TEXT, USE),
        (Message("assistant", "Hi.", (CALL,), extra={"thinking_blocks": [THOUGHT, HIDDEN]}),),
    ),
    Turn(
        "thoughts without a signature",
        _assistant({**THOUGHT, "signature": ""}, TEXT),
        (Message("assistant", "Hi.", extra={"reasoning_content": "Hm."}),),
    ),
    Turn(
        "a thought without a signature beside one with it",
        _assistant({**THOUGHT, "signature": ""}, TEXT, THOUGHT),
        (Message("assistant", "Hi.", extra={"thinking_blocks": [THOUGHT]}),),
    ),
    Turn(
        "hint of a call",
        _assistant({**USE, "cache_control": CACHE, "caller": None}),
        (
            Message(
                "assistant",
                None,
                (
                    ToolCall(
                        id="a",
                        name="look_up",
                        arguments={"q": "x"},
                        raw={"q": "x"},
                        extra={"cache_control": CACHE},
                    ),
                ),
            ),
        ),
    ),
    Turn(
        "tools of the provider",
        _assistant({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, TEXT),
        (
            Message(
                "assistant",
                [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, TEXT],
            ),
        ),
    ),
    Turn("system", {"role": "system", "content": "Be brief."}, (Message("system", "Be brief."),)),
)


@pytest.mark.parametrize("case", TURNS, ids=lambda case: case.id)
def test_turns_become_messages(case: Turn) -> None:
    """Every kind of block has its place in records."""
    assert _parse(case.turn).messages == case.messages


@pytest.mark.parametrize(
    ("system", "messages"),
    [
        ("Be brief.", (Message("system", "Be brief."),)),
        ([TEXT], (Message("system", "Hi."),)),
        (
            [TEXT, {**TEXT, "cache_control": CACHE}],
            (Message("system", [TEXT, {**TEXT, "cache_control": CACHE}]),),
        ),
        ([], ()),
        (None, ()),
    ],
)
def test_the_system_prompt_comes_first(system: Any, messages: tuple[Message, ...]) -> None:
    """As the message it is elsewhere."""
    assert _parse(system=system).messages == (*messages, Message("user", "Hi"))


def test_tools_are_understood() -> None:
    """With what the format says beside name and schema."""
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    tools = [
        {"name": "a", "description": "A.", "input_schema": schema, "cache_control": CACHE},
        {"type": "custom", "name": "b", "input_schema": schema, "strict": True, "x": None},
    ]
    assert _parse(tools=tools).tools == (
        ToolSpec(name="a", description="A.", parameters=schema, extra={"cache_control": CACHE}),
        ToolSpec(name="b", parameters=schema, extra={"strict": True}),
    )


@pytest.mark.parametrize(
    ("choice", "expected", "parallel"),
    [
        ({"type": "auto"}, "auto", None),
        ({"type": "auto", "disable_parallel_tool_use": True}, "auto", False),
        ({"type": "any", "disable_parallel_tool_use": False}, "required", None),
        ({"type": "none"}, "none", None),
        (
            {"type": "tool", "name": "a", "disable_parallel_tool_use": True},
            {"type": "function", "function": {"name": "a"}},
            False,
        ),
        (None, None, None),
    ],
)
def test_tool_choices_are_understood(choice: Any, expected: Any, parallel: bool | None) -> None:
    """Whether several calls may come at once is a setting of its own in records."""
    request = _parse(tool_choice=choice)
    assert (request.tool_choice, request.parallel_tool_calls) == (expected, parallel)


def test_parameters_get_the_names_of_records() -> None:
    """What is unknown goes along, and null is as good as absent."""
    schema = {"type": "object"}
    request = _parse(
        stop_sequences=["END"],
        metadata={"user_id": "u"},
        temperature=0.5,
        top_k=None,
        thinking={"type": "adaptive"},
        output_config={"effort": "high", "format": {"type": "json_schema", "schema": schema}},
        service_tier="auto",
        stream=True,
    )
    assert request.params == {
        "max_tokens": 9,
        "stop": ["END"],
        "user": "u",
        "temperature": 0.5,
        "thinking": {"type": "adaptive"},
        "reasoning_effort": "high",
        "service_tier": "auto",
    }
    assert request.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }
    assert request.stream is True


@dataclass(frozen=True)
class Refused:
    id: str
    fields: dict[str, Any]
    words: str
    code: str = "INVALID_REQUEST"


def _bad(case_id: str, turn: Any, words: str) -> Refused:
    return Refused(case_id, {"messages": [HI, turn]}, words, "INVALID_MESSAGE")


REFUSED = (
    Refused("no model", {"model": None}, "model is null"),
    Refused("blank model", {"model": " "}, "model is ' '"),
    Refused("no messages", {"messages": []}, "messages is an empty list"),
    Refused("messages of another type", {"messages": {"a": 1}}, "a value of type dict"),
    Refused("stream of another type", {"stream": "yes"}, "stream is 'yes'"),
    Refused("limit of another type", {"max_tokens": "9"}, "max_tokens is '9'"),
    Refused("limit that is a truth value", {"max_tokens": True}, "max_tokens is true"),
    Refused("stops of another type", {"stop_sequences": "END"}, "stop_sequences is 'END'"),
    Refused("metadata of another type", {"metadata": "u"}, "metadata is 'u'"),
    Refused(
        "format of another type", {"output_config": {"format": "json"}}, "output_config.format"
    ),
    Refused("tools of another type", {"tools": {"a": 1}}, "tools is a value of type dict"),
    Refused("tool without name", {"tools": [{"input_schema": {}}]}, "tools[0] has the name null"),
    Refused(
        "tool without schema", {"tools": [{"name": "a"}]}, "tools[0] has the input_schema null"
    ),
    Refused(
        "description of another type",
        {"tools": [{"name": "a", "input_schema": {}, "description": 3}]},
        "tools[0] has the description",
    ),
    Refused(
        "tool of the provider",
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        "Only custom tools can be carried",
    ),
    Refused("unknown choice", {"tool_choice": {"type": "ani"}}, "Did you mean 'any'"),
    Refused("choice as text", {"tool_choice": "auto"}, "Use an object with the type"),
    Refused("choice without a name", {"tool_choice": {"type": "tool"}}, "tool_choice names null"),
    Refused(
        "system of another type", {"system": 3}, "system is a value of type int", "INVALID_MESSAGE"
    ),
    _bad("turn of another type", "Hi", "messages[1] has the role null"),
    _bad("unknown role", {"role": "usr", "content": "x"}, "Did you mean 'user'"),
    _bad("no content", {"role": "user"}, "messages[1].content is null"),
    _bad("blocks of another type", _user("x"), "messages[1].content is a value of type list"),
    _bad("block without type", _user({"text": "x"}), "a block of type null"),
    _bad("text of another type", _user({"type": "text", "text": 3}), "has the text a value"),
    _bad("call of the user", _user(USE), "'tool_use'. It does not belong there"),
    _bad("thought of the user", _user(THOUGHT), "'thinking'. It does not belong there"),
    _bad(
        "result of the assistant",
        _assistant(_result("x")),
        "'tool_result'. It does not belong there",
    ),
    _bad("result without its call", _user({"type": "tool_result"}), "answers the call null"),
    _bad("content of a result", _user(_result(3)), "messages[1].content[0].content is"),
    _bad("call without id", _assistant({**USE, "id": ""}), "without an id or a name"),
    _bad("input as text", _assistant({**USE, "input": "{}"}), "has the input '{}'"),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_nonsense_is_refused_with_its_place(case: Refused) -> None:
    """The error names what is wrong and says what to do."""
    with pytest.raises(RequestError) as caught:
        _parse(**case.fields)
    assert caught.value.code == case.code
    assert case.words in str(caught.value)
    assert caught.value.hint
