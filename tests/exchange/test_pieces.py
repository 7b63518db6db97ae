"""Events that go on with arguments: read by their form, they say what full reading says."""

import json

from hypothesis import given
from hypothesis import strategies as st

from surecall.exchange.streams.chat_chunks import decode_piece
from surecall.exchange.streams.pieces import PieceForm, find_form

HEAD = '{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{'
TAIL = '}]},"finish_reason":null}]}'
SHAPES = (
    f'{HEAD}"index":0,"function":{{"arguments":%s}}{TAIL}',
    f'{HEAD}"index": 0, "function": {{"arguments": %s}}{TAIL}',
    f'{HEAD}"index":1,"function":{{"arguments":%s}}{TAIL}',
    f'{HEAD}"index":0,"id":"","function":{{"arguments":%s}}{TAIL}',
    f'{HEAD}"index":0,"function":{{"arguments":%s}}}}]}}}}],"usage":null}}',
)


def write(written: str, shape: str = SHAPES[0]) -> bytes:
    """Return the event whose arguments are written like this, quotation marks included."""
    return b"data: " + (shape % written).encode("utf-8", "surrogatepass") + b"\n\n"


def read_fully(event: bytes) -> str | None:
    """Return the arguments of an event as the decoder of whole chunks finds them."""
    try:
        return decode_piece(event[6:-2]).choices[0].delta.tool_calls[0].function.arguments
    except ValueError:
        return None


def form_of(event: bytes) -> PieceForm:
    """Return the form of an event, which has one."""
    form = find_form(event, read_fully(event) or "")
    assert form is not None
    return form


PIECES = st.one_of(
    st.text(max_size=8).map(json.dumps),
    st.text(max_size=8).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.text(alphabet='"\\u0041dn,{}[]\t é', max_size=10).map(lambda text: f'"{text}"'),
)
EVENTS = st.builds(write, PIECES, st.sampled_from(SHAPES))


@given(st.text(max_size=5).map(json.dumps), st.lists(EVENTS, max_size=8))
def test_a_run_says_what_full_reading_says(first: str, events: list[bytes]) -> None:
    """The texts of a run are those of its events, and none is taken that is not a piece."""
    texts, size = form_of(write(first)).read_run(b"".join(events))
    taken = events[: len(texts)]
    assert size == sum(map(len, taken))
    assert texts == [read_fully(event) for event in taken]


@given(st.text(max_size=5).map(json.dumps), EVENTS)
def test_an_event_says_what_full_reading_says(first: str, event: bytes) -> None:
    """What is read by its form is what the whole event says."""
    text = form_of(write(first)).read(event)
    assert text is None or text == read_fully(event)


def test_a_run_ends_where_another_form_begins() -> None:
    """Events behind the run are left to others."""
    alike = [write(json.dumps(text)) for text in ("a", '{"b', '": "é\\')]
    other = write('"c"', SHAPES[2])
    form = form_of(write('""'))
    assert form.read_run(b"".join(alike[:2]) + other) == (["a", '{"b'], len(b"".join(alike[:2])))
    assert form.read_run(other) == ([], 0)
    assert form.read_run(write('"d"', SHAPES[4])) == ([], 0)
    assert form.read(alike[2]) == '": "é\\'


def test_texts_that_hide_their_ends_are_not_taken() -> None:
    """Two texts that are wrong in opposite ways do not make up for each other."""
    form = form_of(write('"x"'))
    events = [write('"abc\\"'), write('"d"'), write('"e","f"')]
    assert [read_fully(event) for event in events] == [None, "d", None]
    assert form.read_run(b"".join(events)) == ([], 0)


def test_no_form_is_learned_where_the_key_is_not_certain() -> None:
    """An event with the key twice, or with escapes around its text, has no form."""
    twice = write('"x"', SHAPES[0].replace('"id":"c"', '"extra":{"arguments":"x"}'))
    escaped = write('"x"', SHAPES[0].replace('"id":"c"', '"i\\u0064":"c"'))
    assert read_fully(twice) == read_fully(escaped) == "x"
    assert find_form(twice, "x") is None
    assert find_form(escaped, "x") is None
    assert find_form(write('"x"'), "y") is None
