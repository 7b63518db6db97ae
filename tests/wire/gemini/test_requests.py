"""Requests on their way to Gemini."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import Code, RequestError
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec
from surecall.wire import Gemini
from surecall.wire.gemini import render_tool, schema_losses
from surecall.wire.gemini.parts import own_name, wire_name

GEMINI = Gemini()
LOOK = ToolSpec(
    name="look",
    description="Looks.",
    parameters={
        "type": "object",
        "properties": {"what": {"type": ["string", "null"], "format": "email"}},
        "required": ["what"],
        "additionalProperties": False,
    },
)


def _body(*messages: Message, **fields: Any) -> dict[str, Any]:
    request = ModelRequest(model="gemini-x", messages=messages, **fields)
    return GEMINI.render_request(request).body


def test_a_whole_conversation_is_rendered() -> None:
    """Instruction, turns, calls with signatures, results in call order, tools and settings."""
    calls = (
        ToolCall(id="c1", name="look", arguments={"what": "a"}, extra={"thought_signature": "S1"}),
        ToolCall(id="c2", name="look", arguments={}, extra={"other": 1}),
    )
    request = ModelRequest(
        model="gemini-x",
        messages=(
            Message("system", "Be brief."),
            Message("user", "Hi"),
            Message("assistant", "Looking.", calls, extra={"thought_signature": "S0"}),
            Message("tool", "two", tool_call_id="c2", extra={"is_error": True}),
            Message("tool", '{"one":1}', tool_call_id="c1"),
            Message("user", "And?"),
            Message("developer", "Now."),
        ),
        tools=(LOOK,),
        tool_choice="required",
        params={"temperature": 0.5, "max_tokens": 9, "safetySettings": []},
        stream=True,
    )
    wire = GEMINI.render_request(request)
    assert wire.path == "/models/gemini-x:streamGenerateContent?alt=sse"
    assert wire.stream
    assert wire.body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Now."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Looking.", "thoughtSignature": "S0"},
                    {
                        "functionCall": {"id": "c1", "name": "look", "args": {"what": "a"}},
                        "thoughtSignature": "S1",
                    },
                    {"functionCall": {"id": "c2", "name": "look", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "look", "response": {"one": 1}}},
                    {
                        "functionResponse": {
                            "id": "c2",
                            "name": "look",
                            "response": {"error": "two"},
                        }
                    },
                    {"text": "And?"},
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "look",
                        "description": "Looks.",
                        "parameters": {
                            "type": "object",
                            "properties": {
                                "what": {
                                    "type": "string",
                                    "nullable": True,
                                    "description": "[format: email]",
                                }
                            },
                            "required": ["what"],
                        },
                    }
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": 9},
        "safetySettings": [],
    }


@dataclass(frozen=True)
class Setting:
    id: str
    params: dict[str, Any]
    config: dict[str, Any]
    model: str = "gemini-3-pro"


SETTINGS = (
    Setting("names", {"top_p": 0.5, "top_k": 3, "seed": 1}, {"topP": 0.5, "topK": 3, "seed": 1}),
    Setting("one stop", {"stop": "x"}, {"stopSequences": ["x"]}),
    Setting("stops", {"stop": ["x", "y"]}, {"stopSequences": ["x", "y"]}),
    Setting("newer limit", {"max_completion_tokens": 5}, {"maxOutputTokens": 5}),
    Setting("level", {"reasoning_effort": "low"}, {"thinkingConfig": {"thinkingLevel": "LOW"}}),
    Setting(
        "no thinking",
        {"reasoning_effort": "none"},
        {"thinkingConfig": {"thinkingLevel": "MINIMAL"}},
    ),
    Setting(
        "budget",
        {"reasoning_effort": "medium"},
        {"thinkingConfig": {"thinkingBudget": 8192}},
        "gemini-2.5-flash",
    ),
    Setting(
        "own config",
        {
            "reasoning_effort": "high",
            "temperature": 1,
            "generationConfig": {
                "temperature": 0,
                "thinkingConfig": {"includeThoughts": True},
                "mediaResolution": "X",
            },
        },
        {
            "temperature": 0,
            "thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True},
            "mediaResolution": "X",
        },
    ),
)


@pytest.mark.parametrize("case", SETTINGS, ids=lambda case: case.id)
def test_settings_get_the_names_of_the_format(case: Setting) -> None:
    """Canonical names are renamed; what the caller writes for Gemini itself wins."""
    request = ModelRequest(model=case.model, messages=(Message("user", "Hi"),), params=case.params)
    body = GEMINI.render_request(request).body
    assert body["generationConfig"] == case.config


def test_settings_that_gemini_refuses_are_left_out_and_others_pass() -> None:
    """A name it does not know is an error 400 there."""
    params = {"user": "u", "metadata": {}, "store": True, "cachedContent": "c/1"}
    body = _body(Message("user", "Hi"), params=params, parallel_tool_calls=False)
    assert body.keys() == {"contents", "cachedContent"}


def test_the_form_of_the_answer_is_rendered() -> None:
    """A schema is rewritten; plain JSON needs the type only."""
    schema = {"type": "object", "properties": {"a": {"const": 1}}}
    wish = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    config = _body(Message("user", "Hi"), response_format=wish)["generationConfig"]
    assert config == {
        "responseMimeType": "application/json",
        "responseSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer", "description": "[one of: [1]]"}},
        },
    }
    config = _body(Message("user", "Hi"), response_format={"type": "json_object"})
    assert config["generationConfig"] == {"responseMimeType": "application/json"}


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (
            {"type": "function", "function": {"name": "look"}},
            {"mode": "ANY", "allowedFunctionNames": ["look"]},
        ),
        ({"type": "function", "name": "look"}, {"mode": "ANY", "allowedFunctionNames": ["look"]}),
        ({"type": "tool", "name": "look"}, {"mode": "ANY", "allowedFunctionNames": ["look"]}),
        ({"type": "auto"}, {"mode": "AUTO"}),
        ({"type": "any"}, {"mode": "ANY"}),
    ],
)
def test_tool_choices_are_modes(choice: Any, config: dict[str, Any]) -> None:
    """A named function is the only one that may be called, and must be."""
    body = _body(Message("user", "Hi"), tools=(LOOK,), tool_choice=choice)
    assert body["toolConfig"] == {"functionCallingConfig": config}


PARTS = (
    ({"type": "text", "text": "t"}, {"text": "t"}),
    (
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
    ),
    (
        {"type": "image_url", "image_url": {"url": "https://x.example/a.JPG?s=1"}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://x.example/a.JPG?s=1"}},
    ),
    (
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
        {"inlineData": {"mimeType": "audio/mp3", "data": "AA=="}},
    ),
    (
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA=="}},
        {"inlineData": {"mimeType": "application/pdf", "data": "AA=="}},
    ),
    (
        {"type": "file", "file": {"file_id": "https://g.example/files/1"}},
        {"fileData": {"fileUri": "https://g.example/files/1"}},
    ),
)


@pytest.mark.parametrize(("part", "wire"), PARTS)
def test_parts_are_rendered(part: dict[str, Any], wire: dict[str, Any]) -> None:
    """Data goes inline, addresses as files; a cache hint has no place."""
    content = [{**part, "cache_control": {"type": "ephemeral"}}]
    assert _body(Message("user", content))["contents"] == [{"role": "user", "parts": [wire]}]


@pytest.mark.parametrize(
    "part", [{"type": "video"}, {"type": "text"}, {"type": "image_url", "image_url": {}}, {}]
)
def test_a_part_that_cannot_be_sent_is_refused(part: dict[str, Any]) -> None:
    """It is not left out in silence."""
    with pytest.raises(RequestError) as caught:
        _body(Message("user", [part]))
    assert caught.value.code == Code.INVALID_MESSAGE


@pytest.mark.parametrize(
    ("text", "response"),
    [
        ("plain", {"output": "plain"}),
        ("[1]", {"output": "[1]"}),
        ('{"ok":true,"data":{}}', {"ok": True, "data": {}}),
        ('{"output":"x"}', {"output": '{"output":"x"}'}),
        ('{"error":"x"}', {"output": '{"error":"x"}'}),
        ('{"cut', {"output": '{"cut'}),
        ("", {"output": ""}),
    ],
)
def test_results_are_objects(text: str, response: dict[str, Any]) -> None:
    """An object goes as it is, unless it could be mistaken for a wrapper."""
    call = ToolCall(id="c", name="look", arguments={})
    contents = _body(Message("assistant", None, (call,)), Message("tool", text, tool_call_id="c"))
    assert contents["contents"][1]["parts"][0]["functionResponse"]["response"] == response
    again = GEMINI.parse_request(
        GEMINI.render_request(
            ModelRequest(
                model="m",
                messages=(
                    Message("assistant", None, (call,)),
                    Message("tool", text, tool_call_id="c"),
                ),
            )
        )
    )
    assert again.messages[1] == Message("tool", text, tool_call_id="c")


def test_unreadable_arguments_and_unknown_results_stay_valid() -> None:
    """History never makes a request that the provider refuses."""
    call = ToolCall(id="c", name="look", arguments=None, raw='{"a": ', state="unreadable")
    body = _body(
        Message("assistant", None, (call,)),
        Message("tool", [{"type": "text", "text": "r"}, dict(PARTS[1][0])], tool_call_id="c"),
        Message("tool", "lost", tool_call_id="other"),
    )
    model, user = body["contents"]
    assert model["parts"][0]["functionCall"]["args"] == {"_unreadable_arguments": '{"a": '}
    assert [sorted(part) for part in user["parts"]] == [
        ["functionResponse"],
        ["functionResponse"],
        ["inlineData"],
    ]
    assert user["parts"][1]["functionResponse"]["name"] == "unknown"


def test_a_signature_without_text_is_sent_on_an_empty_part() -> None:
    """It must come back where it came from, and foreign thoughts are left out."""
    extra = {"thought_signature": "S", "reasoning_content": "r", "thinking_blocks": []}
    contents = _body(Message("assistant", None, extra=extra))["contents"]
    assert contents == [{"role": "model", "parts": [{"text": "", "thoughtSignature": "S"}]}]


def test_a_tool_without_parameters_has_none() -> None:
    """An object without properties is refused by the provider."""
    assert render_tool(ToolSpec(name="now", parameters={"type": "object", "properties": {}})) == {
        "name": "now"
    }


def test_what_schemas_lose_can_be_asked_for() -> None:
    """By the name of the tool; tools that lose nothing are left out."""
    plain = ToolSpec(name="plain", parameters={"type": "object"})
    losses = schema_losses((LOOK, plain))
    assert list(losses) == ["look"]
    assert [(loss.place, loss.keyword) for loss in losses["look"]] == [
        ("", "additionalProperties"),
        ("/properties/what", "format"),
    ]


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-x", "/models/gemini-x:generateContent"),
        ("models/gemini-x", "/models/gemini-x:generateContent"),
        ("tunedModels/t", "/tunedModels/t:generateContent"),
        ("a b?c", "/models/a%20b%3Fc:generateContent"),
    ],
)
def test_the_model_is_in_the_path(model: str, path: str) -> None:
    """A full resource name is used as it is."""
    request = ModelRequest(model=model, messages=(Message("user", "Hi"),))
    assert GEMINI.render_request(request).path == path


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("look", "look"),
        ("look.at:it-now", "look.at:it-now"),
        ("weather/today", "_x_weather_2f_today"),
        ("a_b c", "_x_a__b_20_c"),
        ("1st", "_x_1st"),
        ("größe", "_x_gr_f6__df_e"),
        ("_x_weather_2f_today", "_x___x__weather__2f__today"),
        ("_x_own", "_x_own"),
        ("", "_"),
    ],
)
def test_names_that_break_the_rules_are_written_so_that_they_can_be_read_back(
    name: str, wire: str
) -> None:
    """Names that fit stay as they are."""
    assert wire_name(name) == wire
    if name:
        assert own_name(wire) == name


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=15))
def test_any_short_name_comes_back(name: str) -> None:
    """Whatever it is made of."""
    assert own_name(wire_name(name)) == name
