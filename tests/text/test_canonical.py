"""One value has one canonical form."""

from typing import Any

import pytest

from surecall.base.errors import Code, JSONTextError
from surecall.text import canonical_bytes, canonical_hash, decode


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"b": 1, "a": {"d": 1, "c": 2}}, '{"a":{"c":2,"d":1},"b":1}', id="nested"),
        pytest.param({"aa": 1, "a": 2, "": 3}, '{"":3,"a":2,"aa":1}', id="prefixes"),
        pytest.param(
            {"😀": 1, "\uffff": 2, "é": 3, "z": 4},
            '{"z":4,"é":3,"\uffff":2,"😀":1}',
            id="by-code-point",
        ),
        pytest.param([{"b": 1, "a": 2}, None], '[{"a":2,"b":1},null]', id="in-arrays"),
        pytest.param([3, 1, 2], "[3,1,2]", id="array-order-is-kept"),
        pytest.param({"x", "a"}, '["a","x"]', id="set"),
    ],
)
def test_keys_are_sorted_and_nothing_else_is_written(value: Any, text: str) -> None:
    """The form is compact, sorted by code point, and UTF-8."""
    assert canonical_bytes(value) == text.encode("utf-8")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(b'{"a":1,"b":2}', b' { "b" : 2 , "a" : 1 } ', id="order-and-space"),
        pytest.param(b"1.50", b"15e-1", id="float-spelling"),
        pytest.param(b"1e2", b"100.0", id="exponent"),
        pytest.param(rb'"\u00e9\/"', '"é/"'.encode(), id="escapes"),
        pytest.param(b"-0", b"0", id="integer-zero-has-no-sign"),
    ],
)
def test_the_same_value_hashes_the_same(left: bytes, right: bytes) -> None:
    """How the text was written does not matter."""
    assert canonical_hash(decode(left)) == canonical_hash(decode(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(1, 1.0, id="integer-and-float"),
        pytest.param(0.0, -0.0, id="signed-zero"),
        pytest.param(1, True, id="number-and-boolean"),
        pytest.param("1", 1, id="text-and-number"),
        pytest.param([1, 2], [2, 1], id="array-order"),
        pytest.param({}, {"a": None}, id="absent-and-null"),
        pytest.param(2**64, 2**64 + 1, id="beyond-float-precision"),
    ],
)
def test_different_values_hash_differently(left: Any, right: Any) -> None:
    """What was decoded differently is not the same approval."""
    assert canonical_hash(left) != canonical_hash(right)


def test_the_hash_is_stable() -> None:
    """Stored hashes stay comparable: this one may never change."""
    digest = "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"
    assert canonical_hash({"b": 2, "a": 1}) == digest


@pytest.mark.parametrize(
    ("value", "code"),
    [
        pytest.param([float("nan")], Code.NON_FINITE_NUMBER, id="nan"),
        pytest.param("\ud800", Code.LONE_SURROGATE, id="surrogate"),
        pytest.param({1: 2}, Code.NOT_SERIALIZABLE, id="number-key"),
        pytest.param([object()], Code.NOT_SERIALIZABLE, id="object"),
    ],
)
def test_what_has_no_canonical_form_is_refused(value: Any, code: Code) -> None:
    """No hash is made of something that JSON cannot say."""
    with pytest.raises(JSONTextError) as caught:
        canonical_hash(value)
    assert caught.value.code == code
