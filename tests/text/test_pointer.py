"""JSON pointers lead to one value or say where they ended."""

from typing import Any

import pytest

from surecall.base.errors import Code, JSONTextError
from surecall.text import parse_pointer, render_pointer, resolve_pointer

DOCUMENT: dict[str, Any] = {
    "foo": ["bar", {"baz": 1}],
    "": 0,
    "a/b": 1,
    "m~n": 8,
    "~1": "tilde one",
    " ": 7,
    "é": {"x": None},
    "01": "zero one",
    "-": "dash",
}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("", (), id="whole"),
        pytest.param("/", ("",), id="empty-key"),
        pytest.param("//", ("", ""), id="two-empty-keys"),
        pytest.param("/foo/0", ("foo", "0"), id="index"),
        pytest.param("/a~1b", ("a/b",), id="slash"),
        pytest.param("/m~0n", ("m~n",), id="tilde"),
        pytest.param("/~01", ("~1",), id="tilde-one"),
        pytest.param("/~00", ("~0",), id="tilde-zero"),
        pytest.param('/ "%', (' "%',), id="nothing-else-is-special"),
    ],
)
def test_text_and_parts_belong_together(text: str, parts: tuple[str, ...]) -> None:
    """Parsing and rendering are inverse."""
    assert parse_pointer(text) == parts
    assert render_pointer(parts) == text


def test_indexes_may_be_rendered_as_numbers() -> None:
    """A part that is an int becomes its digits."""
    assert render_pointer(["items", 0, "a/b"]) == "/items/0/a~1b"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", DOCUMENT, id="whole"),
        pytest.param("/foo", ["bar", {"baz": 1}], id="key"),
        pytest.param("/foo/1/baz", 1, id="through-an-array"),
        pytest.param("/", 0, id="empty-key"),
        pytest.param("/a~1b", 1, id="slash"),
        pytest.param("/~01", "tilde one", id="tilde-one"),
        pytest.param("/é/x", None, id="null-is-a-value"),
        pytest.param("/01", "zero one", id="digits-are-keys-of-objects"),
        pytest.param("/-", "dash", id="dash-is-a-key-of-objects"),
    ],
)
def test_a_pointer_leads_to_its_value(text: str, value: Any) -> None:
    """Keys lead through objects, indexes through arrays."""
    assert resolve_pointer(DOCUMENT, text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("foo", "the pointer 'foo' does not start with '/'.", id="no-slash"),
        pytest.param("#/foo", "the pointer '#/foo' does not start with '/'.", id="fragment"),
        pytest.param(
            "/a~2", "the pointer '/a~2' has a '~' that is not '~0' or '~1'.", id="bad-escape"
        ),
        pytest.param(
            "/a~", "the pointer '/a~' has a '~' that is not '~0' or '~1'.", id="open-escape"
        ),
        pytest.param(
            "/é/y", "the value at '/é' has no key 'y'; it has 'x'.", id="missing-key"
        ),
        pytest.param(
            "/foo/2", "index 2 is out of range for the value at '/foo': the last possible is 1.",
            id="out-of-range",
        ),
        pytest.param("/foo/01", "'01' is not an index of the value at '/foo'.", id="leading-zero"),
        pytest.param("/foo/-1", "'-1' is not an index of the value at '/foo'.", id="negative"),
        pytest.param("/foo/٢", "'٢' is not an index of the value at '/foo'.", id="other-digits"),
        pytest.param("/foo/1\n", "'1\\n' is not an index of the value at '/foo'.", id="newline"),
        pytest.param("/foo/", "'' is not an index of the value at '/foo'.", id="empty-index"),
        pytest.param(
            "/foo/-",
            "'-' is the place after the last element of the value at '/foo', not an element.",
            id="dash",
        ),
        pytest.param(
            "/foo/0/x", "the value at '/foo/0' is a string and has no 'x' in it.", id="in-a-string"
        ),
        pytest.param(
            "/é/x/y", "the value at '/é/x' is null and has no 'y' in it.", id="in-null"
        ),
    ],
)  # fmt: skip
def test_a_pointer_that_leads_nowhere_says_where_it_ended(text: str, message: str) -> None:
    """The message names the part that failed and what is there instead."""
    with pytest.raises(JSONTextError) as caught:
        resolve_pointer(DOCUMENT, text)
    assert caught.value.code == Code.INVALID_POINTER
    assert caught.value.message == message


def test_messages_are_bounded() -> None:
    """Many keys, long keys and long indexes are cut."""
    document: dict[str, Any] = {"k" * 1000 + str(number): [] for number in range(1000)}
    for text in ("/" + "x" * 10_000, "/" + "k" * 1000 + "0/" + "9" * 10_000):
        with pytest.raises(JSONTextError) as caught:
            resolve_pointer(document, text)
        assert len(str(caught.value)) < 800


def test_an_empty_container_is_called_empty() -> None:
    """There is nothing to suggest in it."""
    with pytest.raises(JSONTextError, match="the document has no key 'a': it is empty"):
        resolve_pointer({}, "/a")
    with pytest.raises(JSONTextError, match="index 0 is out of range for the document: it is empt"):
        resolve_pointer([], "/0")


def test_the_position_of_a_bad_escape_is_told() -> None:
    """Mistakes in the pointer itself carry a character index."""
    with pytest.raises(JSONTextError) as caught:
        parse_pointer("/ab/c~x")
    assert caught.value.position == 5
