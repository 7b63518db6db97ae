"""The limits on what a tool may answer."""

import dataclasses
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from surecall.base.errors import Code, ConfigError
from surecall.tools import OutputLimits, OutputRejection, check_output


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def _bomb(levels: int) -> Any:
    value: Any = ["x"] * 10
    for _ in range(levels):
        value = [value] * 10
    return value


class Point(msgspec.Struct):
    x: int
    label: str


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


SMALL = OutputLimits(max_bytes=20, max_depth=3, max_nodes=6, max_keys=3, max_items=4)
BIG = OutputLimits()


@dataclass(frozen=True)
class Case:
    id: str
    value: Any
    limits: OutputLimits
    expected: tuple[str, int] | None


CASES = [
    Case("scalar", 1, SMALL, None),
    Case("string at the limit", "x" * 20, SMALL, None),
    Case("string over the limit", "x" * 21, SMALL, ("STRING_TOO_LARGE", 21)),
    Case("bytes, not characters", "é" * 11, SMALL, ("STRING_TOO_LARGE", 22)),
    Case("surrogates are counted", "\ud800" * 7, SMALL, ("STRING_TOO_LARGE", 21)),
    Case("two strings over together", ["x" * 15, "y" * 6], SMALL, ("MAX_BYTES", 21)),
    Case("null costs four", [None] * 4 + [], SMALL, None),
    Case("costs of null and booleans", [None, None, True, False], SMALL, None),
    Case("one more byte", [None, True, True, "xxxxxxx"], SMALL, ("MAX_BYTES", 21)),
    Case("numbers cost their text", [12345, -1.5, 1234567890, 0], SMALL, None),
    Case("numbers over", [12345, -1.5, 1234567890, 10], SMALL, ("MAX_BYTES", 21)),
    Case("keys cost as strings", {"k" * 10: 1, "l" * 10: 1}, SMALL, ("MAX_BYTES", 21)),
    Case("keys alone over", {"k" * 15: 1, "l" * 10: 1}, SMALL, ("MAX_BYTES", 25)),
    Case("key over", {"k" * 21: 1}, SMALL, ("STRING_TOO_LARGE", 21)),
    Case("too many keys", {"a": 1, "b": 1, "c": 1, "d": 1}, SMALL, ("MAX_HASH_KEYS", 0)),
    Case("too many items", [1, 1, 1, 1, 1], SMALL, ("MAX_ARRAY_ITEMS", 0)),
    Case("depth at the limit", _nested(3), SMALL, None),
    Case("depth over the limit", _nested(4), SMALL, ("MAX_DEPTH", 0)),
    Case("nodes at the limit", [[1, 1], [1]], SMALL, None),
    Case("nodes over the limit", [[1, 1], [1, 1]], SMALL, ("MAX_NODES", 3)),
    Case("unknown objects cost 64", [object()], SMALL, ("MAX_BYTES", 64)),
    Case("bytes cost as base64", b"x" * 15, SMALL, None),
    Case("bytes over", b"x" * 16, SMALL, ("STRING_TOO_LARGE", 21)),
    Case("records are objects", Point(1, "x" * 15), SMALL, ("MAX_BYTES", 22)),
    Case("dataclasses are objects", Pair(1, [1, 1, 1, 1, 1]), SMALL, ("MAX_ARRAY_ITEMS", 10)),
    Case("other mappings", OrderedDict(a="x" * 20), SMALL, ("MAX_BYTES", 21)),
    Case("tuples and sets", ({1}, frozenset({2})), SMALL, None),
    Case("huge integer", 10**10_000, SMALL, ("MAX_BYTES", 10_001)),
    Case("default depth", _nested(20), BIG, None),
    Case("default depth over", _nested(21), BIG, ("MAX_DEPTH", 0)),
    Case("default bytes", "x" * 200_001, BIG, ("STRING_TOO_LARGE", 200_001)),
    Case("default items", [1] * 50_001, BIG, ("MAX_ARRAY_ITEMS", 0)),
    Case("default keys", dict.fromkeys(map(str, range(50_001))), BIG, ("MAX_HASH_KEYS", 0)),
    Case("default nodes", [[1] * 25_000, [1] * 25_000], BIG, ("MAX_NODES", 49_997)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_limits(case: Case) -> None:
    """Each limit is met exactly and has its own reason."""
    rejection = check_output(case.value, case.limits)
    expected = None if case.expected is None else OutputRejection(*case.expected)  # pyright: ignore[reportArgumentType] - reasons as plain text
    assert rejection == expected


def test_lists_that_unfold_without_end_are_stopped_early() -> None:
    """Ten lists of ten, thirteen levels deep and shared, would be ten million million values."""
    rejection = check_output(_bomb(12), BIG)
    assert rejection is not None
    assert rejection.reason == "MAX_NODES"


def test_any_depth_is_looked_at_without_recursion() -> None:
    """A hundred thousand lists inside each other are refused at the limit."""
    assert check_output(_nested(100_000), BIG) == OutputRejection("MAX_DEPTH", 0)


def test_a_cycle_is_counted_once() -> None:
    """What contains itself ends the walk; turning it into text is refused elsewhere."""
    loop: dict[str, Any] = {"name": "x"}
    loop["self"] = [loop]
    assert check_output(loop, SMALL) is None


def test_a_shared_value_is_counted_each_time() -> None:
    """It would be written twice, so it costs twice."""
    shared = ["x" * 11]
    assert check_output([shared], SMALL) is None
    assert check_output([shared, shared], SMALL) == OutputRejection("MAX_BYTES", 22)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None])
@pytest.mark.parametrize("name", OutputLimits.__struct_fields__)
def test_limits_that_are_no_limits_are_refused(name: str, wrong: Any) -> None:
    """A limit is a whole number above zero."""
    with pytest.raises(ConfigError) as caught:
        OutputLimits(**{name: wrong})
    assert caught.value.code == Code.INVALID_OPTION
    assert name in str(caught.value)
