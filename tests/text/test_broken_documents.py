"""Broken documents: the certain level returns the document or refuses, the likely level reads."""

import pytest

from support.broken_json import break_documents, is_nearer
from support.model_slips import make_slips
from surecall.text import canonical_bytes, encode_text, repair_json

DOUBTFUL = {
    "a key without its object": 'days:{"user id":"x"}}',
    "members in other quotes": '{"items": [`no", "a,b", {"a": "x"`], "a": 1}',
    "a quote for a brace": """{"b": '"b": {"id": 1, "1"[ true}'}""",
    "a member on the next line": '{\n  "a": "x,\n  "user id" say \\"hi\\" now"\n}',
    "another mark for a comma": '{"a": ["x"` "long text", 1], "b": 1}',
    "a bracket for a comma": '{"items":"x"("x-y","5 // five","id":null}',
    "a number between strings": '{"é": 2024", "name": ["line" 1e+21, "line"]}',
    "a whole text in other quotes": "'\"days;:false'",
    "a letter of the next key": '{"days":[nullc],"lass":[{}]}',
    "the start of the next key": '{"u":true$,"ref":{"1":2}}',
    "an inner value whose outer brace is lost": ': {"b": [1], "c": "x"}}',
    "an inner value behind a damaged key": '"class: {"b": "x"}',
    "an inner value behind a key without a colon": '"days"["x"]',
    "the last line of an object": " false\n}",
    "an item of a list without its start": "[]}",
    "an indented object without its start": '{\n    "a": 1\n  }\n}',
    "a hole at the start of a list": "[ , 1]",
    "a comment behind an empty string": '{"a": ""# x"}',
    "a comment with one quote": '{"a": 5 // five",\n"b": 1}',
    "a bracket missing in one of two places": '{"a": {"b": 1, "c": 2}',
    "two wrong brackets": '{"a": [1, 2}, "b": 3}}',
    "which bracket": '{"a": {"b": 1], "c": 2}',
    "an opener too few": '{"a": 1], "b": 2}',
    "which object is closed": '{"x": {"a": [1, 2}, "b": 3}',
    "an array too long": '[{"a": [1, 2}, {"b": 3}]',
    "a misspelt literal": '{"a": flse}',
    "two brackets missing": '{"a": [{"b": "x"}',
    "an opener too many": '{"a": [[{"b": 1}]}',
    "a quote behind its line break": '{\n  "a": "x\n"}',
    "a quote behind its first letter": '{u"ser": 1, "b": 2}',
    "a bracket for a quote": '{"a": "x), "b": "y"}',
    "round brackets around words": '{"a": (round)}',
}


@pytest.mark.parametrize("text", DOUBTFUL.values(), ids=list(DOUBTFUL))
def test_text_that_may_have_been_another_value_is_never_certain(text: str) -> None:
    """Each stands for a class of slips behind which two documents are equally near."""
    found = repair_json(text)
    assert found.state != "whole" or (found.certainty == "likely" and found.doubt)


@pytest.mark.parametrize("ended", [None, True])
def test_a_missing_bracket_is_taken_to_be_missing_at_the_end(ended: bool | None) -> None:
    """It may be missing in another place, so that the value is only likely."""
    found = repair_json('{"a": {"b": 1, "c": 2}', ended=ended)
    assert (found.value, found.certainty) == ({"a": {"b": 1, "c": 2}}, "likely")


@pytest.mark.parametrize("seed", range(3))
def test_broken_documents_are_read_as_they_were_or_refused(seed: int) -> None:
    """No certain value differs from the document, unless fewer slips lead from it to the text."""
    right = 0
    for case in break_documents(seed, 1_000):
        found = repair_json(case.text)
        if found.state != "whole":
            continue
        values = [encode_text(value) for value in (found.value, *found.rest)]
        if values == [encode_text(value) for value in case.values]:
            right += 1
        elif found.certainty == "certain":
            assert is_nearer(case, found.value), case
    assert right > 400


def test_slips_of_models_are_read() -> None:
    """At the likely level nearly all are read as they were meant, and what is certain is right."""
    count, read = 1_000, 0
    for slip in make_slips(5, count):
        meant = canonical_bytes(slip.value)
        certain = repair_json(slip.text)
        if certain.state == "whole" and certain.certainty == "certain" and not certain.rest:
            assert canonical_bytes(certain.value) == meant, slip
        likely = repair_json(slip.text, guess=True, cut="close")
        is_read = canonical_bytes(likely.value) == meant
        assert is_read or likely.state != "whole", slip
        read += is_read
    assert read >= 0.99 * count
