"""Findings about a tool that some providers or models will trip over."""

from collections.abc import Iterator
from typing import Any, Final, cast

from msgspec import Struct

from surecall.errors import ToolDefinitionError
from surecall.jsontext import encode, render_pointer
from surecall.limits import MAX_SCHEMA_DEPTH
from surecall.records import clip

from .check import SchemaChecker
from .structure import MAX_SCHEMA_NODES, SchemaPlace, walk_schema

__all__ = ["LintFinding", "clean_parameters", "lint_tool"]

_MAX_NAME: Final = 64
_MAX_DESCRIPTION: Final = 1024
_MAX_NESTING: Final = 5
_MAX_PROPERTIES: Final = 100
_NAME_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
)
_UNIONS: Final = ("anyOf", "oneOf", "allOf")
_LEVELS: Final = ("properties", "items", "additionalProperties")
_TYPE_STANDS_IN: Final = ("$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not", "if")
_NOT_PORTABLE: Final = {
    "const": 'Write "enum" with the one value.',
    "contains": "Describe the rule in words and check it inside the tool.",
    "dependentRequired": "Describe the rule in words and check it inside the tool.",
    "dependentSchemas": "Describe the rule in words and check it inside the tool.",
    "else": "Split the tool in two, or check the rule inside the tool.",
    "if": "Split the tool in two, or check the rule inside the tool.",
    "not": "Say what is allowed instead of what is not.",
    "oneOf": 'Use "anyOf".',
    "patternProperties": "Use fixed property names, or a list of name and value pairs.",
    "prefixItems": "Use an object with a named property for each element.",
    "propertyNames": "Use fixed property names, or a list of name and value pairs.",
    "then": "Split the tool in two, or check the rule inside the tool.",
    "unevaluatedProperties": 'Use "additionalProperties".',
}


class LintFinding(Struct, frozen=True):
    """One thing about a tool that some provider or model will trip over."""

    rule: str
    place: str
    """JSON pointer into the tool: `/name`, `/description`, `/parameters/...`."""
    message: str
    fix: str


def lint_tool(name: str, description: str, parameters: dict[str, Any]) -> tuple[LintFinding, ...]:
    """Return what is likely to go wrong with a tool at some provider, in document order."""
    findings = [*_lint_name(name), *_lint_description(description), *_lint_root(parameters)]
    properties = 0
    for count, place in enumerate(walk_schema(parameters)):
        if count >= MAX_SCHEMA_NODES or len(place.path) > 2 * MAX_SCHEMA_DEPTH:
            break
        for rule in (_lint_keywords, _lint_shape, _lint_object, _lint_texts, _lint_values):
            findings.extend(rule(place, parameters))
        properties += len(_properties(place.schema))
    if properties > _MAX_PROPERTIES:
        findings.append(
            LintFinding(
                "too_many_properties",
                "/parameters",
                f"{properties} properties in all; some providers stop at {_MAX_PROPERTIES}.",
                "Split the tool, or move rarely used arguments into another tool.",
            )
        )
    return tuple(findings)


def clean_parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without empty `required` lists; parts that do not change are shared."""
    if b'"required":[]' not in encode(schema):  # far cheaper than the walk, and nearly always so
        return schema
    empty = [place.path for place in walk_schema(schema) if place.schema.get("required") == []]
    if not empty:
        return schema
    result = dict(schema)
    copies: dict[tuple[str | int, ...], Any] = {(): result}
    for path in empty:
        for length in range(1, len(path) + 1):
            here = path[:length]
            if here not in copies:
                outer: Any = copies[here[:-1]]
                copies[here] = outer[here[-1]] = outer[here[-1]].copy()
        del copies[path]["required"]
    return result


def _lint_name(name: str) -> Iterator[LintFinding]:
    if not name:
        yield LintFinding("name_missing", "/name", "The tool has no name.", "Give it a name.")
        return
    odd = sorted(set(name) - _NAME_CHARACTERS)
    if odd:
        shown = " ".join(repr(character) for character in odd[:8])
        safe = "".join(item if item in _NAME_CHARACTERS else "_" for item in name[:_MAX_NAME])
        yield LintFinding(
            "name_characters",
            "/name",
            f"The name {clip(name, 80)!r} contains {shown}; most providers refuse that.",
            f"Use letters, digits, '_' and '-' only, such as {safe!r}.",
        )
    if len(name) > _MAX_NAME:
        yield LintFinding(
            "name_too_long",
            "/name",
            f"The name has {len(name)} characters; providers stop at {_MAX_NAME}.",
            f"Shorten it to at most {_MAX_NAME} characters.",
        )


def _lint_description(description: str) -> Iterator[LintFinding]:
    if not description.strip():
        yield LintFinding(
            "description_missing",
            "/description",
            "The tool has no description, so a model must guess when to use it.",
            "Say in one or two sentences what it does and when to call it.",
        )
    elif len(description) > _MAX_DESCRIPTION:
        yield _description_too_long("/description", len(description))


def _lint_root(schema: dict[str, Any]) -> Iterator[LintFinding]:
    if schema.get("type") != "object":
        yield LintFinding(
            "parameters_not_object",
            "/parameters",
            'The parameters are not of type "object"; every provider requires that.',
            'Write {"type": "object", "properties": {...}} at the top.',
        )
    for keyword in _UNIONS:
        if keyword in schema:
            yield LintFinding(
                "union_at_top",
                f"/parameters/{keyword}",
                f'"{keyword}" at the top of the parameters is refused by several providers.',
                "Move the choice into a property, or make one tool for each form.",
            )


def _lint_keywords(place: SchemaPlace, _root: dict[str, Any]) -> Iterator[LintFinding]:
    for keyword in place.schema:
        here = _pointer(place, keyword)
        if keyword in ("$ref", "$defs", "definitions"):
            yield LintFinding(
                "uses_ref",
                here,
                f'"{keyword}" is not understood by every provider.',
                "Write the referenced schema in place, or limit the depth of a recursive one.",
            )
        if fix := _NOT_PORTABLE.get(keyword):
            yield LintFinding(
                "keyword_not_portable",
                here,
                f'"{keyword}" is refused or ignored by some providers.',
                fix,
            )
        if keyword in _UNIONS and _is_nested_choice(place):
            yield LintFinding(
                "nested_union",
                here,
                "A choice inside a choice: models mix up the forms, and some providers refuse it.",
                "Write all forms in one list, or tell them apart by a property.",
            )


def _lint_shape(place: SchemaPlace, root: dict[str, Any]) -> Iterator[LintFinding]:
    schema = place.schema
    untyped = "type" not in schema and not any(item in schema for item in _TYPE_STANDS_IN)
    if untyped and schema is not root:
        yield LintFinding(
            "type_missing",
            _pointer(place),
            'The schema has no "type", so any value fits it.',
            'Add a "type".',
        )
    if schema.get("type") == "array" and "items" not in schema and "prefixItems" not in schema:
        yield LintFinding(
            "items_missing",
            _pointer(place),
            "The array does not say what its items are; some providers refuse that.",
            'Add "items" with the schema of one item.',
        )
    keywords = place.keywords
    levels = sum(keyword in _LEVELS for keyword in keywords)
    if levels == _MAX_NESTING + 1 and keywords[-1] in _LEVELS:
        yield LintFinding(
            "nested_too_deep",
            _pointer(place),
            f"The schema is nested deeper than {_MAX_NESTING} levels; some providers refuse that.",
            "Flatten it: lift inner properties up, or take them in a second tool.",
        )


def _lint_object(place: SchemaPlace, root: dict[str, Any]) -> Iterator[LintFinding]:
    schema = place.schema
    required = schema.get("required")
    if required == []:
        yield LintFinding(
            "empty_required",
            _pointer(place, "required"),
            'An empty "required" list is refused by some backends.',
            'Leave "required" out, or send the schema through clean_parameters.',
        )
    properties = _properties(schema)
    if isinstance(required, list):
        for name in cast(list[Any], required):
            if name not in properties and ("properties" in schema or schema is root):
                yield LintFinding(
                    "required_unknown",
                    _pointer(place, "required"),
                    f"{clip(repr(name), 80)} is required but is not among the properties.",
                    "Add the property, or take the name out of the list.",
                )
    if properties and "additionalProperties" not in schema:
        yield LintFinding(
            "additional_properties_missing",
            _pointer(place),
            "Unknown properties are let through, and strict modes refuse the schema.",
            'Add "additionalProperties": false.',
        )
    for name in properties:
        if not name or set(name) - _NAME_CHARACTERS or len(name) > _MAX_NAME:
            yield LintFinding(
                "property_name_characters",
                _pointer(place, "properties", name),
                f"The property name {clip(name, 80)!r} is refused by some providers.",
                f"Use 1 to {_MAX_NAME} letters, digits, '_' and '-'.",
            )


def _lint_texts(place: SchemaPlace, _root: dict[str, Any]) -> Iterator[LintFinding]:
    description = place.schema.get("description")
    if isinstance(description, str) and len(description) > _MAX_DESCRIPTION:
        yield _description_too_long(_pointer(place, "description"), len(description))
    if place.keywords == ("properties",) and not description:
        yield LintFinding(
            "argument_description_missing",
            _pointer(place),
            f"The argument {clip(str(place.path[-1]), 80)!r} has no description.",
            "Say what it means, with its unit or an example.",
        )


def _lint_values(place: SchemaPlace, root: dict[str, Any]) -> Iterator[LintFinding]:
    options = place.schema.get("enum")
    if (
        isinstance(options, list)
        and len({_json_type(item) for item in cast(list[Any], options)}) > 1
    ):
        yield LintFinding(
            "enum_mixed_types",
            _pointer(place, "enum"),
            "The values of the enum are of several types; some providers take only strings.",
            'Use values of one type, and "anyOf" with {"type": "null"} for null.',
        )
    if "default" in place.schema and not _default_fits(place.schema, root):
        yield LintFinding(
            "default_invalid",
            _pointer(place, "default"),
            "The default does not fit the schema it belongs to.",
            "Correct the default, or allow its value in the schema.",
        )


def _default_fits(schema: dict[str, Any], root: dict[str, Any]) -> bool:
    shared = {key: root[key] for key in ("$defs", "definitions", "$schema") if key in root}
    try:
        return SchemaChecker({**shared, **schema}).is_valid(schema["default"])
    except ToolDefinitionError:
        return True


def _description_too_long(place: str, length: int) -> LintFinding:
    return LintFinding(
        "description_too_long",
        place,
        f"The description has {length} characters; some providers stop at {_MAX_DESCRIPTION}.",
        f"Shorten it to at most {_MAX_DESCRIPTION} characters.",
    )


def _pointer(place: SchemaPlace, *more: str) -> str:
    return render_pointer(("parameters", *place.path, *more))


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return cast(dict[str, Any], properties) if isinstance(properties, dict) else {}


def _is_nested_choice(place: SchemaPlace) -> bool:
    above = [keyword for keyword in place.keywords if keyword in _UNIONS]
    return len(above) > 1 or (bool(above) and place.keywords[-1] in _UNIONS)


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return type(value).__name__
