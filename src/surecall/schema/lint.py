"""Findings about a tool that some providers or models will trip over."""

import tomllib
from collections.abc import Iterator
from functools import cache
from pkgutil import get_data
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import ToolDefinitionError
from surecall.base.json_values import as_list
from surecall.base.limits import MAX_SCHEMA_DEPTH
from surecall.base.records import clip
from surecall.text import encode, render_pointer

from .check import SchemaChecker
from .structure import (
    MAX_SCHEMA_NODES,
    References,
    SchemaPath,
    SchemaPlace,
    json_types,
    members_of,
    walk_schema,
)

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


@cache
def _texts() -> dict[str, Any]:
    """Return what each rule says and how to mend it, and the keywords that are not portable."""
    return tomllib.loads((get_data(__package__ or "", "lint.toml") or b"").decode())


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
    references = References(parameters)
    properties = 0
    for count, place in enumerate(walk_schema(parameters)):
        if count >= MAX_SCHEMA_NODES or len(place.path) > 2 * MAX_SCHEMA_DEPTH:
            break
        findings += _lint_keywords(place)
        findings += _lint_shape(place)
        findings += _lint_object(place)
        findings += _lint_texts(place)
        findings += _lint_values(place, references)
        properties += len(members_of(place.schema))
    if properties > _MAX_PROPERTIES:
        findings.append(
            _finding("too_many_properties", "/parameters", count=properties, limit=_MAX_PROPERTIES)
        )
    return tuple(findings)


def clean_parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without empty `required` lists; parts that do not change are shared."""
    if b'"required":[]' not in encode(schema):  # far cheaper than the walk, and nearly always so
        return schema
    empty = [place.path for place in walk_schema(schema) if place.schema.get("required") == []]
    return _drop_keyword(schema, "required", empty)


def compile_foreign(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that somebody else wrote and checks again, without what cannot be run here.

    These are patterns that need another engine, such as those with look-ahead.

    Raises:
        ToolDefinitionError: It cannot be used without them either.
    """
    try:
        SchemaChecker(schema).compile()
    except ToolDefinitionError:
        foreign = [place.path for place in walk_schema(schema) if not _can_run(place.schema)]
        if not foreign:
            raise
        schema = _drop_keyword(schema, "pattern", foreign)
        SchemaChecker(schema).compile()
    return schema


def _can_run(schema: dict[str, Any]) -> bool:
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        return True
    try:
        SchemaChecker({"pattern": pattern}).compile()
    except ToolDefinitionError:
        return False
    return True


def _drop_keyword(schema: dict[str, Any], keyword: str, places: list[SchemaPath]) -> dict[str, Any]:
    """Return the schema without a keyword at some places; parts that do not change are shared."""
    if not places:
        return schema
    result = dict(schema)
    copies: dict[SchemaPath, Any] = {(): result}
    for path in places:
        for length in range(1, len(path) + 1):
            here = path[:length]
            if here not in copies:
                outer: Any = copies[here[:-1]]
                copies[here] = outer[here[-1]] = outer[here[-1]].copy()
        del copies[path][keyword]
    return result


def _finding(rule: str, place: str | SchemaPlace, *more: str, **values: Any) -> LintFinding:
    if isinstance(place, SchemaPlace):
        place = render_pointer(("parameters", *place.path, *more))
    words = _texts()["rules"][rule]
    return LintFinding(
        rule, place, words["message"].format(**values), words["fix"].format(**values)
    )


def _too_long(place: str | SchemaPlace, text: str, *more: str) -> LintFinding:
    rule = "description_too_long"
    return _finding(rule, place, *more, length=len(text), limit=_MAX_DESCRIPTION)


def _lint_name(name: str) -> Iterator[LintFinding]:
    if not name:
        yield _finding("name_missing", "/name")
        return
    odd = " ".join(map(repr, sorted(set(name) - _NAME_CHARACTERS)[:8]))
    if odd:
        safe = "".join(item if item in _NAME_CHARACTERS else "_" for item in name[:_MAX_NAME])
        yield _finding("name_characters", "/name", name=clip(name, 80), odd=odd, safe=safe)
    if len(name) > _MAX_NAME:
        yield _finding("name_too_long", "/name", length=len(name), limit=_MAX_NAME)


def _lint_description(description: str) -> Iterator[LintFinding]:
    if not description.strip():
        yield _finding("description_missing", "/description")
    elif len(description) > _MAX_DESCRIPTION:
        yield _too_long("/description", description)


def _lint_root(schema: dict[str, Any]) -> Iterator[LintFinding]:
    if schema.get("type") != "object":
        yield _finding("parameters_not_object", "/parameters")
    for keyword in _UNIONS:
        if keyword in schema:
            yield _finding("union_at_top", f"/parameters/{keyword}", keyword=keyword)


def _lint_keywords(place: SchemaPlace) -> Iterator[LintFinding]:
    for keyword in place.schema:
        if keyword in ("$ref", "$defs", "definitions"):
            yield _finding("uses_ref", place, keyword, keyword=keyword)
        if fix := _texts()["not_portable"].get(keyword):
            yield _finding("keyword_not_portable", place, keyword, keyword=keyword, fix=fix)
        if keyword in _UNIONS and _is_nested_choice(place):
            yield _finding("nested_union", place, keyword)


def _lint_shape(place: SchemaPlace) -> Iterator[LintFinding]:
    schema, keywords = place.schema, place.keywords
    if place.path and not any(item in schema for item in ("type", *_TYPE_STANDS_IN)):
        yield _finding("type_missing", place)
    if schema.get("type") == "array" and "items" not in schema and "prefixItems" not in schema:
        yield _finding("items_missing", place)
    levels = sum(keyword in _LEVELS for keyword in keywords)
    if levels == _MAX_NESTING + 1 and keywords[-1] in _LEVELS:
        yield _finding("nested_too_deep", place, limit=_MAX_NESTING)


def _lint_object(place: SchemaPlace) -> Iterator[LintFinding]:
    schema = place.schema
    required = schema.get("required")
    if required == []:
        yield _finding("empty_required", place, "required")
    properties = members_of(schema)
    for name in as_list(required):
        if name not in properties and ("properties" in schema or not place.path):
            yield _finding("required_unknown", place, "required", name=clip(repr(name), 80))
    if properties and "additionalProperties" not in schema:
        yield _finding("additional_properties_missing", place)
    for name in properties:
        if not name or set(name) - _NAME_CHARACTERS or len(name) > _MAX_NAME:
            here = ("properties", name)
            rule, shown = "property_name_characters", clip(name, 80)
            yield _finding(rule, place, *here, name=shown, limit=_MAX_NAME)


def _lint_texts(place: SchemaPlace) -> Iterator[LintFinding]:
    description = place.schema.get("description")
    if isinstance(description, str) and len(description) > _MAX_DESCRIPTION:
        yield _too_long(place, description, "description")
    if place.keywords == ("properties",) and not description:
        name = clip(str(place.path[-1]), 80)
        yield _finding("argument_description_missing", place, name=name)


def _lint_values(place: SchemaPlace, references: References) -> Iterator[LintFinding]:
    options = as_list(place.schema.get("enum"))
    if len({json_types(item)[0].replace("integer", "number") for item in options}) > 1:
        yield _finding("enum_mixed_types", place, "enum")
    if "default" in place.schema and not _default_fits(place.schema, references):
        yield _finding("default_invalid", place, "default")


def _default_fits(schema: dict[str, Any], references: References) -> bool:
    whole = references.extract(schema)
    try:
        return whole is None or SchemaChecker(whole).is_valid(schema["default"])
    except ToolDefinitionError:
        return True


def _is_nested_choice(place: SchemaPlace) -> bool:
    above = [keyword for keyword in place.keywords if keyword in _UNIONS]
    return len(above) > 1 or (bool(above) and place.keywords[-1] in _UNIONS)
