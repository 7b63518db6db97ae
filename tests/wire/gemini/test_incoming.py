"""Requests that clients of Gemini send."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import RequestError
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest

from .wire import GEMINI

PATH = "/models/gemini-x:generateContent"
USER = [{"role": "user", "parts": [{"text": "Hi"}]}]


def _parse(path: str = PATH, **body: Any) -> ModelRequest:
    return GEMINI.parse_request(WireRequest(path=path, body={"contents": USER, **body}))


def test_a_whole_request_is_understood() -> None:
    """Calls without ids are given some, and results find their calls by name and order."""
    look = {"name": "look", "args": {"a": 1}}
    contents = [
        {"parts": [{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": "_-8="}}]},
        {
            "role": "model",
            "parts": [
                {"text": "Hm.", "thought": True},
                {"text": "Look", "thoughtSignature": "S0"},
                {"text": "ing."},
                {"functionCall": look, "thoughtSignature": "S1"},
                {"functionCall": {"name": "look"}},
                {"functionCall": {"id": "own", "name": "see", "args": None}},
            ],
        },
        {
            "role": "function",
            "parts": [
                {"functionResponse": {"name": "see", "response": {"error": {"why": 1}}}},
                {"functionResponse": {"name": "look", "response": {"result": "one"}}},
                {"functionResponse": {"name": "look", "response": {"two": 2}}},
                {"text": "Go on."},
            ],
        },
    ]
    declared = {
        "name": "look",
        "description": "Looks.",
        "parameters": {
            "type": "OBJECT",
            "properties": {"a": {"type": "STRING", "nullable": True, "min_length": "2"}},
        },
    }
    request = _parse(
        contents=contents,
        systemInstruction={"parts": [{"text": "Be brief."}]},
        tools=[{"functionDeclarations": [declared]}],
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
        generationConfig={"maxOutputTokens": 9, "stopSequences": ["x"], "mediaResolution": "LOW"},
        safetySettings=[],
    )
    assert request == ModelRequest(
        model="gemini-x",
        messages=(
            Message("system", "Be brief."),
            Message(
                "user",
                [
                    {"type": "text", "text": "Hi"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,/+8="}},
                ],
            ),
            Message(
                "assistant",
                "Looking.",
                (
                    ToolCall(
                        id="call_1",
                        name="look",
                        arguments={"a": 1},
                        raw={"a": 1},
                        extra={"thought_signature": "S1"},
                    ),
                    ToolCall(id="call_2", name="look", arguments={}, raw={}),
                    ToolCall(id="own", name="see", arguments={}, raw={}),
                ),
                extra={"thought_signature": "S0", "reasoning_content": "Hm."},
            ),
            Message("tool", '{"why":1}', tool_call_id="own", extra={"is_error": True}),
            Message("tool", "one", tool_call_id="call_1"),
            Message("tool", '{"two":2}', tool_call_id="call_2"),
            Message("user", "Go on."),
        ),
        tools=(
            ToolSpec(
                name="look",
                description="Looks.",
                parameters={
                    "type": "object",
                    "properties": {"a": {"type": ["string", "null"], "minLength": 2}},
                },
            ),
        ),
        tool_choice={"type": "function", "function": {"name": "look"}},
        params={
            "max_tokens": 9,
            "stop": ["x"],
            "generationConfig": {"mediaResolution": "LOW"},
            "safetySettings": [],
        },
    )


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        (PATH, "gemini-x", False),
        ("/models/gemini-x:streamGenerateContent?alt=sse", "gemini-x", True),
        ("/v1beta/models/a%20b:streamGenerateContent", "a b", True),
        ("/tunedModels/t:generateContent", "tunedModels/t", False),
    ],
)
def test_the_path_tells_the_model_and_whether_it_streams(
    path: str, model: str, stream: bool
) -> None:
    """The body tells neither."""
    request = _parse(path)
    assert (request.model, request.stream) == (model, stream)


@pytest.mark.parametrize(
    ("config", "params"),
    [
        ({"thinkingConfig": {"thinkingLevel": "LOW"}}, {"reasoning_effort": "low"}),
        ({"thinking_config": {"thinking_budget": 8192}}, {"reasoning_effort": "medium"}),
        (
            {"thinkingConfig": {"thinkingBudget": 77}},
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": 77}}},
        ),
        ({"top_p": 0.5, "candidate_count": 2}, {"top_p": 0.5, "n": 2}),
        (
            {"responseMimeType": "text/x.enum"},
            {"generationConfig": {"responseMimeType": "text/x.enum"}},
        ),
    ],
)
def test_settings_get_their_usual_names(config: dict[str, Any], params: dict[str, Any]) -> None:
    """What has no other name stays as it is, and comes back so."""
    request = _parse(generationConfig=config)
    assert request.params == params
    again = GEMINI.parse_request(GEMINI.render_request(request))
    assert again.params == params


@pytest.mark.parametrize("field", ["responseSchema", "responseJsonSchema"])
def test_the_form_of_the_answer_is_understood(field: str) -> None:
    """With a schema of either kind, or without one."""
    config = {"responseMimeType": "application/json", field: {"type": "object"}}
    schema = {"name": "response", "schema": {"type": "object"}}
    wish = _parse(generationConfig=config).response_format
    assert wish == {"type": "json_schema", "json_schema": schema}
    del config[field]
    assert _parse(generationConfig=config).response_format == {"type": "json_object"}


@pytest.mark.parametrize(
    ("config", "choice", "tools"),
    [
        ({"mode": "AUTO"}, "auto", ["a", "b"]),
        ({"mode": "validated"}, "auto", ["a", "b"]),
        ({"mode": "NONE"}, "none", ["a", "b"]),
        ({"mode": "ANY"}, "required", ["a", "b"]),
        ({"mode": "ANY", "allowedFunctionNames": ["a", "b"]}, "required", ["a", "b"]),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["b"]}, "auto", ["b"]),
        ({}, None, ["a", "b"]),
    ],
)
def test_modes_are_tool_choices(config: dict[str, Any], choice: Any, tools: list[str]) -> None:
    """Where only some functions are allowed, only those are offered."""
    declared = [{"name": "a"}, {"name": "b", "parametersJsonSchema": {"type": "object"}}]
    request = _parse(
        tools=[{"functionDeclarations": declared}], toolConfig={"functionCallingConfig": config}
    )
    assert request.tool_choice == choice
    assert [tool.name for tool in request.tools] == tools


BAD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("INVALID_REQUEST", {"contents": []}),
    ("INVALID_REQUEST", {"contents": "Hi"}),
    ("INVALID_MESSAGE", {"contents": [{"role": "assistant", "parts": []}]}),
    ("INVALID_MESSAGE", {"contents": [{"parts": [{"hologram": 1}]}]}),
    ("INVALID_MESSAGE", {"contents": [{"parts": [{"functionResponse": {"name": "x"}}]}]}),
    ("INVALID_MESSAGE", {"contents": [{"role": "model", "parts": [{"functionCall": {}}]}]}),
    (
        "INVALID_MESSAGE",
        {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "a", "args": 1}}]}]},
    ),
    ("INVALID_REQUEST", {"tools": 3}),
    ("INVALID_REQUEST", {"tools": [{"googleSearch": {}}]}),
    ("INVALID_REQUEST", {"tools": [{"functionDeclarations": [{}]}]}),
    ("INVALID_REQUEST", {"tools": [{"functionDeclarations": [{"name": "a", "description": 1}]}]}),
)


@pytest.mark.parametrize(("code", "body"), BAD)
def test_what_cannot_be_understood_is_refused(code: str, body: dict[str, Any]) -> None:
    """With the place of what is wrong."""
    with pytest.raises(RequestError) as caught:
        _parse(**body)
    assert caught.value.code == code
    assert caught.value.hint


def test_a_path_without_a_model_is_refused() -> None:
    """There is nobody to ask."""
    with pytest.raises(RequestError):
        _parse("/generate")


def test_a_result_may_show_pictures() -> None:
    """They stay with the result that they belong to."""
    picture = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    response = {"name": "look", "response": {"output": "one"}, "parts": [picture]}
    contents = [
        *USER,
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": response}]},
    ]
    assert _parse(contents=contents).messages[-1].content == [
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]


_KEYS = st.sampled_from(
    [
        *("contents", "parts", "role", "text", "functionCall", "functionResponse", "name", "args"),
        *("tools", "functionDeclarations", "generationConfig", "toolConfig", "parameters", "type"),
        *("functionCallingConfig", "mode", "allowedFunctionNames", "thinkingConfig", "response"),
        *("systemInstruction", "inlineData", "properties", "items", "anyOf", "responseSchema"),
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "user", "model", "ANY"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=150, deadline=None)
@given(body=st.dictionaries(_KEYS, _JSON, max_size=5))
def test_any_body_is_understood_or_refused(body: dict[str, Any]) -> None:
    """No other error comes out."""
    try:
        request = GEMINI.parse_request(WireRequest(path=PATH, body=body))
    except RequestError:
        return
    assert isinstance(request, ModelRequest)
