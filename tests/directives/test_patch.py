"""Patches as models write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.loop.directives import PATCH_PREFIXES, read_patch


@pytest.mark.parametrize(
    ("written", "ops"),
    [
        ([{"op": "set", "path": "/draft/a", "value": 1}],
         [{"op": "set", "path": "/draft/a", "value": 1}]),
        ({"op": "replace", "path": "draft/a", "value": None},
         [{"op": "set", "path": "/draft/a", "value": None}]),
        ('[{"op": "add", "path": "a", "value": 1}]',
         [{"op": "set", "path": "/draft/a", "value": 1}]),
        ({"ops": [{"path": "`/draft/a`"}]}, [{"op": "delete", "path": "/draft/a"}]),
        ([{"path": "ui_state/x", "value": "y"}],
         [{"op": "set", "path": "/ui_state/x", "value": "y"}]),
        ([{"op": "RM", "path": "#/draft/a/0"}], [{"op": "delete", "path": "/draft/a/0"}]),
        ([{"op": "push", "path": "/draft/l", "value": 1}],
         [{"op": "append", "path": "/draft/l", "value": 1}]),
        ([{"op": "insert", "path": "/draft/l", "value": 1, "index": 0}],
         [{"op": "insert", "path": "/draft/l", "value": 1, "index": 0}]),
    ],
)  # fmt: skip
def test_what_is_read(written: Any, ops: list[Any]) -> None:
    """Other words and spellings for the same operation are read as it."""
    found = read_patch(written)
    assert list(found.ops) == ops
    assert found.ok


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (None, "MISSING_OPS"),
        ([], "MISSING_OPS"),
        ("none", "MISSING_OPS"),
        (["x"], "INVALID_PATCH_OP"),
        ([{"op": "move", "path": "/draft/a"}], "INVALID_PATCH_OP"),
        ([{"op": 3, "path": "/draft/a"}], "INVALID_PATCH_OP"),
        ([{"op": "set", "path": "/facts/a", "value": 1}], "INVALID_PATCH_PATH"),
        ([{"op": "set", "path": "/draft/", "value": 1}], "INVALID_PATCH_PATH"),
        ([{"op": "set", "path": 3, "value": 1}], "INVALID_PATCH_PATH"),
        ([{"op": "set", "path": "/draft/a"}], "MISSING_PATCH_VALUE"),
        ([{"op": "insert", "path": "/draft/a", "value": 1}], "INVALID_PATCH_INDEX"),
        ([{"op": "insert", "path": "/draft/a", "value": 1, "index": True}], "INVALID_PATCH_INDEX"),
    ],
)
def test_what_is_refused(written: Any, code: str) -> None:
    """One wrong operation refuses the whole patch."""
    good = {"op": "set", "path": "/draft/ok", "value": 1}
    found = read_patch([good, *written] if isinstance(written, list) and written else written)
    assert (found.ops, [error.code for error in found.errors]) == ((), [code])


@given(st.recursive(
    st.none() | st.integers() | st.text(max_size=12) | st.sampled_from(["op", "/draft/x", "set"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["op", "path", "value", "index", "ops"]), inner),
    max_leaves=8,
))  # fmt: skip
def test_a_patch_never_leaves_its_paths(written: Any) -> None:
    """Whatever is written: nothing raises, and every operation is below an allowed prefix."""
    found = read_patch(written)
    assert found.ok == bool(found.ops)
    assert all(op["path"].startswith(PATCH_PREFIXES) for op in found.ops)


def test_the_prefixes_are_the_applications_own() -> None:
    """A relative path goes below the first of them."""
    found = read_patch({"path": "title", "value": "x"}, prefixes=["/doc/"])
    assert found.ops == ({"op": "set", "path": "/doc/title", "value": "x"},)
    assert read_patch({"path": "/draft/a", "value": 1}, prefixes=["/doc/"]).errors
