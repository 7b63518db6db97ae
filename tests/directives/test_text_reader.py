"""Text that is shown while the envelope is still arriving."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall import read_value
from surecall.loop.directives import MemberTextReader
from surecall.text import decode, encode_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
LEAD_INS = ["", " \n", "Sure: ", "```json\n", '<think>{"assistant_text": "no"} hm</think>\n']


def read_pieces(pieces: list[str], name: str = "assistant_text") -> str:
    """Return what a reader shows of these pieces."""
    reader = MemberTextReader(name)
    return "".join(reader.feed(piece) for piece in pieces)


def split(text: str, places: list[int]) -> list[str]:
    """Return the text, cut at these places."""
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in itertools.pairwise(edges)]


@given(
    text=st.text(),
    others=st.dictionaries(st.text(max_size=6), JSON, max_size=3),
    places=st.lists(st.integers(0, 500), max_size=12),
    is_first=st.booleans(),
    lead_in=st.sampled_from(LEAD_INS),
    is_ascii=st.booleans(),
)
def test_the_text_is_the_decoded_member_at_every_split(
    text: str,
    others: dict[str, Any],
    places: list[int],
    is_first: bool,
    lead_in: str,
    is_ascii: bool,
) -> None:
    """However the reply is cut into pieces, exactly the text of the member comes out."""
    others = {key: value for key, value in others.items() if "assistant" not in key.lower()}
    fields = {"assistant_text": text, **others} if is_first else {**others, "assistant_text": text}
    document = encode_text(fields)
    if is_ascii:
        document = _escape(document)
    assert read_pieces(split(lead_in + document, places)) == text


def _escape(document: str) -> str:
    """Return JSON with everything beyond ASCII escaped, characters beyond 16 bits in two parts."""
    units = document.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


@given(st.text(alphabet='{}[]":,\\u0041dD8x assistant_text<think>`\n', max_size=60), st.data())
def test_any_text_gives_the_same_at_every_split(text: str, data: st.DataObject) -> None:
    """Also for text that is not JSON, nothing depends on how it arrives."""
    places = data.draw(st.lists(st.integers(0, 60), max_size=8))
    assert read_pieces(split(text, places)) == read_pieces([text])
    assert read_pieces(list(text)) == read_pieces([text])


@given(st.text(max_size=30), st.integers(0, 200))
def test_what_is_shown_of_a_cut_envelope_is_a_start_of_the_text(text: str, place: int) -> None:
    """Nothing is shown that the whole envelope would not show."""
    document = encode_text({"directives": [], "assistant_text": text})
    assert text.startswith(read_pieces([document[: place % (len(document) + 1)]]))


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        ('{"assistant_text": "a\\u00e9\\n\\"b\\""}', 'aé\n"b"'),
        ('{"Assistant-Text": "x"}', "x"),
        ('{"directives": [{"assistant_text": "no"}], "assistant_text": "yes"}', "yes"),
        ('{"a": 1} {"assistant_text": "second"}', "second"),
        ('{"assistant_text": {"assistant_text": "no"}}', ""),
        ('{"assistant_text": null}', ""),
        ('{"n": 1.5, "ok": true, "assistant_text": "x"', "x"),
        ('{"assistant_text": "\\ud83d\\ude00!"}', "\U0001f600!"),
        ('{"assistant_text": "\\ud83d!"}', "\ufffd!"),
        ('{"assistant_text": "\\\\ud83d\\\\ude00"}', "\\ud83d\\ude00"),
        ('{"assistant_text": "\\ud83d\\u00e9\\ud83d\\uz"}', "\ufffdé\ufffd\\uz"),
        ("Use {braces} like {this}", ""),
        ("", ""),
    ],
)
def test_what_is_shown(document: str, shown: str) -> None:
    """The text of the member of the outermost object, and of no other."""
    assert read_pieces([document]) == shown
    assert read_pieces(list(document)) == shown


def test_the_text_is_shown_before_the_envelope_ends() -> None:
    """Each piece is there as soon as it arrives."""
    reader = MemberTextReader("assistant_text")
    assert reader.feed('{"assistant_text": "Hel') == "Hel"
    assert reader.feed("lo\\") == "lo"
    assert reader.feed("n") == "\n"
    assert not reader.is_done
    assert reader.feed('", "directives": [') == ""
    assert reader.is_done


def test_the_shown_text_is_the_text_that_is_read() -> None:
    """Reading the whole reply gives what was shown."""
    document = '```json\n{"assistant_text": "caf\\u00e9 \\ud83d\\ude00", "directives": []}\n```'
    read = read_value(document, {"type": "object"}, accept="likely").value
    assert read_pieces(list(document)) == read["assistant_text"] == decode('"café 😀"'.encode())
