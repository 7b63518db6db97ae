"""Where JSON ends inside text."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.read_text import TOOLS
from surecall.calls.json_spans import Extent, find_extent
from surecall.calls.names import ToolNames
from surecall.calls.source import NeedMore, Source
from surecall.text import encode_text, scan_value_end

NAMES = ToolNames(TOOLS)
STOP = "</x>"


def extent(text: str, *, final: bool = True) -> Extent:
    """Return where the JSON at the start of a text ends."""
    return find_extent(Source(text, NAMES, final=final), 0, (STOP,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": [1, {"b": "}"}]} rest', Extent(22, "bracket")),
        ('{"a": "</x>"}</x>', Extent(13, "bracket")),
        ('{"a": {"b": 1}</x>', Extent(14, "stop")),
        ("{'a}': 'b'}", Extent(11, "bracket")),
        ("{it's: 1}", Extent(9, "bracket")),
        ('{"a": "x\\"}', Extent(11, "text")),
        ('{"a": "x</x>', Extent(12, "text", 8)),
        ('{"a": 1', Extent(7, "text")),
        ("{'a", Extent(3, "text")),
    ],
)
def test_what_ends_a_value(text: str, expected: Extent) -> None:
    """A value ends at its bracket, at a stop outside of its strings, or with the text."""
    assert extent(text) == expected


def test_nothing_is_decided_too_early() -> None:
    """Text that may still go on is not taken for cut."""
    for text in ('{"a": 1', '{"a": "x</x>', "{'a}", '{"a": {"b": 1}</'):
        with pytest.raises(NeedMore):
            extent(text, final=False)


def test_too_many_stops_in_a_string_are_a_doubt() -> None:
    """A quote that is missing does not make every later call part of a string."""
    text = '{"a": "x}' + STOP * 200 + '"}'
    assert extent(text) == extent(text[:900], final=False) == Extent(9, "doubt", 9)


@given(
    value=st.dictionaries(st.text(), st.recursive(st.text() | st.none(), st.lists), max_size=4),
    rest=st.text(max_size=5),
)
@settings(max_examples=150, deadline=None)
def test_valid_json_ends_where_it_ends(value: dict[str, Any], rest: str) -> None:
    """The end of valid JSON is found whatever it holds and whatever follows."""
    text = encode_text(value)
    assert extent(text + rest) == Extent(len(text), "bracket")
    assert scan_value_end(text + rest) == len(text)
