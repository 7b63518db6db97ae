"""Operations on a document: what each does, and what is refused."""

from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import Code, WorkspaceError
from surecall.workspace import apply_operations


@dataclass(frozen=True)
class Applied:
    id: str
    before: dict[str, Any]
    operation: dict[str, Any]
    after: dict[str, Any]


@dataclass(frozen=True)
class Refused:
    id: str
    operation: Any
    says: str
    before: Any = None


def op(name: str, path: str, *value: Any, **fields: Any) -> dict[str, Any]:
    """Return an operation; a value is only there when it is given."""
    return {"op": name, "path": path, **({"value": value[0]} if value else {}), **fields}


APPLIED = [
    Applied("set a key", {}, op("set", "/draft/a", 1), {"a": 1}),
    Applied("set null", {"a": 1}, op("set", "/draft/a", None), {"a": None}),
    Applied("objects on the way", {}, op("set", "/draft/a/b/c", 1), {"a": {"b": {"c": 1}}}),
    Applied("null on the way", {"a": None}, op("set", "/draft/a/b", 1), {"a": {"b": 1}}),
    Applied("escaped key", {}, op("set", "/draft/a~1b~0c", 1), {"a/b~c": 1}),
    Applied("slash at the end", {}, op("set", "/draft/a/", 1), {"a": 1}),
    Applied("whole draft", {"a": 1}, op("set", "/draft/", {"b": 2}), {"b": 2}),
    Applied("list item", {"a": [1, 2]}, op("set", "/draft/a/1", 3), {"a": [1, 3]}),
    Applied("from the end", {"a": [1, 2]}, op("set", "/draft/a/-1", 3), {"a": [1, 3]}),
    Applied("padded", {"a": [1]}, op("set", "/draft/a/3", 4), {"a": [1, None, None, 4]}),
    Applied("object in a list", {"a": [{}]}, op("set", "/draft/a/0/b", 1), {"a": [{"b": 1}]}),
    Applied("new in a list", {"a": []}, op("set", "/draft/a/0/b", 1), {"a": [{"b": 1}]}),
    Applied("delete", {"a": 1, "b": 2}, op("delete", "/draft/a"), {"b": 2}),
    Applied("delete an item", {"a": [1, 2]}, op("delete", "/draft/a/0"), {"a": [2]}),
    Applied("delete what is not there", {"a": 1}, op("delete", "/draft/b/c"), {"a": 1}),
    Applied("delete beyond the end", {"a": [1]}, op("delete", "/draft/a/5"), {"a": [1]}),
    Applied("append", {"a": [1]}, op("append", "/draft/a", 2), {"a": [1, 2]}),
    Applied("append to nothing", {}, op("append", "/draft/a/b", 1), {"a": {"b": [1]}}),
    Applied("insert", {"a": [1, 3]}, op("insert", "/draft/a", 2, index=1), {"a": [1, 2, 3]}),
    Applied("insert at the end", {"a": [1]}, op("insert", "/draft/a", 2, index=1), {"a": [1, 2]}),
    Applied("insert into nothing", {}, op("insert", "/draft/a", 1, index=9), {"a": [1]}),
]

REFUSED = [
    Refused("no object", "set", "an operation is an object"),
    Refused("unknown", op("sett", "/draft/a", 1), "'sett' is not an operation"),
    Refused("no op", {"path": "/draft/a"}, "'op' must be a string and is missing"),
    Refused("no path", {"op": "set", "value": 1}, "'path' must be a string and is missing"),
    Refused("no value", op("set", "/draft/a"), "'value' is missing"),
    Refused("outside", op("set", "/facts/a", 1), "not inside the draft"),
    Refused("no pointer", op("set", "draft/a", 1), "not inside the draft"),
    Refused("the root itself", op("set", "/draft", {}), "not inside the draft"),
    Refused("bad escape", op("set", "/draft/a~2", 1), "has a '~'"),
    Refused("too deep", op("set", "/draft" + "/a" * 64, 1), "more than 64 parts"),
    Refused("root to a text", op("set", "/draft/", "x"), "only be set to an object"),
    Refused("root deleted", op("delete", "/draft/"), "cannot be deleted"),
    Refused("through a text", op("set", "/draft/t/a", 1), "a string on the way", {"t": "x"}),
    Refused("no index", op("set", "/draft/l/a", 1), "'a' is not an index", {"l": [1]}),
    Refused("odd digits", op("set", "/draft/l/²", 1), "is not an index", {"l": [1]}),
    Refused("before the start", op("set", "/draft/l/-2", 1), "outside the list", {"l": [1]}),
    Refused("a huge index", op("set", "/draft/l/999999", 1), "outside the list", {"l": [1]}),
    Refused("delete by name", op("delete", "/draft/l/a"), "'a' is not an index", {"l": [1]}),
    Refused("append to a text", op("append", "/draft/t", 1), "not an array", {"t": "x"}),
    Refused("append to the root", op("append", "/draft/", 1), "not an array"),
    Refused("no place", op("insert", "/draft/l", 1), "'index' must be", {"l": [1]}),
    Refused("a place that is true", op("insert", "/draft/l", 1, index=True), "'index' must be"),
    Refused("place outside", op("insert", "/draft/l", 1, index=2), "index 2", {"l": [1]}),
    Refused("place below 0", op("insert", "/draft/l", 1, index=-1), "index -1", {"l": [1]}),
]


@pytest.mark.parametrize("case", APPLIED, ids=lambda case: case.id)
def test_an_operation_is_applied_to_a_copy(case: Applied) -> None:
    """The result is as expected, and the document that was given is not touched."""
    before = {"keep": [1], **case.before}
    kept = repr(before)
    after = apply_operations(before, [case.operation])
    expected = case.after if case.id == "whole draft" else {"keep": [1], **case.after}
    assert after == expected
    assert repr(before) == kept


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_an_operation_is_refused_with_its_place(case: Refused) -> None:
    """The error names the operation and says what is wrong with it."""
    with pytest.raises(WorkspaceError) as caught:
        apply_operations(case.before or {}, [op("set", "/draft/first", 1), case.operation])
    assert caught.value.code == Code.ARGUMENT_ERROR
    assert caught.value.message.startswith("operation 1: ")
    assert case.says in caught.value.message


def test_a_misspelt_operation_is_answered_with_the_right_one() -> None:
    """The hint suggests the closest name."""
    with pytest.raises(WorkspaceError) as caught:
        apply_operations({}, [op("apend", "/draft/a", 1)])
    assert caught.value.hint == "Did you mean 'append'?"


def test_values_are_not_shared_with_the_document() -> None:
    """Changing what was given afterwards changes nothing in the document."""
    value = {"inner": [1]}
    after = apply_operations({}, [op("set", "/draft/a", value), op("append", "/draft/b", value)])
    value["inner"].append(2)
    assert after == {"a": {"inner": [1]}, "b": [{"inner": [1]}]}


def test_another_root_can_be_patched() -> None:
    """Facts are changed by the same engine, below their own root."""
    assert apply_operations({}, [op("set", "/facts/a", 1)], root="facts") == {"a": 1}
    with pytest.raises(WorkspaceError, match="not inside the facts"):
        apply_operations({}, [op("set", "/draft/a", 1)], root="facts")
