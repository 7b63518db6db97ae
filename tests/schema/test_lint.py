"""Findings about tools, and the cleaning of their schemas."""

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.schema import LintFinding, clean_parameters, infer_parameters, lint_tool

NONE: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def of(**schema: Any) -> dict[str, Any]:
    """Return clean parameters with one property `x`."""
    return {
        "type": "object",
        "properties": {"x": {"description": "The x.", **schema}},
        "additionalProperties": False,
    }


def nested(levels: int) -> dict[str, Any]:
    """Return parameters with objects inside objects."""
    schema: dict[str, Any] = {"type": "string", "description": "Innermost."}
    for _ in range(levels):
        schema = {
            "type": "object",
            "properties": {"x": schema},
            "additionalProperties": False,
            "description": "An object.",
        }
    return schema


@dataclass(frozen=True)
class Case:
    id: str
    expected: tuple[tuple[str, str], ...]
    name: str = "create_task"
    description: str = "Create a task."
    parameters: Any = None


CASES = [
    Case("clean", ()),
    Case("clean argument", (), parameters=of(type="string")),
    Case("dot in name", (("name_characters", "/name"),), name="task.create"),
    Case("long name", (("name_too_long", "/name"),), name="a" * 65),
    Case("no name", (("name_missing", "/name"),), name=""),
    Case("no description", (("description_missing", "/description"),), description=" "),
    Case("long description", (("description_too_long", "/description"),), description="a" * 1025),
    Case(
        "not an object",
        (("parameters_not_object", "/parameters"),),
        parameters={"type": "array", "items": {"type": "string"}},
    ),
    Case("no type at the top", (("parameters_not_object", "/parameters"),), parameters={}),
    Case(
        "union at the top",
        (("union_at_top", "/parameters/anyOf"),),
        parameters={**NONE, "anyOf": [{"type": "object"}]},
    ),
    Case(
        "empty required",
        (("empty_required", "/parameters/required"),),
        parameters={**NONE, "required": []},
    ),
    Case(
        "unknown required",
        (("required_unknown", "/parameters/required"),),
        parameters={**NONE, "required": ["y"]},
    ),
    Case(
        "reference",
        (("uses_ref", "/parameters/$defs"), ("uses_ref", "/parameters/properties/x/$ref")),
        parameters={**of(**{"$ref": "#/$defs/T"}), "$defs": {"T": {"type": "string"}}},
    ),
    Case(
        "choice inside a choice",
        (("nested_union", "/parameters/properties/x/anyOf/0/anyOf"),),
        parameters=of(
            anyOf=[{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "integer"}]
        ),
    ),
    Case(
        "one choice",
        (),
        parameters=of(anyOf=[{"type": "string"}, {"type": "null"}]),
    ),
    Case("no type", (("type_missing", "/parameters/properties/x"),), parameters=of()),
    Case(
        "open object",
        (("additional_properties_missing", "/parameters/properties/x"),),
        parameters=of(type="object", properties={"y": {"type": "string"}}),
    ),
    Case("five levels", (), parameters=nested(5)),
    Case(
        "six levels",
        (("nested_too_deep", "/parameters" + "/properties/x" * 6),),
        parameters=nested(6),
    ),
    Case(
        "many properties",
        (("too_many_properties", "/parameters"),),
        parameters={
            **NONE,
            "properties": {f"p{n}": {"type": "string", "description": "A p."} for n in range(101)},
        },
    ),
    Case(
        "mixed enum",
        (("enum_mixed_types", "/parameters/properties/x/enum"),),
        parameters=of(enum=["a", 1]),
    ),
    Case(
        "default",
        (("default_invalid", "/parameters/properties/x/default"),),
        parameters=of(type="integer", default="a"),
    ),
    Case("good default", (), parameters=of(type="integer", default=1)),
    Case(
        "odd property name",
        (
            ("property_name_characters", "/parameters/properties/a b"),
            ("type_missing", "/parameters/properties/a b"),
        ),
        parameters={**NONE, "properties": {"a b": {"description": "Odd."}}},
    ),
    Case("no items", (("items_missing", "/parameters/properties/x"),), parameters=of(type="array")),
    Case(
        "no text for an argument",
        (("argument_description_missing", "/parameters/properties/x"),),
        parameters={**NONE, "properties": {"x": {"type": "string"}}},
    ),
    Case(
        "long text for an argument",
        (("description_too_long", "/parameters/properties/x/description"),),
        parameters=of(type="string", description="a" * 1025),
    ),
    *(
        Case(
            keyword,
            (("keyword_not_portable", f"/parameters/properties/x/{keyword}"),),
            parameters=of(type="string", **{keyword: value}),
        )
        for keyword, value in {
            "const": "a",
            "not": {"type": "null"},
            "if": {"type": "string"},
            "patternProperties": {},
            "oneOf": [{"type": "string"}],
            "prefixItems": [{"type": "string"}],
        }.items()
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_tool_has_these_findings(case: Case) -> None:
    """Each problem has its rule and its place, and a sentence that says what to do."""
    parameters = NONE if case.parameters is None else case.parameters
    findings = lint_tool(case.name, case.description, parameters)
    assert tuple((finding.rule, finding.place) for finding in findings) == case.expected
    assert all(finding.message.endswith(".") and finding.fix.endswith(".") for finding in findings)


def test_fix_of_a_name_is_concrete() -> None:
    """The fix shows a name that would be accepted."""
    assert lint_tool("facts.commit", "Commit.", NONE) == (
        LintFinding(
            "name_characters",
            "/name",
            "The name 'facts.commit' contains '.'; most providers refuse that.",
            "Use letters, digits, '_' and '-' only, such as 'facts_commit'.",
        ),
    )


def test_inferred_parameters_are_clean() -> None:
    """What is inferred from a documented signature has nothing to find."""

    def create(title: str, tags: list[str] | None = None) -> None:
        """Create.

        Args:
            title: What it is called.
            tags: Words to find it by.
        """

    assert lint_tool("create", "Create.", infer_parameters(create)) == ()


def test_keywords_and_property_names_are_told_apart() -> None:
    """Properties called like keywords are no keywords."""
    names = ("items", "anyOf", "const", "$ref", "required", "properties")
    texts = {name: {"type": "string", "description": "A text."} for name in names}
    found = lint_tool("create", "Create.", {**NONE, "properties": texts})
    assert [finding.rule for finding in found] == ["property_name_characters"]


def test_schema_that_contains_itself_does_not_hang() -> None:
    """A dict that contains itself ends at the bound."""
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    assert lint_tool("a", "A.", schema)[0].rule == "parameters_not_object"


@dataclass(frozen=True)
class CleanCase:
    id: str
    schema: dict[str, Any]
    expected: dict[str, Any]


CLEAN = [
    CleanCase(
        "nothing to do",
        {"type": "object", "required": ["a"]},
        {"type": "object", "required": ["a"]},
    ),
    CleanCase("top", {"type": "object", "required": []}, {"type": "object"}),
    CleanCase(
        "everywhere",
        {
            "required": [],
            "properties": {
                "a": {"items": {"required": [], "type": "object"}},
                "b": {"required": ["c"]},
            },
            "anyOf": [{"required": []}, {"type": "null"}],
            "$defs": {"d": {"additionalProperties": {"required": []}}},
        },
        {
            "properties": {"a": {"items": {"type": "object"}}, "b": {"required": ["c"]}},
            "anyOf": [{}, {"type": "null"}],
            "$defs": {"d": {"additionalProperties": {}}},
        },
    ),
    CleanCase(
        "data and names stay",
        {
            "properties": {"required": {"type": "array"}},
            "default": {"required": []},
            "enum": [{"required": []}],
        },
        {
            "properties": {"required": {"type": "array"}},
            "default": {"required": []},
            "enum": [{"required": []}],
        },
    ),
]


@pytest.mark.parametrize("case", CLEAN, ids=lambda case: case.id)
def test_empty_required_lists_are_removed(case: CleanCase) -> None:
    """Only empty lists of required names go, and the given schema is not changed."""
    before = copy.deepcopy(case.schema)
    cleaned = clean_parameters(case.schema)
    assert cleaned == case.expected
    assert case.schema == before
    assert (cleaned is case.schema) is (case.schema == case.expected)


def test_parts_that_do_not_change_are_shared() -> None:
    """Cleaning copies only the way to what it removes."""
    kept = {"type": "object", "properties": {"x": {"type": "string"}}}
    schema = {"properties": {"kept": kept, "changed": {"required": []}}}
    cleaned = clean_parameters(schema)
    assert cleaned["properties"]["kept"] is kept
    assert cleaned["properties"]["changed"] == {}
