"""A schema that was compiled before is not compiled again, and never mistaken for another."""

from typing import Any

import pytest

from surecall.base.errors import ToolDefinitionError
from surecall.schema import SchemaChecker, check


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Note every schema that is really compiled."""
    seen: list[dict[str, Any]] = []
    compile_new = check._compile_new

    def noted(schema: dict[str, Any]) -> Any:
        seen.append(schema)
        return compile_new(schema)

    monkeypatch.setattr(check, "_compile_new", noted)
    monkeypatch.setattr(check, "_compiled", {})
    return seen


def test_the_same_schema_is_compiled_once(count: list[dict[str, Any]]) -> None:
    """Equal in every part, it may be another object."""
    for _ in range(3):
        checker = SchemaChecker({"type": "object", "properties": {"n": {"type": "integer"}}})
        assert checker.is_valid({"n": 1})
        assert not checker.is_valid({"n": "x"})
    assert len(count) == 1


def test_values_that_only_look_equal_are_kept_apart(count: list[dict[str, Any]]) -> None:
    """Python takes 1, 1.0 and True for the same."""
    for const in (1, True, 1.5):
        checker = SchemaChecker({"const": const})
        assert checker.is_valid(const)
        assert checker.is_valid(1) == (const == 1 and const is not True)
        assert checker.is_valid(True) == (const is True)
    assert len(count) == 3


def test_a_schema_that_was_changed_afterwards_is_compiled_anew(
    count: list[dict[str, Any]],
) -> None:
    """What is kept belongs to what the schema was."""
    schema: dict[str, Any] = {"type": "string"}
    assert SchemaChecker(schema).is_valid("x")
    schema["type"] = "integer"
    assert SchemaChecker({"type": "string"}).is_valid("x")
    assert not SchemaChecker(schema).is_valid("x")
    assert [each["type"] for each in count][-1] == "integer"


def test_a_schema_that_cannot_be_used_is_refused_every_time(count: list[dict[str, Any]]) -> None:
    """A refusal is not forgotten."""
    for _ in range(2):
        with pytest.raises(ToolDefinitionError):
            SchemaChecker({"type": "strnig"}).compile()
    assert len(count) == 2


def test_only_so_many_are_kept(
    count: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest goes first."""
    monkeypatch.setattr(check, "_MAX_COMPILED", 2)
    for number in (1, 2, 3, 3, 2, 1):
        SchemaChecker({"const": number}).compile()
    assert [schema["const"] for schema in count] == [1, 2, 3, 1]
