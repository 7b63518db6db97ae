"""Whatever a reading drops or leaves unread has a receipt or a defect."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from surecall import read_reply, repair_json, tool
from surecall.base.errors import Code, ToolDefinitionError
from surecall.base.records import Reading, Reply, ToolSpec
from surecall.reading import ReplyReader
from surecall.reading.tools import parse_tools
from surecall.tools import ToolRegistry

SCHEMA = {
    "type": "object",
    "properties": {"what": {"type": "string"}},
    "required": ["what"],
}
TOOLS: list[Any] = [{"name": "look", "parameters": SCHEMA}, {"name": "ping"}]
TAGGED = '<tool_call>\n{"name": "look", "arguments": {"what": "x"}}\n</tool_call>'
CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"what":"x"}'}}


def rules(reading: Reading) -> list[tuple[str, str, bool]]:
    """Return what the receipts of a reading say."""
    return [(receipt.rule, receipt.before, receipt.lossless) for receipt in reading.receipts]


# Text that is left out


@dataclass(frozen=True)
class Dropped:
    id: str
    text: str
    receipts: list[tuple[str, str, bool]]
    content: str = ""


DROPPED = (
    Dropped("nothing", f"See:\n{TAGGED}", [], "See:"),
    Dropped("end token", "Hi.<|im_end|>", [("drop_end_token", "<|im_end|>", True)], "Hi."),
    Dropped(
        "end tokens",
        "Hi.<|im_end|>\n<|endoftext|>\n",
        [("drop_end_token", "<|im_end|><|endoftext|>", True)],
        "Hi.",
    ),
    Dropped("token behind a call", f"{TAGGED}</s>", [("drop_end_token", "</s>", True)]),
    Dropped(
        "invented result",
        f'{TAGGED}\n<tool_response>\n{{"seen": 1}}\n</tool_response>\nIt is 1.',
        [
            (
                "drop_invented_result",
                '<tool_response>\n{"seen": 1}\n</tool_response>\nIt is 1.',
                False,
            )
        ],
    ),
    Dropped(
        "answer tags",
        "<think>Hm.</think><answer>Yes.</answer>",
        [("drop_answer_tag", "<answer></answer>", True)],
        "Yes.",
    ),
    Dropped("a mention of a token", "`<|im_end|>` ends a turn.", [], "`<|im_end|>` ends a turn."),
)


@pytest.mark.parametrize("case", DROPPED, ids=lambda case: case.id)
def test_text_that_is_left_out_has_a_receipt(case: Dropped) -> None:
    """Whole or in pieces, however it is split."""
    whole = read_reply(case.text, tools=TOOLS, finish_reason="stop")
    assert (rules(whole), whole.content) == (case.receipts, case.content)
    for size in (1, 2, 7):
        reader = ReplyReader(TOOLS)
        for start in range(0, len(case.text), size):
            reader.feed(case.text[start : start + size])
        assert rules(reader.close("stop")) == case.receipts


def test_a_long_invention_is_shown_in_part() -> None:
    """A receipt is bounded."""
    text = f"{TAGGED}\n<tool_response>{'y' * 9000}</tool_response>"
    (receipt,) = read_reply(text, tools=TOOLS, finish_reason="stop").receipts
    assert receipt.rule == "drop_invented_result"
    assert len(receipt.before) < 240


# Calls in other fields


def _chunks(delta: dict[str, Any]) -> list[dict[str, Any]]:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}}
    return [{"choices": [choice]}, {"choices": [{"index": 0, "finish_reason": "tool_calls"}]}]


def _message(**fields: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": "a", "name": "look", "input": {"what": "x"}}
    body = {"type": "message", "role": "assistant", "content": [block], "stop_reason": "tool_use"}
    return {**body, **fields}


def _response(item: Any = None, **fields: Any) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"what":"x"}'}
    output = [*([item] if item else []), call]
    return {"object": "response", "status": "completed", "output": output, **fields}


def _content(part: dict[str, Any], **fields: Any) -> dict[str, Any]:
    call = {"functionCall": {"id": "a", "name": "look", "args": {"what": "x"}}, **part}
    content = {"role": "model", "parts": [call], **fields}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "m"}


BARE = {"index": 0, "id": "a", "name": "look", "arguments": '{"what":"x"}'}
LEGACY = {"name": "ping", "arguments": "{}"}
SPOKEN = {"type": "message", "role": "assistant", "content": [], "tool_calls": [CALL]}
STRUCTURED = [
    pytest.param({"role": "assistant", "tool_calls": [BARE]}, "wrap_bare_call", id="chat bare"),
    pytest.param(_chunks({"tool_calls": [BARE]}), "wrap_bare_call", id="chat bare, streamed"),
    pytest.param(
        {"role": "assistant", "tool_calls": [CALL], "function_call": LEGACY},
        "drop_legacy_call",
        id="chat legacy",
    ),
    pytest.param(
        _chunks({"tool_calls": [{"index": 0, **CALL}], "function_call": LEGACY}),
        "drop_legacy_call",
        id="chat legacy, streamed",
    ),
    pytest.param(
        {"role": "assistant", "tool_calls": [CALL], "function_call": "ping()"},
        "CALL_ENTRY_DROPPED",
        id="chat legacy as text",
    ),
    pytest.param(
        _chunks({"tool_calls": [{"index": 0, **CALL}], "function_call": "ping()"}),
        "CALL_ENTRY_DROPPED",
        id="chat legacy as text, streamed",
    ),
    pytest.param(_message(tool_calls=[CALL]), "CALL_ENTRY_DROPPED", id="message"),
    pytest.param(_message(function_call=LEGACY), "CALL_ENTRY_DROPPED", id="message, legacy"),
    pytest.param(
        [
            {"type": "message_start", "message": _message(tool_calls=[CALL])},
            {"type": "message_stop"},
        ],
        "CALL_ENTRY_DROPPED",
        id="message, streamed",
    ),
    pytest.param(_response(tool_calls=[CALL]), "CALL_ENTRY_DROPPED", id="response"),
    pytest.param(_response(SPOKEN), "CALL_ENTRY_DROPPED", id="response, in an item"),
    pytest.param(
        {"type": "response.completed", "response": _response(function_call=LEGACY)},
        "CALL_ENTRY_DROPPED",
        id="response, streamed",
    ),
    pytest.param(_content({}, tool_calls=[CALL]), "CALL_ENTRY_DROPPED", id="content"),
    pytest.param(
        _content({"function_call": {"name": "ping", "args": {}}}),
        "CALL_ENTRY_DROPPED",
        id="content, twice",
    ),
    pytest.param(
        [_content({}, tool_calls=[CALL]), {"usageMetadata": {"promptTokenCount": 1}}],
        "CALL_ENTRY_DROPPED",
        id="content, streamed",
    ),
]


@pytest.mark.parametrize(("given", "mark"), STRUCTURED)
def test_a_call_in_another_field_leaves_a_mark(given: Any, mark: str) -> None:
    """The call in the right field is read, and a receipt or a defect tells of the other."""
    reading = read_reply(given, tools=TOOLS)
    assert [(call.name, call.arguments) for call in reading.calls] == [("look", {"what": "x"})]
    marks = [receipt.rule for call in reading.calls for receipt in call.receipts]
    marks += [receipt.rule for receipt in reading.receipts]
    assert mark in [*marks, *(str(defect.code) for defect in reading.defects)]


def test_text_in_the_part_of_a_call_is_kept() -> None:
    """Gemini parts hold one thing each; one that holds two loses none of them."""
    body = _content({"text": "See:"})
    for given in (body, [body, {"usageMetadata": {"promptTokenCount": 1}}]):
        reading = read_reply(given, tools=TOOLS)
        assert (reading.content, len(reading.calls)) == ("See:", 1)


# Text next to calls


OTHER = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
BESIDE = [
    pytest.param("", [], id="nothing"),
    pytest.param("Let me look at ping.", [], id="talk"),
    pytest.param(TAGGED, [], id="the same call"),
    pytest.param(f"Then: {OTHER}", ["ping"], id="another call"),
    pytest.param('Next:\n```json\n{"name": "ping", "arguments": {}}\n```', ["ping"], id="likely"),
]


@pytest.mark.parametrize(("text", "names"), BESIDE)
def test_another_call_in_the_text_is_listed(text: str, names: list[str]) -> None:
    """Calls in their field are the calls; a different one in the text is not lost in silence."""
    message = {"role": "assistant", "content": text, "tool_calls": [CALL]}
    for accept in ("certain", "likely"):
        reading = read_reply(message, tools=TOOLS, accept=accept)
        assert ([call.name for call in reading.calls], reading.content) == (["look"], text)
        assert [call.name for call in reading.seen] == names
        expected = [Code.CALL_IN_TEXT_NOT_READ] * len(names)
        assert [defect.code for defect in reading.defects] == expected
    assert read_reply(message, tools=TOOLS, text_formats=False).seen == ()


# What a provider could not read


def _malformed(message: str, text: str = "") -> dict[str, Any]:
    parts = [{"text": text}] if text else []
    candidate = {
        "content": {"role": "model", "parts": parts},
        "finishReason": "MALFORMED_FUNCTION_CALL",
        "finishMessage": f"Malformed function call: {message}",
    }
    return {"candidates": [candidate], "modelVersion": "m"}


@pytest.mark.parametrize(
    "written",
    [
        "print(default_api.look(what='x'))",
        "default_api.look(what='x')",
        "look(what='x')",
        'call:default_api:look{what:"x"}',
        "call:look{what:<ctrl46>x<ctrl46>}",
        '{"name": "look", "args": {"what": "x"}}',
    ],
)
@pytest.mark.parametrize("text", ["", "One moment."])
def test_a_malformed_call_is_likely_at_most(written: str, text: str) -> None:
    """It is never the answer; it is accepted when likely calls are, and listed otherwise."""
    body = _malformed(written, text)
    for given in (body, [body, {"usageMetadata": {"promptTokenCount": 1}}]):
        certain = read_reply(given, tools=TOOLS)
        assert (certain.calls, certain.content) == ((), text)
        assert [(call.name, call.arguments) for call in certain.seen] == [("look", {"what": "x"})]
        codes = [Code.MALFORMED_FUNCTION_CALL, Code.CALL_IN_TEXT_NOT_READ]
        assert [defect.code for defect in certain.defects] == codes
        likely = read_reply(given, tools=TOOLS, accept="likely")
        assert [(call.certainty, call.state) for call in likely.calls] == [("likely", "whole")]
        assert "provider could not read" in likely.calls[0].doubt
        assert (likely.seen, likely.content) == ((), text)
        assert likely.finish_reason == "malformed_function_call"


def test_a_malformed_call_that_nobody_can_read_is_only_noted() -> None:
    """The defect has its beginning; the text is no answer."""
    variants: list[dict[str, Any]] = [{}, {"text_formats": False}, {"accept": "likely"}]
    for options in variants:
        reading = read_reply(_malformed("lo ok(("), tools=TOOLS, **options)
        assert (reading.calls, reading.seen, reading.content) == ((), (), "")
        assert [defect.code for defect in reading.defects] == [Code.MALFORMED_FUNCTION_CALL]
        assert "lo ok((" in reading.defects[0].message


def test_a_turn_that_was_paused_has_a_defect() -> None:
    """The finish reason is in the reading, too."""
    body = {"type": "message", "role": "assistant", "stop_reason": "pause_turn"}
    reading = read_reply({**body, "content": [{"type": "text", "text": "Searching."}]})
    assert (reading.content, reading.finish_reason) == ("Searching.", "pause_turn")
    assert [defect.code for defect in reading.defects] == [Code.TURN_PAUSED]


# Tools


def look(what: str, count: int = 1) -> str:
    """Look at something.

    Args:
        what: The thing.
        count: How often.
    """
    return what * count


class Eye:
    """Has a method."""

    def look(self, what: str, count: int = 1) -> str:
        """Look at something."""
        return what * count


DECLARED = {
    "name": "look",
    "description": "Look at something.",
    "parameters": {
        "type": "OBJECT",
        "properties": {"what": {"type": "STRING"}, "count": {"type": "INTEGER"}},
        "required": ["what"],
    },
}
PLAIN: dict[str, Any] = repair_json(json.dumps(DECLARED["parameters"]).lower()).value
FORMS = {
    "function": look,
    "method": Eye().look,
    "method without its object": Eye.look,
    "tool": tool(look),
    "spec": ToolSpec(name="look", parameters=PLAIN),
    "chat": {"type": "function", "function": {"name": "look", "parameters": PLAIN}},
    "responses": {"type": "function", "name": "look", "parameters": PLAIN, "strict": True},
    "messages": {"name": "look", "description": "d", "input_schema": PLAIN},
    "gemini": {"function_declarations": [DECLARED]},
    "gemini, other spelling": {"functionDeclarations": [DECLARED]},
    "gemini, alone": DECLARED,
    "gemini, JSON Schema": {
        "functionDeclarations": [{"name": "look", "parametersJsonSchema": PLAIN}]
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_a_tool_may_have_any_form(form: str) -> None:
    """It finds the call in the text, and its schema fits the arguments."""
    text = '<tool_call>{"name": "Look", "arguments": {"what": 3, "count": "2"}}</tool_call>'
    (call,) = read_reply(text, tools=[FORMS[form]], finish_reason="stop").calls
    assert (call.name, call.arguments) == ("look", {"what": "3", "count": 2})


def test_tools_of_the_google_sdk_are_tools() -> None:
    """Whole tools and single declarations."""
    types = pytest.importorskip("google.genai.types")
    declared = types.FunctionDeclaration.model_validate(DECLARED)
    for given in (declared, types.Tool(function_declarations=[declared])):
        (spec,) = parse_tools([given])
        assert (spec.name, spec.parameters["type"]) == ("look", "object")


def test_a_registry_is_a_list_of_tools() -> None:
    """As it is."""
    assert [spec.name for spec in parse_tools(ToolRegistry([look]))] == ["look"]


@pytest.mark.parametrize(
    "given",
    [{"type": "web_search_preview"}, {"google_search": {}}, {"type": "code_interpreter"}],
)
def test_tools_that_the_provider_runs_are_left_out(given: Any) -> None:
    """No call of them arrives."""
    assert [spec.name for spec in parse_tools([given, look])] == ["look"]


UNNAMED: Any = lambda: 1  # noqa: E731 - it has no name
NO_TOOLS: list[Any] = [
    look,
    "look",
    3,
    {"name": "look"},
    [3],
    [None],
    [{}],
    [{"type": "object", "properties": {}}],
    [UNNAMED],
    [str],
    [{"function_declarations": [{"name": 3}]}],
]


@pytest.mark.parametrize("given", NO_TOOLS)
def test_anything_else_is_no_tool(given: Any) -> None:
    """The error says what can be given."""
    with pytest.raises(ToolDefinitionError) as caught:
        read_reply(Reply(content="Hi"), tools=given)
    assert caught.value.code == Code.INVALID_TOOL
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{""name": "look", "arguments": {"what": "x"}}\n</tool_call>',
        '<|tool_call|>[{arguments": {"what": "x"}, "name": "look"}]',
    ],
)
def test_markup_around_something_else_than_a_call_is_noted(text: str) -> None:
    """What it holds is not shown as an answer, so at least it is said that it was there."""
    reading = read_reply(text, tools=TOOLS, finish_reason="stop")
    assert (reading.calls, reading.content) == ((), "")
    assert [defect.code for defect in reading.defects] == ["CALL_ENTRY_DROPPED"]


@pytest.mark.parametrize("text", ["<tool_calls>[]</tool_calls>", "<tool_call>\n</tool_call>"])
def test_empty_markup_is_nothing(text: str) -> None:
    """A model that calls nothing may say so in its format."""
    assert read_reply(text, tools=TOOLS, finish_reason="stop").defects == ()
