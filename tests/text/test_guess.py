"""The likely level of JSON repair: the best reading of text that the certain level refuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.work import count_calls
from surecall.reading.rules import RULES
from surecall.text import MAX_ARGUMENT_STEPS, encode, repair_json

LIKELY: dict[str, list[tuple[str, Any]]] = {
    "cut values are kept": [
        ('{"a": 12', {"a": 12}),
        ('{"a": 1.', {"a": 1}),
        ('{"a": 3e', {"a": 3}),
        ('{"a": [4, -', {"a": [4]}),
        ('{"a": tru', {"a": True}),
        ("[1, nul", [1, None]),
        ('{"a": hel', {"a": "hel"}),
        ("{a: 1, b: two wor", {"a": 1, "b": "two wor"}),
    ],
    "cut members are left out": [
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": 1, "b"', {"a": 1}),
        ('{"a": 1, "b":', {"a": 1}),
        ("{'a': 1, 'bc", {"a": 1}),
        ("```json\n[{", [{}]),
    ],
    "text without quotes": [
        ("{a: hello world, 'b': 5 kg}", {"a": "hello world", "b": "5 kg"}),
        ('{"a": one, two, "b": 2}', {"a": "one, two", "b": 2}),
        ('{"a": hello {name}, welcome, "b": 1}', {"a": "hello {name}, welcome", "b": 1}),
        ("{a: words {in braces} and more}", {"a": "words {in braces} and more"}),
        ('{"a": 1/3, "b": 12:30}', {"a": "1/3", "b": "12:30"}),
        ('{"a": it\'s here, "b": #ff0}', {"a": "it's here", "b": "#ff0"}),
        ("[green pear, <b>, x(y)]", ["green pear", "<b>", "x(y)"]),
        ("good morning, all", "good morning, all"),
    ],
    "numbers": [
        ('{"a": 12,345,678}', {"a": 12345678}),
        ('{"a": -2,000.00}', {"a": -2000.0}),
        ("-2,000.00", -2000.0),
        ('{"a": 05e, "b": 1e+}', {"a": 5, "b": 1}),
        ('{"a": 1{, "b": 2}', {"a": 1, "b": 2}),
        ("[1 2 3]", [1, 2, 3]),
        ('{"n":7"m":8}', {"n": 7, "m": 8}),
        ('{"n": 7", "m": 8}', {"n": 7, "m": 8}),
    ],
    "quotes inside and missing": [
        ('["one, "two"]', ["one", "two"]),
        ('["one, "two, "three"]', ["one", "two", "three"]),
        ('{name: "Bob, age: 5, city: "Rome"}', {"name": "Bob", "age": 5, "city": "Rome"}),
        ('{"a": "x, ok: true}', {"a": "x", "ok": True}),
        ('{"a": "see {"b": 1}", "c": 2}', {"a": 'see {"b": 1}', "c": 2}),
        (r'{"a": "{"b": "\u00e9"}", "c": 2}', {"a": r'{"b": "\u00e9"}', "c": 2}),
        ('{"a": 1, "b": "x”}', {"a": 1, "b": "x"}),
        ('{"a": \'x", "b": 1}', {"a": "x", "b": 1}),
        ('["one", two"]', ["one", "two"]),
        ('{"a": ["p", "q]}', {"a": ["p", "q"]}),
        ('{"a": "x}', {"a": "x"}),
        ('[{"a": "x}, {"b": 1}]', [{"a": "x"}, {"b": 1}]),
        ("{\"a': 1}", {"a": 1}),
        ('{"a": "{"b": "c"}", "d": 1}', {"a": '{"b": "c"}', "d": 1}),
        ('{"a": \\"b\\", "c": 1}', {"a": "b", "c": 1}),
        ('{"a": "x\n"b": 2}', {"a": "x", "b": 2}),
        ('{""a"": ""x"", "b"": "y""}', {"a": "x", "b": "y"}),
        ('{"size": "5"", "b": 1}', {"size": '5"', "b": 1}),
        ('[3"y", true"z"]', [3, "y", True, "z"]),
    ],
    "keys": [
        ('{"a": , "b": 1}', {"a": None, "b": 1}),
        ('{"a": 1, ! "b": 2}', {"a": 1, "b": 2}),
        ('{first name: "x", last name: "y"}', {"first name": "x", "last name": "y"}),
        ('{"a": 1, "b": 2, "a": 3}', {"a": 3, "b": 2}),
        ('{"a" -> 1}', {"a": 1}),
    ],
    "brackets": [
        ('{"a": [1, 2, "b": 3}', {"a": [1, 2], "b": 3}),
        ('["a": 1, "b": 2]', {"a": 1, "b": 2}),
        ('[{"a": 1, {"b": 2}]', [{"a": 1}, {"b": 2}]),
        ('{"a": {"x": 1}}, "b": 2}', {"a": {"x": 1}, "b": 2}),
        ('{"a": [1, 2]] , "b": {"c": 3]}', {"a": [1, 2], "b": {"c": 3}}),
        ('{"a": ["x"], "y"], "b": 3}', {"a": ["x", "y"], "b": 3}),
        ('{"a": [1], [2], "b": 3}', {"a": [1, 2], "b": 3}),
        ('[{"a": 1}, "b": 2}]', [{"a": 1, "b": 2}]),
        ('[{"a": 1}], {"b": 2}]', [{"a": 1}, {"b": 2}]),
        ('{"a": "one", "two", "b": 3}', {"a": ["one", "two"], "b": 3}),
        ('{{"a": 1}, {"b": 2}}', [{"a": 1}, {"b": 2}]),
    ],
    "fences and comments inside": [
        ('{\n```json\n"a": 1\n```\n}', {"a": 1}),
        ('{"a": ```json\n[1]\n```\n}', {"a": [1]}),
        ('{"a": {"b": 1 // note }, "c": 2}', {"a": {"b": 1}, "c": 2}),
    ],
    "outermost brackets are missing": [
        ('"a": 1, "b": [2]', {"a": 1, "b": [2]}),
        ('"a": 1}', {"a": 1}),
        ('a": 1, "b": 2}', {"a": 1, "b": 2}),
        ("a: 1\nb: two", {"a": 1, "b": "two"}),
        ("1, 2, 3", [1, 2, 3]),
        ('"x"\n"y"', ["x", "y"]),
    ],
    "a quote missing before brackets": [
        ('[{"a": {"b": "x\n  }\n}, {"c": "y"}]', [{"a": {"b": "x"}}, {"c": "y"}]),
        ('{"a": {"b": {"c": "x\n  }\n  },\n  "d": 1\n}', {"a": {"b": {"c": "x"}}, "d": 1}),
    ],
    "numbers with separators": [
        ('{"a": 250,000,}', {"a": 250_000}),
        ('{"a": 250,000 "b": 1}', {"a": 250_000, "b": 1}),
    ],
    "escaped as a whole": [
        ('{\\n  a: 1,\\n  b: \\"x\\",\\n}', {"a": 1, "b": "x"}),
        ('{\\"\\": []}', {"": []}),
    ],
    "several fences": [
        ('```\n{"a": 1}\n``` and\n```\n{"b": 2}\n```', [{"a": 1}, {"b": 2}]),
    ],
    "ellipses": [
        ('{"a": [1, 2, ...], "b": 3, ...}', {"a": [1, 2], "b": 3}),
        ("[1, ..., 9]", [1, 9]),
        ('{"a": 1, …}', {"a": 1}),
    ],
    "other languages": [
        ('{"a": ```python\nprint(1)\n```, "b": 1}', {"a": "print(1)", "b": 1}),
        ('{"a": ```sh\nls\n```}', {"a": "ls"}),
        ('\\{"a\\_b": 1\\}', {"a_b": 1}),
        ('{"a": "x" +}', {"a": "x"}),
    ],
    "several values": [
        ('{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
        ('{"a": 1}, [2]', [{"a": 1}, [2]]),
        ('one {"a": 1} two {"b": 2}', [{"a": 1}, {"b": 2}]),
    ],
}
CERTAIN: list[tuple[str, Any]] = [
    ('{"a": 1}', {"a": 1}),
    ("{a: 'x', b: True}", {"a": "x", "b": True}),
    ('Sure: {"a": 1}', {"a": 1}),
    ('{"a": 1}{"a": 1}', {"a": 1}),
]
PIECES = [
    *'{}[]":,a1 -.\\\n/#()=;`+',
    *("'", "true", "nul", '\\"', "//", "/*", "...", "=>", "```json\n", "“", "”", "NaN", "f(", "é"),
    *("&quot;", "\\u00", '{"a": 1', '"x": ', '""', "\ufeff", "~~~"),
]
damaged = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)


@pytest.mark.parametrize(
    ("text", "value"), [pair for pairs in LIKELY.values() for pair in pairs], ids=repr
)
def test_the_likeliest_reading_is_marked_and_explained(text: str, value: Any) -> None:
    """Every class of damage has its value, with certainty, doubt and receipts of declared rules."""
    found = repair_json(text, guess=True, cut="close")
    assert found.value == value
    assert found.certainty == "likely"
    assert found.doubt.endswith(".")
    assert found.receipts
    assert {receipt.rule for receipt in found.receipts} <= RULES.keys()
    assert value not in found.alternatives


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, NOTE "b": 2}',
        '{"a": 1, "b": 2, "a": 3}',
        '{"a": "b" "c"}',
        '{"a": 1, "b"}',
        '{"a": [1, 2, ...]}',
    ],
)
def test_a_reading_that_throws_a_part_away_is_not_whole(text: str) -> None:
    """What may be a value or a member is kept, or nothing is."""
    found = repair_json(text, guess=True)
    assert (found.state, found.value) == ("unreadable", None)
    assert found.errors
    saved = repair_json(text, guess=True, cut="close")
    assert (saved.state, saved.certainty) == ("unreadable", "likely")
    assert saved.value["a"]
    assert saved.errors


@pytest.mark.parametrize(("text", "value"), CERTAIN, ids=repr)
def test_what_can_be_read_in_one_way_is_certain_and_the_same(text: str, value: Any) -> None:
    """The certain level decides wherever it can."""
    found = repair_json(text, guess=True)
    assert found == repair_json(text)
    assert (found.value, found.certainty, found.doubt, found.alternatives) == (
        value,
        "certain",
        "",
        (),
    )


@pytest.mark.parametrize(
    ("text", "beaten"),
    [
        ('{"a": 12', {}),
        ('{"a": 1}{"b": 2}', {"a": 1}),
    ],
)
def test_the_readings_that_were_beaten_are_alternatives(text: str, beaten: Any) -> None:
    """Other readings are kept as values, a handful at most."""
    found = repair_json(text, guess=True, cut="close")
    assert beaten in found.alternatives
    assert len(found.alternatives) <= 4


def test_without_a_guess_text_with_two_meanings_is_refused() -> None:
    """The certain level goes on refusing."""
    assert repair_json('{"a": 1, "b"}').state == "unreadable"
    assert repair_json('{"a": 1, "a": 2}').value is None


@pytest.mark.parametrize("text", ["", "  \n", "}", "// nothing", "```", ":", "?!"])
def test_text_without_a_value_has_none(text: str) -> None:
    """Nothing is made up."""
    found = repair_json(text, guess=True, cut="close")
    assert (found.state, found.value, found.certainty) == ("unreadable", None, "certain")
    assert found.errors


@pytest.mark.parametrize("text", ['{"a": 12', '{"a": 1, "b', '[1, {"c": tru'])
def test_a_cut_value_is_only_kept_where_that_is_asked_for(text: str) -> None:
    """Without `cut="close"` a cut value stays refused."""
    refused = repair_json(text, guess=True)
    assert (refused.state, refused.value) == ("cut", None)
    kept = repair_json(text, guess=True, cut="close")
    assert (kept.state, kept.certainty) == ("cut", "likely")
    assert kept.errors
    assert not all(receipt.lossless for receipt in kept.receipts)


@pytest.mark.parametrize(
    ("policy", "value"),
    [("refuse", None), ("null", {"a": None, "b": 1}), ("text", {"a": "NaN", "b": 1})],
)
def test_a_guess_keeps_to_the_policy_on_numbers_that_are_not_finite(
    policy: Any, value: Any
) -> None:
    """NaN is what the caller wants it to be."""
    found = repair_json('{"a": NaN "b": 1}', guess=True, non_finite=policy)
    assert found.value == value


def test_a_text_that_is_nested_too_deep_is_refused() -> None:
    """The limit on depth holds."""
    found = repair_json("{a b " * 3 + "[" * 500, guess=True, cut="close")
    assert found.state == "unreadable"


@given(damaged, st.sampled_from(["refuse", "close"]), st.booleans())
def test_any_text_has_one_outcome(text: str, cut: Any, ended: bool) -> None:
    """No text raises, and the same text has the same outcome."""
    found = repair_json(text, guess=True, cut=cut, ended=ended)
    assert found == repair_json(text, guess=True, cut=cut, ended=ended)
    for value in (found.value, *found.alternatives):
        encode(value)
    first = repair_json(text, cut=cut, ended=ended)
    if found.certainty == "certain":
        assert found.value == first.value or found.state == "unreadable"
    else:
        assert found.doubt
        assert found.receipts
        assert first.state != "whole" or first.rest or first == found
        assert {receipt.rule for receipt in found.receipts} <= RULES.keys()
    if found.state == "cut" and found.value is not None:
        assert cut == "close"


HOSTILE = {
    "open strings": '{"a": "b, "c": 1, ',
    "apostrophes": "['a ",
    "bare text": '{"a": hello world, ',
    "keys without values": '{"a" ',
    "missing commas": '{"a":1 "b":2 x:',
    "prose": "x [y] {z} ",
    "closers": "]",
    "nested text": '["{"a" ',
    "dots": "[..., ",
    "cut": '[{"id": 1, "n": {"x": [1, 2]}}, ',
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_work_grows_with_the_text_and_no_faster(piece: str) -> None:
    """Hostile text of any size ends in time."""

    def measure(size: int, max_steps: int | None = None) -> int:
        text = "{a " + piece * (size // len(piece))
        return count_calls(lambda: repair_json(text, guess=True, cut="close", max_steps=max_steps))

    small, large = measure(50_000), measure(200_000)
    assert large < 6 * small
    assert measure(200_000, MAX_ARGUMENT_STEPS) < 20 * MAX_ARGUMENT_STEPS
