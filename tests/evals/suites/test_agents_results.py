"""When two answers of a database are the same."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.evals.suites.agents import same_rows

Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Pair:
    """Two answers, and whether they are the same."""

    id: str
    wanted: Rows
    found: Rows
    same: bool
    ordered: bool = False


PAIRS = [
    Pair("equal", ((1, "a"),), ((1, "a"),), True),
    Pair("other order", ((1,), (2,)), ((2,), (1,)), True),
    Pair("order asked for", ((1,), (2,)), ((2,), (1,)), False, ordered=True),
    Pair("as ordered", ((1,), (2,)), ((1,), (2,)), True, ordered=True),
    Pair("a row more", ((1,),), ((1,), (1,)), False),
    Pair("a row less", ((1,), (2,)), ((1,),), False),
    Pair("each as often", ((1,), (1,), (2,)), ((1,), (2,), (2,)), False),
    Pair("a column more", ((1,),), ((1, 2),), False),
    Pair("columns swapped", ((1, 2),), ((2, 1),), False),
    Pair("whole and float", ((3,),), ((3.0,),), True),
    Pair("rounded", ((225.83,),), ((225.8333333,),), True),
    Pair("a cent off", ((225.83,),), ((225.84,),), False),
    Pair("large, hardly off", ((1e9,),), ((1e9 + 1,),), True),
    Pair("number as text", ((3,),), (("3",),), False),
    Pair("float as text", ((3.0,),), (("3.0",),), False),
    Pair("null", ((None,),), ((None,),), True),
    Pair("null and zero", ((0,),), ((None,),), False),
    Pair("null and zero float", ((0.0,),), ((None,),), False),
    Pair("case counts", (("tea",),), (("Tea",),), False),
    Pair("both empty", (), (), True),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_answers_are_compared_by_their_values(pair: Pair) -> None:
    """Values count, in the order of columns; rows count in any order unless one was asked for."""
    assert same_rows(pair.wanted, pair.found, is_ordered=pair.ordered) is pair.same


cells = st.one_of(st.none(), st.integers(-9, 9), st.text(max_size=3))


@given(st.lists(st.tuples(cells, cells), max_size=12), st.randoms())
def test_rows_in_any_order_are_the_same(rows: list[tuple[Any, ...]], random: Any) -> None:
    """Shuffling changes nothing, and taking one row away always shows."""
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert same_rows(rows, shuffled, is_ordered=False)
    if shuffled:
        assert not same_rows(rows, shuffled[1:], is_ordered=False)
