"""What is read of a client's request, and that its other bytes stay as they are."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import RequestError
from surecall.exchange.request import ClientRequest, add_members, compile_tools, replace_model
from surecall.text import encode
from surecall.wire import ChatCompletions

from .scene import FORMATS, parse, write_request

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["model", "a", '"model"', "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("name", FORMATS)
def test_tools_model_and_stream_are_read(name: str) -> None:
    """Tools model and stream are read."""
    request = parse(name, write_request(name, "m"))
    assert (request.model, request.stream, request.choices) == ("m", False, 1)
    assert [spec.name for spec in request.tools.specs] == ["save", "ping"]
    assert request.offers_tools
    assert not request.has_calls
    assert request.ask().tools[0].name == "save"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "The body cannot be read: the text is empty."),
        (b"[]", "The body is not a JSON object."),
        (b'{"model": NaN}', "The body cannot be read: the number NaN is not finite"),
        (b'{"model": "m"} x', "The body cannot be read: found 'x' after the end of the value"),
        (b'{"model": "m", "x": "\\ud83d"}', "The body cannot be read: half of a surrogate pair"),
        (b'{"stream": true}', "The request names no model."),
    ],
)
def test_a_body_that_is_no_request_is_refused_with_the_reason(body: bytes, why: str) -> None:
    """A developer sees what is wrong with the bytes, and where."""
    with pytest.raises(RequestError) as caught:
        ClientRequest.parse("chat_completions", body)
    assert caught.value.code == "INVALID_REQUEST"
    assert caught.value.message.startswith(why)


def test_a_byte_order_mark_is_passed_over() -> None:
    """It says nothing, and no endpoint wants it."""
    request = ClientRequest.parse("chat_completions", b'\xef\xbb\xbf{"model": "m"}')
    assert (request.model, request.body) == ("m", b'{"model": "m"}')


MEMBERS = st.dictionaries(st.sampled_from(["a", "messages", "x"]), VALUES, max_size=2)


@settings(max_examples=60)
@given(before=MEMBERS, after=MEMBERS, new=st.text(min_size=1, max_size=8), indent=st.booleans())
def test_only_the_model_is_replaced(before: Any, after: Any, new: str, indent: bool) -> None:
    """The other members stay as they are, whatever is called model inside them."""
    document = {**before, "model": "the old one", **after}
    written = json.dumps(document, indent=2 if indent else None).encode()
    replaced = replace_model(written, new)
    assert json.loads(replaced) == {**document, "model": new}
    assert len(replaced) - len(written) == len(encode(new)) - len(b'"the old one"')


def test_a_nested_model_is_left_alone() -> None:
    """Only the member of the request itself names its model."""
    body = b'{"x": {"model" : "a"}, "t": "\\"model\\": \\"a\\"",\n "model" :  "a" , "y": 1.50}'
    head, _, tail = body.rpartition(b'"a"')
    assert replace_model(body, "b") == head + b'"b"' + tail
    assert replace_model(body, "a") is body
    escaped = b'{"mod\\u0065l": "a", "y": 1}'
    assert json.loads(replace_model(escaped, "b")) == {"model": "b", "y": 1}


def test_defaults_are_added_behind_the_rest() -> None:
    """Defaults are added behind the rest."""
    body = b'{"model":"m", "temperature": 0.70 }\n'
    assert add_members(body, {"temperature": 1, "top_p": 1}) == (
        b'{"model":"m", "temperature": 0.70,"top_p":1}'
    )
    assert add_members(body, {"temperature": 1}) is body
    assert add_members(b"{}", {"a": 1}) == b'{"a":1}'


def test_tools_are_compiled_once_for_the_same_bytes() -> None:
    """Tools are compiled once for the same bytes."""
    wire = ChatCompletions()
    written = b'[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]'
    assert compile_tools(wire, written) is compile_tools(wire, bytes(bytearray(written)))


@pytest.mark.parametrize(
    ("name", "tool", "kind"),
    [
        ("chat_completions", {"type": "custom", "custom": {"name": "x"}}, "custom"),
        ("messages", {"type": "web_search_20250305", "name": "web_search"}, "web_search_20250305"),
        ("responses", {"type": "web_search"}, "web_search"),
        ("gemini", {"googleSearch": {}}, "googleSearch"),
    ],
)
def test_tools_that_are_not_functions_are_named(name: str, tool: object, kind: str) -> None:
    """Tools that are not functions are named."""
    document = json.loads(write_request(name, "m"))
    document["tools"].append(tool)
    request = parse(name, json.dumps(document).encode())
    assert request.tools.others == (kind,)
    assert len(request.tools.specs) == 2


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("chat_completions", {"tool_choice": "none"}),
        ("messages", {"tool_choice": {"type": "none"}}),
        ("responses", {"tool_choice": "none"}),
        ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
    ],
)
def test_a_choice_of_none_offers_nothing(name: str, choice: dict[str, object]) -> None:
    """A choice of none offers nothing."""
    document = {**json.loads(write_request(name, "m")), **choice}
    assert not parse(name, json.dumps(document).encode()).offers_tools


@given(st.binary(max_size=60))
def test_any_bytes_are_a_request_or_a_coded_error(body: bytes) -> None:
    """Any bytes are a request or a coded error."""
    for name in FORMATS:
        with suppress(RequestError):
            ClientRequest.parse(name, body, model="m")
