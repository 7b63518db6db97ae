"""Listing the errors of a deep value must not cost a multiple with every level."""

from typing import Any

from surecall.schema import SchemaChecker

TREE: dict[str, Any] = {
    "$defs": {
        "node": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"left": {"$ref": "#/$defs/node"}},
                    "required": ["left"],
                },
                {
                    "type": "object",
                    "properties": {"left": {"$ref": "#/$defs/node"}, "x": {"type": "integer"}},
                    "required": ["x"],
                },
                {"type": "integer"},
            ]
        }
    },
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/node"}},
}


def nested(depth: int, leaf: Any) -> dict[str, Any]:
    """Build a tree of a depth."""
    value: Any = leaf
    for _ in range(depth):
        value = {"left": value}
    return {"tree": value}


def test_a_deep_value_of_a_recursive_union_is_refused_at_once() -> None:
    """Forty levels would never end if every branch of every level were listed."""
    (error,) = SchemaChecker(TREE).check(nested(40, "x"))
    assert "nested too deeply" in error.message


def test_a_shallow_value_of_a_recursive_union_has_its_errors_listed() -> None:
    """Where it is cheap, the errors are named."""
    errors = SchemaChecker(TREE).check(nested(1, "x"))
    assert errors
    assert all("nested too deeply" not in error.message for error in errors)


def test_a_deep_value_that_fits_is_accepted() -> None:
    """Depth alone is no error."""
    assert SchemaChecker(TREE).check(nested(40, 1)) == ()
