"""Python call syntax with literals, read without running anything."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.calls import Source, ToolNames
from surecall.calls.python_calls import PythonCalls, read_python_calls
from surecall.calls.written_python import read_calls_in_python

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=10),
)
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab{'\"", max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
_arguments = st.dictionaries(
    st.sampled_from(["room", "from", "class", "_x", "tag-2", "ünïcode"]), _values, max_size=4
)


def _render(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _loosely(text: str) -> PythonCalls:
    return read_calls_in_python(Source(text, ToolNames(), final=True), 0, loose=True)


def _only(text: str) -> dict[str, Any]:
    found = read_python_calls(text, 0)
    assert found.state == "whole"
    (call,) = found.calls
    return call.keywords


@given(first=_arguments, second=_arguments)
@settings(max_examples=150, deadline=None)
def test_what_python_prints_is_read_back(first: dict[str, Any], second: dict[str, Any]) -> None:
    """A list of calls with any literals is read as it was meant, up to its bracket."""
    text = f"[{_render('a.b', first)}, {_render('c', second)}]"
    found = read_python_calls(text + " rest", 0)
    assert (found.state, found.end) == ("whole", len(text))
    assert [(call.name, call.keywords) for call in found.calls] == [("a.b", first), ("c", second)]
    assert all(not call.receipts and not call.positional for call in found.calls)


@given(arguments=_arguments, data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_beginning_is_cut_and_nothing_else(
    arguments: dict[str, Any], data: st.DataObject
) -> None:
    """Text that ends before its last bracket is never whole, and never refused."""
    text = f"[{_render('f', arguments)}]"
    cut = read_python_calls(text[: data.draw(st.integers(0, len(text) - 1))], 0)
    assert cut.state == "cut"


@given(st.text("f(a='\"[]{},:=1x. \n#\\tTrue", max_size=30))
@settings(max_examples=200, deadline=None)
def test_a_decision_outlives_more_text(text: str) -> None:
    """What is not cut and cannot grow reads the same, whatever text follows."""
    for statements in (False, True):
        before = read_python_calls(text, 0, statements=statements)
        if before.state != "cut" and not before.may_grow:
            for more in ("'", '"', ")", "]", "x", "\nf(", " = 1"):
                now = read_python_calls(text + more, 0, statements=statements)
                assert now == before


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        pytest.param("r'\\d+'", "\\d+", id="raw"),
        pytest.param("u'x'", "x", id="unicode prefix"),
        pytest.param("f'no {{place}}'", "no {place}", id="f-string without placeholders"),
        pytest.param("'''it's\nlong'''", "it's\nlong", id="triple quotes"),
        pytest.param("'a' \"b\"\n'c'", "abc", id="neighbours"),
        pytest.param(r"'\x41\u00e9\101\n\q\'" "'", "AéA\n\\q'", id="escapes"),
        pytest.param(r"'\ud83d\ude00'", "😀", id="escaped pair"),
        pytest.param("-0x1f", -31, id="hexadecimal"),
        pytest.param("1_000", 1000, id="underscores"),
        pytest.param("+.5e-3", 0.0005, id="float"),
        pytest.param("(1, 2)", [1, 2], id="tuple"),
        pytest.param("(1,)", [1], id="tuple of one"),
        pytest.param("((3))", 3, id="parentheses"),
        pytest.param("{1, 2}", [1, 2], id="set"),
        pytest.param("{1: {'a': []}, True: None}", {"1": {"a": []}, "true": None}, id="dict"),
        pytest.param("[]", [], id="empty list"),
        pytest.param("{}", {}, id="empty dict"),
    ],
)
def test_literals_have_the_value_python_gives_them(literal: str, value: Any) -> None:
    """Literals of every kind are read; tuples and sets become lists."""
    assert _only(f"f(a={literal}, )") == {"a": value}


@pytest.mark.parametrize(
    "text",
    [
        "f(a=x)",
        "f(a=g())",
        "f(a=1 + 2)",
        "f(a='x' + 'y')",
        "f(a='x' % y)",
        "f(a=[i for i in x])",
        "f(a={**b})",
        "f(*a)",
        "f(a=f'{x}')",
        "f(a=b'x')",
        "f(a=1, a=2)",
        "f(a=1, 2)",
        "f(a==1)",
        "f(,)",
        "f(a=1,,b=2)",
        "f(a={1: 2, 3})",
        "f(a={1, 2: 3})",
        "f(a={[1]: 2})",
        "f(a=1e999)",
        "f(a=nan)",
        "f(a=1x)",
        "f(a='\\ud800')",
        "f(a='\\xzz')",
        "f.(a=1)",
        "1(a=1)",
        "[f(a=1) g()]",
        "[]",
        "[1, f()]",
        "f g",
        "f[0](a=1)",
        f"f(a={'[' * 70}{']' * 70})",
    ],
)
def test_anything_but_literals_is_refused(text: str) -> None:
    """Names, operators, nested calls and broken syntax are not calls."""
    assert read_python_calls(text + " ", 0).state == "not_calls"


def test_row_ends_before_what_is_no_call() -> None:
    """Calls in a row are separated by newlines, semicolons or commas."""
    text = "f();g(a=1),\nh()\nThen prose (like this)."
    found = read_python_calls(text, 0)
    assert found.state == "whole"
    assert [call.name for call in found.calls] == ["f", "g", "h"]
    assert text[found.end :] == "\nThen prose (like this)."


def test_statements_are_unwrapped_on_demand() -> None:
    """Printing, assignments, awaiting and comments stand around calls of code."""
    text = "# first\nx = await f(a=1)\nprint(g())  # then\n"
    found = read_python_calls(text, 0, statements=True)
    assert [(call.name, call.keywords) for call in found.calls] == [("f", {"a": 1}), ("g", {})]
    assert read_python_calls(text, 0).state == "not_calls"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("f(a='say 'hi' twice')", "say 'hi' twice", id="a pair"),
        pytest.param("f(a='it's late', b=1)", "it's late", id="an apostrophe"),
        pytest.param('f(a="Pier "4" east")', 'Pier "4" east', id="double"),
    ],
)
def test_nested_quotes_are_read_where_allowed(text: str, value: str) -> None:
    """Unescaped quotes inside a string are kept, with a receipt that says that this is a guess."""
    found = _loosely(text)
    assert found.state == "whole"
    assert found.doubt
    assert found.calls[0].keywords["a"] == value
    assert [(note.rule, note.lossless) for note in found.calls[0].receipts] == [
        ("nested_quotes", False)
    ]
    assert read_python_calls(text, 0).state == "not_calls"


def test_leading_zeros_are_kept_beside_the_number() -> None:
    """A padded number is read, and how it was written stays known."""
    (call,) = read_python_calls("f(a=007, b=0)", 0).calls
    assert call.keywords == {"a": 7, "b": 0}
    assert call.padded == {"a": "007"}


def test_bare_words_are_text_where_allowed() -> None:
    """Unquoted text is a value only on demand, and not when it could be code."""
    assert _loosely("f(a=the hall, b=2)").calls[0].keywords == {"a": "the hall", "b": 2}
    assert _loosely("f(a=hall)").state == "not_calls"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("f(a='x' b=2)", id="behind a string"),
        pytest.param("f(a=1 b='x')", id="behind a number"),
        pytest.param("f(a=[1, 2] b=2)", id="behind a list"),
        pytest.param("f(a={'x': True} b=[2])", id="behind an object"),
        pytest.param("f(a=the hall b=2)", id="behind words"),
    ],
)
def test_a_value_never_takes_in_the_parameter_behind_a_lost_comma(text: str) -> None:
    """What stands behind it is neither dropped nor made a part of the value."""
    assert _loosely(text).state == "not_calls"


def test_a_row_with_one_loose_call_is_read_to_its_end() -> None:
    """The calls beside it are read as they are, and doubted with it."""
    text = "[f(a=1), g(a='it's late'), h()]"
    found = _loosely(text)
    assert (found.state, found.end, bool(found.doubt)) == ("whole", len(text), True)
    assert [(call.name, call.keywords) for call in found.calls] == [
        ("f", {"a": 1}),
        ("g", {"a": "it's late"}),
        ("h", {}),
    ]


def test_cut_call_is_known_by_its_name() -> None:
    """The name and the beginning of the arguments of a cut call are told."""
    text = "[f(), g(a='x"
    found = read_python_calls(text, 0)
    assert (found.state, found.cut_name, text[found.cut_from :]) == ("cut", "g", "a='x")
    assert read_python_calls("[f(), g", 0).cut_name is None
