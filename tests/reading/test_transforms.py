"""Shapes that built-in transforms are named for: read in one place, with the same receipts."""

from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.records import Reading
from surecall.calls import ToolNames
from surecall.reading import TRANSFORM_RULES, read_reply, without_rules

LEGACY = "assistant_function_call_to_tool_calls"
LONE = "assistant_tool_calls_object_to_array"
OBJECT = "assistant_tool_calls_arguments_json_string_if_hash"
TAGS = "assistant_content_tool_call_tags_to_tool_calls"
BLANK = "assistant_tool_calls_arguments_blank_to_empty_object"

NAMES = ("a", "find", "find_it", "a.b-C_9")
PROPERTIES: dict[str, Any] = {"x": {}, "q": {}, "t": {}}
TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": PROPERTIES}} for name in NAMES
]
TAG = "<tool_call>a</tool_call>"


def wire_call(name: str, arguments: Any, call_id: str | None = "c1") -> dict[str, Any]:
    """Build a call in wire form."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def read(message: Any, *transforms: str, **settings: Any) -> Reading:
    """Read a message with text formats off."""
    settings = {"finish_reason": "stop", "text_formats": False, **settings}
    return read_reply(message, tools=TOOLS, transforms=transforms, **settings)


def rules_of(reading: Reading) -> list[str]:
    """Return the rules of all receipts of the calls."""
    return [receipt.rule for call in reading.calls for receipt in call.receipts]


@dataclass(frozen=True)
class Shape:
    id: str
    message: dict[str, Any]
    rules: list[str]
    transform: str


SHAPES = (
    Shape("legacy", {"function_call": {"name": "a", "arguments": "{}"}}, [LEGACY], LEGACY),
    Shape("lone", {"tool_calls": wire_call("a", "{}")}, [LONE], LONE),
    Shape("object", {"tool_calls": [wire_call("a", {"x": 1})]}, [OBJECT], OBJECT),
    Shape("lone object", {"tool_calls": wire_call("a", {"x": 1})}, [LONE, OBJECT], LONE),
    Shape("blank", {"tool_calls": [wire_call("a", " ")]}, ["blank_to_empty_object"], BLANK),
)


@pytest.mark.parametrize("case", SHAPES, ids=lambda case: case.id)
def test_a_shape_leaves_the_same_receipts_with_and_without_its_transform(case: Shape) -> None:
    """Which rule did it does not depend on the configuration."""
    plain, named = read(case.message), read(case.message, case.transform)
    assert rules_of(plain) == rules_of(named) == case.rules
    assert plain.calls[0].arguments == named.calls[0].arguments
    assert plain.calls[0].raw == named.calls[0].raw


@pytest.mark.parametrize("case", SHAPES, ids=lambda case: case.id)
def test_structure_stays_on_unless_it_is_named(case: Shape) -> None:
    """All rules off leaves structure alone; the name of a transform switches its rule off."""
    reading = read(case.message, case.transform)
    reply: Any = None
    names = ToolNames()
    everything = without_rules(reading, reply, frozenset({"*"}), names).calls[0]
    assert (everything.arguments is None) == (case.id == "blank")
    assert (
        without_rules(reading, reply, frozenset({case.transform}), names).calls[0].arguments is None
    )


def test_the_id_of_a_legacy_call_is_what_its_transform_gave() -> None:
    """A run that was recorded under either name finds its results."""
    message = {"function_call": {"name": "a", "arguments": "{}"}}
    assert read(message).calls[0].id == "tc_1"
    assert read(message, LEGACY).calls[0].id == "call_1"
    assert read(message, LEGACY, used_ids={"call_1"}).calls[0].id == "call_1__2"


def test_objects_are_not_odd_where_the_wire_format_has_them() -> None:
    """Only chat completions should have sent text."""
    from surecall.base.records import RawCall, Reply

    reply = Reply(calls=(RawCall("c1", "a", {"x": 1}),), finish_reason="tool_calls")
    assert rules_of(read(reply, OBJECT)) == []


def test_blank_arguments_are_doubted_unless_the_transform_says_what_they_mean() -> None:
    """A call without its arguments may have lost them."""
    message = {"tool_calls": [wire_call("a", "")]}
    assert read(message).calls[0].certainty == "likely"
    assert read(message, BLANK).calls[0].certainty == "certain"


# Tags


def test_tags_are_text_unless_their_transform_is_on() -> None:
    """Nothing else is read from text either."""
    assert read(TAG).calls == ()
    assert [call.id for call in read(f"{TAG}{TAG}", TAGS).calls] == ["tag_call_1", "tag_call_2"]
    assert read('```json\n{"name": "a", "arguments": {}}\n```', TAGS).calls == ()


def test_tags_are_cut_from_the_content() -> None:
    """Text around them stays."""
    reading = read(f'Look.\n<tool_call>{{"name": "a"}}</tool_call> and {TAG}\n', TAGS)
    assert [call.name for call in reading.calls] == ["a", "a"]
    assert reading.content.split() == ["Look.", "and"]
    assert rules_of(reading) == ["read_call_from_text", "read_call_from_text"]


def test_calls_in_their_own_field_win_over_tags() -> None:
    """The text is not looked at then."""
    reading = read({"content": TAG, "tool_calls": [wire_call("find", "{}")]}, TAGS)
    assert [call.name for call in reading.calls] == ["find"]


def test_with_text_formats_on_tags_keep_the_ids_of_their_transform() -> None:
    """Where there are no tags, the other formats are read."""
    assert read(TAG, TAGS, text_formats=True).calls[0].id == "tag_call_1"
    fenced = '```json\n{"name": "a", "arguments": {"x": 1}}\n```'
    assert read(fenced, TAGS, text_formats=True) == read(fenced, text_formats=True)


QUOTED = {
    "unclosed": "<tool_call>a",
    "fence": f"```\n{TAG}\n```",
    "fence-of-tildes": f"~~~\n{TAG}\n~~~",
    "longer-fence-holds-shorter": f"````\n```\n{TAG}\n```\n{TAG}\n````\n",
    "indented-fence": f"  ```\n{TAG}\n  ```\n",
    "unclosed-fence": f"```\n{TAG}",
    "inline-code": f"write `{TAG}` to call",
    "inline-code-of-two": f"write ``{TAG}`` to call",
    "inline-code-of-three": f"write ```{TAG}``` to call",
    "inline-code-over-lines": "`<tool_call>\na\n</tool_call>`",
    "template-braces": f"{{{{ {TAG} }}}}",
    "template-percent": f"{{% raw %}}{{% {TAG} %}}",
    "escaped-opener": rf"\{TAG}",
    "other-tag": "<tool_calls>a</tool_calls>",
    "blank": "<tool_call> </tool_call>",
    "prose": "<tool_call>call the find tool</tool_call>",
    "odd-name": "<tool_call>find!</tool_call>",
    "no-name": '<tool_call>{"arguments":{}}</tool_call>',
    "number-name": '<tool_call>{"name":1}</tool_call>',
}


@pytest.mark.parametrize("text", QUOTED.values(), ids=QUOTED)
def test_quoted_and_unusable_tags_stay_text(text: str) -> None:
    """The content is what arrived."""
    reading = read(text, TAGS)
    assert (reading.calls, reading.content, reading.receipts) == ((), text, ())


FOUND = {
    "several": f"x{TAG}y{TAG}",
    "many-lines": f"<tool_call>\na\n</tool_call>{TAG}",
    "closer-first": f"</tool_call>{TAG}{TAG}",
    "after-a-fence": f"see\n```xml\n{TAG}\n```\n{TAG}{TAG}",
    "stray-backtick": f"don`t {TAG}{TAG}",
    "after-inline-code": f"`x` {TAG}{TAG}",
    "unclosed-template": f"{{{{ {TAG}{TAG}",
    "after-a-template": f"{{{{x}}}} {TAG}{TAG}",
    "escaped-then-real": rf"\{TAG} {TAG}{TAG}",
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_tags_that_are_not_quoted_are_found(text: str) -> None:
    """Each is a call."""
    assert [call.id for call in read(text, TAGS).calls] == ["tag_call_1", "tag_call_2"]


PAYLOADS: dict[str, tuple[str, dict[str, Any] | None]] = {
    '{"name":"a","arguments":{"x":1}}': ("a", {"x": 1}),
    '{"name":"a","args":{"x":1}}': ("a", {"x": 1}),
    '{"name":"a","parameters":{"x":1}}': ("a", {"x": 1}),
    '{"arguments":{},"name":"a"}': ("a", {}),
    '{"function":{"name":"a","arguments":{"x":1}}}': ("a", {"x": 1}),
    '{"name":"a","arguments":"{bad"}': ("a", None),
    '{"name":"a"}': ("a", {}),
    '{"name":"a","arguments":null}': ("a", {}),
    '{"name":"a","arguments":5}': ("a", None),
    '{"name":"a","arguments":{"t":"`b` {{c}}"}}': ("a", {"t": "`b` {{c}}"}),
    '{"name":"a","arguments":{"x":1,"x":2}}': ("a", None),
    " find_it \n": ("find_it", {}),
    "a.b-C_9": ("a.b-C_9", {}),
    'find {"q": 1}': ("find", {"q": 1}),
    'find\n{"q": 1}': ("find", {"q": 1}),
    "unknown": ("unknown", {}),
}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payload_forms(payload: str) -> None:
    """What a tag holds is one call; arguments that cannot be read are refused, never emptied."""
    reading = read(f"<tool_call>{payload}</tool_call>", TAGS)
    assert [(call.name, call.arguments) for call in reading.calls] == [PAYLOADS[payload]]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<tool_call>" * 20_000, id="openers"),
        pytest.param("<tool_call>" * 20_000 + "</tool_call>", id="openers-and-one-closer"),
        pytest.param("{{" * 100_000 + TAG, id="braces"),
        pytest.param("` " * 100_000 + TAG, id="backticks"),
        pytest.param(TAG * 2_000, id="tags"),
    ],
)
def test_many_marks_are_scanned(text: str) -> None:
    """The scan ends, whatever is repeated."""
    read(text, TAGS)


def test_the_names_of_transforms_are_known() -> None:
    """They are those of the registry."""
    assert set(TRANSFORM_RULES) == {LEGACY, LONE, OBJECT, TAGS, BLANK}
