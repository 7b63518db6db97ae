"""JSON patches are applied whole or not at all."""

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import Code, JSONTextError
from surecall.text import apply_patch


@dataclass(frozen=True)
class Applied:
    id: str
    before: Any
    operations: list[dict[str, Any]]
    after: Any


def op(name: str, path: str, **members: Any) -> dict[str, Any]:
    """Return one operation; `from_` stands for `from`."""
    return {"op": name, "path": path, **{key.rstrip("_"): value for key, value in members.items()}}


APPLIED = [
    Applied("nothing", {"a": 1}, [], {"a": 1}),
    Applied("add-key", {"a": 1}, [op("add", "/b", value=2)], {"a": 1, "b": 2}),
    Applied("add-over-key", {"a": 1}, [op("add", "/a", value=None)], {"a": None}),
    Applied("add-first", [1, 2], [op("add", "/0", value=0)], [0, 1, 2]),
    Applied("add-between", [1, 3], [op("add", "/1", value=2)], [1, 2, 3]),
    Applied("add-at-length", [1], [op("add", "/1", value=2)], [1, 2]),
    Applied("add-at-dash", [1], [op("add", "/-", value=[2])], [1, [2]]),
    Applied("add-dash-key", {}, [op("add", "/-", value=1)], {"-": 1}),
    Applied("add-whole", {"a": 1}, [op("add", "", value=[])], []),
    Applied("add-deep", {"a": [{}]}, [op("add", "/a/0/b~1c", value=1)], {"a": [{"b/c": 1}]}),
    Applied("remove-key", {"a": 1, "b": 2}, [op("remove", "/a")], {"b": 2}),
    Applied("remove-element", [1, 2, 3], [op("remove", "/1")], [1, 3]),
    Applied("replace-key", {"a": 1}, [op("replace", "/a", value={"b": 2})], {"a": {"b": 2}}),
    Applied("replace-element", [1, 2], [op("replace", "/1", value=3)], [1, 3]),
    Applied("replace-whole", {"a": 1}, [op("replace", "", value=7)], 7),
    Applied("move-key", {"a": 1}, [op("move", "/b", from_="/a")], {"b": 1}),
    Applied("move-element", [1, 2, 3], [op("move", "/2", from_="/0")], [2, 3, 1]),
    Applied("move-to-dash", [1, 2, 3], [op("move", "/-", from_="/0")], [2, 3, 1]),
    Applied("move-to-itself", {"a": 1}, [op("move", "/a", from_="/a")], {"a": 1}),
    Applied("move-up", {"a": {"b": 1}}, [op("move", "/a", from_="/a/b")], {"a": 1}),
    Applied("move-to-the-top", {"a": {"b": 1}}, [op("move", "", from_="/a")], {"b": 1}),
    Applied("move-to-a-longer-name", {"a": 1}, [op("move", "/ab", from_="/a")], {"ab": 1}),
    Applied("copy", {"a": [1]}, [op("copy", "/b", from_="/a")], {"a": [1], "b": [1]}),
    Applied("copy-into-itself", {"a": 1}, [op("copy", "/b", from_="")], {"a": 1, "b": {"a": 1}}),
    Applied(
        "copies-are-apart",
        {"a": [1]},
        [op("copy", "/b", from_="/a"), op("add", "/b/-", value=2)],
        {"a": [1], "b": [1, 2]},
    ),
    Applied("test", {"a": [1, {"b": None}]}, [op("test", "/a", value=[1, {"b": None}])],
            {"a": [1, {"b": None}]}),
    Applied("test-numbers-by-value", {"a": 1}, [op("test", "/a", value=1.0)], {"a": 1}),
    Applied("test-key-order", {"a": {"x": 1, "y": 2}},
            [op("test", "/a", value={"y": 2, "x": 1})], {"a": {"x": 1, "y": 2}}),
    Applied("in-order", [], [op("add", "/-", value=1), op("replace", "/0", value=2)], [2]),
    Applied("other-members-are-ignored", {}, [op("add", "/a", value=1, why="x")], {"a": 1}),
]  # fmt: skip


@pytest.mark.parametrize("case", APPLIED, ids=lambda case: case.id)
def test_operations_do_what_the_standard_says(case: Applied) -> None:
    """The result is new, and what was given stays as it was."""
    before = copy.deepcopy(case.before)
    operations = copy.deepcopy(case.operations)
    result = apply_patch(case.before, case.operations)
    assert result == case.after
    assert case.before == before
    assert case.operations == operations


@dataclass(frozen=True)
class Refused:
    id: str
    before: Any
    operations: Any
    message: str


REFUSED = [
    Refused("not-a-list", {}, {"op": "add"}, "a patch is an array of operations, not an object."),
    Refused("not-an-object", {}, ["add"], "operation 0: an operation is an object, not a string."),
    Refused("no-op", {}, [{"path": "/a"}],
            "operation 0 (/a): its 'op' must be a string and is missing."),
    Refused("op-is-a-number", {}, [{"op": 1, "path": "/a"}],
            "operation 0 (/a): its 'op' must be a string and is a number."),
    Refused("no-path", {}, [{"op": "add", "value": 1}],
            "operation 0 (add): its 'path' must be a string and is missing."),
    Refused("no-value", {}, [op("add", "/a")], "operation 0 (add /a): its 'value' is missing."),
    Refused("no-from", {}, [op("copy", "/a")],
            "operation 0 (copy /a): its 'from' must be a string and is missing."),
    Refused("unknown-op", {}, [op("replcae", "/a", value=1)],
            "operation 0 (replcae /a): 'replcae' is not an operation."),
    Refused("bad-pointer", {}, [op("add", "a", value=1)],
            "operation 0 (add a): the pointer 'a' does not start with '/'."),
    Refused("add-without-parent", {"b": 1}, [op("add", "/a/b", value=1)],
            "operation 0 (add /a/b): the document has no key 'a'; it has 'b'."),
    Refused("add-beyond-the-end", [1], [op("add", "/2", value=1)],
            "operation 0 (add /2): index 2 is out of range for the document: "
            "the last possible is 1."),
    Refused("add-into-a-string", {"a": "x"}, [op("add", "/a/b", value=1)],
            "operation 0 (add /a/b): the value at '/a' is a string and has no 'b' in it."),
    Refused("remove-missing", {}, [op("remove", "/a")],
            "operation 0 (remove /a): the document has no key 'a': it is empty."),
    Refused("remove-dash", [1], [op("remove", "/-")],
            "operation 0 (remove /-): '-' is the place after the last element of the document, "
            "not an element."),
    Refused("remove-whole", {}, [op("remove", "")],
            "operation 0 (remove ): the whole document cannot be removed."),
    Refused("replace-missing", {}, [op("replace", "/a", value=1)],
            "operation 0 (replace /a): the document has no key 'a': it is empty."),
    Refused("move-into-itself", {"a": {}}, [op("move", "/a/b", from_="/a")],
            "operation 0 (move /a/b): a value cannot be moved into itself."),
    Refused("move-missing", {}, [op("move", "/b", from_="/a")],
            "operation 0 (move /b): the document has no key 'a': it is empty."),
    Refused("move-missing-to-itself", {}, [op("move", "/a", from_="/a")],
            "operation 0 (move /a): the document has no key 'a': it is empty."),
    Refused("test-differs", {"a": 1}, [op("test", "/a", value=2)],
            "operation 0 (test /a): the value there is not the one expected."),
    Refused("test-boolean-is-no-number", {"a": 1}, [op("test", "/a", value=True)],
            "operation 0 (test /a): the value there is not the one expected."),
    Refused("test-longer", [1, 2], [op("test", "", value=[1])],
            "operation 0 (test ): the value there is not the one expected."),
    Refused("test-other-keys", {"a": 1}, [op("test", "", value={"b": 1})],
            "operation 0 (test ): the value there is not the one expected."),
    Refused("second-fails", {"a": 1},
            [op("add", "/b", value=1), op("remove", "/c"), op("add", "/d", value=1)],
            "operation 1 (remove /c): the document has no key 'c'; it has 'a', 'b'."),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_patch_that_cannot_be_applied_changes_nothing(case: Refused) -> None:
    """The error names the operation, and the document is as before."""
    before = copy.deepcopy(case.before)
    with pytest.raises(JSONTextError) as caught:
        apply_patch(case.before, case.operations)
    assert caught.value.code == Code.INVALID_PATCH
    assert caught.value.message == case.message
    assert case.before == before


def test_an_unknown_operation_is_met_with_a_suggestion() -> None:
    """The hint names the operation that was meant."""
    with pytest.raises(JSONTextError) as caught:
        apply_patch({}, [op("replcae", "/a", value=1)])
    assert caught.value.hint == "Did you mean 'replace'?"


def test_the_result_shares_nothing_with_what_was_given() -> None:
    """Changing the result changes neither the document nor the operations."""
    document = {"a": {"b": [1]}}
    value: dict[str, Any] = {"d": []}
    result = apply_patch(document, [op("add", "/c", value=value), op("add", "/c/d/-", value=1)])
    result["a"]["b"].append(2)
    result["c"]["d"].append(2)
    assert document == {"a": {"b": [1]}}
    assert value == {"d": []}
    assert result == {"a": {"b": [1, 2]}, "c": {"d": [1, 2]}}


def test_deep_documents_are_no_trouble() -> None:
    """Copying and comparing use no recursion."""
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    result = apply_patch({"a": deep}, [op("copy", "/b", from_="/a"), op("test", "/b", value=deep)])
    assert result["b"] is not result["a"]
    assert len(result["b"]) == 1


def test_copies_that_double_the_document_are_stopped() -> None:
    """Sixty small operations cannot ask for more memory than there is."""
    operations = [op("copy", "/-", from_="") for _ in range(60)]
    with pytest.raises(JSONTextError, match="copies more than 1000000 values"):
        apply_patch([1], operations)
