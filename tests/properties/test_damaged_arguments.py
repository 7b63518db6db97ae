"""Whatever piece of native arguments is lost or changed, nothing runs but what was written."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.damage import damage
from support.damaged_arguments import FORMS, damaged_arguments, judge
from surecall.reading.arguments import read_arguments
from surecall.text import encode_text

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8) | st.sampled_from(
    ["", '"', "\\", "it's", "a, b", "}]", "x: 1", "{'a': 1}", "\n", "12", "[1, 2]", "# x", "//y"]
)
values = st.recursive(
    texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_damaged_arguments_never_run_as_others(form: str) -> None:
    """In every wire format, whole and streamed, for damage of every kind."""
    for case in damaged_arguments(form, 7, 260):
        assert judge(case) != "WRONG", case


@settings(max_examples=60, deadline=None)
@given(arguments=st.dictionaries(texts, values, min_size=1, max_size=4), seed=st.integers())
def test_certain_arguments_are_those_that_a_strict_reader_finds(
    arguments: dict[str, object], seed: int
) -> None:
    """Arguments of any kind, damaged once: certain ones are as written, or strict JSON."""
    chance = random.Random(seed)
    for kind, text in damage(chance, encode_text(arguments, indent=chance.choice([None, 0, 2]))):
        reading = read_arguments(text, ended=chance.random() < 0.5)
        if reading.value is None or reading.certainty != "certain" or not text.strip():
            continue
        if encode_text(reading.value) != encode_text(arguments):
            assert not reading.receipts, (kind, text, reading.value)
