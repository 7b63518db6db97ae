"""Lost, doubled and swapped quotes: the certain level reads what was written, or refuses."""

import random

import pytest

from surecall.text import encode_text, repair_json

DOUBTFUL = {
    "two lost quotes leave a long key": '{"a": null, b": {}, "days: {}, long key": 5}',
    "a key that swallowed two members": '{"name:[],name1":[{"a:"Oslo","b":"5"}]}',
    "quote and colon swapped": '{"a":"5","days:"3.5,"b":1}',
    "quote and comma swapped": '{"a": "42," "b": [1]}',
    "a member inside a string": '{"a": "path,\n  "city: "dir"\n}',
    "an entry inside a string": '{"a: true, "b": ["dir, "Oslo, Norway", x", true]}',
    "a doubled quote at the end": '{"a": [{"b": "say \\"hi\\" now""}, "x"]}',
    "a doubled quote at the start": '{"a":""line","b":3.5}',
    "another quote at the end": '{"a": 1, "b": "x\', "c": []}',
    "lost punctuation and quotes": '{"a""true",b""true"}',
    "a key with a quote in it": '{"days""query":"x","b":1}',
}
STILL_READ = {
    '{"a": "x", "b": "he said "yes" to it"}': {"a": "x", "b": 'he said "yes" to it'},
    '{"a": 1 "b": 2}': {"a": 1, "b": 2},
    "{'a': 'x, y: z'}": {"a": "x, y: z"},
    '{"a": "x, "b": 2}': {"a": "x", "b": 2},
}


@pytest.mark.parametrize("text", DOUBTFUL.values(), ids=list(DOUBTFUL))
def test_strings_that_may_have_swallowed_syntax_are_never_certain(text: str) -> None:
    """A text that could mean two things has no value, or one that says why it is in doubt."""
    found = repair_json(text)
    assert found.state != "whole" or (found.certainty == "likely" and found.doubt)


@pytest.mark.parametrize(("text", "value"), STILL_READ.items())
def test_slips_with_one_meaning_are_still_read(text: str, value: object) -> None:
    """The doubt is about syntax inside strings, and not about every repair of a quote."""
    found = repair_json(text)
    assert (found.state, found.value) == ("whole", value)


def test_one_lost_mark_never_changes_a_value() -> None:
    """Whatever quote, comma or colon is lost, the value is the original one or none."""
    chance = random.Random(7)
    words = ["city", "Oslo, Norway", "x", "a: b", "42", "", "long key with words"]
    for _ in range(400):
        value = {chance.choice(words) + str(n): chance.choice([*words, 1, True]) for n in range(3)}
        text = encode_text(value)
        marks = [at for at, char in enumerate(text) if char in '"{}' and text[at - 1] != "\\"]
        at = chance.choice(marks)
        found = repair_json(text[:at] + text[at + 1 :])
        assert found.state != "whole" or found.value == value, text[:at] + text[at + 1 :]
